"""TCP_INFO: the struct decoded at every length a kernel may return, and read from a live connection."""

import socket
import struct

import pytest

from hopscope.net.tcpinfo import decode, read


def info(*, rtt: int = 5000, min_rtt: int = 4000, retrans: int = 0) -> bytes:
    raw = bytearray(232)
    struct.pack_into("@I", raw, 16, 1448)
    struct.pack_into("@I", raw, 24, 2)
    struct.pack_into("@I", raw, 68, rtt)
    struct.pack_into("@I", raw, 100, retrans)
    struct.pack_into("@QQ", raw, 120, 1001, 2002)
    struct.pack_into("@II", raw, 144, 33, min_rtt)
    struct.pack_into("@I", raw, 152, 7)
    struct.pack_into("@Q", raw, 208, 44)
    struct.pack_into("@I", raw, 224, 9)
    return bytes(raw)


def test_every_field_in_its_unit() -> None:
    got = decode(info())
    assert (got.rtt_ns, got.min_rtt_ns, got.total_retrans) == (5_000_000, 4_000_000, 0)
    assert (got.snd_mss, got.unacked, got.bytes_acked, got.bytes_received) == (1448, 2, 1001, 2002)
    assert (got.notsent_bytes, got.data_segs_in, got.bytes_retrans, got.rcv_ooopack) == (33, 7, 44, 9)


@pytest.mark.parametrize("nothing", [0, 0xFFFF_FFFF])
def test_no_sample_is_no_number(nothing: int) -> None:
    assert decode(info(min_rtt=nothing)).min_rtt_ns is None
    assert decode(info(rtt=0)).rtt_ns is None


def test_an_older_kernel_returns_less() -> None:
    for length in range(233):
        got = decode(info()[:length])
        assert (got.rtt_ns is None) == (length < 72)
        assert (got.total_retrans is None) == (length < 104)
        assert (got.min_rtt_ns is None) == (length < 152)
        assert (got.rcv_ooopack is None) == (length < 228)


@pytest.mark.loopback
def test_a_live_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sock = socket.create_connection(listener.getsockname())
        with sock:
            got = read(sock)
        if got is None:
            pytest.skip("this system has no TCP_INFO")
        assert got.total_retrans == 0
        assert got.rtt_ns is not None
        assert got.rtt_ns > 0
    assert read(sock) is None
