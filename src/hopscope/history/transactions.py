"""One transaction on the store, through SQLAlchemy: the door between its connections and ours.

A writing transaction takes the write lock at its beginning, so that it waits there (bounded) and never fails half-way.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from hopscope.history import store


@contextmanager
def reading(path: Path) -> Iterator[Connection]:
    """See one state of the store, whatever is written meanwhile. Raises StoreError."""
    with _transaction(path, "BEGIN") as connection:
        yield connection


@contextmanager
def writing(path: Path) -> Iterator[Connection]:
    """Write all or nothing. Raises StoreError."""
    with _transaction(path, "BEGIN IMMEDIATE") as connection:
        yield connection


@contextmanager
def _transaction(path: Path, opening: str) -> Iterator[Connection]:
    engine = create_engine("sqlite://", creator=partial(store.connect, path), poolclass=NullPool)
    event.listen(engine, "begin", partial(_begin, opening))
    try:
        with store.troubles(path), engine.begin() as connection:
            yield connection
    except DBAPIError as error:
        if isinstance(error.orig, sqlite3.Error):
            raise store.of(path, error.orig) from error
        raise


def _begin(opening: str, connection: Connection) -> None:
    connection.exec_driver_sql(opening)
