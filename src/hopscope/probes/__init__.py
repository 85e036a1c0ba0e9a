"""Probe kinds: one file a kind, each driving one engine over net's ports, yielding records of its task."""
