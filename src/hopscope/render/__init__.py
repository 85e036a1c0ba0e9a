"""Report → text: every output of hopscope, all made from the same value, so no two of them can disagree.

Pure: nothing here opens, asks or waits. A renderer yields pieces of text, so that a million samples never stand in
memory together; joined they are the document. Whoever writes it to a file uses UTF-8 and leaves line ends alone
(`newline=""`), for CSV has its own. A renderer's module is imported when it is first called.
"""

from collections.abc import Callable, Iterator

from hopscope.model.report import Report

Renderer = Callable[[Report], Iterator[str]]


def _text(report: Report) -> Iterator[str]:
    from hopscope.render import terminal

    yield terminal.render(report, width=terminal.WIDTH, colour=False)


def _md(report: Report) -> Iterator[str]:
    from hopscope.render import markdown

    yield markdown.render(report)


def _html(report: Report) -> Iterator[str]:
    from hopscope.render import html, html_charts

    yield html.render(report, html_charts.drawer())


def _json(report: Report) -> Iterator[str]:
    from hopscope.render import json

    yield from json.render(report)


def _csv(report: Report) -> Iterator[str]:
    from hopscope.render import csv

    yield from csv.render(report)


RENDERERS: dict[str, Renderer] = {"text": _text, "md": _md, "html": _html, "json": _json, "csv": _csv}
