"""`hopscope agent`: the far end of ssh and exec vantages; people start it by `hopscope vantage test`, never by hand.

It is started once a run and place, so it starts without what only people at a command line need.
"""

import os
import signal
import sys

from hopscope.cli import signals, streams
from hopscope.errors import UsageError

WORDS = ["agent"]


def agent() -> int:
    """Run tasks for a hopscope elsewhere: orders on standard input, tape on standard output.

    Example: hopscope agent < orders.jsonl
    """
    from hopscope.vantages.agent import serve

    if sys.stdin.isatty():
        message = "an agent takes its orders from a hopscope elsewhere, not from a terminal"
        raise UsageError(message, "run hopscope vantage test TARGETS.toml, which starts it where it belongs")
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    tape = os.dup(1)
    os.dup2(2, 1)  # whatever else is printed must not get between the records
    serve(0, tape, _end_after)
    return 0


def alone() -> int:
    """The command without the command line around it, which takes as long to start as the agent itself."""
    streams.mend()
    try:
        signals.release()
        code = agent()
    except BaseException as error:  # noqa: BLE001 - told by the command line, like any other command's
        from hopscope.cli.app import ended

        return ended(WORDS, error)
    os._exit(code)  # all is written and closed; to take the interpreter apart would only keep its controller waiting


def _end_after(seconds: float) -> None:
    """The system ends this process then, even if it is stuck."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
