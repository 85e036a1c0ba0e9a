"""One run into the store: itself, its results, every alarm after it, and what happened, in one short transaction.

Everything is made ready before the transaction begins, so that it holds the write lock for the writing only.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import assert_never

from sqlalchemy import delete, insert

from hopscope.analysis.alarm import Alarm
from hopscope.history.entries import Entry, Happened
from hopscope.history.schema import ALARM, EVENT, RESULT, RUN
from hopscope.history.transactions import writing
from hopscope.model.report import Delay, HttpResult, Loss, Measured, PingResult, Request, StreamResult, TraceResult

Row = dict[str, str | int | float | None]


def record(path: Path, entry: Entry, alarms: Mapping[tuple[str, str], Alarm], happened: Sequence[Happened]) -> None:
    """Record a run; `alarms` are all those that its target file now has. Raises StoreError, and then nothing was."""
    run = _run(entry)
    results = [_result(entry.id, number, result) for number, result in enumerate(entry.report.measured)]
    states = [_alarm(entry.config, key, alarm) for key, alarm in alarms.items()]
    events = [_event(entry, one) for one in happened]
    with writing(path) as connection:
        connection.execute(insert(RUN), run)
        connection.execute(delete(ALARM).where(ALARM.c.config == entry.config))
        for table, rows in ((RESULT, results), (ALARM, states), (EVENT, events)):
            if rows:
                connection.execute(insert(table), rows)


def text(value: str) -> str:
    """The text as UTF-8 can carry it: half a surrogate pair, as odd bytes become, is shown."""
    return value.encode("utf-8", "backslashreplace").decode()


def _run(entry: Entry) -> Row:
    verdict = entry.report.verdict
    return {
        "id": entry.id,
        "config": text(entry.config),
        "slot_at": entry.slot_ns,
        "started_at": entry.started_ns,
        "finished_at": entry.finished_ns,
        "tool_version": entry.report.tool_version,
        "status": verdict.status,
        "outcome": entry.outcome,
        "partial": int(entry.report.partial),
        "summary": text(verdict.summary),
    }


def _result(run: str, number: int, result: Measured) -> Row:
    """One result in its row; each kind fills the columns that it has, for rows of one statement have the same keys."""
    row: Row = {
        "run": run,
        "number": number,
        "target": text(result.target),
        "vantage": text(result.vantage),
        "kind": str(result.__struct_config__.tag),
        "address": result.address,
        "protocol": result.protocol,
        "port": result.port,
        "outcome": result.outcome,
        "sent": None,
        "lost": None,
        "min_ms": None,
        "p50_ms": None,
        "p95_ms": None,
        "pdv_p95_ms": None,
        "server_p50_ms": None,
        "ttfb_p50_ms": None,
        "path_hash": None,
    }
    match result:
        case PingResult():
            return row | _counts(result.loss) | _delays(result.delay)
        case TraceResult():
            end = result.end_to_end
            return row | _counts(end.loss) | _delays(end.delay) | {"path_hash": result.path.hash}
        case StreamResult():
            failed = sum(request.error is not None for request in result.requests)
            times = {"server_p50_ms": result.summary.server.p50_ms, "ttfb_p50_ms": result.summary.ttft.p50_ms}
            counts = {"sent": len(result.requests), "lost": failed}
            return row | counts | times
        case HttpResult():
            failed = sum(request.error is not None for request in result.requests)
            times = {"server_p50_ms": result.summary.server.p50_ms, "ttfb_p50_ms": _ttfb(result.requests)}
            counts = {"sent": len(result.requests), "lost": failed}
            return row | counts | _delays(result.summary.total) | times
        case _:
            assert_never(result)


def _counts(loss: Loss) -> Row:
    return {"sent": loss.sent, "lost": loss.lost}


def _delays(delay: Delay) -> Row:
    return {
        "min_ms": delay.min_ms,
        "p50_ms": delay.p50_ms,
        "p95_ms": delay.p95_ms,
        "pdv_p95_ms": delay.pdv_p95_ms,
    }


def _ttfb(requests: Sequence[Request]) -> float | None:
    """The median wait for the first byte, on an established connection."""
    phases = [request.phases_ms for request in requests]
    waits = [(one.upload or 0.0) + one.wait for one in phases if one.wait is not None]
    return median(waits) if waits else None


def _alarm(config: str, key: tuple[str, str], alarm: Alarm) -> Row:
    target, metric = key
    return {
        "config": text(config),
        "target": target,
        "metric": metric,
        "state": alarm.state,
        "since": alarm.since_ns,
        "recent": alarm.recent,
        "flaps": alarm.flaps,
        "told": int(alarm.told),
    }


def _event(entry: Entry, happened: Happened) -> Row:
    return {
        "at": entry.finished_ns,
        "run": entry.id,
        "target": happened.target,
        "metric": happened.metric,
        "kind": happened.kind,
        "message": text(happened.message),
        "told": int(happened.told),
    }
