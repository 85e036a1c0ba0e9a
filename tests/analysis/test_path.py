"""Paths as tables: counts of each TTL in, witnesses, limits, segment and steps out (method 3.5, 4.1-4.4).

Losses come first in each row, so that only counts matter. The target answers at its own TTL and the one beyond.
"""

import pytest
from msgspec.structs import replace

from analysis.notation import ADDRESS, TRACE, book, losing, path_of, ping, router, times, trace
from hopscope.analysis.case import end_count, judged
from hopscope.analysis.judge import report
from hopscope.analysis.path import (
    NOTHING,
    Count,
    LossAlong,
    arrived,
    distance,
    doubtful,
    ended,
    excuses,
    loss_along,
    responder,
    shows_loss,
    steps,
)
from hopscope.analysis.views import Fated, paths, series
from hopscope.model.limits import MS, SECOND
from hopscope.model.record import Begin, Done, Probe, Record
from hopscope.model.report import TraceResult

Row = tuple[int, int]


def along(
    *rows: Row,
    end: int | None = None,
    extra: Count = NOTHING,
    other: Count = NOTHING,
    slow: dict[int, Row] | None = None,
) -> LossAlong:
    """(lost, sent) of TTL 1, 2, …; the last row is the target unless `end` says otherwise (0: it is never reached)."""
    last = len(rows) if end is None else end or None
    texts = {ttl: losing(*row) for ttl, row in enumerate(rows, start=1) if row[1]}
    records = [trace(texts, end=last)]
    for number, (ttl, row) in enumerate((slow or {}).items(), start=3):
        records.append(trace({ttl: losing(*row)}, number, end=last, confirm=ttl))
    return loss_along(path_of(*records), extra, other)


def segment(got: LossAlong) -> tuple[int, int] | None:
    if got.first_lossy is None:
        return None
    return 0 if got.last_clean is None else got.last_clean.ttl, got.first_lossy.ttl


CLEAN = (0, 100)
LOSSY = (12, 100)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # lost of sent at each TTL                                    segment, lossy, decided
        ([CLEAN, CLEAN, CLEAN, CLEAN], (None, False, False)),
        ([CLEAN, CLEAN, LOSSY, LOSSY], ((2, 3), True, True)),
        ([CLEAN, LOSSY, LOSSY, LOSSY], ((1, 2), True, True)),
        ([LOSSY, LOSSY, LOSSY, LOSSY], ((0, 1), True, True)),
        ([CLEAN, CLEAN, CLEAN, LOSSY], ((3, 4), True, True)),
        ([CLEAN, (100, 100), LOSSY, LOSSY], ((1, 3), True, True)),  # a silent hop widens the segment
        ([CLEAN, (0, 0), LOSSY, LOSSY], ((1, 3), True, True)),  # so does one never asked
        ([CLEAN, (60, 100), LOSSY, LOSSY], ((1, 3), True, True)),  # and one that limits its replies
        ([(60, 100), CLEAN, LOSSY, LOSSY], ((2, 3), True, True)),
        ([CLEAN, CLEAN, (60, 100), LOSSY], ((2, 4), True, True)),
        ([(30, 100), CLEAN, CLEAN, CLEAN], (None, False, False)),
        ([(100, 100), (100, 100), (100, 100), LOSSY], ((0, 4), True, True)),  # the end alone speaks
        ([(0, 9), (0, 9), (0, 9), (2, 9)], (None, False, False)),  # fewer than ten probes
        ([(0, 20), (0, 20), (2, 20), (2, 20)], (None, False, False)),  # 2 of 20 may be chance
        ([CLEAN, CLEAN, (1, 100), (1, 100)], (None, False, False)),
    ],
)
def test_where_loss_begins(rows: list[Row], expected: tuple[tuple[int, int] | None, bool, bool]) -> None:
    got = along(*rows)
    assert (segment(got), got.lossy, got.decided) == expected


def test_counts_of_the_target_and_the_ttl_beyond_are_pooled_with_the_series() -> None:
    got = along(CLEAN, LOSSY, (10, 100), end=2, extra=Count(3, 50))
    assert got.end == Count(25, 250)
    assert [(one.ttl, one.count, one.end) for one in got.witnesses] == [
        (1, Count(0, 100), False),
        (2, Count(25, 250), True),
    ]
    assert got.witnesses[1].address == ADDRESS


