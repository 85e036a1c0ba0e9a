"""Numbers as words, once: every sentence and every table takes its digits from here. Undefined is said, never 0.

It lies below judging because findings are sentences too; everything else that is worded is in `render.words`.
"""

import math

from hopscope.model.limits import SECOND

UNKNOWN = "unknown"
DIGITS = 3
FINEST_DECIMALS = 3  # microseconds: below that the kernel's stamps say nothing
SECOND_MS = 1000
LEAST_RATIO = 1e-9


def ms(value: float | None) -> str:
    """A duration: 0.045 ms, 8.31 ms, 1.52 s."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if abs(value) >= SECOND_MS or _rounded(abs(value)) >= SECOND_MS:
        return f"{digits(value / SECOND_MS)} s"
    return f"{digits(value)} ms"


def ns(value: int | None) -> str:
    """A duration in nanoseconds."""
    return ms(None if value is None else value / 1_000_000)


def ratio(value: float | None) -> str:
    """A share: "0 %" and "100 %" only if none and all are meant; near both ends it keeps its digits (0.02 %)."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value in {0, 1}:
        return f"{value * 100:.0f} %"
    edge = min(abs(value), abs(1 - value))
    if edge < LEAST_RATIO:
        return "under 0.0000001 %" if value < 1 / 2 else "over 99.9999999 %"
    percent = edge * 100
    decimals = 1 if percent >= 1 else 1 - math.floor(math.log10(percent))
    return f"{_stripped(f'{value * 100:.{decimals}f}')} %"


def share(lost: int, sent: int) -> str:
    """A ratio with its counts: "0 %" only when nothing was lost (method 2.3)."""
    return f"{ratio(lost / sent)} ({lost} of {sent})" if sent else f"{UNKNOWN} (nothing sent)"


def rate(interval_ns: int | None) -> str:
    """A probing rate, from the interval between probes."""
    return f"{SECOND / interval_ns:.3g}/s" if interval_ns else UNKNOWN


def hop(ttl: int, address: str | None) -> str:
    """A hop by TTL and address; TTL 0 is the measuring host."""
    if ttl == 0:
        return "this host"
    return f"hop {ttl} ({address})" if address else f"hop {ttl}"


def count(number: int, one: str, many: str | None = None) -> str:
    """A number of things: 1 probe, 3 probes."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def digits(value: float, *, padded: bool = False) -> str:
    """Three significant digits; `padded` keeps trailing zeros, for columns."""
    size = abs(_rounded(value))
    if value and not size:
        return "under 0.001"
    whole = len(str(int(size))) if size >= 1 else 0
    decimals = max(0, DIGITS - whole) if whole else FINEST_DECIMALS
    text = f"{size:.{decimals}f}"
    text = text if whole or (padded and size) else _stripped(text)
    return f"−{text}" if value < 0 and size else text


def _rounded(value: float) -> float:
    if not value:
        return 0.0
    places = DIGITS - 1 - math.floor(math.log10(abs(value)))
    return round(value, max(0, min(FINEST_DECIMALS, places)))


def _stripped(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
