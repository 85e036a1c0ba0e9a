"""Network or server: what the marks of one request say about either, as an interval with its basis (method 5.1-5.3).

Instants go in, increments and a bracket come out; only this file may say "server", and it means "beyond the TCP
endpoint". Undefined is `None`: a phase that was not reached, a bracket without an answer, an estimate without a round
trip to subtract. Exchanges are in anchored nanoseconds, results in milliseconds.
"""

from collections.abc import Iterable
from statistics import median
from typing import NamedTuple

from hopscope.analysis.delay import delay, quantile
from hopscope.analysis.instants import iso, iso_or_none, milliseconds
from hopscope.model.limits import MS
from hopscope.model.record import Certificate, Exchange, SelfCheck
from hopscope.model.report import ClaimReport, ErrorReport, HttpSummary, Phases, Request, ServerTime, TlsReport

KERNEL_GRAIN_NS = 50_000
USER_GRAIN_NS = MS
"""`e` of method 5.2: how finely R1 is known by a kernel stamp, and by the clock in user space."""

LAG_LIMIT_NS = 2 * MS
LAG_SHARE = 0.05
"""Beyond both, a read so late that it spoils what it times (method 1.6)."""


class Bracket(NamedTuple):
    """Time beyond the TCP endpoint, ns; `estimate` is `None` where no round trip is known to be subtracted."""

    lower: int
    upper: int
    estimate: int | None


def request(exchange: Exchange, path_min_rtt_ns: int | None) -> Request:
    """One exchange as it is reported; `path_min_rtt_ns` is the least of TCP series to the same address and port."""
    return Request(
        cold=exchange.cold,
        connection=exchange.connection,
        scheduled_at=iso(exchange.scheduled),
        sent_at=iso_or_none(exchange.sent_first),
        status=exchange.status,
        level=exchange.level,
        clock=exchange.clock,
        phases_ms=phases(exchange),
        rtt_ms=milliseconds(exchange.rtt_ns),
        ack_ms=None,
        queue_ms=None,
        server=_server_time(exchange, path_min_rtt_ns),
        tls=_tls(exchange.certificate) if exchange.certificate else None,
        claims=tuple(
            ClaimReport(name=each.name, value_ms=each.value_ms, scope=each.scope, source=each.source)
            for each in exchange.claims
        ),
        error=ErrorReport(class_=exchange.error, detail=exchange.detail) if exchange.error else None,
    )


def summary(exchanges: Iterable[Exchange], path_min_rtt_ns: int | None) -> HttpSummary:
    """Network, server and total of the requests that were answered to their end."""
    answered = [each for each in exchanges if each.error is None and each.done is not None]
    networks = [_min_rtt(each, path_min_rtt_ns) for each in answered]
    brackets = [bracket(each, path_min_rtt_ns) for each in answered]
    return HttpSummary(
        network=delay([rtt for rtt in networks if rtt is not None]),
        server=delay([each.estimate for each in brackets if each is not None and each.estimate is not None]),
        total=delay([sum(_increments(each).values()) for each in answered]),
    )


def self_check(exchanges: Iterable[Exchange], *, clock_step_ns: int = 0) -> SelfCheck:
    """How late answers were read, at the 99th percentile, and the largest clock step seen meanwhile (method 1.6)."""
    exchanges = list(exchanges)
    lags = sorted(each.lag_ns for each in exchanges if each.lag_ns is not None)
    if not lags:
        return SelfCheck(clock_step_ns=clock_step_ns)
    late = round(quantile(lags, 0.99))
    waits = [wait for each in exchanges if (wait := _wait(each)) is not None]
    # Method 1.6: lateness spoils what user space times; a head with a kernel stamp stands.
    by_user = any(each.clock == "user" and each.head is not None for each in exchanges)
    limited = by_user and late > LAG_LIMIT_NS and (not waits or late > LAG_SHARE * median(waits))
    return SelfCheck(late_p99_ns=late, clock_step_ns=clock_step_ns, limited=limited)


