"""How this machine would send to an address, asked of its own system: interface, gateway, neighbour (rtnetlink(7)).

Everything comes over one netlink socket, never from /sys: that shows the interfaces of whoever mounted it, not those
of our network namespace. Answers are read within bounds and a deadline; one that is missing or makes no sense leaves
its facts unknown. Systems other than Linux are not asked yet: there, all is unknown, and nothing is an error.
"""

import errno
import socket
import sys
from collections.abc import Iterator

from msgspec.structs import replace

from hopscope.model.plan import Family, family_of
from hopscope.model.record import Routed
from hopscope.wire import rtnetlink
from hopscope.wire.rtnetlink import Link, Message, Question, Route

PATIENCE_S = 1.0
READ_BYTES = 1 << 18
MOST_READS = 64
"""Of one answer: a table with more routes or links than fit into these is not read to its end."""
ALL_FAMILIES: tuple[Family, ...] = (4, 6)

_WHY = {
    errno.ENETUNREACH: "no route",
    errno.EHOSTUNREACH: "a route of this machine says unreachable",
    errno.EACCES: "a route of this machine prohibits it",
    errno.EINVAL: "a route of this machine drops it without a word",
    errno.ENETDOWN: "the interface is down",
}
"""Errors that answer the question; any other says that it could not be answered."""
NO_DEFAULT = "no default route"


