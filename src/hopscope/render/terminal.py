"""Document → what a terminal shows, through rich. Rule: every text is a `Text`, so nothing in it is taken for markup.

Readable from 60 columns on and without colour: no fact is told by colour alone. Whether there is colour is the
caller's decision; nothing of the surroundings is asked.
"""

import re
from io import StringIO
from itertools import compress, product

from msgspec import Struct
from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from hopscope.model.report import Report
from hopscope.render.blocks import Banner, Block, Card, Cell, Chart, Column, Heading, Items, Paragraph, Table, Tone
from hopscope.render.outline import outline
from hopscope.render.terms import DASH

WIDTH = 100
INDENT = 2
LEAST_TEXT = 20  # columns that a text keeps before a table is drawn in parts
GAPS = (2, 1)  # columns between columns, wanted and bearable

_TAIL = re.compile(r"(?: |\x1b\[[\d;]*m)+$")  # blanks at the end of a line, coloured or not

STYLES: dict[Tone, str] = {
    "plain": "",
    "strong": "bold",
    "quiet": "dim",
    "ok": "green",
    "info": "cyan",
    "warning": "yellow",
    "unknown": "magenta",
    "critical": "red",
}


def render(report: Report, *, width: int, colour: bool, brief: bool = False) -> str:
    """The report for a terminal of this width, with or without colour; `brief` leaves out what it stands on."""
    document = outline(report, brief=brief)
    out = StringIO()
    console = Console(
        file=out,
        width=width,
        color_system="standard" if colour else None,
        force_terminal=colour,
        no_color=not colour,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
        _environ={},
    )
    console.print(_banner(document.banner))
    for block in document.blocks:
        console.print(_drawn(block, width))
    return "".join(f"{_TAIL.sub(_without_blanks, line)}\n" for line in out.getvalue().splitlines())


def _without_blanks(tail: re.Match[str]) -> str:
    return tail[0].replace(" ", "")


def _banner(banner: Banner) -> RenderableType:
    style = STYLES[banner.tone]
    grid = Grid.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_row(Text(f" {banner.status} ", f"bold reverse {style}"), Text(banner.sentence, "bold"))
    return Group(grid, *(Text(note, "dim") for note in banner.notes))


def _drawn(block: Block, width: int) -> RenderableType:
    match block:
        case Heading(text=text):
            return Padding(Text(text, "bold underline"), (1, 0, 0, 0))
        case Paragraph(text=text, tone=tone):
            return Padding(Text(text, STYLES[tone]), (0, 0, 0, INDENT))
        case Items(items=items, tone=tone):
            return Padding(_items(items, tone), (0, 0, 0, INDENT))
        case Card():
            return Padding(_card(block), (1, 0, 0, 0))
        case Table():
            caption = Text(block.caption, "dim")
            return Padding(Group(caption, _table(block, width - INDENT)), (1, 0, 0, INDENT))
        case Chart():
            return Group()  # its numbers stand in the tables; a course takes a picture


def _items(items: tuple[str, ...], tone: Tone) -> Grid:
    grid = Grid.grid(padding=(0, 1, 0, 0))
    for item in items:
        grid.add_row(Text("·", STYLES[tone]), Text(item, STYLES[tone]))
    return grid


def _card(card: Card) -> Group:
    title = Text.assemble(
        (card.badge.upper(), f"bold {STYLES[card.tone]}"), "  ", (card.title, "bold"), (" · " if card.about else ""),
        (card.about, ""),
    )  # fmt: skip
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for field in card.fields:
        grid.add_row(Text(field.name, "dim"), Text(field.text, STYLES[field.tone]))
    return Group(title, Padding(grid, (0, 0, 0, INDENT)))


# ---- tables ---------------------------------------------------------------------------------------------------------


class _Strip(Struct, frozen=True):
    """One column, ready to be drawn."""

    column: Column
    cells: tuple[Text, ...]

    def width(self, *, least: bool) -> int:
        """What it takes unbroken, or at least: a text may be folded, a number may not."""
        words = self.column.title.split(" ") if self.column.number else [self.column.title]
        lines = [line for cell in self.cells for line in cell.plain.split("\n")]
        widest = max(cell_len(text) for text in [*words, *lines])
        return min(widest, LEAST_TEXT) if least and not self.column.number else widest


def _table(table: Table, width: int) -> RenderableType:
    """The table whole, or with its texts below each other, or in several parts: whatever there is room for."""
    strips = [
        _Strip(column, tuple(_cell(row[index]) for row in table.rows)) for index, column in enumerate(table.columns)
    ]
    if not any(column.number for column in table.columns):
        return _grid(strips, GAPS[0])
    folded = _folded(strips)
    for tried, gap in product((strips, folded), GAPS):
        if _width(tried, gap, least=False) <= width:
            return _grid(tried, gap)
    if _width(folded, GAPS[-1], least=True) <= width:
        return _grid(folded, GAPS[-1])
    return Group(*(_grid(part, GAPS[-1]) for part in _parts(folded, width)))


def _width(strips: list[_Strip], gap: int, *, least: bool) -> int:
    return sum(strip.width(least=least) + gap for strip in strips)


def _folded(strips: list[_Strip]) -> list[_Strip]:
    """The same, every text column told below the text column before it."""
    folded: list[_Strip] = []
    for strip in strips:
        if folded and not strip.column.number and not folded[-1].column.number:
            above, lead = folded[-1], strip.column.lead
            pairs = zip(above.cells, strip.cells, strict=True)
            folded[-1] = _Strip(above.column, tuple(_stacked(upper, lower, lead) for upper, lower in pairs))
        else:
            folded.append(strip)
    return folded


def _stacked(upper: Text, lower: Text, lead: str) -> Text:
    if not lower.plain:
        return upper
    return Text("\n").join([upper, Text.assemble((lead, "dim"), lower)])


def _parts(strips: list[_Strip], width: int) -> list[list[_Strip]]:
    """Several tables with the same first columns, each as wide as it may be; later ones lack rows that say nothing."""
    heads = 1 + next(index for index, strip in enumerate(strips) if not strip.column.number or index == len(strips) - 1)
    names, waiting = strips[:heads], strips[heads:]
    parts: list[list[_Strip]] = []
    part: list[_Strip] = []
    for strip in waiting:
        if part and (strip.column.opens or _width([*names, *part, strip], GAPS[-1], least=True) > width):
            parts.append(part)
            part = []
        part.append(strip)
    first, *others = [*parts, part]
    return [[*names, *first], *(_telling(names, other) for other in others)]


def _telling(names: list[_Strip], part: list[_Strip]) -> list[_Strip]:
    rows = range(len(names[0].cells))
    said = [any(strip.cells[row].plain not in {"", DASH} for strip in part) for row in rows]
    return [_Strip(strip.column, tuple(compress(strip.cells, said))) for strip in [*names, *part]]


def _grid(strips: list[_Strip], gap: int) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, padding=(0, gap - 1, 0, 0), header_style="bold", pad_edge=False, show_edge=False)
    for strip in strips:
        if strip.column.number:
            title = strip.column.title.replace(" ", "\n")
            grid.add_column(Text(title, justify="right"), justify="right", vertical="top", no_wrap=True)
        else:
            grid.add_column(Text(strip.column.title), vertical="top", overflow="fold")
    for row in zip(*(strip.cells for strip in strips), strict=True):
        grid.add_row(*row)
    return grid


def _cell(cell: Cell) -> Text:
    text = Text(cell.text, STYLES[cell.tone])
    for line in cell.below:
        text = Text("\n").join([text, Text(line, "dim")])
    return text
