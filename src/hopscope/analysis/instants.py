"""Instants as people and programs read them: UTC, ISO-8601, microseconds."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(at_ns: int) -> str:
    """`2026-11-30T12:00:00.000000Z` for nanoseconds of UTC."""
    second, rest = divmod(at_ns, 1_000_000_000)
    return f"{_to_the_second(second)}.{rest // 1000:06d}Z"


@lru_cache(maxsize=64)
def _to_the_second(second: int) -> str:
    """Date and time without fraction; a series of a million probes asks for few different ones."""
    return (EPOCH + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S")


def iso_or_none(at_ns: int | None) -> str | None:
    """The same, `None` for `None`."""
    return None if at_ns is None else iso(at_ns)


def milliseconds(ns: int | None) -> float | None:
    """Nanoseconds as milliseconds."""
    return None if ns is None else ns / 1_000_000
