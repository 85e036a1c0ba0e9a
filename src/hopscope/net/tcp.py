"""TCP probes: one SYN on a fresh source port, timed by the kernel's own first RTT sample (method 2.9).

A SYN-ACK's delay is `tcpi_rtt` right after the handshake, which is that one sample. What a router says of a SYN carries
the kernel's stamp of its arrival; the SYN itself has none, so the instant before the call stands for it. A refusal has
neither, so it is timed in user space. A SYN that was sent again is a loss, whatever then answers. Each probe is closed
with a reset: nothing half-open and no TIME_WAIT stays behind.
"""

import errno
import heapq
import select
import socket
import struct
from collections.abc import Iterator

from hopscope.model.flight import Answer
from hopscope.model.limits import MS
from hopscope.model.plan import Family
from hopscope.net import tcp_path, tcpinfo
from hopscope.net.echoes import binary
from hopscope.net.ports import Arrival, Clock, DropSeen, Flight, SendFailedError
from hopscope.net.tcp_path import Said

_LINGER_RESET = struct.pack("ii", 1, 0)
_UNREACHABLE = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EACCES, errno.EPERM, errno.ENETDOWN})
_RESET = frozenset({errno.ECONNRESET, errno.EPIPE})
"""Only a connection that stood can be reset (RFC 9293 §3.5.3): the SYN was answered by a SYN-ACK, and then it went."""
EVENTS_A_ROUND = 512
ONE_SYN_NS = 950 * MS
"""The kernel sends a SYN again after a second (RFC 6298 §2.1): a probe of a path is given up before that, for it would
ask a router twice."""
SHORT_CALL_NS = MS
"""A SYN leaves inside the call that connects; one that takes longer waited for the CPU, and nobody knows where."""


class _Dial:
    """One SYN on its way, its call between `before` and `after`."""

    __slots__ = ("after", "before", "expires", "flight", "over", "sock")

    def __init__(self, flight: Flight, sock: socket.socket, before: int) -> None:
        self.flight = flight
        self.sock = sock
        self.before = before
        self.after = before
        horizon = flight.job.packet.horizon_ns
        self.expires = before + (min(horizon, ONE_SYN_NS) if flight.shot.ttl else horizon)
        self.over = False


