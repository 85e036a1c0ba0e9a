"""HTTP over our own connections: one request at a time, its marks written down as it goes (method 5.1).

httpcore speaks HTTP/1.1 and HTTP/2; the connection under it is `dial.py`'s, to the pinned address while the URL keeps
its name. Writes are held until the first read, so that head and body leave in one send. Nothing is followed, repeated
or taken from the environment, and nothing a server sends is kept beyond a bound. What goes wrong is data: `send`
returns an Exchange. This module costs the import of httpcore, so it is imported when the first request is due.
"""

import asyncio
import ssl
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import anyio
import httpcore
from h2.events import ConnectionTerminated, StreamReset
from h2.exceptions import H2Error

from hopscope.model.limits import SECOND
from hopscope.model.plan import Family
from hopscope.model.record import Certificate, Clock, Exchange
from hopscope.net import dial, tls
from hopscope.net.clock import STEP_LIMIT_NS
from hopscope.net.dial import Connection, Read, UnansweredError, UnverifiedError
from hopscope.net.http_wire import Backend, Progress, Wire
from hopscope.net.ports import Clock as ClockPort
from hopscope.wire.claims import claims
from hopscope.wire.head import language

BODY_LIMIT = 16 * 1024 * 1024
SECOND_LOOK_SECONDS = 5
SHORTEST_SECRET = 4
HIDDEN = "(hidden)"
NO_TLS = "the port takes connections, and speaks no TLS"
TOO_LONG = "Receive buffer too long"
"""h11's words for a head that does not end within httpcore's 100 KiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What is asked, of whom, and how long it may take. `host` and `target` are ASCII, `target` with its query."""

    address: str
    family: Family
    port: int
    scheme: str
    host: str
    target: str
    method: str
    trust: tls.Trust
    timeout_ns: int
    http2: bool = False
    headers: tuple[tuple[bytes, bytes], ...] = field(default=(), repr=False)
    body: bytes | None = field(default=None, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    body_limit: int = BODY_LIMIT

    @property
    def url(self) -> httpcore.URL:
        """The URL that httpcore wants."""
        return httpcore.URL(scheme=self.scheme, host=self.host, port=self.port, target=self.target)

    def cleaned(self, text: str) -> str:
        """Fit to be shown, with no secret in it."""
        for secret in self.secrets:
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, HIDDEN)
        return tls.plain(text)


