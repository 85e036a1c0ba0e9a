"""Algorithms that are asked: `step(now)` names what to send, replies are told to them. No I/O, no clock."""
