"""The measuring side's only sockets. Every packet is stamped as close to the wire as the system allows."""
