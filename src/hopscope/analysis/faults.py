"""What speaks against a candidate, and what is not known of it: short sentences with numbers, the weightiest first.

Either keeps it from being bought. Every finding above info from a place that counts is told by one of them.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import asdict

from hopscope.analysis.binomial import wilson
from hopscope.analysis.candidate import Candidate, Seen
from hopscope.analysis.path import LEAST_PROBES
from hopscope.analysis.say import hop, ms, ratio
from hopscope.analysis.standing import missed
from hopscope.model.plan import ProbeKind
from hopscope.model.report import Finding, FindingKind, LimitReport

LABELS: dict[str, str] = {
    "rtt_p50": "RTT p50", "rtt_p95": "RTT p95", "pdv_p95": "PDV p95", "loss": "loss", "connect_p95": "connect p95",
    "tls_p95": "TLS p95", "ttfb_p95": "TTFB p95", "server_p95": "server p95", "server_p50": "server p50",
    "ttft_p50": "TTFT p50", "ttft_p95": "TTFT p95", "tpot_p95": "time per token p95", "tps": "time per token p50",
}  # fmt: skip
"""How a metric is called; `tps` is held as the time of a token."""
PROBES: dict[ProbeKind, frozenset[str]] = {
    "ping": frozenset({"rtt_p50", "rtt_p95", "pdv_p95", "loss"}),
    "http": frozenset({"connect_p95", "tls_p95", "ttfb_p95", "server_p95"}),
    "stream": frozenset({"ttft_p50", "ttft_p95", "tpot_p95", "tps"}),
}
"""Which probe measures what a limit is on."""
SERVED = frozenset({"server_p95", "ttfb_p95", "ttft_p50", "ttft_p95"})
"""Limits that `server-slow` explains where it is found: the operator may mend that, so it is a question to ask."""
TOLD: frozenset[FindingKind] = frozenset({"lossy-from", "server-slow", "doubtful-place", "over-budget"})
"""Kinds that have a sentence of their own."""
NAMES = 4
OTHERS = 3
LEAST_REQUESTS = 6
"""Method 2.5: fewer do not carry the interval of a median."""


def listed(names: Iterable[str]) -> str:
    """A, b and c; at most four by name."""
    known = list(dict.fromkeys(names))
    *most, last = [*known[:NAMES], f"{len(known) - NAMES} more"] if len(known) > NAMES else known or ["nowhere"]
    return f"{', '.join(most)} and {last}" if most else last


# ---- what speaks against it -----------------------------------------------------------------------------------------


def against(candidate: Candidate) -> Iterator[str]:
    """Everything that was found against it, the worst first; nothing where nothing was."""
    yield from _failing(candidate)
    yield from _lossy(candidate)
    yield from _slow(candidate)
    yield from _missed(candidate)
    yield from _doubtful(candidate)
    yield from _other(candidate)


def findings(candidate: Candidate, *kinds: FindingKind) -> list[Finding]:
    """What was found above info from the places that count, of some kinds."""
    return [one for each in candidate.seen for one in each.findings if one.severity != "info" and one.kind in kinds]


def _failing(candidate: Candidate) -> Iterator[str]:
    critical = [one for each in candidate.seen for one in each.findings if one.severity == "critical"]
    for group in _by_kind(one for one in critical if one.kind not in TOLD):
        yield f"fails from {_places(group)}: {group[0].why}"


def _lossy(candidate: Candidate) -> Iterator[str]:
    """Loss with its interval and its segment, counts pooled over the places that see the same one."""
    groups: dict[str | None, list[tuple[Seen, Finding]]] = {}
    for each in candidate.seen:
        for one in each.findings:
            if one.kind == "lossy-from" and one.severity != "info":
                groups.setdefault(None if one.segment is None else one.segment.to.address, []).append((each, one))
    limit = next((one.limit for each in candidate.seen for one in missed(each) if one.metric == "loss"), None)
    allowed = "" if limit is None else f"; {ratio(limit)} is allowed"
    for pairs in groups.values():
        group = [one for _, one in pairs]
        lost, sent = (sum(_number(one, key) or 0.0 for one in group) for key in ("end_lost", "end_sent"))
        if not sent:
            continue
        low, high = _interval(pairs, lost, sent)
        doubt = "" if any(one.confidence != "undecided" for one in group) else ", not decided yet"
        unknown = "; where it begins is not known yet" if all(one.segment is None for one in group) else ""
        yield (
            f"{ratio(lost / sent)} loss (95 % interval {ratio(low).removesuffix(' %')}–{ratio(high)}){_where(group)}, "
            f"from {_places(group)}{unknown}{allowed}{doubt}"
        )


def _interval(pairs: Sequence[tuple[Seen, Finding]], lost: float, sent: float) -> tuple[float, float]:
    """The interval of pooled loss, in independent trials (method 2.5); that of the table where it is of one place."""
    table = pairs[0][0].report.loss
    alone = len(pairs) == 1 and (table.lost, table.sent) == (lost, sent)
    if alone and table.low is not None and table.high is not None:
        return table.low, table.high
    trials = sum((_number(one, "end_sent") or 0.0) * each.independent for each, one in pairs)
    return wilson(lost / sent * trials, trials)


def _where(group: Sequence[Finding]) -> str:
    """Between which hops, with a space before; nothing where that is not known."""
    segments = [one.segment for one in group if one.segment is not None]
    if not segments:
        return ""
    near, far = segments[0].from_, segments[0].to
    if len({(one.from_.ttl, one.to.ttl) for one in segments}) == 1:
        return f" between {hop(near.ttl, near.address)} and {hop(far.ttl, far.address)}"
    return f" between {near.address or 'the hop before'} and {far.address or 'the hop behind'}"


def _slow(candidate: Candidate) -> Iterator[str]:
    """The server's own time: to its first byte, and to its first token."""
    for key, until in (("server_ms", "byte"), ("ttft_server_ms", "token")):
        slow = [one for one in findings(candidate, "server-slow") if _number(one, key) is not None]
        if slow:
            worst = max(slow, key=lambda one: _number(one, key) or 0.0)
            yield (
                f"its server needs {ms(_number(worst, key))} before the first {until}, more than "
                f"{ms(_number(worst, 'limit_ms'))}: no route change will help"
            )


