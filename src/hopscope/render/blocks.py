"""What a document for people is made of, before anybody decides how it looks.

`outline` makes these values from a report and the writers (terminal, Markdown, HTML) draw them, so all three say the
same in the same order. Every text in a block is clean (`words.clean`) and is no markup of any kind: a writer escapes
it for its own format.
"""

from dataclasses import dataclass
from typing import Literal

Tone = Literal["plain", "strong", "quiet", "ok", "info", "warning", "unknown", "critical"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Banner:
    """The verdict: what everything else stands under."""

    tone: Tone
    status: str
    sentence: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """Opens a section."""

    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One or more sentences."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Field:
    """A named part of a card; the next step is strong, the numbers quiet."""

    name: str
    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A finding or a failure: `badge` is its severity in words, `about` says which target and from where."""

    tone: Tone
    badge: str
    title: str
    about: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """A list of short remarks."""

    items: tuple[str, ...]
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its text, and smaller lines below it (an interval, an address, an owner)."""

    text: str
    below: tuple[str, ...] = ()
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Column:
    """One column. Columns of numbers stand on the right and are never broken.

    A text column that finds no room of its own is told below its neighbour, with `lead` in front; a table that is
    too wide all the same goes on below itself, by choice at a column that `opens` a group.
    """

    title: str
    number: bool = False
    lead: str = ""
    opens: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of cells; the first cell of a row names it."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


Block = Heading | Paragraph | Card | Items | Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """All of it, in reading order."""

    title: str
    banner: Banner
    blocks: tuple[Block, ...]
