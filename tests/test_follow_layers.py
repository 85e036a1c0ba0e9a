"""Steps of a diagnosis as a table: what is asked in each situation, never twice, and whole before the deadline.

A made-up machine answers each task at once or after the longest that the task allows; time is its own.
"""

import heapq
from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from hopscope.follow import follow
from hopscope.follow.layers import SILENT_GATEWAY
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import (
    HttpTask,
    PingTask,
    Plan,
    ResolveTask,
    RouteTask,
    StreamTask,
    Target,
    Task,
    TraceTask,
    Vantage,
)
from hopscope.model.record import Begin, Done, Exchange, Planned, Probe, Record, Resolved, Routed, Run, Streamed
from hopscope.tape import gather

FOUR, SIX, GATEWAY, SOURCE = "203.0.113.9", "2001:db8::9", "192.0.2.1", "192.0.2.7"
HURRIED_NS, PATIENT_NS = 45 * SECOND, 300 * SECOND
URL = "https://gpu.example/v1"

Answer = Callable[[int, Task, int], tuple[list[Record], int]]
"""From a task's number, the task and its beginning: its records, and when it is over."""


def plan(target: Target, deadline_ns: int = HURRIED_NS) -> Plan:
    here = Vantage(name="here", kind="local")
    return Plan(
        command="diagnose", name="it", targets=(target,), vantages=(here,), quorum=1, deadline_ns=deadline_ns
    )  # fmt: skip


def target(
    url: str | None = URL, port: int | None = 443, host: str = "gpu.example", model: str | None = None
) -> Target:
    return Target(name="it", host=host, port=port, url=url, model=model, probes=("layer",))


class Machine:
    """Answers what is asked; what it is like stands in its fields."""

    def __init__(self) -> None:
        self.addresses: tuple[str, ...] = (FOUR,)
        self.routes: dict[str | None, str | None] = {}  # an error for an address
        self.gateway: str | None = GATEWAY
        self.dead: set[str] = set()  # addresses that never answer
        self.closed: set[int] = set()
        self.loses: set[str] = set()  # addresses that lose one probe in ten
        self.status = 200
        self.slow = False  # everything takes as long as it may

    def __call__(self, number: int, task: Task, now: int) -> tuple[list[Record], int]:
        match task:
            case ResolveTask():
                took = task.timeout_ns or 0 if self.slow else MS
                return [Resolved(task=number, at=now + took, addresses=self.addresses, took_ns=took)], now + took
            case RouteTask():
                error = self.routes.get(task.address)
                routed = Routed(
                    task=number, at=now, interface="eth0", source=SOURCE,
                    gateway=None if error else self.gateway, error=error,
                )  # fmt: skip
                return [routed], now
            case PingTask():
                over = now + task.count * task.interval_ns + (task.threshold_ns if self.slow else MS)
                return [self._probe(number, task, seq, 0, now) for seq in range(task.count)], over
            case TraceTask():
                over = now + (task.rounds + 1) * task.interval_ns + (task.threshold_ns if self.slow else MS)
                return [self._probe(number, task, seq, 1, now) for seq in range(task.rounds)], over
            case HttpTask():
                requests = task.cold + task.hot
                took = requests * (task.timeout_ns if self.slow else MS)
                return [self._exchange(number, seq, now) for seq in range(requests)], now + took
            case StreamTask():
                took = 2 * task.timeout_ns if self.slow else MS
                return [Streamed(task=number, exchange=self._exchange(number, 0, now))], now + took

    def _probe(self, number: int, task: PingTask | TraceTask, seq: int, ttl: int, now: int) -> Probe:
        silent = task.address in self.dead or (task.address in self.loses and seq % 10 == 0)
        if silent:
            return Probe(task=number, seq=seq, at=now + seq, outcome="lost", ttl=ttl)
        if task.port in self.closed:
            return Probe(task=number, seq=seq, at=now + seq, outcome="refused", ttl=ttl, rtt_ns=MS, kind="rst")
        kind = "syn-ack" if task.protocol == "tcp" else "echo-reply"
        return Probe(
            task=number, seq=seq, at=now + seq, outcome="replied", ttl=ttl, rtt_ns=MS, clock="kernel",
            kind="syn-ack" if kind == "syn-ack" else "echo-reply",
        )  # fmt: skip

    def _exchange(self, number: int, seq: int, now: int) -> Exchange:
        return Exchange(task=number, seq=seq, cold=True, connection=0, scheduled=now, connected=now, status=self.status)


