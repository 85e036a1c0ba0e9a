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


Block = Heading | Paragraph | Card | Items | Table


class Document(Struct, frozen=True, kw_only=True):
    """All of it, in reading order."""

    title: str
    banner: Banner
    blocks: tuple[Block, ...]
