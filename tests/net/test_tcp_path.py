"""What routers say about a SYN, as the error queue tells it; routers themselves are in tests/lab/test_tcp_path.py."""

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.model.plan import Family
from hopscope.net import tcp_path
from hopscope.net.tcp_path import Said

# Captured on Linux 6.18: a router's Time Exceeded about a SYN, with its stamp and TTL.
ROUTER = "11.0.0.2"
STAMP = bytes.fromhex("411d0e6b00000000528d4f0600000000") + bytes(32)
STAMP_NS = 0x6B0E1D41 * 1_000_000_000 + 0x064F8D52
EXCEEDED = bytes.fromhex("71000000020b00000000000000000000020000000b0000020000000000000000")
MESSAGE = [(1, 37, STAMP), (0, 2, bytes.fromhex("40000000")), (0, 11, EXCEEDED)]

ICMP, ICMP6, LOCAL = 2, 3, 1


def error(origin: int, kind: int, code: int, offender: str | None = ROUTER) -> bytes:
    """`struct sock_extended_err` with the offender's socket address."""
    told = struct.pack("@IBBBBII", 113, origin, kind, code, 0, 0, 0)
    if offender is None:
        return told + bytes(16)
    if ":" in offender:
        return told + struct.pack("@HHI16sI", socket.AF_INET6, 0, 0, socket.inet_pton(socket.AF_INET6, offender), 0)
    return told + struct.pack("@HH4s8x", socket.AF_INET, 0, socket.inet_aton(offender))


def test_a_captured_time_exceeded() -> None:
    assert tcp_path.understood(MESSAGE, 4) == Said(
        kind="time-exceeded", by=ROUTER, code=0, reply_ttl=64, stamp=STAMP_NS
    )


@pytest.mark.parametrize(
    ("family", "told", "kind"),
    [
        (4, error(ICMP, 11, 0), "time-exceeded"),
        (4, error(ICMP, 11, 1), None),  # reassembly
        (4, error(ICMP, 3, 13), "unreachable"),
        (4, error(ICMP, 3, 1), "unreachable"),
        (4, error(ICMP, 12, 0), None),
        (4, error(LOCAL, 3, 1), None),
        (4, error(ICMP6, 3, 1), None),
        (4, error(ICMP, 3, 1, None), None),
        (6, error(ICMP6, 3, 0, "2001:db8::1"), "time-exceeded"),
        (6, error(ICMP6, 1, 1, "2001:db8::1"), "unreachable"),
        (6, error(ICMP6, 2, 0, "2001:db8::1"), None),  # packet too big
        (6, error(ICMP, 3, 1, "2001:db8::1"), None),
    ],
)
def test_which_errors_count(family: Family, told: bytes, kind: str | None) -> None:
    level, option = (socket.IPPROTO_IP, 11) if family == 4 else (socket.IPPROTO_IPV6, 25)
    said = tcp_path.understood([(level, option, told)], family)
    assert (None if said is None else said.kind) == kind
    if said is not None:
        assert (said.by, said.stamp, said.reply_ttl) == (ROUTER if family == 4 else "2001:db8::1", None, None)


@given(
    st.lists(
        st.tuples(st.sampled_from((0, 1, 41)), st.sampled_from((2, 11, 25, 37, 52)), st.binary(max_size=80)), max_size=5
    ),
    st.sampled_from((4, 6)),
)
def test_whatever_the_queue_holds_nothing_crashes(control: list[tuple[int, int, bytes]], family: Family) -> None:
    tcp_path.understood(control, family)


@pytest.mark.loopback
def test_a_socket_without_errors_has_nothing_to_say() -> None:
    with socket.socket() as sock:
        sock.setblocking(False)
        tcp_path.prepare(sock, 4, 3)
        assert sock.getsockopt(socket.IPPROTO_IP, socket.IP_TTL) == 3
        assert tcp_path.said(sock, 4) is None
