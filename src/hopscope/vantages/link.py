"""The wire to an agent: bytes → lines → the records of each task, and a clear end when anything else comes.

Nothing is taken on trust: a banner, a line, the records of a task and the silence between them are bounded, and what
goes beyond is a vantage that is down, with the reason and the remedy. A secret is sent only after the agent has said
who it is.
"""

import asyncio
import secrets
from contextlib import suppress
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from hopscope import __version__
from hopscope.errors import VantageDownError
from hopscope.model.plan import HttpTask, PingTask, ResolveTask, RouteTask, StreamTask, Task, TraceTask
from hopscope.model.record import (
    TAPE_NUMBER,
    Done,
    Drop,
    End,
    Exchange,
    Extra,
    Failure,
    Probe,
    Record,
    Resolved,
    Routed,
    Streamed,
)
from hopscope.net.clock import SystemClock
from hopscope.net.far import Ending, Far, told
from hopscope.tape import MAX_LINE_BYTES
from hopscope.vantages import orders
from hopscope.vantages.endings import broken, ended, silent, stranger
from hopscope.vantages.orders import AGENT_NUMBER, Cancel, Finish, Hello, Here, Order, Stranger, Tick, Work

MAX_BANNER_BYTES = 64 << 10
MAX_STRANGE = 1000
"""Lines that a later version may know, before we stop believing that it is one."""
SPARE_RECORDS = 1000
GOODBYE_S = 2.0
TOLD_BYTES = 200
SHORTEST_SECRET = 4
TELLING = 8
"""So many characters of a secret in a row are as bad as all of it."""
HIDDEN = "(hidden)"

About = Resolved | Routed | Probe | Extra | Drop | Exchange | Streamed | Failure | Done
"""Records that are about a task."""
Item = Record | VantageDownError


class Pace(Struct, frozen=True, kw_only=True):
    """How long an agent may take to say hello, how often it is asked for a sign of life, how long it may be silent."""

    hello_s: float = 30.0
    tick_s: float = 15.0
    silence_s: float = 60.0


class _Waiting(Struct):
    """A task whose records are awaited, and how many more it may have."""

    task: Task
    left: int
    inbox: asyncio.Queue[Item]


