"""What the store is asked: the alarms and runs that a check goes on from, and the latest of both for people."""

from pathlib import Path
from typing import Final

from sqlalchemy import select

from hopscope.analysis.alarm import Alarm, State
from hopscope.analysis.instants import iso
from hopscope.history.schema import ALARM, EVENT, RUN
from hopscope.history.store import examine
from hopscope.history.transactions import reading
from hopscope.model.past import EventEntry, RunEntry
from hopscope.model.report import Status

_VANTAGE: Final = "vantage"
_STATES: Final[dict[str, State]] = {"pending": "pending", "firing": "firing", "recovering": "recovering"}
_STATUSES: Final[dict[str, Status]] = {"ok": "ok", "warning": "warning", "critical": "critical"}


def alarms(path: Path, config: str) -> dict[tuple[str, str], Alarm]:
    """Every alarm of a target file, by target and metric. Raises StoreError."""
    with reading(path) as connection:
        rows = connection.execute(select(ALARM).where(ALARM.c.config == config)).all()
    return {
        (row.target, row.metric): Alarm(
            since_ns=row.since,
            state=_STATES.get(row.state, "ok"),
            recent=row.recent,
            flaps=row.flaps,
            told=bool(row.told),
        )
        for row in rows
    }


def starts(path: Path, config: str, last: int) -> list[int]:
    """When the latest runs of a target file began, ns, the newest first. Raises StoreError."""
    with reading(path) as connection:
        latest = select(RUN.c.started_at).where(RUN.c.config == config)
        rows = connection.execute(latest.order_by(RUN.c.slot_at.desc(), RUN.c.started_at.desc()).limit(last)).all()
    return [row.started_at for row in rows]


def runs(path: Path, last: int) -> list[RunEntry]:
    """The latest runs, the newest last. Raises UsageError where there is no store, and StoreError."""
    examine(path)
    with reading(path) as connection:
        latest = select(RUN).order_by(RUN.c.started_at.desc(), RUN.c.id.desc()).limit(last)
        rows = connection.execute(latest).all()
    return [
        RunEntry(
            id=row.id,
            slot_at=iso(row.slot_at),
            started_at=iso(row.started_at),
            finished_at=iso(row.finished_at),
            status=_STATUSES.get(row.status, "unknown"),
            outcome=row.outcome,
            partial=bool(row.partial),
            summary=row.summary,
            config=row.config,
            tool_version=row.tool_version,
        )
        for row in reversed(rows)
    ]


def events(path: Path, last: int) -> list[EventEntry]:
    """The latest events, the newest last. Raises UsageError where there is no store, and StoreError."""
    examine(path)
    with reading(path) as connection:
        rows = connection.execute(select(EVENT).order_by(EVENT.c.id.desc()).limit(last)).all()
    return [
        EventEntry(
            id=row.id,
            occurred_at=iso(row.at),
            run=row.run,
            kind=row.kind,
            target=None if row.metric == _VANTAGE else row.target,
            vantage=row.target if row.metric == _VANTAGE else None,
            metric=row.metric,
            message=row.message,
            told=bool(row.told),
        )
        for row in reversed(rows)
    ]
