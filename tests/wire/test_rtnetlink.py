"""Routes, neighbours and links as Linux told them, cut off anywhere and made up; byte order is that of the capture.

Captured on Linux 6.18 in a namespace with one veth pair, e0 (interface 3) up with 192.0.2.2/24 and 2001:db8::2/64.
"""

import base64
import sys
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.wire import rtnetlink
from hopscope.wire.rtnetlink import Link, Message, Neighbour, Question, Route

if sys.byteorder != "little":
    pytest.skip("the captures are from a little-endian machine", allow_module_level=True)

MAIN, LOCAL = 254, 255


def unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b85decode(text))


TO_LOOPBACK = bytes.fromhex(
    "6800000018000000070000008556000002200000fe0000020002008008000f00fe000000080001007f0000010800040001000000"
    "080007007f000001080019000000000024000c000200000000000000000000000000000000000000000000000000000000000000"
)
ON_LINK = bytes.fromhex(
    "6800000018000000070000008556000002200000fe0000010002000008000f00fe00000008000100c00002010800040003000000"
    "08000700c0000202080019000000000024000c000200000000000000000000000000000000000000000000000000000000000000"
)
BY_GATEWAY = bytes.fromhex(
    "7000000018000000070000008556000002200000fe0000010002000008000f00fe00000008000100080808080800040003000000"
    "08000700c000020208000500c0000201080019000000000024000c00020000000000000000000000000000000000000000000000"
    "0000000000000000"
)
BY_ONE_OF_TWO = bytes.fromhex(
    "7000000018000000070000008556000002200000fe0000010002000008000f00fe00000008000100c63364090800040003000000"
    "08000700c000020208000500c0000203080019000000000024000c00020000000000000000000000000000000000000000000000"
    "0000000000000000"
)
BY_SIXTH = bytes.fromhex(
    "8000000018000000070000008556000002200000fe0000010002000008000f00fe00000008000100cb0071050800040003000000"
    "08000700c0000202160012000a0020010db80000000000000000000000010000080019000000000024000c000200000000000000"
    "000000000000000000000000000000000000000000000000"
)
BY_GATEWAY_6 = bytes.fromhex(
    "b00000001800000007000000855600000a808000fe0300010000000008000f00fe0000001400010020010db90000000000000000"
    "0000000114000200000000000000000000000000000000001400070020010db80000000000000000000000020800060000040000"
    "1400050020010db8000000000000000000000001080004000300000024000c000200000000000000000000000000000000000000"
    "0000000000000000000000000500140000000000"
)
PROHIBITED = bytes.fromhex(
    "38000000020000000700000085560000f3ffffff240000001a000100070000000000000002200000000000000000000008000100c6120001"
)
UNREACHABLE = bytes.fromhex(
    "380000000200000007000000855600008fffffff240000001a000100070000000000000002200000000000000000000008000100c6120002"
)
BLACKHOLE = bytes.fromhex(
    "38000000020000000700000085560000eaffffff240000001a000100070000000000000002200000000000000000000008000100c6120003"
)
NEIGHBOUR = bytes.fromhex(
    "4c0000001c000000070000008556000002000000030000008000000108000100c00002010a00020002000000000b000008000400"
    "000000001400030007000000070000000700000001000000"
)
NO_NEIGHBOUR = bytes.fromhex(
    "38000000020000000700000085560000feffffff240000001e000100070000000000000002000000030000000000000008000100c0000209"
)
VETH = unpacked(
    "c-qxdJ4*vW5dLoOE|-L;X9x%iK2UsMVNkJ%@frOAHe#8=1FMK&tgjI)>}*n4q_eTi&#<)g2Z)80h21%`JDPA@j3R;#cl+(`%+7o}Gkfm"
    ">J^+vY^L-j%!KSg|TfCrs8$l6BqYsayaLGCa#zC!jQPG%&g9n#!5j%RlgeYPh5&fv(n&23e##ynO)3MVi32q2(3a;Wc@(9afzb$^owI3"
    "G~u=ILT{4U74s4=BkG42ZQ8I4)eDl?%^k#82@4nt;NM>o<Etl@vjAyrYyJzBrSKZkkBsmYj+JTesREI2(fH8PqUWxsZOQV;3@iuN!rY4"
    "_qIyX{<e{+;>%srXcK?%}ww|E9_kPaP>N5MS<ro7+6DugsYjxf^#Q_j#NrcTIDk?LRDK5bl|`bfC-|i{G#M)Sau9z}xDgPs&gDyz;4Di"
    "(`QA%KYPY%a)C4nZLh<M$AU_$a%bm)j#$&RF51rzR9~xJ??#>rb$vrIO$SXvP_}BXKV-Sp@XgP4Wht8<N"
)
LOOPBACK = unpacked(
    "c-q^;%D^DNz`(!`#I0dKf`NsZ5lDJ6fJl%yGeb^30|N&GFT)FF1_oBJY7i|5rJcblIT%=gBqNYE0*iAn7(;1kC@lx2ZK1S0RG$XJ|NkI"
    "b6RO_|O4~ze2PkdL@Z&!_khX!UcY>Ou05*q}K@n=6GE`h2N*jP_HU<|c?Fx0bI+*5y`V+!tg0s&sh%*cqkOGcf+5#R1ZD5!(LD_5!dHI"
    "E<simn52Fy|nJwWjeq;O^c$0#ahK%&tBBOW<yKmZuEptOq3oCQo=z%&6itw99nVo+LIwnm8I#|ns^FHk=?Ky{$I^FI(Q;D@LMu^X&785"
    "#l^89>%WFfl-L2dbWgSGe5@G6UV+jA(9Vz!N?V@67PZg8>W7E{J{T>P#4!8Ppg?0V%)+n8wM?RU%k)vI0{j2&gdd5!BDZVAsIH;Mf2F*"
    "#<i-"
)
TABLE_4 = unpacked(
    "c-ozkF%H5o3`M^kXaW)fbwC|EFtV}s2n<Y|pcmi-Ox%f)iG?$@!3k7Ann)2@eysdwCypBc6&PCda)j)FUV%hlute{*K<jmi8<-3xP!cy"
    "GTM5fuz>;G`wNoD0ZOGQXt_j(D2}*c%#LEe95%H=+?Ea&-i+9&zgBey5tFJx;vD#<md*FmMO3YEy;)>5Acb@32bjEVeLoWNyb@r;A`hT"
    "GqTPIn{V>>lst+oHwea*q|Jml6D#)j+@25m(%"
)
TABLE_6 = unpacked(
    "c-qC1I}QRd3`C#38;B5yhJuoUgK!E?vIn5yPMj{mF%;P}e3li{j4UO79w!5^M_HO*&#*c{Qp8FkTax+C%7bifREjJpry@O_)koI6Qm{@"
    "%!<)=>8Q-s&`UmFZoaU(;GrfOb*rDCA{Df(FviiE5nV&fuiO<0!r_97`@@dVSoHIHzw9L$m@A(Du(|>yhP1z~+"
)
EVERYTHING = (
    TO_LOOPBACK, ON_LINK, BY_GATEWAY, BY_ONE_OF_TWO, BY_SIXTH, BY_GATEWAY_6, PROHIBITED, UNREACHABLE, BLACKHOLE,
    NEIGHBOUR, NO_NEIGHBOUR, VETH, LOOPBACK, TABLE_4, TABLE_6,
)  # fmt: skip


