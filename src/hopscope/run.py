"""A plan at its vantages → records on a tape: the only place that starts tasks.

Every record is written before anybody else sees it. A task that breaks is a failure on the tape and the run goes on;
the deadline or an interrupt ends what still runs, and what was measured stays.
"""

import asyncio
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from hopscope import __version__, tape
from hopscope.errors import CannotMeasureError, HopscopeError, UsageError, VantageDownError
from hopscope.follow import follow
from hopscope.model.limits import SECOND
from hopscope.model.plan import Plan, ResolveTask, RouteTask, Target, Task, Vantage
from hopscope.model.record import TAPE_NUMBER, Begin, Done, End, Failure, Planned, Record, Run
from hopscope.model.sample import Book
from hopscope.net.ports import NoRightsError
from hopscope.vantages import VANTAGES, Openers, Place

MAX_TASKS_EACH = 100
"""A plan and its consequences may grow, but not without end: at most so many tasks for a target at a vantage."""
SIGNALS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}

REPORT_IT = "please report this with the tape"

FailureKind = Literal["vantage", "rights", "skipped", "usage", "bug"]
Write = Callable[[bytes], None]
Listen = Callable[[Record], None]


NOT_YET = "upgrade hopscope when a later version has it"


def left_out(target: Target) -> Iterator[str]:
    """What a target asks for that this version does not measure; it is said, never silently ignored."""
    if target.protocol == "udp":
        yield "UDP series are not part of this version"


class Ended(Struct, frozen=True):
    """How a run ended: the signal that stopped it, if one did."""

    book: Book
    signal: int | None


class _Stop(Struct):
    """Why a run is to end before its work does."""

    why: str | None = None
    signal: int | None = None


