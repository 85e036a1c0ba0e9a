"""Files of a run: the tape, written a line at a time, and documents, written whole or not at all.

Nothing measured is lost: a line goes out in one write(2), and when the disk is full the tape is cut back to its last
whole line. A document replaces the one before only once it is complete.
"""

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from hopscope.errors import CannotMeasureError, UsageError

TAPE_NAME = "run.jsonl"
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
DOCUMENTS = {"json": "report.json", "md": "report.md", "html": "report.html"}


class TapeFile:
    """A tape being written."""

    def __init__(self, path: Path) -> None:
        """Open a new tape. Raises UsageError when one is there already, CannotMeasureError when none can be made."""
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Appending: after the tape was cut back, the next line stands at its end and leaves no hole before it.
            self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except FileExistsError as error:
            message = f"{error.filename or path} is there already"
            raise UsageError(message, "give another folder with --out") from error
        except OSError as error:
            raise _cannot_write(path, error) from error
        self._size = 0

    def write(self, line: bytes) -> None:
        """Append one line. Raises CannotMeasureError when it does not fit; the tape ends with its last whole line."""
        done = 0
        try:
            while done < len(line):
                done += os.write(self._fd, line[done:])
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._fd, self._size)
            raise _cannot_write(self.path, error) from error
        self._size += done

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def _cannot_write(path: Path, error: OSError) -> CannotMeasureError:
    """What stands in the way of writing, and the remedy."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        message = f"cannot write {path}: a part of it is no directory"
        return CannotMeasureError(message, "choose another place (--out, --ticket)")
    remedy = "free some space" if error.errno in FULL else "choose another place (--out, --ticket)"
    return CannotMeasureError(f"cannot write {path}: {error.strerror}", f"{remedy}, then run again")


def document(path: Path, pieces: Iterable[str]) -> None:
    """Write a document beside its place and move it there. Raises CannotMeasureError.

    A device or a pipe (`/dev/stdout`) is written to, never replaced; a link stays a link.
    """
    try:
        if path.exists() and not path.is_file():
            _write(path, pieces)
            return
        place = path.resolve()
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = place.with_name(f".{place.name}.{os.getpid()}")
        try:
            _write(beside, pieces)
            beside.replace(place)
        finally:
            with suppress(OSError):
                beside.unlink()
    except OSError as error:
        raise _cannot_write(path, error) from error


def check(path: Path) -> None:
    """Find out before measuring whether a document can be written there. Raises CannotMeasureError."""
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not path.exists() or path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.resolve().with_name(f".{path.name}.{os.getpid()}")
            beside.touch()
            beside.unlink()
    except OSError as error:
        raise _cannot_write(path, error) from error


def _write(path: Path, pieces: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as out:
        out.writelines(pieces)


def pieces_of(path: Path, size: int = 1 << 20) -> Iterable[bytes]:
    """A file's bytes, a piece at a time. Raises OSError."""
    with path.open("rb") as source:
        while piece := source.read(size):
            yield piece