def test_a_target_that_the_path_never_reaches_is_a_witness_by_its_series() -> None:
    got = along(CLEAN, CLEAN, (100, 100), end=0, extra=Count(15, 100))
    assert segment(got) == (2, 4)
    assert got.end == Count(15, 100)
    silent = along(CLEAN, CLEAN, (100, 100), end=0)
    assert (silent.end, silent.lossy, len(silent.witnesses)) == (NOTHING, False, 2)


def test_the_p_of_a_segment_is_fishers_over_pooled_counts() -> None:
    got = along((0, 20), (0, 20), (5, 20), (5, 20))
    assert segment(got) == (2, 3)
    assert got.p == pytest.approx(5.148e-4, rel=1e-3)  # 10 of 40 against 0 of 40
    fewer = along((0, 20), (0, 20), (4, 20), (4, 20))
    assert (segment(fewer), fewer.p, fewer.decided) == (None, None, False)  # 8 of 40: p = 0.0027


@pytest.mark.parametrize(
    ("hop", "limited"),
    [((11, 100), True), ((9, 100), True), ((7, 100), False), ((0, 100), False), ((100, 100), False)],
)
def test_a_hop_that_loses_more_than_those_beyond_limits_its_replies(hop: Row, limited: bool) -> None:
    got = along(CLEAN, hop, (0, 100), end=3)
    assert [one.ttl for one in got.limited] == ([2] if limited else [])
    assert not got.lossy
    if limited:
        (one,) = got.limited
        assert (one.address, one.count, one.beyond, one.slow, one.cleared) == (
            router(2),
            Count(*hop),
            Count(0, 100),
            None,
            False,
        )
        assert one.p < 0.002


def test_a_hop_is_held_against_all_witnesses_beyond_it_pooled() -> None:
    got = along((12, 100), CLEAN, CLEAN, (0, 12))
    assert [(one.ttl, one.beyond) for one in got.limited] == [(1, Count(0, 212))]  # against 0 of 12 alone p is 0.24
    behind = along((12, 100), (60, 100), CLEAN, (0, 12))
    assert [(one.ttl, one.beyond) for one in behind.limited] == [(1, Count(0, 112)), (2, Count(0, 112))]


@pytest.mark.parametrize(
    ("hop", "slow", "expected", "cleared"),
    [
        # fast, slow                 segment; a hop asked below its limit testifies (4.3)
        ((60, 100), (0, 30), (2, 3), True),
        ((60, 100), (3, 30), (1, 2), True),  # it loses what those beyond lose: it lies behind the loss
        ((60, 100), (12, 30), (1, 3), False),  # still limited: it stays silent
        ((60, 100), (9, 30), (1, 3), False),  # p = 0.014 against 12 % beyond
        ((30, 100), (0, 30), (2, 3), True),
    ],
)
def test_a_limited_hop_asked_slowly(hop: Row, slow: Row, expected: tuple[int, int], cleared: bool) -> None:
    got = along(CLEAN, hop, LOSSY, LOSSY, slow={2: slow})
    assert segment(got) == expected
    assert [(one.ttl, one.slow, one.cleared) for one in got.limited] == [(2, Count(*slow), cleared)]


@pytest.mark.parametrize(
    ("slow", "expected", "limited"),
    [
        # Loss seems to begin at hop 2, 16 of 60, hardly more than beyond: asked slowly it says what it is (4.3).
        ((0, 30), (2, 3), [2]),
        ((5, 30), (1, 2), []),
    ],
)
def test_the_hop_where_loss_seems_to_begin_asked_slowly(
    slow: Row, expected: tuple[int, int], limited: list[int]
) -> None:
    fast = along(CLEAN, (16, 60), LOSSY, LOSSY)
    assert (segment(fast), doubtful(fast)) == ((1, 2), (2,))
    got = along(CLEAN, (16, 60), LOSSY, LOSSY, slow={2: slow})
    assert segment(got) == expected
    assert [one.ttl for one in got.limited] == limited
    assert doubtful(got) == ()


