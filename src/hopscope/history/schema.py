"""The tables of the store, and the steps from an older store to this one.

The rule: a step that was once released is never changed, only followed by another; the tables below are what all steps
together make (a test says so). Instants are nanoseconds of UTC, durations milliseconds, unknown is NULL.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
)
from sqlalchemy.dialects.sqlite import REAL
from sqlalchemy.types import TypeEngine

METADATA = MetaData()

# A STRICT table of SQLite knows INTEGER, REAL, TEXT and BLOB, and no other name of a type.
_INSTANT: TypeEngine[int] = BigInteger().with_variant(Integer(), "sqlite")
_MS: TypeEngine[float] = Double().with_variant(REAL(), "sqlite")

RUN = Table(
    "run",
    METADATA,
    Column("id", Text, primary_key=True, nullable=False),
    Column("config", Text, nullable=False),
    Column("slot_at", _INSTANT, nullable=False),
    Column("started_at", _INSTANT, nullable=False),
    Column("finished_at", _INSTANT, nullable=False),
    Column("tool_version", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("partial", Integer, nullable=False),
    Column("summary", Text, nullable=False),
    Index("run_slot_at", "slot_at"),
    sqlite_strict=True,
)

RESULT = Table(
    "result",
    METADATA,
    Column("run", Text, ForeignKey("run.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("target", Text, nullable=False),
    Column("vantage", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("address", Text),
    Column("protocol", Text, nullable=False),
    Column("port", Integer),
    Column("outcome", Text, nullable=False),
    Column("sent", Integer, nullable=False),
    Column("lost", Integer, nullable=False),
    Column("min_ms", _MS),
    Column("p50_ms", _MS),
    Column("p95_ms", _MS),
    Column("pdv_p95_ms", _MS),
    Column("server_p50_ms", _MS),
    Column("ttfb_p50_ms", _MS),
    Column("path_hash", Text),
    PrimaryKeyConstraint("run", "number"),
    sqlite_strict=True,
)

ALARM = Table(
    "alarm",
    METADATA,
    Column("config", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("metric", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("since", _INSTANT, nullable=False),
    Column("recent", Text, nullable=False),
    Column("flaps", Integer, nullable=False),
    Column("told", Integer, nullable=False),
    PrimaryKeyConstraint("config", "target", "metric"),
    sqlite_strict=True,
)

EVENT = Table(
    "event",
    METADATA,
    Column("id", Integer, primary_key=True, nullable=False),
    Column("at", _INSTANT, nullable=False),
    Column("run", Text, ForeignKey("run.id", ondelete="CASCADE"), nullable=False),
    Column("target", Text, nullable=False),
    Column("metric", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("told", Integer, nullable=False),
    Index("event_at", "at"),
    sqlite_strict=True,
)
