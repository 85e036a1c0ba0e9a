"""Candidates in order, the best first: who fails last, then by the budget, then by what can be told apart.

`met` is the weighted share of places where no limit is missed (a place that fails, or where no limit could be judged,
is not among them); without a limit, where nothing above info was found. `score` is 0..1, the weighted mean over places
of: 0 where the target fails; else the worst limit's share of samples within it, over the share that must be, at most
1; without any limit the least median wait of all candidates there over its own. A place where that is unknown is left
out of the mean. A score of 1 with a budget is: no limit is missed anywhere. Without a budget the score is told and
does not rank: two medians are never equal, so noise would rank and price never.

Equals stand by their median wait; those of them that enough samples do not tell apart, by price.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress

from msgspec import Struct

from hopscope.analysis.candidate import Candidate, Seen
from hopscope.analysis.difference import between
from hopscope.model.report import LimitReport

DECIMALS = 9
"""Sums of weights that differ by less are the same."""

Waits = Mapping[str, Mapping[str, float]]


class Standing(Struct, frozen=True, kw_only=True):
    """Where a candidate stands: shares of its places, by weight; `wait_ms` is its mean median wait."""

    candidate: Candidate
    failing: float
    met: float
    clean: float
    score: float | None
    wait_ms: float | None


def ranked(candidates: Sequence[Candidate]) -> list[Standing]:
    """Those that were seen from any place, the best first."""
    waits = _waits(candidates)
    least = {place: min(values.values()) for place, values in waits.items() if values}
    known = [_standing(one, waits, least) for one in candidates if one.seen]
    groups: dict[tuple[float, ...], list[Standing]] = {}
    for one in sorted(known, key=_merit):
        groups.setdefault(_merit(one), []).append(one)
    return [one for equals in groups.values() for one in _told_apart(equals)]


def _merit(one: Standing) -> tuple[float, ...]:
    """What ranks, the least first; an unknown score comes after every known one, and only that of a budget ranks."""
    unknown = 1.0 if one.score is None else 0.0
    kept = (one.score or 0.0) if one.candidate.limited else float(one.score is not None)
    return (one.failing, -one.met, unknown, -kept, -one.clean)


def _told_apart(equals: Sequence[Standing]) -> Iterator[Standing]:
    """Equals by wait; the first of those left takes along whoever is not told apart from it, the cheapest first."""
    waiting = sorted(equals, key=_wait)
    while waiting:
        first, *others = waiting
        with_it = [_alike(first.candidate, one.candidate) for one in others]
        yield from sorted([first, *compress(others, with_it)], key=_price)
        waiting = [one for one, same in zip(others, with_it, strict=True) if not same]


def _alike(first: Candidate, second: Candidate) -> bool:
    """Whether enough was measured to show a difference that matters, and none is shown: few samples are not alike."""
    rows = between(first, second)
    return any(one.low is not None for one in rows) and not any(one.matters for one in rows)


def _wait(one: Standing) -> float:
    return float("inf") if one.wait_ms is None else one.wait_ms


def _price(one: Standing) -> float:
    price = one.candidate.target.price_month
    return float("inf") if price is None else price


def _standing(candidate: Candidate, waits: Waits, least: Mapping[str, float]) -> Standing:
    """The numbers of one candidate; `least` is the shortest wait of all at each place."""
    failing = {each.vantage.name for each in candidate.seen if each.failing}
    clean = {each.vantage.name for each in candidate.seen if not any(one.severity != "info" for one in each.findings)}
    judged = {each.vantage.name for each in candidate.seen if each.report.limits and not missed(each)}
    met = judged - failing if candidate.limited else clean
    scores = {each.vantage.name: _score(candidate, each, waits, least) for each in candidate.seen}
    mine = {place: values[candidate.target.name] for place, values in waits.items() if candidate.target.name in values}
    return Standing(
        candidate=candidate,
        failing=_rounded(candidate.share(frozenset(failing))),
        met=_rounded(candidate.share(frozenset(met))),
        clean=_rounded(candidate.share(frozenset(clean))),
        score=_mean(candidate, scores),
        wait_ms=_mean(candidate, mine),
    )


def missed(each: Seen) -> tuple[LimitReport, ...]:
    """The limits that are missed at a place."""
    return tuple(limit for limit in each.report.limits if limit.missed)


def _score(candidate: Candidate, each: Seen, waits: Waits, least: Mapping[str, float]) -> float | None:
    """The score at one place."""
    if each.failing:
        return 0.0
    if candidate.limited:
        return min((_within(limit) for limit in each.report.limits), default=None)
    own = waits.get(each.vantage.name, {}).get(candidate.target.name)
    return None if own is None or own <= 0 else least[each.vantage.name] / own


def _within(limit: LimitReport) -> float:
    """The share of samples within a limit, over the share that must be; at most 1."""
    wanted = 1 - limit.allowed
    return 1.0 if wanted <= 0 else min(1.0, (1 - limit.over / limit.n) / wanted)


def _mean(candidate: Candidate, values: Mapping[str, float | None]) -> float | None:
    """The weighted mean over the places where a value is known."""
    known = {place: value for place, value in values.items() if value is not None}
    whole = candidate.share(frozenset(known))
    if not whole:
        return None
    return _rounded(sum(candidate.share(frozenset({place})) * value for place, value in known.items()) / whole)


def _waits(candidates: Sequence[Candidate]) -> Waits:
    """By place the median wait of each candidate that does not fail there, of one kind for all of them, ms.

    The kind is the first that every one of them has: time to the first token, round trip and server, round trip.
    """
    places: dict[str, dict[str, Seen]] = {}
    for candidate in candidates:
        for each in candidate.seen:
            if not each.failing:
                places.setdefault(each.vantage.name, {})[candidate.target.name] = each
    return {place: _of_one_kind(there) for place, there in places.items()}


def _of_one_kind(there: Mapping[str, Seen]) -> dict[str, float]:
    kinds = [{name: value for name, each in there.items() if (value := kind(each)) is not None} for kind in KINDS]
    return next((values for values in kinds if len(values) == len(there)), kinds[-1])


def _first_token(each: Seen) -> float | None:
    return each.report.ttft.p50_ms


def _answer(each: Seen) -> float | None:
    rtt, server = each.report.rtt.p50_ms, each.report.server.p50_ms
    return None if rtt is None or server is None else rtt + server


def _round_trip(each: Seen) -> float | None:
    return each.report.rtt.p50_ms


KINDS = (_first_token, _answer, _round_trip)


def _rounded(value: float) -> float:
    return round(value, DECIMALS)
