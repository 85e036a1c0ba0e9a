"""Document → Markdown (CommonMark with GitHub's tables). Rule: no text of the report can become markup.

Whatever may begin or end markup is escaped, so a name is read as it is written; a table cell never breaks its row.
"""

import re

from hopscope.model.report import Report
from hopscope.render.blocks import Block, Card, Cell, Chart, Heading, Items, Paragraph, Table
from hopscope.render.outline import outline

_MARKUP = re.compile(r"[\\`*_<>\[\]|~&$#]")
_OPENING = re.compile(r"^([-+=]|\d+(?=[.)](\s|$)))")


def render(report: Report) -> str:
    """The whole document."""
    document = outline(report)
    banner = document.banner
    head = [f"# {banner.status}: {escape(banner.sentence)}", *(escape(note) for note in banner.notes)]
    body = (_drawn(block) for block in document.blocks)
    return "\n\n".join([*head, *(text for text in body if text)]) + "\n"


def escape(text: str) -> str:
    """The text as Markdown that shows it."""
    inert = _MARKUP.sub(lambda found: f"\\{found[0]}", text)
    return _OPENING.sub(lambda found: f"{found[0]}\\" if found[0].isdigit() else f"\\{found[0]}", inert)


def _drawn(block: Block) -> str:
    match block:
        case Heading(text=text):
            return f"## {escape(text)}"
        case Paragraph(text=text):
            return escape(text)
        case Items(items=items):
            return "\n".join(f"- {escape(item)}" for item in items)
        case Card():
            return _card(block)
        case Table():
            return _table(block)
        case Chart():
            return _instead(block)


def _instead(chart: Chart) -> str:
    """The table that stands in for a picture; nothing where a table beside it has its numbers."""
    table = _table(chart.table) if chart.table is not None else ""
    return "\n\n".join(text for text in (table, escape(chart.note)) if text)


def _card(card: Card) -> str:
    about = f" – {escape(card.about)}" if card.about else ""
    lines = [f"- **{field.name}:** {_field(field.text, strong=field.tone == 'strong')}" for field in card.fields]
    return "\n".join([f"### {card.badge.capitalize()}: {escape(card.title)}{about}", "", *lines])


def _field(text: str, *, strong: bool) -> str:
    return f"**{escape(text)}**" if strong else escape(text)


def _table(table: Table) -> str:
    heads = [escape(column.title) for column in table.columns]
    rules = ["---:" if column.number else "---" for column in table.columns]
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    return "\n".join([f"**{escape(table.caption)}**", "", *(f"| {' | '.join(row)} |" for row in [heads, rules, *rows])])


def _cell(cell: Cell) -> str:
    below = f" ({escape(', '.join(cell.below))})" if cell.below else ""
    return f"{escape(cell.text)}{below}".strip()
