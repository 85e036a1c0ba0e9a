"""The one loop in the house: what has been recorded → tasks still worth doing. Pure; `run` asks after every task.

Each row is a rule of one kind of need. A row never asks for what has begun already, so the answer shrinks to nothing.
The steps of a diagnosis are rows of `follow.layers`; what a place's own way out is judged by, of `follow.vouching`.
`follow(plan, book)` with an empty book gives the first tasks of a run.
"""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec.structs import replace

from hopscope.analysis import reach
from hopscope.analysis.budget import held_series
from hopscope.analysis.case import Case, PathCase, cases
from hopscope.analysis.path import Count, count, distance, doubtful, excuses, shows_loss
from hopscope.analysis.views import PathView, SeriesView, lookups, over
from hopscope.follow import layers, vouching
from hopscope.model.limits import SECOND
from hopscope.model.plan import (
    HttpTask,
    PingTask,
    Plan,
    Protocol,
    ResolveTask,
    RouteTask,
    StreamTask,
    Target,
    Task,
    TraceTask,
    Vantage,
)
from hopscope.model.record import Resolved
from hopscope.model.sample import Book
from hopscope.targets import tasks

LOOKS = (20, 50, 100, 200, 300)
CONFIRM_PROBES = 30
CONFIRM_FASTEST_NS = SECOND // 2
CONFIRM_UNKNOWN_NS = SECOND


def follow(plan: Plan, book: Book) -> tuple[Task, ...]:
    """Tasks that the records so far make worth doing, in the order they should start."""
    wanted: list[Task] = list(_unresolved(plan, book))
    begun = {_key(sample.task) for sample in book.samples.values()}
    addressed = [task for task in _addressed(plan, book) if _key(task) not in begun]
    wanted += addressed
    found = cases(book)
    wanted += [task for task in layers.asked(plan, book, found) if _key(task) not in begun]
    wanted += [task for task in vouching.asked(plan, book) if _key(task) not in begun]
    for case in found:
        for row in ROWS:
            more = [task for task in row(plan, book, case) if _key(task) not in begun]
            wanted += [task for task in more if not case.layered or layers.in_time(plan, book, task)]
    return tuple(wanted)


def _key(task: Task) -> tuple[object, ...]:
    """What makes two tasks the same wish."""
    match task:
        case ResolveTask():
            return ("resolve", task.target, task.vantage, task.about)
        case RouteTask():
            return ("route", task.target, task.vantage, task.address, task.reason)
        case PingTask():
            who = ("ping", task.target, task.vantage, task.address, task.about)
            return (*who, task.protocol, task.port, task.first_seq)
        case TraceTask():
            return ("trace", task.target, task.vantage, task.address, task.protocol, task.first_round, task.confirm)
        case HttpTask():
            return ("http", task.target, task.vantage, task.address, task.port)
        case StreamTask():
            return ("stream", task.target, task.vantage, task.address, task.port)


# The first tasks


def _unresolved(plan: Plan, book: Book) -> Iterator[ResolveTask]:
    """Every target at every vantage whose name has not been asked for."""
    asked = {(task.target, task.vantage) for task, _ in lookups(book)}
    for vantage in plan.vantages:
        for target in plan.targets:
            if (target.name, vantage.name) not in asked:
                yield ResolveTask(
                    target=target.name, vantage=vantage.name, reason="asked", host=target.resolve_to or target.host,
                    family=target.family,
                    timeout_ns=layers.patience_ns(plan) if "layer" in target.probes else None,
                )  # fmt: skip


def _addressed(plan: Plan, book: Book) -> Iterator[Task]:
    """What the plan asks of each address that was found."""
    targets = {target.name: target for target in plan.targets}
    vantages = {vantage.name: vantage for vantage in plan.vantages}
    for task, sample in lookups(book):
        if sample.resolved is None:
            continue
        target, vantage = targets[task.target], vantages[task.vantage]
        wanted = sample.resolved.addresses if target.all_addresses else sample.resolved.addresses[:1]
        for address in wanted:
            yield from _asked(plan, target, vantage, address, sample.resolved)


def _asked(plan: Plan, target: Target, vantage: Vantage, address: str, resolved: Resolved) -> Iterator[Task]:
    """Series, path and requests of one address."""
    if "ping" in target.probes:
        for protocol, port in _protocols(target):
            yield tasks.series(target, vantage.name, address, protocol, port, reason="asked")
    if "trace" in target.probes:
        yield tasks.trace(plan, target, vantage.name, address)
    if "http" in target.probes and target.url is not None:
        yield tasks.http(plan, target, vantage.name, address, resolved)
    if "stream" in target.probes and target.url is not None:
        yield tasks.stream(plan, target, vantage.name, address, resolved, seed=resolved.at)


def _protocols(target: Target) -> Iterator[tuple[Protocol, int | None]]:
    """The protocols of the series: the one asked for; else ICMP, and TCP where a port is known."""
    if target.protocol == "udp":
        return
    if target.protocol is not None:
        yield target.protocol, None if target.protocol == "icmp" else target.port
        return
    yield "icmp", None
    if target.port is not None:
        yield "tcp", target.port


# What records make worth doing