@pytest.mark.parametrize(
    ("fast", "limited"),
    [((16, 60), [2]), ((11, 60), [2]), ((10, 60), []), ((6, 60), [])],  # against 0 of 30: p = 0.0082, 0.0132
)
def test_a_hop_that_loses_less_when_asked_slowly_was_limited(fast: Row, limited: list[int]) -> None:
    got = along(CLEAN, fast, LOSSY, LOSSY, slow={2: (0, 30)})
    assert [one.ttl for one in got.limited] == limited
    assert [one.count for one in got.witnesses if one.ttl == 2] == [Count(0, 30) if limited else Count(fast[0], 90)]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([CLEAN, CLEAN, LOSSY, LOSSY], ()),
        ([CLEAN, (60, 100), LOSSY, LOSSY], (2,)),
        ([(60, 100), CLEAN, LOSSY, LOSSY], ()),  # before the segment: it hides nothing
        ([CLEAN, CLEAN, LOSSY, (60, 100), LOSSY], ()),  # behind it
        ([(60, 100), LOSSY, LOSSY, LOSSY], (1,)),
        ([CLEAN, (60, 100), (70, 100), LOSSY], (2, 3)),
        ([CLEAN, CLEAN, (20, 100), LOSSY], (3,)),  # it loses more than those beyond, though not shown
        ([(60, 100), CLEAN, CLEAN, CLEAN], ()),  # nothing is lost
    ],
)
def test_who_is_asked_again(rows: list[Row], expected: tuple[int, ...]) -> None:
    assert doubtful(along(*rows)) == expected


@pytest.mark.parametrize(
    ("seen", "shown"),
    [
        (Count(0, 0), False),
        (Count(0, 300), False),
        (Count(3, 9), False),  # from 10 probes on
        (Count(3, 10), True),
        (Count(2, 10), False),
        (Count(4, 50), True),  # P = 0.0016 against 1 %
        (Count(3, 50), False),  # P = 0.0138
        (Count(9, 300), False),
        (Count(10, 300), True),
    ],
)
def test_loss_is_shown_against_one_percent(seen: Count, shown: bool) -> None:
    assert shows_loss(seen) is shown


@pytest.mark.parametrize(
    ("other", "end", "excused"),
    [
        (Count(0, 50), Count(30, 100), True),
        (Count(0, 50), Count(5, 50), False),  # 5 of 50 against 0 of 50 may be chance: nobody is excused
        (Count(1, 300), Count(30, 100), True),
        (Count(10, 50), Count(90, 100), False),  # the other loses too
        (NOTHING, Count(30, 100), False),
    ],
)
def test_another_protocol_excuses_a_target(other: Count, end: Count, excused: bool) -> None:
    assert excuses(other, end) is excused


def test_a_target_that_limits_its_answers_is_not_lossy() -> None:
    got = along(CLEAN, CLEAN, (30, 100), other=Count(0, 50))
    assert (got.lossy, got.decided, got.excused, segment(got)) == (False, True, Count(0, 50), None)
    before = along(CLEAN, LOSSY, LOSSY, other=Count(0, 300))
    assert excuses(Count(0, 300), before.end)
    assert (before.lossy, before.excused, segment(before)) == (True, None, (1, 2))  # not the target's own


def test_counts() -> None:
    assert Count(1, 4) + Count(2, 6) == Count(3, 10)
    assert (Count(1, 4).ratio, NOTHING.ratio) == (0.25, None)


# How a path ends


def fated(kind: str, by: str | None = None, code: int | None = None) -> Fated:
    names = {"echo": "echo-reply", "ttl": "time-exceeded", "un": "unreachable", "syn": "syn-ack", "rst": "rst"}
    probe = Probe(task=1, seq=0, at=0, outcome="replied", rtt_ns=MS, clock="kernel", by=by, code=code)
    return Fated(replace(probe, kind=names[kind]), "replied")


