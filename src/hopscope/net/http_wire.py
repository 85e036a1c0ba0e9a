"""A connection as httpcore sees it: writes held until it reads, and every read noted in the request's progress.

Holding makes head and body leave in one send, so that "last byte sent" is one instant (method 5.1). What HTTP/2 sends
later on its own account (acknowledged settings, windows) is no part of the request and moves none of its marks.
"""

import ssl
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

import httpcore

from hopscope.model.record import Certificate, ErrorClass
from hopscope.net import tls
from hopscope.net.dial import Connection, Read, UnansweredError
from hopscope.wire.head import Http1Scanner, Http2Scanner, Scanner

FIRST_BYTES = 64
MOST_BEFORE_HEAD_BYTES = 256 << 10
"""Interim answers (RFC 9110 §15.2) and frames of HTTP/2 that go on without end are no answer."""
ALPN = {True: ["h2", "http/1.1"], False: ["http/1.1"]}


@dataclass(slots=True)
class Progress:
    """One request under way: how far it got, and when."""

    dialled: int | None = None
    connection: Connection | None = None
    request_held: bool = False
    sent_first: int | None = None
    sent_last: int | None = None
    head: Read | None = None
    latest: Read | None = None
    first_bytes: bytes = b""
    bytes_up: int = 0
    bytes_down: int = 0
    status: int | None = None
    http_version: str | None = None
    headers: tuple[tuple[bytes, bytes], ...] = ()
    patience_ns: int | None = None
    done: bool = False
    certificate: Certificate | None = None
    error: ErrorClass | None = None
    detail: str = ""

    def fail(self, error: ErrorClass, detail: str) -> None:
        """The request ends here."""
        self.error, self.detail = error, detail

    def saw(self, got: Read) -> None:
        """One read of the answer."""
        self.latest = got
        self.bytes_down += len(got.data)
        self.first_bytes += got.data[: FIRST_BYTES - len(self.first_bytes)]


class Wire(httpcore.AsyncNetworkStream):
    """The stream that httpcore reads and writes. `progress` is that of the request under way.

    It dials when it must: with HTTP/2 on the table at the handshake, whose ALPN decides, else at the first read, so
    that what httpcore does to put a request together lies before the connection and not inside its times.
    """

    def __init__(
        self, dial: Callable[[], Awaitable[Connection]], progress: Progress, *, http2: bool, insecure: bool
    ) -> None:
        self.connection: Connection | None = None
        self.progress = progress
        self.scanner: Scanner[Read] = Http1Scanner()
        self._dial = dial
        self._http2 = http2
        self._insecure = insecure
        self._tls: tuple[ssl.SSLContext, str] | None = None
        self._held = b""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """The next plaintext, after sending what is held. A server may answer and close before it has read it all."""
        connection = self.connection or await self._up()
        broken = await self._flush(connection)
        try:
            got = await connection.receive(max_bytes)
        except UnansweredError as error:
            raise broken or error from None
        if broken and not got.data:
            raise broken
        self.scanner.feed(got.data, got)
        self.progress.saw(got)
        if self.progress.head is None and self.progress.bytes_down > MOST_BEFORE_HEAD_BYTES:
            detail = f"no final response header within {MOST_BEFORE_HEAD_BYTES >> 10} KiB"
            raise UnansweredError("http", detail)
        return got.data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Held until the next read."""
        self._held += buffer

    async def aclose(self) -> None:
        """Close the socket."""
        self.close()

    def close(self) -> None:
        """Close the socket, after a last look at its TCP_INFO."""
        if self.connection is not None:
            self.connection.observe()
            self.connection.close()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        """The handshake, now or at the first read; HTTP/2 is preferred where it was asked for."""
        ssl_context.set_alpn_protocols(ALPN[self._http2])
        self._tls = ssl_context, (server_hostname or "").rstrip(".")
        if self._http2:
            await self._up()
        return self

    def get_extra_info(self, info: str) -> object:
        """What httpcore asks: the TLS object for ALPN, and before reuse whether the connection has ended."""
        match info:
            case "ssl_object":
                return self.connection.tls if self.connection else None
            case "is_readable":
                return self.connection.ended() if self.connection else False
            case _:
                return None

    async def _up(self) -> Connection:
        connection = self.connection = await self._dial()
        if self._tls is not None:
            session = await connection.secure(*self._tls)
            why = "not checked, as asked" if self._insecure else None
            self.progress.certificate = tls.certificate(session, verified=None if self._insecure else True, why=why)
            if session.selected_alpn_protocol() == "h2":
                self.scanner = Http2Scanner()
        return connection

    async def _flush(self, connection: Connection) -> UnansweredError | None:
        held, self._held = self._held, b""
        if not held:
            return None
        progress = self.progress
        try:
            first, last = await connection.send(held)
        except UnansweredError as error:
            return error
        progress.bytes_up += len(held)
        progress.sent_first = first if progress.sent_first is None else progress.sent_first
        if progress.request_held and progress.sent_last is None:
            progress.sent_last = last
        return None


class Backend(httpcore.AsyncNetworkBackend):
    """Where httpcore gets its streams from: they go to the pinned address, whatever host it asks for."""

    def __init__(self, wire: Callable[[], Wire]) -> None:
        self._wire = wire

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """The stream, not dialled yet."""
        return self._wire()
