"""Report → document: what people are told, in which order. The writers only draw it.

First what they act on (verdict, findings, next steps), then the numbers it stands on, then what was not measured,
then how to read it. Findings come worst first; what is only worth knowing comes after what is worth doing.
"""

import re
from collections import Counter
from collections.abc import Iterator

from hopscope.analysis import say
from hopscope.model.report import (
    DID_NOT_MEASURE,
    ClaimReport,
    HttpResult,
    Measured,
    PingResult,
    Report,
    Request,
    StreamResult,
    TlsReport,
    TraceResult,
)
from hopscope.render import cards, layers, matrix, pictures, ranking, tables, terms, words
from hopscope.render.blocks import Banner, Block, Document, Heading, Items, Paragraph
from hopscope.render.words import clean, sentence

_INSTANT = re.compile(r"(?P<day>\d{4}-\d\d-\d\d)T(?P<time>\d\d:\d\d:\d\d)(\.\d+)?Z", re.ASCII)

TOOL = "hopscope"
ELSEWHERE = "Every series, path and request stands in the report."


def outline(report: Report, *, brief: bool = False) -> Document:
    """The whole document; `brief` is what people act on, without the numbers it stands on."""
    verdict = report.verdict
    status = terms.STATUSES[verdict.status]
    return Document(
        title=" – ".join(
            part for part in (status, words.names([clean(target.name) for target in report.targets]), TOOL) if part
        ),
        banner=Banner(
            tone=verdict.status, status=status, sentence=sentence(verdict.summary), notes=tuple(_run(report))
        ),
        blocks=(
            *ranking.blocks(report),
            *layers.blocks(report),
            *cards.findings(report),
            *matrix.blocks(report),
            *((Paragraph(ELSEWHERE, "quiet"),) if brief else _numbers(report)),
            *_not_measured(report),
            *_places(report),
            *(() if brief else _reading(report)),
        ),
    )


# ---- what to act on -------------------------------------------------------------------------------------------------


def _run(report: Report) -> Iterator[str]:
    if report.partial:
        yield "This run was cut short: it is judged by what had been measured until then."
    places = [clean(vantage.name) for vantage in report.vantages if vantage.outcome not in DID_NOT_MEASURE]
    parts = [
        f"hopscope {clean(report.tool_version)}",
        clean(report.command),
        words.names(places, "from"),
        _span(report.started_at, report.finished_at),
    ]
    yield " · ".join(part for part in parts if part)


# ---- what it stands on ----------------------------------------------------------------------------------------------


def _numbers(report: Report) -> Iterator[Block]:
    """What the verdict stands on."""
    yield from _targets(report)
    yield from pictures.over_time(report)
    yield from _traces(report)
    yield from _requests(report)
    yield from _streams(report)


def _targets(report: Report) -> Iterator[Block]:
    summaries = tuple(
        f"{terms.STATUSES[target.status]} {clean(target.name)}: {sentence(target.summary)}" for target in report.targets
    )
    table = tables.targets(report)
    if len(summaries) > 1 or table:
        yield Heading("Targets")
    if len(summaries) > 1:
        yield Items(summaries)
    if table:
        yield table
    reasons = [result for result in report.results if isinstance(result, PingResult) and result.why]
    if reasons:
        yield Items(tuple(f"{_about(result)}: {sentence(result.why or '')}" for result in reasons), "warning")


def _traces(report: Report) -> Iterator[Block]:
    for trace in report.results:
        if isinstance(trace, TraceResult):
            yield Heading(f"Path to {_about(trace)}")
            yield Paragraph(_path(trace), "plain" if trace.reached else "warning")
            if trace.why:
                yield Paragraph(sentence(trace.why), "warning")
            yield from pictures.of_path(trace)
            if table := tables.hops(trace):
                yield table


def _path(trace: TraceResult) -> str:
    """How the path went, in sentences."""
    reached = "Reached" if trace.reached else "Not reached"
    said = [f"{reached} after {say.count(len(trace.hops), 'hop')}: {words.path_end(trace.end)}."]
    if trace.flow == "varies":
        said.append("Each hop was asked on a flow of its own, so hops may lie on different paths.")
    if len(trace.flows) > 1:
        said.append(f"Merged from {len(trace.flows)} flows.")
    if trace.path.as_path:
        said.append(f"Networks: {' → '.join(f'AS{asn}' for asn in trace.path.as_path)}.")
    if trace.mtu_bytes is not None:
        said.append(f"Path MTU {trace.mtu_bytes} bytes.")
    return " ".join(said)


def _requests(report: Report) -> Iterator[Block]:
    for http in report.results:
        if isinstance(http, HttpResult):
            yield Heading(f"Requests to {_about(http)}")
            yield Paragraph(" ".join(_answers(http)), "plain" if http.outcome == "ok" else "warning")
            if http.why:
                yield Paragraph(sentence(http.why), "warning")
            yield from pictures.of_requests(http)
            if table := tables.phases(http):
                yield table
            if remarks := tuple(_remarks(http.requests)):
                yield Items(remarks, "quiet")