class _Refused(Exception):
    """The system answered with an error."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _Kernel:
    """A netlink socket, one question at a time."""

    def __init__(self) -> None:
        """Raises OSError where the system has none for us."""
        self._sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._sock.settimeout(PATIENCE_S)
        self._asked = 0

    def one(self, question: Question) -> Message | None:
        """The answer to a question, `None` when there is none. Raises _Refused."""
        return next(self._answers(question), None)

    def all(self, question: Question) -> tuple[list[Message], bool]:
        """The answers to a question about many, and whether these are all. Raises _Refused."""
        found = list(self._answers(question))
        whole = bool(found) and found[-1].kind == rtnetlink.NLMSG_DONE
        return found, whole

    def _answers(self, question: Question) -> Iterator[Message]:
        """Messages about a question as they come, the end of many among them. Raises _Refused."""
        self._asked += 1
        try:
            self._sock.send(question.packed(self._asked))
            for _ in range(MOST_READS):
                data, _, flags, sender = self._sock.recvmsg(READ_BYTES)
                if sender[0] != 0 or flags & socket.MSG_TRUNC:
                    continue  # the kernel's port is 0; anybody else may write to us too
                for message in rtnetlink.messages(data):
                    if message.number != self._asked:
                        continue
                    refused = rtnetlink.error_of(message)
                    if refused:
                        raise _Refused(refused)
                    yield message
                    if message.kind == rtnetlink.NLMSG_DONE:
                        return
        except OSError:
            return

    def close(self) -> None:
        """Give the socket back."""
        self._sock.close()


def ask(
    task: int,
    at: int,
    address: str | None,
    family: Family | None,
    *,
    source: str | None = None,
    interface: str | None = None,
) -> Routed:
    """How an address would be sent to, or by default when there is none; `at` is when this was asked.

    `source` and `interface` are those that probes are bound to, if they are.
    """
    unknown = Routed(task=task, at=at)
    if sys.platform != "linux":
        return unknown
    try:
        kernel = _Kernel()
    except OSError:
        return unknown
    try:
        return _asked(kernel, unknown, address, family, source, interface)
    finally:
        kernel.close()


def _asked(
    kernel: _Kernel, unknown: Routed, address: str | None, family: Family | None, source: str | None,
    interface: str | None,
) -> Routed:  # fmt: skip
    if address is None:
        return _by_default(kernel, unknown, ALL_FAMILIES if family is None else (family,))
    bare, _, zone = address.partition("%")
    own = source if source is not None and family_of(source) == family_of(bare) else None
    try:
        message = kernel.one(rtnetlink.ask_route(bare, source=own, oif=_index(zone or interface)))
    except ValueError:
        return unknown  # no address
    except _Refused as refused:
        why = _WHY.get(refused.number)
        if why is None:
            return unknown
        error = f"{errno.errorcode[refused.number]}: {why}"
        return _without_a_route(kernel, replace(unknown, error=error))
    route = None if message is None else rtnetlink.route(message)
    return unknown if route is None else _along(kernel, unknown, route, bare)


def _by_default(kernel: _Kernel, unknown: Routed, families: tuple[Family, ...]) -> Routed:
    """The default route of the first family that has one: that of the main table, then the least metric."""
    for family in families:
        try:
            told, whole = kernel.all(rtnetlink.ask_all_routes(family))
        except _Refused:
            return unknown
        found = [route for message in told if (route := rtnetlink.route(message)) is not None and _is_default(route)]
        if found:
            return _along(kernel, unknown, min(found, key=_rank), None)
        if not whole:
            return unknown
    return _without_a_route(kernel, replace(unknown, error=NO_DEFAULT))


def _is_default(route: Route) -> bool:
    return route.bits == 0 and route.kind == rtnetlink.RTN_UNICAST


def _index(name: str | None) -> int | None:
    """The number of an interface, or `None`."""
    if name is None or not name:
        return None
    try:
        return int(name) if name.isdecimal() else socket.if_nametoindex(name)
    except OSError:
        return None


def _rank(route: Route) -> tuple[bool, int]:
    return route.table != rtnetlink.RT_TABLE_MAIN, route.metric


def _along(kernel: _Kernel, unknown: Routed, route: Route, address: str | None) -> Routed:
    """A route with what is known of its interface and its next hop."""
    link = None if route.oif is None else _link(kernel, route.oif)
    hop = route.gateway or address
    routed = replace(unknown, source=route.source, gateway=route.gateway)
    if link is None:
        return routed
    routed = _with_link(routed, link)
    if hop is None or link.loopback:
        return routed
    return replace(
        routed,
        neighbour=_neighbour(kernel, hop, link.index),
        source=route.source or _source_towards(kernel, hop, link.index),
    )


def _link(kernel: _Kernel, index: int) -> Link | None:
    try:
        message = kernel.one(rtnetlink.ask_link(index))
    except _Refused:
        return None
    return None if message is None else rtnetlink.link(message)


def _neighbour(kernel: _Kernel, address: str, index: int) -> rtnetlink.Neighbour | None:
    """What the neighbour table says of a next hop; `None` too when nobody has asked for it lately."""
    try:
        message = kernel.one(rtnetlink.ask_neighbour(address, index))
    except _Refused:
        return None
    return None if message is None else rtnetlink.neighbour(message)


def _source_towards(kernel: _Kernel, hop: str, index: int) -> str | None:
    """A default route in a table names no source: it is that of the way to its gateway."""
    try:
        message = kernel.one(rtnetlink.ask_route(hop, source=None, oif=index))
    except _Refused:
        return None
    route = None if message is None else rtnetlink.route(message)
    return None if route is None else route.source


def _with_link(routed: Routed, link: Link) -> Routed:
    return replace(
        routed,
        interface=link.name or None,
        up=link.up,
        carrier=link.carrier,
        mtu_bytes=link.mtu_bytes,
        rx_errors=link.rx_errors,
        tx_errors=link.tx_errors,
        rx_dropped=link.rx_dropped,
        tx_dropped=link.tx_dropped,
    )


def _without_a_route(kernel: _Kernel, routed: Routed) -> Routed:
    """No route. A link that goes down takes its routes along, so the interface that is down is named as the reason.

    Only where there is no doubt which: the one interface there is, else the one that is hardware.
    """
    try:
        told, whole = kernel.all(rtnetlink.ask_all_links())
    except _Refused:
        return routed
    links = [link for message in told if (link := rtnetlink.link(message)) is not None and not link.loopback]
    for candidates in (links, [link for link in links if link.kind is None]):
        if whole and len(candidates) == 1:
            only = candidates[0]
            return routed if only.up and only.carrier else _with_link(routed, only)
    return routed
