"""The one loop in the house: what has been recorded → tasks still worth doing. Pure; `run` asks after every task.

Each row is a rule of one kind of need. A row never asks for what has begun already, so the answer shrinks to nothing.
`follow(plan, book)` with an empty book gives the first tasks of a run.
"""

from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from hopscope.analysis import reach
from hopscope.analysis.budget import held_series
from hopscope.analysis.case import Case, PathCase, cases
from hopscope.analysis.path import Count, count, distance, doubtful, shows_loss
from hopscope.analysis.views import PathView, SeriesView, lookups
from hopscope.model.plan import (
    ICMP_FLOWS,
    MS,
    SECOND,
    STREAM_MAX_TOKENS,
    STREAM_PROMPT_TOKENS,
    Family,
    HttpTask,
    PingTask,
    Plan,
    Protocol,
    ResolveTask,
    StreamTask,
    Target,
    Task,
    TraceTask,
    Vantage,
)
from hopscope.model.record import Resolved
from hopscope.model.sample import Book

RUN_COUNT = 50
RUN_INTERVAL_NS = 200 * MS
RUN_ROUNDS = 20
ROUND_INTERVAL_NS = 500 * MS
ROUTER_SPACING_NS = 200 * MS
"""Method 3.1: by default no router is asked more than 5/s in all; traces of a vantage share its first hops."""
MOST = 300
LOOKS = (20, 50, 100, 200, 300)
CONFIRM_PROBES = 30
CONFIRM_FASTEST_NS = SECOND // 2
CONFIRM_UNKNOWN_NS = SECOND
FALLBACK_PORTS = (443, 80)
COLD, HOT = 3, 10
HTTP_TIMEOUT_NS = 15 * SECOND
STREAM_COLD, STREAM_HOT = 1, 5
STREAM_TIMEOUT_NS = 60 * SECOND


def follow(plan: Plan, book: Book) -> tuple[Task, ...]:
    """Tasks that the records so far make worth doing, in the order they should start."""
    tasks: list[Task] = list(_unresolved(plan, book))
    begun = {_key(sample.task) for sample in book.samples.values()}
    addressed = [task for task in _addressed(plan, book) if _key(task) not in begun]
    tasks += addressed
    for case in cases(book):
        for row in ROWS:
            tasks += [task for task in row(plan, book, case) if _key(task) not in begun]
    return tuple(tasks)


def _key(task: Task) -> tuple[object, ...]:
    """What makes two tasks the same wish."""
    match task:
        case ResolveTask():
            return ("resolve", task.target, task.vantage)
        case PingTask():
            return ("ping", task.target, task.vantage, task.address, task.protocol, task.port, task.first_seq)
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
            yield series(target, vantage.name, address, protocol, port, reason="asked")
    if "trace" in target.probes:
        yield _trace(plan, target, vantage.name, address)
    if "http" in target.probes and target.url is not None:
        yield _http(target, vantage.name, address, resolved)
    if "stream" in target.probes and target.url is not None:
        yield _stream(target, vantage.name, address, resolved, seed=resolved.at)


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


def family_of(address: str) -> Family:
    """4 or 6."""
    return 6 if ":" in address else 4


def series(
    target: Target,
    vantage: str,
    address: str,
    protocol: Protocol,
    port: int | None,
    *,
    reason: str,
    first_seq: int = 0,
    count: int | None = None,
) -> PingTask:
    """A series as the target wants it; a continuation has no warm-up of its own."""
    flows = target.flows or (ICMP_FLOWS if protocol == "icmp" else 1)
    wanted = count or target.count or RUN_COUNT
    return PingTask(
        target=target.name,
        vantage=vantage,
        reason=reason,
        address=address,
        family=family_of(address),
        protocol=protocol,
        port=port,
        count=wanted,
        interval_ns=target.interval_ns or RUN_INTERVAL_NS,
        threshold_ns=target.threshold_ns,
        first_seq=first_seq,
        warmup=target.warmup and first_seq == 0 and wanted > 1,
        size=target.size,
        dscp=target.dscp,
        ttl=target.ttl,
        flows=flows,
    )


def _trace(plan: Plan, target: Target, vantage: str, address: str) -> TraceTask:
    """A trace as the target wants it."""
    tracing = sum("trace" in one.probes for one in plan.targets)
    return TraceTask(
        target=target.name,
        vantage=vantage,
        reason="asked",
        address=address,
        family=family_of(address),
        protocol=target.trace_protocol or "icmp",
        port=None,
        rounds=target.rounds or RUN_ROUNDS,
        interval_ns=target.round_interval_ns or max(ROUND_INTERVAL_NS, tracing * ROUTER_SPACING_NS),
        threshold_ns=target.threshold_ns,
        first_ttl=target.first_ttl,
        max_ttl=target.max_ttl,
        size=target.size,
    )


