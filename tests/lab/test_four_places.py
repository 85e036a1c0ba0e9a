"""Four places, some of them of no use: the verdict about the targets is that of the others, and each failure one line.

Real OpenSSH servers stand at network distance; two targets behind one router, one of which closes its port. While the
quorum holds a place that failed is a warning beside the verdict; below it a target is neither down nor ok, and what
was measured is kept (method 6.1, 6.2). The cases run side by side in one lab.
"""

import getpass
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hopscope.lab.box import Lab
from hopscope.lab.namespaces import missing, rights
from hopscope.lab.topology import Client, Host, Impairment, Inference, Link, Router, Topology
from vantages.far import HERE, SOURCE, hello

pytestmark = [pytest.mark.lab, pytest.mark.slow]

Document = Any  # JSON, whose shape tests/cli checks against the schema

SSH, NO_SSH = 2222, 2223
OPEN, CLOSED = 8080, 8081
QUORUM = 2
"""Half of four places; no file says so."""
SIDE_BY_SIDE = 4
LINE = 500
PATIENCE_S = 30
"""No case may take longer, whatever its places do; the longest wait of ours is for a host that is down, 10 s."""
FAR = Impairment(delay_ms=10)
TOPOLOGY = Topology(
    nodes=(
        Client(name="office"),
        Router(name="between"),
        Host(name="near"),
        Host(name="far"),
        Host(name="dead", down=True),
        Host(name="gpu", servers=(Inference(port=OPEN),)),
    ),
    links=(
        Link(a="office", b="between"),
        Link(a="between", b="near"),
        Link(a="between", b="far", forward=FAR, back=FAR),
        Link(a="between", b="dead"),
        Link(a="between", b="gpu"),
    ),
)
CONFIG = """
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
"""
TARGETS = """
[defaults]
probes = ["ping"]
count = 10
interval = "20ms"

[[target]]
name = "open"
host = "{gpu}"
port = {open}

[[target]]
name = "closed"
host = "{gpu}"
port = {closed}
"""
KEYS = 'user = "{user}"\nkey_file = "{folder}/key"\nhopscope = {hopscope}\n'
PLACES = {
    "here": 'kind = "local"\n',
    "near": 'kind = "ssh"\nhost = "{near}"\nport = {ssh}\nknown_hosts = "{folder}/known"\n' + KEYS,
    "changed": 'kind = "ssh"\nhost = "{far}"\nport = {ssh}\nknown_hosts = "{folder}/old"\n' + KEYS,
    "refuses": 'kind = "ssh"\nhost = "{far}"\nport = {no_ssh}\nknown_hosts = "{folder}/known"\n' + KEYS,
    "down": 'kind = "ssh"\nhost = "{dead}"\nport = {ssh}\nknown_hosts = "{folder}/known"\n' + KEYS,
    "gone": 'kind = "exec"\ncommand = ["no-such-command"]\n',
    "pours": 'kind = "exec"\ncommand = ["cat", "/dev/zero"]\n',
    **{
        name: f'kind = "exec"\ncommand = ["{{python}}", "{{folder}}/{name}.py"]\nhopscope = {{hopscope}}\n{more}'
        for name, more in (
            ("greets", ""),
            ("hangs", 'deadline = "2s"\n'),
            ("babbles", ""),
            ("breaks", ""),
            ("newer", ""),
        )
    },
}
SCRIPTS = {
    "greets": "import os, sys; print('* Welcome to far *', flush=True); os.execvp('ip', {there} + sys.argv[1:])",
    "hangs": "import time; time.sleep(600)",
    "babbles": "import os, time; os.write(1, os.urandom(200_000)); time.sleep(600)",
    "breaks": hello() + 'sys.stdout.write(\'{"record":"resol\')\n',
    "newer": hello(2) + "time.sleep(600)\n",
}
# what is said of it · what to do about it
FAILED = {
    "changed": ("the host key of {far} port 2222 has changed: known is {old}, it shows {pin}", "do not go on before"),
    "refuses": ("cannot reach {far} port 2223: Connection refused", "see that `host` and `port` are right"),
    "down": ("no SSH answer from {dead} port 2222 within 10 s", "see that it is up"),
    "gone": (
        "there is no command no-such-command on this machine",
        "install no-such-command, or mend `command` of the vantage",
    ),
    "hangs": ("no hopscope answered there within its deadline of 2 s", "see that the command starts `hopscope agent`"),
    "babbles": ("what answers there is not hopscope: it said ", "see that the command starts `hopscope agent`"),
    "pours": ("what answers there is not hopscope: it said ", "see that the command starts `hopscope agent`"),
    "breaks": ("in the middle of a record", ""),
    "newer": ("hopscope 9.9.9 there writes tape 2, this hopscope", "upgrade hopscope here"),
}

# four places each · exit code · status · status of "open" · status of "closed"
HOLDS = (2, "critical", "ok", "critical")
BELOW = (3, "unknown", "unknown", "unknown")
CASES: dict[tuple[str, ...], tuple[int, str, str, str]] = {
    **{("here", "near", "changed", fourth): HOLDS for fourth in ("greets", *FAILED) if fourth != "changed"},
    ("here", "changed", "gone", "hangs"): BELOW,
    ("refuses", "changed", "gone", "babbles"): BELOW,
}


