"""Where the answer begins: the first bytes of the final response header, in a connection's plaintext.

Told about each read (its bytes, and a mark that says when they came), these scanners keep the mark of R1 (method 5.1):
on HTTP/1.1 the read with the first byte of the final head, interim (1xx) heads skipped; on HTTP/2 the read that
completed the first frame of the final HEADERS, so neither settings nor interim headers count. They keep a few bytes
of state whatever is fed, never raise, and leave judging whether the answer is well formed to the HTTP library.
"""

import re
from typing import Generic, Protocol, TypeVar

Mark = TypeVar("Mark")

STATUS_LINE = re.compile(rb"HTTP/1\.\d (\d\d\d)")
STATUS_LINE_BYTES = len(b"HTTP/1.1 200")
END_OF_HEAD = re.compile(rb"\n\r?\n")
SWITCHING_PROTOCOLS = b"101"

FRAME_HEADER_BYTES = 9
DATA, HEADERS, SETTINGS = 0x0, 0x1, 0x4
END_STREAM, PADDED, PRIORITY = 0x1, 0x8, 0x20
PEEK_BYTES = 24


class Scanner(Protocol[Mark]):
    """What both scanners can do. `mark` is R1's once it is known."""

    mark: Mark | None

    def restart(self) -> None:
        """The next request of the same connection is about to be sent."""
        ...

    def feed(self, data: bytes, mark: Mark) -> None:
        """One read."""
        ...


class Http1Scanner(Generic[Mark]):
    """RFC 9112 §4 status lines: interim responses (RFC 9110 §15.2) except 101, which is final here, are skipped."""

    def __init__(self) -> None:
        self.mark: Mark | None = None
        self.restart()

    def restart(self) -> None:
        """The next request of the same connection is about to be sent."""
        self.mark = None
        self._began: Mark | None = None
        self._line = b""
        self._skipping = False
        self._over = False

    def feed(self, data: bytes, mark: Mark) -> None:
        """One read."""
        while data and not self._over:
            data = self._skip(data) if self._skipping else self._begin(data, mark)

    def _begin(self, data: bytes, mark: Mark) -> bytes:
        """Collects the start of a status line; returns what was not needed."""
        if self._began is None:
            self._began = mark
        wanted = STATUS_LINE_BYTES - len(self._line)
        self._line += data[:wanted]
        if len(self._line) < STATUS_LINE_BYTES:
            return b""
        status = STATUS_LINE.fullmatch(self._line)
        if status and status[1][:1] == b"1" and status[1] != SWITCHING_PROTOCOLS:
            self._skipping = True
            self._began = None
        else:
            self.mark = self._began if status else None
            self._over = True
        return data[wanted:]

    def _skip(self, data: bytes) -> bytes:
        """Looks for the empty line that ends an interim head; returns what is behind it."""
        seen = self._line[-2:] + data
        end = END_OF_HEAD.search(seen)
        if end is None:
            self._line = seen[-2:]
            return b""
        self._skipping = False
        self._line = b""
        return seen[end.end() :]


class Http2Scanner(Generic[Mark]):
    """RFC 9113 §4.1 frames. One scanner serves a whole connection, since a read may end inside a frame."""

    def __init__(self) -> None:
        self.mark: Mark | None = None
        self._sure = False
        self._highest = 0
        self._floor = 0
        self._head = b""
        self._peek = b""
        self._left = 0

    def restart(self) -> None:
        """The next request of the same connection is about to be sent."""
        self.mark = None
        self._sure = False
        self._floor = self._highest

    def feed(self, data: bytes, mark: Mark) -> None:
        """One read."""
        while data:
            if len(self._head) < FRAME_HEADER_BYTES:
                wanted = FRAME_HEADER_BYTES - len(self._head)
                self._head, data = self._head + data[:wanted], data[wanted:]
                if len(self._head) < FRAME_HEADER_BYTES:
                    return
                self._left = int.from_bytes(self._head[:3], "big")
            taken = data[: self._left]
            data = data[self._left :]
            self._left -= len(taken)
            self._peek += taken[: PEEK_BYTES - len(self._peek)]
            if self._left == 0:
                self._frame(mark)
                self._head = self._peek = b""

    def _frame(self, mark: Mark) -> None:
        """A frame is complete."""
        kind, flags = self._head[3], self._head[4]
        stream = int.from_bytes(self._head[5:9], "big") & 0x7FFF_FFFF
        if stream <= self._floor:
            return
        if kind == HEADERS:
            self._highest = max(self._highest, stream)
            self._headers(flags, mark)
        elif kind == DATA:
            self._sure = True

    def _headers(self, flags: int, mark: Mark) -> None:
        """A HEADERS frame of the request's stream: interim, the final one, or trailers."""
        if self._sure:
            return
        if self.mark is not None:
            # Without END_STREAM it is no trailer (RFC 9113 §8.1), so what came before it was interim.
            if not flags & END_STREAM:
                self.mark = mark
            return
        interim = _is_interim(_block(self._peek, flags))
        if interim:
            return
        self.mark = mark
        self._sure = interim is not None


def _block(payload: bytes, flags: int) -> bytes:
    """The start of the field block in a HEADERS payload (RFC 9113 §6.2)."""
    return payload[(1 if flags & PADDED else 0) + (5 if flags & PRIORITY else 0) :]


def _is_interim(block: bytes) -> bool | None:
    """Whether `:status` is 1xx; `None` when it stands in the dynamic table or is spelled out (RFC 7541 §6).

    Entries 8 to 14 of the static table are `:status`, all of them final. Huffman's code of "1" is 00001.
    """
    while block and block[0] & 0xE0 == 0x20:  # a size update of the dynamic table
        more = block[0] & 0x1F == 0x1F
        block = block[1:]
        while more and block:
            more, block = bool(block[0] & 0x80), block[1:]
    if not block:
        return None
    first = block[0]
    if first & 0x80:
        return False if 8 <= first & 0x7F <= 14 else None
    index = first & 0x3F if first & 0x40 else first & 0x0F
    if not 8 <= index <= 14 or len(block) < 3:
        return None
    return block[2] >> 3 == 0b00001 if block[1] & 0x80 else block[2:3] == b"1"


PREFIXES = (
    (b"HTTP/", "plain HTTP"),
    (b"SSH-", "SSH"),
    (b"\x15\x03", "TLS"),
    (b"\x16\x03", "TLS"),
    (b"220", "SMTP or FTP"),
    (b"+OK", "POP3"),
    (b"* OK", "IMAP"),
    (b"-ERR", "Redis"),
    (b"RFB ", "VNC"),
    (b"AMQP", "AMQP"),
    (b"<", "HTML without an HTTP head"),
)


def language(first: bytes) -> str | None:
    """The protocol that the first bytes from a server look like, in words, or `None`."""
    for prefix, name in PREFIXES:
        if first.startswith(prefix):
            return name
    settings = len(first) >= FRAME_HEADER_BYTES and first[0] == 0 and first[3] == SETTINGS and first[5:9] == bytes(4)
    return "HTTP/2" if settings else None
