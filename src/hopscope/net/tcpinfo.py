"""TCP_INFO: what the kernel knows about one of our connections. Every field is taken only if the kernel returned it.

Offsets are those of `struct tcp_info` in the kernel's uapi header linux/tcp.h, which grows at its end and never
changes before it. Times there are microseconds; here they are nanoseconds. Other systems have no such struct.
"""

import socket
import sys

from msgspec import Struct

US = 1000
READ_BYTES = 512
NO_SAMPLE = 0xFFFF_FFFF
"""`tcpi_min_rtt` of a connection without a sample."""

UNACKED, RTT, TOTAL_RETRANS, BYTES_ACKED, BYTES_RECEIVED = 24, 68, 100, 120, 128
NOTSENT_BYTES, MIN_RTT, DATA_SEGS_IN, BYTES_RETRANS, RCV_OOOPACK = 144, 148, 152, 208, 224
SND_MSS = 16


class TcpInfo(Struct, frozen=True, kw_only=True):
    """One reading. `None`: this kernel does not tell, or there is no sample yet.

    `rtt_ns` is smoothed and holds the server's thinking after the first sample: only right after connect is it a
    round trip (method 5.3). `unacked` and `data_segs_in` count segments, `rcv_ooopack` segments out of order.
    """

    rtt_ns: int | None
    min_rtt_ns: int | None
    total_retrans: int | None
    snd_mss: int | None
    unacked: int | None
    bytes_acked: int | None
    bytes_received: int | None
    notsent_bytes: int | None
    data_segs_in: int | None
    bytes_retrans: int | None
    rcv_ooopack: int | None


def read(sock: socket.socket) -> TcpInfo | None:
    """A reading now, or `None` where the system has no TCP_INFO like Linux's (tcp(7))."""
    if sys.platform != "linux":
        return None
    try:
        raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, READ_BYTES)
    except OSError:
        return None
    return decode(raw)


def decode(raw: bytes) -> TcpInfo:
    """The struct as far as it goes."""
    rtt = _field(raw, RTT, 4)
    least = _field(raw, MIN_RTT, 4)
    return TcpInfo(
        rtt_ns=rtt * US if rtt else None,
        min_rtt_ns=None if least in (None, 0, NO_SAMPLE) else least * US,
        total_retrans=_field(raw, TOTAL_RETRANS, 4),
        snd_mss=_field(raw, SND_MSS, 4),
        unacked=_field(raw, UNACKED, 4),
        bytes_acked=_field(raw, BYTES_ACKED, 8),
        bytes_received=_field(raw, BYTES_RECEIVED, 8),
        notsent_bytes=_field(raw, NOTSENT_BYTES, 4),
        data_segs_in=_field(raw, DATA_SEGS_IN, 4),
        bytes_retrans=_field(raw, BYTES_RETRANS, 8),
        rcv_ooopack=_field(raw, RCV_OOOPACK, 4),
    )


def _field(raw: bytes, offset: int, size: int) -> int | None:
    end = offset + size
    return int.from_bytes(raw[offset:end], sys.byteorder) if end <= len(raw) else None
