"""The ICMP channel against real sockets on this machine: whose reply is whose, what each is worth, and what is lost.

Forged messages come from a raw socket beside it. What needs a network of its own is in test_icmp_rights.py.
"""

import select
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hopscope.errors import UsageError
from hopscope.model.limits import MIN_PAYLOAD_BYTES, SECOND
from hopscope.model.plan import ICMP_FLOWS, Family
from hopscope.net.icmp import IcmpChannel
from hopscope.net.ports import Arrival, DropSeen, NoRightsError, SendFailedError
from hopscope.wire import icmp
from net.probing import LONGEST_S, SteppingClock, after, arrivals, flight, listen, wakeups

pytestmark = pytest.mark.loopback

HOME: dict[Family, str] = {4: "127.0.0.1", 6: "::1"}
IPPROTO_ICMP: dict[Family, int] = {4: socket.IPPROTO_ICMP, 6: socket.IPPROTO_ICMPV6}
SMALLEST_BUFFER_BYTES = 4096
QUIET_S = 0.3

FLOOD = """
import sys
from hopscope.net.clock import SystemClock
from hopscope.net.icmp import IcmpChannel
from net.probing import arrivals, flight
channel = IcmpChannel(SystemClock(), int(sys.argv[1]))
for seq in range(int(sys.argv[3])):
    channel.send(flight(channel, sys.argv[2], seq=seq))
print(len(arrivals(channel, int(sys.argv[3]))))
"""


@contextmanager
def channel(
    family: Family = 4, *, source: str | None = None, receive_bytes: int = 1 << 20, clock: SteppingClock | None = None
) -> Iterator[IcmpChannel]:
    """A channel, or a skip where this user may have none."""
    try:
        made = IcmpChannel(clock or SteppingClock(), family, source=source, receive_bytes=receive_bytes)
    except NoRightsError as error:
        pytest.skip(f"{error}: {error.advice}")
    if not made.privileged:
        made.close()
        pytest.skip("a datagram ICMP socket may be opened, a raw one not: needs CAP_NET_RAW")
    try:
        yield made
    finally:
        made.close()


@contextmanager
def raw(family: Family = 4) -> Iterator[socket.socket]:
    """A raw ICMP socket of somebody else's."""
    with socket.socket(socket.AF_INET if family == 4 else socket.AF_INET6, socket.SOCK_RAW, IPPROTO_ICMP[family]) as it:
        it.settimeout(LONGEST_S)
        yield it


def checked(message: bytes) -> bytes:
    """An ICMPv4 message with its checksum."""
    return message[:2] + struct.pack("!H", ~icmp.ones_sum(message) & 0xFFFF) + message[4:]


def requests(sniffer: socket.socket, count: int) -> list[bytes]:
    """Echo requests that pass on the loopback, with their IPv4 headers."""
    seen: list[bytes] = []
    while len(seen) < count:
        packet = sniffer.recv(70_000)
        if packet[20] == icmp.ECHO_REQUEST[4]:
            seen.append(packet)
    return seen


def forged_reply(request: bytes, *, magic: bytes | None = None) -> bytes:
    """The echo reply to a request (with its IPv4 header), or one that knows everything but the token."""
    message = bytearray(request[20:])
    message[0], message[2:4] = icmp.ECHO_REPLY[4], b"\0\0"
    if magic is not None:
        message[8:12] = magic
    return checked(bytes(message))


def forged_error(
    request: bytes, *, kind: int = 11, code: int = 0, quoted: int = 548, target: str | None = None, options: int = 0
) -> bytes:
    """An ICMP error that quotes a request, of so many bytes, with so many bytes of IP options."""
    header = bytearray(request[:20])
    header[0] += options // 4
    header[8] = 1
    if target is not None:
        header[16:20] = socket.inet_aton(target)
    quote = bytes(header) + b"\1" * options + request[20:]
    return checked(struct.pack("!BBHI", kind, code, 0, 0) + quote[:quoted])


