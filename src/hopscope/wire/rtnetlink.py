"""Questions to Linux about routes, neighbours and links, and its answers: rtnetlink(7) as bytes.

Numbers are from the kernel's uapi headers linux/netlink.h, rtnetlink.h, neighbour.h, if_link.h and if.h. Integers are
in the byte order of the machine, addresses in that of the network. Decoders take any bytes: what is cut off or does
not fit is left out, and what is not known is `None`.
"""

import ipaddress
import struct
import sys
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from hopscope.model.plan import Family

Neighbour = Literal["reachable", "stale", "failed", "incomplete", "permanent"]

NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_REQUEST, NLM_F_DUMP = 0x1, 0x300
RTM_NEWLINK, RTM_GETLINK = 16, 18
RTM_NEWROUTE, RTM_GETROUTE = 24, 26
RTM_NEWNEIGH, RTM_GETNEIGH = 28, 30

RTA_DST, RTA_SRC, RTA_OIF, RTA_GATEWAY, RTA_PRIORITY = 1, 2, 4, 5, 6
RTA_PREFSRC, RTA_MULTIPATH, RTA_TABLE, RTA_VIA = 7, 9, 15, 18
RTN_UNICAST = 1
RT_TABLE_MAIN = 254
NDA_DST = 1
IFLA_IFNAME, IFLA_MTU, IFLA_OPERSTATE, IFLA_LINKINFO, IFLA_STATS64, IFLA_CARRIER = 3, 4, 16, 18, 23, 33
IFLA_INFO_KIND = 1
ATTRIBUTE_KIND = 0x3FFF
"""A kind without its two flags, NLA_F_NESTED and NLA_F_NET_BYTEORDER."""

IFF_UP, IFF_LOOPBACK, IFF_LOWER_UP = 0x1, 0x8, 0x10000
OPERSTATES_WITHOUT_A_LINK = frozenset({1, 2, 3})
"""IF_OPER_NOTPRESENT, IF_OPER_DOWN, IF_OPER_LOWERLAYERDOWN (RFC 2863)."""

NUD: dict[int, Neighbour] = {
    0x01: "incomplete", 0x02: "reachable", 0x04: "stale", 0x08: "stale", 0x10: "stale", 0x20: "failed",
    0x40: "permanent", 0x80: "permanent",
}  # fmt: skip
"""Those being verified (delay, probe) are as good as stale; those that need no resolving (noarp) as permanent."""

AF: dict[Family, int] = {4: 2, 6: 10}
FAMILIES: dict[int, Family] = {number: family for family, number in AF.items()}
ADDRESS_BYTES: dict[Family, int] = {4: 4, 6: 16}

_MESSAGE = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_ROUTE = struct.Struct("=BBBBBBBBI")
_NEIGHBOUR = struct.Struct("=BBHiHBB")
_LINK = struct.Struct("=BBHiII")
_NEXT_HOP = struct.Struct("=HBBi")
_ERRORS = struct.Struct("=4Q")
_ERRORS_AT = 32
"""rx_errors, tx_errors, rx_dropped, tx_dropped in `struct rtnl_link_stats64`, behind packets and bytes both ways."""


class Question(Struct, frozen=True):
    """One question: what is asked, whether of all there are, and what stands behind the header."""

    kind: int
    flags: int
    body: bytes

    def packed(self, number: int) -> bytes:
        """The whole message; its answers carry the number."""
        return (
            _MESSAGE.pack(_MESSAGE.size + len(self.body), self.kind, NLM_F_REQUEST | self.flags, number, 0) + self.body
        )


class Message(Struct, frozen=True):
    """One netlink message: what it is, the number of the question it answers, and what stands behind its header."""

    kind: int
    number: int
    body: bytes


class Route(Struct, frozen=True, kw_only=True):
    """One way to send. `bits` is the length of its prefix: 0 is a default route. `gateway` may be of another family."""

    bits: int
    kind: int
    table: int
    metric: int
    oif: int | None
    gateway: str | None
    source: str | None


