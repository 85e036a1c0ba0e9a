"""Round-trip delay of a sample: quantiles with intervals, and its variation. Rules 2.5 and 2.7 of the method.

Recomputed from the sample each time; nothing is accumulated. Inputs are nanoseconds, results milliseconds.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import fsum, sqrt
from statistics import fmean

from hopscope.analysis.binomial import order_ranks
from hopscope.model.limits import MS
from hopscope.model.report import Delay


def quantile(ordered: Sequence[float], q: float) -> float:
    """Quantile by linear interpolation between order statistics (Hyndman & Fan 1996, type 7); `ordered` not empty."""
    position = (len(ordered) - 1) * q
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def carried(ordered: Sequence[float], q: float) -> float | None:
    """The q-quantile, or `None` where so few samples do not carry it (method 2.5)."""
    return quantile(ordered, q) if order_ranks(len(ordered), q) else None


def ends(ordered: Sequence[float], q: float) -> tuple[float | None, float | None]:
    """Ends of the 95 % interval of the q-quantile, from order statistics."""
    ranks = order_ranks(len(ordered), q)
    return (ordered[ranks[0]], ordered[ranks[1]]) if ranks else (None, None)


def ipdv_mean(seqs: Sequence[int], rtts_ns: Sequence[int]) -> float | None:
    """Mean absolute difference of delay between adjacent answered sequence numbers, ms; gaps are never bridged.

    RFC 3393 / RFC 5481 §4.1: IPDV(i) = D(i) − D(i−1). Both are equally long, in order of sequence number.
    """
    total = steps = 0
    for (seq_before, seq), (before, after) in zip(pairwise(seqs), pairwise(rtts_ns), strict=True):
        if seq == seq_before + 1:
            total += abs(after - before)
            steps += 1
    return total / steps / MS if steps else None


def deviation(values: Sequence[float]) -> float | None:
    """Standard deviation of a sample (ddof = 1, method 2.5), in two passes; undefined for fewer than two values."""
    if len(values) <= 1:
        return None
    mean = fmean(values)
    return sqrt(fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def delay(rtts_ns: Sequence[int], seqs: Sequence[int] | None = None) -> Delay:
    """Statistics of delays in ns; with `seqs` (same length, ascending) also the variation between neighbours."""
    if not rtts_ns:
        return Delay(n=0)
    ordered = sorted(rtt / MS for rtt in rtts_ns)
    p50_low, p50_high = ends(ordered, 0.50)
    p95_low, p95_high = ends(ordered, 0.95)
    p95 = carried(ordered, 0.95)
    return Delay(
        n=len(ordered),
        min_ms=ordered[0],
        p50_ms=quantile(ordered, 0.50),
        p50_low_ms=p50_low,
        p50_high_ms=p50_high,
        mean_ms=fmean(ordered),
        p95_ms=p95,
        p95_low_ms=p95_low,
        p95_high_ms=p95_high,
        p99_ms=carried(ordered, 0.99),
        max_ms=ordered[-1],
        stdev_ms=deviation(ordered),
        # RFC 5481 §4.2: PDV(i) = D(i) − D(min), so its quantile is the delay's, less the minimum.
        pdv_p95_ms=None if p95 is None or seqs is None else p95 - ordered[0],
        ipdv_mean_ms=None if seqs is None else ipdv_mean(seqs, rtts_ns),
    )
