"""ICMP echo for every task of a process over one socket a family, privileged or not (method 1.1, 2.2, 2.4).

Opened through icmplib's socket classes; nothing else of icmplib is used, since its times and loss are wrong. Both
ends of an RTT are kernel stamps where the kernel gives them; each probe is timed with the monotonic clock as well, and
where the two disagree the monotonic value stands and says so. State is inserted before the send. A reply is matched
by identifier, sequence, a random token, and its source address.
"""

import errno
import os
import socket
import struct
import sys
from collections import deque
from collections.abc import Iterator

from icmplib.exceptions import ICMPSocketError
from icmplib.sockets import ICMPv4Socket, ICMPv6Socket

from hopscope.model.flight import Answer
from hopscope.model.plan import ICMP_FLOWS, MS, Family
from hopscope.model.record import ReplyKind
from hopscope.net import bpf, stamps
from hopscope.net.clock import StepWatch
from hopscope.net.ports import Arrival, Clock, DropSeen, Flight, NoRightsError, SendFailedError
from hopscope.wire import icmp, ip

STAMP_PATIENCE_NS = 50 * MS
"""Method 1.1: no send stamp within 50 ms of the answer makes a singleton `user`."""
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


class _Out:
    """One probe on its way: what was sent when, and what is known of its stamps."""

    __slots__ = ("answered", "before", "destination", "epoch", "expires", "flight", "flow", "number", "stamp")

    def __init__(self, flight: Flight, number: int, before: int, epoch: int, destination: bytes) -> None:
        self.flight = flight
        self.number = number
        self.flow = flight.shot.flow
        self.before = before
        self.epoch = epoch
        self.destination = destination
        self.expires = before + flight.job.packet.horizon_ns
        self.stamp: int | None = None
        self.answered = False


class _Waiting:
    """A reply whose send stamp has not come yet."""

    __slots__ = ("build", "until")

    def __init__(self, build: "_Reply", until: int) -> None:
        self.build = build
        self.until = until


class _Reply:
    """What a reply said, before its delay is settled."""

    __slots__ = ("code", "kind", "out", "quoted_tos", "quoted_ttl", "read", "source", "stamp", "ttl")

    def __init__(self, out: _Out, kind: ReplyKind, source: str, stamp: int | None, read: int) -> None:
        self.out = out
        self.kind: ReplyKind = kind
        self.source = source
        self.stamp = stamp
        self.read = read
        self.code: int | None = None
        self.ttl: int | None = None
        self.quoted_ttl: int | None = None
        self.quoted_tos: int | None = None


def open_socket(family: Family, source: str | None = None) -> tuple[socket.socket, bool]:
    """Open an ICMP socket; returns it and whether it is a raw one.

    Raises NoRightsError when neither kind is allowed.
    """
    kind = ICMPv4Socket if family == 4 else ICMPv6Socket
    why = ""
    for privileged in (True, False):
        try:
            opened = kind(address=source, privileged=privileged)
        except ICMPSocketError as error:
            why = str(error)
            continue
        # icmplib closes its socket when its wrapper is collected: keep a descriptor of our own.
        sock: socket.socket = opened.sock.dup()
        sock.setblocking(False)
        return sock, privileged
    message = f"neither a raw nor a datagram ICMP socket may be opened for IPv{family}: {why}"
    raise NoRightsError(message, advice())


