"""Views → results of the report: one for each task, vantage and address tried, also when nothing answered."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import sha256

from hopscope.analysis import reach, split
from hopscope.analysis.delay import delay
from hopscope.analysis.instants import iso, iso_or_none, milliseconds
from hopscope.analysis.loss import loss
from hopscope.analysis.path import ANSWERED, Count, LossAlong, Step, arrived, count, distance, ended
from hopscope.analysis.views import Fated, HttpView, PathView, SeriesView, checks
from hopscope.model.limits import MS, SECOND
from hopscope.model.record import Clock, Named, Probe, SelfCheck
from hopscope.model.report import (
    Client,
    Delay,
    EndToEnd,
    Evidence,
    FlowPath,
    FlowReport,
    Hop,
    HttpResult,
    Label,
    Loss,
    Outcome,
    PathEnd,
    PathSummary,
    PingResult,
    PingSample,
    Responder,
    Samples,
    TraceResult,
)
from hopscope.model.sample import Sample

LEAST_FOR_A_LABEL = 10
LABEL_ORDER: tuple[Label, ...] = (
    "lossy-from", "slow-from", "varying-from", "replies-limited", "silent", "not-enough-data", "ok"
)  # fmt: skip


class SeriesSamples(Samples):
    """Samples of a series, made while they are read."""

    def __init__(self, fated: Sequence[Fated]) -> None:
        self._fated = fated

    def __iter__(self) -> Iterator[PingSample]:
        """Yield every probe, warm-up included; a late answer's delay is not in it, since that probe is lost."""
        for one in self._fated:
            probe = one.probe
            yield PingSample(
                seq=probe.seq,
                flow=probe.flow,
                warmup=probe.warmup,
                sent_at=iso(probe.at),
                outcome=one.outcome,
                rtt_ms=milliseconds(probe.rtt_ns),
                clock=probe.clock,
                reply_ttl=probe.reply_ttl,
            )


def client(check: SelfCheck) -> Client:
    """Our own exam, in milliseconds."""
    return Client(
        late_p99_ms=milliseconds(check.late_p99_ns),
        drops=check.drops,
        clock_step_ms=check.clock_step_ns / MS,
        limited=check.limited,
    )


def started(samples: Sequence[Sample]) -> str | None:
    """When the first of some tasks began."""
    return iso_or_none(min((sample.begun for sample in samples), default=None))


def finished(samples: Sequence[Sample]) -> str | None:
    """When the last of some tasks ended; `None` while one runs or was cut off without a word."""
    ends = [sample.done.at for sample in samples if sample.done is not None]
    return iso(max(ends)) if ends and len(ends) == len(samples) else None


def loss_of(fated: Sequence[Fated], *, duplicates: int = 0) -> Loss:
    """Loss of probes, in the order of sending."""
    return loss([one.outcome for one in fated], duplicates=duplicates)


def delay_of(fated: Sequence[Fated], *, variation: bool = True) -> Delay:
    """Delay of those that were answered, with the variation between neighbours."""
    probes = [one.probe for one in fated if one.outcome in ANSWERED]
    if variation:
        probes.sort(key=_sequence)
    rtts = [probe.rtt_ns for probe in probes if probe.rtt_ns is not None]
    return delay(rtts, [probe.seq for probe in probes if probe.rtt_ns is not None] if variation else None)


def _sequence(probe: Probe) -> int:
    return probe.seq


def usual_clock(fated: Sequence[Fated]) -> Clock | None:
    """The clock of most answers."""
    clocks = [one.probe.clock for one in fated if one.probe.clock is not None]
    return Counter(clocks).most_common(1)[0][0] if clocks else None


def ping_result(view: SeriesView) -> PingResult:
    """Result of a series."""
    counted = view.counted
    warmups = {one.probe.seq for one in view.fated if one.probe.warmup}
    extras = [extra for sample in view.samples for extra in sample.extras if extra.seq not in warmups]
    duplicates = sum(extra.what == "duplicate" for extra in extras)
    numbers = sorted({one.probe.flow for one in counted})
    flows = [(flow, [one for one in counted if one.probe.flow == flow]) for flow in numbers]
    return PingResult(
        target=view.who.target,
        vantage=view.who.vantage,
        outcome=reach.of_series(view),
        address=view.who.address,
        family=view.who.family,
        protocol=view.who.protocol,
        port=view.who.port,
        started_at=started(view.samples),
        finished_at=finished(view.samples),
        client=client(checks(view.samples)),
        clock=usual_clock(counted),
        loss=loss_of(counted, duplicates=duplicates),
        delay=delay_of(counted),
        flows=tuple(
            FlowReport(flow=flow, loss=loss_of(probes), delay=delay_of(probes, variation=False))
            for flow, probes in flows
        ),
        samples=SeriesSamples(view.fated),
        why=next((one.probe.why for one in counted if one.probe.why), None) or _about_warm_up(view),
    )


