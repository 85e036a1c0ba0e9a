"""What the store is given of a check: the run, and what happened to alarms, as values that need no library."""

from msgspec import Struct

from hopscope.model.report import Report


class Entry(Struct, frozen=True, kw_only=True):
    """A run as it is to be recorded; instants are nanoseconds of UTC, `config` names its target file."""

    id: str
    config: str
    slot_ns: int
    started_ns: int
    finished_ns: int
    outcome: str
    report: Report


class Happened(Struct, frozen=True, kw_only=True):
    """A change of an alarm as it is to be recorded."""

    target: str
    metric: str
    kind: str
    message: str
    told: bool
