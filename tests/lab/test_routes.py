"""What a machine in the lab says of its ways: the gateway, and each way in which the first link can be broken."""

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import hopscope.lab
from hopscope.lab.box import Lab
from hopscope.lab.topology import Client, Host, Link, Router, Topology
from hopscope.model.record import Routed

pytestmark = pytest.mark.lab

SOURCE = Path(hopscope.lab.__file__).parents[2]
ASK = f"""
import sys
sys.path[:0] = {[str(SOURCE), *sys.path]!r}
import msgspec
from hopscope.net.route import ask
address = sys.argv[1] if len(sys.argv) > 1 else None
print(msgspec.json.encode(ask(1, 2, address, None)).decode())
"""
CLIENT, GATEWAY, HOST = "192.168.1.23", "192.168.1.1", "11.0.0.9"
TOPOLOGY = Topology(
    nodes=(Client(name="c", address=CLIENT), Router(name="r", address=GATEWAY), Host(name="h", address=HOST)),
    links=(Link(a="c", b="r"), Link(a="r", b="h")),
)


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab(TOPOLOGY) as made:
        yield made


def asked(lab: Lab, *address: str, node: str = "c") -> Routed:
    done = lab.exec(node, [sys.executable, "-c", ASK, *address], timeout_s=20, check=True)
    return msgspec.json.decode(done.stdout, type=Routed)


def ip(lab: Lab, *words: str, node: str = "c") -> None:
    lab.exec(node, ["ip", *words], timeout_s=10, check=True)


@pytest.mark.parametrize("address", [(HOST,), ()])
def test_the_gateway_is_seen(lab: Lab, address: tuple[str, ...]) -> None:
    found = asked(lab, *address)
    assert (found.interface, found.source, found.gateway) == ("eth0", CLIENT, GATEWAY)
    assert (found.up, found.carrier, found.neighbour, found.mtu_bytes) == (True, True, "permanent", 1500)
    assert (found.rx_errors, found.tx_errors, found.error) == (0, 0, None)


def test_a_neighbour_needs_no_gateway(lab: Lab) -> None:
    found = asked(lab, GATEWAY)
    assert (found.interface, found.gateway, found.neighbour) == ("eth0", None, "permanent")


def test_a_gateway_that_does_not_answer_for_its_address_has_failed(lab: Lab) -> None:
    ip(lab, "neigh", "replace", GATEWAY, "dev", "eth0", "nud", "failed")
    found = asked(lab, HOST)
    assert (found.gateway, found.neighbour, found.up, found.carrier) == (GATEWAY, "failed", True, True)
    ip(lab, "neigh", "del", GATEWAY, "dev", "eth0")
    assert asked(lab, HOST).neighbour is None  # nobody asked lately: not known


def test_without_a_default_route_that_is_the_error(lab: Lab) -> None:
    ip(lab, "route", "del", "default")
    assert asked(lab) == Routed(task=1, at=2, error="no default route")
    assert asked(lab, HOST) == Routed(task=1, at=2, error="ENETUNREACH: no route")
    assert asked(lab, GATEWAY).interface == "eth0"


@pytest.mark.parametrize("address", [(HOST,), ()])
def test_an_interface_that_is_switched_off_is_named_though_its_routes_are_gone(
    lab: Lab, address: tuple[str, ...]
) -> None:
    ip(lab, "link", "set", "eth0", "down")
    found = asked(lab, *address)
    assert (found.interface, found.up, found.carrier, found.gateway) == ("eth0", False, None, None)
    assert found.error == ("ENETUNREACH: no route" if address else "no default route")


def test_a_cable_that_was_pulled_shows_as_a_missing_carrier(lab: Lab) -> None:
    ip(lab, "link", "set", "eth0", "down", node="r")
    found = asked(lab, HOST)
    assert (found.interface, found.gateway, found.up, found.carrier) == ("eth0", GATEWAY, True, False)
    ip(lab, "route", "del", "default")
    found = asked(lab)
    assert (found.interface, found.up, found.carrier, found.error) == ("eth0", True, False, "no default route")


def test_of_several_interfaces_none_is_blamed_for_a_missing_route(lab: Lab) -> None:
    ip(lab, "link", "set", "eth1", "down", node="r")
    ip(lab, "link", "set", "eth0", "down", node="r")
    assert asked(lab, node="r") == Routed(task=1, at=2, error="no default route")


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("prohibit", "EACCES: a route of this machine prohibits it"),
        ("unreachable", "EHOSTUNREACH: a route of this machine says unreachable"),
        ("blackhole", "EINVAL: a route of this machine drops it without a word"),
    ],
)
def test_a_route_of_its_own_that_refuses_is_told(lab: Lab, kind: str, error: str) -> None:
    ip(lab, "route", "add", kind, HOST)
    assert asked(lab, HOST) == Routed(task=1, at=2, error=error)


def test_a_default_route_is_that_of_the_main_table_with_the_least_metric(lab: Lab) -> None:
    ip(lab, "route", "replace", "default", "via", "192.168.1.1", "dev", "eth0", "metric", "500")
    ip(lab, "route", "del", "default", "metric", "0")
    ip(lab, "link", "add", "other", "type", "veth", "peer", "name", "end")
    ip(lab, "addr", "add", "10.9.9.2/24", "dev", "other")
    ip(lab, "link", "set", "other", "up")
    ip(lab, "route", "add", "default", "via", "10.9.9.1", "dev", "other", "table", "99")
    assert asked(lab).gateway == GATEWAY
    ip(lab, "route", "add", "default", "via", "10.9.9.1", "dev", "other", "metric", "100")
    found = asked(lab)
    assert (found.interface, found.gateway, found.source) == ("other", "10.9.9.1", "10.9.9.2")
