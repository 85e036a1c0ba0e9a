"""A topology laid out: every address, interface and next hop, decided once and the same each time.

Pure: nothing here opens a socket or asks the time. Mistakes in a topology are found here, before the first namespace
exists.
"""

import ipaddress
from collections import deque
from collections.abc import Iterator

from msgspec import Struct

from hopscope.lab.topology import LabError, Link, Node, Router, Topology

WIRES = "wires"  # the namespace in the middle of every relayed link


class Interface(Struct, frozen=True, kw_only=True):
    """One end of a link: its name and addresses in its node, and the same of the far end."""

    link: int
    node: str
    peer: str
    name: str
    address: str
    peer_address: str
    mac: str
    peer_mac: str


class Route(Struct, frozen=True, kw_only=True):
    """How a node reaches one address it has no link to."""

    destination: str
    via: str
    interface: str
    source: str


class Hop(Struct, frozen=True, kw_only=True):
    """A node as a trace sees it: the TTL that ends there and the address it answers from."""

    ttl: int
    node: str
    address: str


class Layout(Struct, frozen=True, kw_only=True):
    """A topology with every address, interface and next hop decided."""

    topology: Topology
    interfaces: dict[str, tuple[Interface, ...]]
    toward: dict[str, dict[str, Interface]]

    def node(self, name: str) -> Node:
        """The node of this name; LabError when there is none."""
        for node in self.topology.nodes:
            if node.name == name:
                return node
        known = ", ".join(self.interfaces)
        raise LabError(f"no node {name!r} in the lab", f"It has {known}.")

    def address(self, name: str, *, seen_from: str | None = None) -> str:
        """The node's address on its first link, or on the link towards `seen_from`; LabError without a way there."""
        self.node(name)
        if seen_from is None:
            return self.interfaces[name][0].address
        return self._step(name, seen_from).address

    def path(self, source: str, target: str) -> tuple[Hop, ...]:
        """The hops from source to target, the target last, as TTLs from 1 up; LabError without a way there."""
        hops: list[Hop] = []
        here = source
        while here != target:
            here = self._step(here, target).peer
            address = self.address(here, seen_from=source)
            hops.append(Hop(ttl=len(hops) + 1, node=here, address=address))
        return tuple(hops)

    def link(self, sender: str, receiver: str) -> int:
        """The index of the link between two neighbours; LabError when they are none."""
        self.node(sender)
        for interface in self.interfaces[sender]:
            if interface.peer == receiver:
                return interface.link
        raise LabError(f"no link from {sender} to {receiver}", "Name two neighbours of the topology.")

    def routes(self, name: str) -> tuple[Route, ...]:
        """The static routes of a node: one default for an end, one per far address for a router."""
        own = self.interfaces[name]
        if not isinstance(self.node(name), Router):
            first = own[0]
            default = Route(destination="default", via=first.peer_address, interface=first.name, source=first.address)
            return (default,)
        direct = {interface.address for interface in own} | {interface.peer_address for interface in own}
        return tuple(
            Route(destination=address, via=out.peer_address, interface=out.name, source=out.address)
            for other, out in self.toward[name].items()
            for address in sorted({interface.address for interface in self.interfaces[other]} - direct)
        )

    def _step(self, here: str, target: str) -> Interface:
        self.node(here)
        self.node(target)
        interface = self.toward[here].get(target)
        if interface is None:
            raise LabError(f"no way from {here} to {target}", "Add links; only routers forward.")
        return interface


def lay_out(topology: Topology) -> Layout:
    """Decides addresses, interfaces and routes. Raises LabError for a topology that makes no network.

    Routes are the shortest in links, the first declared among equals: symmetrical in a tree.
    """
    _check(topology)
    pool = _Pool(topology)
    nodes = {node.name: node for node in topology.nodes}
    ends: dict[str, list[Interface]] = {name: [] for name in nodes}
    for index, link in enumerate(topology.links):
        for interface in _ends(index, link, pool.address(nodes[link.a]), pool.address(nodes[link.b]), ends):
            ends[interface.node].append(interface)
    interfaces = {name: tuple(found) for name, found in ends.items()}
    toward: dict[str, dict[str, Interface]] = {name: {} for name in nodes}
    for target in nodes:
        for interface in _tree(target, nodes, interfaces):
            toward[interface.peer][target] = _far_end(interface, interfaces)
    return Layout(topology=topology, interfaces=interfaces, toward=toward)


