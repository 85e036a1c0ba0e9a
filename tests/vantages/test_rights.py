"""What an ordinary user may measure, datagram ICMP closed and open: never a refusal where anything works.

A copy of the program runs as user 65534 inside namespaces of its own; there, too, the system refuses to send.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hopscope.lab.box import Lab
from hopscope.lab.namespaces import missing, rights
from hopscope.lab.topology import Client, Host, Impairment, Link, Router, Topology

pytestmark = pytest.mark.lab

Document = Any  # JSON, whose shape tests/cli checks against the schema

SOURCE = Path(__file__).parents[2] / "src"
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
HEAVY = ("mypy*", "ruff*", "pip*", "scapy*", "vl_convert*", "_pytest", "hypothesis*", "*.dist-info", "__pycache__")
PATIENCE_S = 60

# client - near - far - host; a probe to `gone` dies at near: it has no route there
TOPOLOGY = Topology(
    nodes=(
        Client(name="client", datagram_ping=True),
        Router(name="near"),
        Router(name="far"),
        Host(name="host"),
    ),
    links=(
        Link(a="client", b="near"),
        Link(a="near", b="far", forward=Impairment(delay_ms=5), back=Impairment(delay_ms=5)),
        Link(a="far", b="host"),
    ),
)


@pytest.fixture(scope="module")
def ordinary() -> Iterator[list[str]]:
    """The command that runs hopscope as an ordinary user who can read no more than everybody."""
    if rights() != "root":
        pytest.skip(f"only root can become somebody else: {'; '.join(missing()) or 'run as root'}")
    folder = Path(tempfile.mkdtemp(prefix="hopscope-test-"))
    folder.chmod(0o755)
    try:
        shutil.copytree(SOURCE, folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        libraries = Path(sysconfig.get_path("purelib"))
        if not readable(f"{libraries}/msgspec/__init__.py"):
            shutil.copytree(libraries, folder / "libraries", ignore=shutil.ignore_patterns(*HEAVY))
            libraries = folder / "libraries"
        yield [*NOBODY, "env", f"PYTHONPATH={folder / 'src'}:{libraries}", python_for_all(), "-B", "-m", "hopscope"]
    finally:
        shutil.rmtree(folder)


def readable(path: str) -> bool:
    return subprocess.run([*NOBODY, "sh", "-c", 'test -r "$0"', path], check=False).returncode == 0


def python_for_all() -> str:
    """A Python of this version that everybody may run; a shell starts it, for setpriv itself could do more."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for path in (sys.executable, f"/usr/bin/python{version}", f"/usr/local/bin/python{version}"):
        if Path(path).exists():
            argv = [*NOBODY, "sh", "-c", '"$0" -c "import asyncio, ssl"', path]
            if subprocess.run(argv, capture_output=True, check=False).returncode == 0:
                return path
    pytest.skip(f"Python {version} is installed where only root can read it; install it for everybody")


