"""The only door to asyncssh: one connection, one program at its other end, and every way that can fail put in words.

Host keys are always checked: against a pin if there is one, else against the user's known hosts, whatever ssh_config
says of not checking. Nothing is forwarded, nothing is asked, no environment is sent. Keys come from `key_file`, the
user's defaults, ssh_config or the agent. Where there is a jump host, it is held to the same rules.
"""

import asyncio
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import asyncssh
from msgspec import Struct

from hopscope.errors import VantageDownError
from hopscope.net.far import Ending, Far, Tail

CONNECT_S = 10.0
KEEPALIVE_S = 15.0
PIECE_BYTES = 1 << 16
PATIENCE_S = 2.0
LAST_WORDS_S = 0.5
SSH_PORT = 22
USUAL_FILES = ("~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts")
BY_HAND = "see what `ssh -o BatchMode=yes` says to the same host"
STOP = "do not go on before you know why: it may be somebody in between"

logging.getLogger("asyncssh").addHandler(logging.NullHandler())


class Door(Struct, frozen=True, kw_only=True):
    """Where to connect, and as whom; None is for ssh_config and its defaults to say."""

    host: str
    port: int | None = None
    user: str | None = None
    key_file: str | None = None
    known_hosts: str | None = None
    pin: str | None = None
    jump: str | None = None
    is_gate: bool = False


async def start(door: Door, command: str) -> Far:
    """Connect and start a command. Raises VantageDownError."""
    connections: list[asyncssh.SSHClientConnection] = []
    try:
        guard = await _connect(door, connections)
        with guard.in_words():
            process: asyncssh.SSHClientProcess[bytes] = await connections[-1].create_process(
                command, encoding=None, request_pty=False, env={}, send_env=None, x11_forwarding=False
            )
    except BaseException:
        await _close(connections)
        raise
    return _Program(process, connections, guard)


async def _connect(door: Door, connections: list[asyncssh.SSHClientConnection]) -> "_Guard":
    """Append the connection, after those of the jump hosts before it. Raises VantageDownError."""
    guard = _Guard(door)
    with guard.in_words():
        options = _options(door)
        guard.settle(options.username, options.port, _known(door, options.known_hosts))
    jump = door.jump if door.jump is not None else options.tunnel
    for gate in jump.split(",") if isinstance(jump, str) and not door.is_gate else ():
        await _connect(_gate(door, gate), connections)
    with guard.in_words():
        connection = await asyncssh.connect(
            door.host,
            options=options,
            known_hosts=_nobody if door.pin is not None else guard.known,
            tunnel=connections[-1] if connections else None,
            client_factory=lambda: guard,
        )
    connections.append(connection)
    return guard


def _options(door: Door) -> asyncssh.SSHClientConnectionOptions:
    """ssh_config, with what the vantage says instead. Raises ValueError, OSError."""
    return asyncssh.SSHClientConnectionOptions(
        host=door.host,
        port=door.port if door.port is not None else (),
        username=door.user if door.user is not None else (),
        client_keys=[str(Path(door.key_file).expanduser())] if door.key_file is not None else (),
        preferred_auth=["publickey"],
        password_auth=False,
        kbdint_auth=False,
        gss_kex=False,
        gss_auth=False,
        host_based_auth=False,
        agent_forwarding=False,
        x11_forwarding=False,
        connect_timeout=CONNECT_S,
        keepalive_interval=KEEPALIVE_S,
    )


def _gate(door: Door, text: str) -> Door:
    """A jump host, from `user@host:port`."""
    user, _, place = text.strip().rpartition("@")
    host, colon, port = place.rpartition(":")
    numbered = bool(colon) and port.isdecimal() and not host.endswith(":")
    return Door(
        host=(host if numbered else place).strip("[]"),
        port=int(port) if numbered else None,
        user=user or None,
        key_file=door.key_file,
        known_hosts=door.known_hosts,
        is_gate=True,
    )


def _known(door: Door, configured: object) -> asyncssh.SSHKnownHosts:
    """The known hosts of the vantage, of ssh_config, or the usual ones. Raises ValueError, OSError."""
    if door.known_hosts is not None:
        return asyncssh.read_known_hosts([str(Path(door.known_hosts).expanduser())])
    named = [str(file) for file in configured] if isinstance(configured, list) else []
    files = [Path(file).expanduser() for file in named or USUAL_FILES]
    return asyncssh.read_known_hosts([str(file) for file in files if os.access(file, os.R_OK)])


def _nobody(host: str, addr: str, port: int | None) -> tuple[list[str], list[str], list[str]]:
    """Known hosts that know nobody: the pin alone decides."""
    return [], [], []