def _streams(report: Report) -> Iterator[Block]:
    for stream in report.results:
        if isinstance(stream, StreamResult):
            yield Heading(f"Streams of {_about(stream)}")
            yield Paragraph(" ".join(_answers(stream)), "plain" if stream.outcome == "ok" else "warning")
            if stream.why:
                yield Paragraph(sentence(stream.why), "warning")
            if table := tables.tokens(stream):
                yield table


def _answers(http: HttpResult | StreamResult) -> Iterator[str]:
    """Which address was asked, and what came back."""
    yield f"{clean(http.url)}:"
    statuses = Counter(request.status for request in http.requests if request.status is not None)
    errors = Counter(request.error.class_ for request in http.requests if request.error and request.status is None)
    answers = [f"{number} × HTTP {status}" for status, number in sorted(statuses.items())]
    failed = [f"{number} × {terms.ERRORS[kind]}" for kind, number in sorted(errors.items())]
    silent = len(http.requests) - statuses.total() - errors.total()
    rest = [f"{silent} × no status"] if silent else []
    yield f"{', '.join([*answers, *failed, *rest]) or 'no request was made'}."


def _remarks(requests: tuple[Request, ...]) -> Iterator[str]:
    """What the last request of each sort tells besides times: the handshake, the claims, how it was measured."""
    certificates = [request.tls for request in requests if request.tls is not None]
    if certificates:
        yield _certificate(certificates[0])
    claims = {(claim.name, claim.source): claim for request in requests for claim in request.claims}
    yield from (_claim(claim) for claim in claims.values())
    if bases := sorted({request.server.basis for request in requests if request.server is not None}):
        yield f"Server time is bracketed by {' and '.join(terms.BASES[basis] for basis in bases)}."
    for detail in dict.fromkeys(request.error.detail for request in requests if request.error is not None):
        if detail:
            yield f"Error: {sentence(detail)}"


def _certificate(tls: TlsReport) -> str:
    parts = [clean(part) for part in (tls.version, tls.cipher, tls.alpn) if part]
    if tls.subject or tls.issuer:
        parts.append(f"certificate of {clean(tls.subject or 'unknown')}, issued by {clean(tls.issuer or 'unknown')}")
    if tls.not_after_at:
        parts.append(f"valid until {clean(tls.not_after_at)}")
    if tls.verified is not None:
        parts.append("verified" if tls.verified else f"not verified: {sentence(tls.why or 'unknown')}")
    return f"TLS: {', '.join(parts) or 'unknown'}."


def _claim(claim: ClaimReport) -> str:
    return (
        f"{clean(claim.source)} claims {clean(claim.name)} = {say.ms(claim.value_ms)} ({clean(claim.scope)}), "
        "in the last answer that said so."
    )


# ---- what is missing ------------------------------------------------------------------------------------------------


def _not_measured(report: Report) -> Iterator[Block]:
    limited = tuple(
        f"{_about(result)}: the measuring side was too busy, so nobody is blamed on this evidence; "
        f"{words.client(result.client)}."
        for result in report.measured
        if result.client.limited
    )
    if report.failures or limited:
        yield Heading("Not measured, or measured badly")
        yield from (cards.failure(failure) for failure in report.failures)
        if limited:
            yield Items(limited, "unknown")


def _places(report: Report) -> Iterator[Block]:
    if table := tables.vantages(report):
        yield Heading("Places")
        yield table


# ---- how to read it -------------------------------------------------------------------------------------------------


SHORT = frozenset({"ping", "trace", "http", "stream", "diagnose"})
"""Commands for people who know what they asked: no legend."""


def _reading(report: Report) -> Iterator[Block]:
    if not report.results or report.command in SHORT:
        return
    remarks = [
        "p50 is the median, p95 the value that 95 % stay below; a range with a value is its 95 % interval.",
        "– is what was not measured, or what too few samples can tell. It is never zero.",
    ]
    if any(not isinstance(result, HttpResult) for result in report.results):
        remarks += [
            "Loss is of round trips (RFC 6673): the packet was lost on the way there, or its answer on the way back.",
            "PDV p95 is how much later than the fastest answer 95 % came at most (RFC 5481), often called jitter.",
        ]
    if any(isinstance(result, TraceResult) for result in report.results):
        remarks.append(
            "Loss at a hop counts only where the hops behind it lose as much: routers limit their own replies."
        )
    if any(isinstance(result, HttpResult) for result in report.results):
        remarks.append(
            "Server time is spent beyond the TCP endpoint, whichever box that is; it lies in the range given with it."
        )
    yield Heading("How to read this")
    yield Items(tuple(remarks), "quiet")


# ---- names and times ------------------------------------------------------------------------------------------------


def _about(result: Measured) -> str:
    """Which measurement: target, place, address and protocol."""
    address = f"{clean(result.address)}, " if result.address else ""
    protocol = words.protocol(result.protocol, result.port)
    return f"{clean(result.target)} from {clean(result.vantage)} ({address}{protocol})"


def _span(start: str | None, end: str | None) -> str:
    """When it was measured: "2026-05-04 09:12:00 to 09:13:27 UTC"."""
    from_, to = (_INSTANT.fullmatch(instant or "") for instant in (start, end))
    if from_ and to:
        day = "" if from_["day"] == to["day"] else f"{to['day']} "
        return f"{from_['day']} {from_['time']} to {day}{to['time']} UTC"
    return " to ".join(clean(instant) for instant in (start, end) if instant)
