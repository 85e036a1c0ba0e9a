"""A comparison → blocks: which candidate to buy, and why; then where they differ, and where nothing shows it.

One card a candidate, in the order of rank; the numbers of all candidates from one place stand below each other, for
that is what a buyer compares. A long list of differences is cut, those that matter kept, and what is left out is said.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress

from hopscope.analysis.faults import LABELS
from hopscope.analysis.say import count, ratio
from hopscope.model.report import Advice, ComparisonResult, Delay, Difference, LimitReport, Loss, PlaceReport, Report
from hopscope.render import terms, words
from hopscope.render.blocks import Block, Card, Cell, Column, Field, Heading, Paragraph, Table, Tone
from hopscope.render.terms import DASH
from hopscope.render.words import cell_ms, cell_ratio, clean, sentence

MOST_ROWS = 60
KEPT = 2
"""The first columns of a table, which name its rows."""
RANKED = (
    "Ranked by the budget: by the places where every limit is kept, then by the score, which is how far the worst "
    "limit is kept (1.00: everywhere); without a budget by the mean wait. The advice also weighs whose fault it is, "
    "and whether it can be mended."
)
TONES: dict[Advice, Tone] = {"buy": "ok", "ask": "warning", "avoid": "critical"}


def blocks(report: Report) -> Iterator[Block]:
    """The ranking with its reasons; nothing where nothing was compared."""
    found = [one for one in report.results if isinstance(one, ComparisonResult)]
    if not found:
        return
    yield Heading("Which one")
    yield Paragraph(RANKED, "quiet")
    yield from (_card(one, len(found)) for one in found)
    if rows := list(_places(found)):
        yield _trimmed("Each candidate from each place (milliseconds)", PLACE_COLUMNS, rows)
    if report.differences:
        yield Heading("Differences")
        yield from _differences(report.differences)


def _card(one: ComparisonResult, of: int) -> Card:
    about = ["not ranked" if one.rank is None else f"rank {one.rank} of {of}"]
    about += [] if one.score is None else [f"score {one.score:.2f}"]
    about += [] if one.price_month is None else [f"{one.price_month:,.10g} a month"]
    names = ["Why", *[""] * len(one.reasons)]
    return Card(
        tone=TONES[one.advice],
        badge=terms.ADVICE[one.advice],
        title=clean(one.target),
        about=", ".join(about),
        fields=tuple(Field(name, sentence(reason)) for name, reason in zip(names, one.reasons, strict=False)),
    )


# ---- places ---------------------------------------------------------------------------------------------------------

PLACE_COLUMNS = (
    Column("from"), Column("candidate"), Column("RTT p50", number=True), Column("loss", number=True),
    Column("server p50", number=True), Column("TTFT p50", number=True), Column("floor by distance", number=True),
    Column("stretch", number=True), Column("limits"),
)  # fmt: skip


def _places(found: Sequence[ComparisonResult]) -> Iterator[tuple[Cell, ...]]:
    """A row for each place and candidate, the candidates of one place below each other."""
    names = dict.fromkeys(each.vantage for one in found for each in one.places)
    for name in names:
        for one in found:
            yield from (_place(one, each) for each in one.places if each.vantage == name)


def _place(one: ComparisonResult, each: PlaceReport) -> tuple[Cell, ...]:
    state = () if each.outcome == "ok" else (terms.OUTCOMES[each.outcome],)
    distance = () if each.distance_km is None else (f"{each.distance_km:,.0f} km",)
    return (
        Cell(clean(each.vantage)),
        Cell(clean(one.target), state, tone=terms.OUTCOME_TONES[each.outcome] if state else "plain"),
        _delay(each.rtt),
        _loss(each.loss),
        _delay(each.server),
        _delay(each.ttft),
        Cell(cell_ms(each.floor_ms), distance),
        Cell(DASH if each.stretch is None else f"{each.stretch:.2f}"),
        _limits(each.limits),
    )


def _delay(delay: Delay) -> Cell:
    interval = words.interval(delay.p50_low_ms, delay.p50_high_ms)
    return Cell(cell_ms(delay.p50_ms), (interval,) if interval else ())


def _loss(loss: Loss) -> Cell:
    interval = words.ratio_interval(loss.low, loss.high)
    return Cell(cell_ratio(loss.ratio), (interval,) if interval else (), tone="warning" if loss.lost else "plain")


def _limits(limits: Sequence[LimitReport]) -> Cell:
    """How many limits are met, and which are not."""
    if not limits:
        return Cell(DASH)
    missed = [one for one in limits if one.missed]
    below = tuple(f"{'' if one.confidence == 'shown' else 'likely '}missed: {_label(one)}" for one in missed)
    return Cell(f"{len(limits) - len(missed)} of {len(limits)} met", below, tone="warning" if missed else "plain")


def _label(limit: LimitReport) -> str:
    """What a limit is on, as the reasons call it."""
    return LABELS.get(limit.metric) or clean(limit.metric)


# ---- differences ----------------------------------------------------------------------------------------------------

DIFFERENCE_COLUMNS = (
    Column("second / first"), Column("from", lead="from "),
    *(Column(name, number=True) for name in terms.METRICS.values()),
)  # fmt: skip

Row = tuple[str, str, str]


def _differences(differences: Sequence[Difference]) -> Iterator[Block]:
    """The table, with what chance alone would show said above it."""
    judged = [one for one in differences if _could_be_shown(one)]
    shown = sum(one.confidence == "shown" for one in judged)
    by_chance = float(f"{len(judged) / 100:.1g}")
    yield Paragraph(
        f"{shown} of {count(len(judged), 'difference')} shown, each for itself with 99 %: were there none at "
        f"all, chance would show about {by_chance:g} of them. How much more the second has than the "
        "first, in milliseconds, loss in percentage points, with the interval below.",
        "quiet",
    )
    rows: dict[Row, dict[str, Difference]] = {}
    for one in differences:
        rows.setdefault((one.second, one.first, one.vantage), {})[one.metric] = one
    kept = list(rows)
    if len(kept) > MOST_ROWS:
        kept = sorted(kept, key=lambda row: not any(one.matters for one in rows[row].values()))[:MOST_ROWS]
    table = [_row(row, rows[row]) for row in kept]
    yield _trimmed("How the candidates differ", DIFFERENCE_COLUMNS, table)
    if len(kept) < len(rows):
        yield Paragraph(f"{count(len(rows) - len(kept), 'more row')} in report.json; they tell less.", "quiet")


def _could_be_shown(one: Difference) -> bool:
    """Whether enough was measured of both: a median with an interval, or a loss."""
    return one.low is not None or (one.metric == "loss" and one.difference is not None)


def _row(row: Row, mine: Mapping[str, Difference]) -> tuple[Cell, ...]:
    second, first, vantage = row
    values = (_difference(mine[metric]) if metric in mine else Cell("") for metric in terms.METRICS)
    return (Cell(f"{clean(second)} / {clean(first)}"), Cell(clean(vantage)), *values)


def _difference(one: Difference) -> Cell:
    """What matters stands as a number; what does not, or is not shown, in words."""
    if one.difference is None:
        return Cell(DASH, ("not comparable",), tone="quiet")
    interval = "" if one.low is None or one.high is None else f"{_signed(one, one.low)} to {_signed(one, one.high)}"
    below = (interval,) if interval else ()
    if one.matters:
        return Cell(_signed(one, one.difference), below)
    if one.unit == "ms" and not interval:
        return Cell("too few samples", (_signed(one, one.difference),), tone="quiet")
    return Cell("too small to matter" if one.confidence == "shown" else "no difference shown", below, tone="quiet")


def _signed(one: Difference, value: float) -> str:
    """A difference with its sign."""
    size = cell_ms(abs(value)) if one.unit == "ms" else ratio(abs(value)).removesuffix(" %")
    return f"{'−' if value < 0 else '+' if value > 0 else ''}{size}"


def _trimmed(caption: str, columns: tuple[Column, ...], rows: Sequence[tuple[Cell, ...]]) -> Table:
    """The table without the columns in which nothing is said."""
    said = [index < KEPT or any(row[index].text not in {"", DASH} for row in rows) for index in range(len(columns))]
    return Table(
        caption=caption,
        columns=tuple(compress(columns, said)),
        rows=tuple(tuple(compress(row, said)) for row in rows),
    )