class _Guard(asyncssh.SSHClient):
    """Looks at the host key that is shown, and words what goes wrong."""

    def __init__(self, door: Door) -> None:
        self.known = asyncssh.SSHKnownHosts()
        self.lost: str = ""
        self._door = door
        self._where = door.host
        self._user = door.user or "?"
        self._shown = ""
        self._expected: list[str] = []

    def settle(self, user: str, port: int, known: asyncssh.SSHKnownHosts) -> None:
        """What ssh_config made of the vantage."""
        self._user, self.known = user, known
        self._where = self._door.host if port == SSH_PORT else f"{self._door.host} port {port}"

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Asked for a key that is not among the known ones of this host."""
        self._shown = key.get_fingerprint()
        if self._door.pin is not None:
            self._expected = [self._door.pin]
            return self._shown == self._door.pin.rstrip("=")
        keys = asyncssh.match_known_hosts(self.known, host, addr, port if port != SSH_PORT else None)[0]
        self._expected = list(dict.fromkeys(known.get_fingerprint() for known in keys))
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Keep the reason."""
        self.lost = str(exc) if exc is not None else ""

    @contextmanager
    def in_words(self) -> Iterator[None]:
        """Whatever goes wrong inside is a VantageDownError."""
        try:
            yield
        except asyncssh.HostKeyNotVerifiable as error:
            raise self._wrong_key(error.reason) from None
        except asyncssh.PermissionDenied:
            why = f"{self._where} does not let user {self._user} in: it accepts none of our keys"
            advice = "set `user` or `key_file` of the vantage, or load the key: ssh-add"
            raise VantageDownError(why, advice) from None
        except asyncssh.KeyExchangeFailed as error:
            raise VantageDownError(f"{self._where} and we agree on no keys: {error.reason}", STOP) from None
        except asyncssh.ChannelOpenError as error:
            why = f"{self._where} does not open what we ask for: {error.reason}"
            raise VantageDownError(why, "allow that user to run commands there, and a jump host to forward") from None
        except asyncssh.Error as error:
            raise VantageDownError(f"no SSH with {self._where}: {error.reason}", BY_HAND) from None
        except TimeoutError:
            why = f"no SSH answer from {self._where} within {CONNECT_S:g} s"
            raise VantageDownError(why, "see that it is up, and that the port is open from here") from None
        except OSError as error:
            raise self._unreachable(error) from None
        except ValueError as error:
            raise VantageDownError(f"the SSH settings for {self._where} cannot be used: {error}", BY_HAND) from None

    def _unreachable(self, error: OSError) -> VantageDownError:
        if error.filename is not None:
            return VantageDownError(f"cannot read {error.filename}: {error.strerror}", "name a file that is readable")
        reason = os.strerror(error.errno) if error.errno is not None and error.errno > 0 else error.strerror
        if isinstance(error, ConnectionResetError | BrokenPipeError):
            return VantageDownError(f"no SSH with {self._where}: {reason}", BY_HAND)
        return VantageDownError(f"cannot reach {self._where}: {reason}", "see that `host` and `port` are right")

    def _wrong_key(self, reason: str) -> VantageDownError:
        """A key that is unknown has a remedy; one that has changed is a hard stop."""
        pin = f'pin = "{self._shown}"' if not self._door.is_gate else "the line that ssh-keyscan prints to known_hosts"
        if self._shown and self._expected:
            known = "pinned" if self._door.pin is not None else "known"
            why = f"the host key of {self._where} has changed: {known} is {' or '.join(self._expected)}, it shows"
            on_purpose = f"if it was changed on purpose, remove the old key (ssh-keygen -R) and write {pin}"
            return VantageDownError(f"{why} {self._shown}", f"{STOP}; {on_purpose}")
        if self._shown:
            why = f"the host key of {self._where} is not known here: it shows {self._shown}"
            compare = "compare it on that host (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub)"
            return VantageDownError(why, f"{compare}; if it is the same, write {pin} for the vantage")
        return VantageDownError(f"the host key of {self._where} is not to be trusted: {reason}", STOP)


class _Program:
    """A program at the other end; see `net.far.Far`."""

    def __init__(
        self,
        process: asyncssh.SSHClientProcess[bytes],
        connections: list[asyncssh.SSHClientConnection],
        guard: _Guard,
    ) -> None:
        self._process = process
        self._connections = connections
        self._guard = guard
        self._tail = Tail()
        self._hearing = asyncio.create_task(self._hear())

    async def _hear(self) -> None:
        while data := await _piece(self._process.stderr):
            self._tail.add(data)

    async def read(self) -> bytes:
        """The next bytes; nothing when the connection is over, however that came."""
        return await _piece(self._process.stdout)

    def write(self, data: bytes) -> None:
        """To its standard input, if that is still open."""
        with suppress(OSError):
            self._process.stdin.write(data)

    def finish(self) -> None:
        """Its standard input ends here."""
        with suppress(OSError):
            self._process.stdin.write_eof()

    async def ended(self) -> Ending:
        """Its exit code; none when the connection ended before it."""
        await self._process.wait_closed()
        await asyncio.wait((self._hearing,), timeout=LAST_WORDS_S)
        code = self._process.returncode
        return Ending(code, self._tail.text() or (self._guard.lost if code is None else ""))

    async def kill(self) -> None:
        """Close the connection: its server ends what it started, and so does the agent when it hears no more."""
        self._process.close()
        await _close(self._connections)
        self._hearing.cancel()
        await asyncio.gather(self._hearing, return_exceptions=True)


async def _piece(stream: asyncssh.SSHReader[bytes]) -> bytes:
    try:
        return await stream.read(PIECE_BYTES)
    except (asyncssh.Error, OSError):
        return b""


async def _close(connections: list[asyncssh.SSHClientConnection]) -> None:
    """The last one first: it runs through the others."""
    for connection in reversed(connections):
        connection.close()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await connection.wait_closed()
        except TimeoutError:
            connection.abort()
