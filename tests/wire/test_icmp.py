"""Echo requests whose checksum never changes, and every shape of what comes back, with scapy as the oracle.

Method 2.4 (whose reply), 3.2 (constant checksum), 3.4; RFC 792, RFC 4443, RFC 1812 §4.3.2.3, RFC 4884.
"""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_RR
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    ICMPv6PacketTooBig,
    ICMPv6TimeExceeded,
    IPv6,
)
from scapy.packet import Packet, Raw

from hopscope.model.limits import MIN_PAYLOAD_BYTES
from hopscope.model.plan import Family
from hopscope.wire.icmp import EchoTemplate, Seen, decode, number_of, ones_sum

MAGIC = b"\xde\xad\xbe\xef"
IDENTIFIER, SEQUENCE, NUMBER = 0x4242, 0x1234, 0x00051234
HERE, ROUTER, TARGET = "192.0.2.1", "198.51.100.7", "203.0.113.9"
HERE6, ROUTER6, TARGET6 = "2001:db8::1", "2001:db8:7::1", "2001:db8:9::9"
TARGET_BYTES = bytes([203, 0, 113, 9])
TARGET6_BYTES = bytes.fromhex("20010db8000900000000000000000009")


def message(packet: Packet) -> bytes:
    """The ICMP message of a packet, checksums filled in by scapy."""
    return bytes(packet.__class__(bytes(packet)).payload)


# Sending


@pytest.mark.parametrize("size", [MIN_PAYLOAD_BYTES, 11, 56, 57, 1400])
@pytest.mark.parametrize("flow", range(9))
@pytest.mark.parametrize("family", [4, 6])
def test_the_checksum_is_the_same_for_every_probe_of_a_flow(family: Family, flow: int, size: int) -> None:
    template = EchoTemplate(family, IDENTIFIER, MAGIC, size, flow)
    built = [template.build(number & 0xFFFF, number) for number in (0, 1, 0xFFFF, 0x10000, 0xFFFF_FFFF, NUMBER)]
    assert {one[2:4] for one in built} == {(0x4000 + 0x1111 * (flow % 8)).to_bytes(2, "big")}
    assert {len(one) for one in built} == {8 + size}
    assert {ones_sum(one) for one in built} == {0xFFFF}


@given(
    st.sampled_from([10, 56, 57]), st.integers(0, 7), st.integers(0, 0xFFFF), st.integers(0, 0xFFFF),
    st.integers(0, 0xFFFF_FFFF), st.binary(min_size=4, max_size=4),
)  # fmt: skip
def test_the_checksum_is_the_one_that_scapy_computes(
    size: int, flow: int, identifier: int, sequence: int, number: int, magic: bytes
) -> None:
    built = EchoTemplate(4, identifier, magic, size, flow).build(sequence, number)
    again = ICMP(type=8, id=identifier, seq=sequence) / Raw(built[8:])
    assert built == bytes(again)


def test_flows_differ_in_their_checksum() -> None:
    sums = {EchoTemplate(4, IDENTIFIER, MAGIC, 56, flow).build(1, 1)[2:4] for flow in range(8)}
    assert len(sums) == 8


@pytest.mark.parametrize(
    ("data", "total"),
    [
        (b"", 0),
        (b"\x00\x01", 1),
        (b"\x01", 0x100),
        (b"\xff\xff", 0xFFFF),
        (b"\xff\xff\x00\x01", 1),
        (b"\xff" * 6, 0xFFFF),
    ],
)
def test_ones_sum(data: bytes, total: int) -> None:
    assert ones_sum(data) == total


@pytest.mark.parametrize(
    ("payload", "number"),
    [
        (MAGIC + b"\x00\x05\x12\x34", NUMBER),
        (MAGIC + b"\x00\x05\x12\x34" + b"more", NUMBER),
        (MAGIC + b"\x00\x05\x12", None),
        (b"\xde\xad\xbe\xee\x00\x05\x12\x34", None),
        (b"", None),
    ],
)
def test_the_number_stands_behind_our_magic(payload: bytes, number: int | None) -> None:
    assert number_of(payload, MAGIC) == number


# Receiving, IPv4

PROBE4 = EchoTemplate(4, IDENTIFIER, MAGIC, 56, 0).build(SEQUENCE, NUMBER)
SENT4 = bytes(IP(src=HERE, dst=TARGET, ttl=1, tos=8, proto=1) / Raw(PROBE4))
SENT4_OPTIONS = bytes(
    IP(src=HERE, dst=TARGET, ttl=1, tos=8, proto=1, options=[IPOption_RR(routers=["0.0.0.0"] * 3)]) / Raw(PROBE4)
)
MPLS_STACK = bytes(MPLS(label=16001, cos=0, s=1, ttl=1))


