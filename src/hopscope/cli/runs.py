"""`hopscope run`: the main job, from a target file to tape, reports and verdict."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope.cli import streams
from hopscope.cli.options import (
    DEADLINE,
    BudgetOption,
    Format,
    FormatOption,
    JsonOption,
    OutFolder,
    Quiet,
    Timeout,
    chosen,
)
from hopscope.errors import TargetFileError

if TYPE_CHECKING:
    from hopscope.model.plan import Plan
    from hopscope.targets import TargetFile

REPORTS = Path("reports")
MEND = "mend the file; targets/example.toml shows every key"


def run(
    file: Annotated[Path, typer.Argument(metavar="TARGETS.toml", help="Target file; see targets/example.toml.")],
    *,
    only: Annotated[list[str] | None, typer.Option("--only", metavar="NAME", help="Only this target.")] = None,
    from_: Annotated[list[str] | None, typer.Option("--from", metavar="VANTAGE", help="Only from here.")] = None,
    out: OutFolder = None,
    format_: FormatOption = Format.text,
    json: JsonOption = False,
    quiet: Quiet = False,
    timeout: Timeout = DEADLINE,
    budget: BudgetOption = None,
) -> int:
    """Measure every target of a file from every vantage; write tape and reports; print the verdict.

    Example: hopscope run targets/example.toml --only fra-h100
    """
    from hopscope import targets

    plan = targets.plan(
        contents(file),
        command="run",
        name=file.stem,
        only=tuple(only or ()),
        vantages=tuple(from_ or ()),
        deadline_ns=targets.duration(timeout),
        budget=budget,
    )
    return carried_out(plan, out, chosen(format_, json=json), quiet=quiet)


def carried_out(plan: "Plan", out: Path | None, format_: Format, *, quiet: bool) -> int:
    """Run a plan with tape and reports in a folder, print the verdict; returns the exit code."""
    from hopscope.cli.output import exit_code, show
    from hopscope.cli.reports import write_documents
    from hopscope.cli.session import measure
    from hopscope.sinks.file import TAPE_NAME, TapeFile

    folder = out if out is not None else REPORTS / folder_name(plan.name, datetime.now(UTC))
    tape = TapeFile(folder / TAPE_NAME)
    outcome = measure(plan, write=tape.write, quiet=quiet)
    tape.close()
    paths = write_documents(outcome.report, folder)
    show(outcome.report, format_, None, quiet=quiet, brief=len(plan.vantages) > 1)
    streams.tell(f"report: {paths['html']}\n")
    return exit_code(outcome.report, outcome.signal)


def contents(file: Path) -> "TargetFile":
    """What a target file says. Raises TargetFileError."""
    from hopscope import targets

    try:
        return targets.read(text_of(file), file=str(file))
    except TargetFileError as error:
        raise TargetFileError(str(error), error.advice or MEND) from error


def text_of(file: Path) -> str:
    """The text of a target file. Raises TargetFileError with the reason and the remedy."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        message = f"{file}: not UTF-8 text (byte {error.start})"
        raise TargetFileError(message, "save the file as UTF-8") from error
    except OSError as error:
        message = f"{file}: {error.strerror}"
        raise TargetFileError(message, "give a readable target file; targets/example.toml shows one") from error


def folder_name(name: str, at: datetime) -> str:
    """`20261130T120000Z-name`, in characters that are safe everywhere."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:60] or "run"
    return f"{at:%Y%m%dT%H%M%S}.{at.microsecond // 1000:03d}Z-{safe}"