def _missed(candidate: Candidate) -> Iterator[str]:
    """Limits that are missed, those left out that the loss or the slow server have told already."""
    for metric, missing in misses(candidate).items():
        places = [(each, limit) for each, limit in missing if metric != "loss" or not _told_lossy(each)]
        if all(explained(each, limit) for each, limit in places):
            continue
        shares = sorted(limit.over / limit.n for _, limit in places)
        spread = ratio(shares[-1]) if shares[0] == shares[-1] else f"{ratio(shares[0])} to {ratio(shares[-1])}"
        limit = places[0][1]
        likely = "" if any(one.confidence == "shown" for _, one in places) else "likely "
        names = listed(each.vantage.name for each, _ in places)
        if limit.unit == "ratio":
            yield f"{likely}misses loss of {ratio(limit.limit)} from {names}: {spread} is lost"
        else:
            yield (
                f"{likely}misses {LABELS[metric]} of {ms(limit.limit)} from {names}: {spread} of the samples are over "
                f"it, {ratio(limit.allowed)} may be{_too_far(metric, places)}"
            )


def _told_lossy(each: Seen) -> bool:
    """Whether a sentence on loss names this place."""
    return any(one.kind == "lossy-from" and one.severity != "info" for one in each.findings)


def misses(candidate: Candidate) -> dict[str, list[tuple[Seen, LimitReport]]]:
    """By metric the places that miss its limit."""
    found: dict[str, list[tuple[Seen, LimitReport]]] = {}
    for each in candidate.seen:
        for limit in missed(each):
            found.setdefault(limit.metric, []).append((each, limit))
    return found


def explained(each: Seen, limit: LimitReport) -> bool:
    """Whether a slow server explains that a limit is missed there."""
    return limit.metric in SERVED and any(one.kind == "server-slow" for one in each.findings)


