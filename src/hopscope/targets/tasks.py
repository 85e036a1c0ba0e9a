"""Target → tasks: what a target asks of one address, with the defaults of `run` where it says nothing. Pure."""

from urllib.parse import urlsplit, urlunsplit

from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import (
    ICMP_FLOWS,
    STREAM_MAX_TOKENS,
    STREAM_PROMPT_TOKENS,
    HttpTask,
    PingTask,
    Plan,
    Protocol,
    StreamTask,
    Target,
    TraceTask,
    family_of,
)
from hopscope.model.record import Resolved

RUN_COUNT = 50
RUN_INTERVAL_NS = 200 * MS
RUN_ROUNDS = 20
ROUND_INTERVAL_NS = 500 * MS
ROUTER_SPACING_NS = 200 * MS
"""Method 3.1: by default no router is asked more than 5/s in all; traces of a vantage share its first hops."""
FALLBACK_PORTS = (443, 80)
"""Asked by TCP where no port is named."""
COLD, HOT = 3, 10
HTTP_TIMEOUT_NS = 15 * SECOND
STREAM_COLD, STREAM_HOT = 1, 5
STREAM_TIMEOUT_NS = 60 * SECOND


def series(
    target: Target,
    vantage: str,
    address: str,
    protocol: Protocol,
    port: int | None,
    *,
    reason: str,
    first_seq: int = 0,
    count: int | None = None,
) -> PingTask:
    """A series as the target wants it; a continuation has no warm-up of its own."""
    flows = target.flows or (ICMP_FLOWS if protocol == "icmp" else 1)
    wanted = count or target.count or RUN_COUNT
    return PingTask(
        target=target.name,
        vantage=vantage,
        reason=reason,
        address=address,
        family=family_of(address),
        protocol=protocol,
        port=port,
        count=wanted,
        interval_ns=target.interval_ns or RUN_INTERVAL_NS,
        threshold_ns=target.threshold_ns,
        first_seq=first_seq,
        warmup=target.warmup and first_seq == 0 and wanted > 1,
        size=target.size,
        dscp=target.dscp,
        ttl=target.ttl,
        flows=flows,
    )


def trace(plan: Plan, target: Target, vantage: str, address: str) -> TraceTask:
    """A trace as the target wants it."""
    tracing = sum("trace" in one.probes for one in plan.targets)
    protocol = target.trace_protocol or "icmp"
    return TraceTask(
        target=target.name,
        vantage=vantage,
        reason="asked",
        address=address,
        family=family_of(address),
        protocol=protocol,
        port=None if protocol == "icmp" else target.port or FALLBACK_PORTS[0],
        rounds=target.rounds or RUN_ROUNDS,
        interval_ns=target.round_interval_ns or max(ROUND_INTERVAL_NS, tracing * ROUTER_SPACING_NS),
        threshold_ns=target.threshold_ns,
        first_ttl=target.first_ttl,
        max_ttl=target.max_ttl,
        size=target.size,
    )


def _patience(plan: Plan, usual_ns: int) -> int:
    """How long a request may stay unanswered: less than the run, so that its silence is told and not cut off."""
    return min(usual_ns, plan.deadline_ns * 9 // 10)


def http(plan: Plan, target: Target, vantage: str, address: str, resolved: Resolved) -> HttpTask:
    """Requests as the target wants them."""
    url = target.url or ""
    if target.path is not None:
        url = urlunsplit(urlsplit(url)._replace(path=target.path, query=""))
    return HttpTask(
        target=target.name,
        vantage=vantage,
        reason="asked",
        address=address,
        family=family_of(address),
        port=target.port or (443 if url.startswith("https:") else 80),
        url=url,
        cold=COLD if target.cold is None else target.cold,
        hot=HOT if target.hot is None else target.hot,
        timeout_ns=_patience(plan, HTTP_TIMEOUT_NS),
        dns_ns=resolved.took_ns,
        method=target.method,
        body_file=target.body_file,
        headers=target.headers,
        headers_env=target.headers_env,
        api_key_env=target.api_key_env,
        ca_file=target.ca_file,
        insecure=target.insecure,
        http2=target.http2,
    )


def stream(plan: Plan, target: Target, vantage: str, address: str, resolved: Resolved, seed: int) -> StreamTask:
    """Streamed completions as the target wants them."""
    url = target.url or ""
    return StreamTask(
        target=target.name,
        vantage=vantage,
        reason="asked",
        address=address,
        family=family_of(address),
        port=target.port or (443 if url.startswith("https:") else 80),
        url=url,
        cold=STREAM_COLD if target.cold is None else target.cold,
        hot=STREAM_HOT if target.hot is None else target.hot,
        timeout_ns=_patience(plan, STREAM_TIMEOUT_NS),
        seed=seed,
        model=target.model,
        prompt_tokens=target.prompt_tokens or STREAM_PROMPT_TOKENS,
        max_tokens=target.max_tokens or STREAM_MAX_TOKENS,
        dns_ns=resolved.took_ns,
        headers=target.headers,
        headers_env=target.headers_env,
        api_key_env=target.api_key_env,
        ca_file=target.ca_file,
        insecure=target.insecure,
        http2=target.http2,
    )