def _about_warm_up(view: SeriesView) -> str | None:
    """What is to be said of the packet ahead of a series (method 2.8), or `None`."""
    if any(one.probe.warmup and one.outcome == "lost" for one in view.fated) and not count(view.counted).lost:
        return "the warm-up packet ahead of the series was lost"
    alone = len(view.counted) == 1 and len(view.fated) == 1
    return "a single probe goes without a warm-up packet ahead of it" if alone else None


def trace_result(view: PathView, along: LossAlong, steps: Sequence[Step], named: dict[str, list[Named]]) -> TraceResult:
    """Result of a path, each hop labelled by what was judged of it."""
    last = distance(view)
    family = view.who.family
    at_end = view.rounds.get(last, []) if last is not None else []
    reached = any(arrived(one, family) for one in at_end)
    hops = tuple(_hop(view, ttl, along, steps, named) for ttl in _shown(view, last))
    end = [*at_end, *_beyond(view, last)] if reached else []
    return TraceResult(
        target=view.who.target,
        vantage=view.who.vantage,
        outcome=_trace_outcome(view, reached=reached, end=at_end, lossy=along.lossy),
        address=view.who.address,
        family=family,
        protocol=view.who.protocol,
        port=view.who.port,
        started_at=started(view.samples),
        finished_at=finished(view.samples),
        client=client(checks(view.samples)),
        flow="varies" if view.varies else "constant",
        reached=reached,
        end=_end(view, last, reached=reached),
        hops=hops,
        flows=(
            FlowPath(
                flow=view.flow,
                source_port=None,
                loss=loss_of(end),
                ttls=tuple(hop.ttl for hop in hops if hop.responders),
            ),
        ),
        path=_summary(hops),
        end_to_end=EndToEnd(loss=loss_of(end), delay=delay_of(end, variation=False)),
    )


def _trace_outcome(view: PathView, *, reached: bool, end: Sequence[Fated], lossy: bool) -> Outcome:
    """Outcome of a path: what ended it."""
    if reached:
        return "degraded" if lossy else "ok"
    errors = [one.probe for one in end if one.probe.kind == "unreachable"]
    if errors:
        prohibited = all(probe.code in reach.PROHIBITED[view.who.family] for probe in errors)
        return "prohibited" if prohibited else "unreachable"
    return "timeout"


def _beyond(view: PathView, last: int | None) -> list[Fated]:
    """Probes one TTL beyond the target: they arrive there as well."""
    beyond = [] if last is None else view.rounds.get(last + 1, [])
    return beyond if any(arrived(one, view.who.family) for one in beyond) else []


def _shown(view: PathView, last: int | None) -> list[int]:
    """TTLs that get a row: all up to the end, silent ones included (method 3.5)."""
    asked = sorted(view.rounds)
    if not asked:
        return []
    return list(range(asked[0], (last if last is not None else asked[-1]) + 1))


def _end(view: PathView, last: int | None, *, reached: bool) -> PathEnd | None:
    """How the path ended (method 3.4)."""
    if not view.rounds:
        return None
    if last is None:
        furthest = max((ttl for ttl, probes in view.rounds.items() if _answered(probes)), default=0)
        asked = max(view.rounds)
        return PathEnd(
            how="max-ttl" if furthest == asked else "gap-limit", code=None, address=None, ttl=furthest or None
        )
    probe = next(one.probe for one in view.rounds[last] if ended(one, view.who.family))
    address = probe.by or view.who.address
    if probe.kind == "unreachable":
        said = reached or probe.by is not None
        return PathEnd(how="unreachable" if said else "nat", code=probe.code, address=address, ttl=last)
    how = probe.kind if probe.kind is not None and probe.kind != "time-exceeded" else "echo-reply"
    return PathEnd(how=how, code=None, address=address, ttl=last)


def _answered(probes: Sequence[Fated]) -> list[Fated]:
    return [one for one in probes if one.outcome in {"replied", "refused"}]


