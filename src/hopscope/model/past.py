"""What `hopscope history` prints: the head of every other document, and entries of the store instead of results."""

from msgspec import Struct

from hopscope.model.report import SCHEMA, FailureReport, Status, TargetReport, VantageReport, Verdict


class RunEntry(Struct, frozen=True, kw_only=True):
    """One recorded run. `slot_at` is when it was due, `config` the target file."""

    id: str
    slot_at: str
    started_at: str
    finished_at: str
    status: Status
    outcome: str
    partial: bool
    summary: str
    config: str
    tool_version: str


class EventEntry(Struct, frozen=True, kw_only=True):
    """One change of an alarm; `told` is false for what a maintenance or flapping kept silent."""

    id: int
    occurred_at: str
    run: str
    kind: str
    target: str | None
    vantage: str | None
    metric: str
    message: str
    told: bool


class PastRuns(Struct, frozen=True, kw_only=True):
    """The document of `history runs`, the newest run last."""

    schema: str = SCHEMA
    tool_version: str
    command: str
    started_at: str | None = None
    finished_at: str | None = None
    partial: bool
    vantages: tuple[VantageReport, ...] = ()
    targets: tuple[TargetReport, ...] = ()
    verdict: Verdict
    results: tuple[RunEntry, ...]
    failures: tuple[FailureReport, ...] = ()


class PastEvents(Struct, frozen=True, kw_only=True):
    """The document of `history events`, the newest event last."""

    schema: str = SCHEMA
    tool_version: str
    command: str
    started_at: str | None = None
    finished_at: str | None = None
    partial: bool
    vantages: tuple[VantageReport, ...] = ()
    targets: tuple[TargetReport, ...] = ()
    verdict: Verdict
    results: tuple[EventEntry, ...]
    failures: tuple[FailureReport, ...] = ()
