"""Several runs compared as one: samples pooled, limits of the last run, and what cannot be put together."""

import pytest
from msgspec.structs import replace

from analysis.comparing import HERE_AND_THERE, book, candidates, down, plan, reasons, standing, target, vantage
from analysis.notation import times
from hopscope.analysis import judge
from hopscope.analysis.pooling import Pooled, limited, narrowed, pooled, report
from hopscope.errors import UsageError
from hopscope.model.limits import SECOND
from hopscope.model.plan import Budget
from hopscope.model.report import PingResult, Report
from hopscope.model.sample import Book

FRA, AMS = ("fra", "here"), ("ams", "here")
HERE = vantage("here")
BOTH = plan([target("fra"), target("ams")], [HERE])


def compared(*books: Book) -> Report:
    return report(pooled(books), tool_version="0")


def test_samples_of_two_runs_are_pooled() -> None:
    first = book(BOTH, {FRA: times(30, "10"), AMS: times(30, "20")}, command="run")
    second = book(BOTH, {FRA: times(20, "12"), AMS: times(20, "20")}, at=100 * SECOND)
    got = compared(first, second)
    assert [(one.rtt.n, one.rtt.p50_ms, one.loss.sent) for one in candidates(got)[0].places] == [(50, 10.0, 50)]
    assert (got.command, got.partial, got.tool_version) == ("compare", False, "0")
    assert (got.started_at, got.finished_at) == ("1970-01-01T00:00:00.000000Z", "1970-01-01T00:01:41.000000Z")
    (fra, _) = [one for one in got.results if isinstance(one, PingResult)]
    numbers = sorted(sample.seq for sample in fra.samples)
    assert numbers == [*range(30), *range(31, 51)]  # a gap, so that no variation is taken across the runs
    assert fra.delay.ipdv_mean_ms == 0.0


def test_one_run_is_compared_as_it_would_have_been_at_once() -> None:
    found = {FRA: times(30, "10"), AMS: times(30, "20")}
    asked, run = book(BOTH, found), book(replace(BOTH, command="run"), found, command="run")
    at_once = judge.report(asked, tool_version="0")
    assert [standing(one) for one in (compared(asked), compared(run))] == [standing(at_once)] * 2
    assert replace(compared(asked), results=()) == replace(at_once, results=())
    assert candidates(compared(run)) == candidates(at_once)


def test_the_last_runs_limits_hold_and_that_is_said() -> None:
    strict = replace(BOTH, targets=(target("fra", Budget(rtt_p95_ms=5.0)), target("ams")))
    found = {FRA: times(50, "10"), AMS: times(50, "20")}
    said = "its limits differ between the runs: those of the last one hold"
    strict_last = book(BOTH, found), book(strict, found, at=SECOND)
    strict_first = book(strict, found), book(BOTH, found, at=SECOND)
    assert [each[:3] for each in standing(compared(*strict_last))] == [("ams", 1, "buy"), ("fra", 2, "avoid")]
    assert [each[:3] for each in standing(compared(*strict_first))] == [("fra", 1, "buy"), ("ams", 2, "buy")]
    for got in (compared(*strict_last), compared(*strict_first)):
        assert said in reasons(got, "fra")
        assert said not in reasons(got, "ams")


def test_the_last_run_is_the_youngest_in_whatever_order_they_are_given() -> None:
    strict = replace(BOTH, targets=(target("fra", Budget(rtt_p95_ms=5.0)), target("ams")))
    old = book(BOTH, {FRA: times(30, "10"), AMS: times(30, "20")})
    young = book(strict, {FRA: times(20, "12"), AMS: times(20, "20")}, at=100 * SECOND)
    assert pooled([young, old]) == pooled([old, young])
    assert [each[:3] for each in standing(compared(young, old))] == [("ams", 1, "buy"), ("fra", 2, "avoid")]


