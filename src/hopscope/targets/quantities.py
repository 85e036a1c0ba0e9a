"""Durations and ratios as people write them. Exact: decimal until the last step, whole nanoseconds at the end."""

import re
from decimal import Decimal

from hopscope.errors import UsageError
from hopscope.targets.wording import HUGE, near, quoted, shown

UNITS: dict[str, int] = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # the micro sign
    "μs": 1_000,  # the Greek letter, which most keyboards give
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
LONGEST_NS = 366 * UNITS["d"]

_LONG_UNITS: dict[str, str] = {
    "sec": "s",
    "secs": "s",
    "second": "s",
    "seconds": "s",
    "min": "m",
    "mins": "m",
    "minute": "m",
    "minutes": "m",
    "hr": "h",
    "hour": "h",
    "hours": "h",
    "day": "d",
    "days": "d",
    "msec": "ms",
    "millisecond": "ms",
    "milliseconds": "ms",
    "microsecond": "us",
    "microseconds": "us",
    "usec": "us",
}
_NUMBER_AND_UNIT = re.compile(r"([-+]?[0-9]{1,18}(?:\.[0-9]{1,18})?|[-+]?\.[0-9]{1,18})\s*([^\s0-9.]*)")
_RATIO = re.compile(r"([-+]?[0-9]{1,18}(?:\.[0-9]{1,18})?|[-+]?\.[0-9]{1,18})\s*(%?)")
_DURATION_ADVICE = 'write a number and a unit, such as "500us", "200ms", "5s", "1m" or "1h"; a bare number is seconds'
_RATIO_ADVICE = 'write a share such as "1%" or 0.01'


def duration(text: str) -> int:
    """Nanoseconds, more than zero, of `200ms`, `5s`, `1.5m` or `5` (seconds). Raises UsageError."""
    match = _NUMBER_AND_UNIT.fullmatch(text.strip())
    if match is None:
        raise UsageError(f'"{shown(text)}" is not a duration', _DURATION_ADVICE)
    number, unit = match[1], match[2] or "s"
    if unit not in UNITS:
        meant = _LONG_UNITS.get(unit.lower()) or _like(unit.lower()) or near(unit, UNITS)
        hint = "" if meant is None else f'; did you mean "{number}{meant}"?'
        raise UsageError(f'"{shown(text)}" is not a duration: "{shown(unit)}" is not a unit{hint}', _DURATION_ADVICE)
    return _nanoseconds(Decimal(number), UNITS[unit], text)


def seconds(number: float) -> int:
    """Nanoseconds, more than zero, of a bare number of seconds. Raises UsageError."""
    return _nanoseconds(Decimal(number) if abs(number) >= HUGE else Decimal(repr(number)), UNITS["s"], quoted(number))


def ratio(text: str) -> float:
    """0..1 of `1%` or `0.01`. Raises UsageError."""
    match = _RATIO.fullmatch(text.strip())
    if match is None:
        raise UsageError(f'"{shown(text)}" is not a ratio', _RATIO_ADVICE)
    value = Decimal(match[1]) / (100 if match[2] else 1)
    if not 0 <= value <= 1:
        hint = "" if match[2] or not 0 <= value <= 100 else f'; did you mean "{match[1]}%"?'  # noqa: PLR2004 - per cent
        raise UsageError(f'"{shown(text)}" is not a ratio: it is not between 0 and 1 (100 %){hint}', _RATIO_ADVICE)
    return float(value)


def worded(duration_ns: int) -> str:
    """A duration in the largest unit that keeps it whole, as a file would have it: `200ms`."""
    unit = next(unit for unit in ("d", "h", "m", "s", "ms", "us", "ns") if duration_ns % UNITS[unit] == 0)
    return f"{duration_ns // UNITS[unit]}{unit}"


def _like(unit: str) -> str | None:
    return next((known for known in UNITS if len(known) == len(unit) and known[0] == unit[0]), None)


def _nanoseconds(number: Decimal, unit_ns: int, text: str) -> int:
    if not number.is_finite() or number <= 0:
        raise UsageError(f'"{shown(text)}" is not a duration: it must be more than zero', _DURATION_ADVICE)
    if number * unit_ns > LONGEST_NS:
        raise UsageError(f'"{shown(text)}" is not a duration: it is longer than a year', _DURATION_ADVICE)
    whole = round(number * unit_ns)
    if whole == 0:
        raise UsageError(f'"{shown(text)}" is not a duration: it is less than a nanosecond', _DURATION_ADVICE)
    return whole
