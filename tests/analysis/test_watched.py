"""What a report says about each thing that is watched, and which events have one cause."""

import pytest
from msgspec.structs import replace

from history.made import START, finding, ping, report
from hopscope.analysis.alarm import Alarm, Change, Seen
from hopscope.analysis.watched import VANTAGE, Event, Watch, against, causes, seen
from hopscope.model.report import Finding, Report, Status, VantageReport

FAULT = finding(None, kind="vantage-fault", severity="unknown")


@pytest.mark.parametrize(
    ("status", "wanted"), [("ok", "good"), ("warning", "bad"), ("critical", "bad"), ("unknown", "missing")]
)
def test_a_status(status: Status, wanted: Seen) -> None:
    assert seen(report({"a": status, "b": "ok"}), Watch("a", "status")) == wanted
    assert seen(report({"a": status}), Watch("gone", "status")) == "missing"


def test_below_the_quorum_nothing_is_known_of_targets() -> None:
    made = report({"a": "critical"}, finding("a", severity="critical"), FAULT)
    assert seen(made, Watch("a", "status")) == "missing"
    held = replace(FAULT, severity="warning")
    assert seen(report({"a": "critical"}, finding("a", severity="critical"), held), Watch("a", "status")) == "bad"


@pytest.mark.parametrize(
    ("outcome", "wanted"),
    [("ok", "good"), ("degraded", "good"), ("vantage-failed", "bad"), ("skipped", "missing"), ("quota", "missing")],
)
def test_a_vantage(outcome: str, wanted: Seen) -> None:
    at = VantageReport(name="here", kind="ssh", site=None, outcome="ok", why=None)
    made = report({"a": "ok"}, vantages=(replace(at, outcome=outcome),))
    assert seen(made, Watch("here", VANTAGE)) == wanted
    assert seen(made, Watch("elsewhere", VANTAGE)) == "missing"


OVER = finding("a", kind="over-budget", metric="loss")


@pytest.mark.parametrize(
    ("made", "metric", "wanted"),
    [
        (report({"a": "ok"}), "loss", "good"),
        (report({"a": "warning"}, OVER), "loss", "bad"),
        (report({"a": "warning"}, OVER), "rtt_p95", "good"),
        (report({"a": "unknown"}), "loss", "missing"),
        (report({"a": "ok"}, pings=()), "loss", "missing"),
        (report({"a": "ok"}, pings=(ping("a", sent=0),)), "loss", "missing"),
        (report({"a": "ok"}, pings=(ping("a", lost=50),)), "loss", "missing"),
        (report({"a": "critical"}, pings=(ping("a", lost=50),)), "loss", "bad"),
        (report({"a": "ok"}), "ttfb_p95", "missing"),
        (report({"a": "ok"}), "tpot_p95", "missing"),
    ],
)
def test_a_metric(made: Report, metric: str, wanted: Seen) -> None:
    assert seen(made, Watch("a", metric)) == wanted


def test_what_stands_against_a_metric_is_about_it() -> None:
    made = report({"a": "warning"}, finding("a"), OVER, finding("b"))
    assert against(made, Watch("a", "loss")) == (OVER,)
    assert [one.kind for one in against(made, Watch("a", "status"))] == ["lossy-from", "over-budget"]
    assert against(made, Watch("here", VANTAGE)) == ()


def event(name: str, *findings: Finding, change: Change = "raise", metric: str = "status") -> Event:
    alarm = Alarm(since_ns=START)
    return Event(
        watch=Watch(name, metric), change=change, told=True, before=alarm, alarm=alarm, why="", findings=findings
    )


def names(*events: Event) -> list[str]:
    return sorted("".join(sorted(one.watch.target for one in group)) for group in causes(events))


def test_alarms_that_share_a_vantage_or_a_segment_have_one_cause() -> None:
    a, b = finding("a", vantages=("x",)), finding("b", vantages=("y",))
    assert names(event("a", a), event("b", b)) == ["a", "b"]
    assert names(event("a", a), event("b", replace(b, vantages=("x", "y")))) == ["ab"]
    one = finding("a", vantages=("x",), segment=("192.0.2.1", "192.0.2.2"))
    two = finding("b", vantages=("y",), segment=("192.0.2.1", "192.0.2.2"))
    assert names(event("a", one), event("b", two)) == ["ab"]
    bridge = finding("c", vantages=("x", "y"))
    assert names(event("a", a), event("b", b), event("c", bridge)) == ["abc"]
    assert names(event("a"), event("b")) == ["a", "b"]


def test_a_vantage_and_what_it_sees_have_one_cause_and_a_clear_is_told_apart() -> None:
    a = finding("a", vantages=("x",))
    assert names(event("x", metric=VANTAGE), event("a", a)) == ["ax"]
    assert names(event("a", a), event("b", change="clear"), event("c", change="clear")) == ["a", "bc"]
