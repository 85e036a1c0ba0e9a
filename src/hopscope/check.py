"""One check: load the past → measure → see how each alarm moves → record → say what changed, or nothing.

The lock is held from before the first packet until the run is recorded. What was measured is recorded or the run is a
failure (method 7.3); then no alarm moves and nothing is told of any. Measuring and the clock are given.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict, replace

from hopscope.analysis import quorum
from hopscope.analysis.alarm import LETTERS, Alarm, Rule, step
from hopscope.analysis.watched import STATUS, VANTAGE, Event, Watch, against, seen
from hopscope.errors import StoreError
from hopscope.history import lock, store
from hopscope.history.entries import Entry, Happened
from hopscope.history.place import default
from hopscope.model.plan import Plan, Target
from hopscope.model.report import FailureReport, Finding, Owner, Report
from hopscope.render import message as telling
from hopscope.targets.contents import Maintenance, TargetFile

Measure = Callable[[Plan], Report]
Clock = Callable[[], int]
Key = tuple[str, str]

FAILED = frozenset({"dns", "refused", "timeout", "unreachable", "prohibited", "tls", "http"})
SECOND = 1_000_000_000


class Checked(Struct, frozen=True, kw_only=True):
    """A check: its report, what happened to alarms, the message (empty while nothing changed), and what went wrong."""

    report: Report
    events: tuple[Event, ...] = ()
    message: str = ""
    trouble: StoreError | None = None


class Due(Struct, frozen=True, kw_only=True):
    """Which run this is: its id, the slot it belongs to, and the file it comes from."""

    id: str
    slot_ns: int
    config: str


def due(file: TargetFile, now_ns: int, token: str) -> Due:
    """The run of now. Without an interval every start is a slot of its own; `token` tells apart what time cannot."""
    interval = file.interval_ns
    at = datetime.fromtimestamp(now_ns // SECOND, UTC)
    return Due(
        id=f"{at:%Y%m%dT%H%M%S}.{now_ns % SECOND // 1_000_000:03d}Z-{token}",
        slot_ns=now_ns if interval is None else now_ns // interval * interval,
        config=str(Path(file.file).absolute()),
    )


def splay_ns(file: TargetFile, host: str) -> int:
    """How long to wait before the check: the same each time on one host, and different on another."""
    if file.interval_ns is None or not file.splay_ns:
        return 0
    digest = sha256(f"{host}\0{Path(file.file).absolute()}".encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8], "big") % file.splay_ns


def check(file: TargetFile, plan: Plan, due: Due, place: Path, *, measure: Measure, clock: Clock) -> Checked:
    """Check once, against the store at `place`. Raises LockedError, and StoreError before anything was measured."""
    with lock.locked(place):
        store.prepare(place)
        from hopscope.history import query, write

        watches = watched(file, plan)
        before = query.alarms(place, due.config)
        earlier = query.starts(place, due.config, max(watch.rule.of_runs for watch in watches))
        started = clock()
        report = measure(plan)
        finished = clock()
        report = replace(report, failures=(*report.failures, *_unwatchable(file, plan)))
        starts = (started, *earlier)
        alarms, events = moved(report, watches, before, finished, starts=starts, windows=file.maintenance)
        entry = Entry(
            id=due.id,
            config=due.config,
            slot_ns=due.slot_ns,
            started_ns=started,
            finished_ns=finished,
            outcome=outcome(report),
            report=report,
        )
        try:
            write.record(place, entry, alarms | _kept(file, before, watches), _happened(events))
        except StoreError as error:
            return Checked(report=_unrecorded(report, error), trouble=error)
    elsewhere = None if place == default(os.environ) else str(place)
    return Checked(report=report, events=tuple(events), message=telling.message(events, report, due.id, elsewhere))


def _happened(events: Sequence[Event]) -> list[Happened]:
    """Events as the store keeps them."""
    return [
        Happened(
            target=event.watch.target,
            metric=event.watch.metric,
            kind=event.change,
            message=telling.sentence(event),
            told=event.told,
        )
        for event in events
    ]


def watched(file: TargetFile, plan: Plan) -> list[Watch]:
    """Everything that can alarm: each target's status, the metrics of `[[alarm]]`, and each vantage."""
    watches = [Watch(vantage.name, VANTAGE) for vantage in plan.vantages]
    for target in plan.targets:
        rules = {STATUS: Rule()} | _rules(file, target)
        watches += [Watch(target.name, metric, rule) for metric, rule in rules.items() if _has(target, metric)]
    return watches


def _rules(file: TargetFile, target: Target) -> dict[str, Rule]:
    """The rule of each metric; one that names the target outdoes one for all."""
    named = sorted(file.alarms, key=lambda alarm: alarm.target is not None)
    return {
        alarm.metric: Rule(raise_runs=alarm.raise_runs, of_runs=alarm.of_runs, clear=alarm.clear)
        for alarm in named
        if alarm.target in {None, target.name}
    }


