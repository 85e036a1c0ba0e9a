"""Results → charts as values: what is drawn, in which order, with the table that stands in where none can be drawn."""

from collections.abc import Iterator

from hopscope.model.report import HttpResult, Report, TraceResult
from hopscope.render.blocks import Block


def over_time(report: Report) -> Iterator[Block]:
    """Round trips over time, with the losses."""
    yield from ()


def of_path(trace: TraceResult) -> Iterator[Block]:
    """Loss and delay, hop by hop."""
    yield from ()


def of_requests(http: HttpResult) -> Iterator[Block]:
    """The phases of the typical requests, one after the other."""
    yield from ()
