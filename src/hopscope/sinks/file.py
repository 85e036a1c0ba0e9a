"""Files of a run: the tape, written a line at a time, and documents, written whole or not at all.

Nothing measured is lost: a line goes out in one write(2), and when the disk is full the tape is cut back to its last
whole line. A document replaces the one before only once it is complete.
"""

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from hopscope.errors import CannotMeasureError

TAPE_NAME = "run.jsonl"
DOCUMENTS = {"json": "report.json", "md": "report.md", "html": "report.html"}


class TapeFile:
    """A tape being written."""

    def __init__(self, path: Path) -> None:
        """Open a new tape. Raises CannotMeasureError when the place cannot be written."""
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
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
            os.ftruncate(self._fd, self._size)
            raise _cannot_write(self.path, error) from error
        self._size += done

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def _cannot_write(path: Path, error: OSError) -> CannotMeasureError:
    """What stands in the way of writing, and the remedy."""
    if error.errno == errno.EEXIST:
        return CannotMeasureError(f"{path} is there already", "give another folder with --out")
    remedy = "free some space" if error.errno in {errno.ENOSPC, errno.EDQUOT} else "choose another place with --out"
    return CannotMeasureError(f"cannot write {path}: {error.strerror}", f"{remedy}, then run again")


def document(path: Path, pieces: Iterable[str]) -> None:
    """Write a document beside its place and move it there. Raises CannotMeasureError."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("w", encoding="utf-8", newline="") as out:
            out.writelines(pieces)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise _cannot_write(path, error) from error


def pieces_of(path: Path, size: int = 1 << 20) -> Iterable[bytes]:
    """A file's bytes, a piece at a time. Raises OSError."""
    with path.open("rb") as source:
        while piece := source.read(size):
            yield piece
