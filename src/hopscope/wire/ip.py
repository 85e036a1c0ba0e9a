"""The IPv4 header as a raw socket delivers it (RFC 791)."""

from msgspec import Struct

MIN_HEADER_BYTES = 20


class Ipv4(Struct, frozen=True, gc=False):
    """Source address (4 bytes), TTL and payload of a received IPv4 packet."""

    source: bytes
    ttl: int
    payload: bytes


def decode_v4(packet: bytes) -> Ipv4 | None:
    """Split a packet into header facts and payload; `None` when it is no whole IPv4 header."""
    if len(packet) < MIN_HEADER_BYTES or packet[0] >> 4 != 4:
        return None
    header = (packet[0] & 0x0F) * 4
    if header < MIN_HEADER_BYTES or len(packet) < header:
        return None
    return Ipv4(packet[12:16], packet[8], packet[header:])