def _icmp_silent(plan: Plan, book: Book, case: Case) -> Iterator[Task]:
    """ICMP is not answered, or may not be sent from here: ask by TCP (method 3.3, 2.1)."""
    del plan
    if case.address is None or case.target.protocol is not None or "ping" not in case.target.probes:
        return
    if case.of("tcp") or not _icmp_over(book, case):
        return
    for port in tasks.FALLBACK_PORTS:
        yield tasks.series(case.target, case.vantage, case.address, "tcp", port, reason="ICMP is not answered")


def _icmp_over(book: Book, case: Case) -> bool:
    """Whether the ICMP series has ended without an answer."""
    views = case.of("icmp")
    return any(not reach.answers(view) and over(view) for view in views) or any(
        failure.kind == "rights" and failure.target == case.target.name and failure.vantage == case.vantage
        for failure in book.failures
    )


def _more_probes(plan: Plan, book: Book, case: Case) -> Iterator[Task]:
    """A series that saw a loss, or misses a budget, and is not decided yet goes on (method 2.12)."""
    del plan, book
    if case.target.count is not None or case.address is None:
        return
    for view in case.series:
        seen = count(view.counted)
        if not (over(view) and reach.answers(view) and seen.sent) or _decided(case, view, seen):
            continue
        step = _next_look(len(view.counted))
        if step:
            who = view.who
            first = 1 + max(one.probe.seq for one in view.counted)
            yield tasks.series(
                case.target, case.vantage, case.address, who.protocol, who.port, reason="undecided", first_seq=first,
                count=step,
            )  # fmt: skip


def _decided(case: Case, view: SeriesView, seen: Count) -> bool:
    """Whether nothing speaks against a series, or what does is shown."""
    undecided = [
        one
        for budget in (case.target.budget, case.target.critical)
        for one in held_series(case, budget)
        if one.missed and one.confidence != "shown"
    ]
    return (
        not (undecided and view is case.end_series) and (not seen.lost or shows_loss(seen)) and not _apart(case, seen)
    )


def _apart(case: Case, seen: Count) -> bool:
    """Whether one series shows loss that another does not, and it is not shown yet that the two differ."""
    all_seen = [count(view.counted) for view in case.series if reach.answers(view)]
    lossy = [one for one in all_seen if shows_loss(one)]
    if not lossy or len(lossy) == len(all_seen):
        return False
    others = all_seen if shows_loss(seen) else lossy
    return not any(excuses(seen, one) or excuses(one, seen) for one in others)


def _next_look(done: int) -> int:
    """How many more until the next look; 0 after the last."""
    return next((look - done for look in LOOKS if look > done), 0)


def _more_rounds(plan: Plan, book: Book, case: Case) -> Iterator[Task]:
    """A path whose end loses goes on until the segment is shown (method 4.2)."""
    del plan, book
    if case.address is None:
        return
    for path in case.paths:
        step = _rounds_wanted(case, path)
        begun = path.view.samples[0].task
        if step and _rested(path) and isinstance(begun, TraceTask):
            yield replace(
                begun, reason="undecided", rounds=step, first_round=_rounds(path), distance=distance(path.view)
            )


def _rounds_wanted(case: Case, path: PathCase) -> int:
    """How many more rounds a path needs for now; 0 when what it shows is decided, or the user set how many."""
    if case.target.rounds is not None or path.view.varies or path.along.decided or not path.along.end.lost:
        return 0
    return _next_look(_rounds(path))


def _rounds(path: PathCase) -> int:
    """Rounds done so far."""
    return 1 + max((one.probe.seq for probes in path.view.rounds.values() for one in probes), default=-1)


def _rested(path: PathCase) -> bool:
    """Whether no task asks the hops of a path just now."""
    return all(sample.done is not None for sample in path.view.samples)


def _confirm(plan: Plan, book: Book, case: Case) -> Iterator[Task]:
    """A hop whose own limit could hide where loss begins is asked below it, so that it can testify (method 4.3).

    Only once the rounds are over: they would use up its replies.
    """
    del plan, book
    if case.address is None:
        return
    for path in case.paths:
        if not _rested(path) or _rounds_wanted(case, path):
            continue
        for ttl in doubtful(path.along):
            view = path.view
            yield TraceTask(
                target=case.target.name, vantage=case.vantage, reason=f"hop {ttl} may limit its replies",
                address=case.address, family=view.who.family, protocol=view.who.protocol, port=view.who.port,
                rounds=CONFIRM_PROBES, interval_ns=_confirm_interval(view, ttl),
                threshold_ns=case.target.threshold_ns, confirm=ttl, size=case.target.size,
            )  # fmt: skip


def _confirm_interval(view: PathView, ttl: int) -> int:
    """Half the rate at which a hop was seen to answer, at most 2/s (method 4.3).

    Seen in the later half of its probes: a router gives its first few answers from what it has saved up.
    """
    probes = view.rounds[ttl]
    for sample in (probes[len(probes) // 2 :], probes):
        seen = count(sample)
        if seen.sent > seen.lost:
            return max(2 * view.interval_ns * seen.sent // (seen.sent - seen.lost), CONFIRM_FASTEST_NS)
    return CONFIRM_UNKNOWN_NS


Row = Callable[[Plan, Book, Case], Iterator[Task]]
ROWS: Final[tuple[Row, ...]] = (_icmp_silent, _more_probes, _more_rounds, _confirm)
