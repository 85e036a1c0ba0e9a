"""Where the command line begins and ends: commands, exit codes, and one document on standard output with `--json`.

Mistakes become one clear line and their code; nothing else reaches a user, least of all a traceback (`-vv` shows it).
"""

import errno
from collections.abc import Sequence

import typer
from typer.exceptions import TyperException

from hopscope import __version__
from hopscope.cli import agent, check, compare, demo, diagnose, measure, reports, runs, signals, streams, vantage
from hopscope.cli.signals import InterruptedCommandError
from hopscope.errors import CannotMeasureError, HopscopeError, UsageError

BUG = 70
INTERRUPTED = 130
SIGNALLED = 128
MESSAGE_LENGTH = 4000

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
app.command("stream")(measure.stream)
app.command("diagnose")(diagnose.diagnose)
app.command("check")(check.check)
app.command("compare")(compare.compare)
app.command("report")(reports.report)
app.command("demo")(demo.demo)
app.command("agent")(agent.agent)
app.add_typer(check.history)
app.add_typer(vantage.app)


def main_inner(arguments: Sequence[str]) -> int:
    """Run a command line; returns the exit code. Without a word it shows the help, as a usage error."""
    streams.mend()
    if not arguments:
        main_inner(["--help"])
        return UsageError.exit_code
    try:
        signals.release()
        _refuse_bytes(arguments)
        code: object = typer.main.get_command(app).main(list(arguments), prog_name="hopscope", standalone_mode=False)
    except (Exception, InterruptedCommandError, KeyboardInterrupt) as error:  # noqa: BLE001 - no traceback reaches a user
        return ended(arguments, error)
    except SystemExit:
        return 0  # typer's way of saying that whoever read the help has gone
    return code if isinstance(code, int) else 0


def ended(arguments: Sequence[str], error: BaseException) -> int:
    """Say why a command ended before its time; returns the exit code."""
    match error:
        case HopscopeError():
            return _mistake(arguments, str(error), error.advice, error.exit_code)
        case TyperException():
            return _mistake(arguments, error.format_message(), f"see {_help_line(arguments)}", UsageError.exit_code)
        case InterruptedCommandError():
            return _mistake(arguments, "interrupted before there was a result", "", SIGNALLED + error.number)
        case typer.Abort() | KeyboardInterrupt():
            return INTERRUPTED
        case OSError(errno=errno.ENOSPC):
            streams.leave()
            return _mistake(arguments, f"cannot write: {error}", "free some space", CannotMeasureError.exit_code)
        case _:
            if any(word.startswith("-vv") for word in arguments):
                import traceback

                streams.tell("".join(traceback.format_exception(error)))
            why = f"bug: {type(error).__name__}: {error}"
            return _mistake(arguments, why, "please report this; -vv shows where", BUG)


def _refuse_bytes(arguments: Sequence[str]) -> None:
    """Arguments are text: what is not UTF-8 could stand in no document. Raises UsageError."""
    for word in arguments:
        if any("\ud800" <= character <= "\udfff" for character in word):
            message = f"{word.encode('utf-8', 'surrogateescape')!r} is not UTF-8 text"
            raise UsageError(message, "rename the file, or write the name in UTF-8")


def _help_line(arguments: Sequence[str]) -> str:
    """The command that explains the one that was tried."""
    known = {command.name for command in app.registered_commands}
    name = next((word for word in arguments if word in known), None)
    return f"hopscope {name} --help" if name is not None else "hopscope --help"


def _mistake(arguments: Sequence[str], message: str, advice: str, code: int) -> int:
    """Say what is wrong on standard error, and as a document where one was asked for."""
    streams.tell(f"hopscope: {_clean(message)}\n" + (f"  → {_clean(advice)}\n" if advice else ""))
    if wants(arguments, "nagios"):
        from hopscope.render.nagios import trouble

        streams.say([trouble(message)])
        return CannotMeasureError.exit_code
    if wants_json(arguments):
        from hopscope.cli.output import mistake_document

        streams.say([mistake_document(arguments, message, advice, code)], utf8=True)
    return code


def _clean(text: str) -> str:
    """Lines as a terminal may show them: a message can quote files and peers of others."""
    from hopscope.render.words import clean

    return "\n".join(clean(line, MESSAGE_LENGTH) for line in text.split("\n"))


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for JSON, however broken the rest of it is."""
    return "--json" in arguments or wants(arguments, "json")


def wants(arguments: Sequence[str], format_: str) -> bool:
    """Whether a command line asks for a format."""
    pairs = zip(arguments, [*arguments[1:], ""], strict=False)
    return any(word == f"--format={format_}" or (word == "--format" and value == format_) for word, value in pairs)
