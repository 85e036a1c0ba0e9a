"""What routers say about a SYN: ICMP errors read from the error queue of the socket that sent it (method 3.6).

The kernel matches an error to its connection by the quoted addresses, ports and sequence number, and any user may read
the queue, so a path is traced without root. While a connection is being made an error of the way ends it; one that is
about nothing final (fragmentation, reassembly) says nothing here.
"""

import socket
import sys

from msgspec import Struct

from hopscope.model.plan import Family
from hopscope.model.record import ReplyKind
from hopscope.net import stamps
from hopscope.wire import icmp

QUOTE_BYTES = 2048
MOST_ERRORS = 8
"""Of one connection, which ends at the first; more are read so that the queue is left empty."""
ICMP_ORIGINS: dict[Family, int] = {4: stamps.SO_EE_ORIGIN_ICMP, 6: stamps.SO_EE_ORIGIN_ICMP6}


class Said(Struct, frozen=True, kw_only=True):
    """One ICMP error: whose, which, and when the kernel took it in (ns of CLOCK_REALTIME)."""

    kind: ReplyKind
    by: str
    code: int
    reply_ttl: int | None
    stamp: int | None


def prepare(sock: socket.socket, family: Family, ttl: int) -> None:
    """Limit how far a connection's packets go (0: no limit), and have errors about them kept, with stamp and TTL.

    Raises OSError.
    """
    if family == 4:
        if ttl:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, ttl)
    elif ttl:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, ttl)
    if sys.platform != "linux":
        return
    if family == 4:
        sock.setsockopt(socket.IPPROTO_IP, stamps.IP_RECVERR, 1)
        sock.setsockopt(socket.IPPROTO_IP, stamps.IP_RECVTTL, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IPV6, stamps.IPV6_RECVERR, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
    stamps.enable(sock, transmit=False)


def said(sock: socket.socket, family: Family) -> Said | None:
    """The first error of the way about a connection, or `None`; the queue is empty afterwards."""
    first: Said | None = None
    for _ in range(MOST_ERRORS):
        try:
            _, control, _, _ = sock.recvmsg(QUOTE_BYTES, stamps.ANCILLARY_BYTES, stamps.MSG_ERRQUEUE)
        except OSError:
            break
        first = first or understood(control, family)
    return first


def understood(control: stamps.ControlMessages, family: Family) -> Said | None:
    """An error of the way with its speaker; `None` for what this machine says itself, and for other kinds."""
    error = stamps.extended_error(control)
    if error is None or error.origin != ICMP_ORIGINS[family] or error.offender is None:
        return None
    kind: ReplyKind
    if error.kind == icmp.TIME_EXCEEDED[family] and error.code == 0:
        kind = "time-exceeded"
    elif error.kind == icmp.UNREACHABLE[family]:
        kind = "unreachable"
    else:
        return None
    ttl = stamps.received_ttl(control)
    return Said(kind=kind, by=error.offender, code=error.code, reply_ttl=ttl, stamp=stamps.software(control))
