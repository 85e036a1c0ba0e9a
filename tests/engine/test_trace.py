"""A trace stepped by hand: which TTLs at which instants, and how it learns where the end is (method 3.1, 3.4, 4.3)."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from hopscope.engine.trace import GAP_LIMIT, WARMUP_ROUND, Trace
from hopscope.model.flight import Answer, Shot
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import TraceTask
from hopscope.model.record import Extra, Probe, ReplyKind

START = 1_000 * SECOND
TASK = TraceTask(
    target="it", vantage="here", reason="asked", address="203.0.113.9", family=4, protocol="icmp", rounds=3,
    interval_ns=500 * MS, threshold_ns=2 * SECOND,
)  # fmt: skip

Says = Callable[[Shot], ReplyKind | None]


def path(distance: int, *silent: int) -> Says:
    """A target at a distance, all routers answering but those."""

    def says(shot: Shot) -> ReplyKind | None:
        if shot.ttl >= distance:
            return "echo-reply"
        return None if shot.ttl in silent else "time-exceeded"

    return says


def answer(kind: ReplyKind) -> Answer:
    by = "192.0.2.1" if kind == "time-exceeded" else None
    return Answer(kind=kind, rtt_ns=MS, clock="kernel", by=by)


def ran(trace: Trace, says: Says, *, until: int | None = None) -> list[tuple[int, int, int]]:
    """Step to the end; every probe is answered 1 ms later, or never. Gives (round, ttl, instant from start in ms)."""
    shots: list[tuple[int, int, int]] = []
    air: list[tuple[int, Shot, ReplyKind]] = []
    while (when := trace.wake_at()) is not None and (until is None or len(shots) < until):
        if air and air[0][0] <= when:
            at, shot, kind = air.pop(0)
            trace.answered(shot, answer(kind), at)
            continue
        for shot in trace.step(when):
            trace.sent(shot, when)
            shots.append((shot.seq, shot.ttl, (when - START) // MS))
            kind_or_none = says(shot)
            if kind_or_none is not None:
                air.append((when + MS, shot, kind_or_none))
    return shots


def rounds(shots: list[tuple[int, int, int]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for number, ttl, _ in shots:
        found.setdefault(number, []).append(ttl)
    return found


def test_the_warm_up_climbs_until_the_target_answers_then_rounds_ask_one_beyond() -> None:
    shots = ran(Trace(1, TASK, START), path(3))
    assert [(ttl, at) for number, ttl, at in shots if number == WARMUP_ROUND] == [(1, 0), (2, 10), (3, 20)]
    assert rounds(shots) == {WARMUP_ROUND: [1, 2, 3], 0: [1, 2, 3, 4], 1: [1, 2, 3, 4], 2: [1, 2, 3, 4]}
    assert {(number, at) for number, _, at in shots if number >= 0} == {(0, 500), (1, 1000), (2, 1500)}


def test_silent_hops_cost_no_wait() -> None:
    shots = ran(Trace(1, TASK, START), path(5, 2, 3))
    assert [(ttl, at) for number, ttl, at in shots if number == WARMUP_ROUND] == [
        (1, 0),
        (2, 10),
        (3, 20),
        (4, 30),
        (5, 40),
    ]
    assert rounds(shots)[2] == [1, 2, 3, 4, 5, 6]


def test_a_silent_target_is_looked_for_to_the_maximum_then_a_gap_beyond_the_last_answer() -> None:
    task = replace(TASK, max_ttl=12)
    shots = ran(Trace(1, task, START), path(99, *range(4, 99)))
    assert rounds(shots)[WARMUP_ROUND] == list(range(1, 13))
    assert rounds(shots)[0] == list(range(1, 3 + GAP_LIMIT + 1))
    assert {at for number, _, at in shots if number == 0} == {500}


def test_nobody_answers_at_all() -> None:
    task = replace(TASK, max_ttl=30, rounds=1)
    shots = ran(Trace(1, task, START), lambda _: None)
    assert rounds(shots) == {WARMUP_ROUND: list(range(1, 31)), 0: [1, 2, 3, 4, 5]}


def test_the_maximum_bounds_every_round() -> None:
    task = replace(TASK, max_ttl=3, first_ttl=2)
    assert rounds(ran(Trace(1, task, START), path(9))) == {WARMUP_ROUND: [2, 3], 0: [2, 3], 1: [2, 3], 2: [2, 3]}


def test_a_warm_up_longer_than_an_interval_delays_the_first_round() -> None:
    task = replace(TASK, interval_ns=50 * MS, max_ttl=8, rounds=2)
    shots = ran(Trace(1, task, START), lambda _: None)
    assert sorted({at for number, _, at in shots if number >= 0}) == [80, 130]


def test_the_end_is_the_lowest_ttl_that_arrived_whichever_answer_comes_first() -> None:
    trace = Trace(1, replace(TASK, distance=9), START)
    shots = trace.step(START)
    for ttl in (9, 7, 5, 6, 8):
        trace.answered(shots[ttl - 1], answer("echo-reply"), START)
    assert [one.ttl for one in trace.step(START + 500 * MS)] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("kind", ["echo-reply", "syn-ack", "rst", "unreachable"])
def test_what_ends_a_path(kind: ReplyKind) -> None:
    trace = Trace(1, TASK, START)
    (first,) = trace.step(START)
    trace.answered(first, answer(kind), START)
    assert trace.step(START + 10 * MS) == []
    assert [one.ttl for one in trace.step(START + 500 * MS)] == [1, 2]


def test_time_exceeded_never_ends_a_path_even_from_the_target() -> None:
    trace = Trace(1, TASK, START)
    (first,) = trace.step(START)
    trace.answered(first, Answer(kind="time-exceeded", rtt_ns=MS, clock="kernel"), START)
    assert [one.ttl for one in trace.step(START + 10 * MS)] == [2]


def test_a_path_that_grows_is_looked_for_again_and_one_that_shrinks_is_followed() -> None:
    far = False

    def says(shot: Shot) -> ReplyKind | None:
        return path(5 if far else 3)(shot)

    trace = Trace(1, replace(TASK, rounds=7, max_ttl=10), START)
    ran(trace, says, until=7)  # the warm-up and the first round
    far = True
    grown = rounds(ran(trace, says, until=24))
    assert grown[1] == [1, 2, 3, 4]
    assert grown[2] == list(range(1, 11))
    assert grown[3] == [1, 2, 3, 4, 5, 6]
    far = False
    shrunk = rounds(ran(trace, says))
    assert (shrunk[5], shrunk[6]) == ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4])


def test_a_continuation_knows_the_distance_and_numbers_its_rounds_on() -> None:
    task = replace(TASK, distance=2, first_round=20, rounds=2)
    assert rounds(ran(Trace(1, task, START), path(2))) == {20: [1, 2, 3], 21: [1, 2, 3]}


def test_a_confirmation_asks_one_ttl_alone_without_a_warm_up() -> None:
    task = replace(TASK, confirm=4, rounds=30, interval_ns=2 * SECOND)
    shots = ran(Trace(1, task, START), path(9))
    assert {ttl for _, ttl, _ in shots} == {4}
    assert [at for _, _, at in shots] == [2000 * i for i in range(30)]


def test_a_round_that_is_over_settles_no_probe() -> None:
    trace = Trace(1, replace(TASK, distance=1, rounds=2), START)
    first = trace.step(START)
    for shot in first:
        trace.sent(shot, START)
    for shot in trace.step(START + 500 * MS):
        trace.sent(shot, START + 500 * MS)
    assert trace.take() == []
    trace.answered(first[0], Answer(kind="echo-reply", rtt_ns=900 * MS, clock="kernel"), START + 900 * MS)
    (probe,) = trace.take()
    assert isinstance(probe, Probe)
    assert (probe.seq, probe.ttl, probe.outcome) == (0, 1, "replied")
    assert trace.wake_at() == START + 2 * SECOND
    trace.step(START + 2 * SECOND)
    assert trace.wake_at() == START + 2500 * MS
    trace.step(START + 2500 * MS)
    assert trace.wake_at() is None
    assert [one.outcome for one in trace.take() if isinstance(one, Probe)] == ["lost"] * 3


def test_held_up_for_more_than_an_interval_rounds_go_on_from_now() -> None:
    trace = Trace(1, replace(TASK, distance=1), START)
    trace.step(START + 400 * MS)
    assert trace.wake_at() == START + 500 * MS
    trace.step(START + 3 * SECOND)
    assert trace.wake_at() == START + 3 * SECOND


def test_stop_unsent_and_strange() -> None:
    trace = Trace(1, replace(TASK, distance=1), START)
    one, two = trace.step(START)
    trace.unsent(one, START, "EPERM")
    trace.strange(two, Answer(kind="echo-reply", rtt_ns=3, clock="user", by="192.0.2.9"), START + 9)
    trace.stop()
    assert trace.wake_at() is None
    assert trace.take() == [
        Probe(task=1, seq=0, at=START, outcome="unsent", ttl=1, why="EPERM"),
        Extra(task=1, seq=0, at=START + 9, what="stranger", ttl=2, rtt_ns=3, clock="user", by="192.0.2.9"),
    ]
