"""The tables of a report: targets by vantages, the hops of each path, the parts of each request, the places.

Nothing is computed here: a row of the request table is one real request (the one with the median total, the slowest),
so its parts add up. A column in which no row has anything to say is left out.
"""

from collections.abc import Iterable, Iterator
from itertools import compress, groupby

from msgspec import Struct

from hopscope.model.report import (
    Delay,
    Hop,
    HttpResult,
    Loss,
    Measured,
    Phases,
    PingResult,
    Report,
    Request,
    Responder,
    StreamRequest,
    StreamResult,
    TraceResult,
)
from hopscope.render import terms, words
from hopscope.render.blocks import Cell, Column, Table
from hopscope.render.terms import DASH
from hopscope.render.words import cell_ms, cell_ratio, clean

EMPTY = Cell("")
STATE = 2  # the column of the target table that is left out when every state is ok
OWNER_LENGTH = 40
UNSEEN_MS = 0.0005  # an "unattributed" below this would be printed as 0


class _Line(Struct, frozen=True, kw_only=True):
    """What one line of the table of targets stands on: `probe` is what `delay` and `loss` were measured with."""

    results: tuple[Measured, ...]
    probe: str
    delay: Delay | None = None
    loss: Loss | None = None
    http: HttpResult | None = None


def targets(report: Report) -> Table | None:
    """Every target from every vantage: delay, loss and variation, then what a request meets."""
    groups: dict[tuple[str, str, str | None], tuple[Measured, ...]] = {}
    for result in report.measured:
        key = (result.target, result.vantage, result.address)
        groups[key] = (*groups.get(key, ()), result)
    lines = [line for results in groups.values() for line in _lines(results)]
    columns = (
        Column("target"), Column("from", lead="from "), Column("state"),
        Column("RTT p50", number=True), Column("RTT p95", number=True), Column("loss", number=True),
        Column("PDV p95", number=True), Column("TCP connect", number=True, opens=True),
        Column("TLS", number=True), Column("server p50", number=True), Column("total p50", number=True),
    )  # fmt: skip
    rows = tuple(_target_row(line) for line in lines)
    quiet = all(row[STATE].text == terms.OUTCOMES["ok"] for row in rows)
    shown = tuple((*row[:STATE], EMPTY, *row[STATE + 1 :]) for row in rows) if quiet else rows
    return _trimmed("Delay, loss and request times (milliseconds)", columns, shown, kept=2)


