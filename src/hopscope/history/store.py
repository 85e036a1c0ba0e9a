"""The file of the store: made, brought to this version, opened for one transaction at a time; its troubles in words.

WAL with synchronous=NORMAL: readers and the writer do not wait for each other, and what was committed outlives a kill.
Nothing here waits longer than BUSY_S. No library is imported but Python's own; SQLAlchemy comes with `transactions`.
"""

import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from hopscope.errors import StoreError, Trouble, UsageError
from hopscope.history.lock import ANOTHER_PLACE, cannot_make
from hopscope.history.migrations import APPLICATION_ID, STEPS, VERSION

BUSY_S = 10.0
OLDEST_SQLITE = (3, 37)
"""The first with STRICT tables."""
PRIMARY_CODE = 0xFF
"""The primary result code is the low byte of an extended one."""

TROUBLES: dict[int, tuple[Trouble, str, str]] = {
    sqlite3.SQLITE_BUSY: ("busy", "is held by another program", "run again once that has ended"),
    sqlite3.SQLITE_LOCKED: ("busy", "is held by another program", "run again once that has ended"),
    sqlite3.SQLITE_CORRUPT: ("corrupt", "is damaged", ""),
    sqlite3.SQLITE_NOTADB: ("corrupt", "is no database, or damaged", ""),
    sqlite3.SQLITE_ERROR: ("corrupt", "lacks what a store has", ""),
    sqlite3.SQLITE_FULL: ("full", "cannot grow", "free some space on its disk, then run again"),
    sqlite3.SQLITE_IOERR: (
        "io", "cannot be read or written", "look for a full disk, a quota or a limit on file sizes, then run again"
    ),
    sqlite3.SQLITE_READONLY: ("read-only", "cannot be written", ANOTHER_PLACE),
    sqlite3.SQLITE_CANTOPEN: ("read-only", "cannot be opened", ANOTHER_PLACE),
    sqlite3.SQLITE_PERM: ("read-only", "cannot be written", ANOTHER_PLACE),
}  # fmt: skip


def prepare(path: Path) -> None:
    """Make the store if there is none, bring it to this version, and see that it can be written. Raises StoreError."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_make(path.parent, error) from error
    with troubles(path), closing(connect(path)) as connection:
        if _version(path, connection) < VERSION:
            _migrate(connection)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")


def examine(path: Path) -> None:
    """See that there is a store to read, of this version. Raises UsageError and StoreError."""
    if not path.exists():
        message = f"there is no store at {path}"
        raise UsageError(message, "run hopscope check first, or name a store with --store")
    with troubles(path), closing(connect(path)) as connection:
        older = _version(path, connection) < VERSION
    if older:
        prepare(path)


def connect(path: Path) -> sqlite3.Connection:
    """A connection that begins no transaction by itself. Raises StoreError and sqlite3.Error."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        message = f"this Python has SQLite {sqlite3.sqlite_version}, and the store needs 3.37"
        raise StoreError("unsupported", message, "use a newer Python")
    if path.exists() and not path.is_file():
        message = f"{path} is there, and no file"
        raise StoreError("foreign", message, "give another store with --store")
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


@contextmanager
def troubles(path: Path) -> Iterator[None]:
    """Turn what SQLite complains of into a StoreError with class and remedy; a mistake of ours stays what it is."""
    try:
        yield
    except sqlite3.Error as error:
        raise of(path, error) from error


def of(path: Path, error: sqlite3.Error) -> Exception:
    """The trouble behind an error of SQLite's; the error itself where it is none of the store."""
    # A connection that failed to open has no code; what the pragmas meet is DatabaseError with one.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CANTOPEN)
    known = TROUBLES.get(code & PRIMARY_CODE) if isinstance(code, int) else None
    if known is None:
        return error
    trouble, what, advice = known
    return StoreError(trouble, f"{path} {what} ({error})", advice or _move_away(path))


def _move_away(path: Path) -> str:
    moving = shlex.join(["mv", str(path), f"{path}.bad"])
    return f"move it away ({moving}) and run again, which makes a new one; or name another with --store"


def _version(path: Path, connection: sqlite3.Connection) -> int:
    """The version of a store; 0 for a new one. Raises StoreError for a newer one and for what is no store of ours."""
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if owner != APPLICATION_ID and (owner or tables or version):
        message = f"{path} is a database of another program"
        raise StoreError("foreign", message, "give another store with --store")
    if version > VERSION:
        message = f"{path} is of version {version}, and this hopscope knows versions up to {VERSION}"
        raise StoreError("newer", message, "upgrade hopscope, or give another store with --store")
    return int(version)


def _migrate(connection: sqlite3.Connection) -> None:
    """Take the steps that are missing, all or none; whoever waits for the same finds them done."""
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        for step in STEPS[version:]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