def _http(target: Target, vantage: str, address: str, resolved: Resolved) -> HttpTask:
    """Requests as the target wants them."""
    url = target.url or ""
    if target.path is not None:
        url = urlunsplit(urlsplit(url)._replace(path=target.path, query=""))
    return HttpTask(
        target=target.name,
        vantage=vantage,
        reason="asked",
        address=address,
        family=family_of(address),
        port=target.port or (443 if url.startswith("https:") else 80),
        url=url,
        cold=COLD if target.cold is None else target.cold,
        hot=HOT if target.hot is None else target.hot,
        timeout_ns=HTTP_TIMEOUT_NS,
        dns_ns=resolved.took_ns,
        method=target.method,
        body_file=target.body_file,
        headers=target.headers,
        headers_env=target.headers_env,
        api_key_env=target.api_key_env,
        ca_file=target.ca_file,
        insecure=target.insecure,
        http2=target.http2,
    )


def _stream(target: Target, vantage: str, address: str, resolved: Resolved, seed: int) -> StreamTask:
    """Streamed completions as the target wants them."""
    url = target.url or ""
    return StreamTask(
        target=target.name,
        vantage=vantage,
        reason="asked",
        address=address,
        family=family_of(address),
        port=target.port or (443 if url.startswith("https:") else 80),
        url=url,
        cold=STREAM_COLD if target.cold is None else target.cold,
        hot=STREAM_HOT if target.hot is None else target.hot,
        timeout_ns=STREAM_TIMEOUT_NS,
        seed=seed,
        model=target.model,
        prompt_tokens=target.prompt_tokens or STREAM_PROMPT_TOKENS,
        max_tokens=target.max_tokens or STREAM_MAX_TOKENS,
        dns_ns=resolved.took_ns,
        headers=target.headers,
        headers_env=target.headers_env,
        api_key_env=target.api_key_env,
        ca_file=target.ca_file,
        insecure=target.insecure,
        http2=target.http2,
    )


# What records make worth doing


def _icmp_silent(plan: Plan, book: Book, case: Case) -> Iterator[Task]:
    """ICMP is not answered, or may not be sent from here: ask by TCP (method 3.3, 2.1)."""
    del plan
    if case.address is None or case.target.protocol is not None or "ping" not in case.target.probes:
        return
    if case.of("tcp") or not _icmp_over(book, case):
        return
    for port in FALLBACK_PORTS:
        yield series(case.target, case.vantage, case.address, "tcp", port, reason="ICMP is not answered")


def _icmp_over(book: Book, case: Case) -> bool:
    """Whether the ICMP series has ended without an answer."""
    views = case.of("icmp")
    return any(not reach.answers(view) and _over(view) for view in views) or any(
        failure.kind == "rights" and failure.target == case.target.name and failure.vantage == case.vantage
        for failure in book.failures
    )


def _over(view: SeriesView) -> bool:
    """Whether every task of a series has ended."""
    return all(sample.done is not None or sample.failures for sample in view.samples)


def _more_probes(plan: Plan, book: Book, case: Case) -> Iterator[Task]:
    """A series that saw a loss, or misses a budget, and is not decided yet goes on (method 2.12)."""
    del plan, book
    if case.target.count is not None or case.address is None:
        return
    for view in case.series:
        seen = count(view.counted)
        if not (_over(view) and reach.answers(view) and seen.sent) or _decided(case, view, seen):
            continue
        step = _next_look(len(view.counted))
        if step:
            who = view.who
            first = 1 + max(one.probe.seq for one in view.counted)
            yield series(
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
    return not (undecided and view is case.end_series) and (not seen.lost or shows_loss(seen))


def _next_look(done: int) -> int:
    """How many more until the next look; 0 after the last."""
    return next((look - done for look in LOOKS if look > done), 0)


def _more_rounds(plan: Plan, book: Book, case: Case) -> Iterator[Task]:
    """A path whose end loses goes on until the segment is shown (method 4.2)."""
    del book
    if case.address is None:
        return
    for path in case.paths:
        step = _rounds_wanted(case, path)
        if step and _rested(path):
            task = _trace(plan, case.target, case.vantage, case.address)
            yield TraceTask(
                target=task.target, vantage=task.vantage, reason="undecided", address=task.address,
                family=task.family, protocol=task.protocol, rounds=step, interval_ns=task.interval_ns,
                threshold_ns=task.threshold_ns, first_round=_rounds(path), first_ttl=task.first_ttl,
                max_ttl=task.max_ttl, distance=distance(path.view), size=task.size,
            )  # fmt: skip


def _rounds_wanted(case: Case, path: PathCase) -> int:
    """How many more rounds a path needs for now; 0 when what it shows is decided, or the user set how many."""
    if case.target.rounds is not None or path.along.decided or not path.along.end.lost:
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
                address=case.address, family=view.who.family, protocol=view.who.protocol, rounds=CONFIRM_PROBES,
                interval_ns=_confirm_interval(view, ttl), threshold_ns=case.target.threshold_ns, confirm=ttl,
                size=case.target.size,
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