def diagnosed(what: Plan, machine: Answer, *, until: int | None = None) -> tuple[list[Task], int]:
    """Every task that is asked for in a whole diagnosis, and when it is over; `until` stops it there."""
    records: list[Record] = [Run(tape=1, tool_version="0", command="diagnose", at=0), Planned(plan=what)]
    heap: list[tuple[int, int, list[Record]]] = []
    asked: list[Task] = []
    now = 0
    while True:
        for task in follow(what, gather(records)):
            assert task not in asked
            asked.append(task)
            number = len(asked)
            assert number < 100
            records.append(Begin(id=number, at=now, task=task))
            told, over = machine(number, task, now)
            heapq.heappush(heap, (over, number, [*told, Done(task=number, at=over)]))
        if not heap or (until is not None and heap[0][0] > until):
            return asked, now
        now, _, told = heapq.heappop(heap)
        records += told


def kinds(tasks: list[Task]) -> list[str]:
    """Each task in a word or two."""
    return list(_kinds(tasks))


def _kinds(tasks: list[Task]) -> Iterator[str]:
    for task in tasks:
        match task:
            case ResolveTask():
                yield f"resolve {task.host}"
            case RouteTask():
                again = " again" if task.reason == SILENT_GATEWAY else ""
                yield f"route {task.address or 'default'}{again}"
            case PingTask():
                port = "" if task.port is None else f"/{task.port}"
                more = f" from {task.first_seq}" if task.first_seq else ""
                yield f"{task.about} {task.address} {task.protocol}{port} x{task.count}{more}"
            case TraceTask():
                port = "" if task.port is None else f"/{task.port}"
                more = f" from {task.first_round}" if task.first_round else ""
                yield f"trace {task.address} {task.protocol}{port} x{task.rounds}{more}"
            case HttpTask():
                yield f"http {task.address} {task.url} {task.cold}+{task.hot}"
            case StreamTask():
                yield f"stream {task.address} {task.model} {task.max_tokens}"


FIRST = ["resolve gpu.example", "route default"]
ONE_ADDRESS = [
    f"route {FOUR}",
    f"gateway {GATEWAY} icmp x10",
    f"target {FOUR} icmp x10",
    f"target {FOUR} tcp/443 x10",
    f"trace {FOUR} icmp x10",
    f"trace {FOUR} tcp/443 x10",
]
ANSWERING = [*ONE_ADDRESS, f"http {FOUR} {URL}/models 1+2", f"stream {FOUR} None 8"]


def test_all_is_asked_of_a_server_that_answers_and_each_thing_once() -> None:
    asked, _ = diagnosed(plan(target()), Machine())
    assert sorted(kinds(asked)) == sorted([*FIRST, *ANSWERING])


def test_first_the_name_and_the_default_route_side_by_side() -> None:
    first = follow(plan(target()), gather([Run(tape=1, tool_version="0", command="diagnose", at=0)]))
    assert kinds(list(first)) == FIRST
    assert [task.timeout_ns for task in first if isinstance(task, ResolveTask)] == [10 * SECOND]
    longer = follow(plan(target(), PATIENT_NS), gather([]))
    assert [task.timeout_ns for task in longer if isinstance(task, ResolveTask)] == [30 * SECOND]


def test_while_a_name_hangs_the_gateway_is_asked() -> None:
    machine = Machine()
    machine.slow = True
    asked, _ = diagnosed(plan(target()), machine, until=9 * SECOND)
    assert kinds(asked) == [*FIRST, f"gateway {GATEWAY} icmp x10"]
    machine.dead = {GATEWAY}
    asked, _ = diagnosed(plan(target()), machine, until=9 * SECOND)
    assert kinds(asked) == [*FIRST, f"gateway {GATEWAY} icmp x10", "route default again"]
    asked, _ = diagnosed(plan(target(host=FOUR)), machine, until=0)
    assert kinds(asked) == [f"resolve {FOUR}", "route default"]


def test_a_name_without_an_address_leads_no_farther() -> None:
    machine = Machine()
    machine.addresses = ()
    asked, _ = diagnosed(plan(target()), machine)
    assert kinds(asked) == [*FIRST, f"gateway {GATEWAY} icmp x10"]