def extension(quote: bytes) -> bytes:
    """RFC 4884: the quote padded to 128 bytes, then an extension structure with an MPLS object (RFC 4950)."""
    obj = (4 + len(MPLS_STACK)).to_bytes(2, "big") + b"\x01\x01" + MPLS_STACK
    return quote.ljust(128, b"\0") + b"\x20\x00\x00\x00" + obj


def error4(quote: bytes, kind: int = 11, code: int = 0, *, length: int = 0) -> bytes:
    return bytes(ICMP(type=kind, code=code, length=length) / Raw(quote))


def quoted4(inside: Packet, **fields: int) -> bytes:
    header = IP(src=HERE, dst=TARGET)
    for name, value in fields.items():
        setattr(header, name, value)
    return bytes(header / inside)


FULL4 = Seen(11, 0, IDENTIFIER, SEQUENCE, NUMBER, TARGET_BYTES, 1, 8)
SHORT4 = Seen(11, 0, IDENTIFIER, SEQUENCE, None, TARGET_BYTES, 1, 8)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(
            bytes(ICMP(type=0, id=IDENTIFIER, seq=SEQUENCE) / Raw(PROBE4[8:])),
            Seen(0, 0, IDENTIFIER, SEQUENCE, NUMBER),
            id="echo reply",
        ),
        pytest.param(error4(SENT4), FULL4, id="time exceeded, whole quote"),
        pytest.param(error4(SENT4[:28]), SHORT4, id="time exceeded, 28 bytes quoted"),
        pytest.param(error4(SENT4[:35]), SHORT4, id="time exceeded, token cut"),
        pytest.param(error4(SENT4[:36]), FULL4, id="time exceeded, token just whole"),
        pytest.param(error4(SENT4_OPTIONS), FULL4, id="options in the quoted header"),
        pytest.param(error4(extension(SENT4), length=32), FULL4, id="RFC 4884 extension"),
        pytest.param(error4(extension(SENT4), length=0), FULL4, id="extension without its length"),
        pytest.param(
            error4(SENT4, kind=3, code=13), Seen(3, 13, IDENTIFIER, SEQUENCE, NUMBER, TARGET_BYTES, 1, 8),
            id="prohibited",
        ),
        pytest.param(error4(SENT4, code=1), None, id="reassembly time exceeded"),
        pytest.param(error4(SENT4, kind=12), None, id="parameter problem"),
        pytest.param(error4(SENT4, kind=5), None, id="redirect"),
        pytest.param(bytes(ICMP(type=8, id=IDENTIFIER, seq=SEQUENCE) / Raw(PROBE4[8:])), None, id="our own request"),
        pytest.param(bytes(ICMP(type=0, id=IDENTIFIER, seq=SEQUENCE) / b"another ping"), None, id="a stranger's reply"),
        pytest.param(error4(quoted4(UDP(dport=53) / PROBE4)), None, id="a quoted UDP datagram"),
        pytest.param(error4(quoted4(TCP(dport=443))), None, id="a quoted TCP segment"),
        pytest.param(error4(quoted4(Raw(PROBE4), proto=1, frag=100)), None, id="a later fragment"),
        pytest.param(
            error4(quoted4(Raw(PROBE4), proto=1, flags=1, ttl=1, tos=8)), FULL4,
            id="the first fragment",
        ),
        pytest.param(
            error4(quoted4(ICMP(type=8, id=IDENTIFIER, seq=SEQUENCE) / (b"x" * 56))), None,
            id="a stranger's request with our identifier",
        ),
        pytest.param(error4(quoted4(ICMP(type=0) / Raw(PROBE4[8:]))), None, id="a quoted reply"),
        pytest.param(error4(b"\x65" + SENT4[1:]), None, id="a quote of another IP version"),
        pytest.param(error4(b"\x42" + SENT4[1:]), None, id="a quoted header that is too short"),
        pytest.param(error4(b""), None, id="nothing quoted"),
        pytest.param(error4(bytes(IPv6(src=HERE6, dst=TARGET6) / Raw(PROBE4))), None, id="an IPv6 quote over IPv4"),
    ],
)  # fmt: skip
def test_decode_v4(data: bytes, expected: Seen | None) -> None:
    assert decode(data, 4, MAGIC) == expected


# Receiving, IPv6

PROBE6 = EchoTemplate(6, IDENTIFIER, MAGIC, 56, 0).build(SEQUENCE, NUMBER)
SENT6 = bytes(IPv6(src=HERE6, dst=TARGET6, hlim=1, tc=0xB8, nh=58) / Raw(PROBE6))