class Link(Struct, frozen=True, kw_only=True):
    """One interface. `carrier` is known only while it is up; `kind` is that of a virtual one, as "veth"."""

    index: int
    name: str
    up: bool
    loopback: bool
    carrier: bool | None
    kind: str | None
    mtu_bytes: int | None
    rx_errors: int | None = None
    tx_errors: int | None = None
    rx_dropped: int | None = None
    tx_dropped: int | None = None


# Asking


def _attribute(kind: int, value: bytes) -> bytes:
    padding = bytes(-len(value) % 4)
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value + padding


def ask_route(address: str, *, source: str | None, oif: int | None) -> Question:
    """Asks how an address would be sent to. Raises ValueError for what is no address."""
    to = ipaddress.ip_address(address)
    told = _attribute(RTA_DST, to.packed)
    source_bits = 0
    if source is not None:
        own = ipaddress.ip_address(source)
        source_bits = own.max_prefixlen
        told += _attribute(RTA_SRC, own.packed)
    if oif is not None:
        told += _attribute(RTA_OIF, struct.pack("=i", oif))
    head = _ROUTE.pack(AF[_family(to)], to.max_prefixlen, source_bits, 0, 0, 0, 0, 0, 0)
    return Question(RTM_GETROUTE, 0, head + told)


def ask_all_routes(family: Family) -> Question:
    """Asks which routes there are."""
    return Question(RTM_GETROUTE, NLM_F_DUMP, _ROUTE.pack(AF[family], 0, 0, 0, 0, 0, 0, 0, 0))


def ask_neighbour(address: str, index: int) -> Question:
    """Asks what is known of a neighbour on a link. Raises ValueError for what is no address."""
    of = ipaddress.ip_address(address)
    head = _NEIGHBOUR.pack(AF[_family(of)], 0, 0, index, 0, 0, 0)
    return Question(RTM_GETNEIGH, 0, head + _attribute(NDA_DST, of.packed))


def ask_link(index: int) -> Question:
    """Asks how an interface is."""
    return Question(RTM_GETLINK, 0, _LINK.pack(0, 0, 0, index, 0, 0))


def ask_all_links() -> Question:
    """Asks which interfaces there are, and how each is."""
    return Question(RTM_GETLINK, NLM_F_DUMP, _LINK.pack(0, 0, 0, 0, 0, 0))


