"""Layers of a diagnosis → blocks: one row a layer, from this machine outwards, and what was ruled out."""

from collections.abc import Iterator

from hopscope.model.report import Report
from hopscope.render.blocks import Block


def blocks(report: Report) -> Iterator[Block]:
    """What was checked, layer by layer; nothing where no layer was."""
    yield from ()
