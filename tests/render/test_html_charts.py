"""Charts as SVG: only shapes, words and the page's colours; the same bytes anywhere; what is lost is always seen."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from xml.etree import ElementTree as ET

import pytest

from hopscope.model.report import Report
from hopscope.render import html, specs
from hopscope.render.blocks import Chart, Dot, Ladder, Line, OverTime, Picture, Rung, Span, Steps, Waterfall
from hopscope.render.html_charts import ATTRIBUTES, Draw, _cleaned, drawer
from hopscope.render.outline import outline

AT = 1_777_885_920_000
NASTIES = (
    "datum.text", "{{x}}", "signal('width')", "a.b[0]['c']", "\\.", "%Y", "</text><script>1</script>", "url(//x)",
    "&#60;",
)  # fmt: skip
PROGRAM = """
from hopscope.render.blocks import *
from hopscope.render.html_charts import drawer
dots = tuple(
    Dot(at={at} + 700 * n, sent=1, lost=n % 5 == 0, min_ms=n / 7, p50_ms=n / 7, max_ms=n / 7) for n in range(99)
)
print(drawer()(Chart(caption="", told="", picture=OverTime((Line("here", "none", dots),)))))
"""


def chart(picture: Picture, told: str = "") -> Chart:
    return Chart(caption="", told=told, picture=picture)


def course(name: str, outcomes: str = "..x.") -> OverTime:
    """A probe a second; an x is a lost one."""
    rtts = [None if one == "x" else 8.0 for one in outcomes]
    dots = tuple(
        Dot(at=AT + 1000 * number, sent=1, lost=rtt is None, min_ms=rtt, p50_ms=rtt, max_ms=rtt)
        for number, rtt in enumerate(rtts)
    )
    return OverTime((Line(name, name, dots),))


def ladder(name: str) -> Ladder:
    return Ladder((Rung(name=name, told=name, tone="critical", min_ms=1.0, p50_ms=2.0, p95_ms=3.0),))


def fall(name: str) -> Waterfall:
    span = Span(name=name, told=name, kind="server", begin_ms=1.0, end_ms=3.0, least_ms=2.0)
    return Waterfall((Steps(name, name, (span,)),))


PICTURES: dict[str, Callable[[str], Picture]] = {"course": course, "ladder": ladder, "fall": fall}


def test_every_chart_of_a_report_is_drawn(report: Report, draw: Draw) -> None:
    charts = [block for block in outline(report).blocks if isinstance(block, Chart)]
    drawings = [draw(each) or "" for each in charts]
    assert [drawing[:4] for drawing in drawings] == ["<svg"] * 5
    colours = {colour for drawing in drawings for colour in re.findall(r'(?:fill|stroke)="([^"]*)"', drawing)}
    assert colours - {"none", "transparent"} <= {f"var({name})" for name in re.findall(r"(--[\w-]+):", html.STYLE)}


@pytest.mark.parametrize("kind", PICTURES)
@pytest.mark.parametrize("nasty", NASTIES)
def test_a_name_is_data_and_comes_out_as_text(kind: str, nasty: str, draw: Draw) -> None:
    picture = PICTURES[kind](nasty)
    assert {where for where, text in leaves(specs.sheet(picture).spec) if nasty in text} == {"text"}
    root = ET.fromstring(draw(chart(picture, told=nasty)) or "")  # noqa: S314 - drawn here
    assert set(root.itertext()) & {nasty} == {nasty}
    assert {each.tag for each in root.iter()} <= {"svg", *ATTRIBUTES}
    assert root.get("aria-label") == nasty


@pytest.mark.parametrize("kind", PICTURES)
def test_no_place_depends_on_how_wide_a_letter_is(kind: str, draw: Draw) -> None:
    narrow, wide = (draw(chart(PICTURES[kind](letter * 30))) or "" for letter in "iW")
    assert narrow.replace("i" * 30, "") == wide.replace("W" * 30, "")


@pytest.mark.parametrize(
    ("outcomes", "lost"), [("....", 0), ("x...", 1), ("...x", 1), ("xx.x", 3), ("xxxx", 4), ("x" * 200, 200)]
)
def test_each_loss_is_a_mark(outcomes: str, lost: int, draw: Draw) -> None:
    assert (draw(chart(course("here", outcomes))) or "").count('stroke="var(--critical)"') == lost


def test_a_lone_loss_among_many_is_seen() -> None:
    one = Dot(at=AT, sent=5000, lost=1, min_ms=1.0, p50_ms=1.0, max_ms=1.0)
    assert specs._mark(one) > specs.LOST / 3


def test_a_lone_answer_among_losses_is_seen() -> None:
    (line,) = course("here", "xx.xx..x" + "." * 90).lines
    marked = specs._marked([(0, dot) for dot in line.dots])
    assert [number for number, shown in enumerate(marked) if shown] == [2]


def test_the_same_report_gives_the_same_bytes(report: Report, draw: Draw) -> None:
    assert html.render(report, draw) == html.render(report, draw)


def test_another_process_in_another_time_zone_gives_the_same_bytes(draw: Draw) -> None:
    argv = [sys.executable, "-c", PROGRAM.format(at=AT)]
    drawings = {
        subprocess.run(
            argv, env={**os.environ, "TZ": zone, "LC_ALL": "C"}, capture_output=True, text=True, check=True
        ).stdout
        for zone in ("UTC", "Asia/Kolkata")
    }
    assert len(drawings) == 1
    assert ">09:12:00<" in drawings.pop()


def test_looking_for_the_library_does_not_load_it(report: Report) -> None:
    program = "import sys, hopscope.render.html_charts as c; c.drawer(); print('vl_convert' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_drawing_that_fails_is_none() -> None:
    found = drawer()
    if found is None:
        pytest.skip("no vl-convert-python")
    assert found(chart(ladder("a name that never went through `clean`: \udcff"))) is None


def test_only_shapes_words_and_colours_get_through() -> None:
    nasty = """<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">
      <style>*{}</style><script>1</script><defs><clipPath id="clip0"><rect width="9"/></clipPath></defs>
      <a xlink:href="http://x"><path d="M0,0" fill="red"/></a><image href="http://x"/><foreignObject/>
      <g clip-path="url(#clip0)" transform="translate(0,0)"><g aria-label="x" class="mark">
        <path id="p" d="M1.26,-0.04L2,3" style="fill:red" onclick="1" fill="var(--fg)" opacity="0.75"/>
        <path d="M0,0h9" pointer-events="none"/><line x2="3" y2="0" stroke="a&quot;b"/>
        <text font-family="x" font-size="9px" text-anchor="end" transform="translate(1,2)" fill="#000">a&lt;b</text>
        <text fill="#000" opacity="0">unseen</text><rect display="none" width="3" height="3" fill="#000"/>
      </g></g></svg>"""
    assert "".join(_cleaned(ET.fromstring(nasty))) == (  # noqa: S314 - written above
        '<path d="M1.3,0L2,3" fill="var(--fg)" opacity="0.75"></path>'
        '<line x2="3" y2="0"></line>'
        '<text transform="translate(1,2)" text-anchor="end" fill="#000">a&lt;b</text>'
    )


@pytest.mark.parametrize(
    ("milliseconds", "ticks", "form"),
    [
        (300, 2, "%H:%M:%S.%L"),
        (10_000, 6, "%H:%M:%S"),
        (290_000, 5, "%H:%M"),
        (86_400_000, 4, "%H:%M"),
        (86_400_000 * 9, 5, "%Y-%m-%d"),
        (86_400_000 * 9000, 5, "%Y-%m-%d"),
    ],
)
def test_the_axis_has_a_few_round_instants(milliseconds: int, ticks: int, form: str) -> None:
    axis = specs._instants(AT, AT + milliseconds)
    values = axis["values"]
    assert isinstance(values, list)
    assert len(values) == ticks
    assert axis["labelExpr"] == f"utcFormat(datum.value, '{form}')"


def leaves(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a specification, keys as well, with the key that it stands under."""
    if isinstance(value, str):
        yield name, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield "a key", str(key)
            yield from leaves(inner, str(key))
    if isinstance(value, list | tuple):
        for inner in value:
            yield from leaves(inner, name)
