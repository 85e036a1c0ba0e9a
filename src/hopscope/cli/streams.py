"""Standard output and error as they may be found: closed, full, without a reader, in an encoding that lacks a letter.

The rule: whatever happens to them there is no traceback, and a reader who has gone (`| head`) changes no exit code.
"""

import io
import os
import sys
from collections.abc import Iterable

from hopscope.errors import CannotMeasureError

STANDARD = (0, 1, 2)


def mend() -> None:
    """Open what was closed, lest a socket or the tape become "standard output"; let no letter be unwritable."""
    for number in STANDARD:
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _nowhere() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.FileIO(os.open(os.devnull, os.O_WRONLY), "w"), encoding="utf-8")


def say(pieces: Iterable[str], *, utf8: bool = False) -> None:
    """Write on standard output; documents in UTF-8, text as the terminal reads it. Raises CannotMeasureError."""
    out = sys.stdout
    if utf8 and isinstance(out, io.TextIOWrapper):
        out.reconfigure(encoding="utf-8", errors="strict")
    try:
        for piece in pieces:
            out.write(piece)
        out.flush()
    except BrokenPipeError:
        leave()
    except OSError as error:
        leave()
        message = f"cannot write on standard output: {error.strerror}"
        raise CannotMeasureError(message, "free some space, or give a file with --out") from error


def tell(text: str) -> None:
    """Write on standard error, if anybody is there."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        return


def leave() -> None:
    """Nobody reads standard output any more: what is still in its buffer must not fail at the end of the process."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
