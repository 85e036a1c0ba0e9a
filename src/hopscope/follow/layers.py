"""Steps of a diagnosis: what each layer asks for, as soon as what it stands on is known (`diagnose` in interface.md).

Layers that do not wait for each other are asked side by side. Whoever waits for an answer gets a share of the time
that is left, so that silence at every layer still leaves a whole verdict before the deadline.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from hopscope.analysis import reach
from hopscope.analysis.case import Case
from hopscope.analysis.path import count
from hopscope.analysis.rules.service import NO_LISTING
from hopscope.analysis.signs import asks_model
from hopscope.analysis.views import SeriesView, lookups, over, routes, series
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import (
    PingTask,
    Plan,
    Protocol,
    ResolveTask,
    RouteTask,
    StreamTask,
    Target,
    Task,
    TraceTask,
    family_of,
    is_address,
)
from hopscope.model.record import Resolved
from hopscope.model.sample import Book, Sample
from hopscope.targets import tasks
from hopscope.wire import chat

MOST_ADDRESSES = 4
HURRIED_NS = 60 * SECOND
"""With less time than this a diagnosis begins with few probes; with more, as a run does."""
FIRST_PROBES = 10
FIRST_ROUNDS = 10
ROUND_INTERVAL_NS = 400 * MS
"""Two protocols at once ask a router 5/s in all (method 3.1)."""
COLD, HOT = 1, 2
MODEL_TOKENS = 8
JUDGING_NS = 2 * SECOND
"""What is kept of the time for ending and judging."""
LONGEST_LOOKUP_NS = 30 * SECOND
SILENT_GATEWAY = "the gateway is silent"


class _Stand(Struct, frozen=True, kw_only=True):
    """How far a diagnosis has come: the addresses to which this machine has a way, and what is known of each."""

    plan: Plan
    book: Book
    target: Target
    vantage: str
    resolved: Resolved
    ways: tuple[str, ...]
    cases: dict[str, Case]
    left_ns: int


def patience_ns(plan: Plan) -> int:
    """How long a name may be looked up."""
    return min(LONGEST_LOOKUP_NS, plan.deadline_ns * 2 // 9)


def in_time(plan: Plan, book: Book, task: Task) -> bool:
    """Whether more probes or rounds would be over, and their losses told, before the deadline."""
    match task:
        case PingTask():
            needed = task.count * task.interval_ns + task.threshold_ns
        case TraceTask():
            needed = (task.rounds + 1) * task.interval_ns + task.threshold_ns
        case _:
            return True
    return needed + JUDGING_NS <= _left(plan, book)


def asked(plan: Plan, book: Book, found: Sequence[Case]) -> Iterator[Task]:
    """What every diagnosis of a plan asks for now; what was asked before is among it."""
    targets = {target.name: target for target in plan.targets if "layer" in target.probes}
    for vantage in plan.vantages:
        for target in targets.values():
            yield RouteTask(target=target.name, vantage=vantage.name, reason="asked", family=target.family)
    for lookup, sample in lookups(book):
        if lookup.target not in targets:
            continue
        target = targets[lookup.target]
        if sample.resolved is None or not sample.resolved.addresses:
            yield from _without_address(plan, book, target, lookup)
        else:
            yield from _diagnosed(plan, book, target, lookup, sample.resolved, found)


def _without_address(plan: Plan, book: Book, target: Target, lookup: ResolveTask) -> Iterator[Task]:
    """While a name has no address: the gateway by which a resolver would be asked."""
    gateways = series(book, "gateway")
    for task, routed in routes(book):
        mine = (task.target, task.vantage) == (target.name, lookup.vantage) and task.address is None
        if not mine or routed.gateway is None or is_address(lookup.host):
            continue
        yield _echoes(plan, target, lookup.vantage, routed.gateway)
        who = (target.name, lookup.vantage, routed.gateway)
        alike = (one for one in gateways if (one.who.target, one.who.vantage, one.who.address) == who)
        view = next((one for one in alike if _is_silent(one)), None)
        if view is not None:
            yield RouteTask(target=target.name, vantage=lookup.vantage, reason=SILENT_GATEWAY, family=target.family)


def _is_silent(gateway: SeriesView) -> bool:
    return over(gateway) and not reach.answers(gateway)


def _echoes(plan: Plan, target: Target, vantage: str, gateway: str) -> PingTask:
    """A few echoes to a first router."""
    few = tasks.series(target, vantage, gateway, "icmp", None, reason="asked", count=_probes(plan))
    return replace(few, about="gateway", flows=1, ttl=None)


def _diagnosed(
    plan: Plan, book: Book, target: Target, lookup: ResolveTask, resolved: Resolved, found: Sequence[Case]
) -> Iterator[Task]:
    """The steps of one target from one vantage, once its addresses are known."""
    vantage = lookup.vantage
    addresses = _chosen(resolved.addresses)
    for address in addresses:
        yield RouteTask(target=target.name, vantage=vantage, reason="asked", address=address, family=family_of(address))
    told = dict(_routes(book, target.name, vantage))
    if any(address not in told or told[address].done is None for address in addresses):
        return
    stand = _Stand(
        plan=plan,
        book=book,
        target=target,
        vantage=vantage,
        resolved=resolved,
        ways=tuple(address for address in addresses if not _refused(told[address])),
        cases={
            one.address: one
            for one in found
            if one.target.name == target.name and one.vantage == vantage and one.address is not None
        },
        left_ns=_left(plan, book),
    )
    for step in STEPS:
        yield from step(stand)


def _chosen(addresses: Sequence[str]) -> tuple[str, ...]:
    """A few of the addresses in their order; of both families, where there are both."""
    families = dict.fromkeys(family_of(address) for address in addresses)
    by_family = [[address for address in addresses if family_of(address) == family] for family in families]
    mixed = [address for some in zip_longest(*by_family) for address in some if address is not None]
    return tuple(address for address in addresses if address in mixed[:MOST_ADDRESSES])


def _routes(book: Book, target: str, vantage: str) -> Iterator[tuple[str | None, Sample]]:
    """Each address with what was asked of its route first."""
    for sample in book.samples.values():
        task = sample.task
        if isinstance(task, RouteTask) and (task.target, task.vantage, task.reason) == (target, vantage, "asked"):
            yield task.address, sample


def _refused(sample: Sample) -> bool:
    """Whether this machine says that it has no route. Where nothing is known of it, sending will tell."""
    return sample.routed is not None and sample.routed.error is not None


def _left(plan: Plan, book: Book) -> int:
    """Time until the deadline, as far as the records tell what time it is."""
    instants = [sample.begun for sample in book.samples.values()]
    instants += [sample.done.at for sample in book.samples.values() if sample.done is not None]
    start = book.run.at if book.run is not None else min(instants, default=0)
    return max(0, plan.deadline_ns - (max(instants, default=start) - start))


# The steps


def _gateways(stand: _Stand) -> Iterator[Task]:
    """A few echoes to each first router."""
    known = (case.route for address in stand.ways if (case := stand.cases.get(address)) is not None)
    for gateway in dict.fromkeys(route.gateway for route in known if route is not None):
        if gateway is not None:
            yield _echoes(stand.plan, stand.target, stand.vantage, gateway)


def _series(stand: _Stand) -> Iterator[Task]:
    """Each address by ICMP and by TCP."""
    for address in stand.ways:
        who, few = (stand.target, stand.vantage, address), _probes(stand.plan)
        yield tasks.series(*who, "icmp", None, reason="asked", count=few)
        for port in _ports(stand, address):
            yield tasks.series(*who, "tcp", port, reason="asked", count=few)


def _ports(stand: _Stand, address: str) -> Iterator[int]:
    """The port that was named; else the usual ones, one after the other until one is open."""
    if stand.target.port is not None:
        yield stand.target.port
        return
    case = stand.cases.get(address)
    for port in tasks.FALLBACK_PORTS:
        yield port
        views = [] if case is None else [view for view in case.of("tcp") if view.who.port == port]
        if not views or not all(over(view) and not reach.answers(view) for view in views):
            return


def _paths(stand: _Stand) -> Iterator[Task]:
    """The way by ICMP and by TCP: to the first address at once, to another where something is wrong with it."""
    first = stand.ways[:1]
    for address in first:
        yield from _both_ways(stand, address, ROUND_INTERVAL_NS)
    if not all(_path_over(stand, address) for address in first):
        return
    bad = [address for address in stand.ways[1:] if _fails(stand.cases.get(address))]
    for address in bad:
        both = _both_ways(stand, address, ROUND_INTERVAL_NS * len(stand.ways[1:]))
        yield from (task for task in both if in_time(stand.plan, stand.book, task))


def _both_ways(stand: _Stand, address: str, interval_ns: int) -> Iterator[Task]:
    """Two traces of one address."""
    plain = tasks.trace(stand.plan, stand.target, stand.vantage, address)
    rounds = FIRST_ROUNDS if _hurried(stand.plan) else tasks.RUN_ROUNDS
    port = stand.target.port or tasks.FALLBACK_PORTS[0]
    pairs: tuple[tuple[Protocol, int | None], ...] = (("icmp", None), ("tcp", port))
    for protocol, asked_port in pairs:
        yield replace(plain, protocol=protocol, port=asked_port, rounds=rounds, interval_ns=interval_ns)


def _path_over(stand: _Stand, address: str) -> bool:
    """Whether an address has been traced to the end."""
    case = stand.cases.get(address)
    return case is not None and all(sample.done is not None for path in case.paths for sample in path.view.samples)


def _fails(case: Case | None) -> bool:
    """Whether an address does not answer on its port, or loses."""
    if case is None or not all(over(view) for view in case.series):
        return False
    tcp = case.of("tcp")
    silent = bool(tcp) and not any(reach.answers(view) or reach.refusing(view) for view in tcp)
    return silent or any(reach.answers(view) and count(view.counted).lost for view in case.series)


def _requests(stand: _Stand) -> Iterator[Task]:
    """TLS and HTTP where the port is open: one request on a connection of its own, two on another."""
    if stand.target.url is None:
        return
    for address in stand.ways:
        case = stand.cases.get(address)
        if case is not None and any(reach.answers(view) for view in case.of("tcp")):
            usual = tasks.http(stand.plan, stand.target, stand.vantage, address, stand.resolved)
            yield replace(
                usual, url=asked_url(stand.target), cold=COLD, hot=HOT,
                timeout_ns=max(SECOND, min(usual.timeout_ns, stand.left_ns // (COLD + HOT + 2))),
            )  # fmt: skip


def asked_url(target: Target) -> str:
    """What HTTP is asked for: the list of models where there is a model behind the URL, else the URL as given."""
    url = target.url or ""
    return chat.listing(url) if asks_model(target) else url


def _model(stand: _Stand) -> Iterator[Task]:
    """A few tokens of the model, once, at the first address whose server answers well."""
    if not asks_model(stand.target) or _streams(stand):
        return
    for address in stand.ways:
        case = stand.cases.get(address)
        if case is not None and _served(case):
            patience = max(SECOND, (stand.left_ns - JUDGING_NS) // 2)  # once for the list, once for the stream
            usual = tasks.stream(
                stand.plan, stand.target, stand.vantage, address, stand.resolved, seed=stand.resolved.at
            )
            yield replace(
                usual, cold=1, hot=0, listing=True, max_tokens=MODEL_TOKENS,
                timeout_ns=min(usual.timeout_ns, patience), longest_ns=min(usual.longest_ns, patience),
            )  # fmt: skip
            return


def _streams(stand: _Stand) -> bool:
    asked_for = (sample.task for sample in stand.book.samples.values() if isinstance(sample.task, StreamTask))
    return any((task.target, task.vantage) == (stand.target.name, stand.vantage) for task in asked_for)


def _served(case: Case) -> bool:
    """Whether every request was answered well, or only the list of models is missing where the model is named."""
    exchanges = [exchange for view in case.requests for exchange in view.exchanges]
    ended = all(sample.done is not None for view in case.requests for sample in view.samples)
    if not ended or not exchanges:
        return False
    bearable = NO_LISTING if case.target.model is not None else frozenset[int]()
    return all(
        exchange.error is None
        and exchange.status is not None
        and (exchange.status < reach.CLIENT_ERROR or exchange.status in bearable)
        for exchange in exchanges
    )


def _again(stand: _Stand) -> Iterator[Task]:
    """A silent gateway: what the neighbour table says of it, now that it was asked for."""
    for address in stand.ways:
        case = stand.cases.get(address)
        gateway = None if case is None else case.gateway
        if gateway is not None and _is_silent(gateway):
            yield RouteTask(
                target=stand.target.name, vantage=stand.vantage, reason=SILENT_GATEWAY, address=address,
                family=family_of(address),
            )  # fmt: skip
            return


def _probes(plan: Plan) -> int:
    return FIRST_PROBES if _hurried(plan) else tasks.RUN_COUNT


def _hurried(plan: Plan) -> bool:
    return plan.deadline_ns < HURRIED_NS


Step = Callable[[_Stand], Iterator[Task]]
STEPS: Final[tuple[Step, ...]] = (_gateways, _series, _paths, _requests, _model, _again)