@pytest.mark.parametrize("family", [4, 6])
def test_a_reply_has_both_kernel_stamps_and_says_who_and_how_far(family: Family) -> None:
    with channel(family) as ours:
        before = ours._clock.now()
        for seq in range(40):
            ours.send(flight(ours, HOME[family], seq=seq, flow=seq % ICMP_FLOWS))
        told = arrivals(ours, 40)
        took = ours._clock.now() - before
    answers = [one.answer for one in told]
    assert [one.flight.shot.seq for one in told] == list(range(40))
    assert {(one.kind, one.by, one.reply_ttl, one.code) for one in answers} == {("echo-reply", None, 64, None)}
    assert all(one.asked for one in told)
    assert all(0 < one.rtt_ns <= took for one in answers)
    assert sum(one.clock == "kernel" for one in answers) >= 38  # the rest were held up for 50 ms by a busy machine


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("size", [MIN_PAYLOAD_BYTES, 57, 65_000])
def test_any_size_comes_back(family: Family, size: int) -> None:
    with channel(family) as ours:
        ours.send(flight(ours, HOME[family], size=size))
        (told,) = arrivals(ours, 1)
    assert (told.answer.kind, told.answer.by) == ("echo-reply", None)


def test_ttl_and_dscp_go_out_as_asked_and_a_flow_keeps_identifier_and_checksum() -> None:
    with channel() as ours, raw() as sniffer:
        sniffer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        for seq in range(16):
            ours.send(flight(ours, HOME[4], seq=seq, flow=seq % ICMP_FLOWS, ttl=7 + seq, dscp=46))
        seen = [packet for packet in requests(sniffer, 16) if packet[28:32] == ours._echoes.magic]
    assert [packet[8] for packet in seen] == [7 + seq for seq in range(16)]
    assert {packet[1] for packet in seen} == {46 << 2}
    flows = [{packet[24:26] + packet[22:24] for packet in seen[flow::ICMP_FLOWS]} for flow in range(ICMP_FLOWS)]
    assert [len(flow) for flow in flows] == [1] * ICMP_FLOWS
    assert len(set[bytes]().union(*flows)) == ICMP_FLOWS


def test_hop_limit_and_traffic_class_go_out_as_asked_over_ipv6() -> None:
    with channel(6) as ours, raw(6) as sniffer:
        sniffer.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
        sniffer.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
        ours.send(flight(ours, HOME[6], ttl=9, dscp=46))
        message = b"\0"
        control: list[tuple[int, int, bytes]] = []
        while message[0] != icmp.ECHO_REQUEST[6]:
            message, control, _, _ = sniffer.recvmsg(2048, 128)
    found = {kind: int.from_bytes(data[:4], sys.byteorder) for _, kind, data in control}
    assert (found[socket.IPV6_HOPLIMIT], found[socket.IPV6_TCLASS]) == (9, 46 << 2)


def test_probes_leave_from_the_source_that_was_given() -> None:
    with channel(source="127.0.0.5") as ours, raw() as sniffer:
        ours.send(flight(ours, HOME[4]))
        (seen,) = requests(sniffer, 1)
        assert len(arrivals(ours, 1)) == 1
    assert socket.inet_ntoa(seen[12:16]) == "127.0.0.5"


@pytest.mark.parametrize(("family", "source"), [(4, "192.0.2.1"), (6, "127.0.0.1"), (6, "2001:db8::1")])
def test_a_source_that_this_host_does_not_have_is_the_users_mistake(family: Family, source: str) -> None:
    with (
        pytest.raises(UsageError, match=rf"{source} is not an IPv{family} address of this host") as found,
        channel(family, source=source),
    ):
        pass
    assert "--source" in found.value.advice


@pytest.mark.parametrize("family", [4, 6])
def test_other_processes_never_wake_us_nor_count_as_our_drops(family: Family) -> None:
    with channel(family, receive_bytes=SMALLEST_BUFFER_BYTES) as ours:
        argv = [sys.executable, "-c", FLOOD, str(family), HOME[family], "300"]
        others = [
            subprocess.run(
                [*argv], capture_output=True, text=True, check=True, timeout=30, env=with_tests_on_the_path()
            )
            for _ in range(2)
        ]
        assert [other.stdout for other in others] == ["300\n"] * 2
        assert wakeups(ours, 0) == 0
        assert [one for one in ours.receive() if isinstance(one, DropSeen)] == []
        ours.send(flight(ours, HOME[family]))
        assert len(arrivals(ours, 1)) == 1


