"""What each candidate looks like from each place: the samples, counts and limits that a comparison stands on.

A candidate must not win because its far place was down. So only places count that could measure, and that measured
every candidate that was to be measured from there; such a place is left out for all candidates alike, else for none.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from hopscope.analysis import split
from hopscope.analysis.binomial import order_ranks
from hopscope.analysis.budget import Held, held, hold
from hopscope.analysis.case import Case, Pair
from hopscope.analysis.delay import delay, quantile
from hopscope.analysis.distance import floor_ms, great_circle_km, place_of_site, stretch
from hopscope.analysis.loss import effective, is_lost
from hopscope.analysis.nameless import NO_LOSS
from hopscope.analysis.path import ANSWERED, NOTHING, Count
from hopscope.analysis.results import delay_of, loss_of
from hopscope.analysis.rules.place import least_rtt_ms
from hopscope.analysis.stream import StreamView, hot
from hopscope.analysis.views import Fated
from hopscope.model.limits import MS
from hopscope.model.plan import Budget, Plan, Protocol, Target, Vantage
from hopscope.model.record import Streamed
from hopscope.model.report import (
    DID_NOT_MEASURE,
    HEARD,
    Delay,
    Finding,
    HttpResult,
    LimitReport,
    Loss,
    Measured,
    Outcome,
    PlaceReport,
    Report,
    StreamResult,
    TraceResult,
)

PROTOCOLS: tuple[Protocol, ...] = ("icmp", "tcp", "udp")
TAIL = 0.0025
"""Left out on either side of each median: two intervals of 99.5 % hold a difference with 99 % (Bonferroni)."""


class Median(Struct, frozen=True):
    """A median with its interval by order statistics (99.5 %), ms; no interval where `n` does not carry one."""

    n: int
    value: float
    low: float | None
    high: float | None


class Trials(Struct, frozen=True):
    """Probes lost out of those sent, and the independent trials that these are worth (method 2.5)."""

    seen: Count
    worth: Count


class Seen(Struct, frozen=True, kw_only=True):
    """A candidate seen from one place; `rtts` only of protocols that it answers."""

    vantage: Vantage
    report: PlaceReport
    rtts: Mapping[Protocol, Median]
    losses: Mapping[Protocol, Trials]
    server: Median | None
    ttft: Median | None
    findings: tuple[Finding, ...]

    @property
    def failing(self) -> bool:
        """Whether the target fails there: anything critical."""
        return any(one.severity == "critical" for one in self.findings)

    @property
    def independent(self) -> float:
        """Independent trials for each probe of its reported loss (method 2.5); 1 where no series says it."""
        shown = Count(self.report.loss.lost, self.report.loss.sent)
        shares = [one.worth.sent / shown.sent for one in self.losses.values() if shown.sent and one.seen == shown]
        return min(shares, default=1.0)


class Candidate(Struct, frozen=True, kw_only=True):
    """One candidate: `seen` from every usable place that it was measured from, `unseen` the others' further places."""

    target: Target
    seen: tuple[Seen, ...]
    unseen: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def limited(self) -> bool:
        """Whether any limit is set."""
        return Budget() != self.target.budget or Budget() != self.target.critical

    def share(self, names: frozenset[str]) -> float:
        """The weight of some of its places out of all; places count alike where none has a weight."""
        total = sum(each.vantage.weight for each in self.seen)
        if total <= 0:
            return len(names & {each.vantage.name for each in self.seen}) / len(self.seen) if self.seen else 0.0
        return sum(each.vantage.weight for each in self.seen if each.vantage.name in names) / total


class Field(Struct, frozen=True):
    """All candidates, the places that they are compared over, and why others are left out for all."""

    candidates: tuple[Candidate, ...]
    usable: tuple[str, ...]
    left_out: Mapping[str, str]