def only(data: bytes) -> Message:
    (message,) = rtnetlink.messages(data)
    return message


def cached(*, oif: int, gateway: str | None = None, source: str, bits: int = 32, metric: int = 0) -> Route:
    """A route as the kernel tells the way to one address."""
    return Route(bits=bits, kind=1, table=MAIN, metric=metric, oif=oif, gateway=gateway, source=source)


@pytest.mark.parametrize(
    ("data", "route"),
    [
        (TO_LOOPBACK, Route(bits=32, kind=2, table=MAIN, metric=0, oif=1, gateway=None, source="127.0.0.1")),
        (ON_LINK, cached(oif=3, source="192.0.2.2")),
        (BY_GATEWAY, cached(oif=3, gateway="192.0.2.1", source="192.0.2.2")),
        (BY_ONE_OF_TWO, cached(oif=3, gateway="192.0.2.3", source="192.0.2.2")),
        (BY_SIXTH, cached(oif=3, gateway="2001:db8::1", source="192.0.2.2")),
        (BY_GATEWAY_6, cached(oif=3, gateway="2001:db8::1", source="2001:db8::2", bits=128, metric=1024)),
        (NEIGHBOUR, None),
        (PROHIBITED, None),
        (VETH, None),
    ],
)
def test_the_way_to_an_address(data: bytes, route: Route | None) -> None:
    assert rtnetlink.route(only(data)) == route


