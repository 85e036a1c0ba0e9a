"""What probes need from the outside world, as protocols: the sockets implement them, and so do the tests' fakes."""

from collections.abc import Iterable
from typing import Protocol as Port

from msgspec import Struct

from hopscope.model.flight import Answer, Shot
from hopscope.model.plan import Family
from hopscope.model.record import Record


class Clock(Port):
    """Time of one vantage: nanoseconds of UTC on a timeline that advances with the monotonic clock."""

    def now(self) -> int:
        """Now, anchored nanoseconds."""
        ...

    def offset(self) -> int:
        """CLOCK_REALTIME minus CLOCK_MONOTONIC, ns (method 1.3)."""
        ...

    def from_realtime(self, stamp: int) -> int:
        """A kernel stamp (CLOCK_REALTIME, ns) on the anchored timeline."""
        ...


class Packet(Struct, frozen=True, kw_only=True):
    """Where and how the packets of a task go. `ttl` 0 means the system's own."""

    address: str
    family: Family
    port: int | None
    size: int
    dscp: int
    ttl: int
    horizon_ns: int


class Engine(Port):
    """An algorithm that is asked: it never sleeps, sends, or reads a clock."""

    def wake_at(self) -> int | None:
        """When `step` wants to be called next; `None` when the work is over."""
        ...

    def step(self, now: int) -> list[Shot]:
        """Settle what is overdue and name the probes to send now; their state exists before they are sent."""
        ...

    def sent(self, shot: Shot, at: int) -> None:
        """The probe left at `at`."""
        ...

    def unsent(self, shot: Shot, at: int, why: str) -> None:
        """The probe could not leave."""
        ...

    def answered(self, shot: Shot, answer: Answer, now: int) -> None:
        """A reply to the probe was seen."""
        ...

    def strange(self, shot: Shot, answer: Answer, now: int) -> None:
        """Something that names the probe came from an address that was not asked."""
        ...

    def take(self) -> list[Record]:
        """Records made since the last call."""
        ...


class Job(Struct, eq=False):
    """An engine at work for a task, the channel it sends on, and how its packets look."""

    task: int
    engine: Engine
    channel: "Channel"
    packet: Packet


class Flight(Struct, frozen=True):
    """A probe of a job on its way."""

    job: Job
    shot: Shot


class Arrival(Struct, frozen=True):
    """A reply that a channel matched to a flight; `asked` is false when its source is not who was asked."""

    flight: Flight
    answer: Answer
    asked: bool = True


class DropSeen(Struct, frozen=True):
    """The socket lost packets between two reads (SO_RXQ_OVFL)."""

    since: int
    until: int
    count: int


class NoRightsError(Exception):
    """A channel may not be opened here: the message says why, `advice` is what would grant it."""

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.advice = advice


class SendFailedError(Exception):
    """The system refused to send a probe twice; the message says why. The probe is unsent, which is never loss."""


class Channel(Port):
    """A way to send probes and hear of them, shared by every task of a process."""

    def fileno(self) -> int:
        """A descriptor that is readable when `receive` has something to do."""
        ...

    def send(self, flight: Flight) -> int:
        """Send one probe; returns the anchored instant just before it left. Raises SendFailedError."""
        ...

    def receive(self) -> Iterable[Arrival | DropSeen]:
        """Everything that can be matched by now."""
        ...

    def wake_at(self) -> int | None:
        """When `receive` wants to be called even if nothing is readable."""
        ...

    def close(self) -> None:
        """Give the sockets back."""
        ...