def field(
    report: Report, plan: Plan, found: Sequence[Case], planned: frozenset[Pair], remarks: Mapping[str, tuple[str, ...]]
) -> Field:
    """The candidates of a plan; `planned` are the pairs of target and vantage that were to be measured at all."""
    by_pair: dict[Pair, list[Case]] = {}
    for case in found:
        if _measured(case):
            by_pair.setdefault((case.target.name, case.vantage), []).append(case)
    left_out = dict(_left_out(report, plan, by_pair, planned))
    usable = [vantage for vantage in plan.vantages if vantage.name not in left_out]
    results: dict[Pair, list[Measured]] = {}
    for result in report.measured:
        results.setdefault((result.target, result.vantage), []).append(result)
    told: dict[str | None, list[Finding]] = {}
    for one in report.verdict.findings:
        told.setdefault(one.target, []).append(one)
    return Field(
        tuple(
            Candidate(
                target=target,
                seen=tuple(
                    _seen(told.get(target.name, []), vantage, by_pair[pair], results.get(pair, []))
                    for vantage in usable
                    if (pair := (target.name, vantage.name)) in by_pair
                ),
                unseen=tuple(one.name for one in usable if (target.name, one.name) not in by_pair),
                remarks=remarks.get(target.name, ()),
                findings=tuple(told.get(target.name, [])),
            )
            for target in plan.targets
        ),
        tuple(one.name for one in usable),
        left_out,
    )


def _measured(case: Case) -> bool:
    """Whether anything is known of a target from a place, good or bad."""
    return (
        case.nameless
        or any(view.counted for view in case.series)
        or any(path.view.rounds for path in case.paths)
        or any(view.exchanges for view in case.exchanged)
    )


def _left_out(
    report: Report, plan: Plan, by_pair: Mapping[Pair, list[Case]], planned: frozenset[Pair]
) -> Iterator[tuple[str, str]]:
    """Places that cannot be compared over, each with the reason."""
    measured = {target for target, _ in by_pair}
    busy = {place for one in report.verdict.findings if one.kind == "client-limited" for place in one.vantages}
    down = {one.name: one.why or "it could not measure" for one in report.vantages if one.outcome in DID_NOT_MEASURE}
    for vantage in plan.vantages:
        lacking = [
            target.name
            for target in plan.targets
            if target.name in measured
            and (target.name, vantage.name) in planned
            and (target.name, vantage.name) not in by_pair
        ]
        if vantage.name in down:
            yield vantage.name, down[vantage.name]
        elif vantage.name in busy:
            yield vantage.name, "it was too busy, or its clock stepped, while it measured"
        elif lacking:
            yield vantage.name, f"{lacking[0]} was not measured from there"
        elif not any((target.name, vantage.name) in by_pair for target in plan.targets):
            yield vantage.name, "nothing was measured from there"


def _seen(told: Sequence[Finding], vantage: Vantage, cases: Sequence[Case], results: Sequence[Measured]) -> Seen:
    """One candidate from one place, its addresses pooled; `told` is what was found of it from anywhere."""
    target = cases[0].target
    findings = tuple(one for one in told if vantage.name in one.vantages)
    series = {protocol: _counted(cases, protocol) for protocol in PROTOCOLS}
    ends = [view.who.protocol for case in cases if (view := case.end_series) is not None]
    servers, ttfts = list(_servers(cases)), list(_first_tokens(cases))
    rtt, loss = _path(cases, ends[0] if ends else None, series, results)
    distance_km, floor, stretched = _far(vantage, target, cases)
    return Seen(
        vantage=vantage,
        report=PlaceReport(
            vantage=vantage.name,
            outcome=_outcome(results, failing=any(one.severity == "critical" for one in findings)),
            weight=vantage.weight,
            rtt=rtt,
            loss=loss,
            server=delay(servers),
            ttft=delay(ttfts),
            distance_km=distance_km,
            floor_ms=floor,
            stretch=stretched,
            limits=tuple(_limits(cases)),
        ),
        rtts={protocol: middle for protocol in PROTOCOLS if (middle := median(_rtts(series[protocol]))) is not None},
        losses={protocol: _trials(series[protocol]) for protocol in PROTOCOLS if series[protocol]},
        server=median(servers),
        ttft=median(ttfts),
        findings=findings,
    )


def median(values_ns: Sequence[int]) -> Median | None:
    """The median of durations in ns, with its interval."""
    if not values_ns:
        return None
    ordered = sorted(value / MS for value in values_ns)
    ranks = order_ranks(len(ordered), 0.5, tail=TAIL)
    low, high = (ordered[ranks[0]], ordered[ranks[1]]) if ranks else (None, None)
    return Median(len(ordered), quantile(ordered, 0.5), low, high)


def _counted(cases: Sequence[Case], protocol: Protocol) -> list[Fated]:
    return [one for case in cases for view in case.of(protocol) for one in view.counted]


def _rtts(counted: Sequence[Fated]) -> list[int]:
    return [one.probe.rtt_ns for one in counted if one.outcome in ANSWERED and one.probe.rtt_ns is not None]


