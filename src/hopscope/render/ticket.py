"""Report of a diagnosis → a ticket in plain text that a provider can act on without asking back.

When in UTC, from which address to which, what was seen at each layer with numbers, the hops around the fault, what was
ruled out, and what is asked of whoever reads it. Nothing in it can move a cursor or break a line.
"""

from collections.abc import Iterator
from textwrap import fill, indent

from hopscope.analysis import say
from hopscope.model.report import Evidence, Finding, Hop, LayerResult, Report, TraceResult
from hopscope.render import terms, words
from hopscope.render.layers import ruled_out
from hopscope.render.words import clean, sentence

WIDTH = 78
AROUND = 2
"""Hops shown before and behind the fault."""
MOST_HOPS = 12


def render(report: Report) -> str:
    """The ticket."""
    cause = _cause(report)
    parts = [
        _subject(report, cause),
        "\n".join(_facts(report, cause)),
        *_told(cause),
        "\n".join(_layers(report)),
        *_paths(report, cause),
        _wrapped(f"Ruled out: {ruled_out(report) if report.ruled_out else 'nothing yet'}."),
        _wrapped(f"Next step: {sentence(cause.next_step)}." if cause else "Next step: none; all was well."),
        f"Measured by hopscope {clean(report.tool_version)}: every number above is from this run.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _cause(report: Report) -> Finding | None:
    """The finding that the report calls the cause."""
    return next((one for one in report.verdict.findings if one.kind == report.cause and one.severity != "info"), None)


def _subject(report: Report, cause: Finding | None) -> str:
    target = words.names([clean(one.name) for one in report.targets])
    what = terms.FINDINGS[cause.kind] if cause is not None else "nothing found"
    return f"Subject: {what}: {target}"


def _facts(report: Report, cause: Finding | None) -> Iterator[str]:
    """When, from where, to where, whose."""
    layers = [one for one in report.results if isinstance(one, LayerResult)]
    near = next((one.evidence for one in layers if one.layer == "interface"), Evidence())
    source = near.get("source")
    addresses = dict.fromkeys(clean(one.address) for one in layers if one.layer == "path" and one.address is not None)
    ports = dict.fromkeys(str(one.port) for one in layers if one.layer == "port" and one.port is not None)
    yield f"When:  {clean(report.started_at or 'unknown')} to {clean(report.finished_at or 'unknown')} (UTC)"
    yield f"From:  {clean(str(source)) if source is not None else 'an address that is not known'}"
    port = f", TCP port {', '.join(ports)}" if ports else ""
    yield f"To:    {', '.join(addresses) or 'no address: the name did not resolve'}{port}"
    if cause is not None:
        yield f"Whose: {words.owner(cause.owner)}"
        where = words.place(cause)
        if where is not None:
            yield fill(f"Where: {where}", WIDTH, subsequent_indent="       ")


def _told(cause: Finding | None) -> Iterator[str]:
    """What was found, how sure it is, the numbers."""
    if cause is None:
        return
    yield _wrapped(f"What:  {sentence(cause.why)}.")
    yield _wrapped(f"How sure: {words.sureness(cause)}.")
    if cause.evidence:
        yield _wrapped(f"Numbers: {words.evidence(cause.evidence)}")


def _layers(report: Report) -> Iterator[str]:
    """Each layer with its result."""
    layers = [one for one in report.results if isinstance(one, LayerResult)]
    several = len({one.address for one in layers if one.layer == "path"}) > 1
    yield "Layer by layer, from our machine to the answer:"
    for one in layers:
        head = f"  {terms.LAYERS[one.layer]:<11} {terms.LAYER_STATUSES[one.status]:<12}"
        named = one.address is not None and (several or one.layer == "gateway")
        about = f"{clean(one.address or '')}: " if named else ""
        yield fill(f"{head}{about}{sentence(one.why)}", WIDTH, subsequent_indent=" " * 26)


def _paths(report: Report, cause: Finding | None) -> Iterator[str]:
    """The hops around the fault of each trace."""
    for trace in report.results:
        if isinstance(trace, TraceResult) and trace.hops:
            hops = _around(trace, cause)
            left = len(trace.hops) - len(hops)
            more = f" ({say.count(left, 'more hop')} left out)" if left else ""
            title = f"Hops by {words.protocol(trace.protocol, trace.port)} to {clean(trace.address or '')}{more}:"
            rows = [("hop", "address", "loss", "sent", "p50 ms", ""), *(_row(hop) for hop in hops)]
            lines = [f"{a:>3}  {b:<39} {c:>7} {d:>5} {e:>8}  {f}".rstrip() for a, b, c, d, e, f in rows]
            yield "\n".join([title, indent("\n".join(lines), "  "), indent(_ended(trace), "  ")])


def _around(trace: TraceResult, cause: Finding | None) -> list[Hop]:
    """The hops near the fault; silent ones at the end say no more than one of them."""
    answered = max((hop.ttl for hop in trace.hops if hop.responders), default=0)
    hops = [hop for hop in trace.hops if hop.ttl <= answered + 1]
    segment = cause.segment if cause is not None else None
    if segment is None or len(hops) <= MOST_HOPS:
        return hops[-MOST_HOPS:]
    low, high = segment.from_.ttl - AROUND, segment.to.ttl + AROUND
    return [hop for hop in hops if low <= hop.ttl <= high] or hops[-MOST_HOPS:]


def _row(hop: Hop) -> tuple[str, str, str, str, str, str]:
    """One hop as it is drawn."""
    first = max(hop.responders, key=lambda one: one.received, default=None)
    name = "no reply" if first is None else clean(first.address)
    number = "" if first is None or first.asn is None else f" AS{first.asn}"
    label = "" if hop.label in {"ok", "silent"} else terms.LABELS[hop.label]
    return (
        str(hop.ttl),
        name + number,
        words.cell_ratio(hop.loss.ratio),
        str(hop.loss.sent),
        words.cell_ms(hop.delay.p50_ms),
        label,
    )


def _ended(trace: TraceResult) -> str:
    reached = "reached" if trace.reached else "not reached"
    return fill(f"{reached} after {say.count(len(trace.hops), 'hop')}: {words.path_end(trace.end)}", WIDTH - 2)


def _wrapped(text: str) -> str:
    return fill(text, WIDTH, subsequent_indent="       ", break_long_words=False, break_on_hyphens=False)
