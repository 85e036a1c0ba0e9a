"""The filter in the kernel: what it lets through of a table of messages, sent over the loopback to a raw socket."""

import select
import socket
import struct

import pytest

from hopscope.model.plan import Family
from hopscope.net import bpf
from hopscope.wire import icmp

pytestmark = pytest.mark.loopback

BASE = 0x1234 & bpf.FLOW_BITS_MASK
OTHER = BASE ^ 0x4000
HOME: dict[Family, str] = {4: "127.0.0.1", 6: "::1"}
FAMILIES: dict[Family, tuple[int, int]] = {
    4: (socket.AF_INET, socket.IPPROTO_ICMP),
    6: (socket.AF_INET6, socket.IPPROTO_ICMPV6),
}


def raw(family: Family) -> socket.socket:
    try:
        return socket.socket(FAMILIES[family][0], socket.SOCK_RAW, FAMILIES[family][1])
    except PermissionError:
        pytest.skip("a raw socket needs CAP_NET_RAW")


def message(family: Family, kind: int, identifier: int) -> bytes:
    """An echo message, or an ICMP error that quotes one; the checksum is right for IPv4, the kernel's for IPv6."""
    echo = struct.pack("!BBHHH", icmp.ECHO_REQUEST[family], 0, 0, identifier, 1) + b"payload!"
    if kind in {icmp.ECHO_REPLY[family], icmp.ECHO_REQUEST[family]}:
        whole = struct.pack("!BBHHH", kind, 0, 0, identifier, 1) + b"payload!"
    else:
        quoted = bytes([0x45]) + bytes(19) if family == 4 else bytes([0x60]) + bytes(39)
        whole = struct.pack("!BBHI", kind, 0, 0, 0) + quoted + echo
    if family == 6:
        return whole
    return whole[:2] + struct.pack("!H", ~icmp.ones_sum(whole) & 0xFFFF) + whole[4:]


def passed(family: Family, sent: list[bytes]) -> list[bytes]:
    """The messages that reach a socket with the filter for BASE, in order; the last one is known to pass."""
    with raw(family) as ours, raw(family) as sender:
        assert bpf.attach(ours, family, BASE)
        ours.settimeout(10)
        marker = message(family, icmp.ECHO_REPLY[family], BASE) + b"marker"
        if family == 4:
            marker = marker[:2] + b"\0\0" + marker[4:]
            marker = marker[:2] + struct.pack("!H", ~icmp.ones_sum(marker) & 0xFFFF) + marker[4:]
        for one in (*sent, marker):
            sender.sendto(one, (HOME[family], 0))
        got: list[bytes] = []
        while not got or not got[-1].endswith(b"marker"):
            got.append(ours.recv(2048)[20 if family == 4 else 0 :])
        assert select.select([ours], [], [], 0)[0] == []
    return got[:-1]


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("flow", range(4))
def test_everything_about_our_four_identifiers_passes(family: Family, flow: int) -> None:
    kinds = (icmp.ECHO_REPLY[family], icmp.TIME_EXCEEDED[family], icmp.UNREACHABLE[family])
    sent = [message(family, kind, BASE | flow) for kind in kinds]
    assert [one[0] for one in passed(family, sent)] == list(kinds)


@pytest.mark.parametrize("family", [4, 6])
def test_nothing_about_others_passes_nor_a_request_nor_another_kind(family: Family) -> None:
    kinds = (icmp.ECHO_REPLY[family], icmp.TIME_EXCEEDED[family], icmp.UNREACHABLE[family])
    others = [message(family, kind, OTHER) for kind in kinds]
    requests = [message(family, icmp.ECHO_REQUEST[family], identifier) for identifier in (BASE, OTHER)]
    odd = [message(family, kind, BASE) for kind in ((5, 12, 13) if family == 4 else (2, 4, 137))]
    (kernel_s_own,) = passed(family, [*others, *requests, *odd])  # its reply to our request, which itself was dropped
    assert kernel_s_own[0] == icmp.ECHO_REPLY[family]


def test_an_inner_header_with_options_is_read_past() -> None:
    echo = struct.pack("!BBHHH", icmp.ECHO_REQUEST[4], 0, 0, BASE, 1)
    quoted = bytes([0x46]) + bytes(23) + echo
    whole = struct.pack("!BBHI", icmp.TIME_EXCEEDED[4], 0, 0, 0) + quoted
    whole = whole[:2] + struct.pack("!H", ~icmp.ones_sum(whole) & 0xFFFF) + whole[4:]
    assert passed(4, [whole]) == [whole]


@pytest.mark.parametrize("family", [4, 6])
def test_messages_too_short_for_the_filter_are_dropped(family: Family) -> None:
    cut = [message(family, icmp.TIME_EXCEEDED[family], BASE)[:size] for size in (8, 20, 30)]
    if family == 4:
        blank = [one[:2] + b"\0\0" + one[4:] for one in cut]
        cut = [one[:2] + struct.pack("!H", ~icmp.ones_sum(one) & 0xFFFF) + one[4:] for one in blank]
    assert passed(family, cut) == []


def test_a_socket_that_takes_no_filter_says_so() -> None:
    one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with one, two:
        one.close()
        assert bpf.attach(one, 4, BASE) is False
