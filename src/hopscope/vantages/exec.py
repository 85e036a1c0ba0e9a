"""A vantage behind a command of this machine that starts a program elsewhere: kubectl exec, docker exec, ip netns exec.

The command runs in a session of its own, so Ctrl-C does not reach it before its vantage is closed, and all of it is
ended then. Nothing secret is in its arguments.
"""

import asyncio
import os
import shlex
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress

from hopscope.errors import UsageError, VantageDownError
from hopscope.model.plan import Vantage
from hopscope.net.far import Ending, Far, Tail
from hopscope.vantages.pipe import PipePlace, agent_command

HELD_BYTES = 1 << 20
"""More than this is not read ahead; the command waits."""
PATIENCE_S = 2.0
LAST_WORDS_S = 0.5
STDIN, STDOUT, STDERR = 0, 1, 2


def open_exec(vantage: Vantage, environ: Mapping[str, str]) -> PipePlace:
    """The place where the setting `command` starts a program. Raises UsageError."""
    command = vantage.settings.get("command")
    if not isinstance(command, list) or not command:
        message = f'vantage "{vantage.name}" has no command'
        raise UsageError(message, 'write command = ["kubectl", "exec", "-i", "POD", "--"]')
    argv = [*command, *agent_command(vantage)]
    return PipePlace(vantage, environ, lambda: start(argv))


async def start(argv: Sequence[str]) -> Far:
    """Start a command. Raises VantageDownError when there is no such thing."""
    loop = asyncio.get_running_loop()
    try:
        _, child = await loop.subprocess_exec(_Child, *argv, start_new_session=True)
    except FileNotFoundError as error:
        message = f"there is no command {argv[0]} on this machine"
        raise VantageDownError(message, f"install {argv[0]}, or mend `command` of the vantage") from error
    except OSError as error:
        message = f"{argv[0]} cannot be started on this machine: {error.strerror}"
        raise VantageDownError(message, f"try it by hand: {shlex.join(argv)}") from error
    return child


class _Child(asyncio.SubprocessProtocol):
    """A running command; see `net.far.Far`."""

    transport: asyncio.SubprocessTransport

    def __init__(self) -> None:
        self._held = bytearray()
        self._paused = False
        self._tail = Tail()
        self._open = {STDOUT, STDERR}
        self._changed = asyncio.Event()
        self._exited = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It runs."""
        if isinstance(transport, asyncio.SubprocessTransport):
            self.transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Something came on standard output or error."""
        if fd != STDOUT:
            self._tail.add(data)
            return
        self._held += data
        self._changed.set()
        pipe = self.transport.get_pipe_transport(STDOUT)
        if len(self._held) > HELD_BYTES and not self._paused and isinstance(pipe, asyncio.ReadTransport):
            self._paused = True
            pipe.pause_reading()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """No more comes from there."""
        self._open.discard(fd)
        self._changed.set()

    def process_exited(self) -> None:
        """Its exit code is known."""
        self._exited.set()

    async def read(self) -> bytes:
        """The next bytes."""
        while not self._held and STDOUT in self._open:
            self._changed.clear()
            await self._changed.wait()
        data = bytes(self._held)
        self._held.clear()
        pipe = self.transport.get_pipe_transport(STDOUT)
        # Kept here: a pipe's own is_reading() came with Python 3.11.4.
        if self._paused and isinstance(pipe, asyncio.ReadTransport) and not pipe.is_closing():
            self._paused = False
            pipe.resume_reading()
        return data

    def write(self, data: bytes) -> None:
        """To its standard input, if that is still open."""
        pipe = self.transport.get_pipe_transport(STDIN)
        if isinstance(pipe, asyncio.WriteTransport) and not pipe.is_closing():
            pipe.write(data)

    def finish(self) -> None:
        """Close its standard input when all of it is written."""
        pipe = self.transport.get_pipe_transport(STDIN)
        if isinstance(pipe, asyncio.WriteTransport) and not pipe.is_closing():
            pipe.write_eof()

    async def ended(self) -> Ending:
        """Its exit code, and what it said last on standard error."""
        await self._exited.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                while STDERR in self._open:
                    self._changed.clear()
                    await self._changed.wait()
        return Ending(self.transport.get_returncode(), self._tail.text())

    async def kill(self) -> None:
        """Ask it and its children to end, then make them."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._exited.is_set():
                break
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.transport.get_pid(), number)
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_S):
                    await self._exited.wait()
        with suppress(PermissionError):
            self.transport.close()
