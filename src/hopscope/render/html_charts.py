"""Charts → SVG that stands in the page, drawn by vl-convert. Rule: only shapes, words and colours of the page get in.

What the library draws is written anew from a short list of elements and attributes: no script, no style, no link, no
identifier, no font of its own. The same chart gives the same bytes wherever it is drawn. Starting the library takes
about a second, so it is imported when the first chart is drawn and not before.
"""

import re
from collections.abc import Callable, Iterator
from html import escape
from importlib.util import find_spec
from xml.etree import ElementTree as ET

from hopscope.render.blocks import Chart
from hopscope.render.specs import WIDTH, sheet

Draw = Callable[[Chart], str | None]
"""Draws a chart, or `None` where that cannot be done."""

LIBRARY = "vl_convert"
ATTRIBUTES = {
    "g": ("transform",),
    "path": ("transform", "d"),
    "line": ("transform", "x1", "y1", "x2", "y2"),
    "rect": ("transform", "x", "y", "width", "height"),
    "text": ("transform", "text-anchor", "font-weight"),
}
PAINT = ("fill", "stroke")
PAINTED = (
    "opacity", "fill-opacity", "stroke-opacity", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin"
)  # fmt: skip
VALUE = re.compile(r"[-#%(),. 0-9A-Za-z]*")
FRACTION = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
DEFAULTS = {
    ("opacity", "1"), ("stroke-width", "1"), ("font-weight", "normal"), ("text-anchor", "start"),
    ("transform", "translate(0,0)"),
}  # fmt: skip


def drawer() -> Draw | None:
    """What draws charts here; `None` where the extra `report` is not installed."""
    return svg if find_spec(LIBRARY) else None


def svg(chart: Chart) -> str | None:
    """The chart as one element."""
    import vl_convert

    drawn = sheet(chart.picture)
    try:
        text = vl_convert.vegalite_to_svg(drawn.spec, allowed_base_urls=[])
    except ValueError:  # a library of others: better a table than no report
        return None
    shapes = "".join(_cleaned(ET.fromstring(text)))  # noqa: S314 - made a line above, from our own values
    size = f'viewBox="0 0 {WIDTH} {drawn.height}"'
    return f'<svg {size} fill="none" role="img" aria-label="{escape(chart.told)}">{shapes}</svg>'


def _cleaned(element: ET.Element) -> Iterator[str]:
    """The element and what is in it, without all that draws nothing."""
    name = element.tag.rpartition("}")[2]
    inner = escape(element.text or "") if name == "text" else "".join(text for one in element for text in _cleaned(one))
    if name == "svg":
        yield inner
        return
    if name not in ATTRIBUTES or _is_unseen(name, element, inner):
        return
    known = {key: element.get(key, "") for key in (*ATTRIBUTES[name], *(() if name == "g" else PAINT + PAINTED))}
    kept = [
        f' {key}="{_short(value) if key in ATTRIBUTES[name] else value}"'
        for key, value in known.items()
        if value and (key, value) not in DEFAULTS and VALUE.fullmatch(value)
    ]
    if name == "g" and not kept:
        yield inner
        return
    yield f"<{name}{''.join(kept)}>{inner}</{name}>"


def _is_unseen(name: str, element: ET.Element, inner: str) -> bool:
    if element.get("display") == "none" or element.get("opacity") == "0":
        return True
    if name in {"g", "text"}:
        return not inner
    return all(element.get(paint, "none") in {"none", "transparent"} for paint in PAINT)


def _short(value: str) -> str:
    """Places with one decimal: a tenth of a unit is less than a dot on any screen."""
    return FRACTION.sub(lambda found: f"{round(float(found[0]), 1) + 0.0:.1f}".removesuffix(".0"), value)