def _hop(view: PathView, ttl: int, along: LossAlong, steps: Sequence[Step], named: dict[str, list[Named]]) -> Hop:
    """One row."""
    probes = view.rounds.get(ttl, [])
    labels = _labels(ttl, probes, along, steps)
    addresses = sorted(
        {one.probe.by or view.who.address for one in _answered(probes)},
        key=partial(_answers_of, probes, view.who.address),
        reverse=True,
    )
    return Hop(
        ttl=ttl,
        label=labels[0],
        labels=labels,
        responders=tuple(_responder(address, probes, view.who.address, named) for address in addresses),
        loss=loss_of(probes),
        delay=delay_of(probes),
        evidence=_evidence(ttl, along, view),
    )


def _answers_of(probes: Sequence[Fated], target: str, address: str) -> int:
    """How many answers one address gave."""
    return sum((one.probe.by or target) == address for one in _answered(probes))


def _labels(ttl: int, probes: Sequence[Fated], along: LossAlong, steps: Sequence[Step]) -> tuple[Label, ...]:
    """Labels of a hop, the worst first."""
    found: set[Label] = set()
    first = along.first_lossy
    if along.decided and first is not None and first.ttl == ttl:
        found.add("lossy-from")
    if any(step.ttl == ttl for step in steps):
        found.add("slow-from")
    if any(hop.ttl == ttl for hop in along.limited) or (along.excused is not None and along.witnesses[-1].ttl == ttl):
        found.add("replies-limited")
    row = loss_of(probes)
    if not row.received:
        found.add("silent" if row.sent else "not-enough-data")
    elif row.sent < LEAST_FOR_A_LABEL and row.lost:
        found.add("not-enough-data")
    return tuple(label for label in LABEL_ORDER if label in found) or ("ok",)


def _evidence(ttl: int, along: LossAlong, view: PathView) -> Evidence:
    """Numbers behind a label."""
    limited = next((hop for hop in along.limited if hop.ttl == ttl), None)
    if limited is None:
        return {}
    evidence: Evidence = {
        "asked_per_s": SECOND / view.interval_ns,
        "answered_ratio": 1 - limited.count.lost / limited.count.sent,
        "beyond_lost": limited.beyond.lost,
        "beyond_sent": limited.beyond.sent,
        "p": limited.p,
    }
    return evidence | slow_evidence(limited.slow, view.slow_interval_ns.get(ttl))


def slow_evidence(slow: Count | None, interval_ns: int | None) -> Evidence:
    """What a hop did when it was asked slowly."""
    if slow is None or interval_ns is None:
        return {}
    return {"slow_asked_per_s": SECOND / interval_ns, "slow_lost": slow.lost, "slow_sent": slow.sent}


def _responder(address: str, probes: Sequence[Fated], target: str, named: dict[str, list[Named]]) -> Responder:
    """One address at a TTL, with what is known of it."""
    its = [one for one in _answered(probes) if (one.probe.by or target) == address]
    last = its[-1].probe
    known = named.get(address, [])
    return Responder(
        address=address,
        received=len(its),
        hostname=next((name.hostname for name in known if name.hostname is not None), None),
        asn=next((name.asn for name in known if name.asn is not None), None),
        as_name=next((name.as_name for name in known if name.as_name is not None), None),
        place=next((name.place for name in known if name.place is not None), None),
        mpls=last.mpls,
        reply_ttl=last.reply_ttl,
        quoted_ttl=last.quoted_ttl,
        quoted_tos=last.quoted_tos,
        delay=delay_of(its, variation=False),
    )


def _summary(hops: Sequence[Hop]) -> PathSummary:
    """AS path without repeats; prefixes are unknown until databases say them."""
    owners: list[int] = []
    for hop in hops:
        asn = hop.responders[0].asn if hop.responders else None
        if asn is not None and owners[-1:] != [asn]:
            owners.append(asn)
    text = "|".join(",".join(sorted(one.address for one in hop.responders)) for hop in hops)
    digest = sha256(text.encode()).hexdigest()[:12] if hops else None
    return PathSummary(as_path=tuple(owners), prefixes=tuple(None for _ in hops), hash=digest)


def http_result(view: HttpView, path_min_rtt_ns: int | None) -> HttpResult:
    """Result of a set of requests; `path_min_rtt_ns` is the least delay of TCP series to the same address and port."""
    return HttpResult(
        target=view.who.target,
        vantage=view.who.vantage,
        outcome=reach.of_requests(view),
        address=view.who.address,
        family=view.who.family,
        protocol="tcp",
        port=view.who.port,
        started_at=started(view.samples),
        finished_at=finished(view.samples),
        client=client(checks(view.samples)),
        url=view.url,
        requests=tuple(split.request(exchange, path_min_rtt_ns) for exchange in view.exchanges),
        summary=split.summary(view.exchanges, path_min_rtt_ns),
        why=next((exchange.detail for exchange in view.exchanges if exchange.error is not None), None),
    )
