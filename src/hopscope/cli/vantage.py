"""`hopscope vantage list` and `hopscope vantage test`: the places of a target file, and whether each of them works."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope.cli import streams
from hopscope.cli.options import JsonOption

if TYPE_CHECKING:
    from hopscope.model.plan import Plan, Vantage
    from hopscope.model.report import Report, Status
    from hopscope.vantages.trial import Trial

DEADLINE = "45s"

File = Annotated[Path, typer.Argument(metavar="TARGETS.toml", help="Target file; see targets/example.toml.")]

app = typer.Typer(
    name="vantage",
    help="Places to measure from: which there are, and whether each of them works.",
    rich_markup_mode=None,
    no_args_is_help=True,
)


@app.command("list")
def list_(file: File, *, json: JsonOption = False) -> int:
    """Say which places a target file measures from. Starts nothing.

    Example: hopscope vantage list targets/example.toml
    """
    plan = _plan(file, ())
    if json:
        _say_document(_document("vantage list", plan, (), status="ok", summary=f"{len(plan.vantages)} vantages"))
    else:
        streams.say(f"{_line(vantage)}\n" for vantage in plan.vantages)
    return 0


@app.command("test")
def try_(
    file: File,
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME…]", help="Only these vantages.")] = None,
    *,
    json: JsonOption = False,
    timeout: Annotated[str, typer.Option("--timeout", metavar="DURATION", help="For each of them.")] = DEADLINE,
) -> int:
    """Open every place, let it ping itself, and say what does not work and how to mend it.

    Example: hopscope vantage test targets/example.toml ams
    """
    from hopscope import targets
    from hopscope.cli.output import EXIT_CODES
    from hopscope.vantages.trial import try_all

    plan = _plan(file, tuple(names or ()))
    trials = try_all(plan.vantages, os.environ, targets.duration(timeout))
    usable = sum(not trial.down for trial in trials)
    status: Status = "ok" if usable == len(trials) else "warning" if usable >= plan.quorum else "unknown"
    if json:
        summary = f"{usable} of {len(trials)} vantages work; the quorum is {plan.quorum}"
        _say_document(_document("vantage test", plan, trials, status=status, summary=summary))
    else:
        streams.say(line for trial in trials for line in _lines(trial))
    return EXIT_CODES[status]


def _plan(file: Path, names: tuple[str, ...]) -> "Plan":
    """The vantages of a file, by name if there are names. Raises TargetFileError, UsageError."""
    from hopscope import targets
    from hopscope.cli.runs import contents

    return targets.plan(
        contents(file), command="vantage", name=file.stem, vantages=names, deadline_ns=targets.duration(DEADLINE)
    )


def _line(vantage: "Vantage") -> str:
    from hopscope.render.words import clean

    where = vantage.settings.get("host") or vantage.settings.get("command") or vantage.settings.get("path") or ""
    words = " ".join(where) if isinstance(where, list) else str(where)
    return f"{clean(vantage.name, 60)} ({vantage.kind}) {clean(words, 200)}".rstrip()


def _lines(trial: "Trial") -> list[str]:
    """What a person reads of one vantage."""
    from hopscope.render.words import clean

    how = "does not work" if trial.down else "works"
    lines = [" · ".join((f"{_line(trial.vantage)}: {how}", *(clean(fact, 200) for fact in trial.facts)))]
    for failure in trial.failures:
        lines += [f"  {clean(failure.why, 2000)}", f"  → {clean(failure.advice, 2000)}"]
    return [f"{line}\n" for line in lines]


def _document(command: str, plan: "Plan", trials: "tuple[Trial, ...]", *, status: "Status", summary: str) -> "Report":
    """The JSON document: vantages and failures, no results."""
    from hopscope import __version__
    from hopscope.model.report import FailureReport, Report, VantageReport, Verdict

    failures = tuple(
        FailureReport(kind=one.kind, target=None, vantage=one.vantage, why=one.why, advice=one.advice)
        for trial in trials
        for one in trial.failures
    )
    down = {trial.vantage.name: trial.failures[0].why for trial in trials if trial.down}
    return Report(
        tool_version=__version__,
        command=command,
        started_at=None,
        finished_at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        partial=False,
        vantages=tuple(
            VantageReport(
                name=one.name,
                kind=one.kind,
                site=one.site,
                outcome="vantage-failed" if one.name in down else "ok" if trials else "skipped",
                why=down.get(one.name, None if trials else "not tried"),
            )
            for one in plan.vantages
        ),
        targets=(),
        verdict=Verdict(status=status, summary=summary, findings=()),
        results=(),
        failures=failures,
    )


def _say_document(report: "Report") -> None:
    from hopscope.render import RENDERERS

    streams.say(RENDERERS["json"](report), utf8=True)
