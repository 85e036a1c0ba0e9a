"""HTTP/1.1 for the stand-in server: requests in, responses out, connections kept, every turn stamped.

The rule: this file knows HTTP and no inference. The stamp of a request's last byte is taken when the event loop hands
the bytes over, before anything waits; the stamp of a response's first byte when it is handed to the transport.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import SupportsIndex

from msgspec import Struct

from hopscope.lab.orders import Instant

HEAD_LIMIT_BYTES = 64 * 1024
BODY_LIMIT_BYTES = 64 * 1024 * 1024
HTTP_1_1 = "HTTP/1.1"


class Request(Struct, frozen=True, kw_only=True):
    """One request, whole. Header names are lower case; of repeated ones the last counts."""

    method: str
    path: str
    version: str
    headers: dict[str, str]
    body: bytes
    last_in: Instant

    @property
    def keeps(self) -> bool:
        """Whether the client wants the connection kept (RFC 9112 section 9.3)."""
        wish = self.headers.get("connection", "").lower()
        return "close" not in wish if self.version == HTTP_1_1 else "keep-alive" in wish


class BadRequestError(Exception):
    """Bytes that are no request; the connection ends after the answer."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class StampedReader(asyncio.StreamReader):
    """A stream reader that remembers when its last bytes came."""

    fed = Instant(monotonic_ns=0, wall_ns=0)

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        """Takes bytes from the transport."""
        self.fed = Instant.now()
        super().feed_data(data)


class Responder:
    """The answer to one request: `send` for a whole one, or `begin`, `piece` and `end` for a streamed one."""

    def __init__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        self._request = request
        self._writer = writer
        self._chunked = request.version == HTTP_1_1
        self.keeps = request.keeps
        self.status = 0
        self.first_out: Instant | None = None
        self.last_out: Instant | None = None

    async def send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        """Sends head and body in one write."""
        self._write(self._head(status, kind, f"Content-Length: {len(body)}") + self._unless_head(body))
        await self._writer.drain()

    async def begin(self, status: int, kind: str) -> None:
        """Sends the head of a response whose length is not known."""
        self.keeps = self.keeps and self._chunked
        self._write(
            self._head(status, kind, "Transfer-Encoding: chunked" if self._chunked else "Cache-Control: no-cache")
        )
        await self._writer.drain()

    async def piece(self, data: bytes) -> None:
        """Sends one piece of the body, one write each."""
        self._write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)
        await self._writer.drain()

    async def end(self) -> None:
        """Ends a streamed body."""
        if self._chunked:
            self._write(b"0\r\n\r\n")
        await self._writer.drain()

    def _head(self, status: int, kind: str, framing: str) -> bytes:
        self.status = status
        phrase = next((known.phrase for known in HTTPStatus if known == status), "Status")
        connection = "keep-alive" if self.keeps else "close"
        lines = (f"HTTP/1.1 {status} {phrase}", f"Content-Type: {kind}", framing, f"Connection: {connection}", "", "")
        return "\r\n".join(lines).encode("ascii")

    def _unless_head(self, body: bytes) -> bytes:
        return b"" if self._request.method == "HEAD" else body

    def _write(self, data: bytes) -> None:
        self._writer.write(data)
        self.last_out = Instant.now()
        self.first_out = self.first_out or self.last_out


Handler = Callable[[Request, Responder], Awaitable[None]]


async def listen(address: str, port: int, handler: Handler, tls: ssl.SSLContext | None) -> asyncio.Server:
    """A server that answers each request by `handler`; a handler that fails ends its connection. Raises OSError."""
    loop = asyncio.get_running_loop()

    def connection() -> asyncio.StreamReaderProtocol:
        reader = StampedReader(limit=HEAD_LIMIT_BYTES, loop=loop)

        async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await _serve(reader, writer, handler)

        return asyncio.StreamReaderProtocol(reader, serve, loop=loop)

    # asyncio sets TCP_NODELAY on every TCP transport; without it the truth would be Nagle's.
    return await loop.create_server(connection, address, port, ssl=tls, backlog=1024)


async def _serve(reader: StampedReader, writer: asyncio.StreamWriter, handler: Handler) -> None:
    try:
        keep = True
        while keep:
            request = await _read(reader, writer)
            if request is None:
                break
            responder = Responder(request, writer)
            await handler(request, responder)
            keep = responder.keeps
    except BadRequestError as bad:
        status = bad.status
        writer.write(f"HTTP/1.1 {status} {status.phrase}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
    except (OSError, asyncio.IncompleteReadError, ssl.SSLError):
        pass  # the client is gone
    finally:
        writer.close()


async def _read(reader: StampedReader, writer: asyncio.StreamWriter) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise BadRequestError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "head too long") from error
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    match first.split(" "):
        case [method, path, (("HTTP/1.0" | "HTTP/1.1") as version)]:
            pass
        case _:
            raise BadRequestError(HTTPStatus.BAD_REQUEST, "no request line")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = await _body(reader, headers)
    return Request(method=method, path=path, version=version, headers=headers, body=body, last_in=reader.fed)


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return await _chunks(reader)
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > BODY_LIMIT_BYTES:
        raise BadRequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"content-length {length}")
    return await reader.readexactly(int(length))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    pieces: list[bytes] = []
    while True:
        line = await reader.readline()
        try:
            size = int(line.split(b";")[0], 16)
        except ValueError as error:
            raise BadRequestError(HTTPStatus.BAD_REQUEST, "bad chunk") from error
        if size == 0:
            while (await reader.readline()).strip():
                pass
            return b"".join(pieces)
        pieces.append(await reader.readexactly(size))
        await reader.readexactly(2)
