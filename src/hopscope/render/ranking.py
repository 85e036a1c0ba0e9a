"""A comparison → blocks: which candidate to buy, and why; then where they differ, and where nothing shows it."""

from collections.abc import Iterator

from hopscope.model.report import Report
from hopscope.render.blocks import Block


def blocks(report: Report) -> Iterator[Block]:
    """The ranking with its reasons; nothing where nothing was compared."""
    yield from ()
