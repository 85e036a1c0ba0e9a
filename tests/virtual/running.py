"""Virtual time: runs a plan on a virtual network the way `run.py` and `net/prober.py` run it on a real one.

A heap of events takes the place of threads, sockets and clocks; `follow`, the engines and the tape are the real ones.
"""

import heapq
from collections.abc import Callable, Iterator
from functools import partial

from hopscope.engine.series import Series
from hopscope.engine.trace import Trace
from hopscope.follow import follow
from hopscope.model.flight import Shot
from hopscope.model.limits import SECOND
from hopscope.model.plan import HttpTask, PingTask, ResolveTask, RouteTask, StreamTask, Task, TraceTask
from hopscope.model.record import (
    TAPE_NUMBER,
    Begin,
    Done,
    End,
    Exchange,
    Planned,
    Record,
    Resolved,
    Routed,
    Run,
    SelfCheck,
)
from hopscope.model.sample import Book
from hopscope.tape import Gatherer
from virtual.network import Arrival, Network
from virtual.scenario import Scenario
from virtual.webserver import LOOKUP_NS, exchanges

START = 1_796_000_000 * SECOND
MOST_TASKS = 200
NS_A_MS = 1_000_000


class _Job:
    """An engine at work; `turn` grows so that stale wishes are told, as in the prober."""

    def __init__(self, number: int, task: PingTask | TraceTask, engine: Series | Trace) -> None:
        self.number = number
        self.task = task
        self.engine = engine
        self.turn = 0
        self.over = False


class Running:
    """One run of one scenario with one seed; `records` is its tape."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self._scenario = scenario
        self._plan = scenario.as_plan()
        self._network = Network(scenario, seed, START)
        self._now = START
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0
        self._begun = 0
        self._sends = 0
        self._open: dict[int, _Job | None] = {}
        self._gatherer = Gatherer()
        self.records: list[Record] = []

    def whole(self) -> Book:
        """The run from its first record to its last."""
        self._emit(Run(tape=TAPE_NUMBER, tool_version="0", command="run", at=self._now))
        self._emit(Planned(plan=self._plan))
        self._follow()
        deadline = START + self._plan.deadline_ns
        while self._open and self._heap and self._heap[0][0] < deadline:
            self._now, _, what = heapq.heappop(self._heap)
            what()
        cut = bool(self._open)
        for number, job in self._open.items():
            if job is not None:
                self._take(job)
            self._emit(Done(task=number, at=deadline, complete=False))
        self._emit(End(at=deadline if cut else self._now, partial=cut, why="deadline reached" if cut else None))
        return self._gatherer.book

    def _emit(self, record: Record) -> None:
        self.records.append(record)
        self._gatherer.add(record)

    def _at(self, when: int, what: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._heap, (max(when, self._now), self._order, what))

    def _follow(self) -> None:
        """Begin whatever the records make worth doing."""
        for task in follow(self._plan, self._gatherer.book):
            self._begun += 1
            assert self._begun < MOST_TASKS, f"follow asks without end: {task}"
            self._emit(Begin(id=self._begun, at=self._now, task=task))
            self._begin(self._begun, task)

    def _begin(self, number: int, task: Task) -> None:
        self._open[number] = None
        match task:
            case ResolveTask():
                self._at(self._now + LOOKUP_NS, partial(self._resolved, number))
            case HttpTask():
                self._request(number, exchanges(self._scenario, number, task, self._now))
            case RouteTask():
                self._emit(Routed(task=number, at=self._now, interface="eth0", up=True, carrier=True))
                self._done(number)
            case StreamTask():
                raise NotImplementedError("the virtual network has no tokens yet")
            case PingTask():
                self._drive(_Job(number, task, Series(number, task, self._now)))
            case TraceTask():
                self._drive(_Job(number, task, Trace(number, task, self._now)))

    def _done(self, number: int) -> None:
        del self._open[number]
        self._emit(Done(task=number, at=self._now, check=SelfCheck(limited=self._scenario.client.limited)))
        self._follow()

    # Names and requests

    def _resolved(self, number: int) -> None:
        error = self._scenario.dns_error
        addresses = () if error else (self._scenario.target.address,)
        self._emit(Resolved(task=number, at=self._now, addresses=addresses, took_ns=LOOKUP_NS, error=error))
        self._done(number)

    def _request(self, number: int, coming: Iterator[tuple[int, Exchange]]) -> None:
        """The next request of a task, told when it is over."""
        following = next(coming, None)
        if following is None:
            self._done(number)
            return
        over, exchange = following

        def tell() -> None:
            self._emit(exchange)
            self._request(number, coming)

        self._at(over, tell)

    # Series and traces, as `net/prober.py` drives them

    def _drive(self, job: _Job) -> None:
        """Put a job's next wish on the heap, or finish it when it has none."""
        self._open[job.number] = job
        job.turn += 1
        when = job.engine.wake_at()
        if when is None:
            job.over = True
            self._take(job)
            self._done(job.number)
            return
        late = self._network.chance.uniform(0, self._scenario.client.late_ms)
        self._at(when + int(late * NS_A_MS), partial(self._step, job, job.turn))

    def _step(self, job: _Job, turn: int) -> None:
        if turn != job.turn or job.over:
            return
        for shot in job.engine.step(self._now):
            self._sends += 1
            every = self._scenario.client.unsent_every
            if every is not None and self._sends % every == 0:
                job.engine.unsent(shot, self._now, "ENOBUFS: No buffer space available")
                continue
            job.engine.sent(shot, self._now)
            for arrival in self._network.send(job.task, shot, self._now):
                self._at(arrival.at, partial(self._tell, job, shot, arrival))
        self._take(job)
        self._drive(job)

    def _tell(self, job: _Job, shot: Shot, arrival: Arrival) -> None:
        if job.over:
            return
        job.engine.answered(shot, arrival.answer, self._now)
        self._take(job)
        self._drive(job)

    def _take(self, job: _Job) -> None:
        for record in job.engine.take():
            self._emit(record)