def test_no_route_leads_no_farther() -> None:
    machine = Machine()
    machine.routes = {None: "no default route", FOUR: "ENETUNREACH: no route"}
    asked, _ = diagnosed(plan(target()), machine)
    assert kinds(asked) == [*FIRST, f"route {FOUR}"]


def test_a_host_on_the_link_has_no_gateway_to_ask() -> None:
    machine = Machine()
    machine.gateway = None
    asked, _ = diagnosed(plan(target()), machine)
    assert [kind for kind in kinds(asked) if kind.startswith("gateway")] == []


def test_four_addresses_at_most_and_both_families_among_them() -> None:
    machine = Machine()
    fours = tuple(f"203.0.113.{last}" for last in range(1, 8))
    machine.addresses = (*fours, SIX)
    asked, _ = diagnosed(plan(target()), machine)
    routes = [task.address for task in asked if isinstance(task, RouteTask) and task.address is not None]
    assert routes == [*fours[:3], SIX]


def test_addresses_without_a_route_are_left_alone_where_another_has_one() -> None:
    machine = Machine()
    machine.addresses, machine.routes = (FOUR, SIX), {SIX: "ENETUNREACH: no route"}
    asked, _ = diagnosed(plan(target()), machine)
    assert sorted(kinds(asked)) == sorted([*FIRST, f"route {SIX}", *ANSWERING])


def test_without_a_port_the_usual_ones_are_asked_one_after_the_other() -> None:
    machine = Machine()
    asked, _ = diagnosed(plan(target(url=None, port=None)), machine)
    assert sorted(kinds(asked)) == sorted([*FIRST, *ONE_ADDRESS])
    machine.closed = {443}
    asked, _ = diagnosed(plan(target(url=None, port=None)), machine)
    assert sorted(kinds(asked)) == sorted([*FIRST, *ONE_ADDRESS, f"target {FOUR} tcp/80 x10"])


def test_a_closed_port_is_asked_for_nothing_more() -> None:
    machine = Machine()
    machine.closed = {443}
    asked, _ = diagnosed(plan(target()), machine)
    assert sorted(kinds(asked)) == sorted([*FIRST, *ONE_ADDRESS])


@pytest.mark.parametrize(
    ("url", "model", "asked_url", "asks_model"),
    [
        ("https://gpu.example/v1", None, "https://gpu.example/v1/models", True),
        ("https://gpu.example/v1/", "m", "https://gpu.example/v1/models", True),
        ("https://gpu.example", "m", "https://gpu.example/v1/models", True),
        ("https://gpu.example", None, "https://gpu.example", False),
        ("https://gpu.example/health?x=1", None, "https://gpu.example/health?x=1", False),
    ],
)
def test_what_http_asks_for_and_whether_there_is_a_model(
    url: str, model: str | None, asked_url: str, asks_model: bool
) -> None:
    asked, _ = diagnosed(plan(target(url, model=model)), Machine())
    assert [task.url for task in asked if isinstance(task, HttpTask)] == [asked_url]
    streams = [task for task in asked if isinstance(task, StreamTask)]
    assert [(task.model, task.listing, task.cold, task.hot) for task in streams] == [(model, True, 1, 0)] * asks_model


@pytest.mark.parametrize(
    ("status", "model", "streams"),
    [
        (200, None, 1),
        (200, "m", 1),
        (401, "m", 0),
        (429, "m", 0),
        (503, "m", 0),
        (404, None, 0),
        (404, "m", 1),
        (405, "m", 1),
    ],
)
def test_a_model_is_asked_where_http_answers_well(status: int, model: str | None, streams: int) -> None:
    machine = Machine()
    machine.status = status
    asked, _ = diagnosed(plan(target(model=model)), machine)
    assert sum(isinstance(task, StreamTask) for task in asked) == streams


def test_a_model_is_asked_once_though_there_are_many_addresses() -> None:
    machine = Machine()
    machine.addresses = (FOUR, "203.0.113.10", SIX)
    asked, _ = diagnosed(plan(target()), machine)
    assert [task.address for task in asked if isinstance(task, StreamTask)] == [FOUR]
    assert [task.address for task in asked if isinstance(task, HttpTask)] == [FOUR, "203.0.113.10", SIX]
    assert {task.address for task in asked if isinstance(task, TraceTask)} == {FOUR}


