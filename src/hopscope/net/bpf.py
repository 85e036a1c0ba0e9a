"""Classic BPF that lets through only ICMP about our identifiers, so that other traffic never wakes us.

Opcodes are from linux/bpf_common.h. Our identifiers share all bits but the two lowest, which number the flow. The
filter is a convenience for speed: everything it passes is checked again.
"""

import ctypes
import socket
import struct

from hopscope.model.plan import Family
from hopscope.wire import icmp

SO_ATTACH_FILTER = 26
ICMP6_FILTER = 1
FLOW_BITS_MASK = 0xFFFC

_LD_H_IND, _LD_B_IND, _LDX_MSH, _LDX_IMM = 0x48, 0x50, 0xB1, 0x01
_AND, _LSH, _ADD_X, _TAX, _JEQ, _RET = 0x54, 0x64, 0x0C, 0x07, 0x15, 0x06
_ACCEPT = 0x40000

_Instruction = tuple[int, int, int, int]


def _match_identifier(offset: int, base: int) -> list[_Instruction]:
    """Accept when the identifier at X + offset is ours, else drop."""
    return [
        (_LD_H_IND, 0, 0, offset),
        (_AND, 0, 0, FLOW_BITS_MASK),
        (_JEQ, 0, 1, base & FLOW_BITS_MASK),
        (_RET, 0, 0, _ACCEPT),
        (_RET, 0, 0, 0),
    ]


def program(family: Family, base: int) -> list[_Instruction]:
    """Instructions for a raw ICMP socket: IPv4 delivers the IP header, IPv6 does not."""
    start: _Instruction = (_LDX_MSH, 0, 0, 0) if family == 4 else (_LDX_IMM, 0, 0, 0)
    own = _match_identifier(4, base)
    quoted = _quoted_v4(base) if family == 4 else _quoted_v6(base)
    return [
        start,
        (_LD_B_IND, 0, 0, 0),
        (_JEQ, 0, len(own), icmp.ECHO_REPLY[family]),
        *own,
        (_JEQ, 2, 0, icmp.TIME_EXCEEDED[family]),
        (_JEQ, 1, 0, icmp.UNREACHABLE[family]),
        (_RET, 0, 0, 0),
        *quoted,
    ]


def _quoted_v4(base: int) -> list[_Instruction]:
    """The identifier in the quote of an ICMPv4 error: behind our header of 8 and an inner one of variable length."""
    return [
        (_LD_B_IND, 0, 0, 8),
        (_AND, 0, 0, 0x0F),
        (_LSH, 0, 0, 2),
        (_ADD_X, 0, 0, 0),
        (_TAX, 0, 0, 0),
        *_match_identifier(8 + 4, base),
    ]


def _quoted_v6(base: int) -> list[_Instruction]:
    """The identifier in the quote of an ICMPv6 error: behind 8 and a fixed header of 40."""
    return _match_identifier(8 + icmp.IPV6_HEADER_BYTES + 4, base)


def attach(sock: socket.socket, family: Family, base: int) -> bool:
    """Attach the filter; returns whether the kernel took it (elsewhere than on Linux it does not)."""
    packed = b"".join(struct.pack("@HBBI", *instruction) for instruction in program(family, base))
    buffer = ctypes.create_string_buffer(packed)
    header = struct.pack("@HP", len(packed) // 8, ctypes.addressof(buffer))
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, header)
        if family == 6:
            sock.setsockopt(socket.IPPROTO_ICMPV6, ICMP6_FILTER, _icmp6_filter())
    except OSError:
        return False
    return True


def _icmp6_filter() -> bytes:
    """`struct icmp6_filter` (RFC 3542 §3.2): block every type but the three we read."""
    blocked = bytearray(b"\xff" * 32)
    words = list(struct.unpack("@8I", blocked))
    for kind in (icmp.ECHO_REPLY[6], icmp.TIME_EXCEEDED[6], icmp.UNREACHABLE[6]):
        words[kind >> 5] &= ~(1 << (kind & 31)) & 0xFFFFFFFF
    return struct.pack("@8I", *words)