def with_tests_on_the_path() -> dict[str, str]:
    """The environment of a child that uses this folder's helpers."""
    return {"PYTHONPATH": f"{__file__.rpartition('/net/')[0]}", "PATH": "/usr/bin:/bin"}


def test_two_channels_of_one_process_hear_only_their_own() -> None:
    with channel() as one, channel() as two:
        for seq in range(100):
            one.send(flight(one, HOME[4], seq=seq))
            two.send(flight(two, HOME[4], seq=1000 + seq))
        first, second = arrivals(one, 100), arrivals(two, 100)
    assert [told.flight.shot.seq for told in first] == list(range(100))
    assert [told.flight.shot.seq for told in second] == list(range(1000, 1100))


def test_an_equal_identifier_and_sequence_without_our_token_is_nobodys_reply() -> None:
    with channel() as ours, raw() as other:
        ours.send(flight(ours, HOME[4]))
        (seen,) = requests(other, 1)
        assert len(arrivals(ours, 1)) == 1
        for magic in (b"\0\0\0\0", bytes(byte ^ 1 for byte in ours._echoes.magic)):
            other.sendto(forged_reply(seen, magic=magic), (HOME[4], 0))
        assert wakeups(ours, QUIET_S) > 0  # they did pass the filter
        other.sendto(forged_reply(seen, magic=b"\0\0\0\0"), (HOME[4], 0))
        assert arrivals(ours, 1, longest_s=QUIET_S) == []


def test_a_second_reply_is_told_again_and_one_from_another_address_is_a_strangers() -> None:
    with channel() as ours, raw() as other:
        ours.send(flight(ours, HOME[4]))
        (seen,) = requests(other, 1)
        assert len(arrivals(ours, 1)) == 1
        other.sendto(forged_reply(seen), (HOME[4], 0))
        (again,) = arrivals(ours, 1)
        other.bind(("127.0.0.9", 0))
        other.sendto(forged_reply(seen), (HOME[4], 0))
        (stranger,) = arrivals(ours, 1)
    assert (again.asked, again.answer.by, again.flight.shot.seq) == (True, None, 0)
    assert (stranger.asked, stranger.answer.by) == (False, "127.0.0.9")


@pytest.mark.parametrize(
    ("form", "kind", "code"),
    [
        ({}, "time-exceeded", 0),
        ({"quoted": 28}, "time-exceeded", 0),
        ({"quoted": 28 + 8, "options": 8}, "time-exceeded", 0),
        ({"options": 40}, "time-exceeded", 0),
        ({"kind": 3, "code": 1}, "unreachable", 1),
        ({"kind": 3, "code": 13, "quoted": 28}, "unreachable", 13),
    ],
)
def test_an_error_that_quotes_our_probe_is_its_answer(form: dict[str, int], kind: str, code: int) -> None:
    with channel() as ours, raw() as router:
        ours.send(flight(ours, HOME[4], seq=3, ttl=5))
        (seen,) = requests(router, 1)
        assert len(arrivals(ours, 1)) == 1
        router.bind(("127.0.0.77", 0))
        router.sendto(forged_error(seen, **form), (HOME[4], 0))  # type: ignore[arg-type]
        (told,) = arrivals(ours, 1)
    answer = told.answer
    assert (told.asked, told.flight.shot.seq) == (True, 3)
    assert (answer.kind, answer.by, answer.code, answer.quoted_ttl) == (kind, "127.0.0.77", code, 1)


@pytest.mark.parametrize(
    "form",
    [
        {"code": 1},  # of Time Exceeded: reassembly
        {"kind": 4},  # source quench
        {"kind": 5},  # redirect
        {"target": "127.0.0.2"},  # quotes a packet to somebody else
        {"quoted": 27},  # not even the ICMP header
        {"quoted": 20},
        {"quoted": 0},
        {"quoted": 30},  # enough for the header, half a token: then the token must be right, or absent
    ],
)
def test_an_error_about_something_else_or_cut_short_is_ignored(form: dict[str, int | str]) -> None:
    with channel() as ours, raw() as router:
        ours.send(flight(ours, HOME[4]))
        (seen,) = requests(router, 1)
        assert len(arrivals(ours, 1)) == 1
        message = forged_error(seen, **form)  # type: ignore[arg-type]
        router.sendto(message, (HOME[4], 0))
        told = arrivals(ours, 1, longest_s=QUIET_S)
    wanted = 1 if form.get("quoted") == 30 else 0
    assert len(told) == wanted


