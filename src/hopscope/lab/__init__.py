"""A network in a box: namespaces, emulated links, a stand-in inference server. Root or a user namespace is enough.

Enter by `hopscope.lab.box.Lab`; describe by `hopscope.lab.topology`; the demo's network is in `hopscope.lab.demo`.
"""
