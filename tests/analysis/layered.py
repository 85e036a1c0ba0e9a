"""A machine, a way and a server that are well, as records; a test changes one thing of them and reads the report."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from analysis.notation import probes, times
from hopscope.analysis import judge
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import (
    HttpTask,
    PingTask,
    Plan,
    Protocol,
    ResolveTask,
    RouteTask,
    StreamTask,
    Target,
    TraceTask,
    Vantage,
    family_of,
)
from hopscope.model.record import (
    Begin,
    Certificate,
    Done,
    End,
    Exchange,
    Named,
    Planned,
    Probe,
    Record,
    Resolved,
    Routed,
    Run,
    Streamed,
)
from hopscope.model.report import Report
from hopscope.tape import gather

ADDRESS, OTHER, SIX = "203.0.113.9", "203.0.113.10", "2001:db8::9"
GATEWAY, SOURCE = "192.0.2.1", "198.51.100.7"
URL = "https://gpu.example/v1"
NOW = 1_796_000_000 * SECOND
DAY = 86_400 * SECOND
LAYERS = ("interface", "gateway", "dns", "path", "port", "tls", "http", "model")
WELL = "pppppppp"
TOLD = {"passed": "p", "failed": "F", "not-checked": "-"}
CLEAN = times(10, "5")
LOST = times(10, ".")
ROUTE = Routed(task=0, at=0, interface="eth0", up=True, carrier=True, source=SOURCE, gateway=GATEWAY)
OPEN: tuple[Record, ...] = (Run(tape=1, tool_version="0", command="diagnose", at=0),)
NO_ROUTE = Routed(task=0, at=0, error="ENETUNREACH: no route")
ROWS = MappingProxyType({1: times(10, "1"), 2: times(10, "3"), 3: CLEAN})
SILENT_ROWS = {1: times(10, "1"), 2: times(10, "3"), 3: LOST, 4: LOST}
CERTIFICATE = Certificate(version="TLSv1.3", subject="gpu.example", not_after=NOW + 90 * DAY, verified=True)
GOOD = Exchange(
    task=0, seq=0, cold=True, connection=0, scheduled=NOW, dialled=NOW, connected=NOW + 5 * MS,
    secured=NOW + 12 * MS, sent_first=NOW + 12 * MS, sent_last=NOW + 12 * MS, head=NOW + 20 * MS, done=NOW + 20 * MS,
    clock="kernel", min_rtt_ns=5 * MS, rtt_ns=5 * MS, status=200, certificate=CERTIFICATE,
)  # fmt: skip
BROKEN = replace(GOOD, secured=None, sent_first=None, sent_last=None, head=None, done=None, status=None)
STREAM = Streamed(
    task=0, exchange=GOOD, model="m", listed=("m", "n"), first_event=NOW + 30 * MS, first_token=NOW + 40 * MS,
    last_token=NOW + 80 * MS, token_events=8, events=9,
)  # fmt: skip


class World(Struct, frozen=True, kw_only=True):
    """One address, as the records tell of it. Texts are those of `notation`; `None` was not asked."""

    address: str = ADDRESS
    route: Routed = ROUTE
    icmp: str = CLEAN
    tcp: str | None = CLEAN
    icmp_rows: Mapping[int, str] | None = ROWS
    tcp_rows: Mapping[int, str] | None = ROWS
    ends: int | None = 3
    tcp_ends: int | None = 3
    hops: Mapping[int, str] = {}
    exchanges: tuple[Exchange, ...] | None = (GOOD,)
    streams: tuple[Streamed, ...] | None = (STREAM,)


TARGET = Target(name="it", host="gpu.example", port=443, url=URL, probes=("layer",))
RESOLVED = Resolved(task=0, at=1, addresses=(ADDRESS,), took_ns=3 * MS, resolvers=("192.0.2.53",))


def report(
    *worlds: World,
    target: Target = TARGET,
    resolved: Resolved = RESOLVED,
    default: Routed = ROUTE,
    gateway: str | None = times(10, "1"),
    again: Routed | None = None,
    named: Sequence[Named] = (),
    partial: bool = False,
) -> Report:
    """The report of a diagnosis that saw these worlds."""
    here = Vantage(name="here", kind="local")
    what = Plan(command="diagnose", name="it", targets=(target,), vantages=(here,), quorum=1, deadline_ns=45 * SECOND)
    records: list[Record] = [Run(tape=1, tool_version="0", command="diagnose", at=0), Planned(plan=what)]
    asked = list(_asked(worlds, target, resolved, default, gateway, again))
    for number, (task, told) in enumerate(asked, start=1):
        records.append(Begin(id=number, at=number, task=task))
        records += [_numbered(record, number) for record in told]
        records.append(Done(task=number, at=number + SECOND))
    return judge.report(gather([*records, *named, End(at=9 * SECOND, partial=partial)]), tool_version="0")


Task = ResolveTask | RouteTask | PingTask | TraceTask | HttpTask | StreamTask


def _asked(
    worlds: Sequence[World], target: Target, resolved: Resolved, default: Routed, gateway: str | None,
    again: Routed | None,
) -> Iterator[tuple[Task, Sequence[Record]]]:  # fmt: skip
    yield ResolveTask(target="it", vantage="here", reason="asked", host=target.host), [resolved]
    yield route(None), [default]
    if gateway is not None and default.gateway is not None:
        yield series(default.gateway, gateway, "icmp", None, about_gateway=True)
    for world in worlds:
        yield route(world.address), [world.route]
        if world.route.error is None:
            yield from _of_address(world, target)
        if again is not None:
            yield route(world.address), [again]


def _of_address(world: World, target: Target) -> Iterator[tuple[Task, Sequence[Record]]]:
    yield series(world.address, world.icmp, "icmp", None)
    port = target.port or 443
    if world.tcp is not None:
        yield series(world.address, world.tcp, "tcp", port)
    for protocol, rows, end in (("icmp", world.icmp_rows, world.ends), ("tcp", world.tcp_rows, world.tcp_ends)):
        if rows is not None:
            yield traced(world, rows, "tcp" if protocol == "tcp" else "icmp", end)
    if world.exchanges is not None and target.url is not None:
        http = HttpTask(
            target="it", vantage="here", reason="asked", address=world.address, family=family_of(world.address),
            port=443, url=f"{URL}/models", cold=1, hot=2, timeout_ns=SECOND,
        )  # fmt: skip
        yield http, world.exchanges
    if world.streams is not None and target.url is not None:
        stream = StreamTask(
            target="it", vantage="here", reason="asked", address=world.address, family=family_of(world.address),
            port=443, url=URL, cold=1, hot=0, timeout_ns=SECOND, seed=1,
        )  # fmt: skip
        yield stream, world.streams


def route(address: str | None) -> RouteTask:
    return RouteTask(target="it", vantage="here", reason="asked", address=address)


def series(
    address: str, text: str, protocol: Protocol, port: int | None, *, about_gateway: bool = False
) -> tuple[PingTask, list[Record]]:
    task = PingTask(
        target="it", vantage="here", reason="asked", address=address, family=family_of(address), protocol=protocol,
        port=port, count=len(text.split()), interval_ns=SECOND, threshold_ns=2 * SECOND,
        about="gateway" if about_gateway else "target",
    )  # fmt: skip
    return task, probes(text, 0)


def traced(
    world: World, rows: Mapping[int, str], protocol: Protocol, end: int | None
) -> tuple[TraceTask, list[Record]]:
    address = world.address
    task = TraceTask(
        target="it", vantage="here", reason="asked", address=address, family=family_of(address), protocol=protocol,
        port=443 if protocol == "tcp" else None, rounds=10, interval_ns=SECOND, threshold_ns=2 * SECOND,
    )  # fmt: skip
    found: list[Record] = []
    for ttl, text in rows.items():
        router = world.hops.get(ttl, f"192.0.2.{ttl}")
        found += probes(text, 0, ttl=ttl, by=None if end is not None and ttl >= end else router)
    return task, found


def _numbered(record: Record, number: int) -> Record:
    match record:
        case Resolved() | Routed() | Probe() | Exchange():
            return replace(record, task=number)
        case Streamed():
            return replace(record, task=number, exchange=replace(record.exchange, task=number))
        case _:
            return record
