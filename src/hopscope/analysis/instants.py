"""Instants as people and programs read them: UTC, ISO-8601, microseconds."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(at_ns: int) -> str:
    """`2026-11-30T12:00:00.000000Z` for nanoseconds of UTC."""
    return (EPOCH + timedelta(microseconds=at_ns // 1000)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def iso_or_none(at_ns: int | None) -> str | None:
    """The same, `None` for `None`."""
    return None if at_ns is None else iso(at_ns)


def milliseconds(ns: int | None) -> float | None:
    """Nanoseconds as milliseconds."""
    return None if ns is None else ns / 1_000_000
