"""`hopscope agent`: the far end of ssh and exec vantages; people start it by `hopscope vantage test`, never by hand."""

import os
import signal
import sys

from hopscope.errors import UsageError


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


def _end_after(seconds: float) -> None:
    """The system ends this process then, even if it is stuck."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
