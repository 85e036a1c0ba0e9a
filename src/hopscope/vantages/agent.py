"""The far end: orders in, a tape out, and nothing left behind. It runs the tasks of one controller at its own place.

It lives no longer than its controller: it ends when its standard input does, when nobody reads what it writes, when it
hears nothing for a while, and at its deadline. The last two end the process whatever it is doing (`Watch`). Secrets
and files of a task are kept in memory as long as it lives; its own environment and disk are not looked at.
"""

import asyncio
import errno
import os
import select
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Literal

from hopscope import __version__, tape
from hopscope.errors import HopscopeError, UsageError
from hopscope.model.limits import SECOND
from hopscope.model.plan import Task, Vantage
from hopscope.model.record import TAPE_NUMBER, Done, End, Failure, Record, Run
from hopscope.net.clock import SystemClock
from hopscope.net.ports import NoRightsError
from hopscope.vantages import orders
from hopscope.vantages.local import LocalPlace
from hopscope.vantages.orders import AGENT_NUMBER, Cancel, Finish, Hello, Here, Tick, Work

MAX_ORDER_BYTES = 32 << 20
PIECE_BYTES = 1 << 16
SILENCE_S = 60.0
GRACE_S = 5.0
"""From the deadline, at which tasks are cut off, to the end of the process."""
REPORT_IT = "please report this with the tape"

FailureKind = Literal["rights", "usage", "bug"]
Watch = Callable[[float], None]
"""Ends this process after so many seconds, unless it is called again before."""


def serve(read: int, write: int, watch: Watch) -> None:
    """Be the agent of a controller that is at the other end of two descriptors. Raises UsageError for nobody."""
    watch(SILENCE_S)
    asyncio.run(_serve(read, write, watch))


async def _serve(read: int, write: int, watch: Watch) -> None:
    heard: asyncio.Queue[bytes] = asyncio.Queue()
    listener = _Listener(read, heard, watch)
    first = await listener.next()
    try:
        hello = orders.order(first)
    except orders.UnreadableError:
        hello = None
    if not isinstance(hello, Hello):
        message = "an agent takes its orders from a hopscope elsewhere, on standard input"
        raise UsageError(message, "hopscope vantage test TARGETS.toml starts it; see hopscope vantage --help")
    listener.over_at = time.monotonic() + hello.deadline_ns / SECOND
    await _Agent(hello, write, listener).whole()


class _Listener:
    """Reads lines in a thread, for any kind of descriptor; each one that comes is a sign of life of the controller."""

    def __init__(self, read: int, heard: "asyncio.Queue[bytes]", watch: Watch) -> None:
        self.over_at = time.monotonic() + SILENCE_S
        self._read = read
        self._heard = heard
        self._watch = watch
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._listen, name="orders", daemon=True).start()

    async def next(self) -> bytes:
        """The next line, nothing after the last."""
        return await self._heard.get()

    def end(self) -> None:
        """As if the last line had come."""
        self._heard.put_nowait(b"")

    def _listen(self) -> None:
        rest = bytearray()
        while len(rest) <= MAX_ORDER_BYTES:
            piece = _piece(self._read)
            if not piece:
                break
            self._watch(max(0.1, min(SILENCE_S, self.over_at + GRACE_S - time.monotonic())))
            searched = len(rest)
            rest += piece
            while (end := rest.find(b"\n", searched)) >= 0:
                self._tell(bytes(rest[: end + 1]))
                del rest[: end + 1]
                searched = 0
        self._tell(b"")

    def _tell(self, line: bytes) -> None:
        try:
            self._loop.call_soon_threadsafe(self._heard.put_nowait, line)
        except RuntimeError:
            return  # the loop is over, and so is the process


def _piece(read: int) -> bytes:
    try:
        return os.read(read, PIECE_BYTES)
    except OSError:
        return b""