def hops(trace: TraceResult) -> Table | None:
    """One row a TTL; hops in a row that gave no reply share one."""
    columns = (
        Column("hop", number=True), Column("address"), Column("network"), Column("loss", number=True),
        Column("sent", number=True), Column("p50", number=True), Column("p95", number=True),
        Column("best", number=True), Column("worst", number=True), Column("judged"),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    begin = lossy_from(trace)
    for silent, group in groupby(trace.hops, key=is_silent):
        same = list(group)
        rows += [_silent_row(same)] if silent else [_hop_row(hop, begin) for hop in same]
    caption = f"Hops to {clean(trace.target)} (milliseconds)"
    return _trimmed(caption, columns, tuple(rows), kept=2)


def phases(http: HttpResult) -> Table | None:
    """Where the time of the typical and of the slowest request went, cold and hot apart."""
    columns = (
        Column("request"), Column("DNS", number=True), Column("connect", number=True), Column("TLS", number=True),
        Column("upload", number=True), Column("wait", number=True), Column("download", number=True),
        Column("unattributed", number=True), Column("total", number=True), Column("network RTT", number=True),
        Column("server time", number=True),
    )  # fmt: skip
    rows = tuple(_request_row(name, request) for name, request in _telling(http.requests))
    return _trimmed(f"Parts of a request to {clean(http.target)} (milliseconds)", columns, rows, kept=1)


def tokens(stream: StreamResult) -> Table | None:
    """Times of each streamed answer, cold first."""
    columns = (
        Column("request"), Column("first byte", number=True), Column("first token", number=True),
        Column("server to first token", number=True), Column("a token", number=True), Column("tokens", number=True),
        Column("tokens/s", number=True), Column("last token", number=True),
    )  # fmt: skip
    rows = tuple(_token_row(number, request) for number, request in enumerate(stream.requests, start=1))
    return _trimmed(f"Streams of {clean(stream.target)} (milliseconds)", columns, rows, kept=1)


def _token_row(number: int, request: StreamRequest) -> tuple[Cell, ...]:
    server = None if request.ttft_server is None else request.ttft_server.estimate_ms
    return (
        Cell(f"{number} {'cold' if request.cold else 'hot'}"),
        Cell(cell_ms(request.ttfb_ms)),
        Cell(cell_ms(request.ttft_ms)),
        Cell(cell_ms(server)),
        Cell(cell_ms(request.tpot_ms)),
        Cell(DASH if request.tokens_out is None else str(request.tokens_out)),
        Cell(cell_ms(request.decode_tps)),
        Cell(cell_ms(request.e2e_ms)),
    )


def vantages(report: Report) -> Table | None:
    """The places that measured; only where there is more to say than "here"."""
    if len(report.vantages) < 2 and all(vantage.outcome == "ok" for vantage in report.vantages):  # noqa: PLR2004
        return None
    columns = (Column("place"), Column("kind"), Column("where"), Column("outcome"), Column("why"))
    rows = tuple(
        (
            Cell(clean(vantage.name)),
            Cell(vantage.kind),
            Cell(clean(vantage.site.name) if vantage.site and vantage.site.name else ""),
            Cell(
                terms.VANTAGE_OUTCOMES[vantage.outcome],
                tone="quiet" if vantage.outcome in {"ok", "target-failed"} else "warning",
            ),
            Cell(words.sentence(vantage.why) if vantage.why else ""),
        )
        for vantage in report.vantages
    )
    return _trimmed("Where it was measured from", columns, rows, kept=2)


# ---- targets --------------------------------------------------------------------------------------------------------


def _lines(results: tuple[Measured, ...]) -> Iterator[_Line]:
    """The lines for one address of a target from one vantage: one a ping, or else a trace, with a request beside it."""
    pings = [result for result in results if isinstance(result, PingResult)]
    traces = [result for result in results if isinstance(result, TraceResult)]
    https = [result for result in results if isinstance(result, HttpResult)]
    paths: list[PingResult | TraceResult] = [*pings] if pings else [*traces]
    for index in range(max(len(paths), len(https))):
        path = paths[index] if index < len(paths) else None
        http = https[index] if index < len(https) else None
        beside = traces if pings and not index else []
        about: tuple[Measured, ...] = tuple(result for result in (path, http, *beside) if result is not None)
        match path:
            case PingResult():
                probe = words.protocol(path.protocol, path.port)
                yield _Line(results=about, probe=probe, delay=path.delay, loss=path.loss, http=http)
            case TraceResult():
                probe, end = f"trace {words.protocol(path.protocol, path.port)}", path.end_to_end
                yield _Line(results=about, probe=probe, delay=end.delay, loss=end.loss, http=http)
            case None if http is not None and http.requests:
                yield _Line(results=about, probe="HTTP", delay=http.summary.network, http=http)
            case None:
                yield _Line(results=about, probe="HTTP", http=http)


def _target_row(line: _Line) -> tuple[Cell, ...]:
    first = line.results[0]
    outcomes = list(dict.fromkeys(result.outcome for result in line.results))
    first_bad, *others = [outcome for outcome in outcomes if outcome != "ok"] or outcomes
    cold = None if line.http is None else typical(request for request in line.http.requests if request.cold)
    summary = None if line.http is None else line.http.summary
    return (
        Cell(clean(first.target), _address(first.address, line.probe)),
        Cell(clean(first.vantage)),
        Cell(
            terms.OUTCOMES[first_bad],
            tuple(terms.OUTCOMES[outcome] for outcome in others),
            tone=terms.OUTCOME_TONES[first_bad],
        ),
        _median(line.delay),
        _p95(line.delay),
        _loss(line.loss),
        Cell(cell_ms(line.delay.pdv_p95_ms if line.delay else None)),
        Cell(cell_ms(cold.phases_ms.connect if cold else None)),
        Cell(cell_ms(cold.phases_ms.tls if cold else None)),
        _median(summary.server if summary else None),
        _median(summary.total if summary else None),
    )


def _address(address: str | None, probe: str) -> tuple[str, ...]:
    return (f"{clean(address)} {probe}",) if address else (probe,)


def _median(delay: Delay | None) -> Cell:
    if delay is None:
        return Cell(DASH)
    return Cell(cell_ms(delay.p50_ms), _lines_of(words.interval(delay.p50_low_ms, delay.p50_high_ms)))


def _p95(delay: Delay | None) -> Cell:
    if delay is None:
        return Cell(DASH)
    return Cell(cell_ms(delay.p95_ms), _lines_of(words.interval(delay.p95_low_ms, delay.p95_high_ms)))


def _loss(loss: Loss | None) -> Cell:
    if loss is None:
        return Cell(DASH)
    below = _lines_of(words.ratio_interval(loss.low, loss.high))
    return Cell(cell_ratio(loss.ratio), below, tone="warning" if loss.lost else "plain")


def _lines_of(text: str) -> tuple[str, ...]:
    return (text,) if text else ()


# ---- hops -----------------------------------------------------------------------------------------------------------


def is_silent(hop: Hop) -> bool:
    """Whether nobody answered there."""
    return not hop.responders


def lossy_from(trace: TraceResult) -> int | None:
    """The TTL at which loss begins."""
    return min((hop.ttl for hop in trace.hops if "lossy-from" in hop.labels), default=None)


def _silent_row(same: list[Hop]) -> tuple[Cell, ...]:
    first, last = same[0].ttl, same[-1].ttl
    ttls = str(first) if first == last else f"{first}–{last}"
    sent = sum(hop.loss.sent for hop in same)
    blank = Cell("", tone="quiet")
    text = Cell("no reply", tone="quiet")
    return (Cell(ttls, tone="quiet"), text, blank, blank, Cell(str(sent), tone="quiet"), *[blank] * 4, blank)


def _hop_row(hop: Hop, begin: int | None) -> tuple[Cell, ...]:
    first, *others = sorted(hop.responders, key=lambda responder: -responder.received)
    delay = hop.delay
    return (
        Cell(str(hop.ttl)),
        Cell(clean(first.hostname or first.address), tuple(_below(first, others))),
        _network(first),
        Cell(cell_ratio(hop.loss.ratio), tone="warning" if hop.loss.lost else "plain"),
        Cell(str(hop.loss.sent)),
        *(Cell(cell_ms(value)) for value in (delay.p50_ms, delay.p95_ms, delay.min_ms, delay.max_ms)),
        judged(hop, begin),
    )


def judged(hop: Hop, begin: int | None) -> Cell:
    """What the hop is judged to be; loss begins at the TTL `begin`."""
    labels = tuple(label for label in hop.labels if label != "ok")
    if labels:
        return Cell(
            terms.LABELS[labels[0]], tuple(terms.LABELS[each] for each in labels[1:]), terms.LABEL_TONES[labels[0]]
        )
    if begin is not None and hop.ttl > begin and hop.loss.lost:
        return Cell("loss goes on", tone="quiet")
    return Cell(terms.LABELS[hop.label], tone=terms.LABEL_TONES[hop.label])


def _below(first: Responder, others: Iterable[Responder]) -> Iterator[str]:
    if first.hostname:
        yield clean(first.address)
    if first.mpls:
        yield f"MPLS {', '.join(str(label) for label in first.mpls)}"
    for other in others:
        name = f"{clean(other.hostname)} {clean(other.address)}" if other.hostname else clean(other.address)
        yield f"also {name} (×{other.received})"


def _network(responder: Responder) -> Cell:
    number = "" if responder.asn is None else f"AS{responder.asn}"
    name = clean(responder.as_name, OWNER_LENGTH) if responder.as_name else ""
    place = clean(responder.place, OWNER_LENGTH) if responder.place else ""
    first, *others = [text for text in (f"{number} {name}".strip(), place) if text] or [""]
    return Cell(first, tuple(others))


# ---- requests -------------------------------------------------------------------------------------------------------


def typical(requests: Iterable[Request]) -> Request | None:
    """The request with the median total: a real one, so that its parts add up."""
    ordered = by_total(requests)
    return ordered[(len(ordered) - 1) // 2] if ordered else None


def _telling(requests: tuple[Request, ...]) -> Iterator[tuple[Cell, Request]]:
    for name, cold in (("cold", True), ("hot", False)):
        ordered = by_total(request for request in requests if request.cold is cold)
        middle = typical(ordered)
        if middle is None:
            continue
        if len(ordered) == 1:
            yield Cell(name), middle
            continue
        yield Cell(name, (f"median of {len(ordered)}",)), middle
        yield Cell(name, (f"slowest of {len(ordered)}",)), ordered[-1]


def by_total(requests: Iterable[Request]) -> list[Request]:
    """The requests that were answered, fastest first."""
    answered = [request for request in requests if request.error is None and request.phases_ms.total is not None]
    return sorted(answered, key=lambda request: request.phases_ms.total or 0.0)


def unattributed(parts: Phases) -> float | None:
    """What lies between the phases, where it would be seen."""
    rest = parts.unattributed
    return rest if rest and abs(rest) >= UNSEEN_MS else None


def _request_row(name: Cell, request: Request) -> tuple[Cell, ...]:
    parts = request.phases_ms
    server = request.server
    return (
        name,
        *(Cell(cell_ms(part)) for part in (parts.dns, parts.connect, parts.tls, parts.upload, parts.wait)),
        Cell(cell_ms(parts.download)),
        Cell(cell_ms(unattributed(parts))),
        Cell(cell_ms(parts.total), tone="strong"),
        Cell(cell_ms(request.rtt_ms)),
        Cell(cell_ms(server.estimate_ms if server else None), _lines_of(words.bracket(server))),
    )


# ---- any table ------------------------------------------------------------------------------------------------------


def _trimmed(
    caption: str, columns: tuple[Column, ...], rows: tuple[tuple[Cell, ...], ...], *, kept: int
) -> Table | None:
    """The table without the columns, after the first `kept`, in which nothing is said; `None` without rows."""
    if not rows:
        return None
    said = [index < kept or any(row[index].text not in {"", DASH} for row in rows) for index in range(len(columns))]
    return Table(
        caption=caption,
        columns=tuple(compress(columns, said)),
        rows=tuple(tuple(compress(row, said)) for row in rows),
    )
