"""Where the command line begins and ends: commands, exit codes, and one document on standard output with `--json`.

Mistakes become one clear line and their code; nothing else reaches a user, least of all a traceback (`-vv` shows it).
"""

import os
import sys
import traceback
from collections.abc import Sequence

import typer
from typer.exceptions import TyperException

from hopscope import __version__
from hopscope.cli import demo, measure, reports, runs
from hopscope.cli.output import mistake_document
from hopscope.errors import HopscopeError, UsageError

BUG = 70
INTERRUPTED = 130

app = typer.Typer(
    name="hopscope",
    help="Is it the network or the server, at which hop, whose hop is it, and what to do next.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: hopscope run targets/example.toml    ·    hopscope ping gpu1.example.net --tcp 443",
)


def _version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(f"hopscope {__version__}")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_version, is_eager=True),
    verbose: int = typer.Option(0, "-v", count=True, help="Say more; -vv shows where a bug happened."),
) -> None:
    """Is it the network or the server, at which hop, whose hop is it, and what to do next."""
    del version, verbose


app.command("run")(runs.run)
app.command("ping")(measure.ping)
app.command("trace")(measure.trace)
app.command("http")(measure.http)
app.command("report")(reports.report)
app.command("demo")(demo.demo)


def main_inner(arguments: Sequence[str]) -> int:
    """Run a command line; returns the exit code. Without a word it shows the help, as a usage error."""
    if not arguments:
        main_inner(["--help"])
        return UsageError.exit_code
    try:
        code: object = typer.main.get_command(app).main(list(arguments), prog_name="hopscope", standalone_mode=False)
    except HopscopeError as error:
        return _mistake(arguments, str(error), error.advice, error.exit_code)
    except TyperException as error:
        return _mistake(arguments, error.format_message(), f"see {_help_line(arguments)}", UsageError.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone (`hopscope … | head`): nothing is left to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001 - the last line of defence: no traceback reaches a user
        if any(word.startswith("-vv") for word in arguments):
            traceback.print_exc()
        return _mistake(arguments, f"bug: {type(error).__name__}: {error}", "please report this; -vv shows where", BUG)
    return code if isinstance(code, int) else 0


def _help_line(arguments: Sequence[str]) -> str:
    """The command that explains the one that was tried."""
    known = {command.name for command in app.registered_commands}
    name = next((word for word in arguments if word in known), None)
    return f"hopscope {name} --help" if name is not None else "hopscope --help"


def _mistake(arguments: Sequence[str], message: str, advice: str, code: int) -> int:
    """Say what is wrong on standard error, and as a document where one was asked for."""
    typer.echo(f"hopscope: {message}" + (f"\n  → {advice}" if advice else ""), err=True)
    if wants_json(arguments):
        typer.echo(mistake_document(arguments, message, advice, code), nl=False)
    return code


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for JSON, however broken the rest of it is."""
    pairs = zip(arguments, [*arguments[1:], ""], strict=False)
    return any(word in {"--json", "--format=json"} or (word == "--format" and value == "json") for word, value in pairs)
