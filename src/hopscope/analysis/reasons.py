"""What speaks for a candidate, and what a buyer wants to know besides: short sentences with numbers.

What it keeps, what is likely only, which part of the delay is distance, and how it differs from another in what was
measured and in price.
"""

from collections.abc import Iterator

from hopscope.analysis.candidate import Candidate, Seen
from hopscope.analysis.difference import between, points
from hopscope.analysis.faults import LABELS, limits, listed, unjudged
from hopscope.analysis.say import ms, ratio
from hopscope.model.report import Difference

FAR_MS, FAR_SHARE = 5.0, 0.25
"""A floor is worth a sentence from this much on, in all and of the round trip."""


def kept(candidate: Candidate) -> str:
    """That it meets its limits, with the numbers of the place where each is worst."""
    names = listed(each.vantage.name for each in candidate.seen)
    if not candidate.limited:
        return f"nothing was found against it from {names}"
    told = [text for metric in limits(candidate) if (text := _kept(candidate, metric))]
    if not told:
        return f"nothing was found against it from {names}"
    whole = "the limits that could be judged" if unjudged(candidate) else "every limit"
    return f"meets {whole} from {names}: {', '.join(told)}"


def _kept(candidate: Candidate, metric: str) -> str:
    """One limit that is met."""
    pairs = [(each, limit) for each in candidate.seen for limit in each.report.limits if limit.metric == metric]
    if not pairs:
        return ""
    limit = pairs[0][1]
    over, sent = sum(one.over for _, one in pairs), sum(one.n for _, one in pairs)
    if metric == "loss":
        lost = f"loss {ratio(over / sent)}" if over else "no loss"
        return f"{lost} in {sent} ({ratio(limit.limit)} allowed)"
    values = [_own(each, metric) for each, _ in pairs]
    known = [value for value in values if value is not None]
    if len(known) == len(values):
        return f"{LABELS[metric]} {ms(max(known))} of {ms(limit.limit)} allowed"
    return f"{LABELS[metric]} within {ms(limit.limit)} in {sent - over} of {sent}"


def _own(each: Seen, metric: str) -> float | None:
    """The value that a limit on the round trip is on, where so many samples carry it."""
    match metric:
        case "rtt_p50":
            return each.report.rtt.p50_ms
        case "rtt_p95":
            return each.report.rtt.p95_ms
        case _:
            return None


def likely(candidate: Candidate) -> Iterator[str]:
    """Which limits are met as far as few samples can tell."""
    unsure = dict.fromkeys(
        LABELS[limit.metric]
        for each in candidate.seen
        for limit in each.report.limits
        if not limit.missed and limit.confidence != "shown"
    )
    if unsure:
        yield f"likely, not shown yet: {listed(unsure)}; more samples would show it"


def notes(candidate: Candidate, other: Candidate | None) -> Iterator[str]:
    """What else a buyer wants to know: what is distance, how it compares with another, what else is to be said."""
    yield from _distance(candidate)
    if other is not None:
        yield from versus(candidate, other)
    yield from candidate.remarks


def _distance(candidate: Candidate) -> Iterator[str]:
    """The part of the delay from the farthest place that is distance."""
    far = [
        (each.report.floor_ms, each.report.rtt.p50_ms, each.report.distance_km, each.vantage.name)
        for each in candidate.seen
        if each.report.floor_ms and each.report.rtt.p50_ms and each.report.distance_km
    ]
    floor, rtt, km, name = max(far, default=(0.0, 0.0, 0.0, ""))
    if FAR_MS <= floor <= rtt and floor >= FAR_SHARE * rtt:
        yield f"{ms(floor)} of the {ms(rtt)} from {name} is distance ({kilometres(km)}): no money removes it"


def kilometres(km: float) -> str:
    """A distance in two digits: 6,200 km, 420 km."""
    return f"{float(f'{km:.2g}'):,.0f} km"


def versus(candidate: Candidate, other: Candidate) -> Iterator[str]:
    """How it differs from another, where it is worst, or else best; and by price."""
    rows = between(other, candidate)
    telling = [one for one in rows if one.matters]
    name = other.target.name
    if telling:
        worst = max(telling, key=_worse)
        most = worst if _worse(worst) > 0 else min(telling, key=_worse)
        yield f"{_by(most)} than {name}'s from {most.vantage}{_cost(candidate, other)}"
    elif any(one.low is not None or (one.metric == "loss" and one.difference is not None) for one in rows):
        small = " that matters" if any(one.confidence == "shown" for one in rows) else ""
        yield f"no difference{small} shown to {name}{_cost(candidate, other)}"
    elif rows:
        yield f"not told apart from {name}: not enough data{_cost(candidate, other)}"


def _worse(one: Difference) -> float:
    """How much of the larger value a difference is; below zero where it is for the better."""
    larger = max(one.first_value or 0.0, one.second_value or 0.0)
    return (one.difference or 0.0) / larger if larger else 0.0


def _by(one: Difference) -> str:
    by = one.difference or 0.0
    size = ms(abs(by)) if one.unit == "ms" else points(by)
    return f"{LABELS[one.metric]} {size} {'higher' if by > 0 else 'lower'}"


def _cost(candidate: Candidate, other: Candidate) -> str:
    mine, theirs = candidate.target.price_month, other.target.price_month
    if mine is None or theirs is None or mine == theirs:
        return ""
    return f"; costs {abs(mine - theirs):,.10g} a month {'less' if mine < theirs else 'more'}"
