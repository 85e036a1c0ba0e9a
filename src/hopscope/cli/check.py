"""`hopscope check` and `hopscope history`: checks for cron, silent while nothing changed, and what they recorded."""

import os
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope import __version__
from hopscope.cli import signals, streams
from hopscope.cli.options import DEADLINE, BudgetOption, JsonOption, OutFolder, Quiet, Timeout

if TYPE_CHECKING:
    from hopscope.check import Checked, Due, Measure
    from hopscope.cli.session import Outcome
    from hopscope.model.past import PastEvents, PastRuns
    from hopscope.model.plan import Plan
    from hopscope.model.report import Report, Verdict

UNKNOWN = 3
LAST = 50
NANOSECONDS = 1_000_000_000


class CheckFormat(StrEnum):
    """Formats a check can print."""

    text = "text"
    json = "json"
    nagios = "nagios"


StoreOption = Annotated[
    str | None, typer.Option("--store", metavar="URL", help="The store, such as sqlite:///history.sqlite.")
]
Last = Annotated[int, typer.Option("--last", "-n", min=1, max=1_000_000, help="So many of the latest.")]

history = typer.Typer(name="history", help="Show what checks have recorded.", rich_markup_mode=None)


def check(
    file: Annotated[Path, typer.Argument(metavar="TARGETS.toml", help="Target file; see targets/example.toml.")],
    *,
    store: StoreOption = None,
    format_: Annotated[
        CheckFormat, typer.Option("--format", help="What to print; text prints only what changed.")
    ] = CheckFormat.text,
    json: JsonOption = False,
    always: Annotated[bool, typer.Option("--always", help="Say how things are though nothing changed.")] = False,
    out: OutFolder = None,
    quiet: Quiet = False,
    timeout: Timeout = DEADLINE,
    budget: BudgetOption = None,
) -> int:
    """Measure, record, and print one message when an alarm is raised and one when it clears; made for cron.

    Example: hopscope check targets/example.toml --format nagios
    """
    from hopscope import check as checking
    from hopscope import targets
    from hopscope.cli.runs import contents
    from hopscope.history.place import place

    found = contents(file)
    where = place(store or found.store_url, os.environ, url_env=found.store_url_env)
    plan = targets.plan(found, command="check", name=file.stem, deadline_ns=targets.duration(timeout), budget=budget)
    import secrets
    import socket

    due = checking.due(found, time.time_ns(), secrets.token_hex(3))
    time.sleep(checking.splay_ns(found, socket.gethostname()) / NANOSECONDS)
    ended: list[Outcome] = []
    measure = _measuring(ended, due, out, quiet=quiet)
    checked = checking.check(found, plan, due, where, measure=measure, clock=time.time_ns)
    wanted = CheckFormat.json if json else format_
    with signals.held():
        _say(checked, plan, wanted, always=always, quiet=quiet)
    return _code(checked, ended[0].signal, wanted)


def _measuring(ended: "list[Outcome]", due: "Due", out: Path | None, *, quiet: bool) -> "Measure":
    """The real measuring; with `out` tape and reports go into a folder of their own there."""

    def measuring(plan: "Plan") -> "Report":
        from hopscope.cli.reports import write_documents
        from hopscope.cli.session import measure
        from hopscope.sinks.file import TAPE_NAME, TapeFile

        if out is None:
            ended.append(measure(plan, quiet=quiet))
            return ended[0].report
        tape = TapeFile(out / due.id / TAPE_NAME)
        ended.append(measure(plan, write=tape.write, quiet=quiet))
        tape.close()
        write_documents(ended[0].report, out / due.id)
        return ended[0].report

    return measuring


def _say(checked: "Checked", plan: "Plan", format_: CheckFormat, *, always: bool, quiet: bool) -> None:
    """Print what is to be told: on change only, unless another format or `--always` wants it every time."""
    from hopscope.render import RENDERERS, message, nagios

    if checked.trouble is not None:
        advice = f"  → {checked.trouble.advice}\n" if checked.trouble.advice else ""
        streams.tell(f"hopscope: the run was not recorded: {checked.trouble}\n{advice}")
    match format_:
        case CheckFormat.json:
            streams.say(RENDERERS["json"](checked.report), utf8=True)
        case CheckFormat.nagios:
            streams.say([nagios.render(checked.report, plan.targets)])
        case CheckFormat.text:
            text = checked.message or (message.steady(checked.report) if always else "")
            if text:
                streams.say([text.partition("\n")[0] + "\n" if quiet else text])


def _code(checked: "Checked", signal: int | None, format_: CheckFormat) -> int:
    """The exit code; a plugin that came to no verdict has but one."""
    from hopscope.cli.output import exit_code

    if signal is not None and format_ is CheckFormat.nagios:
        return UNKNOWN
    return exit_code(checked.report, signal)


@history.command("runs")
def runs(*, store: StoreOption = None, last: Last = LAST, json: JsonOption = False) -> int:
    """List the latest runs, the newest last.

    Example: hopscope history runs --last 20
    """
    from hopscope.history.place import place
    from hopscope.history.query import runs as recorded
    from hopscope.model.past import PastRuns
    from hopscope.render import past

    found = tuple(recorded(place(store, os.environ), last))
    if not json:
        streams.say([past.runs(found)])
        return 0
    verdict = _listed(len(found), "run")
    _print(PastRuns(tool_version=__version__, command="history runs", partial=False, verdict=verdict, results=found))
    return 0


@history.command("events")
def events(*, store: StoreOption = None, last: Last = LAST, json: JsonOption = False) -> int:
    """List what alarms did, told or not, the newest last.

    Example: hopscope history events --json
    """
    from hopscope.history.place import place
    from hopscope.history.query import events as recorded
    from hopscope.model.past import PastEvents
    from hopscope.render import past

    found = tuple(recorded(place(store, os.environ), last))
    if not json:
        streams.say([past.events(found)])
        return 0
    verdict = _listed(len(found), "event")
    _print(
        PastEvents(tool_version=__version__, command="history events", partial=False, verdict=verdict, results=found)
    )
    return 0


def _listed(number: int, what: str) -> "Verdict":
    """The verdict of a list: it is one."""
    from hopscope.analysis.say import count
    from hopscope.model.report import Verdict

    return Verdict(status="ok", summary=f"{count(number, what)} of the store.", findings=())


def _print(document: "PastRuns | PastEvents") -> None:
    from hopscope.render.json import render

    with signals.held():
        streams.say(render(document), utf8=True)
