"""What a controller tells its agent and what comes back, as JSON lines: orders go out, a tape comes in.

A secret and the content of a file travel here beside the task that names them, and nowhere else. What comes back are
records of the tape, and `Here`, which tells the agent's own lines from a banner and its clock from ours.
"""

from typing import get_args

import msgspec
from msgspec import Struct

from hopscope.model.plan import Task
from hopscope.model.record import Record

AGENT_NUMBER = 1


class Hello(Struct, frozen=True, kw_only=True, tag_field="order", tag="hello"):
    """First line to an agent. `deadline_ns` is how long it may live."""

    agent: int
    tape: int
    version: str
    vantage: str
    nonce: str
    deadline_ns: int


class Work(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="order", tag="task"):
    """Run a task under our number. Secrets by the name of their variable, files by the path that the task gives."""

    id: int
    task: Task
    secrets: dict[str, str] = {}
    files: dict[str, bytes] = {}

    def __repr__(self) -> str:
        return f"Work(id={self.id})"


class Cancel(Struct, frozen=True, kw_only=True, tag_field="order", tag="drop"):
    """Nobody waits for this task any more."""

    id: int


class Tick(Struct, frozen=True, kw_only=True, tag_field="order", tag="tick"):
    """Say `Here`. An agent that hears nothing for a while ends: its controller is gone."""


class Finish(Struct, frozen=True, kw_only=True, tag_field="order", tag="end"):
    """End now."""


Order = Hello | Work | Cancel | Tick | Finish


class Here(Struct, frozen=True, kw_only=True, tag_field="record", tag="agent"):
    """The agent is there: the number its controller gave it, and its clock, ns of UTC."""

    nonce: str
    at: int


class Stranger(Struct, frozen=True):
    """A record of a kind that we do not know: of a later version, and skipped."""


class Version(Struct, frozen=True):
    """As much of the first record as any version of us understands."""

    record: str
    tape: int
    tool_version: str


class _Tag(Struct):
    record: str


_encoder = msgspec.json.Encoder()
_orders: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)
_lines: msgspec.json.Decoder[Record | Here] = msgspec.json.Decoder(Record | Here)
_heres = msgspec.json.Decoder(Here)
_versions = msgspec.json.Decoder(Version)
_tags = msgspec.json.Decoder(_Tag)
_KINDS = frozenset(str(kind.__struct_config__.tag) for kind in (*get_args(Record), Here))
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class UnreadableError(ValueError):
    """A line is none of ours."""


def dump(line: Order | Here) -> bytes:
    """One line, newline included."""
    return _encoder.encode(line) + b"\n"


def order(line: bytes) -> Order:
    """What a controller said. Raises UnreadableError."""
    try:
        return _orders.decode(line)
    except _UNREADABLE as error:
        raise UnreadableError("not an order") from error


def answer(line: bytes) -> Record | Here | Stranger:
    """What an agent said. Raises UnreadableError."""
    try:
        return _lines.decode(line)
    except _UNREADABLE as error:
        try:
            kind = _tags.decode(line).record
        except _UNREADABLE:
            raise UnreadableError("not a record") from error
        if kind in _KINDS:
            raise UnreadableError(f"a broken {kind} record") from error
        return Stranger()


def here(line: bytes) -> Here | None:
    """The agent's sign of life, if a line is one."""
    try:
        return _heres.decode(line)
    except _UNREADABLE:
        return None


def version(line: bytes) -> Version:
    """What the first record of a tape says of itself. Raises UnreadableError."""
    try:
        return _versions.decode(line)
    except _UNREADABLE as error:
        raise UnreadableError("not a tape") from error