class _Agent:
    """Tasks in progress, and the only place that writes."""

    def __init__(self, hello: Hello, write: int, listener: _Listener) -> None:
        self._hello = hello
        self._write = write
        self._listener = listener
        self._mute = False
        self._clock = SystemClock()
        self._secrets: dict[str, str] = {}
        self._files: dict[str, bytes] = {}
        self._running: dict[int, asyncio.Task[None]] = {}

    async def whole(self) -> None:
        """From the first line to the last."""
        self._say(b"\n")  # whatever a login left on the line is not ours
        self._here()
        self._record(Run(tape=TAPE_NUMBER, tool_version=__version__, command="agent", at=self._clock.now()))
        if (self._hello.agent, self._hello.tape) != (AGENT_NUMBER, TAPE_NUMBER):
            return
        try:
            place = FarPlace(self._hello.vantage, self._secrets, self._files)
        except HopscopeError as error:
            self._record(Failure(kind="vantage", why=str(error), advice=error.advice, vantage=self._hello.vantage))
            return
        why: str | None = "its deadline was reached"
        try:
            async with asyncio.timeout(self._hello.deadline_ns / SECOND):
                why = await self._obey(place)
        except TimeoutError:
            pass
        finally:
            await self._shut(place)
        self._record(End(at=self._clock.now(), partial=why is not None, why=why))

    async def _obey(self, place: "FarPlace") -> str | None:
        """Do what comes until the end comes; returns why that was before its time."""
        while line := await self._listener.next():
            try:
                order = orders.order(line)
            except orders.UnreadableError:
                return "an order came that it does not know"
            match order:
                case Work():
                    self._secrets.update(order.secrets)
                    self._files.update(order.files)
                    self._running[order.id] = asyncio.create_task(self._work(order.id, order.task, place))
                case Cancel():
                    if order.id in self._running:
                        self._running[order.id].cancel()
                case Tick():
                    self._here()
                case Finish():
                    return None
                case Hello():
                    return "a second hello came"
        return "its controller is gone"

    async def _work(self, task_id: int, task: Task, place: "FarPlace") -> None:
        """The records of a task, or the failure that it was; as `run` does at home."""
        done = False
        try:
            async with aclosing(place.run(task_id, task)) as records:
                async for record in records:
                    done = done or isinstance(record, Done)
                    self._record(record)
        except NoRightsError as error:
            self._failed(task_id, task, "rights", str(error), error.advice)
        except HopscopeError as error:
            self._failed(task_id, task, "usage", str(error), error.advice)
        except Exception as error:  # noqa: BLE001 - as in run.py: a bug of ours costs one task
            self._failed(task_id, task, "bug", f"{type(error).__name__}: {error}", REPORT_IT)
        finally:
            self._running.pop(task_id, None)
            if not done:
                self._record(Done(task=task_id, at=self._clock.now(), complete=False))

    def _failed(self, task_id: int, task: Task, kind: FailureKind, why: str, advice: str) -> None:
        self._record(Failure(kind=kind, why=why, advice=advice, target=task.target, vantage=task.vantage, task=task_id))

    async def _shut(self, place: "FarPlace") -> None:
        """Cut off what runs, give everything back."""
        running = list(self._running.values())
        for work in running:
            work.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await place.close()

    def _here(self) -> None:
        self._say(orders.dump(Here(nonce=self._hello.nonce, at=self._clock.now())))

    def _record(self, record: Record) -> None:
        self._say(tape.dump(record))

    def _say(self, line: bytes) -> None:
        """Write a whole line. Once nobody reads, the work is over."""
        rest = memoryview(line)
        while rest and not self._mute:
            try:
                rest = rest[os.write(self._write, rest) :]
            except BlockingIOError:
                select.select((), (self._write,), ())
            except OSError:
                self._mute = True
                self._listener.end()


class FarPlace(LocalPlace):
    """This machine as the vantage of somebody elsewhere: secrets and files are the ones that were sent."""

    def __init__(self, name: str, secrets: Mapping[str, str], files: Mapping[str, bytes]) -> None:
        super().__init__(Vantage(name=name, kind="local"), secrets)
        self._files = files

    def read_file(self, path: str) -> bytes:
        """A file that came with a task. Raises OSError."""
        if path not in self._files:
            raise FileNotFoundError(errno.ENOENT, "it was not sent along", path)
        return self._files[path]
