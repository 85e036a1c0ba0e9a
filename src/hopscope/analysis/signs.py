"""What shows each layer to be well, in words and numbers, and which kinds of fault that rules out.

A function a layer, from a case to what was seen of it. None of them names a fault: that is for the rules. What is not
seen to be well is not checked, and says why where the layer itself is the reason.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from hopscope.analysis import reach, split
from hopscope.analysis import stream as streaming
from hopscope.analysis.case import Case
from hopscope.analysis.path import LEAST_PROBES, count
from hopscope.analysis.results import delay_of
from hopscope.analysis.rules.reach import any_refused
from hopscope.analysis.rules.service import NO_LISTING, streams_well
from hopscope.analysis.rules.speaker import arrival, furthest
from hopscope.analysis.say import count as how_many
from hopscope.analysis.say import ms, ns, share
from hopscope.analysis.views import SeriesView
from hopscope.model.limits import MS
from hopscope.model.plan import Target
from hopscope.model.record import Exchange, Routed
from hopscope.model.report import Evidence, FindingKind
from hopscope.model.sample import Sample


class Seen(Struct, frozen=True, kw_only=True):
    """What was seen of a layer; `why` is empty where it is not well and an earlier layer is to say why."""

    well: bool
    why: str
    evidence: Evidence = {}
    rules_out: tuple[FindingKind, ...] = ()
    samples: tuple[Sample, ...] = ()
    about: str | None = None


NOTHING_SEEN = Seen(well=False, why="")


def asks_model(target: Target) -> bool:
    """Whether there is a model to ask: one is named, or the URL ends in `/v1`."""
    return target.url is not None and (
        target.model is not None or target.url.partition("?")[0].rstrip("/").endswith("/v1")
    )


def interface(case: Case) -> Seen:
    """This machine has a way to send."""
    route = case.route
    if route is None or route.error is not None or (route.interface is None and route.source is None):
        works = case.answering
        return Seen(well=works, why="packets leave this machine and answers come back" if works else "")
    by = "" if route.gateway is None else f" by {route.gateway}"
    return Seen(
        well=route.up is not False and route.carrier is not False,
        why=f"{route.interface or 'this machine'} sends from {route.source or 'an unknown address'}{by}",
        evidence=_of_route(route),
        rules_out=("interface-fault",),
    )


def _of_route(route: Routed) -> Evidence:
    return {
        "interface": route.interface,
        "source": route.source,
        "gateway": route.gateway,
        "up": route.up,
        "carrier": route.carrier,
        "mtu_bytes": route.mtu_bytes,
        "rx_errors": route.rx_errors,
        "tx_errors": route.tx_errors,
    }


def gateway(case: Case) -> Seen:
    """The first router answers, or forwards."""
    route = case.route
    if route is None or route.error is not None:
        return NOTHING_SEEN
    if route.gateway is None:
        return Seen(well=False, why=f"{case.address or 'the way'} is on this machine's own link: no gateway between")
    view = case.gateway
    if view is None or not view.counted:
        return Seen(well=False, why="", about=route.gateway)
    seen, rtt = count(view.counted), delay_of(view.counted).p50_ms
    evidence: Evidence = {
        "lost": seen.lost, "sent": seen.sent, "rtt_ms": rtt, "neighbour": route.neighbour,
    }  # fmt: skip
    samples = tuple(view.samples)
    if reach.answers(view):
        why = f"answers in {ms(rtt)}, {_lost(view)}"
        return Seen(well=True, why=why, evidence=evidence, samples=samples, about=route.gateway)
    beyond = furthest(case)
    if case.answering or any_refused(case) or (beyond is not None and beyond.address != route.gateway):
        why = "answers no ping, and forwards: what lies behind it answers"
    elif beyond is not None:
        why = "answers traces, though no ping"
    else:
        why = "answers no ping, and nothing behind it answers"
        return Seen(well=False, why=why, evidence=evidence, samples=samples, about=route.gateway)
    return Seen(well=True, why=why, evidence=evidence, samples=samples, about=route.gateway)


def dns(case: Case) -> Seen:
    """The name has addresses."""
    resolved = case.resolved
    if resolved is None:
        return Seen(well=False, why="the name was not looked up: the run ended first")
    if resolved.took_ns is None and resolved.addresses:
        return Seen(well=False, why=f"{resolved.addresses[0]} is an address: there is no name to look up")
    if not resolved.addresses:
        return NOTHING_SEEN
    addresses = ", ".join(resolved.addresses[:4]) + (", …" if len(resolved.addresses) > 4 else "")  # noqa: PLR2004
    return Seen(
        well=True,
        why=f"{case.target.host} is {addresses}, found in {ns(resolved.took_ns)}",
        evidence={
            "took_ms": None if resolved.took_ns is None else resolved.took_ns / MS,
            "addresses": len(resolved.addresses),
            "resolvers": ", ".join(resolved.resolvers) or None,
        },
        rules_out=("dns-failed", "dns-slow"),
    )


def path(case: Case) -> Seen:
    """The host answers anything at all; loss is ruled out where no series that it answers has any."""
    samples = (
        *(sample for view in case.series for sample in view.samples),
        *(sample for one in case.paths for sample in one.view.samples),
    )
    if not (case.answering or any_refused(case)):
        return Seen(well=False, why="", samples=samples)
    known = [ttl for one in case.paths if (ttl := arrival(one)) is not None]
    end = case.end_series
    parts = [f"reached after {how_many(min(known), 'hop')}"] if known else ["answers"]
    parts += [
        f"{view.who.protocol.upper()} in {ms(delay_of(view.counted).p50_ms)}, {_lost(view)}"
        for view in case.series
        if reach.answers(view)
    ]
    seen = [count(view.counted) for view in case.series if reach.answers(view)]
    clean = bool(seen) and all(one.lost == 0 and one.sent >= LEAST_PROBES for one in seen)
    rules_out: tuple[FindingKind, ...] = ("unreachable",)
    return Seen(
        well=True,
        why="; ".join(parts),
        evidence={
            "hops": min(known, default=None),
            "rtt_ms": None if end is None else delay_of(end.counted).p50_ms,
            "lost": None if end is None else count(end.counted).lost,
            "sent": None if end is None else count(end.counted).sent,
        },
        rules_out=(
            *rules_out,
            *(("lossy-from",) if clean else ()),
            *(("path-loop",) if known else ()),
        ),
        samples=samples,
    )


def port(case: Case) -> Seen:
    """The port accepts connections."""
    views = case.of("tcp")
    open_ones = [view for view in views if reach.answers(view)]
    samples = tuple(sample for view in views for sample in view.samples)
    if case.target.port is None and not open_ones:
        told = ", ".join(f"{view.who.port} {_closed(view)}" for view in views)
        why = f"no port was named; of the usual ones {told}" if told and _host_there(case) else ""
        return Seen(well=False, why=why, samples=samples)
    if not open_ones:
        return Seen(well=False, why="", samples=samples)
    view = open_ones[0]
    seen, delay = count(view.counted), delay_of(view.counted)
    named = "" if case.target.port is not None else " (no port was named)"
    full: tuple[FindingKind, ...] = () if seen.lost or seen.sent < LEAST_PROBES else ("accept-limited",)
    return Seen(
        well=True,
        why=f"TCP {view.who.port} is open: {seen.sent - seen.lost} of {seen.sent} connections accepted, "
        f"{ms(delay.p50_ms)}{named}",
        evidence={"port": view.who.port, "accepted": seen.sent - seen.lost, "sent": seen.sent, "rtt_ms": delay.p50_ms},
        rules_out=("refused", "filtered", "admin-prohibited", *full),
        samples=samples,
    )


def _closed(view: SeriesView) -> str:
    """How a port that is not open answers."""
    outcome = reach.of_series(view)
    return {"refused": "refuses", "prohibited": "is prohibited", "unreachable": "is unreachable"}.get(
        outcome, "is silent"
    )


def _host_there(case: Case) -> bool:
    return case.answering or any_refused(case)


def tls(case: Case) -> Seen:
    """The handshake ends well."""
    if (why := _no_requests(case, "TLS")) is not None:
        return Seen(well=False, why=why)
    if not (case.target.url or "").startswith("https:"):
        return Seen(well=False, why="the URL begins with http://: there is no TLS")
    exchanges = _exchanges(case)
    secured = [one for one in exchanges if one.secured is not None]
    if not secured:
        return Seen(well=False, why=_failure(case), samples=_samples(case))
    shown = secured[-1].certificate
    verified = shown is not None and shown.verified is True
    version = shown.version if shown is not None and shown.version else "TLS"
    subject = f", certificate of {shown.subject}" if shown is not None and shown.subject else ""
    doubt = "" if verified else ", not verified"
    times = [one.secured - one.connected for one in secured if one.secured is not None and one.connected is not None]
    least = min(times, default=None)
    return Seen(
        well=True,
        why=f"{version}{subject}{doubt}, in {ns(least)}",
        evidence={"version": version, "verified": verified, "handshake_ms": None if least is None else least / MS},
        rules_out=("tls-failed", "certificate-expiring") if verified else (),
        samples=_samples(case),
    )


def http(case: Case) -> Seen:
    """Requests are answered as expected."""
    if (why := _no_requests(case, "HTTP")) is not None:
        return Seen(well=False, why=why)
    exchanges = _exchanges(case)
    good = [one for one in exchanges if _is_good(case, one)]
    if not good or len(good) < len(exchanges):
        return Seen(well=False, why=_failure(case), samples=_samples(case))
    summary = split.summary(exchanges, case.least_rtt(case.target.port))
    statuses = ", ".join(str(status) for status in sorted({one.status for one in good if one.status is not None}))
    took = "" if summary.server.p50_ms is None else f", {ms(summary.server.p50_ms)} of it the server's"
    return Seen(
        well=True,
        why=f"HTTP {statuses} to {how_many(len(good), 'request')} in {ms(summary.total.p50_ms)}{took}",
        evidence={"status": good[-1].status, "requests": len(good), "server_ms": summary.server.p50_ms},
        rules_out=("http-error", *(("server-slow",) if summary.server.n else ())),
        samples=_samples(case),
    )


def model(case: Case) -> Seen:
    """The model streams tokens."""
    if not asks_model(case.target):
        return Seen(well=False, why="no model was named (--model), and the URL does not end in /v1")
    streams = [each for view in case.streams for each in view.streams]
    samples = tuple(sample for view in case.streams for sample in view.samples)
    good = [each for each in streams if streams_well(each)]
    if not good or len(good) < len(streams):
        told = [failure.why for sample in samples for failure in sample.failures]
        return Seen(well=False, why=told[0] if told else "", samples=samples)
    summary = streaming.summary(streams, case.least_rtt(case.target.port))
    return Seen(
        well=True,
        why=f"{good[-1].model or 'the model'} streams: first token after {ms(summary.ttft.p50_ms)}",
        evidence={
            "model": good[-1].model,
            "ttft_ms": summary.ttft.p50_ms,
            "tokens": good[-1].completion_tokens or good[-1].token_events,
        },
        rules_out=("http-error", *(("server-slow",) if summary.ttft_server.n else ())),
        samples=samples,
    )


def _no_requests(case: Case, what: str) -> str | None:
    """Why nothing above TCP was asked, where that was never meant to be."""
    return f"no URL was given, so there is no {what} to ask" if case.target.url is None else None


def _failure(case: Case) -> str:
    """Why requests that were meant to be made were not."""
    told = [failure.why for view in case.requests for sample in view.samples for failure in sample.failures]
    return told[0] if told else ""


def _is_good(case: Case, exchange: Exchange) -> bool:
    """Whether an answer is none of those that `http_error` tells."""
    if exchange.error is not None or exchange.status is None:
        return False
    streamed = any(streams_well(each) for view in case.streams for each in view.streams)
    return exchange.status < reach.CLIENT_ERROR or (streamed and exchange.status in NO_LISTING)


def _exchanges(case: Case) -> Sequence[Exchange]:
    return [exchange for view in case.requests for exchange in view.exchanges]


def _samples(case: Case) -> tuple[Sample, ...]:
    return tuple(_each_sample(case))


def _each_sample(case: Case) -> Iterator[Sample]:
    for view in case.requests:
        yield from view.samples


def _lost(view: SeriesView) -> str:
    seen = count(view.counted)
    return f"{share(seen.lost, seen.sent)} lost" if seen.lost else f"no loss in {seen.sent}"
