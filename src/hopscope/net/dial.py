"""One TCP connection to one chosen address, with or without TLS, every read and write timed (longer because whole).

The socket is ours from the first packet on: non-blocking under asyncio, never given to a transport, so that each read
brings the kernel's stamp along, and TLS is driven by hand over memory, so that each piece of plaintext knows the read
that completed its record (method 5.1). What the far end does is told by `UnansweredError`; deadlines and their
timeouts are the caller's. A connection that is not closed by its owner is a leak: every failure here closes it.
"""

import asyncio
import errno
import os
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass, replace

from hopscope.model.plan import Family
from hopscope.model.record import Certificate, ErrorClass
from hopscope.net import stamps, tcpinfo, tls
from hopscope.net.ports import Clock
from hopscope.wire.head import language

READ_BYTES = 65_536
READS_A_TURN = 64
"""A peer that never lets us wait must not keep deadlines and signals from being heard."""
MOST_HANDSHAKE_BYTES = 1 << 20
"""Longer than any chain of certificates (RFC 8446 §4.4.2 allows 16 MiB each; nobody sends that)."""
MOST_UNASKED = 16
"""So many pieces that nobody asked for may come on an idle connection: tickets and settings are fewer."""
STAMP_SLACK_NS = 100_000
"""A kernel stamp may seem this much later than the read that brought it: the offset of the clocks is itself read."""

CONNECT_ERRORS: dict[int, ErrorClass] = {
    errno.ECONNREFUSED: "refused",
    errno.ECONNRESET: "cut",  # it stood for a moment: the SYN itself was answered
    errno.ETIMEDOUT: "timeout",
    errno.EACCES: "prohibited",
    errno.EPERM: "prohibited",
}
BROKEN: dict[int, tuple[ErrorClass, str]] = {
    errno.ECONNRESET: ("cut", "the connection was reset"),
    errno.EPIPE: ("cut", "the connection was reset"),
    errno.ETIMEDOUT: ("timeout", "nothing was acknowledged for so long that the system gave up"),
    errno.EHOSTUNREACH: ("unreachable", "no route to host any more"),
    errno.ENETUNREACH: ("unreachable", "no route to network any more"),
}
# ICMP type 3 codes 9, 10, 13 (RFC 1812 §5.2.7.1), ICMPv6 type 1 code 1 (RFC 4443 §3.1)
PROHIBITED_CODES = {4: {9, 10, 13}, 6: {1}}
UNREACHABLE_TYPE = {4: 3, 6: 1}
RECVERR = {4: (socket.IPPROTO_IP, stamps.IP_RECVERR), 6: (socket.IPPROTO_IPV6, stamps.IPV6_RECVERR)}


class UnansweredError(Exception):
    """What the far end did instead of answering: an outcome on its way to a record. `certificate` if it showed one."""

    def __init__(self, kind: ErrorClass, detail: str, certificate: Certificate | None = None) -> None:
        super().__init__(detail)
        self.kind: ErrorClass = kind
        self.detail = detail
        self.certificate = certificate


class UnverifiedError(UnansweredError):
    """The server's certificate was not accepted; `cause` is OpenSSL's account of it."""

    def __init__(self, cause: ssl.SSLCertVerificationError, detail: str) -> None:
        super().__init__("tls", detail, Certificate(verified=False, why=detail))
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Read:
    """Bytes and when they came, anchored ns: `at` in user space, `stamp` in the kernel if it told. Empty: the end."""

    data: bytes
    at: int
    stamp: int | None


