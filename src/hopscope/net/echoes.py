"""Echo probes in the air and what comes back for them: matching and the delay, without a socket (method 1.1, 1.3, 2.4).

State is inserted before the send. A reply is matched by identifier, sequence, a random token, and its source address;
a quote too short for the token by sequence and destination. Both ends of a delay are kernel stamps where there are
any; each probe is timed with the monotonic clock too, and where the two disagree the monotonic value stands.
"""

import os
import socket
from collections import deque
from collections.abc import Iterator

from hopscope.model.flight import Answer
from hopscope.model.limits import MS, TOKEN_BYTES
from hopscope.model.plan import ICMP_FLOWS, Family
from hopscope.model.record import ReplyKind
from hopscope.net.bpf import FLOW_BITS_MASK
from hopscope.net.clock import StepWatch
from hopscope.net.ports import Arrival, Flight
from hopscope.wire import icmp

STAMP_PATIENCE_NS = 50 * MS
"""Method 1.1: no send stamp within 50 ms of the answer makes a singleton `user`."""
TOKEN_MAGIC_BYTES = 4
SEQUENCE_MASK = 0xFFFF


class Out:
    """One probe on its way: what was sent when, and what is known of its stamps."""

    __slots__ = ("answered", "before", "destination", "epoch", "expires", "flight", "number", "stamp")

    def __init__(self, flight: Flight, number: int, before: int, epoch: int) -> None:
        self.flight = flight
        self.number = number
        self.before = before
        self.epoch = epoch
        self.destination = binary(flight.job.packet.address)
        self.expires = before + flight.job.packet.horizon_ns
        self.stamp: int | None = None
        self.answered = False


class Reply:
    """What a reply said, before its delay is settled."""

    __slots__ = ("code", "kind", "out", "quoted_tos", "quoted_ttl", "read", "source", "stamp", "ttl")

    def __init__(self, out: Out, kind: ReplyKind, source: str, stamp: int | None, read: int) -> None:
        self.out = out
        self.kind: ReplyKind = kind
        self.source = source.partition("%")[0]
        self.stamp = stamp
        self.read = read
        self.code: int | None = None
        self.ttl: int | None = None
        self.quoted_ttl: int | None = None
        self.quoted_tos: int | None = None