@pytest.mark.parametrize(
    ("data", "default", "many"),
    [
        (TABLE_4, Route(bits=0, kind=1, table=MAIN, metric=100, oif=3, gateway="192.0.2.1", source=None), 12),
        (TABLE_6, Route(bits=0, kind=1, table=MAIN, metric=1024, oif=3, gateway="2001:db8::1", source=None), 8),
    ],
)
def test_a_whole_table(data: bytes, default: Route, many: int) -> None:
    routes = [rtnetlink.route(message) for message in rtnetlink.messages(data)]
    assert [route for route in routes if route is not None and route.bits == 0] == [default]
    assert len(routes) == many


def test_of_several_next_hops_the_first_counts() -> None:
    shared = next(
        route
        for message in rtnetlink.messages(TABLE_4)
        if (route := rtnetlink.route(message)) is not None and route.bits == 24 and route.gateway == "192.0.2.1"
    )
    assert shared.oif == 3


@pytest.mark.parametrize(
    ("data", "number"),
    [(PROHIBITED, 13), (UNREACHABLE, 113), (BLACKHOLE, 22), (NO_NEIGHBOUR, 2), (BY_GATEWAY, None), (VETH, None)],
)
def test_errors(data: bytes, number: int | None) -> None:
    assert rtnetlink.error_of(only(data)) == number


@pytest.mark.parametrize(
    ("state", "known"),
    [
        (0x00, None),
        (0x01, "incomplete"),
        (0x02, "reachable"),
        (0x04, "stale"),
        (0x08, "stale"),
        (0x10, "stale"),
        (0x20, "failed"),
        (0x40, "permanent"),
        (0x80, "permanent"),
        (0x03, None),
    ],
)
def test_what_is_known_of_a_neighbour(state: int, known: Neighbour | None) -> None:
    message = only(NEIGHBOUR)
    told = message.body[:8] + state.to_bytes(2, "little") + message.body[10:]
    assert rtnetlink.neighbour(Message(message.kind, message.number, told)) == known


LO = Link(
    index=1, name="lo", up=True, loopback=True, carrier=True, kind=None, mtu_bytes=65536, rx_errors=0, tx_errors=0,
    rx_dropped=0, tx_dropped=0,
)  # fmt: skip
E0 = Link(
    index=3, name="e0", up=True, loopback=False, carrier=True, kind="veth", mtu_bytes=1500, rx_errors=0, tx_errors=0,
    rx_dropped=0, tx_dropped=0,
)  # fmt: skip


@pytest.mark.parametrize(("data", "link"), [(LOOPBACK, LO), (VETH, E0), (BY_GATEWAY, None)])
def test_a_link(data: bytes, link: Link | None) -> None:
    assert rtnetlink.link(only(data)) == link


def attribute(kind: int, value: bytes) -> bytes:
    return (4 + len(value)).to_bytes(2, "little") + kind.to_bytes(2, "little") + value + bytes(-len(value) % 4)


UP, LOWER_UP = 0x1, 0x10000


