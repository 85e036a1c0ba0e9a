"""Each fault that a topology can plant, as a plain socket or HTTP client of the standard library meets it."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from hopscope.lab.box import Lab
from hopscope.lab.topology import Block, Client, Host, Inference, Link, Router, Topology

pytestmark = pytest.mark.lab

OPEN, CLOSED, FILTERED, FULL = 8000, 80, 81, 82
PROHIBITED, UNREACHABLE, DROPPED = 443, 444, 445
HANGS, OVERLOADED, LOCKED = 8001, 8002, 8003
KEY = "sesame"

TOPOLOGY = Topology(
    nodes=(
        Client(name="c"),
        Router(name="r1"),
        Router(
            name="r2",
            blocks=(
                Block(to="h", port=PROHIBITED),
                Block(to="h", port=UNREACHABLE, how="unreachable"),
                Block(to="h", port=DROPPED, how="blackhole"),
                Block(to="banned"),
                Block(to="lost", how="unreachable"),
                Block(to="void", how="blackhole"),
            ),
        ),
        Host(
            name="h",
            filtered_ports=(FILTERED,),
            servers=(
                Inference(port=OPEN),
                Inference(port=FULL, fault="full"),
                Inference(port=HANGS, fault="hangs"),
                Inference(port=OVERLOADED, status=503),
                Inference(port=LOCKED, api_key=KEY),
            ),
        ),
        Host(name="off", down=True, servers=(Inference(port=OPEN),)),
        *(Host(name=name) for name in ("banned", "lost", "void")),
    ),
    links=(
        Link(a="c", b="r1"),
        Link(a="r1", b="r2"),
        *(Link(a="r2", b=name) for name in ("h", "off", "banned", "lost", "void")),
    ),
)

# What becomes of a connection: connected, silent, or the error's name; and whose ICMP error it was, with its code.
CONNECT = """
import errno, select, socket, sys
for target in sys.argv[1:]:
    host, _, port = target.partition(":")
    with socket.socket() as sock:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_IP, 11, 1)  # IP_RECVERR
        sock.connect_ex((host, int(port)))
        if not select.select([], [sock], [], 0.7)[1]:
            print("silent", flush=True)
            continue
        error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        said = "connected" if not error else errno.errorcode[error]
        try:
            told = sock.recvmsg(2048, 512, 0x2000)[1][0][2]  # MSG_ERRQUEUE
            said += " " + socket.inet_ntoa(told[20:24]) + " " + str(told[6])
        except OSError:
            pass
        print(said, flush=True)
"""

ASK = """
import http.client, json, socket, sys
host, port, path, body, key = sys.argv[1:]
connection = http.client.HTTPConnection(host, int(port), timeout=0.7)
headers = {"Authorization": "Bearer " + key} if key else {}
try:
    connection.request("POST" if body else "GET", path, body or None, headers)
    print(connection.getresponse().status)
except socket.timeout:
    print("timeout")
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab(TOPOLOGY) as made:
        yield made


def connecting(lab: Lab, *targets: tuple[str, int]) -> list[str]:
    """What becomes of connections from the client, one after the other."""
    words = [f"{lab.address(node)}:{port}" for node, port in targets]
    done = lab.exec("c", [sys.executable, "-c", CONNECT, *words], check=True, timeout_s=20)
    return done.stdout.splitlines()


def answer(lab: Lab, port: int, path: str = "/v1/models", *, body: str = "", key: str = "") -> str:
    argv = [sys.executable, "-c", ASK, lab.address("h"), str(port), path, body, key]
    return lab.exec("c", argv, check=True, timeout_s=20).stdout.strip()


def pings(lab: Lab, node: str) -> str:
    argv = ["ping", "-n", "-c", "2", "-i", "0.2", "-W", "1", lab.address(node)]
    return lab.exec("c", argv, timeout_s=20).stdout


def test_a_router_blocks_one_port_in_three_ways_and_forwards_the_rest(lab: Lab) -> None:
    speaker = lab.address("r2", seen_from="c")
    ports = (OPEN, CLOSED, PROHIBITED, UNREACHABLE, DROPPED)
    assert connecting(lab, *(("h", port) for port in ports)) == [
        "connected",
        "ECONNREFUSED",
        f"EHOSTUNREACH {speaker} 13",
        f"EHOSTUNREACH {speaker} 1",
        "silent",
    ]


def test_a_router_blocks_all_that_goes_to_a_node(lab: Lab) -> None:
    speaker = lab.address("r2", seen_from="c")
    assert connecting(lab, ("banned", 9), ("lost", 9), ("void", 9)) == [
        f"EHOSTUNREACH {speaker} 13",
        f"EHOSTUNREACH {speaker} 1",
        "silent",
    ]


def test_what_is_for_the_router_itself_it_takes(lab: Lab) -> None:
    assert "2 received" in pings(lab, "r2")


def test_a_host_that_is_down_says_nothing_while_its_neighbour_answers(lab: Lab) -> None:
    assert "2 received" in pings(lab, "h")
    assert "0 received" in pings(lab, "off")
    assert connecting(lab, ("off", OPEN), ("off", CLOSED)) == ["silent", "silent"]


def test_a_full_accept_queue_is_as_silent_as_a_filter(lab: Lab) -> None:
    assert connecting(lab, ("h", FULL), ("h", FULL), ("h", FILTERED)) == ["silent"] * 3


def test_a_server_that_hangs_takes_the_request_and_never_answers(lab: Lab) -> None:
    assert connecting(lab, ("h", HANGS)) == ["connected"]
    assert answer(lab, HANGS) == "timeout"


def test_an_overloaded_server_says_so_to_every_request(lab: Lab) -> None:
    body = json.dumps({"model": "stand-in", "messages": []})
    assert answer(lab, OVERLOADED) == answer(lab, OVERLOADED, "/v1/chat/completions", body=body) == "503"
    assert answer(lab, OVERLOADED, "/metrics") == "200"
    assert [truth.status for truth in lab.truth("h", OVERLOADED)] == [503, 503, 200]


def test_a_key_and_a_model_are_asked_for(lab: Lab) -> None:
    assert (answer(lab, LOCKED), answer(lab, LOCKED, key="wrong"), answer(lab, LOCKED, key=KEY)) == (
        "401",
        "401",
        "200",
    )
    body = json.dumps({"model": "unknown", "messages": []})
    assert answer(lab, LOCKED, "/v1/chat/completions", body=body, key=KEY) == "404"


def test_a_lab_with_faults_ends_like_any_other() -> None:
    with Lab(TOPOLOGY) as lab:
        name = lab.name
    left = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout
    assert name not in left