class Link:
    """An agent that runs tasks for us. What goes wrong is a VantageDownError in every inbox, and nothing after it."""

    def __init__(self, far: Far, vantage: str, pace: Pace) -> None:
        self.tool_version = ""
        self.clock_offset_ns: int | None = None
        self.clock_error_ns: int | None = None
        self._far = far
        self._vantage = vantage
        self._pace = pace
        self._lines = _Lines(far)
        self._clock = SystemClock()
        self._ticked = 0
        self._strange = 0
        self._banner = b""
        self._secrets: set[str] = set()
        self._begun: set[int] = set()
        self._waiting: dict[int, _Waiting] = {}
        self._down: VantageDownError | None = None
        self._jobs: list[asyncio.Task[None]] = []

    async def greet(self, deadline_ns: int) -> None:
        """Find the agent behind a banner, check its version, read its clock. Raises VantageDownError."""
        nonce = secrets.token_hex(16)
        self.send(
            Hello(
                agent=AGENT_NUMBER,
                tape=TAPE_NUMBER,
                version=__version__,
                vantage=self._vantage,
                nonce=nonce,
                deadline_ns=deadline_ns,
            )
        )
        await self._find(nonce)
        self._check(await self._line())
        self._tick()
        self._take(await self._line())
        if self.clock_offset_ns is None:
            raise broken("no clock")
        self._jobs = [asyncio.create_task(self._listen()), asyncio.create_task(self._ticks())]

    def begin(self, work: Work) -> asyncio.Queue[Item]:
        """Have a task run; its records come to the inbox. Raises VantageDownError."""
        if self._down is not None:
            raise self._down
        inbox: asyncio.Queue[Item] = asyncio.Queue()
        self._waiting[work.id] = _Waiting(work.task, most_records(work.task), inbox)
        self._begun.add(work.id)
        self._secrets |= {secret for secret in work.secrets.values() if len(secret) >= SHORTEST_SECRET}
        self.send(work)
        return inbox

    def forget(self, task_id: int) -> None:
        """Nobody reads the inbox of this task any more."""
        if self._waiting.pop(task_id, None) is not None and self._down is None:
            self.send(Cancel(id=task_id))

    def fail(self, error: VantageDownError) -> None:
        """The vantage is down: every task hears of it. A secret that its last words repeat is not repeated."""
        if self._down is None:
            error = VantageDownError(self._clean(str(error)), self._clean(error.advice))
            self._down = error
            for waiting in self._waiting.values():
                waiting.inbox.put_nowait(error)
            self._jobs.append(asyncio.create_task(self._far.kill()))

    def _clean(self, text: str) -> str:
        """Without the secrets, and without pieces of them: last words are cut anywhere."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
            for start in range(len(secret) - TELLING + 1):
                text = text.replace(secret[start : start + TELLING], HIDDEN)
        return text

    def heard(self) -> str:
        """What came before the agent's first line, or instead of it."""
        return told(self._banner + self._lines.rest())

    def send(self, order: Order) -> None:
        """Say something to the agent."""
        self._far.write(orders.dump(order))

    async def close(self) -> None:
        """Say goodbye, give it a moment to go, and see that it has gone."""
        for job in self._jobs:
            job.cancel()
        await asyncio.gather(*self._jobs, return_exceptions=True)
        if self._down is None and self._jobs:
            self.send(Finish())
            self._far.finish()
            with suppress(TimeoutError, VantageDownError):
                async with asyncio.timeout(GOODBYE_S):
                    while await self._far.read():
                        pass
                    await self._far.ended()
        await self._far.kill()

    async def _find(self, nonce: str) -> None:
        """Read over a banner to the agent's own first line."""
        while len(self._banner) <= MAX_BANNER_BYTES:
            line = await self._lines.next(MAX_BANNER_BYTES)
            if line is None:
                raise ended(await self._ending(), banner=self.heard())
            message = orders.here(line)
            if message is not None and message.nonce == nonce:
                return
            self._banner += line + b"\n"
        raise stranger(self.heard())

    def _check(self, line: bytes) -> None:
        """The tape that it writes must be one that we read. Raises VantageDownError."""
        try:
            theirs = orders.version(line)
        except orders.UnreadableError as error:
            raise broken(str(error)) from error
        if theirs.record != "run":
            raise broken("no first record of a tape")
        if theirs.tape != TAPE_NUMBER:
            message = (
                f"hopscope {theirs.tool_version} there writes tape {theirs.tape},"
                f" this hopscope {__version__} reads tape {TAPE_NUMBER}"
            )
            older = "there" if theirs.tape < TAPE_NUMBER else "here"
            raise VantageDownError(message, f"upgrade hopscope {older}, so that both are of one version")
        self.tool_version = theirs.tool_version

    async def _line(self) -> bytes:
        line = await self._lines.next(MAX_LINE_BYTES)
        if line is None:
            raise ended(await self._ending(), amid=bool(self._lines.rest()))
        return line

    async def _ending(self) -> Ending:
        """How the agent ended whose output is over; one that then does not end is ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_S):
                return await self._far.ended()
        return Ending(None, "")

    async def _listen(self) -> None:
        """Hand every record to its task, until something is wrong."""
        try:
            while True:
                async with asyncio.timeout(self._pace.silence_s):
                    line = await self._line()
                self._take(line)
        except TimeoutError:
            self.fail(silent(self._pace.silence_s))
        except VantageDownError as error:
            self.fail(error)

    def _take(self, line: bytes) -> None:
        try:
            message = orders.answer(line)
        except orders.UnreadableError as error:
            raise broken(f"{error}: {told(line[:TOLD_BYTES])}") from error
        match message:
            case Here():
                self._read_clock(message)
            case Failure(task=None):
                raise VantageDownError(message.why, message.advice)
            case End():
                raise VantageDownError(f"the hopscope there ended: {message.why or 'nobody knows why'}", "run again")
            case Resolved() | Routed() | Probe() | Extra() | Drop() | Exchange() | Streamed() | Failure() | Done():
                self._deliver(message)
            case _:
                self._count_strange(message)

    def _deliver(self, record: About) -> None:
        waiting = self._waiting.get(record.task) if record.task is not None else None
        if waiting is None:
            if record.task not in self._begun:
                self._count_strange(record)
            return
        waiting.left -= 1
        if waiting.left < 0:
            raise broken(f"more records than task {record.task} can have")
        if isinstance(record, Failure):
            record = replace(record, target=waiting.task.target, vantage=waiting.task.vantage)
        waiting.inbox.put_nowait(record)
        if isinstance(record, Done):
            del self._waiting[record.task]

    def _count_strange(self, message: Record | Stranger) -> None:
        self._strange += 1
        if self._strange > MAX_STRANGE:
            raise broken(f"more than {MAX_STRANGE} records that nobody asked for")

    async def _ticks(self) -> None:
        while True:
            await asyncio.sleep(self._pace.tick_s)
            self._tick()

    def _tick(self) -> None:
        self._ticked = self._clock.now()
        self.send(Tick())

    def _read_clock(self, message: Here) -> None:
        """Offset of their clock: their instant − the middle of our two, uncertain by half of the time between."""
        now = self._clock.now()
        error = (now - self._ticked) // 2
        if self.clock_error_ns is None or error < self.clock_error_ns:
            self.clock_error_ns = error
            self.clock_offset_ns = message.at - (self._ticked + now) // 2


def most_records(task: Task) -> int:
    """More records than this no honest agent has for a task: four for each probe, since replies may come twice."""
    match task:
        case PingTask():
            expected = task.count + task.flows
        case TraceTask():
            expected = task.rounds * (task.max_ttl + 1)
        case HttpTask() | StreamTask():
            expected = task.cold + task.hot
        case ResolveTask() | RouteTask():
            expected = 1
        case _:
            assert_never(task)
    return 4 * expected + SPARE_RECORDS


class _Lines:
    """Bytes into lines; one that does not end in time is nobody's."""

    def __init__(self, far: Far) -> None:
        self._far = far
        self._rest = bytearray()
        self._searched = 0

    def rest(self) -> bytes:
        """The beginning of a line that did not end yet."""
        return bytes(self._rest[:MAX_BANNER_BYTES])

    async def next(self, longest: int) -> bytes | None:
        """The next line without its newline; None after the last whole one. Raises VantageDownError."""
        while (end := self._rest.find(b"\n", self._searched)) < 0:
            self._searched = len(self._rest)
            if self._searched > longest:
                raise stranger(told(bytes(self._rest[:TOLD_BYTES])))
            piece = await self._far.read()
            if not piece:
                return None
            self._rest += piece
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        self._searched = 0
        return line
