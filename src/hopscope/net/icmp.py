"""ICMP echo for every task of a process over one socket a family, privileged or not (method 1.1, 2.2, 2.4).

Opened through icmplib's socket classes; nothing else of icmplib is used, since its times and loss are wrong. What is
sent and what comes in passes through here; which probe it belongs to, and its delay, is decided in `net.echoes`.
"""

import errno
import os
import socket
import struct
import sys
from collections.abc import Iterator

from icmplib.exceptions import ICMPSocketError, SocketAddressError, SocketPermissionError
from icmplib.sockets import ICMPv4Socket, ICMPv6Socket

from hopscope.errors import UsageError
from hopscope.model.plan import Family
from hopscope.model.record import ReplyKind
from hopscope.net import bpf, stamps
from hopscope.net.echoes import Echoes, Reply
from hopscope.net.ports import Arrival, Clock, DropSeen, Flight, NoRightsError, SendFailedError
from hopscope.wire import icmp, ip

RECEIVE_BUFFER_BYTES = 8 << 20
SEND_BUFFER_BYTES = 4 << 20
READ_BYTES = 2048
READS_A_ROUND = 256
SO_RCVBUFFORCE = 33
SO_SNDBUFFORCE = 32


def advice() -> str:
    """The command that grants an ICMP socket."""
    return (
        f"run as root, or grant the right once: sudo setcap cap_net_raw+ep {os.path.realpath(sys.executable)}  "
        'or: sudo sysctl -w net.ipv4.ping_group_range="0 2147483647"'
    )


def open_socket(family: Family, source: str | None = None) -> tuple[socket.socket, bool]:
    """Open an ICMP socket; returns it and whether it is a raw one.

    Raises NoRightsError when neither kind is allowed, UsageError for a source address that this host does not have.
    """
    kind = ICMPv4Socket if family == 4 else ICMPv6Socket
    why: list[str] = []
    for privileged in (True, False):
        try:
            opened = kind(address=source, privileged=privileged)
        except SocketAddressError as error:
            message = f"{source} is not an IPv{family} address of this host"
            raise UsageError(message, "give one that `ip addr` shows as --source") from error
        except SocketPermissionError:
            why.append("a raw one needs CAP_NET_RAW" if privileged else "a datagram one the ping_group_range")
            continue
        except ICMPSocketError as error:
            why.append(str(error))
            continue
        # icmplib closes its socket when its wrapper is collected: keep a descriptor of our own.
        sock: socket.socket = opened.sock.dup()
        sock.setblocking(False)
        return sock, privileged
    message = f"no ICMP socket may be opened for IPv{family}: {'; '.join(dict.fromkeys(why))}"
    raise NoRightsError(message, advice())