def _has(target: Target, metric: str) -> bool:
    """Whether there is anything to hold a metric against."""
    limits = asdict(target.budget), asdict(target.critical)
    return metric == STATUS or any((one.get(f"{metric}_ms"), one.get(metric)) != (None, None) for one in limits)


def _unwatchable(file: TargetFile, plan: Plan) -> list[FailureReport]:
    """Alarms of the file on what has no limit: said, never silently ignored."""
    return [
        FailureReport(
            kind="skipped",
            target=target.name,
            vantage=None,
            why=f"the alarm on {metric} watches nothing: {target.name} has no budget for it",
            advice=f"give the target budget = {{ {metric} = … }}, or name another target or metric in [[alarm]]",
        )
        for target in plan.targets
        for metric in _rules(file, target)
        if not _has(target, metric)
    ]


def _kept(file: TargetFile, before: Mapping[Key, Alarm], watches: Sequence[Watch]) -> dict[Key, Alarm]:
    """Alarms that this run did not ask about though the file still names what they watch."""
    asked = {watch.key for watch in watches}
    names = {target.name for target in file.targets} - {watch.target for watch in watches if watch.metric == STATUS}
    return {key: alarm for key, alarm in before.items() if key not in asked and key[0] in names and key[1] != VANTAGE}


def moved(
    report: Report,
    watches: Sequence[Watch],
    before: Mapping[Key, Alarm],
    now_ns: int,
    *,
    starts: Sequence[int],
    windows: Sequence[Maintenance],
) -> tuple[dict[Key, Alarm], list[Event]]:
    """Every alarm after this run, and what happened to it; `starts` are those of this run and of the runs before it."""
    alarms: dict[Key, Alarm] = {}
    events: list[Event] = []
    for watch in watches:
        old = before.get(watch.key, Alarm(since_ns=now_ns))
        new = step(old, seen(report, watch), now_ns, watch.rule, quiet=_maintained(watch, now_ns, windows))
        alarm = _dated(new.alarm, watch.rule, starts) if new.moved == "raise" else new.alarm
        alarms[watch.key] = alarm
        change = new.told or new.moved
        if change is None:
            continue
        findings = () if change == "clear" else against(report, watch)
        events.append(
            Event(
                watch=watch,
                change=change,
                told=new.told is not None,
                before=old,
                alarm=alarm,
                why=telling.reason(report, findings, watch.target, watch.metric),
                findings=findings,
            )
        )
    return alarms, events


def _dated(alarm: Alarm, rule: Rule, starts: Sequence[int]) -> Alarm:
    """An alarm just raised: things are bad since the first of the bad runs that raised it, not since the last."""
    recent = alarm.recent[-rule.of_runs :]
    bad = recent[::-1].rindex(LETTERS["bad"])
    return replace(alarm, since_ns=starts[min(bad, len(starts) - 1)])


def _maintained(watch: Watch, now_ns: int, windows: Sequence[Maintenance]) -> bool:
    """Whether a maintenance is on: nothing that it covers is told."""
    now = datetime.fromtimestamp(now_ns / SECOND, UTC)
    mine = (None,) if watch.metric == VANTAGE else (None, watch.target)
    return any(window.start <= now < window.end for window in windows if window.target in mine)


def outcome(report: Report) -> str:
    """A run in one word (method 6.1)."""
    if report.verdict.status == "ok":
        return "ok"
    if quorum.is_missed(report.verdict.findings):
        return "vantage-failed"
    critical = {target.name for target in report.targets if target.status == "critical"}
    if any(result.target in critical and result.outcome in FAILED for result in report.measured):
        return "target-failed"
    return "skipped" if report.verdict.status == "unknown" else "degraded"


def _unrecorded(report: Report, error: StoreError) -> Report:
    """The same report as that of a run that failed: unknown, unless what was found is worse."""
    why = f"the run was not recorded, so no alarm can count it: {error}"
    finding = Finding(
        id="not-enough-data/store",
        kind="not-enough-data",
        severity="unknown",
        confidence="shown",
        target=None,
        vantages=(),
        segment=None,
        direction="either",
        owner=Owner(role="you"),
        why=why,
        evidence={"store": error.trouble},
        changes_mind="a store that can be written",
        next_step=error.advice,
    )
    verdict = report.verdict
    worse = verdict.status == "critical"
    failure = FailureReport(kind="skipped", target=None, vantage=None, why=str(error), advice=error.advice)
    found = replace(
        verdict,
        status="critical" if worse else "unknown",
        summary=f"{verdict.summary} {why[0].upper()}{why[1:]}.",
        findings=(*verdict.findings, finding) if worse else (finding, *verdict.findings),
    )
    return replace(report, verdict=found, failures=(*report.failures, failure))
