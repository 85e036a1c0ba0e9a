"""A book sorted the way judging asks: one view for each series, path and set of requests of a target at a vantage.

Tasks that continue one another (more probes, more rounds, a slow confirmation) meet here and are judged as one.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from hopscope.analysis.loss import fate, late_keys
from hopscope.model.plan import (
    About,
    Family,
    HttpTask,
    PingTask,
    Protocol,
    ResolveTask,
    RouteTask,
    StreamTask,
    TraceTask,
)
from hopscope.model.record import Exchange, Probe, Routed, SelfCheck
from hopscope.model.report import SampleOutcome
from hopscope.model.sample import Book, Sample

Key = tuple[str, str, str, Protocol, int | None]


class Fated(Struct, frozen=True, gc=False):
    """A probe with what became of it."""

    probe: Probe
    outcome: SampleOutcome


class Who(Struct, frozen=True, kw_only=True):
    """Which target was asked, from where, at which address and how."""

    target: str
    vantage: str
    address: str
    family: Family
    protocol: Protocol
    port: int | None


class SeriesView(Struct, kw_only=True):
    """One series: every probe in order of sending in `fated`, those that are no warm-up in `counted`."""

    who: Who
    samples: list[Sample]
    fated: list[Fated]
    counted: list[Fated] = []


class PathView(Struct, kw_only=True):
    """One path: probes of rounds by TTL, and by TTL those of slow confirmations with the interval of each."""

    who: Who
    samples: list[Sample]
    rounds: dict[int, list[Fated]]
    slow: dict[int, list[Fated]]
    slow_interval_ns: dict[int, int]
    interval_ns: int
    flow: int

    @property
    def varies(self) -> bool:
        """Whether each probe had a flow of its own: a SYN has a port of its own (method 3.6)."""
        return self.who.protocol == "tcp"

    def all_probes(self) -> Iterator[Fated]:
        """Every probe of a round, whatever its TTL."""
        return (one for probes in self.rounds.values() for one in probes)


class HttpView(Struct, kw_only=True):
    """Requests to one address."""

    who: Who
    url: str
    samples: list[Sample]
    exchanges: list[Exchange]


def who(task: PingTask | TraceTask | HttpTask | StreamTask) -> Who:
    """Who a task asks."""
    return Who(
        target=task.target,
        vantage=task.vantage,
        address=task.address,
        family=task.family,
        protocol="tcp" if isinstance(task, HttpTask | StreamTask) else task.protocol,
        port=task.port,
    )


def fated(sample: Sample, threshold_ns: int) -> list[Fated]:
    """Probes of a task with their fates."""
    late = late_keys(sample.extras)
    return [Fated(probe, fate(probe, late, sample.drops, threshold_ns)) for probe in sample.probes]


def series(book: Book, about: About = "target") -> list[SeriesView]:
    """Every series about the targets, in the order in which they began; or those to gateways, or controls."""
    views: dict[Who, SeriesView] = {}
    for sample in book.samples.values():
        if isinstance(sample.task, PingTask) and sample.task.about == about:
            asked = who(sample.task)
            view = views.setdefault(asked, SeriesView(who=asked, samples=[], fated=[]))
            view.samples.append(sample)
            view.fated.extend(fated(sample, sample.task.threshold_ns))
    for view in views.values():
        view.fated.sort(key=_sent_at)
        view.counted = [one for one in view.fated if not one.probe.warmup]
    return list(views.values())


def over(view: SeriesView) -> bool:
    """Whether every task of a series has ended."""
    return all(sample.done is not None or sample.failures for sample in view.samples)


def paths(book: Book) -> list[PathView]:
    """Every path of a book."""
    views: dict[Who, PathView] = {}
    for sample in book.samples.values():
        task = sample.task
        if not isinstance(task, TraceTask):
            continue
        asked = who(task)
        view = views.get(asked)
        if view is None:
            view = PathView(
                who=asked, samples=[], rounds={}, slow={}, slow_interval_ns={}, interval_ns=task.interval_ns,
                flow=task.flow,
            )  # fmt: skip
            views[asked] = view
        view.samples.append(sample)
        where = view.rounds if task.confirm is None else view.slow
        if task.confirm is not None:
            view.slow_interval_ns[task.confirm] = task.interval_ns
        for one in fated(sample, task.threshold_ns):
            if not one.probe.warmup:
                where.setdefault(one.probe.ttl, []).append(one)
    for view in views.values():
        for probes in (*view.rounds.values(), *view.slow.values()):
            probes.sort(key=_sent_at)
    return list(views.values())


def requests(book: Book) -> list[HttpView]:
    """Every set of HTTP requests of a book."""
    views: dict[Who, HttpView] = {}
    for sample in book.samples.values():
        if isinstance(sample.task, HttpTask):
            asked = who(sample.task)
            view = views.setdefault(asked, HttpView(who=asked, url=sample.task.url, samples=[], exchanges=[]))
            view.samples.append(sample)
            view.exchanges.extend(sample.exchanges)
    return list(views.values())


def lookups(book: Book, about: About = "target") -> Iterator[tuple[ResolveTask, Sample]]:
    """Every name lookup of a target, or of a control."""
    for sample in book.samples.values():
        if isinstance(sample.task, ResolveTask) and sample.task.about == about:
            yield sample.task, sample


def routes(book: Book) -> Iterator[tuple[RouteTask, Routed]]:
    """What this machine said of its ways, in the order in which it was asked."""
    for sample in book.samples.values():
        if isinstance(sample.task, RouteTask) and sample.routed is not None:
            yield sample.task, sample.routed


def checks(samples: Iterable[Sample]) -> SelfCheck:
    """The worst of the self-examinations of some tasks."""
    done = [sample.done.check for sample in samples if sample.done is not None]
    late = [check.late_p99_ns for check in done if check.late_p99_ns is not None]
    return SelfCheck(
        late_p99_ns=max(late, default=None),
        drops=sum(check.drops for check in done),
        clock_step_ns=max((check.clock_step_ns for check in done), default=0),
        limited=any(check.limited for check in done),
    )


def _sent_at(one: Fated) -> int:
    return one.probe.at
