"""One check at a time: a lock of the kernel's on a file beside the store, freed however its process ends.

The file stays when the lock goes: removing it would let two processes lock two files of one name.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hopscope.errors import LockedError, StoreError

ANOTHER_PLACE = "make its folder writable for this user, or give another store with --store"


def lock_path(store: Path) -> Path:
    """The file that is locked."""
    return store.with_name(f"{store.name}.lock")


@contextmanager
def locked(store: Path) -> Iterator[None]:
    """Hold the lock of a store. Raises LockedError at once when another process does, StoreError when none can be."""
    path = lock_path(store)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        message = f"cannot make {path}: {error.strerror}"
        raise StoreError("read-only", message, ANOTHER_PLACE) from error
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
