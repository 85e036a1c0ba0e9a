"""Entries of the store → a table of plain text, the newest last, one line each, every name clean."""

from collections.abc import Sequence

from hopscope.model.past import EventEntry, RunEntry
from hopscope.render.words import clean

WIDTH = 160


def runs(entries: Sequence[RunEntry]) -> str:
    """When each run began, its status, and its verdict."""
    rows = [(one.started_at[:19] + "Z", one.status, one.outcome, one.id, clean(one.summary, WIDTH)) for one in entries]
    return _table(("started", "status", "outcome", "id", "verdict"), rows)


def events(entries: Sequence[EventEntry]) -> str:
    """When each alarm changed, how, and whether that was told."""
    rows = [
        (one.occurred_at[:19] + "Z", "" if one.told else "not told", one.run, clean(one.message, 2 * WIDTH))
        for one in entries
    ]
    return _table(("at", "", "run", "event"), rows)


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Columns two spaces apart; the last is as long as it likes."""
    widths = [max(len(row[index]) for row in (heads, *rows)) for index in range(len(heads) - 1)]
    lines = [
        "  ".join([*(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)), row[-1]])
        for row in (heads, *rows)
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)
