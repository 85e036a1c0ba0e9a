"""A vantage behind SSH, against a server in this process: who is trusted, who is let in, what is never sent along."""

import asyncio
import os
import shlex
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import asyncssh
import pytest

from hopscope.errors import UsageError, VantageDownError
from hopscope.model.limits import SECOND
from hopscope.model.plan import Vantage
from hopscope.model.record import Done, Probe, Record
from hopscope.vantages.ssh import open_ssh
from net.servers import serve, silent
from vantages.far import HERE, HOPSCOPE, SOURCE, ping, records

pytestmark = pytest.mark.loopback

USER = "measurer"
AGENT = [*HERE, *HOPSCOPE]
Setting = str | int | list[str]


@dataclass
class Asked:
    """What a client wanted of the server."""

    commands: list[str] = field(default_factory=list)
    environments: list[dict[str, str]] = field(default_factory=list)
    terminals: list[str | None] = field(default_factory=list)
    agents: list[str | None] = field(default_factory=list)
    connections: list[asyncssh.SSHServerConnection] = field(default_factory=list)
    over: list[asyncio.Event] = field(default_factory=list)


@dataclass
class Server:
    """Where it listens, and its key."""

    port: int
    key: asyncssh.SSHKey
    asked: Asked


class Letting(asyncssh.SSHServer):
    """Lets one user in, by the key in a file, and forwards."""

    def __init__(self, connections: list[asyncssh.SSHServerConnection]) -> None:
        self._connections = connections

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connections.append(conn)

    def begin_auth(self, username: str) -> bool:
        return True

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return True


