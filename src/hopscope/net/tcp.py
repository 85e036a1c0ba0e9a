"""TCP probes: one SYN on a fresh source port, timed by the kernel's own first RTT sample (method 2.9).

A SYN-ACK's delay is `tcpi_rtt` right after the handshake, which is that one sample; a connection whose SYN was sent
again has no valid sample, and its probe is lost. A refusal has no sample either, so it is timed in user space. Each
probe is closed with a reset: nothing half-open and no TIME_WAIT stays behind.
"""

import errno
import select
import socket
import struct
from collections.abc import Iterator

from hopscope.model.flight import Answer
from hopscope.model.plan import Family
from hopscope.net import tcpinfo
from hopscope.net.ports import Arrival, Clock, DropSeen, Flight, SendFailedError

_LINGER_RESET = struct.pack("ii", 1, 0)
_UNREACHABLE = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EACCES, errno.EPERM, errno.ENETDOWN})
EVENTS_A_ROUND = 512


class _Dial:
    """One SYN on its way."""

    __slots__ = ("before", "expires", "flight", "sock")

    def __init__(self, flight: Flight, sock: socket.socket, before: int) -> None:
        self.flight = flight
        self.sock = sock
        self.before = before
        self.expires = before + flight.job.packet.horizon_ns


class TcpChannel:
    """All TCP probes of a family; see `net.ports.Channel`. Used from one thread only."""

    def __init__(
        self, clock: Clock, family: Family, *, source: str | None = None, interface: str | None = None
    ) -> None:
        self._clock = clock
        self._family = socket.AF_INET if family == 4 else socket.AF_INET6
        self._source = source
        self._interface = interface
        self._poll = select.epoll()
        self._dials: dict[int, _Dial] = {}
        self._at_once: list[Arrival] = []

    def fileno(self) -> int:
        """The poll that watches every connection in progress."""
        return self._poll.fileno()

    def wake_at(self) -> int | None:
        """At once when a connection was answered while it was being made, else when the oldest has to be closed."""
        if self._at_once:
            return self._clock.now()
        first = next(iter(self._dials.values()), None)
        return None if first is None else first.expires

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
            self._dials[sock.fileno()] = dial
            self._poll.register(sock.fileno(), select.EPOLLOUT)
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

    def _socket(self, flight: Flight) -> socket.socket:
        """A socket that resets when closed and sends its SYN once more at most."""
        packet = flight.job.packet
        sock = socket.socket(self._family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_SYNCNT, 1)
            if self._interface is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self._interface.encode())
            if packet.dscp and self._family == socket.AF_INET:
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, packet.dscp << 2)
            elif packet.dscp:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, packet.dscp << 2)
            if packet.ttl and self._family == socket.AF_INET:
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, packet.ttl)
            elif packet.ttl:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, packet.ttl)
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
            self._poll.unregister(fd)
            error = dial.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            arrival = self._failed(dial, error) if error else self._connected(dial)
            dial.sock.close()
            if arrival is not None:
                yield arrival
        self._give_up(self._clock.now())

    def _give_up(self, now: int) -> None:
        """Close what nobody waits for any more."""
        for fd, dial in list(self._dials.items()):
            if dial.expires > now:
                break
            del self._dials[fd]
            self._poll.unregister(fd)
            dial.sock.close()

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
        """A refusal or an ICMP unreachable answers the probe; a timeout of the kernel's does not."""
        rtt = max(0, self._clock.now() - dial.before)
        if error == errno.ECONNREFUSED:
            return Arrival(dial.flight, Answer(kind="rst", rtt_ns=rtt, clock="user"))
        if error in _UNREACHABLE:
            return Arrival(dial.flight, Answer(kind="unreachable", rtt_ns=rtt, clock="user"))
        return None

    def close(self) -> None:
        """Reset every connection in progress."""
        for dial in self._dials.values():
            dial.sock.close()
        self._dials.clear()
        self._poll.close()


def _reason(error: OSError) -> str:
    """What the system said, with its symbol."""
    return f"{errno.errorcode.get(error.errno or 0, 'error')}: {error.strerror}"
