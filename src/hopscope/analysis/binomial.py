"""Exact tests on counts: the only place that decides whether two ratios differ.

Every function is a closed formula over integers, evaluated through logarithms of factorials so that a million probes
neither overflow nor lose digits. Counts are losses out of trials; results are probabilities 0..1.
"""

from math import exp, lgamma, log, sqrt
from statistics import NormalDist

WILSON_Z = 1.959963984540054
EXACT_UP_TO = 1000
WIDENED = 2
"""Ranks that the normal approximation of an interval is widened by on either side: alone it leaves out too much."""
TERM_FLOOR = -80.0
"""Terms below e^-80 of a tail add nothing to a double."""
TAIL = 0.025
"""On either side of an interval of 95 %."""
AS_LIKELY = 1 + 1e-7
"""Two tables are equally likely where rounding alone tells their probabilities apart."""


def log_choose(n: int, k: int) -> float:
    """Logarithm of the binomial coefficient."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def log_likelihood(lost: int, sent: int) -> float:
    """Maximum binomial log-likelihood of `lost` of `sent`, up to a constant: Σ k·ln(k/n)."""
    kept = sent - lost
    return (lost * log(lost / sent) if lost else 0.0) + (kept * log(kept / sent) if kept else 0.0)


def at_least(k: int, n: int, p: float) -> float:
    """P(X ≥ k) for X ~ Binomial(n, p)."""
    if k <= 0:
        return 1.0
    if p <= 0.0 or k > n:
        return 0.0
    if p >= 1.0:
        return 1.0
    log_p, log_q = log(p), log(1.0 - p)
    total = 0.0
    for i in range(k, n + 1):
        term = log_choose(n, i) + i * log_p + (n - i) * log_q
        if term < TERM_FLOOR and i > n * p:
            break
        total += exp(term)
    return min(total, 1.0)


def at_most(k: int, n: int, p: float) -> float:
    """P(X ≤ k) for X ~ Binomial(n, p)."""
    return at_least(n - k, n, 1.0 - p)


def fisher_greater(lost_a: int, sent_a: int, lost_b: int, sent_b: int) -> float:
    """One-sided Fisher exact test: how likely is it that A lost this much more than B if both lose alike.

    Returns 1.0 where either side has no trial: nothing is shown by nothing.
    """
    if not sent_a or not sent_b:
        return 1.0
    lost = lost_a + lost_b
    sent = sent_a + sent_b
    whole = log_choose(sent, lost)
    total = 0.0
    for k in range(lost_a, min(lost, sent_a) + 1):
        if lost - k > sent_b:
            continue
        term = log_choose(sent_a, k) + log_choose(sent_b, lost - k) - whole
        if term < TERM_FLOOR and k > lost_a + 50:
            break
        total += exp(term)
    return min(total, 1.0)


def fisher_two_sided(lost_a: int, sent_a: int, lost_b: int, sent_b: int) -> float:
    """Two-sided Fisher exact test: the probability of all tables no likelier than this one if both lose alike.

    Returns 1.0 where either side has no trial: nothing is shown by nothing.
    """
    if not sent_a or not sent_b:
        return 1.0
    lost, sent = lost_a + lost_b, sent_a + sent_b
    whole = log_choose(sent, lost)
    logs = [
        log_choose(sent_a, k) + log_choose(sent_b, lost - k) - whole
        for k in range(max(0, lost - sent_b), min(lost, sent_a) + 1)
    ]
    seen = log_choose(sent_a, lost_a) + log_choose(sent_b, lost_b) - whole
    return min(sum(exp(one) for one in logs if one <= seen + log(AS_LIKELY)), 1.0)


def wilson(lost: float, sent: float) -> tuple[float, float]:
    """Wilson score interval, 95 % two-sided (Wilson 1927); `sent` may be an effective, fractional count.

    `lost` and `sent` must describe the same ratio; `sent` > 0.
    """
    ratio = lost / sent
    z2 = WILSON_Z * WILSON_Z
    centre = ratio + z2 / (2 * sent)
    spread = WILSON_Z * sqrt(max(0.0, ratio * (1 - ratio) / sent + z2 / (4 * sent * sent)))
    scale = 1 + z2 / sent
    low = (centre - spread) / scale
    high = (centre + spread) / scale
    return (max(0.0, low) if lost else 0.0), (min(1.0, high) if lost < sent else 1.0)


def order_ranks(n: int, q: float, *, tail: float = TAIL) -> tuple[int, int] | None:
    """Ranks (0-based) whose order statistics enclose the q-quantile, leaving out at most `tail` on either side.

    Distribution-free: the number of samples below the quantile is Binomial(n, q). `None` where n does not carry an
    interval (at 95 %: fewer than 6 for the median, 72 for p95, 368 for p99).
    """
    if q**n > tail or (1 - q) ** n > tail:
        return None
    if n > EXACT_UP_TO:
        spread = NormalDist().inv_cdf(1 - tail) * sqrt(n * q * (1 - q))
        return max(0, int(n * q - spread) - WIDENED), min(n - 1, int(n * q + spread) + 1 + WIDENED)
    return _exact_ranks(n, q, tail)


def _exact_ranks(n: int, q: float, tail: float) -> tuple[int, int]:
    """Ranks by summing the binomial distribution from both ends."""
    log_p, log_q = log(q), log(1 - q)
    cdf = 0.0
    low = 0
    high = n - 1
    for i in range(n + 1):
        before = cdf
        cdf += exp(log_choose(n, i) + i * log_p + (n - i) * log_q)
        if cdf <= tail:
            low = i
        if before < 1 - tail <= cdf:
            high = min(i, n - 1)
            break
    return low, high


__all__ = [
    "at_least",
    "at_most",
    "fisher_greater",
    "fisher_two_sided",
    "log_choose",
    "log_likelihood",
    "order_ranks",
    "wilson",
]
