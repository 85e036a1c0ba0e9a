"""TCP probes to listeners of the test's own: the kernel's own sample, refusals, silence, and nothing left behind."""

import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hopscope.model.limits import SECOND
from hopscope.model.plan import Family
from hopscope.net.ports import SendFailedError
from hopscope.net.tcp import TcpChannel
from net.probing import LONGEST_S, SteppingClock, arrivals, flight
from net.servers import reset, serve

pytestmark = pytest.mark.loopback

HOME: dict[Family, str] = {4: "127.0.0.1", 6: "::1"}
FAMILIES: dict[Family, socket.AddressFamily] = {4: socket.AF_INET, 6: socket.AF_INET6}
LISTEN = "0A"


@contextmanager
def channel(family: Family = 4, *, source: str | None = None, interface: str | None = None) -> Iterator[TcpChannel]:
    made = TcpChannel(SteppingClock(), family, source=source, interface=interface)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def listener(family: Family = 4, *, backlog: int = 128) -> Iterator[socket.socket]:
    with socket.create_server((HOME[family], 0), family=FAMILIES[family], backlog=backlog) as it:
        it.settimeout(LONGEST_S)
        yield it


@contextmanager
def full() -> Iterator[int]:
    """A port whose accept queue is full: it answers no SYN, as a filtered port does not."""
    with listener(backlog=0) as it, socket.socket() as first:
        port: int = it.getsockname()[1]
        first.connect((HOME[4], port))
        with socket.socket() as second:
            second.setblocking(False)
            second.connect_ex((HOME[4], port))
            yield port


def closed_port() -> int:
    with socket.create_server((HOME[4], 0)) as it:
        port: int = it.getsockname()[1]
        return port


def connections(port: int) -> list[str]:
    """States of every connection to or from a port that is not a listener, as the kernel has them."""
    rows = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{name}").read_text(encoding="ascii").splitlines()[1:]
    ]
    ports = f":{port:04X}"
    return [row[3] for row in rows if (row[1].endswith(ports) or row[2].endswith(ports)) and row[3] != LISTEN]


@pytest.mark.parametrize("family", [4, 6])
def test_an_open_port_is_timed_by_the_kernels_first_sample(family: Family) -> None:
    with channel(family) as ours, listener(family) as server:
        port = server.getsockname()[1]
        before = ours._clock.now()
        for seq in range(30):
            ours.send(flight(ours, HOME[family], seq=seq, port=port))
        told = arrivals(ours, 30)
        took = ours._clock.now() - before
    assert sorted(one.flight.shot.seq for one in told) == list(range(30))
    assert {one.answer.kind for one in told} == {"syn-ack"}
    assert {one.answer.by for one in told} == {None}
    assert all(0 < one.answer.rtt_ns <= took for one in told)
    assert sum(one.answer.clock == "tcp-info" for one in told) >= 28


def test_a_connection_that_is_accepted_and_reset_at_once_was_answered() -> None:
    with channel() as ours, serve(reset) as server:
        for seq in range(50):
            ours.send(flight(ours, HOME[4], seq=seq, port=server.port))
        told = arrivals(ours, 50)
    assert sorted(one.flight.shot.seq for one in told) == list(range(50))
    assert {one.answer.kind for one in told} == {"syn-ack"}


def test_every_probe_has_a_source_port_of_its_own() -> None:
    with channel() as ours, listener() as server:
        for seq in range(50):
            ours.send(flight(ours, HOME[4], seq=seq, port=server.getsockname()[1]))
        assert len(arrivals(ours, 50)) == 50
        peers = [server.accept() for _ in range(50)]
        for conn, _ in peers:
            conn.close()
    assert len({peer[1] for _, peer in peers}) == 50


def test_a_refusal_is_an_answer_timed_by_ourselves() -> None:
    with channel() as ours:
        for seq in range(10):
            ours.send(flight(ours, HOME[4], seq=seq, port=closed_port()))
        told = arrivals(ours, 10)
    assert {(one.answer.kind, one.answer.clock, one.answer.rtt_ns >= 0) for one in told} == {("rst", "user", True)}
    assert sorted(one.flight.shot.seq for one in told) == list(range(10))


