"""A plan run from the command line: progress on a terminal, the report, and how it ended."""

import os
import sys
import time
from collections.abc import Callable

from msgspec import Struct

from hopscope import __version__
from hopscope.analysis import judge
from hopscope.model.plan import Plan
from hopscope.model.record import Begin, Done, Exchange, Probe, Record, Streamed
from hopscope.model.report import Report
from hopscope.run import Write, run

REFRESH_S = 0.25


class Outcome(Struct, frozen=True):
    """The report of a run and the signal that ended it, if one did."""

    report: Report
    signal: int | None


def measure(plan: Plan, *, write: Write | None = None, quiet: bool = False) -> Outcome:
    """Run a plan and judge it. Raises CannotMeasureError when the tape cannot be written."""
    progress = Progress(sys.stderr.write) if not quiet and sys.stderr.isatty() else None
    ended = run(
        plan,
        environ=os.environ,
        write=write if write is not None else _nowhere,
        listen=progress.see if progress is not None else None,
    )
    if progress is not None:
        progress.clear()
    return Outcome(judge.report(ended.book, tool_version=__version__), ended.signal)


def _nowhere(line: bytes) -> None:
    del line


class Progress:
    """One line on a terminal, rewritten a few times a second: what runs, and how much has come."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._running: dict[int, str] = {}
        self._probes = 0
        self._requests = 0
        self._shown = 0.0

    def see(self, record: Record) -> None:
        """Take note of a record."""
        match record:
            case Begin():
                self._running[record.id] = str(record.task.__struct_config__.tag)
            case Done():
                self._running.pop(record.task, None)
            case Probe():
                self._probes += 1
            case Exchange() | Streamed():
                self._requests += 1
            case _:
                return
        now = time.monotonic()
        if now - self._shown >= REFRESH_S:
            self._shown = now
            kinds = ", ".join(sorted(set(self._running.values())))
            self._write(f"\r\x1b[Kmeasuring: {kinds} · {self._probes} probes · {self._requests} requests")
            sys.stderr.flush()

    def clear(self) -> None:
        """Remove the line."""
        self._write("\r\x1b[K")
        sys.stderr.flush()
