"""hopscope: is it the network or the server, at which hop, whose hop is it, and what to do next.

This file holds the version and nothing else: every command pays for what is imported here.
"""

__version__ = "0.1.0"