class IcmpChannel:
    """All echo probes of one family; see `net.ports.Channel`. Used from one thread only."""

    def __init__(
        self, clock: Clock, family: Family, *, source: str | None = None, interface: str | None = None
    ) -> None:
        self._clock = clock
        self._family: Family = family
        self._sock, self.privileged = open_socket(family, source)
        self._magic = os.urandom(4)
        self._base = int.from_bytes(os.urandom(2), "big") & bpf.FLOW_BITS_MASK
        self._templates: dict[tuple[int, int], icmp.EchoTemplate] = {}
        self._number = int.from_bytes(os.urandom(2), "big")
        self._out: dict[int, _Out] = {}
        self._by_sequence: dict[tuple[int, int], int] = {}
        self._expiry: deque[tuple[int, int]] = deque()
        self._waiting: deque[_Waiting] = deque()
        self._watch = StepWatch(clock.offset())
        self._drops = 0
        self._last_read = clock.now()
        self._errors: list[Arrival] = []
        self._prepare(interface)

    def _prepare(self, interface: str | None) -> None:
        """Options of the socket: buffers, filter, stamps, error queue, TTL of replies."""
        sock = self._sock
        _grow(sock, SO_RCVBUFFORCE, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        _grow(sock, SO_SNDBUFFORCE, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        if interface is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        if self.privileged:
            bpf.attach(sock, self._family, self._base)
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

    @property
    def clock_step_ns(self) -> int:
        """The largest step of the wall clock seen so far, ns."""
        return self._watch.worst

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._sock.fileno()

    def close(self) -> None:
        """Close the socket."""
        self._sock.close()

    def wake_at(self) -> int | None:
        """When the oldest reply without a send stamp stops waiting for it."""
        return self._waiting[0].until if self._waiting else None

    # Sending

    def send(self, flight: Flight) -> int:
        """Send one echo request; returns the anchored instant just before.

        Raises SendFailedError when the system refused twice.
        """
        self._number = (self._number + 1) & 0xFFFFFFFF
        number = self._number
        sequence = number & 0xFFFF
        flow = flight.shot.flow
        packet = flight.job.packet
        message = self._template(flow, packet.size).build(sequence, number)
        destination = _binary(packet.address)
        before = self._clock.now()
        out = _Out(flight, number, before, self._watch.epoch, destination)
        self._out[number] = out
        self._by_sequence[flow, sequence] = number
        self._expiry.append((out.expires, number))
        self._forget(before)
        why = self._try_send(message, flight)
        if why is not None:
            # Method 2.2: the error may be an earlier probe's, pending on the socket.
            self._drain_errors()
            out.before = before = self._clock.now()
            why = self._try_send(message, flight)
        if why is not None:
            self._drop(number)
            raise SendFailedError(why)
        return before

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
            return f"{errno.errorcode.get(error.errno or 0, 'error')}: {error.strerror}"
        return None

    def _integer(self, v4: int, v6: int, value: int) -> tuple[int, int, bytes]:
        """A control message that sets an integer for this one packet."""
        if self._family == 4:
            return socket.IPPROTO_IP, v4, struct.pack("@i", value)
        return socket.IPPROTO_IPV6, v6, struct.pack("@i", value)

    def _template(self, flow: int, size: int) -> icmp.EchoTemplate:
        """The packet template of a flow; a datagram socket has one identifier, so its flows differ by checksum."""
        template = self._templates.get((flow, size))
        if template is None:
            identifier = self._base | (flow % ICMP_FLOWS)
            template = icmp.EchoTemplate(self._family, identifier, self._magic, size, flow)
            self._templates[flow, size] = template
        return template

    def _drop(self, number: int) -> None:
        """Forget one probe."""
        out = self._out.pop(number, None)
        if out is not None and self._by_sequence.get((out.flow, number & 0xFFFF)) == number:
            del self._by_sequence[out.flow, number & 0xFFFF]

    def _forget(self, now: int) -> None:
        """Forget probes past their horizon: later replies to them are nobody's."""
        while self._expiry and self._expiry[0][0] <= now:
            self._drop(self._expiry.popleft()[1])

    # Receiving

    def receive(self) -> Iterator[Arrival | DropSeen]:
        """Drain both queues, send stamps first, and yield what is settled."""
        self._watch.see(self._clock.offset())
        self._drain_errors()
        yield from self._errors
        self._errors.clear()
        for _ in range(READS_A_ROUND):
            try:
                data, control, _, source = self._sock.recvmsg(READ_BYTES, stamps.ANCILLARY_BYTES)
            except BlockingIOError:
                break
            except OSError:
                # A pending ICMP error of a datagram socket: its story is in the error queue.
                self._drain_errors()
                continue
            read = self._clock.now()
            yield from self._count_drops(control, read)
            reply = self._match(data, control, str(source[0]), read)
            if reply is not None:
                yield from self._settle(reply, read)
        self._last_read = self._clock.now()
        yield from self._errors
        self._errors.clear()
        yield from self._overdue(self._last_read)

    def _drain_errors(self) -> None:
        """Read the error queue: send stamps, and on datagram sockets what routers said."""
        while True:
            try:
                data, control, _, _ = self._sock.recvmsg(READ_BYTES, stamps.ANCILLARY_BYTES, stamps.MSG_ERRQUEUE)
            except OSError:
                return
            error = stamps.extended_error(control)
            if error is None:
                continue
            if error.origin == stamps.SO_EE_ORIGIN_TIMESTAMPING:
                self._sent_stamp(data, control)
            elif error.origin in {stamps.SO_EE_ORIGIN_ICMP, stamps.SO_EE_ORIGIN_ICMP6} and error.offender:
                self._quoted_error(data, control, error)

    def _sent_stamp(self, data: bytes, control: stamps.ControlMessages) -> None:
        """A send stamp, matched by the bytes of the packet it came with; the last one of a probe counts."""
        at = data.rfind(self._magic)
        stamp = stamps.software(control)
        if at < 0 or stamp is None or len(data) < at + icmp.TOKEN_BYTES:
            return
        out = self._out.get(int.from_bytes(data[at + 4 : at + 8], "big"))
        if out is not None:
            out.stamp = stamp

    def _quoted_error(self, data: bytes, control: stamps.ControlMessages, error: stamps.ExtendedError) -> None:
        """An ICMP error that a datagram socket reports: `data` is our own message, from its ICMP header on."""
        at = data.rfind(self._magic)
        if at < 0 or len(data) < at + icmp.TOKEN_BYTES or error.offender is None:
            return
        out = self._out.get(int.from_bytes(data[at + 4 : at + 8], "big"))
        if out is None:
            return
        kind: ReplyKind = "time-exceeded" if error.kind == icmp.TIME_EXCEEDED[self._family] else "unreachable"
        if kind == "time-exceeded" and error.code:
            return
        read = self._clock.now()
        reply = _Reply(out, kind, error.offender, stamps.software(control), read)
        reply.code = error.code
        self._errors.extend(self._settle(reply, read))

    def _count_drops(self, control: stamps.ControlMessages, read: int) -> Iterator[DropSeen]:
        """Tell when the socket's drop counter rose since the last read."""
        total = stamps.overflow(control)
        if total is not None and total > self._drops:
            yield DropSeen(self._last_read, read, total - self._drops)
            self._drops = total

    def _match(self, data: bytes, control: stamps.ControlMessages, source: str, read: int) -> _Reply | None:
        """Find the probe that a message is about; `None` for anything that is not surely ours."""
        ttl = _received_ttl(control)
        if self._family == 4 and self.privileged:
            packet = ip.decode_v4(data)
            if packet is None:
                return None
            ttl, data = packet.ttl, packet.payload
        seen = icmp.decode(data, self._family, self._magic)
        out = None if seen is None else self._find(seen)
        if seen is None or out is None:
            return None
        reply = _Reply(out, _kind(seen.kind, self._family), source.partition("%")[0], stamps.software(control), read)
        reply.ttl = ttl
        if reply.kind != "echo-reply":
            reply.code = seen.code
            reply.quoted_ttl, reply.quoted_tos = seen.quoted_ttl, seen.quoted_tos
        return reply

    def _find(self, seen: icmp.Seen) -> _Out | None:
        """The probe in flight that a decoded message names: by number where known, else by flow and sequence."""
        if self.privileged and seen.identifier & bpf.FLOW_BITS_MASK != self._base:
            return None
        number = seen.number
        if number is None:
            number = self._by_sequence.get((seen.identifier & ~bpf.FLOW_BITS_MASK, seen.sequence))
        out = None if number is None else self._out.get(number)
        if out is None or out.number & 0xFFFF != seen.sequence:
            return None
        if seen.target is not None and seen.target != out.destination:
            return None
        return out

    def _settle(self, reply: _Reply, now: int) -> Iterator[Arrival]:
        """Give out a reply, or keep it until its send stamp is there."""
        out = reply.out
        if out.stamp is None and not out.answered and reply.stamp is not None:
            self._drain_errors()
        if out.stamp is None and not out.answered and reply.stamp is not None:
            self._waiting.append(_Waiting(reply, now + STAMP_PATIENCE_NS))
            return
        yield self._arrival(reply)

    def _overdue(self, now: int) -> Iterator[Arrival]:
        """Replies whose stamp has come by now, or has been waited for long enough."""
        still: deque[_Waiting] = deque()
        for waiting in self._waiting:
            if waiting.build.out.stamp is not None or waiting.until <= now:
                yield self._arrival(waiting.build)
            else:
                still.append(waiting)
        self._waiting = still

    def _arrival(self, reply: _Reply) -> Arrival:
        """Settle the delay (method 1.3) and say who answered."""
        out = reply.out
        out.answered = True
        monotonic = max(reply.read - out.before, 0)
        kernel = None if out.stamp is None or reply.stamp is None else reply.stamp - out.stamp
        trusted = kernel is not None and 0 <= kernel <= monotonic and out.epoch == self._watch.epoch
        same = _binary(reply.source)
        answer = Answer(
            kind=reply.kind,
            rtt_ns=kernel if trusted and kernel is not None else monotonic,
            clock="kernel" if trusted else "user",
            by=None if same == out.destination else reply.source,
            code=reply.code,
            reply_ttl=reply.ttl,
            quoted_ttl=reply.quoted_ttl,
            quoted_tos=reply.quoted_tos,
        )
        return Arrival(out.flight, answer, answer.by is None or reply.kind != "echo-reply")


def _kind(kind: int, family: Family) -> ReplyKind:
    """The word for an ICMP type that `wire.icmp.decode` lets through."""
    if kind == icmp.ECHO_REPLY[family]:
        return "echo-reply"
    return "time-exceeded" if kind == icmp.TIME_EXCEEDED[family] else "unreachable"


def _destination(address: str) -> tuple[str, int] | tuple[str, int, int, int]:
    """A socket address; a zone (`fe80::1%eth0`) becomes its scope id."""
    if ":" not in address:
        return address, 0
    bare, _, zone = address.partition("%")
    scope = 0
    if zone:
        scope = int(zone) if zone.isdigit() else socket.if_nametoindex(zone)
    return bare, 0, 0, scope


def _binary(address: str) -> bytes:
    """An address without its zone, as bytes."""
    bare = address.partition("%")[0]
    return socket.inet_pton(socket.AF_INET6 if ":" in bare else socket.AF_INET, bare)


def _received_ttl(control: stamps.ControlMessages) -> int | None:
    """TTL or hop limit of a received packet, from its control messages."""
    for level, kind, data in control:
        wanted = (level == socket.IPPROTO_IP and kind == socket.IP_TTL) or (
            level == socket.IPPROTO_IPV6 and kind == socket.IPV6_HOPLIMIT
        )
        if wanted and len(data) >= 4:
            return int.from_bytes(data[:4], sys.byteorder)
    return None


def _grow(sock: socket.socket, force: int, option: int, size: int) -> None:
    """A larger buffer: beyond the system's limit where we may, up to it otherwise."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, force, size)
    except OSError:
        sock.setsockopt(socket.SOL_SOCKET, option, size)
