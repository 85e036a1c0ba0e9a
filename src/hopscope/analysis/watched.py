"""Report → good, bad or missing for each thing that an alarm watches; and which alarms of a run have one cause.

Absolute: held against budgets and findings of this run alone. Only what a target did speaks about the target: below
the quorum of vantages everything is missing (method 6.2).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from hopscope.analysis import quorum
from hopscope.analysis.alarm import Alarm, Change, Rule, Seen
from hopscope.model.report import Finding, HttpResult, PingResult, Report

STATUS: Final = "status"
VANTAGE: Final = "vantage"
SERIES_METRICS: Final = frozenset({"loss", "pdv_p95", "rtt_p50", "rtt_p95"})
REQUEST_METRICS: Final = frozenset({"connect_p95", "server_p95", "tls_p95", "ttfb_p95"})


class Watch(Struct, frozen=True):
    """One thing that is watched: a metric of a target, or, with the metric VANTAGE, whether that place measures."""

    target: str
    metric: str
    rule: Rule = Rule()

    @property
    def key(self) -> tuple[str, str]:
        """What it is known by."""
        return (self.target, self.metric)


class Event(Struct, frozen=True, kw_only=True):
    """A change of one alarm: what it became, why, and where that was seen. `before` is the alarm ahead of this run."""

    watch: Watch
    change: Change
    told: bool
    before: Alarm
    alarm: Alarm
    why: str
    findings: tuple[Finding, ...] = ()


def seen(report: Report, watch: Watch) -> Seen:
    """What a run says about one thing that is watched."""
    if watch.metric == VANTAGE:
        return _of_vantage(report, watch.target)
    status = next((one.status for one in report.targets if one.name == watch.target), "unknown")
    if status == "unknown" or quorum.is_missed(report.verdict.findings):
        return "missing"
    if watch.metric == STATUS:
        return "good" if status == "ok" else "bad"
    if any(one.evidence.get("metric") == watch.metric for one in against(report, watch)):
        return "bad"
    if watch.metric in SERIES_METRICS:
        return _of_series(report, watch.target, answering=status != "critical")
    if watch.metric in REQUEST_METRICS and any(result.requests for result in _requests(report, watch.target)):
        return "good"
    return "missing"


def against(report: Report, watch: Watch) -> tuple[Finding, ...]:
    """What was found against a thing that is watched, the worst first."""
    if watch.metric == VANTAGE:
        return tuple(one for one in report.verdict.findings if one.target is None and watch.target in one.vantages)
    mine = [one for one in report.verdict.findings if one.target == watch.target and one.severity != "info"]
    about = [one for one in mine if one.evidence.get("metric") == watch.metric]
    return tuple(about if watch.metric != STATUS and about else mine)


def causes(events: Sequence[Event]) -> list[tuple[Event, ...]]:
    """The events in groups that are told as one: raised with a vantage or a segment in common, or cleared."""
    groups: list[tuple[set[object], list[Event]]] = []
    for event in events:
        marks = _marks(event)
        alike = [group for group in groups if group[0] & marks]
        merged = [one for _, members in alike for one in members]
        groups = [group for group in groups if group not in alike]
        groups.append((marks.union(*(group[0] for group in alike)), [*merged, event]))
    return [tuple(members) for _, members in groups]


def _marks(event: Event) -> set[object]:
    """What an event can share with another of its kind."""
    if event.change == "clear":
        return {"clear"}
    places = {event.watch.target} if event.watch.metric == VANTAGE else set()
    places |= {vantage for one in event.findings for vantage in one.vantages}
    segments = {(one.segment.from_.address, one.segment.to.address) for one in event.findings if one.segment}
    own: set[object] = {event.watch.key}
    return own | {("vantage", place) for place in places} | {("segment", segment) for segment in segments}


def _of_vantage(report: Report, name: str) -> Seen:
    outcome = next((one.outcome for one in report.vantages if one.name == name), "skipped")
    if outcome in {"skipped", "quota"}:
        return "missing"
    return "bad" if outcome == "vantage-failed" else "good"


def _of_series(report: Report, target: str, *, answering: bool) -> Seen:
    """Of series without a finding: good if one was answered; if none was, as bad as can be where all else fails too."""
    series = [one for one in report.results if isinstance(one, PingResult) and one.target == target and one.loss.sent]
    if not series:
        return "missing"
    if any(one.loss.received for one in series):
        return "good"
    return "missing" if answering else "bad"


def _requests(report: Report, target: str) -> Iterator[HttpResult]:
    return (one for one in report.results if isinstance(one, HttpResult) and one.target == target)