class TcpChannel:
    """All TCP probes of a family; see `net.ports.Channel`. Used from one thread only."""

    def __init__(
        self, clock: Clock, family: Family, *, source: str | None = None, interface: str | None = None
    ) -> None:
        self._clock = clock
        self._family: Family = family
        self._source = source
        self._interface = interface
        self._poll = select.epoll()
        self._dials: dict[int, _Dial] = {}
        self._expiry: list[tuple[int, int, _Dial]] = []
        self._number = 0
        self._at_once: list[Arrival] = []

    def fileno(self) -> int:
        """The poll that watches every connection in progress."""
        return self._poll.fileno()

    def wake_at(self) -> int | None:
        """At once when a connection was answered while it was being made, else when the next has to be given up."""
        if self._at_once:
            return self._clock.now()
        while self._expiry and self._expiry[0][2].over:
            heapq.heappop(self._expiry)
        return self._expiry[0][0] if self._expiry else None

    def send(self, flight: Flight) -> int:
        """Start one connection; returns the anchored instant just before.

        Raises SendFailedError when no socket could be had or bound.
        """
        packet = flight.job.packet
        try:
            sock = self._socket(flight)
        except OSError as error:
            raise SendFailedError(_reason(error)) from error
        before = self._clock.now()
        dial = _Dial(flight, sock, before)
        try:
            sock.connect((packet.address, packet.port or 0))
        except BlockingIOError:
            self._watch(dial)
            return before
        except OSError as error:
            arrival = self._failed(dial, error.errno or 0)
            sock.close()
            if arrival is None or error.errno in _UNREACHABLE:
                raise SendFailedError(_reason(error)) from error
            self._at_once.append(arrival)
            return before
        arrival = self._connected(dial)
        sock.close()
        if arrival is not None:
            self._at_once.append(arrival)
        return before

    def _watch(self, dial: _Dial) -> None:
        """Wait for what becomes of a connection in progress."""
        dial.after = self._clock.now()
        self._number += 1
        self._dials[dial.sock.fileno()] = dial
        self._poll.register(dial.sock.fileno(), select.EPOLLOUT)
        heapq.heappush(self._expiry, (dial.expires, self._number, dial))

    def _socket(self, flight: Flight) -> socket.socket:
        """A socket that resets when closed and sends its SYN once more at most."""
        packet = flight.job.packet
        family = socket.AF_INET if self._family == 4 else socket.AF_INET6
        sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_SYNCNT, 1)
            if self._interface is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self._interface.encode())
            if packet.dscp and self._family == 4:
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, packet.dscp << 2)
            elif packet.dscp:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, packet.dscp << 2)
            tcp_path.prepare(sock, self._family, flight.shot.ttl or packet.ttl)
            if self._source is not None:
                sock.bind((self._source, 0))
        except OSError:
            sock.close()
            raise
        return sock

    def receive(self) -> Iterator[Arrival | DropSeen]:
        """Connections that ended, one way or the other; those past their horizon are closed."""
        yield from self._at_once
        self._at_once.clear()
        for fd, _ in self._poll.poll(0, EVENTS_A_ROUND):
            dial = self._dials.pop(fd)
            dial.over = True
            self._poll.unregister(fd)
            arrival = self._ended(dial)
            dial.sock.close()
            if arrival is not None:
                yield arrival
        self._give_up(self._clock.now())

    def _give_up(self, now: int) -> None:
        """Close what nobody waits for any more."""
        while self._expiry and (self._expiry[0][2].over or self._expiry[0][0] <= now):
            dial = heapq.heappop(self._expiry)[2]
            if not dial.over:
                dial.over = True
                del self._dials[dial.sock.fileno()]
                self._poll.unregister(dial.sock.fileno())
                dial.sock.close()

    def _ended(self, dial: _Dial) -> Arrival | None:
        """What a connection came to; reading the error queue clears the error it goes with, so it is read last."""
        error = dial.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        said = tcp_path.said(dial.sock, self._family)
        if said is not None:
            return self._told(dial, said)
        return self._failed(dial, error) if error else self._connected(dial)

    def _told(self, dial: _Dial, said: Said) -> Arrival | None:
        """An ICMP error; of one that may be about a second SYN nobody knows the delay."""
        user = max(0, self._clock.now() - dial.before)
        if _sent_again(dial):
            return None
        kernel = None if said.stamp is None else self._clock.from_realtime(said.stamp) - dial.before
        trusted = kernel is not None and 0 <= kernel <= user
        sharp = trusted and dial.after - dial.before <= SHORT_CALL_NS
        answer = Answer(
            kind=said.kind,
            rtt_ns=kernel if trusted and kernel is not None else user,
            clock="kernel" if sharp else "user",
            by=None if binary(said.by) == binary(dial.flight.job.packet.address) else said.by,
            code=said.code,
            reply_ttl=said.reply_ttl,
        )
        return Arrival(dial.flight, answer)

    def _connected(self, dial: _Dial) -> Arrival | None:
        """SYN-ACK. A SYN that had to be sent again is a loss: no arrival, its threshold will pass."""
        user = max(0, self._clock.now() - dial.before)
        info = tcpinfo.read(dial.sock)
        if info is None:
            return Arrival(dial.flight, Answer(kind="syn-ack", rtt_ns=user, clock="user"))
        if info.total_retrans:
            return None
        if info.rtt_ns is None or info.rtt_ns > user:
            return Arrival(dial.flight, Answer(kind="syn-ack", rtt_ns=user, clock="user"))
        return Arrival(dial.flight, Answer(kind="syn-ack", rtt_ns=info.rtt_ns, clock="tcp-info"))

    def _failed(self, dial: _Dial, error: int) -> Arrival | None:
        """A refusal answers the probe, and an error that nobody is named for; a timeout of the kernel's does not."""
        rtt = max(0, self._clock.now() - dial.before)
        if _sent_again(dial):
            return None
        if error == errno.ECONNREFUSED:
            return Arrival(dial.flight, Answer(kind="rst", rtt_ns=rtt, clock="user"))
        if error in _RESET:
            return self._connected(dial)
        if error in _UNREACHABLE:
            return Arrival(dial.flight, Answer(kind="unreachable", rtt_ns=rtt, clock="user"))
        return None

    def close(self) -> None:
        """Reset every connection in progress."""
        for dial in self._dials.values():
            dial.sock.close()
        self._dials.clear()
        self._expiry.clear()
        self._poll.close()


def _sent_again(dial: _Dial) -> bool:
    """Whether the kernel had to send the SYN a second time."""
    info = tcpinfo.read(dial.sock)
    return info is not None and bool(info.total_retrans)


def _reason(error: OSError) -> str:
    """What the system said, with its symbol."""
    return f"{errno.errorcode.get(error.errno or 0, 'error')}: {error.strerror}"
