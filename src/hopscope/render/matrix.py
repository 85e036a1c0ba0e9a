"""Places × targets → one table: how each target looks from each place, and which places could not look.

A target's outcome and a place's failure never share a word (method 6.1): where the place failed, the cell says so and
nothing of the target. Only drawn where there are several places.
"""

from collections.abc import Iterator

from hopscope.model.report import (
    DID_NOT_MEASURE,
    HEARD,
    Delay,
    Finding,
    HttpResult,
    Loss,
    Measured,
    PingResult,
    Report,
    StreamResult,
    TraceResult,
)
from hopscope.render import terms, words
from hopscope.render.blocks import Block, Cell, Column, Heading, Table, Tone
from hopscope.render.terms import DASH
from hopscope.render.words import cell_ms, clean

NAME_LENGTH = 24
LEAST_PLACES = 2
Pair = tuple[str, str]
"""A target and a place."""


def blocks(report: Report) -> Iterator[Block]:
    """The table; nothing where one place measured alone."""
    if len(report.vantages) < LEAST_PLACES or not report.targets:
        return
    failed = {one.name for one in report.vantages if one.outcome in DID_NOT_MEASURE}
    measured: dict[Pair, list[Measured]] = {}
    for result in report.measured:
        measured.setdefault((result.target, result.vantage), []).append(result)
    worst: dict[Pair, Finding] = {}  # findings come sorted, the worst first
    for one in report.verdict.findings:
        if one.severity != "info" and one.target is not None:
            for place in one.vantages:
                worst.setdefault((one.target, place), one)
    columns = (
        Column("target"),
        *(Column(clean(one.name, NAME_LENGTH), number=True) for one in report.vantages),
    )
    rows = tuple(
        (
            Cell(clean(target.name), (terms.STATUSES[target.status],)),
            *(
                Cell(DASH, ("place failed",), tone="quiet")
                if place.name in failed
                else _cell(measured.get((target.name, place.name), []), worst.get((target.name, place.name)))
                for place in report.vantages
            ),
        )
        for target in report.targets
    )
    yield Heading("From each place")
    yield Table(caption="Round trip p50 (milliseconds), and what stands out", columns=columns, rows=rows)


def _cell(results: list[Measured], worst: Finding | None) -> Cell:
    """Round trip, then loss and server time where they say something, then the worst finding."""
    if not results:
        return Cell(DASH, ("not measured",), tone="quiet")
    delay, loss = _path(results)
    server = _server(results)
    below = [f"loss {words.cell_ratio(loss.ratio)}"] if loss is not None and loss.lost else []
    below += [f"server {cell_ms(server)}"] if server is not None else []
    below += [terms.FINDINGS[worst.kind]] if worst is not None else []
    tone: Tone = "plain" if worst is None else worst.severity
    return Cell(cell_ms(delay.p50_ms if delay is not None else None), tuple(below), tone=tone)


def _path(results: list[Measured]) -> tuple[Delay | None, Loss | None]:
    """Delay and loss of the series that was answered, by ICMP if it was; else of the trace, else of the requests."""
    pings = sorted((one for one in results if isinstance(one, PingResult)), key=_not_icmp)
    for ping in pings:
        if ping.outcome in HEARD:
            return ping.delay, ping.loss
    for trace in results:
        if isinstance(trace, TraceResult) and trace.end_to_end.loss.received:
            return trace.end_to_end.delay, trace.end_to_end.loss
    for asked in results:
        if isinstance(asked, HttpResult | StreamResult) and asked.summary.network.n:
            return asked.summary.network, pings[0].loss if pings else None
    return None, pings[0].loss if pings else None


def _not_icmp(one: PingResult) -> bool:
    return one.protocol != "icmp"


def _server(results: list[Measured]) -> float | None:
    """The median time beyond the TCP endpoint."""
    asked = (one for one in results if isinstance(one, HttpResult | StreamResult))
    return next((one.summary.server.p50_ms for one in asked if one.summary.server.p50_ms is not None), None)
