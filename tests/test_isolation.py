"""Dead names, hung hosts and refused ports beside good targets: each result is right, and the good ones come first.

Order is compared, never seconds: what hangs ends last, by its own threshold or the deadline.
"""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hopscope.lab.box import Lab
from hopscope.lab.namespaces import missing, rights
from hopscope.lab.topology import Client, Host, Inference, Link, Router, Topology
from net.servers import answering, serve, silent

Document = Any

SOURCE = Path(__file__).parents[1] / "src"
PATIENCE_S = 60
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

DEFAULTS = """
[defaults]
probes = ["ping"]
count = 5
interval = "20ms"
rounds = 2
round_interval = "100ms"
requests = 2
"""


def target(name: str, **keys: str | int) -> str:
    return f'\n[[target]]\nname = "{name}"\n' + "".join(
        f"{key} = {json.dumps(value) if key != 'probes' else value}\n" for key, value in keys.items()
    )


def command(place: Path, *, timeout: str) -> list[str]:
    return [
        sys.executable, "-m", "hopscope", "run", str(place / "all.toml"), "--out", str(place / "out"),
        "--timeout", timeout, "--json",
    ]  # fmt: skip


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCE)}


def finished(place: Path) -> list[str]:
    """Targets in the order in which the last task of each ended."""
    names: dict[int, str] = {}
    order: list[str] = []
    for line in (place / "out" / "run.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["record"] == "begin":
            names[record["id"]] = record["task"]["target"]
        if record["record"] == "done":
            name = names[record["task"]]
            order = [*(one for one in order if one != name), name]
    return order


def outcomes(found: Document) -> dict[str, set[str]]:
    told: dict[str, set[str]] = {}
    for result in found["results"]:
        told.setdefault(result["target"], set()).add(result["outcome"])
    return told


def statuses(found: Document) -> dict[str, str]:
    return {one["name"]: one["status"] for one in found["targets"]}


@contextmanager
def full_port() -> Iterator[int]:
    """A port whose accept queue is full: a SYN to it is never answered."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as it, socket.socket() as first:
        first.connect(it.getsockname())
        yield it.getsockname()[1]


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as it:
        port: int = it.getsockname()[1]
        return port


@pytest.mark.loopback
def test_what_is_dead_hung_or_refused_neither_delays_nor_spoils_what_is_good(tmp_path: Path) -> None:
    with serve(answering(OK)) as good, serve(silent) as hung, full_port() as filtered:
        (tmp_path / "all.toml").write_text(
            DEFAULTS
            + target("hung http", url=f"http://127.0.0.1:{hung.port}/", probes='["http"]')
            + target("hung tcp", host="127.0.0.1", port=filtered, protocol="tcp")
            + target("dead name", host="nothing-here.invalid")
            + target("refused", host="127.0.0.1", port=closed_port(), protocol="tcp")
            + target("good", url=f"http://127.0.0.1:{good.port}/", probes='["ping", "http"]')
            + target("good six", host="::1")
        )
        done = subprocess.run(
            command(tmp_path, timeout="6s"), capture_output=True, text=True, check=False, env=environment(),
            timeout=PATIENCE_S,
        )  # fmt: skip
    found = json.loads(done.stdout)
    assert done.returncode == 2
    assert found["partial"] is False  # the hung request gave up just before the deadline
    told = outcomes(found)
    assert told["good"] == told["good six"] == {"ok"}
    assert told["refused"] == {"refused"}
    assert told["hung tcp"] == {"timeout"}
    assert told["hung http"] == {"timeout"}
    assert told["dead name"] == {"dns"}
    assert statuses(found) == {
        "good": "ok", "good six": "ok", "refused": "critical", "hung tcp": "critical", "hung http": "critical",
        "dead name": "critical",
    }  # fmt: skip
    order = finished(tmp_path)
    assert order[-2:] == ["hung tcp", "hung http"]
    blamed = {finding["target"]: finding["kind"] for finding in found["verdict"]["findings"]}
    assert blamed["dead name"] == "dns-failed"
    assert blamed["refused"] == "refused"
    assert {"good", "good six"} & set(blamed) == set()
    pings = {result["target"]: result for result in found["results"] if result["kind"] == "ping"}
    assert pings["hung tcp"]["loss"]["ratio"] == 1
    assert pings["good six"]["loss"]["ratio"] == 0


TOPOLOGY = Topology(
    nodes=(
        Client(name="client"),
        Router(name="router"),
        Host(name="good", servers=(Inference(port=8080),)),
        Host(name="slow", servers=(Inference(port=8080, think_ms=600_000),)),
        Host(name="gone", icmp_deaf=True, filtered_ports=(443, 80, 8080)),
        Host(name="shy", icmp_deaf=True, servers=(Inference(port=443),)),
    ),
    links=(
        Link(a="client", b="router"),
        Link(a="router", b="good"),
        Link(a="router", b="slow"),
        Link(a="router", b="gone"),
        Link(a="router", b="shy"),
    ),
)


@pytest.mark.lab
def test_a_black_hole_beside_good_ones_in_a_network_of_its_own(tmp_path: Path) -> None:
    if rights() != "root":
        pytest.skip("; ".join(missing()) or "run as root")
    with Lab(TOPOLOGY, seed=5) as lab:
        address = {name: lab.address(name) for name in ("good", "slow", "gone", "shy")}
        (tmp_path / "all.toml").write_text(
            DEFAULTS.replace('["ping"]', '["ping", "trace"]')
            + target("gone", host=address["gone"])
            + target("slow", url=f"http://{address['slow']}:8080/v1/models", probes='["ping", "http"]')
            + target("good", url=f"http://{address['good']}:8080/v1/models", probes='["ping", "trace", "http"]')
            + target("shy", host=address["shy"])
        )
        done = lab.exec("client", command(tmp_path, timeout="7s"), env=environment(), timeout_s=PATIENCE_S)
    found = json.loads(done.stdout)
    told = outcomes(found)
    assert done.returncode == 2
    assert told["good"] == {"ok"}
    assert told["gone"] == {"timeout"}
    assert "timeout" in told["slow"]
    assert statuses(found)["good"] == "ok"
    assert statuses(found)["gone"] == "critical"
    assert statuses(found)["shy"] in {"ok", "warning"}
    fallback = [
        one for one in found["results"] if one["target"] == "shy" and one["kind"] == "ping" and one["port"] == 443
    ]
    assert [one["loss"]["lost"] for one in fallback] == [0]
    order = finished(tmp_path)
    assert order.index("good") < order.index("gone")
    assert order[-1] == "slow"


@pytest.mark.loopback
def test_a_hundred_targets_side_by_side_are_each_their_own(tmp_path: Path) -> None:
    (tmp_path / "all.toml").write_text(
        DEFAULTS + "".join(target(f"t{number}", host=f"127.0.1.{number + 1}") for number in range(100))
    )
    done = subprocess.run(
        command(tmp_path, timeout="60s"), capture_output=True, text=True, check=False, env=environment(),
        timeout=PATIENCE_S,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert (done.returncode, found["partial"]) == (0, False)
    assert {one["target"]: one["address"] for one in found["results"]} == {
        f"t{number}": f"127.0.1.{number + 1}" for number in range(100)
    }
    assert {(one["loss"]["sent"], one["loss"]["lost"], one["loss"]["duplicates"]) for one in found["results"]} == {
        (5, 0, 0)
    }


@pytest.mark.loopback
def test_pings_at_once_from_many_processes_never_take_each_others_replies() -> None:
    argv = [sys.executable, "-m", "hopscope", "ping", "127.0.0.1", "-c", "150", "-i", "4ms", "--json"]
    said: list[str] = []

    def ping() -> None:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment(), timeout=PATIENCE_S)
        said.append(done.stdout)

    threads = [threading.Thread(target=ping) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    losses = [json.loads(text)["results"][0]["loss"] for text in said]
    assert [(loss["sent"], loss["lost"], loss["duplicates"]) for loss in losses] == [(150, 0, 0)] * 6
