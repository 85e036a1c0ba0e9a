"""Pictures → Vega-Lite specifications: where everything stands, in units of a sheet that is as wide as a telephone.

Names come in as values of data, never as a field, an expression, a format or a title, so nothing in them is run. No
place depends on how wide a letter is, since that differs between machines: ticks and margins are set here. Colours are
the page's own variables, so one picture serves light and dark.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import assert_never

from msgspec import Struct

from hopscope.render.blocks import Dot, Ladder, OverTime, Picture, Rung, Span, Tone, Waterfall

Json = dict[str, object]
Rows = Sequence[dict[str, str | int | float | None]]

WIDTH = 520
LEFT, RIGHT = 44, 508  # of a plot; its numbers stand left of it
EDGE = 2
FONT = 12
HALF_A_LINE = 4  # from the middle of a line of text down to its base
LIGHT = 0.3
SERIES = tuple(f"var(--series-{number})" for number in range(1, 7))
TICKS = 5
AXIS = 22  # what its numbers take

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
STEPS = (
    100, 200, 500, *(SECOND * n for n in (1, 2, 5, 10, 15, 30)), *(MINUTE * n for n in (1, 2, 5, 10, 15, 30)),
    *(HOUR * n for n in (1, 2, 3, 6, 12)), *(DAY * n for n in (1, 2, 7, 14, 28, 91, 182, 364, 1820)),
)  # fmt: skip


class Sheet(Struct, frozen=True):
    """A specification and how high it is; all are `WIDTH` wide."""

    height: int
    spec: Json


def sheet(picture: Picture) -> Sheet:
    """The picture as Vega-Lite."""
    match picture:
        case OverTime():
            return _over_time(picture)
        case Ladder():
            return _ladder(picture)
        case Waterfall():
            return _waterfall(picture)
        case _:
            assert_never(picture)


# ---- round trips over time ------------------------------------------------------------------------------------------

TOP, FLOOR = 22, 180
STRIP, LOST = 14, 12  # from the floor down to the marks of what was lost, and how high a row of them is
NAMED = 18
FEW = 80  # dots of a line that are drawn beside it
LEAST_MARK = 0.4  # of a row: a single loss among many is seen


def _over_time(picture: OverTime) -> Sheet:
    lines = picture.lines
    bottom = FLOOR + STRIP + LOST * len(lines)
    named = bottom + 34
    dots = [(number, dot) for number, line in enumerate(lines) for dot in line.dots]
    instants = [dot.at for _, dot in dots] or [0]
    first, last = min(instants), max(*instants, min(instants) + 1)
    x = _field("at", {"domain": [first, last], "range": [LEFT, RIGHT], "nice": False, "zero": False})
    x |= {"axis": _instants(first, last)}
    highest = max((dot.max_ms for _, dot in dots if dot.max_ms is not None), default=1.0)
    y = _scaled("p50", [0, highest or 1.0], [FLOOR, TOP], {"orient": "left", "offset": -LEFT, "tickCount": 4})
    layers = [
        _layer([], "rule", {"x": x, "y": y}),  # gives the axes even where nothing was answered
        *_delays(dots, x, y),
        *_losses(dots, x, len(lines)),
        _texts([(EDGE, TOP - 10, "ms"), (EDGE, (FLOOR + STRIP + bottom) / 2 + HALF_A_LINE, "lost")]),
        _texts([(LEFT + 8, FLOOR - 12, "" if any(dot.p50_ms is not None for _, dot in dots) else "no answer")]),
        _texts([(EDGE + 16, named + NAMED * number + FONT, line.name) for number, line in enumerate(lines)]),
        _texts([(RIGHT, named + NAMED * number + FONT, line.told) for number, line in enumerate(lines)], align="right"),
        _swatches([(EDGE, named + NAMED * number + 2) for number in range(len(lines))], 10),
    ]
    if len(lines) > 1:
        layers.append(_swatches([(LEFT - 9, FLOOR + STRIP + LOST * n + 3) for n in range(len(lines))], LOST - 4))
    return _sheet(bottom, named + NAMED * len(lines), layers)


def _delays(dots: list[tuple[int, Dot]], x: Json, y: Json) -> Iterable[Json]:
    """A line through the medians, with gaps where nothing came back; a band where dots stand for several probes."""
    colours = sorted({number for number, _ in dots})
    colour: Json = {
        "field": "line",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": colours, "range": [SERIES[number % len(SERIES)] for number in colours]},
    }
    rows: Rows = [
        {"line": number, "at": dot.at, "p50": dot.p50_ms, "least": dot.min_ms, "most": dot.max_ms}
        for number, dot in dots
    ]
    base: Json = {"x": x, "color": colour}
    if any(dot.sent > 1 for _, dot in dots):
        band: Json = {"y": {**y, "field": "least"}, "y2": {"field": "most"}}
        yield _layer(rows, {"type": "area", "opacity": LIGHT}, {**base, **band})
    line: Json = {"type": "line", "strokeWidth": 1.5, "strokeCap": "round", "strokeJoin": "round"}
    yield _layer(rows, line, {**base, "y": y})
    marked: Rows = [row for row, shown in zip(rows, _marked(dots), strict=True) if shown]
    yield _layer(marked, {"type": "point", "filled": True, "size": 14, "opacity": 1}, {**base, "y": y})


def _marked(dots: list[tuple[int, Dot]]) -> Iterable[bool]:
    """Which dots are drawn beside their line: all where they are few, else those that a line would not show."""
    few = all(many <= FEW for many in Counter(number for number, _ in dots).values())
    for index, (number, dot) in enumerate(dots):
        beside = dots[max(0, index - 1) : index] + dots[index + 1 : index + 2]
        lone = all(other != number or each.p50_ms is None for other, each in beside)
        yield dot.p50_ms is not None and (lone or (few and dot.sent == 1))


def _losses(dots: list[tuple[int, Dot]], x: Json, lines: int) -> Iterable[Json]:
    """A row for each line under the plot: a mark where probes were lost, the higher the more of them."""
    floors = [FLOOR + STRIP + LOST * number for number in range(1, lines + 1)]
    yield _layer(
        [{"x": LEFT, "x2": RIGHT, "y": floor} for floor in floors],
        _rule("var(--line)"),
        {"x": _place("x"), "x2": {"field": "x2"}, "y": _place("y")},
    )
    marks: Rows = [
        {"at": dot.at, "y": floors[number], "y2": floors[number] - _mark(dot)} for number, dot in dots if dot.lost
    ]
    rule: Json = {"type": "rule", "color": "var(--critical)", "strokeWidth": 2}
    yield _layer(marks, rule, {"x": x, "y": _place("y"), "y2": {"field": "y2"}})


def _mark(dot: Dot) -> float:
    return (LOST - 1) * (LEAST_MARK + (1 - LEAST_MARK) * dot.lost / dot.sent)


def _instants(first: int, last: int) -> Json:
    """An axis of UTC with a few round instants."""
    step = next((step for step in STEPS if (last - first) / step <= TICKS), STEPS[-1])
    ticks = list(range(-(-first // step) * step, last + 1, step))
    if step < SECOND:
        ticks, form = [tick for tick in ticks[::2] if tick <= last - step / 2], "%H:%M:%S.%L"  # these are long
    else:
        form = "%H:%M:%S" if step < MINUTE else "%H:%M" if step < DAY else "%Y-%m-%d"
    # no axis of time: those show one tick a second at most
    return {"values": ticks, "labelExpr": f"utcFormat(datum.value, '{form}')", "grid": False, "labelOverlap": False}


# ---- hops -----------------------------------------------------------------------------------------------------------

RUNG = 38
BAR = 9
TONES: dict[Tone, str] = {
    "plain": "var(--series-1)", "strong": "var(--series-1)", "quiet": "var(--quiet)", "ok": "var(--ok)",
    "info": "var(--info)", "warning": "var(--warning)", "unknown": "var(--unknown)", "critical": "var(--critical)",
}  # fmt: skip


def _ladder(picture: Ladder) -> Sheet:
    bottom = 6 + RUNG * len(picture.rungs)
    rungs = [(6 + RUNG * number, rung) for number, rung in enumerate(picture.rungs)]
    known = [end for rung in picture.rungs for end in (rung.p95_ms, rung.p50_ms) if end is not None]
    x = _scaled(
        "p50", [0, max(known, default=1.0) or 1.0], [EDGE, RIGHT - 26], {"orient": "bottom", "tickCount": TICKS}
    )
    answered: Rows = [_hop(top, rung) for top, rung in rungs if rung.p50_ms is not None]
    silent: Rows = [{"x": EDGE, "x2": RIGHT, "y": top + 24} for top, rung in rungs if rung.p50_ms is None]
    middle: Json = {"y": _place("y")}
    ranged = [row for row in answered if row["least"] is not None and row["most"] is not None]
    whisker: Json = {"x": {**x, "field": "least"}, "x2": {"field": "most"}, **middle}
    layers = [
        _layer([], "rule", {"x": x}),
        _layer(silent, _rule("var(--line)", dash=True), {"x": _place("x"), "x2": {"field": "x2"}, **middle}),
        _layer(answered, _bar(0.75), {"x": x, "color": _colour(), **middle}),
        _layer(ranged, _rule("var(--fg)"), whisker),
        *(_layer(ranged, _cap(), {"x": {**x, "field": end}, **middle}) for end in ("least", "most")),
        _texts([(EDGE, top + FONT, rung.name) for top, rung in rungs]),
        _texts(
            [(RIGHT, top + FONT, rung.told) for top, rung in rungs], align="right", tones=[r.tone for _, r in rungs]
        ),
        _texts([(RIGHT, bottom + 15, "ms")], align="right"),
    ]
    return _sheet(bottom, bottom + AXIS, layers)


def _hop(top: int, rung: Rung) -> dict[str, str | int | float | None]:
    colour = TONES["plain" if rung.tone == "quiet" else rung.tone]
    return {"y": top + 24, "p50": rung.p50_ms, "least": rung.min_ms, "most": rung.p95_ms, "colour": colour}


def _rule(colour: str, *, dash: bool = False) -> Json:
    return {"type": "rule", "color": colour, **({"strokeDash": [3, 4]} if dash else {})}


def _bar(opacity: float) -> Json:
    return {"type": "bar", "orient": "horizontal", "size": BAR, "opacity": opacity}


def _cap() -> Json:
    return {"type": "tick", "orient": "vertical", "color": "var(--fg)", "size": BAR, "thickness": 1}


# ---- requests -------------------------------------------------------------------------------------------------------

STEP = 20
NAMES = 88  # where the bars begin
BARS = 424  # where they end
HAIR = 0.003  # of the axis: what was measured is seen, however short
KINDS = {"network": "var(--series-1)", "wait": "var(--quiet)", "server": "var(--series-2)"}


def _waterfall(picture: Waterfall) -> Sheet:
    heads: list[tuple[int, str, str]] = []
    spans: list[tuple[int, Span]] = []
    top = 4
    for request in picture.requests:
        heads.append((top, request.name, request.told))
        spans += [(top + STEP * number, span) for number, span in enumerate(request.spans, start=1)]
        top += STEP * (len(request.spans) + 1) + 8
    longest = max((span.end_ms for _, span in spans), default=0.0) or 1.0
    x = _scaled("begin", [0, longest], [NAMES, BARS], {"orient": "bottom", "tickCount": 4})
    bar: Json = {"x": x, "x2": {"field": "end"}, "y": _place("y"), "color": _colour()}
    rows: Rows = [
        {
            "y": at + STEP / 2,
            "begin": span.begin_ms,
            "end": max(_sure(span), span.begin_ms + longest * HAIR),
            "colour": KINDS[span.kind],
        }
        for at, span in spans
    ]
    doubtful: Rows = [
        {"y": at + STEP / 2, "begin": span.begin_ms, "end": span.end_ms, "colour": KINDS[span.kind]}
        for at, span in spans
        if span.kind == "server"
    ]
    layers = [
        _layer([], "rule", {"x": x}),
        _layer(doubtful, _bar(2 * LIGHT), bar),
        _layer(rows, _bar(1), bar),
        _texts([(NAMES - 8, at + STEP / 2 + HALF_A_LINE, span.name) for at, span in spans], align="right"),
        _texts([(RIGHT, at + STEP / 2 + HALF_A_LINE, span.told) for at, span in spans], align="right"),
        _texts([(EDGE, at + FONT, name) for at, name, _ in heads], strong=True),
        _texts([(RIGHT, at + FONT, told) for at, _, told in heads], align="right", strong=True),
        _texts([(RIGHT, top + 15, "ms")], align="right"),
    ]
    return _sheet(top, top + AXIS, layers)


def _sure(span: Span) -> float:
    """When it ended at the earliest."""
    return span.end_ms if span.kind != "server" else (span.least_ms or span.begin_ms)


# ---- what all are made of -------------------------------------------------------------------------------------------


def _sheet(bottom: int, height: int, layers: list[Json]) -> Sheet:
    """All of it: the axis of what runs to the right stands at the bottom, what is below it in the margin."""
    axis = {"domain": False, "ticks": False, "gridColor": "var(--line)", "labelColor": "var(--quiet)", "title": None}
    spec: Json = {
        "width": WIDTH,
        "height": bottom,
        "padding": {"left": 0, "top": 0, "right": 0, "bottom": height - bottom},
        "autosize": "none",
        "background": None,
        "layer": layers,
        "resolve": {"scale": {"color": "independent"}},
        "config": {
            "aria": False,
            "view": {"stroke": None},
            "axis": {**axis, "labelFontSize": FONT, "labelFlush": False, "labelPadding": 6},
            "text": {"fontSize": FONT, "color": "var(--fg)", "baseline": "alphabetic"},
        },
    }
    return Sheet(height, spec)


def _layer(rows: Rows, mark: str | Json, encoding: Json) -> Json:
    return {"data": {"values": rows}, "mark": mark, "encoding": encoding}


def _field(name: str, scale: Json | None) -> Json:
    return {"field": name, "type": "quantitative", "scale": scale}


def _scaled(name: str, domain: list[float], places: list[int], axis: Json) -> Json:
    scale: Json = {"domain": domain, "range": places, "nice": True, "zero": True}
    return _field(name, scale) | {"axis": {**axis, "labelOverlap": False}}


def _place(name: str) -> Json:
    """A place on the sheet, in its own units."""
    return {"field": name, "type": "quantitative", "scale": None, "axis": None}


def _texts(
    texts: Sequence[tuple[float, float, str]],
    *,
    align: str = "left",
    strong: bool = False,
    tones: Sequence[Tone] = (),
) -> Json:
    colours = [TONES[tone] if tone not in {"plain", "strong"} else "var(--fg)" for tone in tones] or len(texts) * [
        "var(--fg)"
    ]
    rows: Rows = [
        {"x": x, "y": y, "text": text, "colour": colour}
        for (x, y, text), colour in zip(texts, colours, strict=True)
        if text
    ]
    return _layer(
        rows,
        {"type": "text", "align": align, "fontWeight": "bold" if strong else "normal"},
        {
            "x": _place("x"),
            "y": _place("y"),
            "text": {"field": "text", "type": "nominal"},
            "color": _colour(),
        },
    )


def _swatches(places: Sequence[tuple[float, float]], size: float) -> Json:
    """The colour of each line, beside its name and beside its losses."""
    rows: Rows = [
        {"x": x, "y": y, "x2": x + size, "y2": y + size, "colour": SERIES[number % len(SERIES)]}
        for number, (x, y) in enumerate(places)
    ]
    corners: Json = {"x": _place("x"), "y": _place("y"), "x2": {"field": "x2"}, "y2": {"field": "y2"}}
    return _layer(rows, "rect", {**corners, "color": _colour()})


def _colour() -> Json:
    """The colour that a row names."""
    return {"field": "colour", "type": "nominal", "scale": None, "legend": None}