@pytest.mark.parametrize(
    ("one", "family", "arrival", "end"),
    [
        # Method 3.4
        (fated("echo"), 4, True, True),
        (fated("syn"), 4, True, True),
        (fated("rst"), 6, True, True),
        (fated("ttl"), 4, False, False),  # transit even from the target's own address
        (fated("ttl", router(1)), 4, False, False),
        (fated("echo", router(1)), 4, False, False),
        *[(fated("un", None, code), 4, True, True) for code in (2, 3, 9, 10, 13)],
        *[(fated("un", None, code), 4, False, True) for code in (0, 1, 4, 5, 11, 12)],
        *[(fated("un", None, code), 6, True, True) for code in (1, 4)],
        *[(fated("un", None, code), 6, False, True) for code in (0, 2, 3)],
        (fated("un", router(1), 3), 4, False, True),  # a router's REJECT is no arrival
    ],
)
def test_arrival(one: Fated, family: int, arrival: bool, end: bool) -> None:
    assert (arrived(one, family), ended(one, family)) == (arrival, end)


@pytest.mark.parametrize(
    ("end", "rows", "expected"),
    [
        (3, {1: "1 1", 2: "1 1", 3: "1 1", 4: "1 1"}, 3),
        (None, {1: "1 1", 2: "1 1"}, None),
        (2, {1: "1 1", 2: ". ."}, None),
        (2, {1: "1 1", 2: ". .", 3: "1 ."}, 3),
        (2, {1: "1 1", 2: ". 1", 3: "1 1"}, 2),
        (3, {1: "1 1", 2: "1 1", 3: "r1 r1", 4: "r1 r1"}, 3),  # a closed port refuses
    ],
)
def test_distance(end: int | None, rows: dict[int, str], expected: int | None) -> None:
    assert distance(path_of(trace(rows, end=end))) == expected


@pytest.mark.parametrize(("transit", "arrivals", "expected"), [(3, 2, 3), (2, 2, 2), (1, 3, 2)])
def test_the_distance_is_where_most_answers_end_the_path(transit: int, arrivals: int, expected: int) -> None:
    first = trace({1: times(5, "1"), 2: times(transit, "1"), 3: times(5, "1")}, 2, end=3)
    then = trace({2: times(arrivals, "1")}, 3, end=2)
    assert distance(path_of(first, then)) == expected


def test_the_responder_is_who_answered_most() -> None:
    answers = [fated("ttl", router(1)), fated("ttl", router(2)), fated("ttl", router(2)), fated("echo")]
    assert responder(answers, ADDRESS) == router(2)
    assert responder([answers[3]], ADDRESS) == ADDRESS
    assert responder([], ADDRESS) is None


# Where the way gets longer


def way(*least_ms: float | None, jitter_ms: float = 0.0, number: int = 12) -> list[tuple[int, float, int]]:
    """Steps of a path with these least delays: TTL, step in ms, TTL before."""
    rows = {
        ttl: " ".join(str(least + (jitter_ms if i % 3 else 0.0)) for i in range(number))
        for ttl, least in enumerate(least_ms, start=1)
        if least is not None
    }
    return [(one.ttl, one.step_ns / MS, one.before_ttl) for one in steps(path_of(trace(rows, end=len(least_ms))))]


@pytest.mark.parametrize(
    ("least_ms", "expected"),
    [
        ((1, 2, 3, 4), []),
        ((1, 2, 3, 5.5), [(4, 2.5, 3)]),
        ((1, 2, 3, 5), []),  # not over 2 ms
        ((1, 2, 92, 93), [(3, 90.0, 2)]),
        ((1, 82, 3, 4), []),  # a busy control plane
        ((1, 2, 92, 3), []),
        ((1, 2, None, 92), [(4, 90.0, 2)]),  # over a silent hop
        ((1, 11, 100, 110), [(3, 89.0, 2)]),  # 10 ms are under a tenth of the end
        ((20, 21, 22, 23), [(1, 20.0, 0)]),
        ((1, 40, 41, 90), [(2, 39.0, 1), (4, 49.0, 3)]),
    ],
)
def test_steps(least_ms: tuple[float | None, ...], expected: list[tuple[int, float, int]]) -> None:
    assert way(*least_ms) == expected


