"""Document → one HTML file. Rule: it runs nothing and asks for nothing; no text of the report can become markup.

The policy in its head forbids everything but the one style block, which is named by its hash. It reads well in light
and dark, narrow and wide, and on paper; status is told in words, colour only repeats it.
"""

import base64
import hashlib
from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby

from hopscope.model.report import Report
from hopscope.render.blocks import Banner, Block, Card, Cell, Chart, Column, Heading, Items, Paragraph, Table
from hopscope.render.html_charts import Draw
from hopscope.render.outline import outline

MOST_DRAWN = 60  # charts of a document; the tables beside them have the numbers of all
NOT_DRAWN = (
    "Charts stand here as tables: drawing them takes the extra “report”, installed by pip install 'hopscope[report]'."
)

STYLE = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --soft: #f5f6f8; --line: #d9dde3; --fg: #1b1f24; --quiet: #5b6470;
  --ok: #1a7f45; --info: #1f6feb; --warning: #8f5b00; --unknown: #7d3fb5; --critical: #c0212b;
  --series-1: #2b6cb0; --series-2: #c05621; --series-3: #2c7a7b; --series-4: #97266d; --series-5: #6b7d1a;
  --series-6: #553c9a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171b; --soft: #1d2127; --line: #363c45; --fg: #e6e9ed; --quiet: #9aa4b0;
    --ok: #4cc38a; --info: #6cb0ff; --warning: #e5b454; --unknown: #c49bff; --critical: #ff7b81;
    --series-1: #63a9ee; --series-2: #f0965a; --series-3: #4fd1c5; --series-4: #f08fc0; --series-5: #b5cc4f;
    --series-6: #a99bf5;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--fg);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
  overflow-wrap: anywhere;
}
main { max-width: 72rem; margin: 0 auto; padding: 1.5rem clamp(1rem, 4vw, 3rem) 4rem; }
header { border-left: .5rem solid var(--tone); background: var(--soft); padding: 1rem 1.25rem; border-radius: .25rem; }
header p { margin: .4rem 0 0; color: var(--quiet); font-size: .875rem; }
h1 { margin: 0; font-size: 1.4rem; line-height: 1.35; }
h1 .badge { display: block; font-size: .9rem; letter-spacing: .06em; }
h2 { margin: 2.25rem 0 .6rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); font-size: 1.15rem; }
h3 { margin: 0 0 .5rem; font-size: 1rem; }
h3 .about { font-weight: normal; color: var(--quiet); }
.badge { color: var(--tone); font-weight: 700; text-transform: uppercase; }
article { margin: .75rem 0; padding: .85rem 1.1rem; border: 1px solid var(--line); border-left: .3rem solid var(--tone);
  border-radius: .25rem; }
dl { display: grid; grid-template-columns: 5.5rem 1fr; gap: .2rem 1.1rem; margin: 0; }
dt { color: var(--quiet); }
dd { margin: 0; }
ul { margin: .5rem 0; padding-left: 1.2rem; }
p { margin: .5rem 0; }
.scroll { overflow-x: auto; margin: .75rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--quiet); font-size: .85rem; padding-bottom: .3rem; }
th, td { padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th, td { overflow-wrap: break-word; }
th { font-weight: 600; }
.number { text-align: right; white-space: nowrap; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 29rem), 1fr)); gap: 1rem 2rem; }
figure { margin: .75rem 0; max-width: 40rem; min-width: 0; overflow: clip; overflow-clip-margin: 1rem; }
figcaption { color: var(--quiet); font-size: .85rem; padding-bottom: .4rem; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { font-size: 12px; font-variant-numeric: tabular-nums; }
figure > p, summary { margin: .3rem 0 0; color: var(--quiet); font-size: .8rem; }
small { display: block; color: var(--quiet); font-size: .8rem; font-weight: normal; }
.strong { font-weight: 650; }
.quiet { --tone: var(--quiet); color: var(--quiet); }
.plain { --tone: var(--quiet); }
.ok { --tone: var(--ok); } .info { --tone: var(--info); } .warning { --tone: var(--warning); }
.unknown { --tone: var(--unknown); } .critical { --tone: var(--critical); }
td > .ok, td > .info, td > .warning, td > .unknown, td > .critical { color: var(--tone); font-weight: 600; }
p.warning, ul.warning, ul.unknown { color: var(--tone); }
@media (max-width: 40rem) {
  dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .5rem; } svg text { font-size: 15px; }
}
@media print {
  main { max-width: none; padding: 0; } .scroll { overflow: visible; }
  article, figure, tr, header { break-inside: avoid; } h2, h2 + p { break-after: avoid; } table { font-size: .75rem; }
  details { display: none; }
}
"""


def render(report: Report, draw: Draw | None) -> str:
    """The whole file; without anybody to draw them, charts are tables."""
    document = outline(report)
    body = "\n".join(_body(document.blocks, draw))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy()}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="hopscope">
<title>{escape(document.title)}</title>
<style>{STYLE}</style>
</head>
<body>
<main>
{_banner(document.banner)}
{body}
</main>
</body>
</html>
"""


