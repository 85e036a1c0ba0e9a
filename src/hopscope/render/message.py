"""Events of alarms → the message that people get: what is wrong or well again, since when, where, what to do next.

The rule: at most LINES lines whatever happened, alarms of one cause under one head, and every name clean.
"""

from collections.abc import Iterator, Sequence
from shlex import quote

from hopscope.analysis.alarm import FLAPPING, LETTERS, Change
from hopscope.analysis.instants import iso
from hopscope.analysis.say import count
from hopscope.analysis.watched import STATUS, VANTAGE, Event, causes
from hopscope.model.report import Finding, Report
from hopscope.render import words

LINES = 20
WIDTH = 300
HEADS: dict[Change, str] = {"raise": "RAISED", "clear": "CLEARED", "flapping": "FLAPPING"}
SECOND_NS = 1_000_000_000
UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


def message(events: Sequence[Event], report: Report, run: str, store: str | None = None) -> str:
    """What is to be told of a run; empty where there is nothing. `store` is named where it is not the usual one."""
    groups = causes([event for event in events if event.told])
    lines = [line for group in groups for line in _group(group, report)]
    if not lines:
        return ""
    history = "hopscope history events" + ("" if store is None else f" --store {quote(words.clean(store, WIDTH))}")
    last = f"Run {run}; `{history}` lists what came before."
    if len(lines) >= LINES:
        left = len(lines) - (LINES - 2)
        lines = [*lines[: LINES - 2], f"… and {count(left, 'line')} more."]
    return "".join(f"{line}\n" for line in (*lines, last))


def sentence(event: Event) -> str:
    """One event in one line, as the store keeps it."""
    return f"{HEADS[event.change]} {_who(event)}: {_how(event)}. {words.clean(event.why, WIDTH)}"


def steady(report: Report) -> str:
    """What `--always` says when nothing changed."""
    return f"{report.verdict.status}, unchanged: {words.clean(report.verdict.summary, WIDTH)}\n"


def _group(group: Sequence[Event], report: Report) -> Iterator[str]:
    """The lines of events that have one cause."""
    if len(group) > 1:
        yield f"{count(len(group), 'alarm')} with one cause{_cause(group)}:"
    for event in group:
        yield f"{HEADS[event.change]} {_who(event)}: {_how(event)}"
        yield f"  {words.clean(event.why, WIDTH)}"
    if group[0].change == "clear":
        return
    told = _telling([one for event in group for one in event.findings])
    if told is None:
        return
    if place := words.place(told):
        yield f"  where: {words.clean(place, WIDTH)}; {words.owner(told.owner)}"
    if told.next_step:
        yield f"  next: {words.clean(told.next_step, WIDTH)}"
    if report.partial:
        yield "  The run was cut short: what is here is what it had found by then."


def _telling(findings: Sequence[Finding]) -> Finding | None:
    """The finding that says where and what next: the worst; where that is a missed budget, what explains it."""
    worst = next(iter(findings), None)
    if worst is None or worst.kind != "over-budget":
        return worst
    return next((one for one in findings if one.kind != "over-budget" and one.segment is not None), worst)


def _cause(group: Sequence[Event]) -> str:
    """What the events share: the segment where all name one, else the vantages that saw them."""
    if group[0].change == "clear":
        return ""
    findings = [one for event in group for one in event.findings]
    segments = {words.place(one) for one in findings if one.segment is not None}
    if len(segments) == 1 and all(any(one.segment for one in event.findings) for event in group):
        return f", {segments.pop()}"
    places = sorted({vantage for one in findings for vantage in one.vantages})
    return f", seen from {', '.join(words.clean(place) for place in places)}" if places else ""


def _who(event: Event) -> str:
    """The target, with the metric where it is not its status; or the vantage."""
    name = words.clean(event.watch.target)
    match event.watch.metric:
        case "status":
            return name
        case "vantage":
            return f"vantage {name}"
        case metric:
            return f"{name} {metric}"


def _how(event: Event) -> str:
    """What the alarm saw, and for how long."""
    rule = event.watch.rule
    if event.change != "flapping" and event.before.fires == event.alarm.fires:  # told late: after a maintenance, say
        return f"{'bad' if event.alarm.fires else 'well'} since {_second(event.alarm.since_ns)}"
    match event.change:
        case "raise":
            recent = event.alarm.recent[-rule.of_runs :]
            bad = f"bad in {recent.count(LETTERS['bad'])} of the last {count(len(recent), 'run')}"
            return f"{bad}, since {_second(event.alarm.since_ns)}"
        case "clear":
            lasted = _span(event.alarm.since_ns - event.before.since_ns)
            return f"well in {count(rule.clear, 'run')}; was bad from {_second(event.before.since_ns)} for {lasted}"
        case "flapping":
            return f"raised {FLAPPING} times, each within a day of the last; silent until it has been steady for a day"


def _second(at_ns: int) -> str:
    """An instant to the second."""
    return f"{iso(at_ns)[:19]}Z"


def _span(span_ns: int) -> str:
    """A span in its largest unit that is whole enough: 25 minutes, 3 hours."""
    seconds = max(span_ns, 0) / SECOND_NS
    unit, size = next(((unit, size) for unit, size in UNITS if seconds >= 2 * size), UNITS[-1])
    return count(round(seconds / size), unit)


def reason(report: Report, findings: Sequence[Finding], name: str, metric: str) -> str:
    """Why an alarm is as it is: the worst finding against it, else what the report says of its target."""
    if findings:
        return findings[0].why
    if metric == VANTAGE:
        return next((one.why for one in report.vantages if one.name == name and one.why), "it measures again")
    summary = next((one.summary for one in report.targets if one.name == name), "unknown")
    return summary if metric == STATUS else f"{metric} is within its budget; {summary}"
