"""Round-trip loss of a sample (RFC 6673): counts, interval, episodes. Rules 2.1, 2.5 and 1.6 of the method.

`sent = received + lost`. Warm-up, unsent and void probes (those that our own socket may have dropped) stand outside.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from hopscope.analysis.binomial import wilson
from hopscope.model.record import Drop, Extra, Probe
from hopscope.model.report import Loss, SampleOutcome


def fate(
    probe: Probe, late: frozenset[tuple[int, int, int]], drops: Sequence[Drop], threshold_ns: int
) -> SampleOutcome:
    """What became of one probe, as people read it: `late` for an answer past the threshold, `void` for our own drop."""
    if probe.outcome != "lost":
        return probe.outcome
    if (probe.seq, probe.ttl, probe.flow) in late:
        return "late"
    for drop in drops:
        if probe.at <= drop.until and probe.at + threshold_ns >= drop.since:
            return "void"
    return "lost"


def late_keys(extras: Iterable[Extra]) -> frozenset[tuple[int, int, int]]:
    """Keys (sequence, TTL, flow) of probes that were answered after they had been counted lost."""
    return frozenset((extra.seq, extra.ttl, extra.flow) for extra in extras if extra.what == "late")


def is_lost(outcome: SampleOutcome) -> bool | None:
    """True or false for a probe that counts; `None` for one outside `sent`. Unreachable is lost, refused received."""
    match outcome:
        case "replied" | "refused":
            return False
        case "lost" | "late" | "unreachable":
            return True
        case "unsent" | "void":
            return None


def autocorrelation(losses: Sequence[bool]) -> float:
    """Lag-1 autocorrelation of a loss sequence; 0 where it is undefined."""
    n = len(losses)
    lost = sum(losses)
    if lost in {0, n}:
        return 0.0
    mean = lost / n
    variance = mean * (1 - mean) * n
    covariance = sum((a - mean) * (b - mean) for a, b in pairwise(losses))
    return covariance / variance


def effective(losses: Sequence[bool]) -> float:
    """How many independent trials a loss sequence, not empty, is worth: n_eff = n(1−r)/(1+r) (method 2.5)."""
    r = autocorrelation(losses)
    return max(1.0, len(losses) * (1 - r) / (1 + r)) if r > 0 else float(len(losses))


def runs(losses: Sequence[bool]) -> tuple[int, int]:
    """Loss episodes and the longest, in probes (RFC 3357 §6: loss period)."""
    episodes = longest = current = 0
    for lost in losses:
        current = current + 1 if lost else 0
        episodes += current == 1
        longest = max(longest, current)
    return episodes, longest


def loss(outcomes: Sequence[SampleOutcome], *, duplicates: int = 0) -> Loss:
    """Count outcomes given in the order of sending, warm-up left out by the caller."""
    losses = [lost for lost in map(is_lost, outcomes) if lost is not None]
    sent = len(losses)
    lost = sum(losses)
    episodes, longest = runs(losses)
    low: float | None = None
    high: float | None = None
    if sent:
        low, high = wilson_of_ratio(lost / sent, effective(losses))
    return Loss(
        sent=sent,
        received=sent - lost,
        lost=lost,
        late=outcomes.count("late"),
        duplicates=duplicates,
        unsent=outcomes.count("unsent"),
        void=outcomes.count("void"),
        ratio=lost / sent if sent else None,
        low=low,
        high=high,
        episodes=episodes,
        longest=longest,
    )


def wilson_of_ratio(ratio: float, effective: float) -> tuple[float, float]:
    """Wilson interval of a ratio seen in `effective` independent trials."""
    return wilson(ratio * effective, effective)
