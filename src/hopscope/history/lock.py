"""One check at a time: a lock of the kernel's on a file beside the store, freed however its process ends.

The file stays when the lock goes: removing it would let two processes lock two files of one name.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from hopscope.errors import LockedError, StoreError, Trouble

ANOTHER_PLACE = "make its folder writable for this user, or give another store with --store"
_FULL: Final[tuple[Trouble, str]] = ("full", "free some space on its disk, then run again")
_NO_FOLDER: Final[tuple[Trouble, str]] = ("io", "a part of that path is no folder: give another store with --store")
_REASONS: Final[dict[int | None, tuple[Trouble, str]]] = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.ENOTDIR: _NO_FOLDER,
    errno.EEXIST: _NO_FOLDER,
}


def lock_path(store: Path) -> Path:
    """The file that is locked."""
    return store.with_name(f"{store.name}.lock")


def cannot_make(path: Path, error: OSError) -> StoreError:
    """Why a file or folder of the store cannot be made, by what the system says."""
    trouble, advice = _REASONS.get(error.errno, ("read-only", ANOTHER_PLACE))
    return StoreError(trouble, f"cannot make {path}: {error.strerror}", advice)


@contextmanager
def locked(store: Path) -> Iterator[None]:
    """Hold the lock of a store. Raises LockedError at once when another process does, StoreError when none can be."""
    path = lock_path(store)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise cannot_make(path, error) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise LockedError(f"another check is running: it holds {path}") from error
    except OSError as error:
        os.close(lock)
        message = f"cannot lock {path}: {error.strerror}"
        raise StoreError("unsupported", message, "give a store on a local disk with --store") from error
    try:
        yield
    finally:
        os.close(lock)