def _family(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> Family:
    return 4 if address.version == 4 else 6


# Understanding


def messages(data: bytes) -> Iterator[Message]:
    """The messages of one datagram, as far as they are whole."""
    at = 0
    while at + _MESSAGE.size <= len(data):
        length, kind, _, number, _ = _MESSAGE.unpack_from(data, at)
        if length < _MESSAGE.size or at + length > len(data):
            return
        yield Message(kind, number, data[at + _MESSAGE.size : at + length])
        at += length + -length % 4


def attributes(data: bytes) -> dict[int, bytes]:
    """Attributes by kind, as far as they are whole; of two of a kind the last."""
    found: dict[int, bytes] = {}
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size or at + length > len(data):
            break
        found[kind & ATTRIBUTE_KIND] = data[at + _ATTRIBUTE.size : at + length]
        at += length + -length % 4
    return found


def error_of(message: Message) -> int | None:
    """The errno of an error message, 0 for an acknowledgement; `None` when it is no error message."""
    if message.kind != NLMSG_ERROR or len(message.body) < 4:
        return None
    return -int.from_bytes(message.body[:4], sys.byteorder, signed=True)


def route(message: Message) -> Route | None:
    """A route; of several equal ones its first next hop. `None` when the message is about something else."""
    if message.kind != RTM_NEWROUTE or len(message.body) < _ROUTE.size:
        return None
    number, bits, _, _, table, _, _, kind, _ = _ROUTE.unpack_from(message.body)
    family = FAMILIES.get(number)
    if family is None:
        return None
    told = attributes(message.body[_ROUTE.size :])
    hop, first = _first_hop(told.get(RTA_MULTIPATH, b""))
    where = told if RTA_OIF in told else {**told, **hop}
    oif = _integer(where.get(RTA_OIF)) or first
    return Route(
        bits=bits,
        kind=kind,
        table=_integer(told.get(RTA_TABLE)) or table,
        metric=_integer(told.get(RTA_PRIORITY)) or 0,
        oif=oif,
        gateway=_address(where.get(RTA_GATEWAY), family) or _via(where.get(RTA_VIA)),
        source=_address(told.get(RTA_PREFSRC), family),
    )


def _first_hop(data: bytes) -> tuple[dict[int, bytes], int | None]:
    """Attributes and interface of the first `struct rtnexthop`."""
    if len(data) < _NEXT_HOP.size:
        return {}, None
    length, _, _, index = _NEXT_HOP.unpack_from(data)
    return attributes(data[_NEXT_HOP.size : max(length, _NEXT_HOP.size)]), index if index > 0 else None


def _via(data: bytes | None) -> str | None:
    """`struct rtvia`: a gateway of another family."""
    family = None if data is None or len(data) < 2 else FAMILIES.get(int.from_bytes(data[:2], sys.byteorder))
    return None if data is None or family is None else _address(data[2:], family)


def _address(data: bytes | None, family: Family) -> str | None:
    if data is None or len(data) != ADDRESS_BYTES[family]:
        return None
    made = ipaddress.IPv4Address(data) if family == 4 else ipaddress.IPv6Address(data)
    return None if made.is_unspecified else str(made)


def _integer(data: bytes | None) -> int | None:
    return None if data is None or len(data) != 4 else int.from_bytes(data, sys.byteorder)


def neighbour(message: Message) -> Neighbour | None:
    """What is known of a neighbour, or `None`: nothing yet, or the message is about something else."""
    if message.kind != RTM_NEWNEIGH or len(message.body) < _NEIGHBOUR.size:
        return None
    return NUD.get(_NEIGHBOUR.unpack_from(message.body)[4])


def link(message: Message) -> Link | None:
    """An interface; `None` when the message is about something else."""
    if message.kind != RTM_NEWLINK or len(message.body) < _LINK.size:
        return None
    _, _, _, index, flags, _ = _LINK.unpack_from(message.body)
    told = attributes(message.body[_LINK.size :])
    kind = attributes(told.get(IFLA_LINKINFO, b"")).get(IFLA_INFO_KIND)
    errors = told.get(IFLA_STATS64, b"")[_ERRORS_AT : _ERRORS_AT + _ERRORS.size]
    counts: tuple[int | None, ...] = _ERRORS.unpack(errors) if len(errors) == _ERRORS.size else (None,) * 4
    return Link(
        index=index,
        name=_text(told.get(IFLA_IFNAME, b"")),
        up=bool(flags & IFF_UP),
        loopback=bool(flags & IFF_LOOPBACK),
        carrier=_carrier(flags, told),
        kind=None if kind is None else _text(kind),
        mtu_bytes=_integer(told.get(IFLA_MTU)),
        rx_errors=counts[0],
        tx_errors=counts[1],
        rx_dropped=counts[2],
        tx_dropped=counts[3],
    )


def _carrier(flags: int, told: dict[int, bytes]) -> bool | None:
    """Whether something is plugged in. An interface that is switched off does not know: many switch off their light."""
    if not flags & IFF_UP:
        return None
    state, said = told.get(IFLA_OPERSTATE, b""), told.get(IFLA_CARRIER, b"")
    if state and state[0] in OPERSTATES_WITHOUT_A_LINK:
        return False
    return bool(said[0]) if said else bool(flags & IFF_LOWER_UP)


def _text(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode("utf-8", "replace")