def test_a_target_of_some_runs_is_compared_over_the_places_it_has() -> None:
    wide = plan([target("fra")], HERE_AND_THERE)
    near = plan([target("ams")], [HERE])
    one = book(wide, {FRA: times(50, "10"), ("fra", "there"): times(50, "90")})
    other = book(near, {AMS: times(50, "20")}, at=SECOND)
    got = compared(one, other)
    assert standing(got) == [("ams", 1, "ask", 1.0), ("fra", 2, "avoid", 0.5)]
    assert [[place.vantage for place in each.places] for each in candidates(got)] == [["here"], ["here", "there"]]
    assert reasons(got, "ams")[0] == "not measured from there, where others were"
    assert "in 1 of 2 runs only, from here" in reasons(got, "ams")
    assert "in 1 of 2 runs only, from here and there" in reasons(got, "fra")
    assert {each.vantage for each in got.differences} == {"here"}


def test_a_place_that_failed_in_one_run_and_measured_in_another_has_not_failed() -> None:
    both = plan([target("fra"), target("ams")], HERE_AND_THERE)
    pairs = [(name, place) for name in ("fra", "ams") for place in ("here", "there")]
    whole = book(both, {pair: times(50, "10") for pair in pairs})
    half = book(both, {pair: times(50, "10") for pair in pairs if pair[1] == "here"}, down("there"), at=SECOND)
    got = compared(whole, half)
    assert [one.outcome for one in got.vantages] == ["ok", "ok"]
    assert got.verdict.findings == ()
    assert [(one.vantage, one.why) for one in got.failures] == [
        (None, "in one of the runs vantage there measured nothing: ssh: refused")
    ]
    assert [[(place.vantage, place.rtt.n) for place in one.places] for one in candidates(got)] == [
        [("here", 100), ("there", 50)]
    ] * 2
    alone = compared(half)
    assert [one.outcome for one in alone.vantages] == ["ok", "vantage-failed"]
    assert alone.verdict.summary.endswith("Left out for all alike: there (ssh: refused).")


def test_a_run_that_was_cut_makes_the_whole_partial() -> None:
    cut = book(BOTH, {FRA: times(30, "10"), AMS: times(30, "20")}, at=SECOND)
    cut.end = None
    assert compared(book(BOTH, {FRA: times(30, "10"), AMS: times(30, "20")}), cut).partial


def test_a_run_that_is_given_twice_is_refused() -> None:
    one = book(BOTH, {FRA: times(30, "10"), AMS: times(30, "20")})
    with pytest.raises(UsageError, match="one run is given twice"):
        pooled([one, book(BOTH, {FRA: times(30, "10"), AMS: times(30, "20")}, at=SECOND), one])


def test_a_name_that_stands_for_two_hosts_is_refused() -> None:
    moved = replace(BOTH, targets=(replace(target("fra"), host="198.51.100.1"), target("ams")))
    with pytest.raises(UsageError, match=r"fra is 203\.0\.113\.\d+ in one run and 198\.51\.100\.1 in another"):
        pooled([book(BOTH, {}), book(moved, {}, at=SECOND)])


def test_some_targets_and_places_of_a_run() -> None:
    both = plan([target("fra"), target("ams"), target("iad")], HERE_AND_THERE, quorum=2)
    pairs = [(name, place) for name in ("fra", "ams", "iad") for place in ("here", "there")]
    pool = pooled([book(both, {pair: times(50, "10") for pair in pairs}, down("there"))])
    got = report(narrowed(pool, only=("fra", "iad"), vantages=("here",)), tool_version="0")
    assert [one.target for one in candidates(got)] == ["fra", "iad"]
    assert [one.name for one in got.vantages] == ["here"]
    assert (got.verdict.status, got.failures) == ("ok", ())


@pytest.mark.parametrize(
    ("only", "vantages", "message"),
    [
        (("par",), (), "no target of these runs is named par"),
        ((), ("x", "here"), "no vantage of these runs is named x"),
    ],
)
def test_a_name_that_no_run_has(only: tuple[str, ...], vantages: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        narrowed(pooled([book(BOTH, {})]), only=only, vantages=vantages)


def test_another_budget_than_that_of_the_run() -> None:
    pool: Pooled = pooled([book(BOTH, {FRA: times(50, "10"), AMS: times(50, "20")})])
    got = report(limited(pool, "strict", Budget(rtt_p95_ms=15.0)), tool_version="0")
    assert [one[:3] for one in standing(got)] == [("fra", 1, "buy"), ("ams", 2, "avoid")]