class Listener(Protocol):
    """Who hears an answer while it comes. Returned is how long the next piece may take, ns; `None`: enough."""

    def head(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> int | None:
        """The header of the final response."""
        ...

    def piece(self, data: bytes, read: Read) -> int | None:
        """A piece of the body, with the read that completed it."""
        ...


class Session:
    """Requests to one address over one connection, dialled anew whenever it is gone; close it when done."""

    def __init__(self, call: Call, context: ssl.SSLContext | None, clock: ClockPort, numbers: Iterator[int]) -> None:
        """`numbers` gives each connection its number; `context` is `call.trust`'s, `None` for plain HTTP."""
        self._progress = Progress()
        self._call = call
        self._context = context
        self._clock = clock
        self._numbers = numbers
        self._number = 0
        self._retransmits = 0
        self._wire: Wire | None = None
        self._pool = self._new_pool()
        anyio.CancelScope()  # httpcore's locks load their backend when one is first made: before any time counts

    async def send(
        self,
        *,
        task: int,
        seq: int,
        scheduled: int,
        dns_ns: int | None = None,
        body: bytes | None = None,
        listener: Listener | None = None,
    ) -> Exchange:
        """One request, until its body is read or its time is up; the far end's failures are in what is returned.

        `body` takes the place of the call's. With a listener time is up when the next piece is later than it allows.
        """
        progress = self._progress = Progress()
        offset = self._clock.offset()
        try:
            await self._try(progress, self._call.body if body is None else body, listener)
        except BaseException:
            self.close()
            raise
        if progress.error is not None or not progress.done:
            self.close()
        stepped = abs(self._clock.offset() - offset) > STEP_LIMIT_NS
        exchange = self._exchange(progress, task=task, seq=seq, scheduled=scheduled, dns_ns=dns_ns, stepped=stepped)
        self._retransmits += exchange.retransmits or 0
        return exchange

    def close(self) -> None:
        """Give the connection back; the next request dials anew."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None
        self._pool = self._new_pool()

    def _new_wire(self) -> Wire:
        """A stream for the request under way."""
        self._wire = Wire(self._dial, self._progress, http2=self._call.http2, insecure=self._call.trust.insecure)
        return self._wire

    async def _dial(self) -> Connection:
        """A connection for the request under way. Raises UnansweredError."""
        call, progress = self._call, self._progress
        progress.sent_first = progress.sent_last = progress.connection = None
        self._number = next(self._numbers)
        self._retransmits = 0
        progress.dialled = self._clock.now()
        progress.connection = await dial.dial(call.address, call.family, call.port, self._clock)
        progress.dialled = progress.connection.dialled
        return progress.connection

    def _new_pool(self) -> httpcore.AsyncConnectionPool:
        return httpcore.AsyncConnectionPool(
            ssl_context=self._context,
            max_connections=1,
            http2=self._call.http2,
            network_backend=Backend(self._new_wire),
        )

    async def _try(self, progress: Progress, body: bytes | None, listener: Listener | None) -> None:
        """The request, with whatever goes wrong written down."""
        try:
            async with asyncio.timeout(self._call.timeout_ns / SECOND) as limit:
                await self._transfer(progress, body, listener, limit)
        except TimeoutError:
            patience_ns = self._call.timeout_ns if progress.patience_ns is None else progress.patience_ns
            waited = f"within {patience_ns / SECOND:.3g} s"
            if _shaking_hands(progress, self._call.scheme):
                progress.fail("tls", f"TLS handshake not finished {waited}: {NO_TLS}")
            else:
                progress.fail("timeout", f"{_unfinished(progress)} {waited}")
        except UnverifiedError as error:
            progress.certificate = await self._look_again(error)
            progress.fail(error.kind, progress.certificate.why or error.detail)
        except UnansweredError as error:
            progress.fail(error.kind, error.detail + _how_far(progress))
        except (httpcore.ProtocolError, H2Error, ValueError) as error:
            self._misspoken(progress, error)

    async def _transfer(
        self, progress: Progress, body: bytes | None, listener: Listener | None, limit: asyncio.Timeout
    ) -> None:
        call = self._call
        if self._wire is not None:
            self._wire.progress = progress
            progress.connection = self._wire.connection
        stream = self._pool.stream(
            call.method, call.url, headers=call.headers, content=body, extensions={"trace": self._trace}
        )
        async with stream as response:
            progress.status = response.status
            progress.headers = tuple(response.headers)
            version = response.extensions.get("http_version")
            progress.http_version = version.decode("latin-1").removeprefix("HTTP/") if version else None
            if listener is not None and not _wait(progress, limit, listener.head(response.status, response.headers)):
                return
            received = 0
            async for part in response.aiter_stream():
                received += len(part)
                if received > call.body_limit:
                    raise UnansweredError("cut", f"the body is longer than {call.body_limit} bytes; not read further")
                if listener is None or progress.latest is None:
                    continue
                # Everything in a read is handed on before the next read, so the latest has completed this piece.
                if not _wait(progress, limit, listener.piece(part, progress.latest)):
                    return
                await asyncio.sleep(0)  # what is there already is handed on without waiting, and others want to run
            progress.done = True
            if progress.connection is not None:
                progress.connection.observe()

    async def _trace(self, event: str, info: Mapping[str, object]) -> None:
        """What httpcore says about its steps; names are `http11.…` or `http2.…`."""
        if self._wire is None:
            return
        match event.partition(".")[2]:
            case "send_request_headers.started":
                self._wire.scanner.restart()
            case "send_request_body.complete":
                self._progress.request_held = True
            case "receive_response_headers.complete":
                self._progress.head = self._wire.scanner.mark or self._progress.latest
            case _:
                pass

    async def _look_again(self, error: UnverifiedError) -> Certificate:
        """Read a certificate that was refused for its name or dates, over a second connection that sends nothing."""
        call, name = self._call, self._call.host
        refused = Certificate(verified=False, why=error.detail)
        if error.cause.verify_code not in tls.FACTS_WANTED:
            return refused
        try:
            async with asyncio.timeout(min(call.timeout_ns / SECOND, SECOND_LOOK_SECONDS)):
                connection = await dial.dial(call.address, call.family, call.port, self._clock)
                try:
                    session = await connection.secure(call.trust.lenient(), name)
                finally:
                    connection.close()
        except (TimeoutError, UnansweredError):
            return refused
        shown = tls.certificate(session, verified=False)
        return tls.certificate(session, verified=False, why=tls.why(error.cause, name, shown))

    def _misspoken(self, progress: Progress, error: Exception) -> None:
        """The HTTP library gave up: closed too early, another protocol, or not HTTP as it is written."""
        spoken = language(progress.first_bytes)
        expected = "HTTP/2" if progress.certificate and progress.certificate.alpn == "h2" else "plain HTTP"
        event = error.args[0] if error.args else None
        words = str(error).partition(":")[0]
        if progress.status is None and spoken not in (None, expected):
            hint = ": use https://" if spoken == "TLS" else ""
            progress.fail("http", f"the port speaks {spoken}, not {expected}{hint}")
        elif isinstance(event, StreamReset | ConnectionTerminated):
            progress.fail("cut", f"the server ended the request (HTTP/2 error {event.error_code}){_how_far(progress)}")
        elif progress.latest is not None and not progress.latest.data:
            progress.fail("cut", f"the server closed the connection{_how_far(progress)}")
        elif words == TOO_LONG:
            progress.fail("http", "the response header does not end within 100 KiB")
        elif progress.latest is None:
            progress.fail("http", f"this request cannot be sent as it is: {type(error).__name__}")
        else:
            line = progress.first_bytes.decode("latin-1").splitlines()[:1]
            begins = f"; the response begins: {line[0]}" if line and progress.status is None else ""
            progress.fail("http", f"malformed response: {words}{begins}")

    def _exchange(
        self, progress: Progress, *, task: int, seq: int, scheduled: int, dns_ns: int | None, stepped: bool
    ) -> Exchange:
        """The record of a request that is over."""
        connection = progress.connection
        fresh = connection if progress.dialled is not None else None
        clock, head, done = _instants(progress, stepped=stepped)
        sent_last = progress.sent_last
        if sent_last is not None and head is not None:
            sent_last = min(sent_last, head)  # an answer may come before everything was sent
        retransmits = connection.retransmits if connection else None
        return Exchange(
            task=task,
            seq=seq,
            cold=progress.dialled is not None,
            connection=self._number,
            scheduled=scheduled,
            dialled=progress.dialled,
            connected=fresh.connected if fresh else None,
            secured=fresh.secured if fresh else None,
            sent_first=progress.sent_first,
            sent_last=sent_last,
            head=head,
            done=done,
            dns_ns=dns_ns,
            clock=clock,
            level=1 if retransmits is None else 2,
            min_rtt_ns=connection.min_rtt_ns if connection else None,
            rtt_ns=connection.rtt_ns if connection else None,
            retransmits=None if retransmits is None else retransmits - self._retransmits,
            lag_ns=progress.head.at - head if progress.head and head is not None and clock == "kernel" else None,
            status=progress.status,
            http_version=progress.http_version,
            bytes_up=progress.bytes_up,
            bytes_down=progress.bytes_down,
            certificate=progress.certificate,
            claims=tuple(each for each in claims(progress.headers) if self._call.cleaned(each.name) == each.name),
            error=progress.error,
            detail=self._call.cleaned(progress.detail) if progress.error else None,
        )


def _instants(progress: Progress, *, stepped: bool) -> tuple[Clock, int | None, int | None]:
    """Which clock the answer is timed with, R1, and the last byte (method 1.3: no kernel stamp that cannot be true)."""
    head, latest = progress.head, progress.latest
    if head is None or latest is None:
        return "user", None, None
    stamp = None if stepped or head.stamp is None or head.stamp < (progress.sent_first or 0) else head.stamp
    if stamp is None:
        return "user", head.at, latest.at if progress.done else None
    done = latest.stamp if latest.stamp is not None and latest.stamp >= stamp else latest.at
    return "kernel", stamp, done if progress.done else None


def _wait(progress: Progress, limit: asyncio.Timeout, patience_ns: int | None) -> bool:
    """Whether to read on, and then for how long at most."""
    if patience_ns is None:
        return False
    progress.patience_ns = patience_ns
    limit.reschedule(asyncio.get_running_loop().time() + patience_ns / SECOND)
    return True


def _shaking_hands(progress: Progress, scheme: str) -> bool:
    """Whether a connection stands, and its handshake was being waited for."""
    return scheme == "https" and progress.connection is not None and progress.connection.secured is None


def _unfinished(progress: Progress) -> str:
    """What was being waited for."""
    if progress.patience_ns is not None:
        return "nothing more came"
    if progress.connection is None:
        return "no connection"
    if progress.sent_last is None:
        return "request not sent"
    return "no response header" if progress.head is None else "body not finished"


def _how_far(progress: Progress) -> str:
    """How much of the answer there was when it broke off."""
    if progress.sent_first is None:
        return ""
    if progress.head is None:
        return " inside the header" if progress.bytes_down else " without an answer"
    return f" inside the response, after {progress.bytes_down} bytes"
