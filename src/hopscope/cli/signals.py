"""Ctrl-C and a polite kill outside a run (inside one, `run` hears them itself): an exception with the signal's number.

Nothing heavy is imported here: this stands before everything else, so that no moment of a command shows a traceback.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

IMPORTING = "<frozen importlib"
AGAIN_S = 0.005
HEARD = (signal.SIGINT, signal.SIGTERM)


class InterruptedCommandError(BaseException):
    """A signal came. Not an Exception: nothing but the end of the command is to catch it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _Pending:
    """The first signal that came while nothing could be told yet."""

    number: int | None = None


def arm() -> None:
    """Take the signals; they are only noted until `release`, for an import must not be torn apart."""
    _set(_note)


def release() -> None:
    """From now on a signal raises InterruptedCommandError wherever the command is; one that was noted does so here."""
    if signal.getsignal(signal.SIGINT) is not _note and signal.getsignal(signal.SIGTERM) is not _note:
        return  # nobody armed: the program is a guest in another process
    _set(_raise)
    if _Pending.number is not None:
        raise InterruptedCommandError(_Pending.number)


def ignore() -> None:
    """The command is over and its code is known: no signal changes it any more."""
    _set(signal.SIG_IGN)


def _set(handler: signal.Handlers | Callable[[int, FrameType | None], None]) -> None:
    for number in HEARD:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup and `&` of a shell want it ignored
            signal.signal(number, handler)


def _note(number: int, frame: FrameType | None) -> None:
    del frame
    _Pending.number = _Pending.number or number


def _raise(number: int, frame: FrameType | None) -> None:
    if _importing(frame) and _alarm_is_free():
        _come_again(number)
        return
    raise InterruptedCommandError(number)


def _importing(frame: FrameType | None) -> bool:
    """Whether a callback of the import system was interrupted: an exception from there would be printed and lost."""
    return frame is not None and frame.f_code.co_filename.startswith(IMPORTING)


def _come_again(number: int) -> None:
    _Pending.number = number
    signal.signal(signal.SIGALRM, _again)
    signal.setitimer(signal.ITIMER_REAL, AGAIN_S)


def _again(number: int, frame: FrameType | None) -> None:
    """Send the signal once more, to whoever hears it by now: a run may have begun, which takes it more gently."""
    del number
    first = _Pending.number or signal.SIGINT
    if _importing(frame):
        _come_again(first)
        return
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.raise_signal(first)


def _alarm_is_free() -> bool:
    return signal.getsignal(signal.SIGALRM) in {signal.SIG_DFL, _again}


@contextmanager
def held() -> Iterator[None]:
    """Ignore signals for the time of writing a document: once begun, it is to be a whole one."""
    before = {number: signal.getsignal(number) for number in HEARD}
    try:
        with suppress(ValueError):  # not the main thread: it hears no signals anyway
            for number in HEARD:
                signal.signal(number, signal.SIG_IGN)
        yield
    finally:
        with suppress(ValueError):
            for number, handler in before.items():
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)
