"""What a document for people is made of, before anybody decides how it looks.

`outline` makes these values from a report and the writers (terminal, Markdown, HTML) draw them, so all three say the
same in the same order. Every text in a block is clean (`words.clean`) and is no markup of any kind: a writer escapes
it for its own format.
"""

from typing import Literal

from msgspec import Struct

Tone = Literal["plain", "strong", "quiet", "ok", "info", "warning", "unknown", "critical"]


class Banner(Struct, frozen=True, kw_only=True):
    """The verdict: what everything else stands under."""

    tone: Tone
    status: str
    sentence: str
    notes: tuple[str, ...]


class Heading(Struct, frozen=True):
    """Opens a section."""

    text: str


class Paragraph(Struct, frozen=True):
    """One or more sentences."""

    text: str
    tone: Tone = "plain"


class Field(Struct, frozen=True):
    """A named part of a card; the next step is strong, the numbers quiet."""

    name: str
    text: str
    tone: Tone = "plain"


class Card(Struct, frozen=True, kw_only=True):
    """A finding or a failure: `badge` is its severity in words, `about` says which target and from where."""

    tone: Tone
    badge: str
    title: str
    about: str
    fields: tuple[Field, ...]


class Items(Struct, frozen=True):
    """A list of short remarks."""

    items: tuple[str, ...]
    tone: Tone = "plain"


class Cell(Struct, frozen=True):
    """One cell: its text, and smaller lines below it (an interval, an address, an owner)."""

    text: str
    below: tuple[str, ...] = ()
    tone: Tone = "plain"


class Column(Struct, frozen=True):
    """One column. Columns of numbers stand on the right and are never broken.

    A text column that finds no room of its own is told below its neighbour, with `lead` in front; a table that is
    too wide all the same goes on below itself, by choice at a column that `opens` a group.
    """

    title: str
    number: bool = False
    lead: str = ""
    opens: bool = False


class Table(Struct, frozen=True, kw_only=True):
    """Rows of cells; the first cell of a row names it."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


class Dot(Struct, frozen=True, kw_only=True):
    """Probes of a series that follow each other: one, or as many as a long series has for each dot.

    Delays are of those that were answered; `at` is when the first was sent, in milliseconds of UNIX time.
    """

    at: int
    sent: int
    lost: int
    min_ms: float | None
    p50_ms: float | None
    max_ms: float | None


class Line(Struct, frozen=True):
    """One series: its name, how many were lost in words, and its dots in order of time."""

    name: str
    told: str
    dots: tuple[Dot, ...]


class OverTime(Struct, frozen=True):
    """Round trips of several series over one axis of time, with what was lost."""

    lines: tuple[Line, ...]


class Rung(Struct, frozen=True, kw_only=True):
    """One hop, or several silent ones: `told` is what stands out; a delay is `None` where nobody answered."""

    name: str
    told: str
    tone: Tone
    min_ms: float | None = None
    p50_ms: float | None = None
    p95_ms: float | None = None


class Ladder(Struct, frozen=True):
    """The hops of a path, the nearest first."""

    rungs: tuple[Rung, ...]


class Span(Struct, frozen=True, kw_only=True):
    """A part of a request: from when to when, counted from its begin; past `least_ms` it may have ended already."""

    name: str
    told: str
    kind: Literal["network", "wait", "server"]
    begin_ms: float
    end_ms: float
    least_ms: float | None = None


class Steps(Struct, frozen=True):
    """The parts of one request in the order of time."""

    name: str
    told: str
    spans: tuple[Span, ...]


class Waterfall(Struct, frozen=True):
    """Requests below each other, over one axis of time that begins with each of them."""

    requests: tuple[Steps, ...]


Picture = OverTime | Ladder | Waterfall


class Chart(Struct, frozen=True, kw_only=True):
    """A picture: `told` is for whoever cannot see it, `legend` says how to read it, `note` what it leaves out.

    `table` stands in where it is not drawn; it is `None` where a table beside the chart holds the same numbers.
    """

    caption: str
    told: str
    picture: Picture
    legend: str = ""
    note: str = ""
    table: Table | None = None


Block = Heading | Paragraph | Card | Items | Table | Chart


class Document(Struct, frozen=True, kw_only=True):
    """All of it, in reading order."""

    title: str
    banner: Banner
    blocks: tuple[Block, ...]