def alone(script: str, argv: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command in a network namespace of its own, after a script that furnishes it."""
    whole = ["unshare", "-n", "sh", "-c", f'set -e; ip link set lo up; {script}\nexec "$@"', "sh", *argv]
    return subprocess.run(whole, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


def document(done: subprocess.CompletedProcess[str]) -> Document:
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout)


def results(found: Document, kind: str) -> list[Document]:
    return [result for result in found["results"] if result["kind"] == kind]


CLOSED, OPEN = (f'echo "{groups}" > /proc/sys/net/ipv4/ping_group_range' for groups in ("1 0", "0 2147483647"))


def test_without_the_right_tcp_measures_and_the_command_that_grants_it_is_named(ordinary: list[str]) -> None:
    listening = "python3 -m http.server --bind 127.0.0.1 443 >/dev/null 2>&1 &\nsleep 1"
    argv = [*ordinary, "ping", "127.0.0.1", "-c", "5", "-i", "20ms", "--json"]
    done = alone(f"{CLOSED}; {listening}", argv)
    found = document(done)
    (failure,) = found["failures"]
    assert (failure["kind"], failure["target"], failure["vantage"]) == ("rights", "127.0.0.1", "here")
    assert "CAP_NET_RAW" in failure["why"]
    assert "setcap cap_net_raw+ep" in failure["advice"]
    assert 'sysctl -w net.ipv4.ping_group_range="0 2147483647"' in failure["advice"]
    (answered,) = [one for one in results(found, "ping") if one["port"] == 443]
    assert (answered["protocol"], answered["loss"]["sent"], answered["loss"]["lost"]) == ("tcp", 5, 0)
    assert answered["clock"] == "tcp-info"
    assert done.returncode in {0, 1}
    assert found["verdict"]["status"] in {"ok", "warning"}


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_with_the_datagram_socket_an_ordinary_user_pings_with_kernel_stamps(ordinary: list[str], address: str) -> None:
    done = alone(OPEN, [*ordinary, "ping", address, "-c", "20", "-i", "10ms", "--json"])
    found = document(done)
    assert found["failures"] == []
    (ping,) = results(found, "ping")
    assert (ping["protocol"], ping["loss"]["sent"], ping["loss"]["lost"]) == ("icmp", 20, 0)
    clocks = [sample["clock"] for sample in ping["samples"]]
    assert clocks.count("kernel") >= len(clocks) - 2
    assert {sample["reply_ttl"] for sample in ping["samples"]} == {64}
    assert done.returncode == 0


def test_two_ordinary_pings_at_once_never_take_each_others_replies(ordinary: list[str]) -> None:
    argv = [*ordinary, "ping", "127.0.0.1", "-c", "200", "-i", "2ms", "--json"]
    both = '"$@" > /dev/fd/3 & "$@" > /dev/fd/4; wait'
    with tempfile.TemporaryFile("w+") as one, tempfile.TemporaryFile("w+") as two:
        shell = f"exec 3>/proc/{os.getpid()}/fd/{one.fileno()} 4>/proc/{os.getpid()}/fd/{two.fileno()}; {both}"
        done = alone(f"{OPEN}; {shell}", argv)
        one.seek(0)
        two.seek(0)
        found = [json.load(one), json.load(two), document(done)]
    for each in found:
        (ping,) = results(each, "ping")
        assert (ping["loss"]["sent"], ping["loss"]["lost"], ping["loss"]["duplicates"]) == (200, 0, 0)


def test_an_ordinary_user_traces_through_the_error_queue_with_kernel_stamps(ordinary: list[str]) -> None:
    with Lab(TOPOLOGY, seed=3) as lab:
        argv = [*ordinary, "trace", lab.address("host"), "-c", "5", "-i", "100ms", "--json"]
        done = lab.exec("client", argv, timeout_s=PATIENCE_S)
        away = lab.exec("client", [*ordinary, "ping", "11.99.0.1", "-c", "6", "-i", "50ms", "--json"], timeout_s=60)
    found = document(done)
    assert found["failures"] == []
    (trace,) = results(found, "trace")
    path = lab.layout.path("client", "host")
    assert [hop["ttl"] for hop in trace["hops"]] == [hop.ttl for hop in path]
    assert [[one["address"] for one in hop["responders"]] for hop in trace["hops"]] == [[hop.address] for hop in path]
    assert trace["reached"] is True
    assert [hop["loss"]["lost"] for hop in trace["hops"]] == [0, 0, 0]
    delays = [hop["delay"]["min_ms"] for hop in trace["hops"]]
    assert delays[0] < 10 <= delays[1] <= delays[2] * 1.2  # two relayed ways of 5 ms from the second hop on
    lost(document(away), answered_by=lab.address("near", seen_from="client"))


def lost(found: Document, *, answered_by: str) -> None:
    """Every probe drew an error of the router, which is loss, and none was taken for a failure to send."""
    (ping,) = [one for one in results(found, "ping") if one["protocol"] == "icmp"]
    assert ping["outcome"] == "unreachable"
    assert (ping["loss"]["sent"], ping["loss"]["lost"], ping["loss"]["unsent"]) == (6, 6, 0)
    outcomes = [sample["outcome"] for sample in ping["samples"]]
    assert set(outcomes) <= {"unreachable", "lost"}  # a kernel says "no route" five times, then once a second
    assert outcomes.count("unreachable") >= 3
    assert any(answered_by in json.dumps(finding) for finding in found["verdict"]["findings"])


FIREWALL = """nft -f - <<'RULES'
table inet t {
    counter echo { packets 0 bytes 0 }
    chain out {
        type filter hook output priority 0
        icmp type echo-request counter name echo drop
    }
}
RULES
"""


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (FIREWALL, "EPERM"),
        ("ip route add unreachable 192.0.2.0/24", "EHOSTUNREACH"),
        ("ip route add prohibit 192.0.2.0/24", "EACCES"),
        ("true", "ENETUNREACH"),
    ],
)
def test_what_the_system_refuses_to_send_is_unsent_and_never_loss(script: str, why: str) -> None:
    if rights() != "root":
        pytest.skip("needs a network namespace furnished as root")
    if script == FIREWALL and shutil.which("nft") is None:
        pytest.skip("nft: apt-get install nftables")
    target = "127.0.0.1" if script == FIREWALL else "192.0.2.1"
    argv = [sys.executable, "-m", "hopscope", "ping", target, "-c", "4", "-i", "20ms", "--json"]
    count = "nft list counter inet t echo >&2" if script == FIREWALL else "true"
    done = alone(script, ["sh", "-c", f'"$@"; code=$?; {count}; exit $code', "sh", *argv])
    found = document(done)
    (ping,) = [one for one in results(found, "ping") if one["protocol"] == "icmp"]
    assert (ping["loss"]["sent"], ping["loss"]["lost"], ping["loss"]["unsent"]) == (0, 0, 4)
    assert ping["loss"]["ratio"] is None
    assert why in ping["why"]
    assert found["verdict"]["status"] != "ok"
    if script == FIREWALL:
        assert "packets 10 " in done.stderr  # warm-up and four probes, each tried once more


def test_an_interface_or_source_that_is_not_there_is_told_before_anything_is_sent(tmp_path: Path) -> None:
    file = tmp_path / "targets.toml"
    file.write_text(
        '[[vantage]]\nname = "wrong"\nkind = "local"\ninterface = "nosuch0"\n'
        '[[vantage]]\nname = "right"\nkind = "local"\n'
        '[[target]]\nname = "home"\nhost = "127.0.0.1"\nprobes = ["ping"]\ncount = 3\ninterval = "10ms"\n'
    )
    argv = [sys.executable, "-m", "hopscope", "run", str(file), "--out", str(tmp_path / "out"), "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    found = document(done)
    (failure,) = found["failures"]
    assert (failure["kind"], failure["vantage"]) == ("usage", "wrong")
    assert "nosuch0" in failure["why"]
    assert "lo" in failure["advice"]
    assert [(one["vantage"], one["outcome"]) for one in results(found, "ping")] == [("right", "ok")]
    with contextlib.suppress(FileNotFoundError):
        assert "nosuch0" in (tmp_path / "out" / "report.md").read_text()