class Echoes:
    """Every echo probe of one socket that may still be answered."""

    def __init__(self, family: Family, offset: int, *, own_identifier: bool) -> None:
        """`offset` is the clock's now; a datagram socket does not keep our identifier, the kernel gives it its own."""
        self.magic = os.urandom(TOKEN_MAGIC_BYTES)
        self.base = int.from_bytes(os.urandom(2), "big") & FLOW_BITS_MASK
        self.watch = StepWatch(offset)
        self._family: Family = family
        self._own_identifier = own_identifier
        self._templates: dict[tuple[int, int], icmp.EchoTemplate] = {}
        self._number = int.from_bytes(os.urandom(2), "big")
        self._out: dict[int, Out] = {}
        self._by_sequence: dict[int, Out] = {}
        self._expiry: deque[tuple[int, int]] = deque()
        self._waiting: deque[tuple[int, Reply]] = deque()

    def launch(self, flight: Flight, before: int) -> tuple[Out, bytes]:
        """State and message of a new probe; forgets those past their horizon: later replies to them are nobody's."""
        self._number = (self._number + 1) & 0xFFFFFFFF
        out = Out(flight, self._number, before, self.watch.epoch)
        self._out[out.number] = out
        self._by_sequence[out.number & SEQUENCE_MASK] = out
        self._expiry.append((out.expires, out.number))
        while self._expiry[0][0] <= before:
            self.drop(self._expiry.popleft()[1])
        template = self._template(flight.shot.flow, flight.job.packet.size)
        return out, template.build(out.number & SEQUENCE_MASK, out.number)

    def _template(self, flow: int, size: int) -> icmp.EchoTemplate:
        """The packet template of a flow; a datagram socket has one identifier, so its flows differ by checksum."""
        template = self._templates.get((flow, size))
        if template is None:
            identifier = self.base | (flow % ICMP_FLOWS)
            template = icmp.EchoTemplate(self._family, identifier, self.magic, size, flow)
            self._templates[flow, size] = template
        return template

    def drop(self, number: int) -> None:
        """Forget one probe."""
        out = self._out.pop(number, None)
        if out is not None and self._by_sequence.get(number & SEQUENCE_MASK) is out:
            del self._by_sequence[number & SEQUENCE_MASK]

    # Matching

    def of_token(self, packet: bytes) -> Out | None:
        """The probe whose token stands anywhere in a packet of our own."""
        at = packet.rfind(self.magic)
        if at < 0 or len(packet) < at + TOKEN_BYTES:
            return None
        return self._out.get(int.from_bytes(packet[at + TOKEN_MAGIC_BYTES : at + TOKEN_BYTES], "big"))

    def of_quote(self, echo: bytes, destination: str) -> Out | None:
        """The probe that the error queue quotes from its ICMP header on; a router may quote no more than that header.

        The kernel has matched the identifier already: it is the port of the socket.
        """
        if len(echo) >= icmp.HEADER_BYTES + TOKEN_BYTES:
            return self.of_token(echo)
        out = self._by_sequence.get(int.from_bytes(echo[6:8], "big")) if len(echo) >= icmp.HEADER_BYTES else None
        return out if out is not None and out.destination == binary(destination) else None

    def of_message(self, seen: icmp.Seen) -> Out | None:
        """The probe in flight that a decoded message names: by number where known, else by sequence."""
        sequence = self._by_sequence.get(seen.sequence)
        out = sequence if seen.number is None else self._out.get(seen.number)
        if out is None or out.number & SEQUENCE_MASK != seen.sequence:
            return None
        if self._own_identifier and seen.identifier != self.base | (out.flight.shot.flow % ICMP_FLOWS):
            return None
        return out if seen.target in {None, out.destination} else None

    # Settling

    def wake_at(self) -> int | None:
        """When the oldest reply without a send stamp stops waiting for it."""
        return self._waiting[0][0] if self._waiting else None

    @staticmethod
    def wants_stamp(reply: Reply) -> bool:
        """Whether a reply is worth waiting for the send stamp of its probe."""
        return reply.out.stamp is None and not reply.out.answered and reply.stamp is not None

    def wait(self, reply: Reply, now: int) -> None:
        """Keep a reply until the send stamp of its probe is there, or has been waited for long enough."""
        self._waiting.append((now + STAMP_PATIENCE_NS, reply))

    def overdue(self, now: int) -> Iterator[Arrival]:
        """Replies whose stamp has come by now, or has been waited for long enough."""
        still: deque[tuple[int, Reply]] = deque()
        for until, reply in self._waiting:
            if reply.out.stamp is not None or until <= now:
                yield self.arrival(reply)
            else:
                still.append((until, reply))
        self._waiting = still

    def arrival(self, reply: Reply) -> Arrival:
        """Settle the delay (method 1.3) and say who answered."""
        out = reply.out
        out.answered = True
        monotonic = max(reply.read - out.before, 0)
        kernel = None if out.stamp is None or reply.stamp is None else reply.stamp - out.stamp
        trusted = kernel is not None and 0 <= kernel <= monotonic and out.epoch == self.watch.epoch
        answer = Answer(
            kind=reply.kind,
            rtt_ns=kernel if trusted and kernel is not None else monotonic,
            clock="kernel" if trusted else "user",
            by=None if binary(reply.source) == out.destination else reply.source,
            code=reply.code,
            reply_ttl=reply.ttl,
            quoted_ttl=reply.quoted_ttl,
            quoted_tos=reply.quoted_tos,
        )
        return Arrival(out.flight, answer, answer.by is None or reply.kind != "echo-reply")


def binary(address: str) -> bytes:
    """An address without its zone, as bytes."""
    bare = address.partition("%")[0]
    return socket.inet_pton(socket.AF_INET6 if ":" in bare else socket.AF_INET, bare)
