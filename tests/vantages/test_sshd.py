"""A real OpenSSH server at network distance: what is measured is the way from there, and one bad vantage costs nobody.

The controller, the vantage and the target are three hosts of a lab; the vantage is 40 ms away, the target 10 ms from
it. A planted key reaches the target and stands in nothing that either side wrote.
"""

import getpass
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hopscope.lab.box import Lab
from hopscope.lab.namespaces import missing, rights
from hopscope.lab.topology import Client, Host, Impairment, Inference, Link, Router, Topology
from vantages.far import HERE, SOURCE

pytestmark = pytest.mark.lab

Document = Any  # JSON, whose shape tests/cli checks against the schema

KEY = "sk-planted-58aa0e6d21"
PORT = 2222
WEB = 8080
PATIENCE_S = 60
TOPOLOGY = Topology(
    nodes=(
        Client(name="controller"),
        Router(name="between"),
        Host(name="far"),
        Host(name="target", servers=(Inference(port=WEB, think_ms=5, api_key=KEY),)),
    ),
    links=(
        Link(a="controller", b="between", forward=Impairment(delay_ms=20), back=Impairment(delay_ms=20)),
        Link(a="between", b="far"),
        Link(a="between", b="target", forward=Impairment(delay_ms=5), back=Impairment(delay_ms=5)),
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
LogLevel VERBOSE
"""
TARGETS = """
quorum = 1

[[target]]
name = "gpu"
url = "http://{target}:{web}/v1"
probes = ["ping", "http"]
model = "stand-in"
count = 10
interval = "20ms"
requests = 3
api_key_env = "PLANTED_KEY"

[[vantage]]
name = "far"
kind = "ssh"
host = "{far}"
port = {port}
user = "{user}"
key_file = "{folder}/key"
pin = "{pin}"
hopscope = {hopscope}

[[vantage]]
name = "impostor"
kind = "ssh"
host = "{far}"
port = {port}
user = "{user}"
key_file = "{folder}/key"
pin = "SHA256:{wrong}"
hopscope = {hopscope}

[[vantage]]
name = "gone"
kind = "exec"
command = ["no-such-command"]
"""


@dataclass
class Far:
    """A lab with an SSH server in it, and the folder of its keys and logs."""

    lab: Lab
    folder: Path
    pin: str

    def hopscope(self, *argv: str) -> "subprocess.CompletedProcess[str]":
        return self.lab.exec(
            "controller",
            [sys.executable, "-m", "hopscope", *argv],
            cwd=self.folder,
            env={"HOME": str(self.folder), "PYTHONPATH": str(SOURCE), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                 "PLANTED_KEY": KEY},
            timeout_s=PATIENCE_S,
        )  # fmt: skip

    def log(self) -> str:
        return (self.folder / "sshd.log").read_text(errors="replace")


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Far]:
    if rights() != "root":
        pytest.skip("; ".join(missing()) or "run as root: an SSH server changes users")
    sshd = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin")
    if sshd is None or shutil.which("ssh-keygen") is None:
        pytest.skip("needs an SSH server: apt-get install --no-install-recommends openssh-server")
    Path("/run/sshd").mkdir(exist_ok=True)  # OpenSSH on Debian wants it and makes it at boot
    folder = tmp_path_factory.mktemp("far")
    pin = furnish(folder)
    with Lab(TOPOLOGY) as lab, (folder / "sshd.log").open("wb") as log:
        server = lab.start("far", [sshd, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=log)
        wait_for(lambda: b"Server listening" in (folder / "sshd.log").read_bytes() or server.poll() is not None)
        texts = {"folder": folder, "pin": pin, "wrong": "A" * 43, "port": PORT, "web": WEB, "user": getpass.getuser()}
        hosts = {"far": lab.address("far"), "target": lab.address("target")}
        agent = json.dumps([*HERE, sys.executable, "-m", "hopscope"])
        (folder / "targets.toml").write_text(TARGETS.format(**texts, **hosts, hopscope=agent))
        yield Far(lab, folder, pin)


def furnish(folder: Path) -> str:
    """Keys and settings of a server; returns the pin of its host key."""
    for name in ("host_key", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "key.pub").rename(folder / "authorized_keys")
    (folder / "sshd_config").write_text(CONFIG.format(port=PORT, folder=folder))
    shown = subprocess.run(
        ["ssh-keygen", "-lf", str(folder / "host_key.pub")], check=True, capture_output=True, text=True
    )
    return shown.stdout.split()[1]


def wait_for(true: Any) -> None:  # noqa: ANN401 - a condition
    deadline = time.monotonic() + 10
    while not true() and time.monotonic() < deadline:
        time.sleep(0.05)


def test_a_run_measures_from_there_and_two_bad_vantages_cost_it_nothing(far: Far) -> None:
    done = far.hopscope("run", "targets.toml", "--out", "out", "--json")
    assert done.returncode == 1, done.stderr + far.log()  # a warning: vantages failed while the quorum holds
    found: Document = json.loads(done.stdout)
    (pings,) = [result for result in found["results"] if result["kind"] == "ping" and result["protocol"] == "icmp"]
    assert (pings["vantage"], pings["loss"]["sent"], pings["loss"]["lost"]) == ("far", 10, 0)
    assert 10 <= pings["delay"]["p50_ms"] < 30  # from there: from here it is 50
    (web,) = [result for result in found["results"] if result["kind"] == "http"]
    assert (web["vantage"], [request["status"] for request in web["requests"]]) == ("far", [200, 200, 200])
    assert {result["vantage"] for result in found["results"]} == {"far"}
    failures = {failure["vantage"]: failure for failure in found["failures"]}
    assert {(name, failure["kind"], failure["target"]) for name, failure in failures.items()} == {
        ("impostor", "vantage", None), ("gone", "vantage", None),
    }  # fmt: skip
    assert len(found["failures"]) == 2
    assert far.pin in failures["impostor"]["why"]
    assert "has changed" in failures["impostor"]["why"]
    assert "do not go on" in failures["impostor"]["advice"]
    assert "no command no-such-command" in failures["gone"]["why"]
    outcomes = {vantage["name"]: vantage["outcome"] for vantage in found["vantages"]}
    assert outcomes == {"far": "ok", "impostor": "vantage-failed", "gone": "vantage-failed"}
    written = [path.read_bytes() for path in far.folder.rglob("*") if path.is_file()]
    assert [text for text in (*written, done.stdout.encode(), done.stderr.encode()) if KEY.encode() in text] == []


def test_vantage_test_says_which_work_and_how_far_they_are(far: Far) -> None:
    done = far.hopscope("vantage", "test", "targets.toml")
    assert done.returncode == 1, done.stderr + far.log()
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"far (ssh) {far.lab.address('far')}: works · hopscope ")
    away = float(lines[0].partition(" ms away")[0].rpartition(" ")[2])
    assert 40 <= away < 80
    assert lines[1].startswith(f"impostor (ssh) {far.lab.address('far')}: does not work")
    assert "has changed" in lines[2]
    assert lines[4].startswith("gone (exec) no-such-command: does not work")
    alone = far.hopscope("vantage", "test", "targets.toml", "far", "--json")
    assert alone.returncode == 0
    found: Document = json.loads(alone.stdout)
    assert [(vantage["name"], vantage["outcome"]) for vantage in found["vantages"]] == [("far", "ok")]
    listed = far.hopscope("vantage", "list", "targets.toml")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["far", "impostor", "gone"]


def test_nothing_is_left_there(far: Far) -> None:
    namespace = far.lab.argv("far", [])[3]
    wait_for(lambda: len(pids(namespace)) == 1)
    assert len(pids(namespace)) == 1  # the server


def pids(namespace: str) -> list[str]:
    listed = subprocess.run(["ip", "netns", "pids", namespace], check=True, capture_output=True, text=True)
    return listed.stdout.split()
