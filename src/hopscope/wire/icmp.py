"""ICMP and ICMPv6 as far as probing needs them: echo requests with a constant checksum, and what comes back.

RFC 792 and RFC 4443; error messages quote the probe (RFC 1812 §4.3.2.3), routers may quote as little as 28 bytes.
Decoders take any bytes and return `None` for what is not for us.
"""

import struct

from msgspec import Struct

from hopscope.model.limits import MIN_PAYLOAD_BYTES, TOKEN_BYTES
from hopscope.model.plan import Family

ECHO_REQUEST: dict[Family, int] = {4: 8, 6: 128}
ECHO_REPLY: dict[Family, int] = {4: 0, 6: 129}
TIME_EXCEEDED: dict[Family, int] = {4: 11, 6: 3}
UNREACHABLE: dict[Family, int] = {4: 3, 6: 1}

HEADER_BYTES = 8
IPV6_HEADER_BYTES = 40
MIN_IPV4_HEADER_BYTES = 20
PROTO_ICMP: dict[Family, int] = {4: 1, 6: 58}

_HEADER = struct.Struct("!BBHHH")
_BODY = struct.Struct("!4sIH")


def ones_sum(data: bytes) -> int:
    """One's complement sum of 16-bit words (RFC 1071), folded to 16 bits."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


class EchoTemplate:
    """Builds echo requests of one flow and size: identifier, and so checksum, never change (method 3.2).

    Payload: 4 bytes of magic, 4 of probe number, 2 that hold the checksum constant, padding. The checksum is of the
    ICMP message alone; over IPv6 the kernel adds the pseudo header, which is constant too.
    """

    def __init__(self, family: Family, identifier: int, magic: bytes, size: int, flow: int) -> None:
        self._kind = ECHO_REQUEST[family]
        self._identifier = identifier
        self._magic = magic
        self._padding = bytes(i & 0xFF for i in range(size - MIN_PAYLOAD_BYTES))
        # A checksum in the middle of the range, its own for each flow: equal-cost routers may hash on it.
        self._checksum = 0x4000 + 0x1111 * (flow % 8)
        still = _HEADER.pack(self._kind, 0, 0, identifier, 0) + magic + b"\0" * 6 + self._padding
        self._still = ones_sum(still)

    def build(self, sequence: int, number: int) -> bytes:
        """The ICMP message for a 16-bit sequence and a 32-bit probe number."""
        moving = self._still + sequence + (number >> 16) + (number & 0xFFFF)
        # Sum of all words but the checksum must be ~checksum, modulo 0xFFFF (RFC 1071 §2).
        balance = ((~self._checksum & 0xFFFF) - moving) % 0xFFFF
        return (
            _HEADER.pack(self._kind, 0, self._checksum, self._identifier, sequence)
            + _BODY.pack(self._magic, number, balance)
            + self._padding
        )


class Seen(Struct, frozen=True, gc=False):
    """What an ICMP message says about one of our probes.

    `number` is known only where the payload came back (echo replies, long quotes); `target` is the destination that
    the quote names, `None` for echo replies.
    """

    kind: int
    code: int
    identifier: int
    sequence: int
    number: int | None
    target: bytes | None = None
    quoted_ttl: int | None = None
    quoted_tos: int | None = None


def number_of(payload: bytes, magic: bytes) -> int | None:
    """The probe number in an echo payload that carries our magic."""
    if len(payload) >= TOKEN_BYTES and payload[:4] == magic:
        return int.from_bytes(payload[4:8], "big")
    return None


def decode(message: bytes, family: Family, magic: bytes) -> Seen | None:
    """Decode an ICMP message (without its IP header). `None` for other kinds, truncated or foreign messages."""
    if len(message) < HEADER_BYTES:
        return None
    kind, code, _, identifier, sequence = _HEADER.unpack_from(message)
    if kind == ECHO_REPLY[family]:
        number = number_of(message[HEADER_BYTES:], magic)
        return None if number is None else Seen(kind, code, identifier, sequence, number)
    if kind not in {TIME_EXCEEDED[family], UNREACHABLE[family]}:
        return None
    # Code 1 of Time Exceeded is about reassembly, not about the path.
    if kind == TIME_EXCEEDED[family] and code != 0:
        return None
    quoted = message[HEADER_BYTES:]
    return _quoted_v4(kind, code, quoted, magic) if family == 4 else _quoted_v6(kind, code, quoted, magic)


def _quoted_v4(kind: int, code: int, quoted: bytes, magic: bytes) -> Seen | None:
    """Our echo request quoted behind an IPv4 header, options allowed."""
    if len(quoted) < MIN_IPV4_HEADER_BYTES or quoted[0] >> 4 != 4:
        return None
    header = (quoted[0] & 0x0F) * 4
    fragment = int.from_bytes(quoted[6:8], "big") & 0x1FFF
    if header < MIN_IPV4_HEADER_BYTES or quoted[9] != PROTO_ICMP[4] or fragment:
        return None
    return _quoted_echo(kind, code, quoted[header:], 4, magic, quoted[16:20], quoted[8], quoted[1])


def _quoted_v6(kind: int, code: int, quoted: bytes, magic: bytes) -> Seen | None:
    """Our echo request quoted behind an IPv6 header."""
    if len(quoted) < IPV6_HEADER_BYTES or quoted[0] >> 4 != 6 or quoted[6] != PROTO_ICMP[6]:
        return None
    tos = int.from_bytes(quoted[0:2], "big") >> 4 & 0xFF
    return _quoted_echo(kind, code, quoted[IPV6_HEADER_BYTES:], 6, magic, quoted[24:40], quoted[7], tos)


def _quoted_echo(
    kind: int, code: int, echo: bytes, family: Family, magic: bytes, target: bytes, ttl: int, tos: int
) -> Seen | None:
    """The echo header inside a quote."""
    if len(echo) < HEADER_BYTES:
        return None
    inner, _, _, identifier, sequence = _HEADER.unpack_from(echo)
    if inner != ECHO_REQUEST[family]:
        return None
    number = number_of(echo[HEADER_BYTES:], magic)
    if number is None and len(echo) >= HEADER_BYTES + TOKEN_BYTES:
        return None
    return Seen(kind, code, identifier, sequence, number, target, ttl, tos)
