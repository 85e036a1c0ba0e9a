"""The probe thread, driven by engines and channels that implement the ports: order, ends, errors, and its own cost."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hopscope.engine.series import Series
from hopscope.model.flight import Answer, Shot
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import PingTask
from hopscope.model.record import Drop, Extra, Probe, Record, SelfCheck
from hopscope.net.icmp import IcmpChannel
from hopscope.net.ports import Arrival, Channel, DropSeen, Flight, Job, NoRightsError, Packet, SendFailedError
from hopscope.net.prober import FLUSH_NS, Prober
from net.probing import LONGEST_S, SteppingClock

SLACK_NS = 500 * MS
"""What a busy machine may add to anything that is to happen at once."""

Event = Arrival | DropSeen
Fate = Callable[[Flight], list[Event]]


class Wire:
    """A channel over a pipe: what it is told to answer is readable at once."""

    def __init__(self, clock: SteppingClock, fate: Fate) -> None:
        self._clock = clock
        self._fate = fate
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        self._events: list[Event] = []
        self.sent: list[Shot] = []
        self.reads = 0

    def fileno(self) -> int:
        return self._read

    def send(self, flight: Flight) -> int:
        at = self._clock.now()
        self._events += self._fate(flight)
        self.sent.append(flight.shot)
        os.write(self._write, b".")
        return at

    def receive(self) -> Iterator[Event]:
        self.reads += 1
        os.read(self._read, 4096)
        events, self._events = self._events, []
        yield from events

    def wake_at(self) -> int | None:
        return None

    def close(self) -> None:
        os.close(self._read)
        os.close(self._write)


class Heard:
    """What one job delivered, in order, with the time of each delivery."""

    def __init__(self, clock: SteppingClock) -> None:
        self._clock = clock
        self.records: list[Record] = []
        self.came: list[tuple[int, Record]] = []
        self.end: SelfCheck | Exception | None = None
        self.over = threading.Event()

    def __call__(self, records: list[Record], end: SelfCheck | Exception | None) -> None:
        self.records += records
        self.came += [(self._clock.now(), record) for record in records]
        if end is not None:
            assert not self.over.is_set()
            self.end = end
            self.over.set()

    def probes(self) -> list[Probe]:
        return [record for record in self.records if isinstance(record, Probe)]

    def check(self) -> SelfCheck:
        assert self.over.wait(LONGEST_S)
        assert isinstance(self.end, SelfCheck)
        return self.end


@contextmanager
def running(clock: SteppingClock) -> Iterator[Prober]:
    prober = Prober(clock)
    try:
        yield prober
    finally:
        prober.close()


def answering(kind: str = "echo-reply", *, clock: str = "kernel", asked: bool = True, times: int = 1) -> Fate:
    answer = Answer(kind=kind, rtt_ns=MS, clock=clock, by=None if asked else "192.0.2.9")  # type: ignore[arg-type]
    return lambda flight: [Arrival(flight, answer, asked)] * times


def silent(flight: Flight) -> list[Event]:
    return []


def task(*, count: int = 5, interval_ns: int = 5 * MS, threshold_ns: int = SECOND, warmup: bool = False) -> PingTask:
    return PingTask(
        target="t", vantage="here", reason="asked", address="192.0.2.1", family=4, protocol="icmp", count=count,
        interval_ns=interval_ns, threshold_ns=threshold_ns, warmup=warmup,
    )  # fmt: skip


def series(number: int, wanted: PingTask, channel: Channel, clock: SteppingClock) -> Job:
    packet = Packet(
        address=wanted.address, family=4, port=None, size=56, dscp=0, ttl=0, horizon_ns=wanted.threshold_ns + SECOND
    )
    return Job(number, Series(number, wanted, clock.now()), channel, packet)


def test_a_series_is_sent_in_order_heard_and_examined() -> None:
    clock = SteppingClock()
    wire, heard = Wire(clock, answering()), Heard(clock)
    with running(clock) as prober:
        prober.add(series(7, task(count=20, warmup=True), wire, clock), heard)
        check = heard.check()
    assert [shot.seq for shot in wire.sent] == list(range(-1, 20))
    assert [probe.seq for probe in heard.probes()] == list(range(-1, 20))
    assert {(probe.task, probe.outcome, probe.clock) for probe in heard.probes()} == {(7, "replied", "kernel")}
    starts = [probe.at for probe in heard.probes()]
    assert starts == sorted(starts)
    assert starts[-1] - starts[0] >= 20 * 5 * MS - SLACK_NS
    assert (check.drops, check.clock_step_ns, check.limited) == (0, 0, False)
    assert check.late_p99_ns is not None


def test_jobs_side_by_side_get_their_own_and_end_when_they_are_done() -> None:
    clock = SteppingClock()
    wire = Wire(clock, answering())
    heard = [Heard(clock) for _ in range(30)]
    with running(clock) as prober:
        for number, one in enumerate(heard):
            prober.add(series(number, task(count=1 + number % 3), wire, clock), one)
        for one in heard:
            one.check()
    assert [[probe.seq for probe in one.probes()] for one in heard] == [list(range(1 + n % 3)) for n in range(30)]
    assert [{probe.task for probe in one.probes()} for one in heard] == [{number} for number in range(30)]


def test_records_leave_within_the_flush_interval() -> None:
    clock = SteppingClock()
    wire, heard = Wire(clock, answering()), Heard(clock)
    with running(clock) as prober:
        prober.add(series(1, task(count=40), wire, clock), heard)
        heard.check()
    waited = sorted(came - record.at for came, record in heard.came if isinstance(record, Probe))
    assert len(waited) == 40
    assert waited[len(waited) // 2] < 2 * FLUSH_NS  # half of them at least; a busy machine may hold up the others
    assert waited[-1] < FLUSH_NS + SLACK_NS


def test_a_loss_is_told_at_its_threshold_not_at_the_end_of_a_round() -> None:
    clock = SteppingClock()
    wire, heard = Wire(clock, silent), Heard(clock)
    with running(clock) as prober:
        prober.add(series(1, task(count=3, interval_ns=100 * MS, threshold_ns=150 * MS), wire, clock), heard)
        heard.check()
    assert [probe.outcome for probe in heard.probes()] == ["lost"] * 3
    waited = [came - record.at for came, record in heard.came if isinstance(record, Probe)]
    assert all(150 * MS <= wait < 150 * MS + SLACK_NS for wait in waited)


def test_what_cannot_leave_is_unsent_and_the_series_goes_on() -> None:
    clock = SteppingClock()

    def fate(flight: Flight) -> list[Event]:
        if flight.shot.seq % 2:
            raise SendFailedError("EPERM: Operation not permitted")
        return answering()(flight)

    wire, heard = Wire(clock, fate), Heard(clock)
    with running(clock) as prober:
        prober.add(series(1, task(count=6), wire, clock), heard)
        heard.check()
    assert sorted((probe.seq, probe.outcome) for probe in heard.probes()) == [
        (0, "replied"), (1, "unsent"), (2, "replied"), (3, "unsent"), (4, "replied"), (5, "unsent"),
    ]  # fmt: skip
    assert {probe.why for probe in heard.probes() if probe.outcome == "unsent"} == {"EPERM: Operation not permitted"}


def test_second_replies_and_strangers_stand_outside_the_count() -> None:
    clock = SteppingClock()
    stranger = answering(asked=False)
    wire = Wire(clock, lambda flight: [*stranger(flight), *answering(times=2)(flight)])
    heard = Heard(clock)
    with running(clock) as prober:
        prober.add(series(1, task(count=2), wire, clock), heard)
        heard.check()
    assert [probe.outcome for probe in heard.probes()] == ["replied"] * 2
    extras = [(record.what, record.by) for record in heard.records if isinstance(record, Extra)]
    assert sorted(extras, key=str) == [("duplicate", None), ("duplicate", None)] + [("stranger", "192.0.2.9")] * 2


def test_a_task_that_is_dropped_ends_at_once_and_the_others_go_on() -> None:
    clock = SteppingClock()
    wire = Wire(clock, silent)
    long, short = Heard(clock), Heard(clock)
    with running(clock) as prober:
        prober.add(series(1, task(count=100_000, threshold_ns=60 * SECOND), wire, clock), long)
        prober.add(series(2, task(count=3, threshold_ns=200 * MS), wire, clock), short)
        short.check()
        assert not long.over.is_set()
        prober.drop(1)
        long.check()
    assert [probe.outcome for probe in short.probes()] == ["lost"] * 3
    assert long.probes() == []  # what is in the air stays unsettled


def test_drops_reach_every_task_of_the_channel_and_no_other() -> None:
    clock = SteppingClock()
    dropping = Wire(clock, lambda flight: [DropSeen(1, 2, 3), *answering()(flight)])
    clean = Wire(clock, answering())
    heard = [Heard(clock) for _ in range(3)]
    with running(clock) as prober:
        long = task(count=30)
        for number, (one, wire) in enumerate(zip(heard, (dropping, dropping, clean), strict=True)):
            prober.add(series(number, long, wire, clock), one)
        checks = [one.check() for one in heard]
    assert checks[0].drops >= 30 * 3
    assert checks[1].drops >= 30
    assert checks[2].drops == 0
    drops = {record for one in heard[:2] for record in one.records if isinstance(record, Drop)}
    assert {(drop.since, drop.until, drop.count) for drop in drops} == {(1, 2, 3)}
    assert not [record for record in heard[2].records if isinstance(record, Drop)]


def test_a_step_of_the_wall_clock_is_told_to_who_was_measuring() -> None:
    clock = SteppingClock()
    wire = Wire(clock, answering())
    before, during = Heard(clock), Heard(clock)
    with running(clock) as prober:
        prober.add(series(1, task(count=2), wire, clock), before)
        before.check()
        prober.add(series(2, task(count=60), wire, clock), during)
        while not during.probes():
            time.sleep(0.001)
        clock.stepped = -5 * SECOND
        check = during.check()
    assert before.check().clock_step_ns == 0
    assert 0.99 < check.clock_step_ns / (5 * SECOND) < 1.01
    assert len(during.probes()) == 60


@pytest.mark.parametrize(("kind", "clock_word", "by_user"), [("echo-reply", "user", True), ("rst", "user", False)])
def test_stamps_of_our_own_are_limited_by_how_late_we_wake_up(kind: str, clock_word: str, by_user: bool) -> None:
    clock = SteppingClock()
    wire, heard = Wire(clock, answering(kind, clock=clock_word)), Heard(clock)
    with running(clock) as prober:
        prober.add(series(1, task(count=10), wire, clock), heard)
        heard.check()
        prober._wake_late.extend([2 * MS] * 4096)
        late = Heard(clock)
        prober.add(series(2, task(count=10), wire, clock), late)
        assert late.check().limited is by_user


class Broken(Series):
    """A series whose second step is a bug of ours."""

    def step(self, now: int) -> list[Shot]:
        shots = super().step(now)
        if shots and shots[0].seq == 1:
            raise ZeroDivisionError("planted")
        return shots


class Slow(Series):
    """A series that holds the thread up with every step."""

    def step(self, now: int) -> list[Shot]:
        time.sleep(0.2)
        return super().step(now)


def test_a_reply_that_has_arrived_is_never_lost_however_late_the_thread_is() -> None:
    clock = SteppingClock()
    wire = Wire(clock, answering())
    slow, quick = Heard(clock), Heard(clock)
    with running(clock) as prober:
        wanted = task(count=4, interval_ns=10 * MS, threshold_ns=50 * MS)
        packet = series(1, wanted, wire, clock).packet
        prober.add(Job(1, Slow(1, wanted, clock.now()), wire, packet), slow)
        prober.add(series(2, wanted, wire, clock), quick)
        slow.check()
        quick.check()
    assert [probe.outcome for probe in slow.probes()] == ["replied"] * 4
    assert [probe.outcome for probe in quick.probes()] == ["replied"] * 4


def test_a_bug_in_an_engine_ends_its_job_and_no_other() -> None:
    clock = SteppingClock()
    wire = Wire(clock, answering())
    broken, well = Heard(clock), Heard(clock)
    with running(clock) as prober:
        job = series(1, task(count=50), wire, clock)
        prober.add(Job(1, Broken(1, task(count=50), clock.now()), wire, job.packet), broken)
        prober.add(series(2, task(count=50), wire, clock), well)
        assert broken.over.wait(LONGEST_S)
        well.check()
    assert isinstance(broken.end, ZeroDivisionError)
    assert [probe.outcome for probe in well.probes()] == ["replied"] * 50


def test_a_bug_in_a_channel_ends_its_jobs_and_the_thread_takes_new_ones() -> None:
    clock = SteppingClock()

    def breaking(flight: Flight) -> list[Event]:
        raise ValueError("planted")

    class Bad(Wire):
        def receive(self) -> Iterator[Event]:
            raise ValueError("planted")

    bad, good = Bad(clock, answering()), Wire(clock, answering())
    for wire in (bad, Wire(clock, breaking)):
        first, second = Heard(clock), Heard(clock)
        with running(clock) as prober:
            prober.add(series(1, task(), wire, clock), first)
            assert first.over.wait(LONGEST_S)
            prober.add(series(2, task(), good, clock), second)
            second.check()
        assert isinstance(first.end, ValueError)
        assert len(second.probes()) == 5


def test_an_idle_second_costs_next_to_nothing() -> None:
    clock = SteppingClock()
    wire, heard = Wire(clock, silent), Heard(clock)
    with running(clock) as prober:
        prober.add(series(1, task(count=2, interval_ns=900 * MS, threshold_ns=SECOND // 2), wire, clock), heard)
        started, busy = time.monotonic(), time.process_time()
        heard.check()
        share = (time.process_time() - busy) / (time.monotonic() - started)
    assert share < 0.3
    assert wire.reads <= 4


@pytest.mark.loopback
def test_the_error_queue_of_a_real_socket_never_makes_the_thread_spin() -> None:
    clock = SteppingClock()
    try:
        channel = IcmpChannel(clock, 4)
    except NoRightsError as error:
        pytest.skip(f"{error}: {error.advice}")
    heard = Heard(clock)
    wanted = PingTask(
        target="t", vantage="here", reason="asked", address="127.0.0.1", family=4, protocol="icmp", count=10,
        interval_ns=100 * MS, threshold_ns=SECOND,
    )  # fmt: skip
    packet = Packet(address="127.0.0.1", family=4, port=None, size=56, dscp=0, ttl=0, horizon_ns=2 * SECOND)
    with running(clock) as prober:
        prober.add(Job(1, Series(1, wanted, clock.now()), channel, packet), heard)
        started, busy = time.monotonic(), time.process_time()
        heard.check()
        share = (time.process_time() - busy) / (time.monotonic() - started)
    channel.close()
    assert share < 0.3
    assert [probe.outcome for probe in heard.probes()] == ["replied"] * 11


def test_closing_gives_back_thread_and_descriptors() -> None:
    clock = SteppingClock()
    before = set(Path("/proc/self/fd").iterdir())
    for _ in range(5):
        wire, heard = Wire(clock, answering()), Heard(clock)
        with running(clock) as prober:
            prober.add(series(1, task(count=1), wire, clock), heard)
            heard.check()
        wire.close()
    assert "probes" not in {thread.name for thread in threading.enumerate()}
    assert len(list(Path("/proc/self/fd").iterdir())) <= len(before) + 1
