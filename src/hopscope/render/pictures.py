"""Results → charts as values: what is drawn, in which order, with the table that stands in where none can be drawn.

However long a series is, its chart stays small and hides nothing: probes that follow each other share a dot, which
has the fastest, the median and the slowest of them and how many were lost. What is left out is said.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import groupby

from hopscope.analysis import say
from hopscope.analysis.delay import quantile
from hopscope.analysis.instants import EPOCH
from hopscope.analysis.loss import is_lost
from hopscope.model.report import (
    Hop,
    HttpResult,
    PingResult,
    PingSample,
    Report,
    Request,
    ServerTime,
    Status,
    TraceResult,
)
from hopscope.render import tables, terms, words
from hopscope.render.blocks import (
    Block,
    Cell,
    Chart,
    Column,
    Dot,
    Ladder,
    Line,
    OverTime,
    Rung,
    Span,
    Steps,
    Table,
    Tone,
    Waterfall,
)
from hopscope.render.words import cell_ms, clean

MOST_TARGETS = 12
MOST_LINES = 6
MOST_DOTS = 200  # of a line
MOST_SLICES = 10  # rows of a series in the table that stands in
MOST_ROWS = 12  # of that table, all series together
LEAST_SENT = 2  # one probe has no course
LINE_LENGTH = 44  # what fits beside a count, on a telephone as well
HOP_LENGTH = 30  # what fits beside a judgement
WORST_FIRST: tuple[Status, ...] = ("critical", "unknown", "warning", "ok")
MILLISECOND = timedelta(milliseconds=1)
FINE_MS = 10_000  # slices of less than this altogether are told to the millisecond

# ---- over time ------------------------------------------------------------------------------------------------------


def over_time(report: Report) -> Iterator[Block]:
    """Round trips over time, with the losses: a chart for each target, of the worst where there are many."""
    series: dict[str, list[PingResult]] = {}
    for result in report.results:
        if isinstance(result, PingResult) and result.loss.sent >= LEAST_SENT:
            series.setdefault(result.target, []).append(result)
    status = {target.name: target.status for target in report.targets}
    worst = sorted(series, key=lambda name: WORST_FIRST.index(status.get(name, "ok")))[:MOST_TARGETS]
    shown = [name for name in series if name in worst]
    for name in shown:
        note = _left_out(len(shown), len(series), "targets") if name == shown[-1] else ""
        yield _course(report, series[name], note)


def _left_out(shown: int, known: int, what: str) -> str:
    return "" if shown == known else f"Drawn are the {shown} worst of {known} {what}; the table above has them all."


def _course(report: Report, known: list[PingResult], note: str) -> Chart:
    """The chart of one target."""
    worst = sorted(range(len(known)), key=lambda index: -(known[index].loss.ratio or 0))[:MOST_LINES]
    shown = [known[index] for index in sorted(worst)]
    slices = max(LEAST_SENT, min(MOST_SLICES, MOST_ROWS // len(shown)))
    target, names = clean(shown[0].target), [_name(report, ping, known) for ping in shown]
    read = [_read(ping, MOST_DOTS, slices) for ping in shown]
    lines = tuple(
        Line(name, f"{ping.loss.lost or 'none'} of {ping.loss.sent} lost", tuple(dots))
        for name, ping, (dots, _) in zip(names, shown, read, strict=True)
    )
    notes = [_left_out(len(shown), len(known), "series"), note]
    about = [
        f"{line.name}: {line.told}, p50 {say.ms(ping.delay.p50_ms)}" for line, ping in zip(lines, shown, strict=True)
    ]
    return Chart(
        caption=f"Round trips to {target} over time (UTC)",
        told=f"Round trips to {target} over time, and which were lost. {'; '.join(about)}.",
        picture=OverTime(lines),
        legend=_grouping(lines),
        note=" ".join(text for text in notes if text),
        table=_slices(target, names, [some for _, some in read]),
    )


def _grouping(lines: tuple[Line, ...]) -> str:
    most = max((dot.sent for line in lines for dot in line.dots), default=1)
    if most == 1:
        return ""
    return f"up to {most} probes share a dot: line = median, band = fastest to slowest, mark below = some were lost"


def _name(report: Report, ping: PingResult, all_: list[PingResult]) -> str:
    """What tells a series from the others of its target."""
    places = {one.vantage for one in all_} | {one.name for one in report.vantages}
    parts = [
        clean(clean(ping.vantage), LINE_LENGTH // 2) if len(places) > 1 else "",
        words.protocol(ping.protocol, ping.port),
        clean(ping.address) if ping.address and len({one.address for one in all_}) > 1 else "",
    ]
    return clean(" ".join(part for part in parts if part), LINE_LENGTH)


class _Groups:
    """Takes probes one by one and makes dots of as many as share one; the last takes whatever comes beyond."""

    def __init__(self, expected: int, most: int) -> None:
        self.dots: list[Dot] = []
        self._size = -(-expected // most)
        self._most = most
        self._first = ""
        self._sent = 0
        self._rtts: list[float] = []
        self._lost = 0

    def add(self, sample: PingSample, *, lost: bool) -> None:
        """Count one probe in."""
        self._first = self._first or sample.sent_at
        self._sent += 1
        self._lost += lost
        if not lost and sample.rtt_ms is not None:
            self._rtts.append(sample.rtt_ms)
        if self._sent == self._size and len(self.dots) < self._most - 1:
            self.close()

    def close(self) -> None:
        """Make a dot of what has come since the last one."""
        if not self._sent:
            return
        rtts = sorted(self._rtts)
        self.dots.append(
            Dot(
                at=(datetime.fromisoformat(self._first) - EPOCH) // MILLISECOND,
                sent=self._sent,
                lost=self._lost,
                min_ms=rtts[0] if rtts else None,
                p50_ms=quantile(rtts, 0.5) if rtts else None,
                max_ms=rtts[-1] if rtts else None,
            )
        )
        self._first, self._sent, self._lost, self._rtts = "", 0, 0, []


def _read(ping: PingResult, *numbers: int) -> list[list[Dot]]:
    """The probes that count, read once, as that many dots at most, for each of the numbers."""
    groups = [_Groups(ping.loss.sent, most) for most in numbers]
    for sample in ping.samples:
        lost = is_lost(sample.outcome)
        if lost is not None and not sample.warmup:
            for group in groups:
                group.add(sample, lost=lost)
    for group in groups:
        group.close()
    return [group.dots for group in groups]


def _slices(target: str, names: list[str], read: list[list[Dot]]) -> Table | None:
    """The same in a few rows."""
    rows = [(name, dot) for name, dots in zip(names, read, strict=True) for dot in dots]
    if not rows:
        return None
    instants = [EPOCH + dot.at * MILLISECOND for _, dot in rows]
    day = "" if len({instant.date() for instant in instants}) == 1 else "%Y-%m-%d "
    fine = "milliseconds" if max(instants) - min(instants) < FINE_MS * MILLISECOND else "seconds"
    columns = (
        Column("series"), Column("from (UTC)"), Column("sent", number=True), Column("lost", number=True),
        Column("best", number=True), Column("p50", number=True), Column("worst", number=True),
    )  # fmt: skip
    return Table(
        caption=f"Round trips to {target} over time (milliseconds)",
        columns=columns,
        rows=tuple(
            (
                Cell(name),
                Cell(f"{instant.strftime(day)}{instant.time().isoformat(fine)}"),
                Cell(str(dot.sent)),
                Cell(str(dot.lost), tone="warning" if dot.lost else "plain"),
                *(Cell(cell_ms(value)) for value in (dot.min_ms, dot.p50_ms, dot.max_ms)),
            )
            for (name, dot), instant in zip(rows, instants, strict=True)
        ),
    )


# ---- path -----------------------------------------------------------------------------------------------------------


def of_path(trace: TraceResult) -> Iterator[Block]:
    """Loss and delay, hop by hop."""
    lossy_from = tables.lossy_from(trace)
    rungs: list[Rung] = []
    for silent, group in groupby(trace.hops, key=tables.is_silent):
        same = list(group)
        rungs += [_gap(same)] if silent else [_rung(hop, lossy_from) for hop in same]
    if rungs:
        target = clean(trace.target)
        yield Chart(
            caption=f"Round trip and loss of each hop to {target}",
            told=f"The hops to {target}, each with its round trip and loss; the table below has the numbers.",
            picture=Ladder(tuple(rungs)),
            legend="bar = p50, line = best to p95",
        )


def _gap(same: list[Hop]) -> Rung:
    first, last = same[0].ttl, same[-1].ttl
    return Rung(name=str(first) if first == last else f"{first}–{last}", told="no reply", tone="quiet")


def _rung(hop: Hop, lossy_from: int | None) -> Rung:
    most = max(hop.responders, key=lambda responder: responder.received)
    judged = tables.judged(hop, lossy_from)
    lost = f"{words.cell_ratio(hop.loss.ratio)} lost" if hop.loss.lost else ""
    usual = judged.text == terms.LABELS["ok"]
    tone: Tone = "plain" if usual else judged.tone
    return Rung(
        name=f"{hop.ttl} {clean(clean(most.hostname or most.address), HOP_LENGTH)}",
        told=", ".join(text for text in (lost, "" if usual else judged.text) if text),
        tone=tone,
        min_ms=hop.delay.min_ms,
        p50_ms=hop.delay.p50_ms,
        p95_ms=hop.delay.p95_ms,
    )


# ---- requests -------------------------------------------------------------------------------------------------------


def of_requests(http: HttpResult) -> Iterator[Block]:
    """The phases of the typical requests, one after the other."""
    requests = tuple(_steps(http.requests))
    if requests:
        target = clean(http.target)
        about = [
            f"{steps.name}, {steps.told}: {', '.join(f'{span.name} {span.told}' for span in steps.spans)}"
            for steps in requests
        ]
        yield Chart(
            caption=f"Where the time of a typical request to {target} goes",
            told=f"The parts of a typical request to {target} in the order of time, in ms. {'; '.join(about)}.",
            picture=Waterfall(requests),
            legend="server: solid = at least, light = at most; where it lies within the wait is unknown"
            if any(span.kind == "server" for steps in requests for span in steps.spans)
            else "",
        )


def _steps(requests: Iterable[Request]) -> Iterator[Steps]:
    for name, cold in (("cold", True), ("hot", False)):
        ordered = tables.by_total(request for request in requests if request.cold is cold)
        middle = tables.typical(ordered)
        if middle is not None:
            which = name if len(ordered) == 1 else f"{name}, median of {len(ordered)}"
            yield Steps(which, f"total {cell_ms(middle.phases_ms.total)}", tuple(_spans(middle)))


def _spans(request: Request) -> Iterator[Span]:
    """Its parts in the order of time; what is unattributed lies between handshake and first byte (method 5.8)."""
    parts = request.phases_ms
    known = {
        "DNS": parts.dns, "connect": parts.connect, "TLS": parts.tls, "unattributed": tables.unattributed(parts),
        "upload": parts.upload, "wait": parts.wait, "download": parts.download,
    }  # fmt: skip
    now = 0.0
    for name, part in known.items():
        if part is None:
            continue
        end = now + max(0.0, part)
        yield Span(
            name=name,
            told=cell_ms(part),
            kind="wait" if name == "wait" else "network",
            begin_ms=now,
            end_ms=end,
        )
        if name == "wait" and request.server is not None:
            yield from _server(request.server, now, end)
        now = end


def _server(server: ServerTime, begin: float, end: float) -> Iterator[Span]:
    """The bracket, in the middle of the wait: how the round trip divides is unknown."""
    wait = end - begin
    lower = None if server.lower_ms is None else min(wait, server.lower_ms)
    upper = lower if server.upper_ms is None else min(wait, server.upper_ms)
    if upper is not None:
        start = begin + (wait - upper) / 2
        yield Span(
            name="server",
            told=words.bracket(server) if server.estimate_ms is None else cell_ms(server.estimate_ms),
            kind="server",
            begin_ms=start,
            end_ms=start + upper,
            least_ms=None if lower is None else start + lower,
        )