def test_a_step_needs_ten_answers() -> None:
    assert way(1, 2, 92, 93, number=9) == []
    assert way(1, 2, 92, 93, number=10) == [(3, 90.0, 2)]


def test_a_step_is_over_three_times_the_spread_of_the_minima_over_thirds() -> None:
    rising = " ".join([*["4"] * 4, *["5"] * 4, *["6"] * 4])
    rows = {1: times(12, "1"), 2: rising.replace("4", "6.9").replace("5", "7.9").replace("6 ", "8.9 ")}
    assert [one.ttl for one in steps(path_of(trace(rows, end=2)))] == []
    calm = {1: times(12, "1"), 2: times(12, "6.9")}
    (one,) = steps(path_of(trace(calm, end=2)))
    assert (one.ttl, one.step_ns, one.needed_ns) == (2, 5_900_000, 2 * MS)


def test_answers_whose_delay_is_not_known_make_no_step_and_no_trouble() -> None:
    rows = trace({1: times(30, "1"), 2: times(30, "9")}, end=2)
    known = [replace(one, rtt_ns=None) if isinstance(one, Probe) and one.seq >= 10 else one for one in rows]
    assert [(one.ttl, one.step_ns) for one in steps(path_of(known))] == [(2, 8 * MS)]


# The case of a path


def test_the_series_of_the_same_flow_is_a_witness() -> None:
    task = replace(TRACE, flow=1)
    records: list[Record] = [*trace({1: "1 1", 2: "1 ."}, end=2), *ping("1 . 1 . 1 .")]
    view = replace(paths(book(records))[0], flow=1, who=paths(book([Begin(id=2, at=0, task=task)]))[0].who)
    (own,) = series(book(ping("1 . 1 . 1 .")))
    odd = [replace(one, probe=replace(one.probe, flow=one.probe.seq % 2)) for one in own.counted]
    assert end_count(view, (replace(own, fated=odd, counted=odd),)) == Count(3, 3)
    (tcp,) = series(book(ping("1 . 1", protocol="tcp", port=443)))
    assert end_count(view, (tcp,)) == Count(1, 3)
    assert end_count(view, ()) == NOTHING
    (silent,) = series(book(ping(". . .")))
    assert end_count(view, (silent, tcp)) == Count(1, 3)
    assert judged(view, (silent, tcp)).along.end == Count(2, 5)


def test_each_hop_asked_slowly_keeps_its_own_rate() -> None:
    rows = {1: times(100, "1"), 2: losing(60, 100), 3: losing(70, 100), 4: losing(12, 100)}
    slow = [
        trace({2: times(30, "1")}, 3, end=4, confirm=2, slow_s=2.5),
        trace({3: ". 1"}, 4, end=4, confirm=3, slow_s=5),
    ]
    view = path_of(trace(rows, 2, end=4), *slow)
    assert (view.interval_ns, view.slow_interval_ns) == (SECOND, {2: 2_500 * MS, 3: 5 * SECOND})
    (result,) = report(book(trace(rows, 2, end=4), *slow), tool_version="0").results
    assert isinstance(result, TraceResult)
    rates = [hop.evidence.get("slow_asked_per_s") for hop in result.hops]
    assert rates == [None, 0.4, 0.2, None]


def test_a_continued_path_is_one_path_in_order_of_sending() -> None:
    first = trace({1: "1 . 2"}, 2)
    more: list[Record] = [
        Begin(id=3, at=0, task=replace(TRACE, first_round=3)),
        Probe(task=3, seq=4, at=4 * SECOND, outcome="replied", ttl=1, rtt_ns=MS, kind="time-exceeded", by=router(1)),
        Probe(task=3, seq=3, at=3 * SECOND, outcome="lost", ttl=1),
        Probe(task=3, seq=-1, at=0, outcome="lost", ttl=1, warmup=True),
        Done(task=3, at=9),
    ]
    view = path_of(first, more)
    assert [(one.probe.seq, one.outcome) for one in view.rounds[1]] == [
        (0, "replied"),
        (1, "lost"),
        (2, "replied"),
        (3, "lost"),
        (4, "replied"),
    ]
    assert len(view.samples) == 2
