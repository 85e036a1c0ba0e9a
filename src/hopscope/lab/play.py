"""The demo, played: build what this machine allows, run hopscope against it as a user would, hold it to the truth.

The rule: hopscope runs as a program of its own, which starts agents inside the namespaces of its three places; nothing
here knows its insides, only the report it wrote.
"""

import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from hopscope.lab.box import Lab
from hopscope.lab.demo import demo_targets, demo_topology, planted
from hopscope.lab.orders import Config
from hopscope.lab.topology import Inference
from hopscope.lab.verdict import Expected, kinds, mistakes

HOPSCOPE = (sys.executable, "-m", "hopscope")
DEADLINE = "100s"
MEASURED = {0, 1, 2}
"""Exit codes of a run that came to a verdict."""
LOOPBACK = "127.0.0.1"
LOOPBACK_THINK_MS = 1500.0
LOOPBACK_TARGETS = """\
# The demo without a network: two servers and a closed port on this machine.
[defaults]
count = 50
interval = "50ms"
rounds = 20
round_interval = "100ms"
probes = ["ping", "trace", "http"]
[[target]]
name = "fast"
url = "http://127.0.0.1:{fast}/v1"
model = "stand-in"
[[target]]
name = "slow"
url = "http://127.0.0.1:{slow}/v1"
model = "stand-in"
[[target]]
name = "closed"
host = "127.0.0.1"
port = {closed}
probes = ["ping"]
"""


def on_network(folder: Path, seed: int) -> tuple[str, ...]:
    """Play the demo on a lab; the report goes to `folder`. Returns what the verdict got wrong.

    Raises LabError when the lab cannot be built.
    """
    with Lab(demo_topology(), seed=seed) as lab:
        file = lab.folder / "demo.toml"
        file.write_text(demo_targets(lab, HOPSCOPE), encoding="utf-8")
        wrong = _run(_argv("compare", file, folder))
        return wrong or mistakes(folder / "report.json", planted(lab.layout))


def on_loopback(folder: Path) -> tuple[str, ...]:
    """Play what needs no rights: two servers and a closed port on this machine. Returns what the verdict got wrong."""
    ports = _free_ports(3)
    with tempfile.TemporaryDirectory(prefix="hopscope-demo-") as work, ExitStack() as servers:
        servers.enter_context(_serve(Path(work), Inference(port=ports[0])))
        servers.enter_context(_serve(Path(work), Inference(port=ports[1], think_ms=LOOPBACK_THINK_MS)))
        file = Path(work) / "demo.toml"
        text = LOOPBACK_TARGETS.format(fast=ports[0], slow=ports[1], closed=ports[2])
        file.write_text(text, encoding="utf-8")
        expected: Expected = {"fast": frozenset(), "slow": frozenset({"server-slow"}), "closed": frozenset({"refused"})}
        return _run(_argv("run", file, folder)) or kinds(folder / "report.json", expected)


def _argv(command: str, file: Path, folder: Path) -> list[str]:
    return [*HOPSCOPE, command, str(file), "--out", str(folder), "--timeout", DEADLINE]


def _run(argv: Sequence[str]) -> tuple[str, ...]:
    """Run hopscope with its output on ours; what went wrong if it came to no verdict."""
    code = subprocess.run(argv, check=False, stdin=subprocess.DEVNULL).returncode
    return () if code in MEASURED else (f"hopscope ended with exit code {code}",)


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on at this moment."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((LOOPBACK, 0))
        return [int(one.getsockname()[1]) for one in sockets]


class _serve:  # noqa: N801 - a context manager that reads as a verb
    """A stand-in server on loopback, listening while the block runs."""

    def __init__(self, folder: Path, server: Inference) -> None:
        truth = folder / f"{server.port}.jsonl"
        config = Config(server=server, address=LOOPBACK, chain=None, key=None, truth=str(truth))
        text = msgspec.json.encode(config).decode()
        self._argv = [sys.executable, "-m", "hopscope.lab.inference", "--config", text]
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> None:
        self._child = subprocess.Popen(self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self._child.stdout is not None:
            self._child.stdout.readline()

    def __exit__(self, *_: object) -> None:
        if self._child is not None:
            self._child.terminate()
            self._child.communicate()
