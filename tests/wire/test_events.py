"""Event streams over every split: the grammar, the torture matrix, the bounds. A mark is the number of the piece."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopscope.wire.events import LIMIT_BYTES, Comment, Event, EventStream

TOKEN = b'data: {"t":"a"}'
NEXT = b'data: {"t":"b"}'
A, B = '{"t":"a"}', '{"t":"b"}'
DONE = "[DONE]"


def feed(pieces: Iterable[bytes]) -> tuple[EventStream[int], list[Event[int] | Comment[int]]]:
    stream = EventStream[int]()
    return stream, [found for mark, piece in enumerate(pieces) for found in stream.feed(piece, mark)]


def events(pieces: Iterable[bytes]) -> list[tuple[str, str, int]]:
    return [(found.data, found.kind, found.mark) for found in feed(pieces)[1] if isinstance(found, Event)]


def data(pieces: Iterable[bytes]) -> list[str]:
    return [text for text, _, _ in events(pieces)]


def shape(pieces: Iterable[bytes]) -> list[tuple[str, str] | None]:
    """Events and comments without their marks."""
    return [(found.data, found.kind) if isinstance(found, Event) else None for found in feed(pieces)[1]]


def split(whole: bytes, cuts: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted(cuts), len(whole)]
    return [whole[begin:end] for begin, end in pairwise(edges)]


def singly(whole: bytes) -> list[bytes]:
    return [bytes([byte]) for byte in whole]


# pieces as they were read; the data of events; the piece that completed the first event's data
MATRIX = [
    pytest.param([TOKEN + b"\n\n", NEXT + b"\n\n"], [A, B], 0, id="01 LF, one event a read"),
    pytest.param([(TOKEN + b"\n\n") * 2 + NEXT + b"\n\n"], [A, A, B], 0, id="02 LF, three events in one read"),
    pytest.param([TOKEN[:10], TOKEN[10:] + b"\n\n"], [A], 1, id="03 split inside the JSON"),
    pytest.param([TOKEN + b"\r\n\r\n", NEXT + b"\r\n\r\n"], [A, B], 0, id="04 CRLF, one a read"),
    pytest.param([TOKEN + b"\r\n\r\n" + NEXT + b"\r\n\r\n"], [A, B], 0, id="05 CRLF, coalesced"),
    pytest.param([TOKEN + b"\r\r" + NEXT + b"\r\r"], [A, B], 0, id="06 CR alone"),
    pytest.param([TOKEN + b"\n\r\n", NEXT + b"\r\n\n"], [A, B], 0, id="07 LF and CRLF mixed"),
    pytest.param([b": keep-alive\n\n", TOKEN + b"\n\n"], [A], 1, id="08 a comment alone in the first read"),
    pytest.param([b": keep-alive\n\n" + TOKEN + b"\n\n"], [A], 0, id="09 a comment before data in a read"),
    pytest.param([b": ping\n" + TOKEN + b"\n: ping\n\n"], [A], 0, id="10 comment lines inside an event"),
    pytest.param([b'data:{"t":"a"}\n\n', b"data:[DONE]\n\n"], [A, DONE], 0, id="11 no space behind data:"),
    pytest.param([b'data: {"t":"\xe2\x82', b'\xac"}\n\n'], ['{"t":"€"}'], 1, id="12 a character split between reads"),
    pytest.param([b'data: {"t":\ndata: "a"}\n\n'], ['{"t":\n"a"}'], 0, id="13 data over two lines"),
    pytest.param([b'data: {"t":\n', b'data: "a"}\n\n'], ['{"t":\n"a"}'], 1, id="14 data over two lines in two reads"),
    pytest.param([b"event: message\nid: 7\n" + TOKEN + b"\n\n"], [A], 0, id="15 event and id before data"),
    pytest.param([b"retry: 3000\n\n" + TOKEN + b"\n\n"], [A], 0, id="16 a retry block without data"),
    pytest.param(["data: \u2028\u0085\v\f\n\n".encode()], ["\u2028\u0085\v\f"], 0, id="17 lines for Python only"),
    pytest.param([b"data:", b' {"t":"a"}\n\n'], [A], 1, id="18 split between data: and the space"),
    pytest.param([TOKEN + b"\n\n", b"data: [DONE]"], [A], 0, id="19 [DONE] without its end"),
    pytest.param([TOKEN + b"\n", b"\n"], [A], 0, id="23 split between the two LF: stamped by the data's own"),
    pytest.param([TOKEN + b"\r", b"\n\r\n"], [A], 0, id="split inside CRLF"),
    pytest.param([b"\xef\xbb\xbf" + TOKEN + b"\n\n"], [A], 0, id="a byte order mark"),
    pytest.param([b"\xef", b"\xbb\xbf" + TOKEN + b"\n\n"], [A], 1, id="half a byte order mark"),
    pytest.param([b"data: \xef\xbb\xbf\n\n"], ["\ufeff"], 0, id="a byte order mark elsewhere is text"),
    pytest.param([b"data: a\x00b\n\n"], ["a\x00b"], 0, id="NUL"),
    pytest.param([b"data: \xff\xc3(\n\n"], ["\ufffd\ufffd("], 0, id="no UTF-8"),
    pytest.param([b"data\n\ndata:\n\ndata:  x\n\n"], ["", "", " x"], 0, id="empty data; one space is eaten, no more"),
    pytest.param([b"Data: x\n data: x\ndatax: x\n\n" + TOKEN + b"\n\n"], [A], 0, id="fields of other names"),
    pytest.param([b":\n\n" * 3 + TOKEN + b"\n\n"], [A], 0, id="bare colons"),
    pytest.param([b"\n\n\r\n\r" + TOKEN + b"\n\n"], [A], 0, id="blank lines while queued"),
    pytest.param([b"data: : ping\n\n"], [": ping"], 0, id="a comment by mistake"),
]


@pytest.mark.parametrize(("pieces", "expected", "completed_by"), MATRIX)
def test_the_torture_matrix(pieces: list[bytes], expected: list[str], completed_by: int) -> None:
    found = events(pieces)
    assert [text for text, _, _ in found] == expected
    assert found[0][2] == completed_by
    whole = b"".join(pieces)
    assert data(singly(whole)) == expected
    assert data([whole]) == expected
    assert data(piece for byte in singly(whole) for piece in (b"", byte, b"")) == expected


@pytest.mark.parametrize("pieces", [row.values[0] for row in MATRIX])
@settings(max_examples=20)
@given(cuts=st.sets(st.integers(0, 80)))
def test_the_matrix_over_any_split(pieces: Sequence[bytes], cuts: set[int]) -> None:
    whole = b"".join(pieces)
    assert shape(split(whole, (cut for cut in cuts if cut <= len(whole)))) == shape([whole])


PARTS = st.sampled_from(
    [
        b"data",
        b"event",
        b"id",
        b":",
        b": ",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\xef\xbb\xbf",
        b"\x00",
        b"\xff",
        b"[DONE]",
    ]
)


@given(st.lists(st.one_of(PARTS, st.binary(max_size=4)), max_size=40), st.data())
def test_any_split_of_anything_gives_the_same(parts: list[bytes], draw: st.DataObject) -> None:
    whole = b"".join(parts)
    cuts = draw.draw(st.sets(st.integers(0, len(whole))))
    pieces = split(whole, cuts)
    assert shape(pieces) == shape([whole]) == shape(singly(whole))
    marks = [found.mark for found in feed(pieces)[1]]
    assert marks == sorted(marks)


@given(st.lists(st.sampled_from(["data: x", "data:y", "event: e", ": c", "id: 1", "", "data"]), max_size=30))
def test_it_agrees_with_the_grammar_read_line_by_line(lines: list[str]) -> None:
    """HTML §9.2.6, word for word, on whole text."""
    expected: list[tuple[str, str] | None] = []
    buffer, kind = "", ""
    for line in lines:
        if line.startswith(":"):
            expected.append(None)
        elif not line:
            if buffer:
                expected.append((buffer.removesuffix("\n"), kind))
            buffer, kind = "", ""
        else:
            name, _, value = line.partition(":")
            buffer += value.removeprefix(" ") + "\n" if name == "data" else ""
            kind = value.removeprefix(" ") if name == "event" else kind
    assert shape(["".join(f"{line}\n" for line in lines).encode()]) == expected


def test_kinds_and_comments_have_their_marks() -> None:
    _, found = feed([b": one", b"\nevent: error\n", b"data: x\n", b":two\n", b"\n"])
    assert found == [Comment(1), Comment(3), Event("x", "error", 2)]


@pytest.mark.parametrize(
    ("pieces", "rest"),
    [
        ([TOKEN + b"\n\n", b"data: [DONE]"], DONE),
        ([TOKEN + b"\n\n", b"data: [DONE]\n"], DONE),
        ([TOKEN + b"\n\ndata: [DO"], "[DO"),
        ([TOKEN + b"\n\n"], None),
        ([b": ping"], None),
        ([], None),
    ],
)
def test_what_the_end_cut_off(pieces: list[bytes], rest: str | None) -> None:
    stream, _ = feed(pieces)
    found = stream.rest(9)
    assert (found.data if found else None) == rest


@pytest.mark.parametrize(
    ("piece", "what"), [(b"data: " + b"x" * 65_536, "line"), (b"data: " + b"x" * 1018 + b"\n", "event")]
)
def test_nothing_grows_without_bound(piece: bytes, what: str) -> None:
    stream = EventStream[int]()
    pieces = [piece, *([piece if what == "event" else piece[6:]] * (2 * LIMIT_BYTES // len(piece)))]
    for mark, each in enumerate(pieces):
        assert stream.feed(each, mark) == []
    assert stream.too_long == what
    assert len(stream._line) <= LIMIT_BYTES
    assert sum(map(len, stream._data)) <= LIMIT_BYTES
    assert stream.feed(b"\n\n" + TOKEN + b"\n\n", 0) == []
    assert stream.rest(0) is None


def test_long_but_not_too_long() -> None:
    text = "x" * (LIMIT_BYTES - 7)
    assert data(re.findall(rb"(?s).{1,1000}", f"data: {text}\n\n".encode())) == [text]
