"""An event stream as the WHATWG grammar has it (HTML §9.2.6): bytes in, events and comments out, over any split.

An event carries the mark of the piece that completed its last `data:` line, which may come before the empty line that
dispatches it; a comment that of the piece which completed it. Lines end with CR, LF or CRLF and nothing else, text is
UTF-8 with what is not replaced. Nothing raises and nothing grows without bound: a line, or an event of many lines,
beyond the limit ends the reading and says so in `too_long`.
"""

import re
from typing import Generic, Literal, NamedTuple, TypeVar

Mark = TypeVar("Mark")

LIMIT_BYTES = 1 << 20
BOM = b"\xef\xbb\xbf"
END_OF_LINE = re.compile(rb"[\r\n]")


class Event(NamedTuple, Generic[Mark]):
    """One event. `kind` is its `event:` field, empty where there is none."""

    data: str
    kind: str
    mark: Mark


class Comment(NamedTuple, Generic[Mark]):
    """A line that begins with a colon: it keeps a connection alive and says nothing."""

    mark: Mark


class EventStream(Generic[Mark]):
    """Reads one stream. `too_long` says what was beyond the limit; then nothing more is read."""

    def __init__(self) -> None:
        self.too_long: Literal["line", "event"] | None = None
        self._line = bytearray()
        self._first = True
        self._after_cr = False
        self._data: list[str] = []
        self._data_bytes = 0
        self._data_mark: Mark | None = None
        self._kind = ""

    def feed(self, piece: bytes, mark: Mark) -> list[Event[Mark] | Comment[Mark]]:
        """What this piece completed, in order."""
        found: list[Event[Mark] | Comment[Mark]] = []
        if self._after_cr and piece:
            self._after_cr = False
            piece = piece.removeprefix(b"\n")
        begin = 0
        while self.too_long is None and (end := END_OF_LINE.search(piece, begin)):
            self._grow(piece[begin : end.start()])
            begin = end.end()
            if end[0] == b"\r":
                if begin == len(piece):
                    self._after_cr = True
                elif piece[begin : begin + 1] == b"\n":
                    begin += 1
            found += self._complete(mark)
        self._grow(piece[begin:])
        return found

    def rest(self, mark: Mark) -> Event[Mark] | None:
        """The event that the end of the stream cut off: the grammar drops it, and some servers end `[DONE]` so."""
        if self._line:
            self._complete(mark)
        found = self._dispatch()
        return found[0] if found else None

    def _grow(self, part: bytes) -> None:
        if self.too_long is None:
            self._line += part
            if len(self._line) > LIMIT_BYTES:
                self.too_long = "line"
                self._line.clear()

    def _complete(self, mark: Mark) -> list[Event[Mark] | Comment[Mark]]:
        """A line is complete; returns what it finished."""
        if self.too_long is not None:
            return []
        line = bytes(self._line)
        self._line.clear()
        if self._first:
            self._first = False
            line = line.removeprefix(BOM)
        if not line:
            return [*self._dispatch()]
        if line.startswith(b":"):
            return [Comment(mark)]
        name, _, value = line.partition(b":")
        self._field(name, value.removeprefix(b" "), mark)
        return []

    def _field(self, name: bytes, value: bytes, mark: Mark) -> None:
        """`id` and `retry` serve reconnection, which nobody here does; other fields have no meaning."""
        if name == b"data":
            self._data_bytes += len(value) + 1
            if self._data_bytes > LIMIT_BYTES:
                self.too_long = "event"
                self._data.clear()
                return
            self._data.append(value.decode("utf-8", "replace"))
            self._data_mark = mark
        elif name == b"event":
            self._kind = value.decode("utf-8", "replace")

    def _dispatch(self) -> list[Event[Mark]]:
        """The event collected so far; none without a `data:` line."""
        data, kind, mark = self._data, self._kind, self._data_mark
        self._data, self._data_bytes, self._data_mark, self._kind = [], 0, None, ""
        return [Event("\n".join(data), kind, mark)] if data and mark is not None else []
