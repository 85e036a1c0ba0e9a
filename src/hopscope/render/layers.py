"""Layers of a diagnosis → blocks: one row a layer, from this machine outwards, and what was ruled out."""

from collections.abc import Iterator

from hopscope.model.report import FindingKind, LayerResult, Report
from hopscope.render import terms
from hopscope.render.blocks import Block, Cell, Column, Heading, Paragraph, Table
from hopscope.render.words import clean, sentence

RULED_OUT: dict[FindingKind, str] = {
    "interface-fault": "a fault of this machine's interface",
    "dns-failed": "a name without an address",
    "dns-slow": "a slow name lookup",
    "unreachable": "an unreachable host",
    "lossy-from": "packet loss",
    "path-loop": "a routing loop",
    "refused": "a closed port",
    "filtered": "a silent filter",
    "admin-prohibited": "a firewall that says no",
    "accept-limited": "a full accept queue",
    "tls-failed": "a TLS failure",
    "certificate-expiring": "a certificate that expires soon",
    "http-error": "HTTP errors",
    "server-slow": "a slow server",
}


def blocks(report: Report) -> Iterator[Block]:
    """What was checked, layer by layer; nothing where no layer was."""
    layers = [one for one in report.results if isinstance(one, LayerResult)]
    if not layers:
        return
    several = len({one.address for one in layers if one.layer == "path"}) > 1
    yield Heading("Layer by layer")
    yield Table(
        caption="From this machine to the answer",
        columns=(Column("layer"), Column("result"), Column("what was seen")),
        rows=tuple(_row(one, named=several or one.layer == "gateway") for one in layers),
    )
    if report.ruled_out:
        yield Paragraph(f"Ruled out: {ruled_out(report)}.")


def ruled_out(report: Report) -> str:
    """The kinds that were ruled out, in words."""
    return ", ".join(RULED_OUT.get(kind, kind) for kind in report.ruled_out)


def _row(one: LayerResult, *, named: bool) -> tuple[Cell, ...]:
    return (
        Cell(terms.LAYERS[one.layer], (clean(one.address),) if named and one.address is not None else ()),
        Cell(terms.LAYER_STATUSES[one.status], tone=terms.LAYER_TONES[one.status]),
        Cell(sentence(one.why), tone="quiet" if one.status == "not-checked" else "plain"),
    )