def _too_far(metric: str, places: Sequence[tuple[Seen, LimitReport]]) -> str:
    """Where distance alone breaks a limit on the round trip."""
    floors = [
        (each.report.floor_ms, each.vantage.name)
        for each, limit in places
        if metric in {"rtt_p50", "rtt_p95"} and each.report.floor_ms and each.report.floor_ms > limit.limit
    ]
    return f"; {ms(max(floors)[0])} of it is distance from {max(floors)[1]}, no money removes it" if floors else ""


def _doubtful(candidate: Candidate) -> Iterator[str]:
    group = findings(candidate, "doubtful-place")
    if group:
        least, floor = (_number(group[0], key) for key in ("least_rtt_ms", "floor_ms"))
        yield (
            f"its stated place is doubtful: it answers {_places(group[:1])} in {ms(least)}, and distance alone needs "
            f"{ms(floor)}"
        )


def _other(candidate: Candidate) -> Iterator[str]:
    """What has no sentence of its own, and limits that only one of several addresses misses."""
    known = misses(candidate)
    rest = [
        one
        for each in candidate.seen
        for one in each.findings
        if (one.kind not in TOLD and one.severity in {"warning", "unknown"})
        or (one.kind == "over-budget" and one.evidence.get("metric") not in known)
    ]
    for group in _by_kind(rest)[:OTHERS]:
        yield f"{group[0].why} (from {_places(group)})"


def _by_kind(found: Iterable[Finding]) -> list[list[Finding]]:
    groups: dict[FindingKind, list[Finding]] = {}
    for one in found:
        groups.setdefault(one.kind, []).append(one)
    return list(groups.values())


def _places(group: Iterable[Finding]) -> str:
    return listed(name for one in group for name in one.vantages)


def _number(one: Finding, key: str) -> float | None:
    value = one.evidence.get(key)
    return float(value) if isinstance(value, int | float) else None


# ---- what is not known ----------------------------------------------------------------------------------------------


def doubts(candidate: Candidate, *, others_limited: bool) -> Iterator[str]:
    """What keeps it from being bought although nothing speaks against it."""
    if candidate.unseen:
        yield f"not measured from {listed(candidate.unseen)}, where others were"
    yield from _unjudged(candidate)
    thin = [each.vantage.name for each in candidate.seen if not each.failing and not _enough(each)]
    if thin:
        yield f"too little was measured from {listed(thin)} to be sure"
    if others_limited and not candidate.limited:
        yield "no budget is set for it, while others have one"


def _enough(each: Seen) -> bool:
    """Whether there are as many probes as loss is judged from; without any, as many requests as carry a median."""
    seen = each.report
    if seen.loss.sent:
        return seen.loss.sent >= LEAST_PROBES
    return max(seen.server.n, seen.ttft.n) >= LEAST_REQUESTS


def _unjudged(candidate: Candidate) -> Iterator[str]:
    lacking = unjudged(candidate)
    if lacking:
        probes = [probe for probe, metrics in PROBES.items() if metrics & set(lacking)]
        missing = [probe for probe in probes if probe not in candidate.target.probes]
        remedy = f"; add {listed(missing)} to its probes" if missing else ""
        yield f"could not be judged: {listed(LABELS[name] for name in lacking)}, nothing measured says it{remedy}"


def unjudged(candidate: Candidate) -> list[str]:
    """Limits that nothing measured could be held against, from some place where the target does not fail."""
    secure = (candidate.target.url or "").startswith("https:")
    judged = [{limit.metric for limit in each.report.limits} for each in candidate.seen if not each.failing]
    wanted = [name for name in limits(candidate) if name != "tls_p95" or secure]
    return [name for name in wanted if any(name not in there for there in judged)]


def limits(candidate: Candidate) -> list[str]:
    """The metrics that it has a limit on."""
    both = (candidate.target.budget, candidate.target.critical)
    names = (name for budget in both for name, limit in asdict(budget).items() if limit is not None)
    return list(dict.fromkeys(name.removesuffix("_ms") for name in names))
