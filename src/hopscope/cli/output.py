"""What a command prints and how it ends: one report, one format, one exit code (`interface.md`)."""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from hopscope import __version__
from hopscope.cli import signals, streams
from hopscope.cli.options import Format
from hopscope.errors import HopscopeError, UsageError
from hopscope.model.report import FailureReport, Report, Status, Verdict
from hopscope.render import RENDERERS
from hopscope.sinks import file

EXIT_CODES: dict[Status, int] = {"ok": 0, "warning": 1, "unknown": 3, "critical": 2}
SIGNALLED = 128
KINDS: dict[int, Literal["bug", "usage"]] = {HopscopeError.exit_code: "bug", UsageError.exit_code: "usage"}
NARROWEST, WIDEST = 60, 160


def exit_code(report: Report, signal: int | None = None) -> int:
    """The exit code of a report, or of the signal that ended the run."""
    return SIGNALLED + signal if signal is not None else EXIT_CODES[report.verdict.status]


def show(report: Report, format_: Format, out: Path | None, *, quiet: bool = False, brief: bool = False) -> None:
    """Print the report on standard output, or write it to a file and print nothing.

    `brief`: a text may leave out the numbers that the files beside it hold.
    """
    if out is not None:
        file.document(out, RENDERERS[format_](report))
        return
    if format_ is Format.text:
        streams.say([_headline(report) if quiet else on_terminal(report, brief=brief)])
        return
    with signals.held():
        streams.say(RENDERERS[format_](report), utf8=True)


def _headline(report: Report) -> str:
    from hopscope.render.words import clean

    return f"{report.verdict.status}: {clean(report.verdict.summary, 2000)}\n"


def on_terminal(report: Report, *, brief: bool = False) -> str:
    """The report as a terminal shows it, in its width and, where it may, in colour."""
    from hopscope.render import terminal

    width = min(max(shutil.get_terminal_size((100, 24)).columns, NARROWEST), WIDEST)
    return terminal.render(report, width=width, colour=colourful(), brief=brief)


def colourful() -> bool:
    """Colour only on a terminal, and not where NO_COLOR or a dumb terminal says otherwise."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def mistake_document(arguments: Sequence[str], message: str, advice: str, code: int) -> str:
    """The JSON document of a command that did not come to measuring."""
    command = next((word for word in arguments if not word.startswith("-")), "")
    failure = FailureReport(
        kind=KINDS.get(code, "skipped"),
        target=None,
        vantage=None,
        why=message,
        advice=advice,
    )
    report = Report(
        tool_version=__version__,
        command=command,
        started_at=None,
        finished_at=None,
        partial=True,
        vantages=(),
        targets=(),
        verdict=Verdict(status="unknown", summary=f"Nothing was measured: {message}", findings=()),
        results=(),
        failures=(failure,),
    )
    return "".join(RENDERERS["json"](report))
