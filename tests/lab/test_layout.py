"""Addresses, routes and hops of a topology, decided once and the same each time."""

import pytest

from hopscope.lab.layout import Hop, Layout, lay_out
from hopscope.lab.topology import Block, Client, Host, LabError, Link, Node, Router, Topology

TREE = Topology(
    nodes=(
        Client(name="c", address="192.168.1.23"),
        Router(name="gateway", address="192.168.1.1"),
        Router(name="core", prefix="11.2.0.0/16"),
        Router(name="edge"),
        Host(name="near", address="11.9.0.1"),
        Host(name="far"),
    ),
    links=(
        Link(a="c", b="gateway"),
        Link(a="gateway", b="core"),
        Link(a="core", b="near"),
        Link(a="core", b="edge"),
        Link(a="edge", b="far"),
    ),
)


@pytest.fixture(scope="module")
def layout() -> Layout:
    return lay_out(TREE)


def test_the_same_topology_gives_the_same_layout(layout: Layout) -> None:
    assert lay_out(TREE) == layout


def test_given_addresses_are_kept_and_others_come_in_order_from_the_prefix(layout: Layout) -> None:
    assert {name: [own.address for own in layout.interfaces[name]] for name in layout.interfaces} == {
        "c": ["192.168.1.23"],
        "gateway": ["192.168.1.1", "192.168.1.1"],
        "core": ["11.2.0.1", "11.2.0.2", "11.2.0.3"],
        "edge": ["11.0.0.1", "11.0.0.2"],
        "near": ["11.9.0.1"],
        "far": ["11.0.0.3"],
    }


def test_no_two_interfaces_share_a_hardware_address(layout: Layout) -> None:
    macs = [own.mac for interfaces in layout.interfaces.values() for own in interfaces]
    assert len(set(macs)) == len(macs) == 2 * len(TREE.links)


def test_a_path_is_what_a_trace_sees(layout: Layout) -> None:
    assert layout.path("c", "far") == (
        Hop(ttl=1, node="gateway", address="192.168.1.1"),
        Hop(ttl=2, node="core", address="11.2.0.1"),
        Hop(ttl=3, node="edge", address="11.0.0.1"),
        Hop(ttl=4, node="far", address="11.0.0.3"),
    )
    back = layout.path("far", "c")
    assert [hop.node for hop in back] == ["edge", "core", "gateway", "c"]
    assert back[1].address == layout.address("core", seen_from="far") == "11.2.0.3"


def test_an_end_has_a_default_route_and_a_router_one_for_each_far_address(layout: Layout) -> None:
    assert [(route.destination, route.via) for route in layout.routes("c")] == [("default", "192.168.1.1")]
    routes = {route.destination: (route.via, route.interface) for route in layout.routes("core")}
    assert routes == {
        "192.168.1.23": ("192.168.1.1", "eth0"),
        "11.0.0.2": ("11.0.0.1", "eth2"),
        "11.0.0.3": ("11.0.0.1", "eth2"),
    }


def test_neighbours_have_a_link_and_others_none(layout: Layout) -> None:
    assert layout.link("edge", "core") == layout.link("core", "edge") == 3
    with pytest.raises(LabError, match="no link from c to core"):
        layout.link("c", "core")


def test_hosts_do_not_forward() -> None:
    names = ("a", "b")
    layout = lay_out(
        Topology(
            nodes=(Client(name="c"), Router(name="a"), Router(name="b"), Host(name="h")),
            links=(Link(a="c", b="a"), Link(a="a", b="b"), Link(a="b", b="h")),
        )
    )
    assert [hop.node for hop in layout.path("h", "c")] == ["b", "a", "c"]
    assert all(layout.toward["c"][name].peer == "a" for name in (*names, "h"))


C, R, H = Client(name="c"), Router(name="r"), Host(name="h")
C_R, R_H = Link(a="c", b="r"), Link(a="r", b="h")


@pytest.mark.parametrize(
    ("nodes", "links", "says"),
    [
        ((C, R, H, R), (C_R, R_H), "two nodes are called 'r'"),
        ((C, Router(name="a b")), (Link(a="c", b="a b"),), "node name 'a b'"),
        ((C, Router(name="wires")), (Link(a="c", b="wires"),), "node name 'wires'"),
        ((C, R), (C_R, R_H), "no node 'h'"),
        ((C, R), (C_R, Link(a="r", b="r")), "to itself"),
        ((C, R, H), (C_R,), "h has no link"),
        ((C, R, H), (C_R, R_H, Link(a="c", b="h")), "c has 2 links"),
        ((C, Router(name="r", blocks=(Block(to="x"),)), H), (C_R, R_H), "r blocks 'x'"),
        ((C, Router(name="r", blocks=(Block(to="r"),)), H), (C_R, R_H), "r blocks 'r'"),
        ((Client(name="c", address="11.0.0.300"), R), (C_R,), "address of c"),
        ((Client(name="c", address="11.0.0.1"), Router(name="r", address="11.0.0.1")), (C_R,), "is taken"),
        ((Client(name="c", prefix="11.0.0.1/24"), R), (C_R,), "prefix 11.0.0.1/24 of c"),
        ((Client(name="c", prefix="11.0.0.0/30"), Router(name="r", prefix="11.0.0.0/30"), H), (C_R, R_H), "used up"),
    ],
)
def test_a_topology_that_makes_no_network_is_refused(
    nodes: tuple[Node, ...], links: tuple[Link, ...], says: str
) -> None:
    with pytest.raises(LabError, match=says):
        lay_out(Topology(nodes=nodes, links=links))


def test_unconnected_nodes_have_no_way_to_each_other() -> None:
    layout = lay_out(
        Topology(
            nodes=(C, R, Host(name="h"), Router(name="q")),
            links=(C_R, Link(a="q", b="h")),
        )
    )
    with pytest.raises(LabError, match="no way from c to h"):
        layout.path("c", "h")
    with pytest.raises(LabError, match="no node 'x'"):
        layout.address("x")
