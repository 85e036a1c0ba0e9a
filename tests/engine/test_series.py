"""A series stepped by hand: the exact instants of its probes, its flows, its end (method 2.1, 2.8, 2.10)."""

import pytest

from hopscope.engine.series import WARMUP_SEQ, Series
from hopscope.model.flight import Answer, Shot
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import PingTask
from hopscope.model.record import Extra, Probe

START = 1_000 * SECOND
THRESHOLD = 2 * SECOND


def task(count: int = 3, *, interval_ms: int = 200, warmup: bool = False, flows: int = 1, first: int = 0) -> PingTask:
    return PingTask(
        target="it", vantage="here", reason="asked", address="192.0.2.1", family=4, protocol="icmp", count=count,
        interval_ns=interval_ms * MS, threshold_ns=THRESHOLD, warmup=warmup, flows=flows, first_seq=first,
    )  # fmt: skip


def ran(series: Series, *, rtt_ms: float | None = None) -> list[Shot]:
    """Step a series to its end at exactly the instants it wishes, each probe answered at once or never."""
    shots: list[Shot] = []
    while (when := series.wake_at()) is not None:
        for shot in series.step(when):
            series.sent(shot, when)
            shots.append(shot)
            if rtt_ms is not None:
                series.answered(shot, Answer(kind="echo-reply", rtt_ns=int(rtt_ms * MS), clock="kernel"), when)
    return shots


def test_one_probe_an_interval() -> None:
    shots = ran(Series(1, task(3), START), rtt_ms=5)
    assert [(one.seq, one.slot - START, one.ttl, one.warmup) for one in shots] == [
        (0, 0, 0, False),
        (1, 200 * MS, 0, False),
        (2, 400 * MS, 0, False),
    ]


def test_the_warm_up_is_one_more_probe_ahead() -> None:
    shots = ran(Series(1, task(2, warmup=True), START), rtt_ms=5)
    assert [(one.seq, one.slot - START, one.warmup) for one in shots] == [
        (WARMUP_SEQ, 0, True),
        (0, 200 * MS, False),
        (1, 400 * MS, False),
    ]


@pytest.mark.parametrize(
    ("flows", "first", "expected"), [(1, 0, [0] * 5), (4, 0, [0, 1, 2, 3, 0]), (4, 50, [2, 3, 0, 1, 2])]
)
def test_flows_rotate_also_over_a_continuation(flows: int, first: int, expected: list[int]) -> None:
    shots = ran(Series(1, task(5, flows=flows, first=first), START), rtt_ms=5)
    assert [one.flow for one in shots] == expected
    assert [one.seq for one in shots] == list(range(first, first + 5))


def test_the_last_probe_is_given_its_whole_threshold() -> None:
    series = Series(1, task(2), START)
    assert series.wake_at() == START
    (first,) = series.step(START)
    series.sent(first, START + 7)
    assert series.wake_at() == START + 200 * MS
    (second,) = series.step(START + 200 * MS)
    series.sent(second, START + 200 * MS)
    assert series.wake_at() == START + 7 + THRESHOLD
    assert series.step(START + 7 + THRESHOLD) == []
    assert series.wake_at() == START + 200 * MS + THRESHOLD
    series.answered(second, Answer(kind="echo-reply", rtt_ns=1999 * MS, clock="kernel"), START)
    assert series.wake_at() is None
    assert [one.outcome for one in series.take() if isinstance(one, Probe)] == ["lost", "replied"]


def test_too_early_a_step_sends_nothing() -> None:
    series = Series(1, task(1), START)
    assert series.step(START - 1) == []
    assert len(series.step(START)) == 1
    assert series.step(START + SECOND) == []


def test_a_little_late_keeps_the_grid_and_much_too_late_makes_no_burst() -> None:
    series = Series(1, task(4), START)
    series.step(START + 50 * MS)
    assert series.wake_at() == START + 200 * MS
    (held_up,) = series.step(START + 900 * MS)
    assert held_up.slot == START + 200 * MS
    assert series.wake_at() == START + 900 * MS
    series.step(START + 900 * MS)
    assert series.wake_at() == START + 1100 * MS


def test_a_stopped_series_sends_no_more_and_hears_what_is_in_the_air() -> None:
    series = Series(1, task(5), START)
    (shot,) = series.step(START)
    series.sent(shot, START)
    series.stop()
    assert series.wake_at() == START + THRESHOLD
    assert series.step(START + SECOND) == []
    series.answered(shot, Answer(kind="echo-reply", rtt_ns=MS, clock="kernel"), START)
    assert series.wake_at() is None


def test_unsent_probes_end_a_series_too() -> None:
    series = Series(1, task(1), START)
    (shot,) = series.step(START)
    series.unsent(shot, START + 1, "ENETUNREACH")
    assert series.wake_at() is None
    assert series.take() == [Probe(task=1, seq=0, at=START + 1, outcome="unsent", why="ENETUNREACH")]


def test_strangers_are_noted() -> None:
    series = Series(1, task(1), START)
    (shot,) = series.step(START)
    series.strange(shot, Answer(kind="echo-reply", rtt_ns=3, clock="user", by="192.0.2.9"), START + 9)
    assert series.take() == [
        Extra(task=1, seq=0, at=START + 9, what="stranger", rtt_ns=3, clock="user", by="192.0.2.9")
    ]


def test_501_ms_at_one_a_second_lose_nothing() -> None:
    series = Series(1, task(8, interval_ms=1000), START)  # facts A3
    air: list[tuple[int, Shot]] = []
    while (when := series.wake_at()) is not None:
        if air and air[0][0] <= when:
            at, shot = air.pop(0)
            series.answered(shot, Answer(kind="echo-reply", rtt_ns=501 * MS, clock="kernel"), at)
            continue
        for shot in series.step(when):
            series.sent(shot, when)
            air.append((when + 501 * MS, shot))
    assert [one.outcome for one in series.take() if isinstance(one, Probe)] == ["replied"] * 8


def test_70000_probes_keep_every_count_beyond_16_bits() -> None:
    series = Series(1, task(70_000, interval_ms=1, flows=4), START)
    lost = 0
    while (when := series.wake_at()) is not None:
        for shot in series.step(when):
            series.sent(shot, when)
            if shot.seq % 7 == 3:
                lost += 1
            else:
                series.answered(shot, Answer(kind="echo-reply", rtt_ns=MS, clock="kernel"), when)
    probes = [one for one in series.take() if isinstance(one, Probe)]
    assert sorted(one.seq for one in probes) == list(range(70_000))
    assert sum(one.outcome == "lost" for one in probes) == lost == 10_000
    assert {one.flow for one in probes} == {0, 1, 2, 3}
