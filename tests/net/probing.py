"""What tests of channels and of the probe thread share: clocks and engines that implement the ports, and listening."""

import select
from collections.abc import Callable

from hopscope.model.flight import Answer, Shot
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import Family
from hopscope.model.record import Record
from hopscope.net.clock import SystemClock
from hopscope.net.ports import Arrival, Channel, DropSeen, Flight, Job, Packet

Event = Arrival | DropSeen

LONGEST_S = 10.0
"""No test waits longer for what must come; on an idle machine it takes milliseconds."""


class SteppingClock:
    """The system's clock, whose wall time can be stepped: `offset` jumps, anchored time and stamps do not."""

    def __init__(self) -> None:
        self.system = SystemClock()
        self.stepped = 0

    def now(self) -> int:
        return self.system.now()

    def offset(self) -> int:
        return self.system.offset() + self.stepped

    def from_realtime(self, stamp: int) -> int:
        return self.system.from_realtime(stamp)


class Idle:
    """An engine that wants nothing; a job of it is only a name for its packets."""

    def wake_at(self) -> int | None:
        return None

    def step(self, now: int) -> list[Shot]:
        return []

    def sent(self, shot: Shot, at: int) -> None:
        raise NotImplementedError

    def unsent(self, shot: Shot, at: int, why: str) -> None:
        raise NotImplementedError

    def answered(self, shot: Shot, answer: Answer, now: int) -> None:
        raise NotImplementedError

    def strange(self, shot: Shot, answer: Answer, now: int) -> None:
        raise NotImplementedError

    def take(self) -> list[Record]:
        return []


def flight(
    channel: Channel,
    address: str,
    *,
    seq: int = 0,
    flow: int = 0,
    ttl: int = 0,
    port: int | None = None,
    size: int = 56,
    dscp: int = 0,
    horizon_ns: int = 5 * SECOND,
) -> Flight:
    """A probe to an address, as the probe thread hands it to a channel."""
    family: Family = 6 if ":" in address else 4
    packet = Packet(address=address, family=family, port=port, size=size, dscp=dscp, ttl=0, horizon_ns=horizon_ns)
    return Flight(Job(1, Idle(), channel, packet), Shot(seq=seq, flow=flow, ttl=ttl, slot=0))


def listen(channel: Channel, enough: Callable[[list[Event]], bool], *, longest_s: float = LONGEST_S) -> list[Event]:
    """What a channel tells until it is enough, or the time is over."""
    clock = SystemClock()
    over = clock.now() + int(longest_s * SECOND)
    told: list[Event] = []
    while not enough(told) and (now := clock.now()) < over:
        wish = channel.wake_at()
        until = over if wish is None else min(over, wish)
        select.select([channel], [], [], max(0, until - now) / SECOND)
        told += channel.receive()
    return told


def arrivals(channel: Channel, count: int, *, longest_s: float = LONGEST_S) -> list[Arrival]:
    """That many replies, or those that came."""
    told = listen(channel, lambda told: sum(isinstance(one, Arrival) for one in told) >= count, longest_s=longest_s)
    return [one for one in told if isinstance(one, Arrival)]


def wakeups(channel: Channel, quiet_s: float) -> int:
    """How often a channel is readable, receiving each time, until it was not for so long."""
    count = 0
    while select.select([channel], [], [], quiet_s)[0]:
        count += 1
        list(channel.receive())
    return count


def after(milliseconds: float) -> int:
    """Nanoseconds of so many milliseconds."""
    return int(milliseconds * MS)
