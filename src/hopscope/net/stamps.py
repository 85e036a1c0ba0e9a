"""Kernel stamps: switching them on and reading them from control messages.

Numbers are from linux/net_tstamp.h, linux/errqueue.h and asm-generic/socket.h, which Python does not export. A stamp
is CLOCK_REALTIME in nanoseconds. On other systems nothing is switched on and nothing is found.
"""

import socket
import struct
import sys
from collections.abc import Sequence

SO_TIMESTAMPING = 37
SO_RXQ_OVFL = 40
SO_MEMINFO = 55
IP_RECVERR = 11
IPV6_RECVERR = 25
IP_RECVTTL = 12
MSG_ERRQUEUE = 0x2000

TX_SOFTWARE = 1 << 1
RX_SOFTWARE = 1 << 3
SOFTWARE = 1 << 4

SO_EE_ORIGIN_ICMP = 2
SO_EE_ORIGIN_ICMP6 = 3
SO_EE_ORIGIN_TIMESTAMPING = 4

_TIMESPEC = struct.Struct("@qq")
_EXTENDED_ERROR = struct.Struct("@IBBBBII")
_MEMINFO = struct.Struct("@9I")
_MEMINFO_DROPS = 8
ANCILLARY_BYTES = 512

ControlMessages = Sequence[tuple[int, int, bytes]]


def enable(sock: socket.socket, *, transmit: bool) -> bool:
    """Ask for receive stamps, and with `transmit` for send stamps too (without OPT_TSONLY: the packet comes back).

    Returns whether the kernel agreed.
    """
    if sys.platform != "linux":
        return False
    flags = RX_SOFTWARE | SOFTWARE | (TX_SOFTWARE if transmit else 0)
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, flags)
    except OSError:
        return False
    return True


def software(control: ControlMessages) -> int | None:
    """The software stamp among control messages, ns of CLOCK_REALTIME, or `None`."""
    for level, kind, data in control:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPING and len(data) >= _TIMESPEC.size:
            seconds, nanos = _TIMESPEC.unpack_from(data)
            return seconds * 1_000_000_000 + nanos if seconds else None
    return None


def overflow(control: ControlMessages) -> int | None:
    """Packets this socket has dropped so far (SO_RXQ_OVFL), or `None` where the kernel did not say."""
    for level, kind, data in control:
        if level == socket.SOL_SOCKET and kind == SO_RXQ_OVFL and len(data) >= 4:
            return int.from_bytes(data[:4], sys.byteorder)
    return None


def dropped(sock: socket.socket) -> int | None:
    """Packets a socket has dropped so far, asked of the kernel itself; `None` where it does not tell.

    SO_RXQ_OVFL tells only with the next packet, and there may be none.
    """
    if sys.platform != "linux":
        return None
    try:
        told = sock.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, _MEMINFO.size)
    except OSError:
        return None
    counts: tuple[int, ...] = _MEMINFO.unpack(told) if len(told) == _MEMINFO.size else ()
    return counts[_MEMINFO_DROPS] if counts else None


def received_ttl(control: ControlMessages) -> int | None:
    """TTL or hop limit of a received packet, from its control messages."""
    for level, kind, data in control:
        wanted = (level == socket.IPPROTO_IP and kind == socket.IP_TTL) or (
            level == socket.IPPROTO_IPV6 and kind == socket.IPV6_HOPLIMIT
        )
        if wanted and len(data) >= 4:
            return int.from_bytes(data[:4], sys.byteorder)
    return None


class ExtendedError:
    """`struct sock_extended_err` with the offender's address."""

    __slots__ = ("code", "errno", "info", "kind", "offender", "origin")

    def __init__(self, data: bytes) -> None:
        errno, origin, kind, code, _, info, _ = _EXTENDED_ERROR.unpack_from(data)
        self.errno: int = errno
        self.origin: int = origin
        self.kind: int = kind
        self.code: int = code
        self.info: int = info
        self.offender = _address(data[_EXTENDED_ERROR.size :])


def extended_error(control: ControlMessages) -> ExtendedError | None:
    """The extended error among control messages, or `None`."""
    for level, kind, data in control:
        wanted = (level == socket.IPPROTO_IP and kind == IP_RECVERR) or (
            level == socket.IPPROTO_IPV6 and kind == IPV6_RECVERR
        )
        if wanted and len(data) >= _EXTENDED_ERROR.size:
            return ExtendedError(data)
    return None


def _address(raw: bytes) -> str | None:
    """The address in a `struct sockaddr_in` or `sockaddr_in6`; `None` when the kernel gave none."""
    if len(raw) < 8:
        return None
    family = int.from_bytes(raw[:2], sys.byteorder)
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, raw[4:8])
    if family == socket.AF_INET6 and len(raw) >= 24:
        return socket.inet_ntop(socket.AF_INET6, raw[8:24])
    return None
