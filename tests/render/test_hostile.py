"""Every text of a report may come from somebody who means harm: in no format may it be more than text."""

import csv
import json
import re
from html.parser import HTMLParser
from io import StringIO

import pytest
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt
from msgspec.structs import replace

from hopscope.model.report import Report
from hopscope.render import RENDERERS, terminal
from hopscope.render import html as html_renderer
from hopscope.render import json as json_renderer
from hopscope.render.html_charts import Draw
from render.poison import poisoned

NASTIES = (
    "=cmd()|'/c calc'!A0",
    "\t@SUM(1)",
    "\x1b[31m\x9b1mred\x1b]0;title\x07",
    "\u202egnp.exe\u2066\u200f\ufeff",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "\" onmouseover='alert(1)' x=\"",
    "[red]x[/red] :bomb: [link](javascript:alert(1)) ![i](//evil.example/i.png) <//evil.example>",
    "a|b`c`*d*_e_~~f~~\\",
    "# g\r\n- h\n1. i\n\n> j\u2028k",
    "- h",
    "1. i",
    "\0\x7f\x85\udcff&lt;$x$",
    "x" * 100_000,
)
TAGS = {
    "html", "head", "meta", "title", "style", "body", "main", "header", "h1", "h2", "h3", "p", "span", "article", "dl",
    "dt", "dd", "ul", "li", "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "small",
    "figure", "figcaption", "details", "summary", "svg", "g", "path", "line", "rect", "text",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "http-equiv", "content", "name", "class", "role", "aria-label", "tabindex", "scope",
    "viewbox", "transform", "d", "x2", "y2", "text-anchor", "font-weight", "fill", "stroke", "stroke-width",
    "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity", "fill-opacity",
}  # fmt: skip
MARKDOWN_OF_OURS = {
    "heading_open", "paragraph_open", "bullet_list_open", "list_item_open", "table_open", "thead_open", "tbody_open",
    "tr_open", "th_open", "td_open", "inline", "text", "text_special", "strong_open",
}  # fmt: skip


@pytest.fixture(params=NASTIES, ids=range(len(NASTIES)))
def hostile(request: pytest.FixtureRequest, report: Report) -> Report:
    poisoned_report = poisoned(report, Report, str(request.param))
    assert isinstance(poisoned_report, Report)
    return poisoned_report


@pytest.mark.parametrize("name", RENDERERS)
def test_nothing_but_printable_text_comes_out(name: str, hostile: Report) -> None:
    text = "".join(RENDERERS[name](hostile))
    text.encode()
    lines = text.split("\r\n" if name == "csv" else "\n")
    assert [line for line in lines if not line.isprintable()] == []


def test_the_terminal_obeys_only_our_colours(hostile: Report) -> None:
    text = terminal.render(hostile, width=80, colour=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", text) == terminal.render(hostile, width=80, colour=False)


def test_the_terminal_shows_markup_as_it_is(report: Report) -> None:
    nasty = "[red]x[/red] :bomb:"
    text = terminal.render(replace(report, verdict=replace(report.verdict, summary=nasty)), width=80, colour=False)
    assert nasty in text


def test_html_has_only_our_elements(hostile: Report, draw: Draw) -> None:
    reader = _Reader()
    reader.feed(html_renderer.render(hostile, draw))
    assert "svg" in reader.tags
    assert reader.tags <= TAGS
    assert reader.attributes <= ATTRIBUTES


def test_markdown_has_only_our_markup(hostile: Report, report: Report) -> None:
    kinds, _ = _markdown("".join(RENDERERS["md"](hostile)))
    assert kinds <= MARKDOWN_OF_OURS
    ours, _ = _markdown("".join(RENDERERS["md"](report)))
    assert kinds == ours


def test_markdown_shows_what_was_written(report: Report) -> None:
    nasty = "a|b`c`*d*_e_~~f~~\\<b>&lt;[x](y)"
    target = replace(report.targets[0], name=nasty)
    _, texts = _markdown("".join(RENDERERS["md"](replace(report, targets=(target, *report.targets[1:])))))
    assert any(nasty in text for text in texts)


def test_no_cell_is_a_formula(hostile: Report) -> None:
    rows = list(csv.reader(StringIO("".join(RENDERERS["csv"](hostile)), newline="")))
    assert {len(row) for row in rows} == {13}
    assert [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))] == []


def test_json_is_valid_and_true(hostile: Report) -> None:
    document = json.loads("".join(RENDERERS["json"](hostile)))
    Draft202012Validator(json.loads(json_renderer.schema())).validate(document)
    assert document["verdict"]["summary"] == hostile.verdict.summary.replace("\udcff", r"\udcff")


class _Reader(HTMLParser):
    """Collects what a browser would see as elements."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def _markdown(text: str) -> tuple[set[str], list[str]]:
    """The kinds of token in a Markdown text, closing ones aside, and its texts, each in one piece."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text)
    inner = [child for token in tokens for child in token.children or ()]
    kinds = {token.type for token in [*tokens, *inner] if not token.type.endswith("_close")}
    texts = ["".join(child.content for child in token.children or ()) for token in tokens if token.type == "inline"]
    return kinds, texts
