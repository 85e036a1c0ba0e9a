"""`hopscope report`: a tape rendered again, the same to the byte; and the schema of every JSON document."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope import __version__
from hopscope.cli import streams
from hopscope.cli.options import Format, JsonOption, OutFile, Quiet
from hopscope.errors import CannotMeasureError, TapeError, UsageError

if TYPE_CHECKING:
    from hopscope.model.report import Report
    from hopscope.model.sample import Book

REPORTS = Path("reports")


def report(
    run: Annotated[str | None, typer.Argument(metavar="RUN", help="Folder of a run, a tape, or a run's id.")] = None,
    *,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of every document.")] = False,
    format_: Annotated[Format | None, typer.Option("--format", help="Print this instead of rewriting files.")] = None,
    json: JsonOption = False,
    out: OutFile = None,
    quiet: Quiet = False,
) -> int:
    """Render a tape again: rewrites the files beside it and prints their paths; with --format prints one.

    Example: hopscope report reports/20261130T120000.000Z-example --format md
    """
    if schema:
        from hopscope.render.json import schema as made

        streams.say([made()], utf8=True)
        return 0
    if run is None:
        message = "report needs a run"
        raise UsageError(message, "give the folder of a run, or its run.jsonl")
    from hopscope.cli.output import exit_code, show

    path = tape_path(run)
    made_again = read(path)
    wanted = Format.json if json else format_
    if wanted is not None or out is not None:
        show(made_again, wanted or Format.text, out, quiet=quiet)
    else:
        streams.say(f"{written}\n" for written in write_documents(made_again, path.parent).values())
    return exit_code(made_again)


def tape_path(run: str) -> Path:
    """The tape that a folder, a file or an id names. Raises TapeError."""
    from hopscope.sinks import file

    for candidate in (Path(run) / file.TAPE_NAME, Path(run), REPORTS / run / file.TAPE_NAME):
        if candidate.is_file():
            return candidate
    message = f"no tape is at {run}"
    raise TapeError(message, f"give the folder of a run (it holds {file.TAPE_NAME}), or a tape")


def read(path: Path) -> "Report":
    """The report of a tape. Raises what `book_of` raises."""
    from hopscope.analysis import judge

    return judge.report(book_of(path), tool_version=__version__)


def book_of(path: Path) -> "Book":
    """What a tape holds. Raises TapeError, and CannotMeasureError for one that ends before anything was planned."""
    from hopscope import tape
    from hopscope.sinks import file

    try:
        book = tape.read(file.pieces_of(path), name=str(path))
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}"
        raise TapeError(message, "give a readable tape") from error
    if book.plan is None:
        message = f"{path} ends before its plan: the run was stopped before it measured anything"
        raise CannotMeasureError(message, "run again")
    return book


def write_documents(report: "Report", folder: Path) -> dict[str, Path]:
    """Write the report in every file format beside its tape; returns the paths. Raises CannotMeasureError."""
    from hopscope.render import RENDERERS
    from hopscope.sinks import file

    paths = {}
    for format_, name in file.DOCUMENTS.items():
        paths[format_] = folder / name
        file.document(paths[format_], RENDERERS[format_](report))
    return paths
