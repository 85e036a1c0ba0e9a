"""R1 in bytes: each answer is fed whole, byte by byte and with a tail, and the mark must not depend on how."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.wire.head import END_STREAM, HEADERS, PADDED, PRIORITY, Http1Scanner, Http2Scanner, Scanner, language

FINAL = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </HTTP/1.1 200 OK>\r\n\r\n"
TAIL = b"HTTP/1.1 200 OK\r\n\r\ntail"


def by_byte(scanner: Scanner[int], data: bytes) -> int | None:
    for at in range(len(data)):
        scanner.feed(data[at : at + 1], at)
    return scanner.mark


def whole(scanner: Scanner[int], data: bytes) -> int | None:
    scanner.feed(data, 0)
    return scanner.mark


@pytest.mark.parametrize(
    ("data", "begins"),
    [
        pytest.param(FINAL, 0, id="nothing before it"),
        pytest.param(CONTINUE + FINAL, len(CONTINUE), id="after 100"),
        pytest.param(HINTS + HINTS + CONTINUE + FINAL, 2 * len(HINTS) + len(CONTINUE), id="after three interim heads"),
        pytest.param(b"HTTP/1.1 102 x\n\n" + FINAL, 16, id="interim head with bare line feeds"),
        pytest.param(b"HTTP/1.1 100\r\n\r\n" + FINAL, 16, id="interim head without a reason"),
        pytest.param(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", 0, id="101 is final here"),
        pytest.param(b"HTTP/1.0 404 Not Found\r\n\r\n", 0, id="HTTP/1.0"),
        pytest.param(CONTINUE, None, id="interim only"),
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n", None, id="another protocol"),
        pytest.param(b"HTTP/1.1 abc\r\n\r\n", None, id="no status code"),
        pytest.param(b"HTTP/1.1 20", None, id="cut inside the status"),
        pytest.param(b"", None, id="nothing"),
    ],
)
def test_http1(data: bytes, begins: int | None) -> None:
    assert by_byte(Http1Scanner[int](), data) == begins
    assert whole(Http1Scanner[int](), data) == (None if begins is None else 0)
    if begins is not None:
        assert by_byte(Http1Scanner[int](), data + TAIL) == begins
        assert whole(Http1Scanner[int](), data + TAIL) == 0


def test_http1_serves_the_next_request_after_a_restart() -> None:
    scanner = Http1Scanner[str]()
    scanner.feed(FINAL, "first")
    scanner.feed(b"body", "later")
    assert scanner.mark == "first"
    scanner.restart()
    scanner.feed(CONTINUE, "interim")
    scanner.feed(FINAL, "second")
    assert scanner.mark == "second"


def frame(kind: int, stream: int, payload: bytes = b"", flags: int = 0) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


SETTINGS_FRAME = frame(4, 0, bytes(6))
ACK = frame(4, 0, b"", 1)
STATUS_200 = b"\x88\x76\x01x"
STATUS_103_HUFFMAN = b"\x48\x82\x08\x19"
STATUS_103_PLAIN = b"\x08\x03103"
STATUS_201_PLAIN = b"\x08\x03201"
DYNAMIC = b"\xbe"
HEAD_200 = frame(HEADERS, 1, STATUS_200)
INTERIM = frame(HEADERS, 1, STATUS_103_HUFFMAN)


@pytest.mark.parametrize(
    ("before", "head", "after"),
    [
        pytest.param(SETTINGS_FRAME + ACK, HEAD_200, b"", id="settings are no answer"),
        pytest.param(INTERIM, HEAD_200, b"", id="103, Huffman"),
        pytest.param(frame(HEADERS, 1, STATUS_103_PLAIN), HEAD_200, b"", id="103, plain"),
        pytest.param(frame(HEADERS, 1, DYNAMIC), HEAD_200, b"", id="unknown status, then one that is no trailer"),
        pytest.param(b"", frame(HEADERS, 1, DYNAMIC), frame(0, 1, b"x") + HEAD_200, id="unknown status, then data"),
        pytest.param(b"", frame(HEADERS, 1, DYNAMIC), frame(HEADERS, 1, b"x", END_STREAM), id="trailers"),
        pytest.param(b"", frame(HEADERS, 1, STATUS_201_PLAIN), HEAD_200, id="201, plain"),
        pytest.param(b"", frame(HEADERS, 1, b"\x3f\xe1\x1f" + STATUS_200), HEAD_200, id="table size update first"),
        pytest.param(frame(HEADERS, 1, b"\x3f\xe1\x1f" + STATUS_103_HUFFMAN), HEAD_200, b"", id="size update, 103"),
        pytest.param(
            frame(HEADERS, 1, b"\x02" + bytes(5) + STATUS_103_HUFFMAN + b"..", PADDED | PRIORITY),
            frame(HEADERS, 1, b"\x01" + STATUS_200 + b".", PADDED),
            b"",
            id="padding and priority",
        ),
        pytest.param(frame(6, 0, bytes(8)) + frame(8, 1, bytes(4)), HEAD_200, b"", id="ping and window before it"),
        pytest.param(b"", frame(HEADERS, 1), b"", id="empty header block"),
    ],
)
def test_http2(before: bytes, head: bytes, after: bytes) -> None:
    ends = len(before) + len(head) - 1
    assert by_byte(Http2Scanner[int](), before + head) == ends
    assert by_byte(Http2Scanner[int](), before + head + after) == ends
    assert whole(Http2Scanner[int](), before + head + after) == 0
    assert by_byte(Http2Scanner[int](), before + head[:-1]) in (None, len(before) - 1)


def test_http2_knows_the_stream_of_the_request_under_way() -> None:
    scanner = Http2Scanner[str]()
    scanner.feed(HEAD_200 + frame(0, 1, b"x"), "first")
    scanner.restart()
    scanner.feed(frame(HEADERS, 1, DYNAMIC, END_STREAM), "trailers of the first")
    assert scanner.mark is None
    scanner.feed(frame(HEADERS, 3, STATUS_200)[:5], "half a frame header")
    scanner.feed(frame(HEADERS, 3, STATUS_200)[5:], "second")
    assert scanner.mark == "second"


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_no_bytes_upset_a_scanner(pieces: list[bytes]) -> None:
    scanners: list[Scanner[int]] = [Http1Scanner(), Http2Scanner()]
    for scanner in scanners:
        for at, piece in enumerate(pieces):
            scanner.feed(piece, at)
        assert scanner.mark is None or 0 <= scanner.mark < len(pieces)


@given(st.data())
def test_where_reads_end_does_not_matter(data: st.DataObject) -> None:
    answer = HINTS + CONTINUE + FINAL
    cuts = sorted(data.draw(st.sets(st.integers(1, len(answer) - 1))))
    scanner = Http1Scanner[int]()
    for begin, end in zip([0, *cuts], [*cuts, len(answer)], strict=True):
        scanner.feed(answer[begin:end], end)
    expected = next(end for end in [*cuts, len(answer)] if end > len(HINTS) + len(CONTINUE))
    assert scanner.mark == expected


@pytest.mark.parametrize(
    ("first", "name"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "plain HTTP"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "TLS"),
        (b"\x16\x03\x03\x00\x7a", "TLS"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "SSH"),
        (b"220 mail.example ESMTP\r\n", "SMTP or FTP"),
        (SETTINGS_FRAME, "HTTP/2"),
        (b"<html>", "HTML without an HTTP head"),
        (b"hello", None),
        (b"", None),
    ],
)
def test_language(first: bytes, name: str | None) -> None:
    assert language(first) == name