def phases(exchange: Exchange) -> Phases:
    """Increments; `total` is their sum, `unattributed` what lies between them (method 5.8)."""
    parts = {name: ns / MS for name, ns in _increments(exchange).items()}
    return Phases(
        dns=parts.get("dns"),
        connect=parts.get("connect"),
        tls=parts.get("tls"),
        upload=parts.get("upload"),
        wait=parts.get("wait"),
        download=parts.get("download"),
        unattributed=parts.get("unattributed"),
        total=sum(parts.values()) if parts else None,
    )


def bracket(exchange: Exchange, path_min_rtt_ns: int | None) -> Bracket | None:
    """Method 5.2: U = (R1 − last byte sent) − min_rtt, S ∈ [L, U + e].

    Without the acknowledgement of the last byte (level 3) nothing bounds S from below but zero, and U is the estimate.
    A U below zero says that min_rtt was no minimum: it is taken as zero. Where something of ours had to be sent again,
    the wait holds the time of that too, and nobody knows how much: there is no estimate.
    """
    wait = _wait(exchange)
    if wait is None:
        return None
    grain = KERNEL_GRAIN_NS if exchange.clock == "kernel" else USER_GRAIN_NS
    rtt = _min_rtt(exchange, path_min_rtt_ns)
    if rtt is None:
        return Bracket(lower=0, upper=wait + grain, estimate=None)
    beyond = max(0, wait - rtt)
    if exchange.retransmits:
        return Bracket(lower=0, upper=beyond + grain, estimate=None)
    return Bracket(lower=0, upper=beyond + grain, estimate=beyond)


def _wait(exchange: Exchange) -> int | None:
    """R1 − last byte sent, ns; zero where the server answered before it had everything."""
    if exchange.head is None or exchange.sent_last is None:
        return None
    return max(0, exchange.head - exchange.sent_last)


def _min_rtt(exchange: Exchange, path_min_rtt_ns: int | None) -> int | None:
    """The least round trip known for this address and port (method 5.2), at level 1 the time to connect among them.

    A connection whose SYN was sent twice has none of its own.
    """
    own = exchange.min_rtt_ns
    if own is None and exchange.level == 1 and exchange.dialled is not None and exchange.connected is not None:
        own = exchange.connected - exchange.dialled
    return min((rtt for rtt in (own, path_min_rtt_ns) if rtt is not None), default=None)


def _increments(exchange: Exchange) -> dict[str, int]:
    """Phases reached, ns, in the order of time."""
    sent_last = exchange.sent_last
    if sent_last is not None and exchange.head is not None:
        sent_last = min(sent_last, exchange.head)
    ready = exchange.connected if exchange.secured is None else exchange.secured
    found = {
        "dns": exchange.dns_ns,
        "connect": _between(exchange.dialled, exchange.connected),
        "tls": _between(exchange.connected, exchange.secured),
        "upload": _between(exchange.sent_first, sent_last),
        "wait": _between(sent_last, exchange.head),
        "download": _between(exchange.head, exchange.done),
        "unattributed": _between(ready, exchange.sent_first) if exchange.cold else _none_left(exchange),
    }
    return {name: ns for name, ns in found.items() if ns is not None}


def _between(begin: int | None, end: int | None) -> int | None:
    return None if begin is None or end is None else end - begin


def _none_left(exchange: Exchange) -> int | None:
    """On a kept connection a request begins with its first byte, so nothing lies outside its phases."""
    return None if exchange.sent_first is None else 0


def _server_time(exchange: Exchange, path_min_rtt_ns: int | None) -> ServerTime | None:
    found = bracket(exchange, path_min_rtt_ns)
    if found is None:
        return None
    return ServerTime(
        lower_ms=found.lower / MS,
        upper_ms=found.upper / MS,
        estimate_ms=milliseconds(found.estimate),
        width_ms=(found.upper - found.lower) / MS,
        basis="connect" if exchange.level == 1 else "tcp-info",
    )


def _tls(shown: Certificate) -> TlsReport:
    return TlsReport(
        version=shown.version,
        cipher=shown.cipher,
        alpn=shown.alpn,
        resumed=shown.resumed,
        not_after_at=iso_or_none(shown.not_after),
        subject=shown.subject,
        names=shown.names,
        issuer=shown.issuer,
        verified=shown.verified,
        why=shown.why,
    )
