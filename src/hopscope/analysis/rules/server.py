"""Findings about the server's time, budgets, and what we must not judge. Rules 2.6, 1.6 and 5.10 of the method."""

from collections.abc import Callable, Iterator
from statistics import median

from hopscope.analysis import reach
from hopscope.analysis import stream as streaming
from hopscope.analysis.budget import Held, answered, held, server_ms, ttfb_ms
from hopscope.analysis.case import Case
from hopscope.analysis.path import LEAST_PROBES, count, shows_loss
from hopscope.analysis.rules.find import finding
from hopscope.analysis.say import count as how_many
from hopscope.analysis.say import ms, ratio, share
from hopscope.model.report import Finding, Owner, Request, Severity

SLOW_MS = 1000.0
SLOW_RTTS = 10
SERIES_METRICS = frozenset({"rtt_p50", "rtt_p95", "pdv_p95"})
SERVER = Owner(role="model-server", name="beyond the TCP endpoint")
SERVER_METRICS: dict[str, Callable[[Request], float | None]] = {"server_p95": server_ms, "ttfb_p95": ttfb_ms}
"""Limits that a server's time can miss, and what they limit."""


def server_slow(case: Case) -> Iterator[Finding]:
    """Time beyond the TCP endpoint over its budget; without one, over max(1 s, 10 × min_rtt) (method 5.10)."""
    requests = [request for request in answered(case) if request.server is not None]
    if not requests:
        return
    judged = [*held(case, case.target.budget), *held(case, case.target.critical)]
    server = [one for one in judged if one.metric in SERVER_METRICS]
    missed = [one for one in server if one.missed and _is_servers(case, requests, _over_it(requests, one))]
    estimate, rtt, waited = _typical(_over_it(requests, missed[0]) if missed else requests)
    if estimate is None:
        return
    limit = max(SLOW_MS, SLOW_RTTS * rtt) if rtt is not None else SLOW_MS
    if not missed and (server or estimate <= limit):
        return
    network = "" if rtt is None else f", of which the network's round trip is {ms(rtt)}"
    against = f"its budget {missed[0].metric} is {ms(missed[0].limit)}" if missed else f"more than {ms(limit)}"
    yield finding(
        case,
        "server-slow",
        "warning",
        confidence=missed[0].confidence if missed else "shown",
        why=f"{case.address} needs {ms(estimate)} beyond the TCP endpoint before it answers ({against}); "
        f"the whole wait is {ms(waited)}{network}",
        next_step="look at the server: queue, model load, GPU; no route change will help",
        changes_mind="a request that is answered fast on the same path",
        evidence={
            "server_ms": estimate,
            "rtt_ms": rtt,
            "wait_ms": waited,
            "requests": len(requests),
            "limit_ms": missed[0].limit if missed else limit,
        },
        owner=SERVER,
    )


def first_token_slow(case: Case) -> Iterator[Finding]:
    """The server's time to its first token, by the same limits (method 5.10): many send the head at once."""
    for view in case.streams:
        seen = streaming.summary(view.streams, case.least_rtt(view.who.port))
        estimate, rtt = seen.ttft_server.p50_ms, seen.network.min_ms
        limits = [one for one in (case.target.budget.ttft_p95_ms, case.target.budget.ttft_p50_ms) if one is not None]
        limit = max(limits) if limits else max(SLOW_MS, SLOW_RTTS * (rtt or 0.0))
        if estimate is not None and estimate > limit:
            yield finding(
                case,
                "server-slow",
                "warning",
                why=f"{case.address} needs {ms(estimate)} beyond the TCP endpoint to its first token (more than "
                f"{ms(limit)}); the network's round trip is {ms(rtt)}",
                next_step="look at the server: queue, prompt length, model load, GPU; no route change will help",
                changes_mind="a first token that comes fast on the same path",
                evidence={"ttft_server_ms": estimate, "ttft_ms": seen.ttft.p50_ms, "rtt_ms": rtt, "limit_ms": limit},
                owner=SERVER,
                where="first-token",
            )


def _typical(requests: list[Request]) -> tuple[float | None, float | None, float | None]:
    """Medians over the hot requests (all where none is hot): server time, round trip, wait."""
    used = [request for request in requests if not request.cold] or requests
    estimates = [value for request in used if (value := server_ms(request)) is not None]
    rtts = [request.rtt_ms for request in requests if request.rtt_ms is not None]
    waits = [value for request in used if (value := ttfb_ms(request)) is not None]
    return (
        median(estimates) if estimates else None,
        min(rtts) if rtts else None,
        median(waits) if waits else None,
    )


