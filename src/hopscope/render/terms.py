"""The fixed words of a report: one table for each closed list of the model, so that a missing word is a failed test."""

from hopscope.model.record import ErrorClass
from hopscope.model.report import (
    Advice,
    Confidence,
    FindingKind,
    Label,
    LayerName,
    LayerStatus,
    Outcome,
    Role,
    Severity,
    Status,
)
from hopscope.render.blocks import Tone

DASH = "–"
UNKNOWN = "unknown"
NOT_ENOUGH = "not enough data"

STATUSES: dict[Status, str] = {"ok": "OK", "warning": "WARNING", "unknown": "UNKNOWN", "critical": "CRITICAL"}
SEVERITIES: dict[Severity, str] = {
    "critical": "critical",
    "unknown": "unknown",
    "warning": "warning",
    "info": "info",
}
WORST_FIRST: tuple[Severity, ...] = tuple(SEVERITIES)

CONFIDENCES: dict[Confidence, str] = {
    "shown": "shown by the numbers",
    "likely": "likely, not shown yet",
    "undecided": f"undecided, {NOT_ENOUGH}",
}

OUTCOMES: dict[Outcome, str] = {
    "ok": "ok",
    "degraded": "degraded",
    "dns": "name lookup failed",
    "refused": "refused",
    "timeout": "no answer",
    "unreachable": "unreachable",
    "prohibited": "prohibited",
    "tls": "TLS failed",
    "http": "HTTP error",
    "client-limited": "client too busy",
}
OUTCOME_TONES: dict[Outcome, Tone] = {
    "ok": "quiet",
    "degraded": "warning",
    "dns": "critical",
    "refused": "critical",
    "timeout": "critical",
    "unreachable": "critical",
    "prohibited": "critical",
    "tls": "critical",
    "http": "critical",
    "client-limited": "unknown",
}

LABELS: dict[Label, str] = {
    "lossy-from": "loss begins",
    "slow-from": "delay begins",
    "varying-from": "varying begins",
    "replies-limited": "limits replies",
    "silent": "no reply",
    "not-enough-data": "too few probes",
    "ok": "ok",
}
LABEL_TONES: dict[Label, Tone] = {
    "lossy-from": "critical",
    "slow-from": "warning",
    "varying-from": "warning",
    "replies-limited": "info",
    "silent": "quiet",
    "not-enough-data": "unknown",
    "ok": "ok",
}

LAYERS: dict[LayerName, str] = {
    "interface": "interface",
    "gateway": "gateway",
    "dns": "name (DNS)",
    "path": "path",
    "port": "port",
    "tls": "TLS",
    "http": "HTTP",
    "model": "model",
}
LAYER_STATUSES: dict[LayerStatus, str] = {"passed": "passed", "failed": "FAILED", "not-checked": "not checked"}
LAYER_TONES: dict[LayerStatus, Tone] = {"passed": "ok", "failed": "critical", "not-checked": "quiet"}

ROLES: dict[Role, str] = {
    "you": "you",
    "access": "your access provider",
    "transit": "a transit network",
    "border": "the border between two networks",
    "provider": "the server's hosting provider",
    "operator": "whoever operates the server",
    "model-server": "the model server",
    "unknown": UNKNOWN,
}

PATH_ENDS: dict[str, str] = {
    "echo-reply": "the target answered the echo",
    "syn-ack": "the target accepts connections on this port",
    "rst": "the target refuses connections on this port",
    "unreachable": "an ICMP unreachable ended it",
    "nat": "the address translator in front of the target ended it",
    "gap-limit": "too many hops in a row gave no reply",
    "max-ttl": "the greatest TTL was reached",
}

FAILURES: dict[str, str] = {
    "vantage": "A place could not measure",
    "quota": "A quota is used up",
    "rights": "A right is missing",
    "skipped": "Skipped",
    "usage": "Not what hopscope understands",
    "bug": "A bug in hopscope",
}

VANTAGE_OUTCOMES: dict[str, str] = {
    "ok": "ok",
    "degraded": "degraded",
    "target-failed": "a target failed",
    "vantage-failed": "could not measure",
    "quota": "quota used up",
    "skipped": "skipped",
}

ERRORS: dict[ErrorClass, str] = {
    "dns": "name lookup failed",
    "refused": "connection refused",
    "timeout": "timeout",
    "unreachable": "unreachable",
    "prohibited": "prohibited",
    "tls": "TLS failed",
    "http": "not understood as HTTP",
    "cut": "connection cut",
    "bug": "a bug in hopscope",
}

ADVICE: dict[Advice, str] = {"buy": "Buy", "ask": "Ask first", "avoid": "Avoid"}

METRICS: dict[str, str] = {
    "rtt_p50": "round trip",
    "loss": "loss",
    "server_p50": "server time",
    "ttft_p50": "first token",
}

BASES: dict[str, str] = {
    "stamps": "kernel stamps",
    "tcp-info": "kernel TCP figures",
    "connect": "connect time",
    "modelled": "modelled",
}

FINDINGS: dict[FindingKind, str] = {
    "lossy-from": "Packets are lost",
    "slow-from": "Delay is added",
    "varying-from": "Delay varies",
    "replies-limited": "A router limits its own replies",
    "uneven-flows": "Some flows fare worse than others",
    "path-changed": "The path changed",
    "shared-segment": "The bad paths share a segment",
    "path-loop": "The path runs in a loop",
    "mtu-black-hole": "Large packets vanish",
    "filtered": "Packets are filtered",
    "refused": "The port refuses connections",
    "admin-prohibited": "A firewall says no",
    "unreachable": "The target cannot be reached",
    "rate-limited": "The server limits the rate",
    "accept-limited": "The server does not accept connections fast enough",
    "port-forwarded": "Another host answers behind this address",
    "answered-by-middlebox": "Something in between answers for the target",
    "dns-failed": "The name cannot be looked up",
    "dns-slow": "Name lookup is slow",
    "family-broken": "IPv4 or IPv6 does not work",
    "address-changed": "The address changed",
    "interface-fault": "This host's interface has a fault",
    "tls-failed": "TLS fails",
    "certificate-expiring": "The certificate expires soon",
    "certificate-changed": "The certificate changed",
    "http-error": "Requests fail",
    "edge-in-front": "An edge answers in front of the server",
    "upload-bound": "Sending the request takes the time",
    "throughput-limited": "The connection limits the throughput",
    "idle-reset": "Idle connections are cut",
    "bufferbloat": "A queue fills under load",
    "server-slow": "The server is slow",
    "queueing": "Requests wait in a queue",
    "cold-start": "The server starts cold",
    "buffering": "Something holds the stream back",
    "network-stall": "The stream stalls on the network",
    "server-stall": "The stream stalls at the server",
    "throttled": "The hardware is throttled",
    "memory-pressure": "The server is short of memory",
    "claim-disagrees": "The server's own figures disagree",
    "over-budget": "A budget is missed",
    "level-shift": "The level shifted",
    "doubtful-place": "The stated place is doubtful",
    "detour": "The path takes a detour",
    "vantage-fault": "The measuring side has a fault",
    "client-limited": "The measuring side was too busy",
    "not-enough-data": "Not enough data",
}