@dataclass(frozen=True)
class Office:
    """Where the runs are started, and what stands for what in the tables above."""

    lab: Lab
    folder: Path
    texts: dict[str, str]

    def run(self, places: tuple[str, ...]) -> "subprocess.CompletedProcess[str]":
        texts = TARGETS + "".join(f'\n[[vantage]]\nname = "{name}"\n{PLACES[name]}' for name in places)
        file = self.folder / f"{'-'.join(places)}.toml"
        file.write_text(texts.format(**self.texts))
        return self.lab.exec(
            "office",
            [sys.executable, "-m", "hopscope", "run", file.name, "--out", file.stem, "--json"],
            cwd=self.folder,
            env={"HOME": str(self.folder), "PYTHONPATH": str(SOURCE), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            timeout_s=PATIENCE_S,
        )


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    if rights() != "root":
        pytest.skip("; ".join(missing()) or "run as root: an SSH server changes users")
    sshd = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin")
    if sshd is None or shutil.which("ssh-keygen") is None:
        pytest.skip("needs an SSH server: apt-get install --no-install-recommends openssh-server")
    Path("/run/sshd").mkdir(exist_ok=True)  # OpenSSH on Debian wants it and makes it at boot
    folder = tmp_path_factory.mktemp("office")
    with Lab(TOPOLOGY) as lab:
        pins = furnish(lab, folder)
        there = [*lab.argv("far", [])]
        for name, script in SCRIPTS.items():
            (folder / f"{name}.py").write_text(script.replace("{there}", repr(there)))
        servers = [serve(lab, node, sshd, folder) for node in ("near", "far")]
        assert [server.poll() for server in servers] == [None, None]
        addresses = {node: lab.address(node) for node in ("near", "far", "dead", "gpu")}
        numbers = {"ssh": SSH, "no_ssh": NO_SSH, "open": OPEN, "closed": CLOSED}
        hopscope = json.dumps([*HERE, sys.executable, "-m", "hopscope"])
        words = {"folder": folder, "user": getpass.getuser(), "python": sys.executable, "hopscope": hopscope}
        texts = {key: str(value) for key, value in {**addresses, **numbers, **words, **pins}.items()}
        yield Office(lab, folder, texts)


def furnish(lab: Lab, folder: Path) -> dict[str, str]:
    """Keys and settings of the servers; returns the fingerprints of their key and of the one that is still known."""
    for name in ("host_key", "old_key", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "key.pub").rename(folder / "authorized_keys")
    (folder / "sshd_config").write_text(CONFIG.format(port=SSH, folder=folder))
    for known, key in (("known", "host_key"), ("old", "old_key")):
        public = (folder / f"{key}.pub").read_text()
        lines = [f"[{lab.address(node)}]:{SSH} {public}" for node in ("near", "far")]
        (folder / known).write_text("".join(lines))
    listed = [
        subprocess.run(["ssh-keygen", "-lf", str(folder / key)], check=True, capture_output=True, text=True).stdout
        for key in ("host_key", "old_key")
    ]
    return dict(zip(("pin", "old"), (line.split()[1] for line in listed), strict=True))


def serve(lab: Lab, node: str, sshd: str, folder: Path) -> "subprocess.Popen[bytes]":
    """An SSH server that listens."""
    path = folder / f"{node}.log"
    with path.open("wb") as log:
        server = lab.start(node, [sshd, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=log)
    deadline = time.monotonic() + PATIENCE_S
    while b"Server listening" not in path.read_bytes() and server.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    return server


def test_bad_places_cost_the_verdict_nothing_while_the_quorum_holds(office: Office) -> None:
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for places, done in zip(CASES, pool.map(office.run, CASES), strict=True):
            judged(office, places, done)


def judged(office: Office, places: tuple[str, ...], done: "subprocess.CompletedProcess[str]") -> None:
    """Hold one run against the tables; a run that takes longer than PATIENCE_S has raised already."""
    found: Document = json.loads(done.stdout)
    bad = [name for name in places if name in FAILED]
    targets = {target["name"]: target["status"] for target in found["targets"]}
    got = (done.returncode, found["verdict"]["status"], targets["open"], targets["closed"])
    assert got == CASES[places], (places, done.stderr)
    assert sorted(failure["vantage"] for failure in found["failures"]) == sorted(bad), places
    for failure in found["failures"]:
        why, advice = FAILED[failure["vantage"]]
        assert (failure["kind"], failure["target"]) == ("vantage", None)
        assert why.format(**office.texts) in failure["why"], places
        assert failure["advice"].startswith(advice), places
        assert f"{failure['why']}{failure['advice']}".isprintable()
        assert len(failure["why"]) < LINE
    outcomes = {vantage["name"]: vantage["outcome"] for vantage in found["vantages"]}
    assert outcomes == {name: "vantage-failed" if name in bad else "ok" for name in places}
    good = [name for name in places if name not in bad]
    measured = [(result["vantage"], result["target"], result["protocol"]) for result in found["results"]]
    pairs = [(target, protocol) for target in ("open", "closed") for protocol in ("icmp", "tcp")]
    assert sorted(measured) == sorted((name, *pair) for name in good for pair in pairs), places
    faults = {
        (*finding["vantages"], finding["severity"], finding["next_step"] != "")
        for finding in found["verdict"]["findings"]
        if finding["kind"] == "vantage-fault"
    }
    severity = "warning" if len(good) >= QUORUM else "unknown"
    assert faults == {(name, severity, True) for name in bad}, places
    refused = [finding for finding in found["verdict"]["findings"] if finding["kind"] == "refused"]
    assert {(finding["target"], *finding["vantages"]) for finding in refused} == {("closed", name) for name in good}
    told = "no target is called down or ok" in found["verdict"]["summary"]
    assert told == (0 < len(good) < QUORUM), places