@pytest.mark.parametrize(
    ("flags", "operstate", "carrier", "up", "plugged"),
    [
        (UP | LOWER_UP, 6, 1, True, True),
        (UP, 2, 0, True, False),
        (UP, 3, 0, True, False),
        (UP | LOWER_UP, 0, 1, True, True),
        (UP | LOWER_UP, None, None, True, True),
        (UP, None, None, True, False),
        (UP | LOWER_UP, 2, 1, True, False),
        (0, 2, 0, False, None),
        (0, 2, 1, False, None),
    ],
)
def test_whether_something_is_plugged_in(
    flags: int, operstate: int | None, carrier: int | None, up: bool, plugged: bool | None
) -> None:
    body = bytes(4) + (5).to_bytes(4, "little") + flags.to_bytes(4, "little") + bytes(4) + attribute(3, b"eth0\0")
    body += b"" if operstate is None else attribute(16, bytes([operstate]))
    body += b"" if carrier is None else attribute(33, bytes([carrier]))
    link = rtnetlink.link(Message(rtnetlink.RTM_NEWLINK, 1, body))
    assert link == Link(
        index=5, name="eth0", up=up, loopback=False, carrier=plugged, kind=None, mtu_bytes=None
    )  # what was not told is unknown


def test_errors_of_a_link_are_counted() -> None:
    counts = b"".join(number.to_bytes(8, "little") for number in range(25))
    body = bytes(16) + attribute(23, counts)
    link = rtnetlink.link(Message(rtnetlink.RTM_NEWLINK, 1, body))
    assert link is not None
    assert (link.rx_errors, link.tx_errors, link.rx_dropped, link.tx_dropped) == (4, 5, 6, 7)


@pytest.mark.parametrize(
    ("question", "bytes_of_it"),
    [
        (
            rtnetlink.ask_route("192.0.2.9", source=None, oif=None),
            "240000001a000100070000000000000002200000000000000000000008000100c0000209",
        ),
        (
            rtnetlink.ask_route("192.0.2.9", source="192.0.2.2", oif=3),
            "340000001a000100070000000000000002202000000000000000000008000100c000020908000200c00002020800040003000000",
        ),
        (rtnetlink.ask_all_routes(6), "1c0000001a00010307000000000000000a0000000000000000000000"),
        (
            rtnetlink.ask_neighbour("192.0.2.1", 3),
            "240000001e000100070000000000000002000000030000000000000008000100c0000201",
        ),
        (rtnetlink.ask_link(3), "200000001200010007000000000000000000000003000000000000000000000" + "0"),
    ],
)
def test_questions(question: Question, bytes_of_it: str) -> None:
    assert question.packed(7).hex() == bytes_of_it


@pytest.mark.parametrize("data", EVERYTHING)
def test_what_is_cut_off_is_left_out(data: bytes) -> None:
    whole = list(rtnetlink.messages(data))
    for end in range(0, len(data), 1 if len(data) < 300 else 7):
        told = list(rtnetlink.messages(data[:end]))
        assert told == whole[: len(told)]
    for message in whole:
        for end in range(0, len(message.body), 1 if len(message.body) < 300 else 7):
            understand(Message(message.kind, message.number, message.body[:end]))


def understand(message: Message) -> None:
    rtnetlink.error_of(message)
    rtnetlink.route(message)
    rtnetlink.neighbour(message)
    rtnetlink.link(message)


@given(st.sampled_from((2, 3, 16, 24, 28)), st.binary(max_size=400))
def test_made_up_messages_never_crash(kind: int, body: bytes) -> None:
    understand(Message(kind, 1, body))


@given(st.binary(max_size=600))
def test_made_up_datagrams_never_crash(data: bytes) -> None:
    for message in rtnetlink.messages(data):
        understand(message)


@given(st.sampled_from(EVERYTHING), st.integers(0, 1500), st.integers(0, 255))
def test_one_wrong_byte_never_crashes(data: bytes, at: int, value: int) -> None:
    spoiled = bytearray(data)
    spoiled[at % len(data)] = value
    for message in rtnetlink.messages(bytes(spoiled)):
        understand(message)