def _check(topology: Topology) -> None:
    names = [node.name for node in topology.nodes]
    for name in names:
        if names.count(name) > 1:
            raise LabError(f"two nodes are called {name!r}", "Rename one.")
        if not name or name == WIRES or not all(letter.isalnum() or letter in "-_." for letter in name):
            raise LabError(f"node name {name!r}", f"Use letters, digits, '-', '_' and '.'; {WIRES!r} is the lab's own.")
    for link in topology.links:
        for end in (link.a, link.b):
            if end not in names:
                raise LabError(f"link {link.a} to {link.b}: no node {end!r}", "Add it or correct the name.")
        if link.a == link.b:
            raise LabError(f"link from {link.a} to itself", "Name two nodes.")
    for node in topology.nodes:
        _check_links(node, sum(node.name in (link.a, link.b) for link in topology.links))
        _check_blocks(node, names)


def _check_links(node: Node, count: int) -> None:
    if count == 0:
        raise LabError(f"node {node.name} has no link", "Add one.")
    if count > 1 and not isinstance(node, Router):
        raise LabError(f"{node.name} has {count} links", "A client or host has one; put a router before it.")


def _check_blocks(node: Node, names: list[str]) -> None:
    for block in node.blocks if isinstance(node, Router) else ():
        if block.to not in names or block.to == node.name:
            raise LabError(f"{node.name} blocks {block.to!r}", "Name another node of the topology.")


class _Pool:
    """Hands out addresses in order; remembers what is taken."""

    def __init__(self, topology: Topology) -> None:
        self._default = topology.prefix
        self._taken: set[str] = set()
        self._free: dict[str, Iterator[ipaddress.IPv4Address]] = {}
        for node in topology.nodes:
            if node.address is not None:
                self._take_given(node.name, node.address)

    def _take_given(self, name: str, address: str) -> None:
        try:
            ipaddress.IPv4Address(address)
        except ValueError as error:
            raise LabError(f"address of {name}: {error}", "Give an IPv4 address.") from error
        if address in self._taken:
            raise LabError(f"address {address} of {name} is taken", "Give each node its own.")
        self._taken.add(address)

    def address(self, node: Node) -> str:
        """The node's own address, else the next free one of its prefix."""
        if node.address is not None:
            return node.address
        prefix = node.prefix or self._default
        if prefix not in self._free:
            try:
                self._free[prefix] = ipaddress.IPv4Network(prefix).hosts()
            except ValueError as error:
                raise LabError(f"prefix {prefix} of {node.name}: {error}", "Give an IPv4 prefix.") from error
        for candidate in self._free[prefix]:
            text = str(candidate)
            if text not in self._taken and candidate.packed[3] not in (0, 255):
                self._taken.add(text)
                return text
        raise LabError(f"prefix {prefix} of {node.name} is used up", "Give a wider one.")


def _ends(
    index: int, link: Link, address: str, peer_address: str, ends: dict[str, list[Interface]]
) -> tuple[Interface, Interface]:
    mac, peer_mac = (f"02:00:00:{index >> 8:02x}:{index & 255:02x}:{side}" for side in ("0a", "0b"))
    near = Interface(
        link=index,
        node=link.a,
        peer=link.b,
        name=f"eth{len(ends[link.a])}",
        address=address,
        peer_address=peer_address,
        mac=mac,
        peer_mac=peer_mac,
    )
    far = Interface(
        link=index,
        node=link.b,
        peer=link.a,
        name=f"eth{len(ends[link.b])}",
        address=peer_address,
        peer_address=address,
        mac=peer_mac,
        peer_mac=mac,
    )
    return near, far


def _tree(root: str, nodes: dict[str, Node], interfaces: dict[str, tuple[Interface, ...]]) -> Iterator[Interface]:
    """The interfaces by which a breadth-first walk from root first reaches each other node."""
    seen = {root}
    waiting = deque((root,))
    while waiting:
        here = waiting.popleft()
        for interface in interfaces[here]:
            if interface.peer in seen:
                continue
            seen.add(interface.peer)
            yield interface
            if isinstance(nodes[interface.peer], Router):
                waiting.append(interface.peer)


def _far_end(interface: Interface, interfaces: dict[str, tuple[Interface, ...]]) -> Interface:
    return next(
        other for other in interfaces[interface.peer] if other.link == interface.link and other.node == interface.peer
    )
