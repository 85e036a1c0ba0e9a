"""The way that this machine's system names: loopback here, gateways and broken links in tests/lab/test_routes.py."""

import asyncio
import sys

import pytest

from hopscope.model.plan import Family, RouteTask
from hopscope.model.record import Done, Record, Routed
from hopscope.net import route
from hopscope.net.clock import SystemClock
from hopscope.probes import route as probe

pytestmark = [
    pytest.mark.loopback,
    pytest.mark.skipif(sys.platform != "linux", reason="other systems are not asked yet"),
]


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.8.7", "::1"])
def test_to_itself_this_machine_sends_by_its_loopback_without_a_gateway(address: str) -> None:
    found = route.ask(7, 5, address, None)
    assert (found.task, found.at, found.interface, found.gateway, found.neighbour) == (7, 5, "lo", None, None)
    assert (found.up, found.carrier, found.error) == (True, True, None)
    assert found.source == ("::1" if ":" in address else "127.0.0.1")
    assert found.mtu_bytes == 65536
    assert None not in {found.rx_errors, found.tx_errors, found.rx_dropped, found.tx_dropped}


@pytest.mark.parametrize("address", ["", "nowhere.example", "1.2.3", "1.2.3.4.5", "::g", "%lo", "127.0.0.1\0"])
def test_of_what_is_no_address_nothing_is_known_and_nothing_is_an_error(address: str) -> None:
    assert route.ask(1, 2, address, None) == Routed(task=1, at=2)


@pytest.mark.parametrize(
    ("source", "interface", "by"),
    [("127.0.0.5", None, "127.0.0.5"), (None, "lo", "127.0.0.1"), ("::1", None, "127.0.0.1")],
)
def test_what_probes_are_bound_to_counts_in_its_own_family(source: str, interface: str, by: str) -> None:
    found = route.ask(1, 2, "127.0.0.1", None, source=source, interface=interface)
    assert (found.interface, found.error) == ("lo", None)
    assert (found.source or source) == by


@pytest.mark.parametrize("family", [None, 4, 6])
def test_the_default_route_is_found_or_said_to_be_missing(family: Family | None) -> None:
    found = route.ask(1, 2, None, family)
    assert (found.interface is not None and found.interface != "lo") or found.error == route.NO_DEFAULT


def test_a_probe_yields_what_is_known_and_ends() -> None:
    task = RouteTask(target="home", vantage="here", reason="asked", address="127.0.0.1")

    async def told() -> list[Record]:
        return [record async for record in probe.run(3, task, SystemClock())]

    routed, done = asyncio.run(told())
    assert isinstance(routed, Routed)
    assert isinstance(done, Done)
    assert (routed.task, routed.interface, done.task, done.complete) == (3, "lo", 3, True)
    assert routed.at <= done.at