def test_a_reply_after_the_horizon_is_nobodys() -> None:
    with channel() as ours, raw() as other:
        ours.send(flight(ours, HOME[4], seq=1, horizon_ns=1))
        (seen,) = requests(other, 1)
        ours.send(flight(ours, HOME[4], seq=2))
        assert [told.flight.shot.seq for told in arrivals(ours, 1)] == [2]
        other.sendto(forged_reply(seen), (HOME[4], 0))
        assert arrivals(ours, 1, longest_s=QUIET_S) == []


def test_numbers_wrap_without_taking_each_others_replies() -> None:
    with channel() as ours:
        ours._echoes._number = 0xFFFFFFFF - 50
        for seq in range(100):
            ours.send(flight(ours, HOME[4], seq=seq))
        assert [told.flight.shot.seq for told in arrivals(ours, 100)] == list(range(100))


def test_what_cannot_be_sent_raises_and_leaves_nothing_behind() -> None:
    with channel(6) as ours:
        with pytest.raises(SendFailedError, match="no interface with this name"):
            ours.send(flight(ours, "fe80::1%nosuch"))
        assert not ours._echoes._out
        assert not ours._echoes._by_sequence


def test_drops_of_a_full_socket_are_all_told_with_the_time_they_fell_in() -> None:
    """A full socket counts before it filters: on loopback our own requests too, so the count is a bound from above."""
    with channel(receive_bytes=SMALLEST_BUFFER_BYTES) as ours:
        started = ours._clock.now()
        for seq in range(200):
            ours.send(flight(ours, HOME[4], seq=seq))
        sent = ours._clock.now()
        ours.send(flight(ours, HOME[4], seq=200))
        told = listen(ours, lambda told: counted(told) >= 201)
        told += listen(ours, lambda told: False, longest_s=QUIET_S)
    drops = [one for one in told if isinstance(one, DropSeen)]
    replies = len(told) - len(drops)
    assert drops
    assert 0 < replies < 201
    assert 201 - replies <= sum(drop.count for drop in drops) <= 2 * (201 - replies)
    slack = after(1)  # of a stamp against our own reading of the clock
    assert all(started - slack <= drop.since <= drop.until for drop in drops)
    assert drops[0].since <= sent + slack
    assert drops[0].until >= drops[0].since


def counted(told: list[Arrival | DropSeen]) -> int:
    """Replies and dropped replies."""
    return sum(one.count if isinstance(one, DropSeen) else 1 for one in told)


@pytest.mark.parametrize("step_s", [5, -5])
def test_a_clock_step_in_mid_flight_makes_the_delay_monotonic_and_says_so(step_s: int) -> None:
    clock = SteppingClock()
    with channel(clock=clock) as ours:
        ours.send(flight(ours, HOME[4], seq=0))
        clock.stepped = step_s * SECOND
        (across,) = arrivals(ours, 1)
        ours.send(flight(ours, HOME[4], seq=1))
        (behind,) = arrivals(ours, 1)
    assert across.answer.clock == "user"
    assert 0 < across.answer.rtt_ns < SECOND
    assert behind.answer.clock == "kernel"
    assert 0 < behind.answer.rtt_ns < SECOND


def test_an_idle_channel_wants_nothing_and_tells_nothing() -> None:
    with channel() as ours:
        assert ours.wake_at() is None
        assert select.select([ours], [], [], 0)[0] == []
        assert list(ours.receive()) == []


@pytest.mark.parametrize("wrong_ns", [10 * SECOND, -10 * SECOND])
def test_a_delay_is_the_monotonic_one_where_the_stamps_cannot_be_true(wrong_ns: int) -> None:
    with channel() as ours:
        ours.send(flight(ours, HOME[4], seq=0))
        (out,) = ours._echoes._out.values()
        ours._drain_errors()
        assert out.stamp is not None
        out.stamp += wrong_ns
        (told,) = arrivals(ours, 1)
    assert told.answer.clock == "user"
    assert 0 < told.answer.rtt_ns < SECOND