def test_a_silent_port_is_no_answer_and_is_given_up_at_the_horizon() -> None:
    with channel() as ours, full() as port:
        ours.send(flight(ours, HOME[4], port=port, horizon_ns=SECOND // 2))
        assert "02" in connections(port)  # SYN_SENT
        assert arrivals(ours, 1, longest_s=0.2) == []
        wish = ours.wake_at()
        assert wish is not None
        assert arrivals(ours, 1, longest_s=0.6) == []
        assert ours.wake_at() is None
        assert ours._dials == {}


def test_a_syn_that_had_to_be_sent_again_is_a_loss_even_when_it_is_answered() -> None:
    with channel() as ours, listener(backlog=0) as server, socket.socket() as first:
        port = server.getsockname()[1]
        first.connect((HOME[4], port))
        ours.send(flight(ours, HOME[4], port=port))
        while "02" not in connections(port):
            pass
        accepted, _ = server.accept()  # now there is room: the second SYN, a second later, is answered
        with accepted:
            assert arrivals(ours, 1, longest_s=2) == []
        assert ours._dials == {}


def test_a_refusal_of_the_second_syn_is_no_answer_to_the_first() -> None:
    with channel() as ours, listener(backlog=0) as server, socket.socket() as first:
        port = server.getsockname()[1]
        first.connect((HOME[4], port))
        ours.send(flight(ours, HOME[4], port=port))
        while "02" not in connections(port):
            pass
        server.close()  # now nobody listens: the second SYN, a second later, is refused
        assert arrivals(ours, 1, longest_s=2) == []
        assert ours._dials == {}


def test_a_probe_of_a_path_is_one_syn_and_given_up_before_the_kernel_sends_a_second() -> None:
    with channel() as ours, full() as port:
        ours.send(flight(ours, HOME[4], port=port))  # of a series, and waited for longer
        ours.send(flight(ours, HOME[4], seq=1, ttl=9, port=port))
        sent = ours._clock.now()
        assert len(ours._dials) == 2
        wish = ours.wake_at()
        assert wish is not None
        assert wish < sent + SECOND
        assert arrivals(ours, 1, longest_s=1.1) == []
        assert [dial.flight.shot.seq for dial in ours._dials.values()] == [0]


def test_nothing_half_open_and_no_time_wait_stays_behind() -> None:
    with channel() as ours, listener() as server:
        port = server.getsockname()[1]
        for seq in range(40):
            ours.send(flight(ours, HOME[4], seq=seq, port=port))
        assert len(arrivals(ours, 40)) == 40
        for _ in range(40):
            server.accept()[0].close()
        assert connections(port) == []
        ours.send(flight(ours, HOME[4], port=port))
    assert "02" not in connections(port)


def test_closing_the_channel_takes_probes_in_the_air_with_it() -> None:
    with full() as port:
        with channel() as ours:
            for seq in range(5):
                ours.send(flight(ours, HOME[4], seq=seq, port=port))
            in_the_air = connections(port).count("02")
        assert in_the_air == 6  # the one that filled the queue too
        assert connections(port).count("02") == 1


def test_probes_leave_from_the_source_with_the_ttl_that_was_given() -> None:
    with channel(source="127.0.0.6") as ours, listener() as server:
        ours.send(flight(ours, HOME[4], port=server.getsockname()[1], ttl=3, dscp=46))
        assert len(arrivals(ours, 1)) == 1
        conn, peer = server.accept()
        conn.close()
    assert peer[0] == "127.0.0.6"


@pytest.mark.parametrize(
    ("address", "source", "interface", "why"),
    [
        ("127.0.0.1", "192.0.2.1", None, "EADDRNOTAVAIL"),
        ("127.0.0.1", None, "nosuch0", "ENODEV|EPERM"),
        ("fe80::1%nosuch0", None, None, "not known"),
    ],
)
def test_what_cannot_be_sent_raises(address: str, source: str | None, interface: str | None, why: str) -> None:
    with channel(6 if ":" in address else 4, source=source, interface=interface) as ours:
        with pytest.raises(SendFailedError, match=why):
            ours.send(flight(ours, address, port=9))
        assert ours._dials == {}


def test_waiting_costs_nothing() -> None:
    with channel() as ours, full() as port:
        ours.send(flight(ours, HOME[4], port=port))
        started, busy = time.monotonic(), time.process_time()
        assert select.select([ours], [], [], 0.3)[0] == []
        assert time.process_time() - busy < (time.monotonic() - started) / 3
