"""A vantage at the far end of two byte streams: tasks out, tape in. Kinds of vantage differ in how they start it only.

The agent is started when the first task comes, once, and shared by all tasks. It has one deadline; at that, or when
anything is wrong with it, every task of this vantage ends with the same VantageDownError, and no other vantage's does.
"""

import asyncio
import errno
import shlex
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path

from hopscope.errors import UsageError, VantageDownError
from hopscope.model.limits import SECOND
from hopscope.model.plan import HttpTask, StreamTask, Task, Vantage
from hopscope.model.record import Done, Failure, Record
from hopscope.net.far import Far
from hopscope.vantages.endings import no_hello, too_late
from hopscope.vantages.link import Link, Pace
from hopscope.vantages.orders import Work

DEADLINE_NS = 3600 * SECOND
MAX_FILE_BYTES = 8 << 20
CLOCK_WARNING_NS = 2 * SECOND

Dial = Callable[[], Awaitable[Far]]
"""Starts the agent elsewhere. Raises VantageDownError."""


class PipePlace:
    """Runs tasks where its agent is; see `vantages.Place`."""

    def __init__(self, vantage: Vantage, environ: Mapping[str, str], dial: Dial, pace: Pace | None = None) -> None:
        self.name = vantage.name
        self._environ = environ
        self._dial = dial
        self._pace = pace if pace is not None else Pace()
        self._deadline_ns = vantage.deadline_ns or DEADLINE_NS
        self._link: asyncio.Task[Link] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._over_at = time.monotonic_ns() + self._deadline_ns
        self._shipped: set[str] = set()

    async def link(self) -> Link:
        """The agent, started if it was not. Raises VantageDownError, the same one each time."""
        if self._link is None:
            self._link = asyncio.create_task(self._open())
        return await asyncio.shield(self._link)

    @property
    def clock_offset_ns(self) -> int | None:
        """Their clock − ours, as far as it is known."""
        link = self.opened()
        return link.clock_offset_ns if link is not None else None

    async def run(self, task_id: int, task: Task) -> AsyncGenerator[Record, None]:
        """Run one task there. Raises VantageDownError."""
        link = await self.link()
        try:
            files = self._files(task)
        except OSError as error:
            why = f"cannot read {error.filename}: {error.strerror}"
            advice = "Name a file that is readable."
            yield Failure(kind="rights", why=why, advice=advice, target=task.target, vantage=task.vantage, task=task_id)
            yield Done(task=task_id, at=time.time_ns())
            return
        inbox = link.begin(Work(id=task_id, task=task, secrets=self._secrets(task), files=files))
        self._shipped |= files.keys()
        try:
            while True:
                item = await inbox.get()
                if isinstance(item, VantageDownError):
                    raise item
                yield item
                if isinstance(item, Done):
                    return
        finally:
            link.forget(task_id)

    async def close(self) -> None:
        """End the agent."""
        if self._timer is not None:
            self._timer.cancel()
        if self._link is None:
            return
        if not self._link.done():
            self._link.cancel()
        with suppress(VantageDownError, asyncio.CancelledError):
            await (await self._link).close()

    def remarks(self) -> tuple[str, ...]:
        """What a person is to know of a vantage that works: another version, a clock that is wrong."""
        from hopscope import __version__

        link = self.opened()
        if link is None:
            return ()
        told = []
        if link.tool_version != __version__:
            told.append(f"hopscope {link.tool_version} there, {__version__} here")
        if link.clock_offset_ns is not None and abs(link.clock_offset_ns) > CLOCK_WARNING_NS:
            told.append(f"its clock is {link.clock_offset_ns / SECOND:+.1f} s from ours; set it by NTP")
        return tuple(told)

    def opened(self) -> Link | None:
        """The agent, if it is there."""
        task = self._link
        if task is None or not task.done() or task.cancelled() or task.exception() is not None:
            return None
        return task.result()

    async def _open(self) -> Link:
        """Start the agent and wait for its hello; what was started and does not answer is ended."""
        left_s = max(0.0, (self._over_at - time.monotonic_ns()) / SECOND)
        limit_s = min(self._pace.hello_s, left_s)
        link: Link | None = None
        try:
            async with asyncio.timeout(limit_s):
                link = Link(await self._dial(), self.name, self._pace)
                await link.greet(self._over_at - time.monotonic_ns())
        except TimeoutError:
            deadline_s = self._deadline_ns / SECOND if left_s < self._pace.hello_s else None
            raise no_hello(limit_s, link.heard() if link is not None else "", deadline_s=deadline_s) from None
        finally:
            if link is not None and link.clock_offset_ns is None:
                await link.close()
        late = too_late(self._deadline_ns / SECOND)
        left_s = (self._over_at - time.monotonic_ns()) / SECOND
        self._timer = asyncio.get_running_loop().call_later(left_s, link.fail, late)
        return link

    def _secrets(self, task: Task) -> dict[str, str]:
        """The variables that a task names, where they are set; the probe says which one is not."""
        if not isinstance(task, HttpTask | StreamTask):
            return {}
        names = [variable for _, variable in task.headers_env]
        names += [task.api_key_env] if task.api_key_env is not None else []
        return {name: self._environ[name] for name in names if name in self._environ}

    def _files(self, task: Task) -> dict[str, bytes]:
        """The files that a task names and that are not there yet. Raises OSError."""
        if not isinstance(task, HttpTask | StreamTask):
            return {}
        body = task.body_file if isinstance(task, HttpTask) else None
        wanted = {path for path in (task.ca_file, body) if path is not None} - self._shipped
        return {path: _content(path) for path in sorted(wanted)}


def _content(path: str) -> bytes:
    with Path(path).open("rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {MAX_FILE_BYTES >> 20} MiB, too much for a vantage", path)
    return content


def agent_command(vantage: Vantage) -> list[str]:
    """The words that start an agent where hopscope is, by the setting `hopscope`. Raises UsageError."""
    match vantage.settings.get("hopscope", "hopscope"):
        case str() as text:
            try:
                words = shlex.split(text)
            except ValueError:
                words = []
        case list() as given:
            words = given
        case _:
            words = []
    if not words:
        message = f'`hopscope` of vantage "{vantage.name}" is no command'
        raise UsageError(message, 'write hopscope = "/path/to/hopscope" or "python3 -m hopscope"')
    return [*words, "agent"]