class IcmpChannel:
    """All echo probes of one family; see `net.ports.Channel`. Used from one thread only."""

    def __init__(
        self,
        clock: Clock,
        family: Family,
        *,
        source: str | None = None,
        interface: str | None = None,
        receive_bytes: int = RECEIVE_BUFFER_BYTES,
    ) -> None:
        """Open the socket. Raises NoRightsError, and OSError for an interface that is not there."""
        self._clock = clock
        self._family: Family = family
        self._sock, self.privileged = open_socket(family, source)
        self._echoes = Echoes(family, clock.offset(), own_identifier=self.privileged)
        self._drops = 0
        self._last_queued = clock.now()
        self._errors: list[Arrival] = []
        self._prepare(interface, receive_bytes)

    def _prepare(self, interface: str | None, receive_bytes: int) -> None:
        """Options of the socket: buffers, filter, stamps, error queue, TTL of replies."""
        sock = self._sock
        _grow(sock, SO_RCVBUFFORCE, socket.SO_RCVBUF, receive_bytes)
        _grow(sock, SO_SNDBUFFORCE, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        if interface is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        if self.privileged:
            bpf.attach(sock, self._family, self._echoes.base)
        stamps.enable(sock, transmit=True)
        if sys.platform == "linux":
            sock.setsockopt(socket.SOL_SOCKET, stamps.SO_RXQ_OVFL, 1)
        if self._family == 6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
        elif not self.privileged:
            sock.setsockopt(socket.IPPROTO_IP, stamps.IP_RECVTTL, 1)
        if not self.privileged and sys.platform == "linux":
            level = socket.IPPROTO_IP if self._family == 4 else socket.IPPROTO_IPV6
            option = stamps.IP_RECVERR if self._family == 4 else stamps.IPV6_RECVERR
            sock.setsockopt(level, option, 1)

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._sock.fileno()

    def close(self) -> None:
        """Close the socket."""
        self._sock.close()

    def wake_at(self) -> int | None:
        """At once when errors were heard while sending, else when the oldest reply stops waiting for a send stamp."""
        return self._clock.now() if self._errors else self._echoes.wake_at()

    # Sending

    def send(self, flight: Flight) -> int:
        """Send one echo request; returns the anchored instant just before.

        Raises SendFailedError when the system refused twice.
        """
        out, message = self._echoes.launch(flight, self._clock.now())
        why = self._try_send(message, flight)
        if why is not None:
            # Method 2.2: the error may be an earlier probe's, pending on the socket.
            self._drain_errors()
            out.before = self._clock.now()
            why = self._try_send(message, flight)
        if why is not None:
            self._echoes.drop(out.number)
            raise SendFailedError(why)
        return out.before

    def _try_send(self, message: bytes, flight: Flight) -> str | None:
        """One attempt; returns what the system said, or `None`."""
        packet = flight.job.packet
        control: list[tuple[int, int, bytes]] = []
        ttl = flight.shot.ttl or packet.ttl
        if ttl:
            control.append(self._integer(socket.IP_TTL, socket.IPV6_HOPLIMIT, ttl))
        if packet.dscp:
            control.append(self._integer(socket.IP_TOS, socket.IPV6_TCLASS, packet.dscp << 2))
        try:
            self._sock.sendmsg([message], control, 0, _destination(packet.address))
        except OSError as error:
            return f"{errno.errorcode.get(error.errno or 0, 'error')}: {error.strerror or error}"
        return None

    def _integer(self, v4: int, v6: int, value: int) -> tuple[int, int, bytes]:
        """A control message that sets an integer for this one packet."""
        if self._family == 4:
            return socket.IPPROTO_IP, v4, struct.pack("@i", value)
        return socket.IPPROTO_IPV6, v6, struct.pack("@i", value)

    # Receiving

    def receive(self) -> Iterator[Arrival | DropSeen]:
        """Drain both queues, send stamps first, and yield what is settled."""
        self._echoes.watch.see(self._clock.offset())
        self._drain_errors()
        yield from self._quoted()
        for _ in range(READS_A_ROUND):
            try:
                data, control, _, source = self._sock.recvmsg(READ_BYTES, stamps.ANCILLARY_BYTES)
            except BlockingIOError:
                yield from self._count_drops(stamps.dropped(self._sock), self._clock.now())
                break
            except OSError:
                # A pending ICMP error of a datagram socket: its story is in the error queue.
                self._drain_errors()
                continue
            read = self._clock.now()
            stamp = stamps.software(control)
            queued = read if stamp is None else min(read, self._clock.from_realtime(stamp))
            yield from self._count_drops(stamps.overflow(control), queued)
            self._last_queued = queued
            reply = self._match(data, control, str(source[0]), read)
            if reply is not None:
                yield from self._settle(reply, read)
        yield from self._quoted()
        yield from self._echoes.overdue(self._clock.now())

    def _quoted(self) -> Iterator[Arrival]:
        """What the error queue has told so far."""
        told, self._errors = self._errors, []
        return iter(told)

    def _drain_errors(self) -> None:
        """Read the error queue: send stamps, and on datagram sockets what routers said."""
        while True:
            try:
                data, control, _, asked = self._sock.recvmsg(READ_BYTES, stamps.ANCILLARY_BYTES, stamps.MSG_ERRQUEUE)
            except OSError:
                return
            error = stamps.extended_error(control)
            if error is None:
                continue
            if error.origin == stamps.SO_EE_ORIGIN_TIMESTAMPING:
                self._sent_stamp(data, control)
            elif error.origin in {stamps.SO_EE_ORIGIN_ICMP, stamps.SO_EE_ORIGIN_ICMP6} and error.offender:
                self._quoted_error(data, control, error, str(asked[0]))

    def _sent_stamp(self, data: bytes, control: stamps.ControlMessages) -> None:
        """A send stamp, matched by the bytes of the packet it came with; the last one of a probe counts."""
        out = self._echoes.of_token(data)
        stamp = stamps.software(control)
        if out is not None and stamp is not None:
            out.stamp = stamp

    def _quoted_error(
        self, data: bytes, control: stamps.ControlMessages, error: stamps.ExtendedError, asked: str
    ) -> None:
        """An ICMP error that a datagram socket reports: `data` is our own message, from its ICMP header on."""
        out = self._echoes.of_quote(data, asked)
        kind: ReplyKind = "time-exceeded" if error.kind == icmp.TIME_EXCEEDED[self._family] else "unreachable"
        if out is None or error.offender is None or (kind == "time-exceeded" and error.code):
            return
        read = self._clock.now()
        reply = Reply(out, kind, error.offender, stamps.software(control), read)
        reply.code = error.code
        if self._echoes.wants_stamp(reply):
            self._echoes.wait(reply, read)
        else:
            self._errors.append(self._echoes.arrival(reply))

    def _count_drops(self, total: int | None, until: int) -> Iterator[DropSeen]:
        """Tell when the socket's drop counter rose since the packet that was queued last."""
        if total is not None and total > self._drops:
            yield DropSeen(min(self._last_queued, until), until, total - self._drops)
            self._drops = total

    def _match(self, data: bytes, control: stamps.ControlMessages, source: str, read: int) -> Reply | None:
        """Find the probe that a message is about; `None` for anything that is not surely ours."""
        ttl = stamps.received_ttl(control)
        if self._family == 4 and self.privileged:
            packet = ip.decode_v4(data)
            if packet is None:
                return None
            ttl, data = packet.ttl, packet.payload
        seen = icmp.decode(data, self._family, self._echoes.magic)
        out = None if seen is None else self._echoes.of_message(seen)
        if seen is None or out is None:
            return None
        reply = Reply(out, _kind(seen.kind, self._family), source, stamps.software(control), read)
        reply.ttl = ttl
        if reply.kind != "echo-reply":
            reply.code = seen.code
            reply.quoted_ttl, reply.quoted_tos = seen.quoted_ttl, seen.quoted_tos
        return reply

    def _settle(self, reply: Reply, now: int) -> Iterator[Arrival]:
        """Give out a reply, or keep it until its send stamp is there."""
        if self._echoes.wants_stamp(reply):
            self._drain_errors()
        if self._echoes.wants_stamp(reply):
            self._echoes.wait(reply, now)
            return
        yield self._echoes.arrival(reply)


def _kind(kind: int, family: Family) -> ReplyKind:
    """The word for an ICMP type that `wire.icmp.decode` lets through."""
    if kind == icmp.ECHO_REPLY[family]:
        return "echo-reply"
    return "time-exceeded" if kind == icmp.TIME_EXCEEDED[family] else "unreachable"


def _destination(address: str) -> tuple[str, int] | tuple[str, int, int, int]:
    """A socket address; a zone (`fe80::1%eth0`) becomes its scope id. Raises OSError for a zone that is not there."""
    if ":" not in address:
        return address, 0
    bare, _, zone = address.partition("%")
    scope = 0
    if zone:
        scope = int(zone) if zone.isdigit() else socket.if_nametoindex(zone)
    return bare, 0, 0, scope


def _grow(sock: socket.socket, force: int, option: int, size: int) -> None:
    """A larger buffer: beyond the system's limit where we may, up to it otherwise."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, force, size)
    except OSError:
        sock.setsockopt(socket.SOL_SOCKET, option, size)
