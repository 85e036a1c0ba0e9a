"""The door to a lab: `with Lab(topology) as lab:` and the network is there; leave the block and nothing of it is left.

The rule: whatever a lab starts, it ends. Its helper process (lab/relay.py) ends it too if this process dies by a
signal that nobody can catch, and the next lab's start sweeps what even that missed. Labs of several processes and
threads never meet.

A lab needs root, or a process started by `namespaces.reexec_argv` as any other user.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from select import select
from types import TracebackType
from typing import IO, Self

import msgspec

from hopscope.lab import namespaces
from hopscope.lab.certificates import make_authority, make_certificate
from hopscope.lab.layout import WIRES, lay_out
from hopscope.lab.orders import Ask, Change, Config, Counts, Setup, Truth, Wire
from hopscope.lab.topology import Host, Impairment, Inference, LabError, Topology

ANSWER_S = 10.0  # for a helper to start or obey; it takes milliseconds on an idle machine
PATIENCE_S = 2.0  # between a polite end and SIGKILL
SOURCE_FOLDER = Path(__file__).parents[2]


class Lab:
    """A running lab. Methods raise LabError for a node that is not there, or before the block is entered."""

    def __init__(self, topology: Topology, *, seed: int = 0) -> None:
        self.topology = topology
        self.layout = lay_out(topology)
        self.seed = seed
        self.name = namespaces.new_name()
        self.folder = namespaces.folder_path(self.name)
        self._relay: subprocess.Popen[bytes] | None = None
        self._children: list[subprocess.Popen[bytes]] = []
        self._one_order = threading.Lock()

    def __enter__(self) -> Self:
        """Builds everything; returns when every server listens. Raises LabError when the machine does not let it."""
        if namespaces.rights() != "root":
            raise LabError(
                "a lab needs root or a user namespace",
                "; ".join(namespaces.missing()) or "Start this program again by namespaces.reexec_argv.",
            )
        namespaces.sweep_dead()
        try:
            self.folder.mkdir(mode=0o755)
            interfaces = namespaces.create(self.name, self.layout)
            self._start_relay(interfaces)
            namespaces.move(self.name, self.layout)
            self._start_servers()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends everything."""
        self._end()

    @property
    def ca_file(self) -> Path:
        """The certificate of the lab's authority; LabError when no server speaks TLS."""
        path = self.folder / "ca.pem"
        if not any(server.tls for _, server in self._servers()):
            raise LabError("this lab has no authority", "Give a server of the topology `tls`.")
        return path

    def address(self, node: str, *, seen_from: str | None = None) -> str:
        """The node's address on its first link, or the one it answers from to `seen_from`."""
        return self.layout.address(node, seen_from=seen_from)

    def argv(self, node: str, argv: Sequence[str]) -> list[str]:
        """The command that runs `argv` inside a node."""
        self.layout.node(node)
        return ["ip", "netns", "exec", namespaces.namespace(self.name, node), *argv]

    def exec(
        self,
        node: str,
        argv: Sequence[str],
        *,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout_s: float | None = None,
        check: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command inside a node to its end and keeps what it says.

        Raises subprocess.TimeoutExpired, and CalledProcessError with `check`, as subprocess.run does.
        """
        return subprocess.run(
            self.argv(node, argv),
            input=stdin,
            capture_output=True,
            text=True,
            env=env,
            cwd=cwd,
            timeout=timeout_s,
            check=check,
        )

    def start(
        self,
        node: str,
        argv: Sequence[str],
        *,
        stdin: int | IO[bytes] = subprocess.DEVNULL,
        stdout: int | IO[bytes] | None = None,
        stderr: int | IO[bytes] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.Popen[bytes]:
        """Starts a command inside a node, in a session of its own; the lab's end is its end."""
        child = subprocess.Popen(
            self.argv(node, argv),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
        self._children.append(child)
        return child

    def change(self, sender: str, receiver: str, impairment: Impairment) -> None:
        """From the next frame on, does this to frames from sender to receiver, two neighbours.

        Raises LabError when their link is a plain one: give it an impairment or `adjustable` in the topology.
        """
        link, forward = self._direction(sender, receiver)
        self._order(Change(link=link, forward=forward, impairment=impairment))

    def counts(self, sender: str, receiver: str) -> Counts:
        """The truth about the frames from sender to receiver so far; LabError for a plain link."""
        link, forward = self._direction(sender, receiver)
        return self._order(Ask(link=link, forward=forward))

    def truth(self, host: str, port: int) -> tuple[Truth, ...]:
        """The requests that the server on this port has finished so far, in the order of their ends."""
        path = self._truth_path(host, port)
        return tuple(msgspec.json.decode(line, type=Truth) for line in path.read_bytes().splitlines())

    def _direction(self, sender: str, receiver: str) -> tuple[int, bool]:
        index = self.layout.link(sender, receiver)
        link = self.topology.links[index]
        if not link.relayed:
            raise LabError(f"the link {sender} to {receiver} is a plain one", "Make it `adjustable` in the topology.")
        return index, link.a == sender

    def _order(self, order: Setup | Change | Ask) -> Counts:
        relay = self._relay
        if relay is None or relay.stdin is None:
            raise LabError("the lab is not running", "Use it inside its `with` block.")
        with self._one_order:
            try:
                relay.stdin.write(msgspec.json.encode(order) + b"\n")
            except BrokenPipeError as error:
                raise LabError("the lab's relay has ended", self._log("relay")) from error
            return msgspec.json.decode(self._answer(relay, "relay"), type=Counts)

    def _answer(self, helper: subprocess.Popen[bytes], name: str) -> bytes:
        """One line from a helper; unbuffered, so that select tells the truth about it."""
        if helper.stdout is None:
            raise LabError(f"{name} has no output", "This is a bug of the lab.")
        line, deadline = b"", time.monotonic() + ANSWER_S
        while not line.endswith(b"\n"):
            ready, _, _ = select([helper.stdout], (), (), max(0.0, deadline - time.monotonic()))
            piece = os.read(helper.stdout.fileno(), 1 << 16) if ready else b""
            if not piece:
                raise LabError(f"{name} did not answer within {ANSWER_S:.0f} s or ended", self._log(name))
            line += piece
        return line

    def _log(self, name: str) -> str:
        try:
            return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return ""

    def _start_helper(self, node: str, name: str, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(filter(None, (str(SOURCE_FOLDER), os.environ.get("PYTHONPATH", ""))))
        argv = ["ip", "netns", "exec", namespaces.namespace(self.name, node)]
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [*argv, sys.executable, "-P", "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,
                bufsize=0,
            )

    def _start_relay(self, interfaces: tuple[str, ...]) -> None:
        self._relay = self._start_helper(WIRES, "relay", "hopscope.lab.relay")
        wires = tuple(
            Wire(
                link=index,
                a=namespaces.wire_interface(index, "a"),
                b=namespaces.wire_interface(index, "b"),
                forward=link.forward,
                back=link.back,
            )
            for index, link in enumerate(self.topology.links)
            if link.relayed
        )
        self._order(Setup(lab=self.name, seed=self.seed, interfaces=interfaces, wires=wires))

    def _servers(self) -> list[tuple[Host, Inference]]:
        hosts = (node for node in self.topology.nodes if isinstance(node, Host))
        return [(host, server) for host in hosts for server in host.servers]

    def _start_servers(self) -> None:
        if any(server.tls for _, server in self._servers()):
            make_authority(self.folder)
        started: list[tuple[str, subprocess.Popen[bytes]]] = []
        for host, server in self._servers():
            name = f"{host.name}-{server.port}"
            address = self.address(host.name)
            chain = key = None
            if server.tls is not None:
                made = make_certificate(self.folder, name, server.tls, address=address, names=server.names)
                chain, key = str(made.chain), str(made.key)
            truth = self._truth_path(host.name, server.port)
            truth.touch()
            config = Config(server=server, address=address, chain=chain, key=key, truth=str(truth))
            text = msgspec.json.encode(config).decode()
            helper = self._start_helper(host.name, name, "hopscope.lab.inference", "--config", text)
            self._children.append(helper)
            started.append((name, helper))
        for name, helper in started:
            self._answer(helper, name)

    def _truth_path(self, host: str, port: int) -> Path:
        return self.folder / f"{host}-{port}.jsonl"

    def _end(self) -> None:
        for child in self._children:
            if child.poll() is None:
                child.terminate()
        deadline = time.monotonic() + PATIENCE_S
        for child in self._children:
            try:
                child.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
        if self._relay is not None:
            self._relay.kill()
        namespaces.sweep_lab(self.name)
        for helper in (*self._children, *([] if self._relay is None else [self._relay])):
            helper.wait()
            for pipe in (helper.stdin, helper.stdout, helper.stderr):
                if pipe is not None:
                    pipe.close()
        self._children.clear()
        self._relay = None