async def bridge(process: "asyncssh.SSHServerProcess[bytes]") -> None:
    """Run a command in a shell, as sshd does."""
    child = await asyncio.create_subprocess_shell(
        process.command or "", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    telling = asyncio.create_task(pump(process.stdin, child.stdin, last=True))
    saying = [
        asyncio.create_task(pump(child.stdout, process.stdout, last=False)),
        asyncio.create_task(pump(child.stderr, process.stderr, last=False)),
    ]
    ending = asyncio.create_task(child.wait())
    await asyncio.wait((telling, ending), return_when=asyncio.FIRST_COMPLETED)
    await asyncio.wait((ending,), timeout=1)
    if not ending.done():
        os.killpg(child.pid, signal.SIGKILL)
    await asyncio.wait(saying, timeout=1)
    for task in (telling, *saying):
        task.cancel()
    await asyncio.gather(telling, *saying, return_exceptions=True)
    await asyncio.gather(child.stdout.read(), child.stderr.read())
    code = await ending
    if code < 0:
        process.exit_with_signal(signal.Signals(-code).name.removeprefix("SIG"))
    else:
        process.exit(code)


class Reading(Protocol):
    async def read(self, n: int = -1, /) -> bytes: ...


class Writing(Protocol):
    def write(self, data: bytes, /) -> None: ...
    def write_eof(self) -> None: ...
    async def drain(self) -> None: ...


async def pump(source: Reading, sink: Writing, *, last: bool) -> None:
    with suppress(OSError, asyncssh.Error):
        while data := await source.read(1 << 16):
            sink.write(data)
            await sink.drain()
        if last:
            sink.write_eof()


@asynccontextmanager
async def server(home: Path, *, key: asyncssh.SSHKey | None = None) -> AsyncIterator[Server]:
    """Listens on a port of its own; runs what it is told in a shell."""
    host_key = key if key is not None else asyncssh.generate_private_key("ssh-ed25519")
    asked = Asked()

    async def run(process: "asyncssh.SSHServerProcess[bytes]") -> None:
        asked.commands.append(process.command or "")
        asked.environments.append(dict(process.env))
        asked.terminals.append(process.term_type)
        asked.agents.append(process.channel.get_agent_path())
        over = asyncio.Event()
        asked.over.append(over)
        try:
            await bridge(process)
        finally:
            over.set()

    listener = await asyncssh.listen(
        "127.0.0.1", 0, server_factory=lambda: Letting(asked.connections), server_host_keys=[host_key],
        process_factory=run, encoding=None, authorized_client_keys=str(home / "authorized_keys"),
    )  # fmt: skip
    try:
        yield Server(listener.get_port(), host_key, asked)
    finally:
        listener.close()
        for connection in asked.connections:
            connection.abort()
        await asyncio.gather(*(over.wait() for over in asked.over))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a key that the server accepts, and a known_hosts that knows nobody."""
    (tmp_path / ".ssh").mkdir(mode=0o700)
    key = asyncssh.generate_private_key("ssh-ed25519")
    key.write_private_key(tmp_path / ".ssh" / "id_ed25519")
    key.write_public_key(tmp_path / "authorized_keys")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(SOURCE))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return tmp_path


def know(home: Path, port: int, key: asyncssh.SSHKey) -> None:
    line = key.export_public_key().decode()
    with (home / ".ssh" / "known_hosts").open("a") as file:
        file.write(f"[127.0.0.1]:{port} {line}")


def vantage(port: int, *, deadline_s: float = 20, **settings: Setting) -> Vantage:
    usual: dict[str, str | int | float | bool | list[str]] = {
        "host": "127.0.0.1", "port": port, "user": USER, "hopscope": AGENT,
    }  # fmt: skip
    return Vantage(name="far", kind="ssh", deadline_ns=int(deadline_s * SECOND), settings={**usual, **settings})


async def measure(where: Vantage) -> list[Record]:
    place = open_ssh(where, {})
    try:
        return await records(place, 7, ping())
    finally:
        await place.close()


def against(
    home: Path, make: Callable[[Server], Vantage], *, known: bool = True, key: asyncssh.SSHKey | None = None
) -> tuple[list[Record], Asked]:
    """What a vantage measures through a server, and what that was asked for."""

    async def main() -> tuple[list[Record], Asked]:
        async with server(home, key=key) as running:
            if known:
                know(home, running.port, running.key)
            return await measure(make(running)), running.asked

    return asyncio.run(main())


def refused(home: Path, make: Callable[[Server], Vantage], *, known: bool = True) -> VantageDownError:
    with pytest.raises(VantageDownError) as caught:
        against(home, make, known=known)
    assert "\n" not in str(caught.value)
    assert caught.value.advice
    return caught.value


def is_whole(found: list[Record]) -> bool:
    *probes, done = found
    return len(probes) == 5 and all(isinstance(probe, Probe) for probe in probes) and isinstance(done, Done)


def test_tasks_run_at_the_other_end(home: Path) -> None:
    found, asked = against(home, lambda server: vantage(server.port))
    assert is_whole(found)
    assert asked.commands == [shlex.join([*AGENT, "agent"])]


def test_nothing_is_sent_along(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_KEY", "sk-planted-1")
    (home / ".ssh" / "config").write_text(
        "Host *\n  ForwardAgent yes\n  ForwardX11 yes\n  RequestTTY force\n  SendEnv *\n"
    )
    found, asked = against(home, lambda server: vantage(server.port))
    assert is_whole(found)
    assert asked.environments == [{}]
    assert asked.terminals == [None]
    assert asked.agents == [None]


def test_an_unknown_host_is_named_with_the_pin_that_would_trust_it(home: Path) -> None:
    shown: list[str] = []

    def make(server: Server) -> Vantage:
        shown.append(server.key.get_fingerprint())
        return vantage(server.port)

    error = refused(home, make, known=False)
    assert "is not known here" in str(error)
    assert shown[0] in str(error)
    assert f'pin = "{shown[0]}"' in error.advice
    assert "ssh-keygen -lf" in error.advice


@pytest.mark.parametrize(
    "config", ["StrictHostKeyChecking no", "UserKnownHostsFile none", "UserKnownHostsFile /dev/null"]
)
def test_ssh_config_cannot_turn_the_check_off(home: Path, config: str) -> None:
    (home / ".ssh" / "config").write_text(f"Host *\n  {config}\n")
    assert "is not known here" in str(refused(home, lambda server: vantage(server.port), known=False))


def test_a_changed_key_is_a_hard_stop(home: Path) -> None:
    old = asyncssh.generate_private_key("ssh-ed25519")
    shown: list[str] = []

    def make(server: Server) -> Vantage:
        know(home, server.port, old)
        shown.append(server.key.get_fingerprint())
        return vantage(server.port)

    error = refused(home, make, known=False)
    assert "has changed" in str(error)
    assert old.get_fingerprint() in str(error)
    assert shown[0] in str(error)
    assert "do not go on" in error.advice


def test_a_key_of_another_kind_is_a_hard_stop_too(home: Path) -> None:
    def make(server: Server) -> Vantage:
        know(home, server.port, asyncssh.generate_private_key("ecdsa-sha2-nistp256"))
        return vantage(server.port)

    error = refused(home, make, known=False)
    assert "do not go on" in error.advice


def test_the_pin_decides_alone(home: Path) -> None:
    found, _ = against(home, lambda server: vantage(server.port, pin=server.key.get_fingerprint()), known=False)
    assert is_whole(found)
    other = asyncssh.generate_private_key("ssh-ed25519").get_fingerprint()
    error = refused(home, lambda server: vantage(server.port, pin=other), known=True)
    assert "has changed" in str(error)
    assert f"pinned is {other}" in str(error)


def test_known_hosts_of_the_vantage(home: Path) -> None:
    def make(server: Server) -> Vantage:
        know(home, server.port, server.key)
        (home / ".ssh" / "known_hosts").rename(home / "mine")
        return vantage(server.port, known_hosts="~/mine")

    found, _ = against(home, make, known=False)
    assert is_whole(found)
    error = refused(home, lambda server: vantage(server.port, known_hosts="~/nowhere"))
    assert str(error).startswith("cannot read")


def test_a_user_who_is_not_let_in(home: Path) -> None:
    asyncssh.generate_private_key("ssh-ed25519").write_public_key(home / "authorized_keys")
    error = refused(home, lambda server: vantage(server.port))
    assert f"does not let user {USER} in" in str(error)
    assert "key_file" in error.advice


def test_a_key_file(home: Path) -> None:
    (home / ".ssh" / "id_ed25519").rename(home / "other_key")
    found, _ = against(home, lambda server: vantage(server.port, key_file="~/other_key"))
    assert is_whole(found)
    assert "cannot read" in str(refused(home, lambda server: vantage(server.port, key_file="~/no_key")))


def test_a_key_with_a_passphrase_asks_nobody(home: Path) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")
    (home / "locked").write_bytes(key.export_private_key("pkcs8-pem", passphrase="secret words"))
    error = refused(home, lambda server: vantage(server.port, key_file="~/locked"))
    assert "cannot be used" in str(error)
    assert "passphrase" in str(error).lower()


def test_ssh_config_names_the_host(home: Path) -> None:
    def make(server: Server) -> Vantage:
        (home / ".ssh" / "config").write_text(
            f"Host gpu\n  HostName 127.0.0.1\n  Port {server.port}\n  User {USER}\n  IdentityFile {home}/other_key\n"
        )
        settings: dict[str, str | int | float | bool | list[str]] = {"host": "gpu", "hopscope": AGENT}
        return Vantage(name="far", kind="ssh", deadline_ns=20 * SECOND, settings=settings)

    (home / ".ssh" / "id_ed25519").rename(home / "other_key")
    found, _ = against(home, make)
    assert is_whole(found)


def test_a_jump_host_is_held_to_the_same_rules(home: Path) -> None:
    found, _ = against(home, lambda server: vantage(server.port, jump=f"{USER}@127.0.0.1:{server.port}"))
    assert is_whole(found)

    def pinned(server: Server) -> Vantage:
        return vantage(server.port, jump=f"127.0.0.1:{server.port}", pin=server.key.get_fingerprint())

    (home / ".ssh" / "known_hosts").unlink()
    error = refused(home, pinned, known=False)
    assert "is not known here" in str(error)
    assert "ssh-keyscan" in error.advice


@pytest.mark.parametrize(
    ("hopscope", "why"),
    [
        (["no-such-hopscope"], "hopscope is not installed there"),
        (["sh", "-c", "echo out of order >&2; exit 9"], "ended with code 9: out of order"),
        (["sh", "-c", "sleep 60"], "no hopscope answered there within its deadline of 2 s"),
        (["sh", "-c", "kill -9 $$"], "killed"),
        (["head", "-c", "200000000", "/dev/zero"], ""),
    ],
)
def test_a_command_that_is_no_agent(home: Path, hopscope: list[str], why: str) -> None:
    error = refused(home, lambda server: vantage(server.port, hopscope=hopscope, deadline_s=2))
    assert why in str(error)


def test_noise_of_a_login_is_read_over(home: Path) -> None:
    noisy = ["sh", "-c", 'echo "You have mail."; printf "$ "; exec "$@"', "sh", *AGENT]
    found, _ = against(home, lambda server: vantage(server.port, hopscope=noisy))
    assert is_whole(found)


def test_a_connection_that_breaks_ends_every_task(home: Path) -> None:
    async def main() -> str:
        async with server(home) as running:
            know(home, running.port, running.key)
            place = open_ssh(vantage(running.port), {})
            work = asyncio.create_task(records(place, 7, ping(count=2000)))
            await place.link()
            await asyncio.sleep(0.1)
            running.asked.connections[0].abort()
            with pytest.raises(VantageDownError) as caught:
                await work
            await place.close()
            return str(caught.value)

    assert "the connection ended" in asyncio.run(main())


def test_where_nobody_listens() -> None:
    with pytest.raises(VantageDownError, match=r"cannot reach 127.0.0.1 port 1: Connection refused"):
        asyncio.run(measure(vantage(1)))
    with pytest.raises(VantageDownError, match=r"cannot reach nowhere.invalid"):
        asyncio.run(measure(vantage(1, host="nowhere.invalid")))


def test_what_is_no_ssh_server() -> None:
    answer = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    with serve(lambda conn: conn.sendall(answer)) as other, pytest.raises(VantageDownError, match="no SSH with"):
        asyncio.run(measure(vantage(other.port, deadline_s=5)))
    with (
        serve(silent) as other,
        pytest.raises(VantageDownError, match="no hopscope answered there within its deadline of 1 s"),
    ):
        asyncio.run(measure(vantage(other.port, deadline_s=1)))


@pytest.mark.slow
def test_a_server_that_says_nothing_is_given_ten_seconds() -> None:
    with serve(silent) as other, pytest.raises(VantageDownError, match=r"no SSH answer from 127.0.0.1 port"):
        asyncio.run(measure(vantage(other.port, deadline_s=60)))


def test_a_vantage_without_a_host_is_refused() -> None:
    with pytest.raises(UsageError, match="has no host"):
        open_ssh(Vantage(name="far", kind="ssh"), {})