def error6(make: Callable[..., Packet], quote: bytes, **fields: int) -> bytes:
    return message(IPv6(src=ROUTER6, dst=HERE6) / make(**fields) / Raw(quote))


FULL6 = Seen(3, 0, IDENTIFIER, SEQUENCE, NUMBER, TARGET6_BYTES, 1, 0xB8)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(
            message(IPv6(src=TARGET6, dst=HERE6) / ICMPv6EchoReply(id=IDENTIFIER, seq=SEQUENCE, data=PROBE6[8:])),
            Seen(129, 0, IDENTIFIER, SEQUENCE, NUMBER),
            id="echo reply",
        ),
        pytest.param(error6(ICMPv6TimeExceeded, SENT6), FULL6, id="hop limit exceeded"),
        pytest.param(
            error6(ICMPv6TimeExceeded, SENT6[:48]),
            Seen(3, 0, IDENTIFIER, SEQUENCE, None, TARGET6_BYTES, 1, 0xB8),
            id="short quote",
        ),
        pytest.param(error6(ICMPv6TimeExceeded, extension(SENT6), length=16), FULL6, id="RFC 4884 extension"),
        pytest.param(
            error6(ICMPv6DestUnreach, SENT6, code=1),
            Seen(1, 1, IDENTIFIER, SEQUENCE, NUMBER, TARGET6_BYTES, 1, 0xB8),
            id="prohibited",
        ),
        pytest.param(error6(ICMPv6TimeExceeded, SENT6, code=1), None, id="reassembly time exceeded"),
        pytest.param(error6(ICMPv6PacketTooBig, SENT6), None, id="packet too big"),
        pytest.param(
            message(IPv6(src=HERE6, dst=TARGET6) / ICMPv6EchoRequest(id=IDENTIFIER, seq=SEQUENCE, data=PROBE6[8:])),
            None,
            id="our own request",
        ),
        pytest.param(error6(ICMPv6TimeExceeded, bytes(IPv6(src=HERE6, dst=TARGET6) / UDP())), None, id="a quoted UDP"),
        pytest.param(error6(ICMPv6TimeExceeded, SENT6[:47]), None, id="a quote cut in our header"),
        pytest.param(error6(ICMPv6TimeExceeded, SENT4), None, id="an IPv4 quote over IPv6"),
    ],
)
def test_decode_v6(data: bytes, expected: Seen | None) -> None:
    assert decode(data, 6, MAGIC) == expected


# Anything else


@pytest.mark.parametrize(
    ("data", "family", "whole", "number_from"),
    [
        # the bytes from which on a message is understood, and from which on it is surely ours
        pytest.param(error4(SENT4), 4, 8 + 28, 8 + 36, id="v4"),
        pytest.param(error4(SENT4_OPTIONS), 4, 8 + 8 + len(SENT4_OPTIONS) - len(PROBE4), 8 + 16 + 36, id="v4 options"),
        pytest.param(error6(ICMPv6TimeExceeded, SENT6), 6, 8 + 48, 8 + 56, id="v6"),
    ],
)
def test_an_error_cut_anywhere(data: bytes, family: Family, whole: int, number_from: int) -> None:
    for size in range(len(data)):
        got = decode(data[:size], family, MAGIC)
        assert (got is not None) == (size >= whole), size
        assert got is None or (got.number is not None) == (size >= number_from), size
        assert got is None or (got.identifier, got.sequence) == (IDENTIFIER, SEQUENCE)


def test_an_echo_reply_cut_anywhere() -> None:
    data = bytes(ICMP(type=0, id=IDENTIFIER, seq=SEQUENCE) / Raw(PROBE4[8:]))
    read = [size for size in range(len(data)) if decode(data[:size], 4, MAGIC) is not None]
    assert read == list(range(16, len(data)))


@given(st.binary(max_size=200), st.sampled_from([4, 6]))
def test_any_bytes_are_ours_or_none(data: bytes, family: Family) -> None:
    got = decode(data, family, MAGIC)
    assert got is None or got.number is None or MAGIC in data


@given(st.sampled_from([4, 6]), st.integers(0, 91), st.integers(0, 255), st.integers(0, 120))
def test_a_mutated_error_is_read_or_left(family: Family, where: int, value: int, size: int) -> None:
    data = bytearray(error4(SENT4) if family == 4 else error6(ICMPv6TimeExceeded, SENT6))
    data[where % len(data)] = value
    got = decode(bytes(data[:size]), family, MAGIC)
    assert got is None or got.kind in {0, 1, 3, 11, 129}