def _trials(counted: Sequence[Fated]) -> Trials:
    """Both counts; bursts are not independent trials."""
    losses = [lost for one in counted if (lost := is_lost(one.outcome)) is not None]
    if not losses:
        return Trials(NOTHING, NOTHING)
    trials = effective(losses)
    worth = Count(round(sum(losses) * trials / len(losses)), round(trials))
    return Trials(Count(sum(losses), len(losses)), worth)


def _path(
    cases: Sequence[Case],
    protocol: Protocol | None,
    series: Mapping[Protocol, list[Fated]],
    results: Sequence[Measured],
) -> tuple[Delay, Loss]:
    """Delay and loss of the end-to-end series; without one that is answered, of the trace, else of the requests."""
    if protocol is not None:
        alone = sum(bool(case.of(protocol)) for case in cases) == 1
        return delay_of(series[protocol], variation=alone), loss_of(series[protocol])
    tried = next((loss_of(series[one]) for one in PROTOCOLS if series[one]), NO_LOSS)
    for result in results:
        if isinstance(result, TraceResult) and result.end_to_end.loss.received:
            return result.end_to_end.delay, result.end_to_end.loss
    for result in results:
        if isinstance(result, HttpResult | StreamResult) and result.summary.network.n:
            return result.summary.network, NO_LOSS
    return Delay(n=0), tried


def _servers(cases: Sequence[Case]) -> Iterator[int]:
    """Time beyond the TCP endpoint of requests that were answered, ns; of streams where nothing else was asked.

    Hot requests count, all where none is hot (method 5.10).
    """
    for case in cases:
        asked = [
            (view.who.port, each)
            for view in case.requests
            for each in ([one for one in view.exchanges if not one.cold] or view.exchanges)
        ]
        if not asked:
            asked = [(view.who.port, each.exchange) for view in case.streams for each in hot(view.streams)]
        for port, exchange in asked:
            if exchange.error is None and exchange.done is not None:
                found = split.bracket(exchange, case.least_rtt(port))
                if found is not None and found.estimate is not None:
                    yield found.estimate


def _first_tokens(cases: Sequence[Case]) -> Iterator[int]:
    """Time to the first token of hot streams, ns."""
    streams: Iterator[StreamView] = (view for case in cases for view in case.streams)
    chosen: Iterator[Streamed] = (each for view in streams for each in hot(view.streams))
    for each in chosen:
        if each.first_token is not None and each.exchange.sent_first is not None:
            yield each.first_token - each.exchange.sent_first


def _outcome(results: Sequence[Measured], *, failing: bool) -> Outcome:
    """One word for a candidate at a place: why it fails, or that it is degraded, or ok."""
    outcomes = [one.outcome for one in results]
    if failing or not HEARD.intersection(outcomes):
        return next((one for one in outcomes if one not in {"ok", "degraded"}), "degraded")
    return "degraded" if "degraded" in outcomes else "ok"


def _far(vantage: Vantage, target: Target, cases: Sequence[Case]) -> tuple[float | None, float | None, float | None]:
    """Distance, floor and stretch, where both places were stated (method 4.6)."""
    if vantage.site is None or target.site is None:
        return None, None, None
    here, there = place_of_site(vantage.site), place_of_site(target.site)
    least = min((rtt for case in cases if (rtt := least_rtt_ms(case)) is not None), default=None)
    return (
        great_circle_km(here, there),
        floor_ms(here, there),
        None if least is None else stretch(least, here, there),
    )


def _limits(cases: Sequence[Case]) -> Iterator[LimitReport]:
    """Every limit of the budget, and those that only `critical` sets, over all addresses."""
    pooled: dict[str, Held] = {}
    told: set[str] = set()
    for budget in (cases[0].target.budget, cases[0].target.critical):
        for one in (one for case in cases for one in held(case, budget)):
            before = pooled.get(one.metric)
            if before is None:
                pooled[one.metric] = one
            elif one.metric not in told:
                whole = hold(one.metric, one.limit, one.unit, before.over + one.over, before.n + one.n, one.allowed)
                pooled[one.metric] = whole or before
        told |= pooled.keys()
    for one in pooled.values():
        yield LimitReport(
            metric=one.metric,
            limit=one.limit,
            unit="ratio" if one.unit == "ratio" else "ms",
            over=one.over,
            n=one.n,
            allowed=one.allowed,
            missed=one.missed,
            confidence=one.confidence,
        )
