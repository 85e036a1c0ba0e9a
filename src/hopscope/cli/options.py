"""Options that several commands share, worded once.

Every command pays for what is imported here: heavy rooms are imported where they are used.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from hopscope.errors import UsageError

DEADLINE = "5m"


class Format(StrEnum):
    """Formats a command can print."""

    text = "text"
    md = "md"
    html = "html"
    json = "json"
    csv = "csv"


FormatOption = Annotated[Format, typer.Option("--format", help="What to print.", show_default=True)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document (the same as --format json).")]
OutFile = Annotated[Path | None, typer.Option("--out", help="Write the document to this file instead.")]
OutFolder = Annotated[Path | None, typer.Option("--out", help="Folder for tape and reports.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="One line only.")]
Timeout = Annotated[str, typer.Option("--timeout", metavar="DURATION", help="Deadline of the whole run.")]
BudgetOption = Annotated[
    str | None, typer.Option("--budget", metavar="NAME", help="Hold the results against this budget (chat, agents …).")
]
Family4 = Annotated[bool, typer.Option("-4", help="IPv4 only.")]
Family6 = Annotated[bool, typer.Option("-6", help="IPv6 only.")]
Count = Annotated[int | None, typer.Option("-c", "--count", min=1, max=10_000_000, help="Counted probes or rounds.")]
Interval = Annotated[
    str | None, typer.Option("-i", "--interval", metavar="DURATION", help="Time between them, as 200ms or 1s.")
]
Source = Annotated[str | None, typer.Option("--source", help="Send from this address.")]
Interface = Annotated[str | None, typer.Option("--interface", help="Send through this interface.")]


def chosen(format_: Format, *, json: bool) -> Format:
    """`--json` is `--format json`."""
    return Format.json if json else format_


def family(*, four: bool, six: bool) -> Literal[4, 6] | None:
    """4, 6 or either. Raises UsageError for both."""
    if four and six:
        message = "-4 and -6 exclude each other"
        raise UsageError(message, "leave both out to take whatever the name has")
    return 4 if four else 6 if six else None


def interval_ns(text: str | None, default_ns: int) -> int:
    """An interval given as text. Raises UsageError."""
    from hopscope import targets

    return default_ns if text is None else targets.duration(text)