@pytest.mark.parametrize(("dead", "loses"), [({SIX}, set[str]()), (set[str](), {SIX})])
def test_another_address_is_traced_where_something_is_wrong_with_it(dead: set[str], loses: set[str]) -> None:
    machine = Machine()
    machine.addresses, machine.dead, machine.loses = (FOUR, SIX), dead, loses
    asked, _ = diagnosed(plan(target()), machine)
    first = [task for task in asked if isinstance(task, TraceTask) and not task.first_round]
    assert [(task.address, task.protocol, task.interval_ns) for task in first] == [
        (FOUR, "icmp", 400 * MS),
        (FOUR, "tcp", 400 * MS),
        (SIX, "icmp", 400 * MS),
        (SIX, "tcp", 400 * MS),
    ]


def test_a_silent_gateway_is_looked_up_among_the_neighbours_once() -> None:
    machine = Machine()
    machine.dead = {GATEWAY}
    asked, _ = diagnosed(plan(target()), machine)
    assert [kind for kind in kinds(asked) if "again" in kind] == [f"route {FOUR} again"]


def test_with_time_it_begins_as_a_run_does() -> None:
    asked, _ = diagnosed(plan(target(), PATIENT_NS), Machine())
    assert {task.count for task in asked if isinstance(task, PingTask)} == {50}
    assert {task.rounds for task in asked if isinstance(task, TraceTask)} == {20}
    (http,) = [task for task in asked if isinstance(task, HttpTask)]
    (stream,) = [task for task in asked if isinstance(task, StreamTask)]
    assert (http.timeout_ns, stream.timeout_ns) == (15 * SECOND, 60 * SECOND)


@pytest.mark.parametrize(("deadline_ns", "most"), [(HURRIED_NS, 100), (PATIENT_NS, 300)])
def test_loss_makes_it_go_on_as_far_as_there_is_time(deadline_ns: int, most: int) -> None:
    machine = Machine()
    machine.loses = {FOUR}
    asked, over = diagnosed(plan(target(), deadline_ns), machine)
    rounds = [task for task in asked if isinstance(task, TraceTask)]
    assert sum(task.rounds for task in rounds if task.protocol == "icmp") > 10
    assert sum(task.rounds for task in rounds if task.protocol == "icmp") <= most
    assert over <= deadline_ns - SECOND


@pytest.mark.parametrize("deadline_ns", [HURRIED_NS, PATIENT_NS, 20 * SECOND])
@pytest.mark.parametrize("addresses", [(FOUR,), (FOUR, SIX), ("203.0.113.1", "203.0.113.2", "203.0.113.3", SIX)])
@pytest.mark.parametrize("trouble", ["slow", "loses", "dead", "all but the first dead"])
def test_it_is_whole_before_the_deadline_however_slow_everything_is(
    deadline_ns: int, addresses: tuple[str, ...], trouble: str
) -> None:
    machine = Machine()
    machine.slow, machine.addresses = True, addresses
    machine.loses = set(addresses) if trouble == "loses" else set()
    machine.dead = {"dead": set(addresses), "all but the first dead": set(addresses[1:])}.get(trouble, set())
    asked, over = diagnosed(plan(target(model="m"), deadline_ns), machine)
    assert over <= deadline_ns - SECOND
    assert any(isinstance(task, StreamTask) for task in asked) == (trouble != "dead")


class TwoPlaces(Machine):
    """Each place has a gateway of its own."""

    def __call__(self, number: int, task: Task, now: int) -> tuple[list[Record], int]:
        self.gateway = GATEWAY if task.vantage == "here" else "192.0.2.2"
        return super().__call__(number, task, now)


@pytest.mark.parametrize("dead", ["here", "there", None])
def test_a_silent_gateway_of_one_place_is_looked_up_at_that_place_only(dead: str | None) -> None:
    machine = TwoPlaces()
    machine.slow = True
    machine.dead = {"here": {GATEWAY}, "there": {"192.0.2.2"}}.get(dead or "", set())
    two = tuple(Vantage(name=name, kind="local") for name in ("here", "there"))
    asked, _ = diagnosed(replace(plan(target()), vantages=two), machine, until=9 * SECOND)
    again = [task.vantage for task in asked if isinstance(task, RouteTask) and task.reason == SILENT_GATEWAY]
    assert again == ([] if dead is None else [dead])
