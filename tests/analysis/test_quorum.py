"""Below the quorum: a target is neither down nor ok, whatever the places that are left have seen, and results stay."""

import pytest
from msgspec.structs import replace

from analysis.notation import ADDRESS, book, ping, plan, target, times
from hopscope.analysis.judge import report
from hopscope.model.plan import Vantage
from hopscope.model.record import Failure, Record
from hopscope.model.report import Report

PLACES = tuple(Vantage(name=name, kind="local") for name in ("here", "there", "elsewhere"))
CLEAN = ping(times(50, "3"), 1)
DEAD = ping(times(20, "."), 1)
TOLD = "Unknown: 1 of 3 places could measure, the quorum is 2: no target is called down or ok. "


def judged(series: list[Record], *failed: str, quorum: int = 2) -> Report:
    down = [Failure(kind="vantage", why="no route", vantage=name) for name in failed]
    return report(book(series, [*down], what=replace(plan(target()), vantages=PLACES, quorum=quorum)), tool_version="0")


@pytest.mark.parametrize(("series", "status"), [(CLEAN, "ok"), (DEAD, "critical")])
def test_from_the_quorum_on_the_target_is_what_was_seen_of_it(series: list[Record], status: str) -> None:
    got = judged(series, "elsewhere")
    assert got.targets[0].status == status
    assert {one.severity for one in got.verdict.findings if one.kind == "vantage-fault"} == {"warning"}
    assert "quorum" not in got.verdict.summary


@pytest.mark.parametrize(
    ("series", "seen"),
    [
        (CLEAN, "round trip 3"),
        (DEAD, f"nothing came back from {ADDRESS}"),
    ],
)
def test_below_it_the_target_is_unknown_and_what_was_seen_is_told(series: list[Record], seen: str) -> None:
    got = judged(series, "there", "elsewhere")
    assert (got.verdict.status, got.targets[0].status) == ("unknown", "unknown")
    assert got.targets[0].summary.startswith(f"neither down nor ok, for too few places could measure: {seen}")
    assert {one.severity for one in got.verdict.findings} == {"unknown"}
    assert got.verdict.summary.startswith(TOLD)
    assert [result.vantage for result in got.measured] == ["here"]


def test_where_no_place_measured_that_is_enough_to_say() -> None:
    got = judged([], "here", "there", "elsewhere")
    assert got.targets[0].summary == "it was not measured: no place could measure"
    assert got.verdict.summary.startswith("Vantage: vantage here measured nothing: no route")
