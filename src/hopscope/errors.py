"""Mistakes: what stops hopscope before or beside measuring, each with its exit code and the remedy.

Outcomes of probes (lost, refused, a TLS alert) are data and never appear here. Every class carries the exit code
of `interface.md` "Status and exit codes"; the message names the place, `advice` what to do next.
"""

from typing import ClassVar, Literal

Trouble = Literal["busy", "corrupt", "foreign", "full", "io", "newer", "read-only", "unsupported"]


class HopscopeError(Exception):
    """A mistake that a person can mend: `str(error)` says what and where, `advice` the remedy (or is empty)."""

    exit_code: ClassVar[int] = 70

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


class UsageError(HopscopeError):
    """The command line asks for something that does not exist or cannot be combined."""

    exit_code = 64


class TargetFileError(HopscopeError):
    """A target file is wrong; the message lists every error, one a line, with its place."""

    exit_code = 64


class TapeError(HopscopeError):
    """A tape cannot be read at all: no such file, not a tape, or a newer tape number."""

    exit_code = 64


class CannotMeasureError(HopscopeError):
    """Nothing could be measured: no socket of any kind may be opened, or the place to write is gone."""

    exit_code = 3


class StoreError(HopscopeError):
    """The store cannot be used; its class begins the message, for programs: `store-full: …`."""

    exit_code = 3

    def __init__(self, trouble: Trouble, message: str, advice: str) -> None:
        super().__init__(f"store-{trouble}: {message}", advice)
        self.trouble = trouble


class LockedError(HopscopeError):
    """Another run holds the lock."""

    exit_code = 75


class VantageDownError(HopscopeError):
    """A whole vantage is of no use: what happened there, and the remedy. It says nothing about any target."""

    exit_code = 3
