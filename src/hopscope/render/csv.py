"""Report → the samples of every ping, one a row (RFC 4180). Rule: unknown is an empty cell, and no cell is a formula.

Spreadsheets run a text that begins with = + - or @, so such a text gets an apostrophe in front; numbers stay numbers.
Rows are written in batches: the samples never stand in memory together.
"""

import csv
from collections.abc import Iterator
from io import StringIO

from hopscope.model.report import PingResult, PingSample, Report
from hopscope.render.words import clean

BATCH = 1000

COLUMNS = (
    "target", "vantage", "address", "protocol", "port", "seq", "flow", "warmup", "sent_at", "outcome", "rtt_ms",
    "clock", "reply_ttl",
)  # fmt: skip

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")

Value = str | int | float | None


def render(report: Report) -> Iterator[str]:
    """The header, then every sample in the order of sending; line ends are CR LF."""
    buffer = StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(COLUMNS)
    waiting = 0
    for row in _rows(report):
        writer.writerow(row)
        waiting += 1
        if waiting == BATCH:
            yield _drained(buffer)
            waiting = 0
    yield _drained(buffer)


def text(value: str) -> str:
    """A text that no spreadsheet takes for a formula and no terminal for a command."""
    safe = clean(value)
    return f"'{safe}" if safe.startswith(_FORMULA) else safe


def _rows(report: Report) -> Iterator[tuple[Value, ...]]:
    for result in report.results:
        if isinstance(result, PingResult):
            about = (
                text(result.target),
                text(result.vantage),
                None if result.address is None else text(result.address),
                result.protocol,
                result.port,
            )
            for sample in result.samples:
                yield (*about, *_sample(sample))


def _sample(sample: PingSample) -> tuple[Value, ...]:
    return (
        sample.seq,
        sample.flow,
        "true" if sample.warmup else "false",
        text(sample.sent_at),
        sample.outcome,
        sample.rtt_ms,
        sample.clock,
        sample.reply_ttl,
    )


def _drained(buffer: StringIO) -> str:
    piece = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return piece
