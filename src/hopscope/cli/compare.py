"""`hopscope compare`: candidates ranked, measured now from a target file or read from the tapes of earlier runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope import __version__
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
from hopscope.errors import UsageError

if TYPE_CHECKING:
    from hopscope.analysis.pooling import Pooled
    from hopscope.model.plan import Plan

SUFFIX = ".toml"
LEAST_CANDIDATES = 2


def compare(
    what: Annotated[list[str], typer.Argument(metavar="TARGETS.toml|RUN…", help="A target file, or runs to read.")],
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
    """Rank candidates over places by their budget: which to buy, which to ask about, which to avoid, and why.

    A target file is measured now; runs are read, and nothing is sent. Example: hopscope compare targets/example.toml
    """
    files = [text for text in what if text.lower().endswith(SUFFIX)]
    wanted = chosen(format_, json=json)
    if not files:
        if timeout != DEADLINE:
            raise UsageError("--timeout is for measuring, and runs are only read", "leave it out")
        return _read(what, tuple(only or ()), tuple(from_ or ()), budget, out, wanted, quiet=quiet)
    if len(what) > 1:
        message = "compare takes one target file, or runs"
        raise UsageError(message, "put all candidates into one file, or run each file and compare the runs")
    from hopscope import targets
    from hopscope.cli.runs import carried_out, contents

    file = Path(what[0])
    plan = targets.plan(
        contents(file),
        command="compare",
        name=file.stem,
        only=tuple(only or ()),
        vantages=tuple(from_ or ()),
        deadline_ns=targets.duration(timeout),
        budget=budget,
    )
    _refuse_one(plan, f"write a second [[target]] into {file}")
    return carried_out(plan, out, wanted, quiet=quiet)


def _refuse_one(plan: "Plan", remedy: str) -> None:
    """One candidate alone cannot be ranked. Raises UsageError."""
    if len(plan.targets) < LEAST_CANDIDATES:
        names = ", ".join(target.name for target in plan.targets) or "none"
        message = f"compare needs two candidates at least, and there is {names}"
        raise UsageError(message, f"{remedy}, or name more with --only")


def _read(
    runs: list[str],
    only: tuple[str, ...],
    vantages: tuple[str, ...],
    budget: str | None,
    out: Path | None,
    format_: Format,
    *,
    quiet: bool,
) -> int:
    """Compare what was measured before. Raises TapeError, UsageError."""
    from hopscope.analysis import pooling
    from hopscope.cli.output import exit_code, show
    from hopscope.cli.reports import book_of, tape_path, write_documents

    books = [book_of(tape_path(run)) for run in runs]
    pool = pooling.narrowed(pooling.pooled(books), only=only, vantages=vantages)
    if budget is not None:
        pool = _held_against(pool, budget)
    if pool.book.plan is not None:
        _refuse_one(pool.book.plan, "give a run with another target")
    _refuse_tape(out)
    report = pooling.report(pool, tool_version=__version__)
    if out is not None:
        paths = write_documents(report, out)
        streams.tell(f"report: {paths['html']}\n")
    show(report, format_, None, quiet=quiet)
    return exit_code(report)


def _held_against(pool: "Pooled", name: str) -> "Pooled":
    """The pool with every target's budget replaced. Raises UsageError."""
    from hopscope import targets
    from hopscope.analysis import pooling

    return pooling.limited(pool, name, targets.budget(name))


def _refuse_tape(out: Path | None) -> None:
    """A run's own reports are its tape's: a comparison does not replace them. Raises UsageError."""
    from hopscope.sinks.file import TAPE_NAME

    if out is not None and (out / TAPE_NAME).exists():
        message = f"{out / TAPE_NAME} is there already"
        raise UsageError(message, "give another folder with --out")
