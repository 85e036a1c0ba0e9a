"""What was recorded, sorted by task: the value that following, analysing and judging read.

A book is a view of records; whoever holds one must not change it.
"""

from msgspec import Struct

from hopscope.model.plan import Plan, Task
from hopscope.model.record import (
    Done,
    Drop,
    End,
    Exchange,
    Extra,
    Failure,
    Named,
    Probe,
    Resolved,
    Routed,
    Run,
    Streamed,
)


class Sample(Struct, kw_only=True):
    """Everything one task yielded, in the order it came; `done` is absent while it runs or if it was cut off."""

    id: int
    task: Task
    begun: int
    probes: list[Probe] = []
    extras: list[Extra] = []
    drops: list[Drop] = []
    exchanges: list[Exchange] = []
    streams: list[Streamed] = []
    resolved: Resolved | None = None
    routed: Routed | None = None
    failures: list[Failure] = []
    done: Done | None = None


class Book(Struct, kw_only=True):
    """All records of a run. `unknown` and `damaged` count the lines of a tape that could not be used."""

    run: Run | None = None
    plan: Plan | None = None
    samples: dict[int, Sample] = {}
    failures: list[Failure] = []
    named: dict[str, list[Named]] = {}
    end: End | None = None
    unknown: int = 0
    damaged: list[int] = []