class Connection:
    """A connection that is up. Instants are anchored ns; `rtt_ns` is the kernel's first sample, that of the SYN."""

    def __init__(self, sock: socket.socket, clock: Clock, dialled: int, connected: int) -> None:
        self.dialled = dialled
        self.connected = connected
        self.secured: int | None = None
        self.tls: ssl.SSLObject | None = None
        self.rtt_ns: int | None = None
        self.min_rtt_ns: int | None = None
        self.retransmits: int | None = None
        self._sock = sock
        self._clock = clock
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._latest = Read(b"", connected, None)
        self._waiting: list[Read] = []
        self._reads = 0
        info = self.observe()
        if info is not None and info.total_retrans == 0:
            self.rtt_ns = info.rtt_ns

    def observe(self) -> tcpinfo.TcpInfo | None:
        """Take a reading of TCP_INFO, `None` where there is no such thing.

        A reading after a retransmit leaves `min_rtt_ns` as it was (method 5.2): a SYN sent twice never has one.
        """
        info = tcpinfo.read(self._sock)
        if info is not None:
            self.retransmits = info.total_retrans
            if info.total_retrans == 0 and info.min_rtt_ns is not None:
                self.min_rtt_ns = min(info.min_rtt_ns, self.min_rtt_ns or info.min_rtt_ns)
        return info

    async def secure(self, context: ssl.SSLContext, server_name: str) -> ssl.SSLObject:
        """The TLS handshake; a literal address sends no SNI (RFC 6066 §3). Raises UnansweredError, also Unverified."""
        try:
            session = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)
        except ValueError as error:
            raise UnansweredError("tls", f"{server_name!r} cannot be a server's name") from error
        try:
            await self._shake_hands(session)
        except ssl.SSLCertVerificationError as error:
            await self._say_why()
            raise UnverifiedError(error, tls.why(error, server_name, None)) from error
        except ssl.SSLError as error:
            raise UnansweredError("tls", tls.why(error, server_name, None)) from error
        self.secured = self._clock.now()
        self.tls = session
        return session

    async def receive(self, size: int = READ_BYTES) -> Read:
        """The next bytes, with the times of the read that completed them; empty at the end.

        Raises UnansweredError when the connection breaks.
        """
        if self._waiting:
            return self._waiting.pop(0)
        if self.tls is None:
            return await self._receive_raw(size)
        while True:
            got = self._decrypt(self.tls, size)
            if got is not None:
                return got
            self._take_raw(await self._receive_raw(READ_BYTES))

    async def send(self, data: bytes) -> tuple[int, int]:
        """Hand `data` to the kernel; when the first and the last call that took some of it were made.

        Made, not returned: being kept waiting after that must not shorten U (method 5.2). Raises UnansweredError.
        """
        if self.tls is not None:
            view = memoryview(data)
            try:
                while view:
                    view = view[self.tls.write(view) :]
            except ssl.SSLError as error:
                raise UnansweredError("tls", tls.why(error, "", None)) from error
            data = self._outgoing.read()
        first = self._clock.now()
        return first, await self._send_raw(data)

    def ended(self) -> bool:
        """Whether an idle connection cannot be used any more, without waiting.

        Session tickets and other bytes that came in the meantime are taken in, so they do not look like an end.
        """
        try:
            return self._peek() if self.tls is None else self._ended_tls(self.tls)
        except (OSError, UnansweredError):
            return True

    def close(self) -> None:
        """Give the socket back; a second call does nothing."""
        self._sock.close()

    def _ended_tls(self, session: ssl.SSLObject) -> bool:
        while (raw := self._read_now(READ_BYTES)) is not None:
            self._take_raw(raw)
            while (got := self._decrypt(session, READ_BYTES)) is not None:
                if not got.data or len(self._waiting) > MOST_UNASKED:
                    return True
                self._waiting.append(got)
        return bool(self._waiting) and session.selected_alpn_protocol() != "h2"

    async def _shake_hands(self, session: ssl.SSLObject) -> None:
        first = True
        left = MOST_HANDSHAKE_BYTES
        while True:
            try:
                session.do_handshake()
            except ssl.SSLWantReadError:
                await self._send_raw(self._outgoing.read())
                raw = await self._handshake_read()
                left -= len(raw.data)
                if left < 0:
                    why = f"the TLS handshake does not end within {MOST_HANDSHAKE_BYTES >> 10} KiB"
                    raise UnansweredError("tls", why) from None
                spoken = language(raw.data) if first else None
                if spoken not in (None, "TLS"):
                    raise UnansweredError("tls", f"the port speaks {spoken}, not TLS") from None
                first = False
                self._incoming.write(raw.data)
            else:
                await self._send_raw(self._outgoing.read())
                return

    async def _handshake_read(self) -> Read:
        try:
            raw = await self._receive_raw(READ_BYTES)
        except UnansweredError as broken:
            raise UnansweredError("tls", f"{broken.detail} during the TLS handshake") from broken
        if not raw.data:
            raise UnansweredError("tls", "the server closed the connection during the TLS handshake")
        self._latest = raw
        return raw

    async def _say_why(self) -> None:
        """Tell the server by TLS alert that its certificate was refused, if it still listens."""
        with suppress(UnansweredError):
            await self._send_raw(self._outgoing.read())

    def _take_raw(self, raw: Read) -> None:
        self._latest = raw
        if raw.data:
            self._incoming.write(raw.data)
        else:
            self._incoming.write_eof()

    def _decrypt(self, session: ssl.SSLObject, size: int) -> Read | None:
        """Plaintext at hand, empty at the end, or `None` when more has to be read.

        A server that ends without close_notify (RFC 8446 §6.1) ends all the same: HTTP knows its own lengths.
        """
        try:
            return replace(self._latest, data=session.read(size))
        except ssl.SSLWantReadError:
            return None
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return Read(b"", self._latest.at, None)
        except ssl.SSLError as error:
            raise UnansweredError("tls", tls.why(error, "", None)) from error

    async def _receive_raw(self, size: int) -> Read:
        while True:
            got = self._read_now(size)
            if got is not None:
                self._reads += 1
                if not self._reads % READS_A_TURN:
                    await asyncio.sleep(0)
                return got
            await _ready(self._sock, writing=False)

    def _read_now(self, size: int) -> Read | None:
        """What lies in the socket, `None` if nothing does."""
        try:
            data, control, _, _ = self._sock.recvmsg(size, stamps.ANCILLARY_BYTES)
        except BlockingIOError:
            return None
        except OSError as error:
            raise _broken(error) from error
        at = self._clock.now()
        return Read(data, at, self._stamp(control, at))

    def _stamp(self, control: stamps.ControlMessages, at: int) -> int | None:
        """The kernel's stamp on the anchored timeline, `None` where it cannot be true (method 1.3)."""
        raw = stamps.software(control)
        if raw is None:
            return None
        stamp = self._clock.from_realtime(raw)
        return min(stamp, at) if self.connected - STAMP_SLACK_NS <= stamp <= at + STAMP_SLACK_NS else None

    async def _send_raw(self, data: bytes) -> int:
        """Send everything; when the last call that took bytes was made."""
        view = memoryview(data)
        last = self._clock.now()
        while view:
            at = self._clock.now()
            try:
                view = view[self._sock.send(view) :]
                last = at
            except BlockingIOError:
                await _ready(self._sock, writing=True)
            except OSError as error:
                raise _broken(error) from error
        return last

    def _peek(self) -> bool:
        """Whether a plain connection has something to read: its end, or bytes that nobody asked for."""
        try:
            self._sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        return True


