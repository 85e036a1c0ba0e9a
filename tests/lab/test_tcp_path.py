"""Paths by TCP through the lab: every router named at its TTL and timed as ICMP times it, and each way a path can end.

Nothing here needs a right: one test drops them all first.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hopscope.lab
from hopscope.lab.box import Lab
from hopscope.lab.topology import Block, Client, Host, Impairment, Inference, Link, Router, Topology

pytestmark = pytest.mark.lab

Document = Any  # parsed JSON, whose shape tests/cli checks against the schema

SOURCE = Path(hopscope.lab.__file__).parents[2]
OPEN, CLOSED, FILTERED, PROHIBITED = 8000, 80, 81, 443
SLOW = Impairment(delay_ms=4)
ROUTERS = ("r1", "r2", "r3")
TOPOLOGY = Topology(
    nodes=(
        Client(name="c"),
        Router(name="r1"),
        Router(name="r2", blocks=(Block(to="h", port=PROHIBITED),)),
        Router(name="r3"),
        Host(name="h", servers=(Inference(port=OPEN),), filtered_ports=(FILTERED,)),
    ),
    links=tuple(
        Link(a=a, b=b, forward=SLOW, back=SLOW) for a, b in (("c", "r1"), ("r1", "r2"), ("r2", "r3"), ("r3", "h"))
    ),
)
WITHOUT_RIGHTS = (
    "setpriv", "--bounding-set=-all", "--inh-caps=-all",
    "sh", "-c", 'grep CapEff: /proc/self/status >&2; exec "$@"', "sh",
)  # fmt: skip


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab(TOPOLOGY) as made:
        yield made


def measured(lab: Lab, *words: str, before: tuple[str, ...] = ()) -> tuple[Document, str]:
    argv = [*before, sys.executable, "-m", "hopscope", *words, "--json"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(SOURCE), os.environ.get("PYTHONPATH", "")))}
    done = lab.exec("c", argv, env=env, timeout_s=30)
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout), done.stderr


def trace(lab: Lab, *how: str, before: tuple[str, ...] = ()) -> Document:
    words = ("trace", lab.address("h"), "-c", "6", "-i", "100ms", *how)
    (result,) = measured(lab, *words, before=before)[0]["results"]
    return result


def hops(result: Document) -> list[list[str]]:
    return [[one["address"] for one in hop["responders"]] for hop in result["hops"]]


def routers(lab: Lab) -> list[list[str]]:
    return [[lab.address(name, seen_from="c")] for name in ROUTERS]


def by_tcp(port: int) -> tuple[str, ...]:
    return ("--tcp", "--port", str(port))


def test_every_router_is_named_at_its_ttl_and_timed_as_icmp_times_it(lab: Lab) -> None:
    tcp, icmp = trace(lab, *by_tcp(OPEN)), trace(lab)
    assert hops(tcp) == hops(icmp) == [*routers(lab), [lab.address("h")]]
    assert (tcp["reached"], tcp["outcome"], tcp["protocol"], tcp["port"]) == (True, "ok", "tcp", OPEN)
    assert tcp["end"] == {"how": "syn-ack", "code": None, "address": lab.address("h"), "ttl": 4}
    assert (tcp["flow"], icmp["flow"]) == ("varies", "constant")
    for ours, theirs in zip(tcp["hops"], icmp["hops"], strict=True):
        assert 0.9 < ours["delay"]["min_ms"] / theirs["delay"]["min_ms"] < 1.1
    ttls = [hop["responders"][0]["reply_ttl"] for hop in tcp["hops"]]
    assert ttls[:-1] == [hop["responders"][0]["reply_ttl"] for hop in icmp["hops"]][:-1] == [64, 63, 62]


def test_a_path_to_a_closed_port_ends_with_its_refusal(lab: Lab) -> None:
    result = trace(lab, *by_tcp(CLOSED))
    assert hops(result) == [*routers(lab), [lab.address("h")]]
    assert result["end"] == {"how": "rst", "code": None, "address": lab.address("h"), "ttl": 4}
    assert result["reached"] is True


def test_behind_the_last_hop_a_filtered_port_is_silent(lab: Lab) -> None:
    result = trace(lab, *by_tcp(FILTERED))
    assert hops(result)[:3] == routers(lab)
    assert {tuple(hop) for hop in hops(result)[3:]} == {()}
    assert (result["reached"], result["outcome"], result["end"]["ttl"]) == (False, "timeout", 3)


def test_a_router_that_prohibits_ends_the_path_and_is_named(lab: Lab) -> None:
    result = trace(lab, *by_tcp(PROHIBITED))
    (speaker,) = routers(lab)[1]
    assert hops(result) == routers(lab)[:2]
    assert result["end"] == {"how": "unreachable", "code": 13, "address": speaker, "ttl": 2}
    assert (result["reached"], result["outcome"]) == (False, "prohibited")


def test_no_right_is_needed(lab: Lab) -> None:
    words = ("trace", lab.address("h"), "-c", "3", "-i", "100ms", *by_tcp(OPEN))
    found, said = measured(lab, *words, before=WITHOUT_RIGHTS)
    assert re.search(r"^CapEff:\s+0+$", said, re.MULTILINE)
    (result,) = found["results"]
    assert hops(result) == [*routers(lab), [lab.address("h")]]
    assert found["failures"] == []


def test_a_series_says_by_whom_it_was_prohibited(lab: Lab, tmp_path: Path) -> None:
    targets = tmp_path / "targets.toml"
    targets.write_text(
        f'[[target]]\nname = "t"\nhost = "{lab.address("h")}"\nport = {PROHIBITED}\n'
        'probes = ["ping"]\nprotocol = "tcp"\ncount = 3\ninterval = "50ms"\n'
    )
    found, _ = measured(lab, "run", str(targets), "--out", str(tmp_path / "out"))
    (result,) = found["results"]
    assert result["outcome"] == "prohibited"
    tape = [json.loads(line) for line in (tmp_path / "out" / "run.jsonl").read_text().splitlines()]
    said = {
        (record["outcome"], record["kind"], record["by"], record["code"], record["clock"])
        for record in tape
        if record["record"] == "probe" and record["outcome"] not in {"lost", "replied"}  # the gateway replies
    }
    (speaker,) = routers(lab)[1]
    assert {one[:4] for one in said} == {("unreachable", "unreachable", speaker, 13)}


IPV6 = {"c": "2001:db8:1::2", "h": "2001:db8:2::2"}


def test_over_ipv6_as_well() -> None:
    topology = Topology(
        nodes=(Client(name="c"), Router(name="r"), Host(name="h")), links=(Link(a="c", b="r"), Link(a="r", b="h"))
    )
    script = """
