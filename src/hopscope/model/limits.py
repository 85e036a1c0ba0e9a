"""Numbers that the plan and the command line share: units, defaults, bounds. It imports nothing."""

MS = 1_000_000
SECOND = 1_000_000_000
"""Nanoseconds."""

LOSS_THRESHOLD_NS = 2 * SECOND
MAX_TTL = 30
DEFAULT_PAYLOAD_BYTES = 56
TOKEN_BYTES = 8
MIN_PAYLOAD_BYTES = TOKEN_BYTES + 2
"""Of an echo: magic and number of the probe, and the word that keeps its checksum constant."""
