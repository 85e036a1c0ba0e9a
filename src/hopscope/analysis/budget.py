"""Samples against limits, by counting (method 2.6): met or missed where a binomial bound shows it, else likely."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from hopscope.analysis import split
from hopscope.analysis import stream as streaming
from hopscope.analysis.binomial import at_least, at_most
from hopscope.analysis.case import Case
from hopscope.analysis.loss import is_lost
from hopscope.model.limits import MS
from hopscope.model.plan import Budget
from hopscope.model.report import Confidence, Request

MS_PER_SECOND = 1000.0
BOUND = 0.05
"""One-sided, 95 %."""


class Held(Struct, frozen=True, kw_only=True):
    """One limit held against a sample: `over` of `n` lie above it, `allowed` of them may."""

    metric: str
    limit: float
    unit: str
    over: int
    n: int
    allowed: float
    missed: bool
    confidence: Confidence


def hold(metric: str, limit: float, unit: str, over: int, n: int, allowed: float) -> Held | None:
    """Judge one limit; `None` where there is nothing to judge."""
    if n == 0:
        return None
    if at_least(over, n, allowed) < BOUND:
        missed, confidence = True, "shown"
    elif at_most(over, n, allowed) < BOUND:
        missed, confidence = False, "shown"
    else:
        missed, confidence = over > allowed * n, "likely"
    return Held(
        metric=metric, limit=limit, unit=unit, over=over, n=n, allowed=allowed, missed=missed,
        confidence="shown" if confidence == "shown" else "likely",
    )  # fmt: skip


def _above(values: Sequence[float | None], limit: float) -> int:
    """How many lie above a limit; those that never came do."""
    return sum(value is None or value > limit for value in values)


def held(case: Case, budget: Budget) -> Iterator[Held]:
    """Every limit of a budget that this case can be held against."""
    yield from held_series(case, budget)
    yield from _held_requests(case, budget)
    yield from _held_streams(case, budget)


def held_series(case: Case, budget: Budget) -> Iterator[Held]:
    """Limits on delay, its variation, and loss, held against the end-to-end series."""
    view = case.end_series
    if view is None or budget == Budget():
        return
    counted = [one for one in view.counted if is_lost(one.outcome) is not None]
    rtts = [None if is_lost(one.outcome) or one.probe.rtt_ns is None else one.probe.rtt_ns / MS for one in counted]
    least = min((rtt for rtt in rtts if rtt is not None), default=0.0)
    variation = [None if rtt is None else rtt - least for rtt in rtts]
    rows = (
        ("rtt_p50", budget.rtt_p50_ms, rtts, 0.50),
        ("rtt_p95", budget.rtt_p95_ms, rtts, 0.05),
        ("pdv_p95", budget.pdv_p95_ms, variation, 0.05),
    )
    for metric, limit, values, allowed in rows:
        if limit is not None and (one := hold(metric, limit, "ms", _above(values, limit), len(values), allowed)):
            yield one
    if budget.loss is not None:
        lost = sum(rtt is None for rtt in rtts)
        if one := hold("loss", budget.loss, "ratio", lost, len(rtts), budget.loss):
            yield one


def answered(case: Case) -> list[Request]:
    """All requests of a case, as the report shows them."""
    return [
        split.request(exchange, case.least_rtt(view.who.port)) for view in case.requests for exchange in view.exchanges
    ]


def _held_requests(case: Case, budget: Budget) -> Iterator[Held]:
    """Limits on the phases of requests; a request that failed is over each of them.

    One whose server time is unknown for want of a round trip to subtract is not held against that limit.
    """
    requests = answered(case)
    cold = [request for request in requests if request.cold]
    known = [request for request in requests if request.error is not None or server_ms(request) is not None]
    rows = (
        ("connect_p95", budget.connect_p95_ms, [request.phases_ms.connect for request in cold]),
        ("tls_p95", budget.tls_p95_ms, [request.phases_ms.tls for request in cold] if _secure(case) else []),
        ("ttfb_p95", budget.ttfb_p95_ms, [ttfb_ms(request) for request in requests]),
        ("server_p95", budget.server_p95_ms, [server_ms(request) for request in known]),
    )
    for metric, limit, values in rows:
        if limit is not None and (one := hold(metric, limit, "ms", _above(values, limit), len(values), 0.05)):
            yield one


def _held_streams(case: Case, budget: Budget) -> Iterator[Held]:
    """Limits on streams of tokens; a request that failed, or gave no token, is over each of them."""
    requests = [
        streaming.request(each, case.least_rtt(view.who.port)) for view in case.streams for each in view.streams
    ]
    slowest_ms = MS_PER_SECOND / budget.tps if budget.tps else None
    paced = [request.tpot_ms for request in requests if request.error is not None or request.tpot_ms is not None]
    rows = (
        ("ttft_p50", budget.ttft_p50_ms, [request.ttft_ms for request in requests], 0.50),
        ("ttft_p95", budget.ttft_p95_ms, [request.ttft_ms for request in requests], 0.05),
        ("tpot_p95", budget.tpot_p95_ms, paced, 0.05),
        ("tps", slowest_ms, paced, 0.50),
    )
    for metric, limit, values, allowed in rows:
        if limit is not None and (one := hold(metric, limit, "ms", _above(values, limit), len(values), allowed)):
            yield one


def _secure(case: Case) -> bool:
    """Whether the target is asked over TLS."""
    return any(view.url.startswith("https:") for view in case.requests)


def ttfb_ms(request: Request) -> float | None:
    """Request ready on an established connection → first byte of the head (facts: set-up is never inside)."""
    if request.phases_ms.wait is None:
        return None
    return (request.phases_ms.upload or 0.0) + request.phases_ms.wait


def server_ms(request: Request) -> float | None:
    """Estimate of the time beyond the TCP endpoint."""
    return None if request.server is None else request.server.estimate_ms
