"""A lab does to packets what its topology says: delays, loss, limits, silence and filters, seen by a pinger inside.

One lab for all of them; bounds are wide where a busy machine may be late, exact where the relay's own count is there.
"""

import hashlib
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hopscope.lab.box import Lab
from hopscope.lab.topology import CLEAN, Client, Host, Impairment, LabError, Link, Router, Topology

if TYPE_CHECKING:
    from lab.conftest import Fate, Probe

pytestmark = pytest.mark.lab

ECHO_REPLY, TIME_EXCEEDED = 0, 11
FILTERED, CLOSED = 81, 82
FAR_MS = 15.0
FAR = Impairment(delay_ms=FAR_MS)

# client - near +- far +- silent - deaf
#               |      +- host
#               +- limiter - limited
TOPOLOGY = Topology(
    nodes=(
        Client(name="client", datagram_ping=True),
        Router(name="near"),
        Router(name="far"),
        Router(name="silent", silent=True),
        Router(name="limiter", icmp_limit_per_s=4),
        Host(name="host", filtered_ports=(FILTERED,)),
        Host(name="deaf", icmp_deaf=True),
        Host(name="limited"),
    ),
    links=(
        Link(a="client", b="near"),
        Link(a="near", b="far", forward=FAR, back=FAR),
        Link(a="far", b="host"),
        Link(a="far", b="silent"),
        Link(a="silent", b="deaf"),
        Link(a="near", b="limiter"),
        Link(a="limiter", b="limited"),
    ),
)
KNOCK = """
import socket, sys
kind = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}[sys.argv[1]]
with socket.socket(socket.AF_INET, kind) as knock:
    knock.settimeout(0.7)
    try:
        knock.connect((sys.argv[2], int(sys.argv[3])))
        knock.send(b"?")
        knock.recv(1)
    except ConnectionRefusedError:
        print("refused")
    except TimeoutError:
        print("silent")
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab(TOPOLOGY, seed=7) as running:
        yield running


def quick(found: list[float]) -> float:
    """The lower quartile: what a busy machine delays is the other half."""
    return sorted(found)[len(found) // 4]


def rtts(fates: "list[Fate]") -> list[float]:
    return [fate.rtt_ms for fate in fates if fate.rtt_ms is not None]


def test_a_plain_path_adds_nothing_to_speak_of(lab: Lab, probe: "Probe") -> None:
    fates = probe(lab, "client", lab.address("limited"), 50, 5, 64)
    assert len(rtts(fates)) == 50
    assert quick(rtts(fates)) < 2


def test_the_round_trip_is_the_configured_one(lab: Lab, probe: "Probe") -> None:
    fates = probe(lab, "client", lab.address("host"), 100, 10, 64)
    assert len(rtts(fates)) == 100
    assert min(rtts(fates)) / (2 * FAR_MS) > 0.98
    assert quick(rtts(fates)) / (2 * FAR_MS) < 1.15


def test_each_direction_can_be_changed_while_running(lab: Lab, probe: "Probe") -> None:
    lab.change("far", "near", Impairment(delay_ms=45))
    try:
        changed = rtts(probe(lab, "client", lab.address("host"), 50, 10, 64))
    finally:
        lab.change("far", "near", FAR)
    assert min(changed) / (FAR_MS + 45) > 0.98
    assert quick(changed) / (FAR_MS + 45) < 1.15
    assert quick(rtts(probe(lab, "client", lab.address("host"), 50, 10, 64))) / (2 * FAR_MS) < 1.15


def test_loss_is_in_one_direction_and_the_relay_knows_it(lab: Lab, probe: "Probe") -> None:
    before = lab.counts("near", "far"), lab.counts("far", "near")
    lab.change("near", "far", Impairment(delay_ms=FAR_MS, loss=0.2))
    try:
        fates = probe(lab, "client", lab.address("host"), 300, 5, 64)
    finally:
        lab.change("near", "far", FAR)
    after = lab.counts("near", "far"), lab.counts("far", "near")
    lost = after[0].lost - before[0].lost
    assert after[0].frames - before[0].frames == 300
    assert after[1].frames - before[1].frames == 300 - lost
    assert after[1].lost == before[1].lost == 0
    assert len(rtts(fates)) == 300 - lost
    assert 24 <= lost <= 101  # binomial(300, 0.2) leaves this range once in 10^7 seeds


def test_every_router_answers_from_the_address_it_has_towards_us(lab: Lab, probe: "Probe") -> None:
    for hop in lab.layout.path("client", "host")[:-1]:
        fates = probe(lab, "client", lab.address("host"), 20, 2, hop.ttl)
        assert {(fate.kind, fate.source) for fate in fates} == {(TIME_EXCEEDED, hop.address)}


def test_the_limiter_answers_four_a_second_and_forwards_everything(lab: Lab, probe: "Probe") -> None:
    address = lab.address("limited")
    with ThreadPoolExecutor() as pool:
        before = pool.submit(probe, lab, "client", address, 100, 20, 1)
        behind = pool.submit(probe, lab, "client", address, 100, 20, 64)
        fates = probe(lab, "client", address, 100, 20, 2)
    answers = [fate.at_ms for fate in fates if fate.kind is not None]
    assert {fate.source for fate in fates if fate.source} == {lab.address("limiter", seen_from="client")}
    assert 5 <= len([at for at in answers if at < 300]) <= 8  # the bucket holds six
    steady = [at for at in answers if at > 300]
    assert 5 <= len(steady) <= 9  # 1.7 s at four a second
    assert {fate.kind for fate in before.result()} == {TIME_EXCEEDED}
    assert {fate.kind for fate in behind.result()} == {ECHO_REPLY}


def test_a_silent_router_forwards_and_answers_pings_but_never_says_time_exceeded(lab: Lab, probe: "Probe") -> None:
    silent_ttl = next(hop.ttl for hop in lab.layout.path("client", "deaf") if hop.node == "silent")
    assert {fate.kind for fate in probe(lab, "client", lab.address("deaf"), 20, 5, silent_ttl)} == {None}
    assert {fate.kind for fate in probe(lab, "client", lab.address("silent"), 5, 5, 64)} == {ECHO_REPLY}
    assert knock(lab, "tcp", "deaf", CLOSED) == "refused"


def test_filtered_closed_and_deaf_are_three_things(lab: Lab, probe: "Probe") -> None:
    cases = [(kind, port) for kind in ("tcp", "udp") for port in (CLOSED, FILTERED)]
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda case: knock(lab, case[0], "host", case[1]), cases))
    assert answers == ["refused", "silent", "refused", "silent"]
    assert {fate.kind for fate in probe(lab, "client", lab.address("deaf"), 10, 5, 64)} == {None}
    assert {fate.kind for fate in probe(lab, "client", lab.address("host"), 10, 5, 64)} == {ECHO_REPLY}


def test_a_stream_crosses_whole_and_at_the_rate(lab: Lab, tmp_path: Path) -> None:
    content = bytes(range(256)) * 4000
    (tmp_path / "file").write_bytes(content)
    lab.change("far", "near", Impairment(delay_ms=1, rate_mbit=20))
    lab.change("near", "far", CLEAN)
    server = lab.start(
        "host", [sys.executable, "-m", "http.server", "8000", "--directory", str(tmp_path)], stderr=subprocess.DEVNULL
    )
    fetch = (
        "import hashlib, sys, time, urllib.request as request\n"
        "for attempt in range(100):\n"
        "    try:\n"
        "        request.urlopen(sys.argv[1] + '/').read()\n"
        "        break\n"
        "    except OSError:\n"
        "        time.sleep(0.05)\n"
        "start = time.monotonic()\n"
        "content = request.urlopen(sys.argv[1] + '/file').read()\n"
        "print(time.monotonic() - start, hashlib.sha256(content).hexdigest())\n"
    )
    try:
        url = f"http://{lab.address('host')}:8000"
        seconds, digest = lab.exec("client", [sys.executable, "-c", fetch, url], check=True).stdout.split()
    finally:
        lab.change("far", "near", FAR)
        lab.change("near", "far", FAR)
        server.terminate()
        server.wait()
    assert digest == hashlib.sha256(content).hexdigest()
    assert 1.0 < float(seconds) / (len(content) * 8 / 20e6) < 1.6  # headers come on top


def test_the_datagram_icmp_socket_exists_where_it_is_opened(lab: Lab) -> None:
    code = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP).close()"
    assert lab.exec("client", [sys.executable, "-c", code]).returncode == 0
    assert "PermissionError" in lab.exec("host", [sys.executable, "-c", code]).stderr


def test_a_command_gets_what_it_is_given(lab: Lab, tmp_path: Path) -> None:
    done = lab.exec(
        "host", ["sh", "-c", "cat; pwd; echo $GIVEN; exit 3"], stdin="in\n", env={"GIVEN": "it"}, cwd=tmp_path
    )
    assert (done.stdout, done.returncode) == (f"in\n{tmp_path}\nit\n", 3)
    with pytest.raises(subprocess.TimeoutExpired):
        lab.exec("host", ["sleep", "9"], timeout_s=0.1)


def test_what_is_not_there_is_said(lab: Lab) -> None:
    with pytest.raises(LabError, match="plain one") as caught:
        lab.change("client", "near", FAR)
    assert "adjustable" in caught.value.advice
    with pytest.raises(LabError, match="no node 'nobody'"):
        lab.exec("nobody", ["true"])
    with pytest.raises(LabError, match="no authority"):
        _ = lab.ca_file
    with pytest.raises(LabError, match="not running"):
        Lab(TOPOLOGY).change("near", "far", FAR)


def test_a_lab_of_this_size_is_up_in_time() -> None:
    start = time.monotonic()
    with Lab(TOPOLOGY):
        assert time.monotonic() - start < 3


def knock(lab: Lab, kind: str, node: str, port: int) -> str:
    argv = [sys.executable, "-c", KNOCK, kind, lab.address(node), str(port)]
    return lab.exec("client", argv, check=True).stdout.strip()