def _over_it(requests: list[Request], one: Held) -> list[Request]:
    """Answered requests that are over a limit."""
    value = SERVER_METRICS[one.metric]
    return [request for request in requests if (value(request) or 0.0) > one.limit]


def _is_servers(case: Case, requests: list[Request], over: list[Request]) -> bool:
    """Whether the server owns most of the wait of requests that were over a limit.

    A segment that its host had to send again looks from here like time of the server (method 5.7). So where the way
    loses packets, a few late answers accuse nobody; most of them do.
    """
    lossy = any(shows_loss(count(view.counted)) for view in case.series) or any(path.along.lossy for path in case.paths)
    if lossy and len(over) * 2 <= len(requests):
        return False
    estimate, _, waited = _typical(over)
    return estimate is not None and (waited is None or estimate * 2 >= waited)


def over_budget(case: Case) -> Iterator[Finding]:
    """Limits that were missed (method 2.6): a bound that shows it is needed for more than a warning."""
    reported: set[str] = set()
    for budget, severity in ((case.target.critical, "critical"), (case.target.budget, "warning")):
        for one in held(case, budget):
            if one.missed and one.metric not in reported:
                reported.add(one.metric)
                yield _over(
                    case, one, "critical" if severity == "critical" and one.confidence == "shown" else "warning"
                )


def _over(case: Case, one: Held, severity: Severity) -> Finding:
    """One missed limit."""
    limit = ms(one.limit) if one.unit == "ms" else ratio(one.limit)
    lost = _lost_among(case, one)
    if one.unit == "ms":
        why = (
            f"{one.metric} of {case.target.name} misses {limit}: "
            f"{share(one.over, one.n)} of the samples are over it, {ratio(one.allowed)} may be"
        )
        why += f"; {lost} of them were lost, which counts as over" if lost else ""
    else:
        why = f"loss of {case.target.name} misses {limit}: {share(one.over, one.n)} are lost"
    return finding(
        case,
        "over-budget",
        severity,
        confidence=one.confidence,
        why=why,
        next_step=_budget_step("loss" if lost * 2 > one.over else one.metric),
        changes_mind="more samples, or another limit",
        evidence={"metric": one.metric, "limit": one.limit, "over": one.over, "n": one.n, "allowed": one.allowed},
        where=one.metric,
    )


def _lost_among(case: Case, one: Held) -> int:
    """How many of the samples over a limit on round trips are over it because they never came (method 2.6)."""
    view = case.end_series
    return min(one.over, count(view.counted).lost) if view is not None and one.metric in SERIES_METRICS else 0


def _budget_step(metric: str) -> str:
    """What to look at for each limit."""
    if metric in SERVER_METRICS:
        return "compare the server's time with the network's in the table of phases"
    if metric == "loss":
        return "see where the loss begins in the path"
    return "see where the way gets longer in the path; distance cannot be bought away"


def client_limited(case: Case) -> Iterator[Finding]:
    """Our own clock, CPU or socket spoiled a result: nobody is blamed on it (method 1.6)."""
    samples = [*(sample for view in case.series for sample in view.samples)]
    samples += [sample for path in case.paths for sample in path.view.samples]
    samples += [sample for view in case.exchanged for sample in view.samples]
    spoiled = [sample for sample in samples if sample.done is not None and sample.done.check.limited]
    if spoiled:
        yield finding(
            case,
            "client-limited",
            "unknown",
            why=f"this machine was too busy or its clock stepped while {how_many(len(spoiled), 'measurement')} ran: "
            "their numbers are ours, not the network's",
            next_step="free the CPU of this machine, or measure from another, and run again",
            changes_mind="a run with an idle CPU",
            evidence={"spoiled": len(spoiled), "of": len(samples)},
            owner=Owner(role="you"),
        )


def not_enough_data(case: Case) -> Iterator[Finding]:
    """An answering target of which too little was seen to judge loss."""
    view = case.end_series
    if view is None:
        return
    seen = count(view.counted)
    if seen.lost and seen.sent < LEAST_PROBES and reach.answers(view):
        yield finding(
            case,
            "not-enough-data",
            "info",
            confidence="undecided",
            why=f"{share(seen.lost, seen.sent)} lost: not enough data to judge, {LEAST_PROBES} probes are the least",
            next_step=f"hopscope ping {case.address} -c 100",
            changes_mind="more probes",
            evidence={"lost": seen.lost, "sent": seen.sent},
        )