def run(
    plan: Plan,
    *,
    environ: Mapping[str, str],
    write: Write,
    listen: Listen | None = None,
    openers: Openers = VANTAGES,
) -> Ended:
    """Run a plan to its end, its deadline, or a signal.

    `write` gets each line of the tape, in one call, before `listen` gets the record. Raises CannotMeasureError when
    the tape cannot be written; what was written stays readable. `openers` makes a place of each kind of vantage.
    """
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # a loop half made or half closed must not be torn
    try:
        return asyncio.run(_Session(plan, environ, write, listen, openers).whole())
    finally:
        with suppress(ValueError):  # elsewhere than in the main thread no signal was taken
            for number, handler in handlers.items():
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Session:
    """One run: places that are open, tasks in progress, and the book so far."""

    def __init__(
        self, plan: Plan, environ: Mapping[str, str], write: Write, listen: Listen | None, openers: Openers
    ) -> None:
        self._plan = plan
        self._environ = environ
        self._write = write
        self._listen = listen
        self._openers = openers
        self._gatherer = tape.Gatherer()
        self._places: dict[str, Place] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._down: set[str] = set()
        self._begun = 0
        self._anchor = time.time_ns() - time.monotonic_ns()
        self._stop = _Stop()
        self._stopping = asyncio.Event()
        self._broken: HopscopeError | None = None

    def _now(self) -> int:
        return self._anchor + time.monotonic_ns()

    def _emit(self, record: Record) -> None:
        """Tape first, then the book, then whoever listens. A tape that broke once is left alone: it ends whole."""
        if self._broken is not None:
            raise self._broken
        try:
            self._write(tape.dump(record))
        except CannotMeasureError as error:
            self._broken = error
            raise
        self._gatherer.add(record)
        if self._listen is not None:
            self._listen(record)

    async def whole(self) -> Ended:
        """The run from its first line to its last."""
        with self._hearing():
            return await self._measured()

    @contextmanager
    def _hearing(self) -> Iterator[None]:
        """Let signals through, as calls of `_end`; outside they wait."""
        loop = asyncio.get_running_loop()
        for number, why in SIGNALS.items():
            with suppress(NotImplementedError, RuntimeError):
                loop.add_signal_handler(number, self._end, why, number)
        blocked = signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    async def _measured(self) -> Ended:
        """Everything between the first record and the last."""
        self._emit(Run(tape=TAPE_NUMBER, tool_version=__version__, command=self._plan.command, at=self._now()))
        self._emit(Planned(plan=self._plan))
        try:
            self._open()
            self._start()
            await self._until_over()
        finally:
            await self._shut()
        if self._broken is not None:
            raise self._broken
        self._name()
        partial = self._stop.why is not None
        self._emit(End(at=self._now(), partial=partial, why=self._stop.why))
        return Ended(self._gatherer.book, self._stop.signal)

    def _open(self) -> None:
        """Open each vantage; one that cannot be opened is a failure and costs the others nothing."""
        for vantage in self._plan.vantages:
            opener = self._openers.get(vantage.kind)
            if opener is None:
                why = f"vantages of kind {vantage.kind} are not part of this version"
                self._unusable(vantage, "skipped", why, 'measure from kind = "local"')
                continue
            try:
                self._places[vantage.name] = opener(self._limited(vantage), self._environ)
            except HopscopeError as error:
                kind: FailureKind = "usage" if isinstance(error, UsageError) else "vantage"
                self._unusable(vantage, kind, str(error), error.advice)
        for target in self._plan.targets:
            for what in left_out(target):
                self._emit(Failure(kind="skipped", target=target.name, why=what, advice=NOT_YET))

    def _limited(self, vantage: Vantage) -> Vantage:
        """No vantage is to work longer than the run."""
        longest = self._plan.deadline_ns
        return replace(vantage, deadline_ns=min(vantage.deadline_ns or longest, longest))

    def _unusable(self, vantage: Vantage, kind: FailureKind, why: str, advice: str) -> None:
        self._emit(Failure(kind=kind, vantage=vantage.name, why=why, advice=advice))

    def _start(self) -> None:
        """Start whatever the records make worth doing."""
        if self._stop.why is not None:
            return
        most = MAX_TASKS_EACH * len(self._plan.targets) * len(self._plan.vantages)
        for task in follow(self._plan, self._gatherer.book):
            if self._begun >= most:
                return
            self._begun += 1
            self._emit(Begin(id=self._begun, at=self._now(), task=task))
            place = self._places.get(task.vantage) if task.vantage not in self._down else None
            if place is None:
                self._emit(Done(task=self._begun, at=self._now(), complete=False))
                continue
            work = asyncio.create_task(self._whole_task(self._begun, task, place))
            self._running.add(work)
            work.add_done_callback(self._running.discard)

    def _name(self) -> None:
        """Owners and places of the hops, once the probes are over; the databases are read only if there are any."""
        if not self._plan.mmdb:
            return
        from hopscope.net.geo import name_addresses

        probes = (probe for sample in self._gatherer.book.samples.values() for probe in sample.probes)
        asked = (task.address for task in self._tasks() if not isinstance(task, ResolveTask | RouteTask))
        seen = dict.fromkeys((*asked, *(probe.by for probe in probes if probe.by is not None)))
        for record in name_addresses(self._plan.mmdb, seen):
            self._emit(record)

    def _tasks(self) -> Iterator[Task]:
        return (sample.task for sample in self._gatherer.book.samples.values())

    async def _until_over(self) -> None:
        """Wait for tasks, and start what follows from each, until nothing runs or the end is called."""
        stopping = asyncio.create_task(self._stopping.wait())
        deadline = asyncio.get_running_loop().call_later(
            self._plan.deadline_ns / SECOND, self._end, "deadline reached", None
        )
        try:
            while self._running and self._broken is None:
                await asyncio.wait({*self._running, stopping}, return_when=asyncio.FIRST_COMPLETED)
                if self._stopping.is_set():
                    break
                self._start()
        finally:
            deadline.cancel()
            stopping.cancel()

    def _end(self, why: str, number: int | None) -> None:
        """Call the end: no new tasks, those that run are cut off."""
        if self._stop.why is None:
            self._stop = _Stop(why, number)
        self._stopping.set()

    async def _whole_task(self, task_id: int, task: Task, place: Place) -> None:
        """One task. That the tape broke under it is known to `_emit`, and no failure of the task."""
        with suppress(CannotMeasureError):
            await self._work(task_id, task, place)

    async def _work(self, task_id: int, task: Task, place: Place) -> None:
        """The records of a task, or the failure that it was."""
        done = False
        try:
            async with aclosing(place.run(task_id, task)) as records:
                async for record in records:
                    done = done or isinstance(record, Done)
                    self._emit(record)
        except VantageDownError as error:
            self._lost(task.vantage, error)
        except NoRightsError as error:
            self._failed(task_id, task, "rights", str(error), error.advice)
        except HopscopeError as error:
            self._failed(task_id, task, "usage", str(error), error.advice)
        except Exception as error:  # noqa: BLE001 - the one broad except in the house: a bug of ours costs one task
            self._failed(task_id, task, "bug", f"{type(error).__name__}: {error}", REPORT_IT)
        finally:
            if not done and self._broken is None:
                self._emit(Done(task=task_id, at=self._now(), complete=False))

    def _lost(self, vantage: str, error: VantageDownError) -> None:
        """A vantage is down: said once, however many of its tasks that ends."""
        if vantage not in self._down:
            self._down.add(vantage)
            self._emit(Failure(kind="vantage", vantage=vantage, why=str(error), advice=error.advice))

    def _failed(self, task_id: int, task: Task, kind: FailureKind, why: str, advice: str) -> None:
        self._emit(Failure(kind=kind, why=why, advice=advice, target=task.target, vantage=task.vantage, task=task_id))

    async def _shut(self) -> None:
        """Cut off what runs, close every place."""
        for work in self._running:
            work.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        closed = await asyncio.gather(*(place.close() for place in self._places.values()), return_exceptions=True)
        for name, error in zip(self._places, closed, strict=True):
            if isinstance(error, Exception) and self._broken is None:
                why = f"{type(error).__name__}: {error}"
                self._emit(Failure(kind="bug", vantage=name, why=why, advice=REPORT_IT))
