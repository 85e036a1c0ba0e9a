"""The IPv4 header as a raw socket delivers it: options, truncation, and anything else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import ICMP, IP, IPOption_RR

from hopscope.wire.ip import Ipv4, decode_v4

PLAIN = bytes(IP(src="192.0.2.1", dst="192.0.2.2", ttl=57) / ICMP() / b"body")
WITH_OPTIONS = bytes(
    IP(src="192.0.2.1", dst="192.0.2.2", ttl=57, options=[IPOption_RR(routers=["0.0.0.0"] * 3)]) / b"x"
)


def test_source_ttl_and_payload() -> None:
    assert decode_v4(PLAIN) == Ipv4(bytes([192, 0, 2, 1]), 57, PLAIN[20:])


def test_options_are_not_payload() -> None:
    assert WITH_OPTIONS[0] & 0x0F > 5
    assert decode_v4(WITH_OPTIONS) == Ipv4(bytes([192, 0, 2, 1]), 57, b"x")


@pytest.mark.parametrize("packet", [PLAIN, WITH_OPTIONS], ids=["plain", "options"])
def test_a_header_cut_anywhere_is_none(packet: bytes) -> None:
    header = (packet[0] & 0x0F) * 4
    for size in range(len(packet)):
        got = decode_v4(packet[:size])
        assert (got is None) == (size < header), size
        assert got is None or got.payload == packet[header:size]


@pytest.mark.parametrize(
    "first", [0x44, 0x40, 0x65, 0x05, 0xF5, 0x4F], ids=["short", "empty", "v6", "v0", "v15", "longer than it is"]
)
def test_no_ipv4_header(first: int) -> None:
    assert decode_v4(bytes([first]) + PLAIN[1:]) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_a_header_or_none(packet: bytes) -> None:
    got = decode_v4(packet)
    assert got is None or packet.endswith(got.payload)