cd /proc/sys/net/ipv6/conf
for each in */accept_dad */disable_ipv6; do echo 0 > $each; done
while [ $# -gt 1 ]; do ip -6 addr add $2/64 dev $1 nodad; shift 2; done
if [ $# -eq 1 ]; then ip -6 route add default via $1; else echo 1 > all/forwarding; fi
"""
    with Lab(topology) as lab:
        for node, words in (
            ("r", ("eth0", "2001:db8:1::1", "eth1", "2001:db8:2::1")),
            ("c", ("eth0", IPV6["c"], "2001:db8:1::1")),
            ("h", ("eth0", IPV6["h"], "2001:db8:2::1")),
        ):
            lab.exec(node, ["sh", "-ec", script, "sh", *words], check=True, timeout_s=10)
        found, _ = measured(lab, "trace", IPV6["h"], "-c", "3", "-i", "100ms", *by_tcp(CLOSED))
        (result,) = found["results"]
        assert hops(result) == [["2001:db8:1::1"], [IPV6["h"]]]
        assert (result["end"]["how"], result["family"]) == ("rst", 6)
        assert result["hops"][0]["responders"][0]["reply_ttl"] == 64
        lab.exec("r", ["ip", "-6", "rule", "add", "to", IPV6["h"], "prohibit"], check=True)
        found, _ = measured(lab, "trace", IPV6["h"], "-c", "3", "-i", "100ms", *by_tcp(CLOSED))
        (result,) = found["results"]
        assert result["end"] == {"how": "unreachable", "code": 1, "address": "2001:db8:1::1", "ttl": 1}