async def dial(address: str, family: Family, port: int, clock: Clock) -> Connection:
    """Connect to one address. Raises UnansweredError (refused, timeout, unreachable, prohibited)."""
    sock = socket.socket(socket.AF_INET6 if family == 6 else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _hear_icmp(sock, family, on=True)
        stamps.enable(sock, transmit=False)  # the first to ask for stamps waits a moment until the kernel makes them
        dialled = clock.now()
        try:
            await _connect(sock, address, port)
        except OSError as error:
            raise _not_connected(error, sock, family, f"{address} port {port}") from error
        connected = clock.now()
        _hear_icmp(sock, family, on=False)
        return Connection(sock, clock, dialled, connected)
    except BaseException:
        sock.close()
        raise


async def _connect(sock: socket.socket, address: str, port: int) -> None:
    code = sock.connect_ex((address, port))
    if code == errno.EINPROGRESS:
        await _ready(sock, writing=True)
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        raise OSError(code, os.strerror(code))


async def _ready(sock: socket.socket, *, writing: bool) -> None:
    """Wait until the loop says that the socket is ready; cancelling leaves nothing registered."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    add, remove = (loop.add_writer, loop.remove_writer) if writing else (loop.add_reader, loop.remove_reader)
    add(sock, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        remove(sock)


def _hear_icmp(sock: socket.socket, family: Family, *, on: bool) -> None:
    """Have ICMP errors kept with their code and sender while connecting, and not afterwards (tcp(7), IP_RECVERR)."""
    level, option = RECVERR[family]
    with suppress(OSError):
        sock.setsockopt(level, option, int(on))


def _not_connected(error: OSError, sock: socket.socket, family: Family, where: str) -> UnansweredError:
    kind = CONNECT_ERRORS.get(error.errno or 0, "unreachable")
    detail = f"{where}: {(error.strerror or str(error)).lower()}"
    try:
        _, control, _, _ = sock.recvmsg(0, stamps.ANCILLARY_BYTES, stamps.MSG_ERRQUEUE)
    except OSError:
        return UnansweredError(kind, detail)
    icmp = stamps.extended_error(control)
    if icmp is None or icmp.kind != UNREACHABLE_TYPE[family]:
        return UnansweredError(kind, detail)
    if icmp.code in PROHIBITED_CODES[family]:
        kind, detail = "prohibited", f"{where}: administratively prohibited"
    return UnansweredError(kind, f"{detail} (ICMP type {icmp.kind} code {icmp.code} from {icmp.offender})")


def _broken(error: OSError) -> UnansweredError:
    """A connection that was up and is not any more."""
    kind, detail = BROKEN.get(error.errno or 0, ("cut", (error.strerror or str(error)).lower()))
    return UnansweredError(kind, detail)