def policy() -> str:
    """Nothing may be loaded, sent or run; the one style block is known by its hash."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _banner(banner: Banner) -> str:
    notes = "".join(f"\n<p>{escape(note)}</p>" for note in banner.notes)
    badge = f'<span class="badge">{escape(banner.status)}</span>'
    return f'<header class="{banner.tone}">\n<h1>{badge} {escape(banner.sentence)}</h1>{notes}\n</header>'


def _body(blocks: Iterable[Block], draw: Draw | None) -> Iterator[str]:
    """The blocks in their order, charts that follow each other side by side."""
    before = 0
    for _, group in groupby(blocks, key=lambda block: isinstance(block, Chart)):
        same = list(group)
        charts = [block for block in same if isinstance(block, Chart)]
        if not charts:
            yield from (_drawn(block) for block in same)
            continue
        if draw is None and not before:
            yield _quiet(NOT_DRAWN)
        if draw is not None and before <= MOST_DRAWN < before + len(charts):
            yield _quiet(f"The first {MOST_DRAWN} charts are drawn, what follows has tables only.")
        figures = [_figure(chart, draw if before + index < MOST_DRAWN else None) for index, chart in enumerate(charts)]
        before += len(charts)
        if any(figures):
            yield f'<div class="charts">\n{"".join(figures)}</div>'


def _figure(chart: Chart, draw: Draw | None) -> str:
    """A chart with its numbers; where it is not drawn, the table that stands in for it, if it takes one."""
    drawing = draw(chart) if draw is not None else None
    table = _table(chart.table) if chart.table is not None else ""
    note = _quiet(chart.note) if chart.note else ""
    if drawing is None:
        return f"<div>\n{table}\n{note}</div>\n" if table else ""
    legend = _quiet(chart.legend) if chart.legend else ""
    numbers = f"<details>\n<summary>As a table</summary>\n{table}\n</details>\n" if table else ""
    caption = f"<figcaption>{escape(chart.caption)}</figcaption>"
    return f"<figure>\n{caption}\n{drawing}\n{legend}{note}{numbers}</figure>\n"


def _quiet(text: str) -> str:
    return f'<p class="quiet">{escape(text)}</p>'


def _drawn(block: Block) -> str:
    match block:
        case Heading(text=text):
            return f"<h2>{escape(text)}</h2>"
        case Paragraph(text=text, tone=tone):
            return f'<p class="{tone}">{escape(text)}</p>'
        case Items(items=items, tone=tone):
            lines = "".join(f"\n<li>{escape(item)}</li>" for item in items)
            return f'<ul class="{tone}">{lines}\n</ul>'
        case Card():
            return _card(block)
        case Table():
            return _table(block)
        case Chart():
            return _figure(block, None)


def _card(card: Card) -> str:
    about = f' <span class="about">{escape(card.about)}</span>' if card.about else ""
    fields = "".join(
        f'\n<dt>{escape(field.name)}</dt><dd class="{field.tone}">{escape(field.text)}</dd>' for field in card.fields
    )
    title = f'<span class="badge">{escape(card.badge)}</span> {escape(card.title)}{about}'
    return f'<article class="{card.tone}">\n<h3>{title}</h3>\n<dl>{fields}\n</dl>\n</article>'


def _table(table: Table) -> str:
    caption = escape(table.caption)
    heads = "".join(f'<th scope="col"{_side(column)}>{escape(column.title)}</th>' for column in table.columns)
    rows = "\n".join(f"<tr>{_row(table.columns, row)}</tr>" for row in table.rows)
    return (
        f'<div class="scroll" role="region" aria-label="{caption}" tabindex="0">\n'
        f"<table>\n<caption>{caption}</caption>\n"
        f"<thead>\n<tr>{heads}</tr>\n</thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n</div>"
    )


def _row(columns: tuple[Column, ...], row: tuple[Cell, ...]) -> str:
    first, *others = zip(columns, row, strict=True)
    head = f'<th scope="row"{_side(first[0])}>{_cell(first[1])}</th>'
    return head + "".join(f"<td{_side(column)}>{_cell(cell)}</td>" for column, cell in others)


def _side(column: Column) -> str:
    return ' class="number"' if column.number else ""


def _cell(cell: Cell) -> str:
    text = escape(cell.text) if cell.tone == "plain" else f'<span class="{cell.tone}">{escape(cell.text)}</span>'
    return text + "".join(f"<small>{escape(line)}</small>" for line in cell.below)
