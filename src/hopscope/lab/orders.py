"""What a lab and its own programs say to each other, JSON on pipes and in files.

Values only, so that starting a lab does not load what its programs need.
"""

import time
from typing import Self

from msgspec import Struct

from hopscope.lab.topology import Impairment, Inference


class Wire(Struct, frozen=True, kw_only=True):
    """One relayed link: its index, the relay's interfaces at its two ends and what each direction does."""

    link: int
    a: str
    b: str
    forward: Impairment
    back: Impairment


class Setup(Struct, frozen=True, kw_only=True, tag="setup"):
    """The relay's first order: the lab to end with the input, the interfaces to strip of offloads, the links."""

    lab: str
    seed: int
    interfaces: tuple[str, ...]
    wires: tuple[Wire, ...]


class Change(Struct, frozen=True, kw_only=True, tag="change"):
    """New impairment for one direction of a link; frames under way keep the old one."""

    link: int
    forward: bool
    impairment: Impairment


class Ask(Struct, frozen=True, kw_only=True, tag="ask"):
    """What one direction of a link has done so far."""

    link: int
    forward: bool


class Counts(Struct, frozen=True, kw_only=True):
    """The relay's answer: frames that entered this direction, and those of them dropped by loss and by the queue."""

    frames: int
    lost: int
    overflowed: int


class Config(Struct, frozen=True, kw_only=True):
    """What an inference server is told: how to behave, where to listen, its certificate, where the truth goes."""

    server: Inference
    address: str
    chain: str | None
    key: str | None
    truth: str


class Instant(Struct, frozen=True, kw_only=True):
    """One moment on both clocks, in nanoseconds: CLOCK_MONOTONIC and Unix time."""

    monotonic_ns: int
    wall_ns: int

    @classmethod
    def now(cls) -> Self:
        """This moment."""
        return cls(monotonic_ns=time.monotonic_ns(), wall_ns=time.time_ns())


class Truth(Struct, frozen=True, kw_only=True):
    """One request as the server saw it; first_token is None for anything but a completion."""

    method: str
    path: str
    status: int
    last_in: Instant
    first_out: Instant | None
    first_token: Instant | None
    last_out: Instant | None
    tokens: int
