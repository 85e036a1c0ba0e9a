"""The report: one value that holds everything a person or program is told, the JSON contract (longer because whole).

Every renderer reads this and nothing else, so no two outputs can disagree. Durations are milliseconds, ratios 0..1,
instants UTC ISO-8601 strings; unknown is `None`. The JSON Schema is made from these classes.
"""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from hopscope.model.plan import Family, Protocol, Site, VantageKind
from hopscope.model.record import Clock, ErrorClass

SCHEMA = "hopscope/1"

Severity = Literal["info", "warning", "unknown", "critical"]
Status = Literal["ok", "warning", "unknown", "critical"]
Confidence = Literal["shown", "likely", "undecided"]
SURENESS: tuple[Confidence, ...] = ("shown", "likely", "undecided")
"""The surest first."""
Outcome = Literal[
    "ok", "degraded", "dns", "refused", "timeout", "unreachable", "prohibited", "tls", "http", "client-limited"
]
HEARD: frozenset[Outcome] = frozenset({"ok", "degraded", "client-limited"})
"""Outcomes of what was answered as it should be; a refusal is no round trip of the target's."""
SampleOutcome = Literal["replied", "lost", "late", "unsent", "refused", "unreachable", "void"]
Label = Literal["lossy-from", "slow-from", "varying-from", "replies-limited", "silent", "not-enough-data", "ok"]
FindingKind = Literal[
    "lossy-from", "slow-from", "varying-from", "replies-limited", "uneven-flows", "path-changed", "shared-segment",
    "path-loop", "mtu-black-hole", "filtered", "refused", "admin-prohibited", "unreachable", "rate-limited",
    "accept-limited", "port-forwarded", "answered-by-middlebox", "dns-failed", "dns-slow", "family-broken",
    "address-changed", "interface-fault", "tls-failed", "certificate-expiring", "certificate-changed", "http-error",
    "edge-in-front", "upload-bound", "throughput-limited", "idle-reset", "bufferbloat", "server-slow", "queueing",
    "cold-start", "buffering", "network-stall", "server-stall", "throttled", "memory-pressure", "claim-disagrees",
    "over-budget", "level-shift", "doubtful-place", "detour", "vantage-fault", "client-limited", "not-enough-data",
]  # fmt: skip
Role = Literal["you", "access", "transit", "border", "provider", "operator", "model-server", "unknown"]
Evidence = dict[str, str | int | float | bool | None]


class Loss(Struct, frozen=True, kw_only=True):
    """Round-trip loss (RFC 6673): `sent = received + lost`; interval `low..high` is Wilson's, 95 %."""

    sent: int
    received: int
    lost: int
    late: int = 0
    duplicates: int = 0
    unsent: int = 0
    void: int = 0
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    episodes: int = 0
    longest: int = 0


class Delay(Struct, frozen=True, kw_only=True):
    """Round-trip delay (RFC 2681) of those that were answered, in milliseconds, with order-statistic intervals."""

    n: int
    min_ms: float | None = None
    p50_ms: float | None = None
    p50_low_ms: float | None = None
    p50_high_ms: float | None = None
    mean_ms: float | None = None
    p95_ms: float | None = None
    p95_low_ms: float | None = None
    p95_high_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None
    stdev_ms: float | None = None
    pdv_p95_ms: float | None = None
    ipdv_mean_ms: float | None = None


class Client(Struct, frozen=True, kw_only=True):
    """How well the measuring side did itself (method 1.6)."""

    late_p99_ms: float | None = None
    drops: int = 0
    clock_step_ms: float = 0.0
    limited: bool = False


class PingSample(Struct, frozen=True, kw_only=True):
    """One probe of a series."""

    seq: int
    flow: int
    warmup: bool
    sent_at: str
    outcome: SampleOutcome
    rtt_ms: float | None
    clock: Clock | None
    reply_ttl: int | None


class Samples:
    """The samples of a series, made one at a time: a million of them need not stand in memory together."""

    def __iter__(self) -> Iterator[PingSample]:
        """Yield every sample in the order of sending."""
        raise NotImplementedError


class FlowReport(Struct, frozen=True, kw_only=True):
    """Loss and delay of one flow of a series."""

    flow: int
    loss: Loss
    delay: Delay


class PingResult(Struct, frozen=True, kw_only=True, tag_field="kind", tag="ping"):
    """A series to one address from one vantage."""

    target: str
    vantage: str
    outcome: Outcome
    address: str | None
    family: Family | None
    protocol: Protocol
    port: int | None
    started_at: str | None
    finished_at: str | None
    client: Client
    clock: Clock | None
    loss: Loss
    delay: Delay
    flows: tuple[FlowReport, ...]
    samples: Samples
    why: str | None = None


class Responder(Struct, frozen=True, kw_only=True):
    """A router or host that answered at one TTL."""

    address: str
    received: int
    hostname: str | None = None
    asn: int | None = None
    as_name: str | None = None
    place: str | None = None
    mpls: tuple[int, ...] | None = None
    reply_ttl: int | None = None
    quoted_ttl: int | None = None
    quoted_tos: int | None = None
    delay: Delay


class Hop(Struct, frozen=True, kw_only=True):
    """One TTL, silent ones included (method 3.5)."""

    ttl: int
    label: Label
    labels: tuple[Label, ...]
    responders: tuple[Responder, ...]
    loss: Loss
    delay: Delay
    evidence: Evidence


class PathEnd(Struct, frozen=True, kw_only=True):
    """How the path ended (method 3.4)."""

    how: Literal["echo-reply", "syn-ack", "rst", "unreachable", "nat", "gap-limit", "max-ttl"]
    code: int | None
    address: str | None
    ttl: int | None


class FlowPath(Struct, frozen=True, kw_only=True):
    """Counts of one traced flow: `ttls` are those at which anybody answered."""

    flow: int
    source_port: int | None
    loss: Loss
    ttls: tuple[int, ...]


class PathSummary(Struct, frozen=True, kw_only=True):
    """The path as owners and prefixes; `hash` is for display."""

    as_path: tuple[int, ...]
    prefixes: tuple[tuple[str, ...] | None, ...]
    hash: str | None


class EndToEnd(Struct, frozen=True, kw_only=True):
    """Loss and delay of the traced flow at the target itself."""

    loss: Loss
    delay: Delay


class TraceResult(Struct, frozen=True, kw_only=True, tag_field="kind", tag="trace"):
    """A path to one address from one vantage."""

    target: str
    vantage: str
    outcome: Outcome
    address: str | None
    family: Family | None
    protocol: Protocol
    port: int | None
    started_at: str | None
    finished_at: str | None
    client: Client
    flow: Literal["constant", "varies"]
    reached: bool
    end: PathEnd | None
    hops: tuple[Hop, ...]
    flows: tuple[FlowPath, ...]
    path: PathSummary
    end_to_end: EndToEnd
    mtu_bytes: int | None = None
    why: str | None = None


class Phases(Struct, frozen=True, kw_only=True):
    """Increments in milliseconds; `total` is their sum (method 5.1)."""

    dns: float | None = None
    connect: float | None = None
    tls: float | None = None
    upload: float | None = None
    wait: float | None = None
    download: float | None = None
    unattributed: float | None = None
    total: float | None = None


class ServerTime(Struct, frozen=True, kw_only=True):
    """The bracket: time beyond the TCP endpoint lies in [lower, upper] (method 5.2)."""

    lower_ms: float | None
    upper_ms: float | None
    estimate_ms: float | None
    width_ms: float | None
    basis: Literal["stamps", "tcp-info", "connect", "modelled"]


class TlsReport(Struct, frozen=True, kw_only=True):
    """What the server showed in its handshake."""

    version: str | None
    cipher: str | None
    alpn: str | None
    resumed: bool | None
    not_after_at: str | None
    subject: str | None
    names: tuple[str, ...]
    issuer: str | None
    verified: bool | None
    why: str | None


class ClaimReport(Struct, frozen=True, kw_only=True):
    """What a box on the way says about its own time."""

    name: str
    value_ms: float
    scope: str
    source: str


class ErrorReport(Struct, frozen=True, kw_only=True, rename={"class_": "class"}):
    """Why a request gave no answer."""

    class_: ErrorClass
    detail: str | None


class Request(Struct, frozen=True, kw_only=True):
    """One HTTP request, timed."""

    cold: bool
    connection: int
    scheduled_at: str
    sent_at: str | None
    status: int | None
    level: Literal[3, 2, 1]
    clock: Clock
    phases_ms: Phases
    rtt_ms: float | None
    ack_ms: float | None
    queue_ms: float | None
    server: ServerTime | None
    tls: TlsReport | None
    claims: tuple[ClaimReport, ...]
    error: ErrorReport | None


class HttpSummary(Struct, frozen=True, kw_only=True):
    """Network (the connection's least RTT), server and total of the requests that were answered."""

    network: Delay
    server: Delay
    total: Delay


class HttpResult(Struct, frozen=True, kw_only=True, tag_field="kind", tag="http"):
    """HTTP(S) timing of one address from one vantage."""

    target: str
    vantage: str
    outcome: Outcome
    address: str | None
    family: Family | None
    protocol: Protocol
    port: int | None
    started_at: str | None
    finished_at: str | None
    client: Client
    url: str
    requests: tuple[Request, ...]
    summary: HttpSummary
    goodput: None = None
    why: str | None = None


class Stall(Struct, frozen=True, kw_only=True):
    """A gap in a stream that is too long for its server's pace; `at_ms` counts from the request."""

    at_ms: float
    ms: float
    cause: Literal["network", "server", "client", "undetermined"]


class StreamRequest(Request, frozen=True, kw_only=True):
    """One streamed completion, timed from the first byte sent (method 5.6), connection set-up outside.

    `ttft_server` is the bracket to the first token (method 5.10), `server` that to the head.
    """

    ttft_server: ServerTime | None
    ttfb_ms: float | None
    ttfe_ms: float | None
    ttft_ms: float | None
    ttfo_ms: float | None
    tpot_ms: float | None
    prompt_tokens: int | None
    tokens_out: int | None
    token_source: Literal["usage", "events"] | None
    n_first: int | None
    finish_reason: str | None
    decode_tps: float | None
    e2e_ms: float | None
    events: int
    comments: int
    unknown_events: int
    retry_after_ms: float | None
    stalls: tuple[Stall, ...] = ()
    coalescing: None = None


class StreamSummary(Struct, frozen=True, kw_only=True):
    """The hot requests that ended well, all of them where none was hot; `ttft_cold` is the cold ones'.

    `errors` counts what failed by class, cold or hot.
    """

    ttft: Delay
    ttft_cold: Delay
    ttft_server: Delay
    server: Delay
    network: Delay
    upload: Delay
    tpot: Delay
    errors: dict[ErrorClass, int]


class StreamResult(Struct, frozen=True, kw_only=True, tag_field="kind", tag="stream"):
    """Inference timing of one address from one vantage. `models_listed`: the model is the first of so many listed."""

    target: str
    vantage: str
    outcome: Outcome
    address: str | None
    family: Family | None
    protocol: Protocol
    port: int | None
    started_at: str | None
    finished_at: str | None
    client: Client
    url: str
    model: str | None
    models_listed: int | None
    api: Literal["openai"]
    requests: tuple[StreamRequest, ...]
    summary: StreamSummary
    ramp: tuple[Evidence, ...] = ()
    knee: None = None
    why: str | None = None


LayerName = Literal["interface", "gateway", "dns", "path", "port", "tls", "http", "model"]
LayerStatus = Literal["passed", "failed", "not-checked"]
Advice = Literal["buy", "ask", "avoid"]


class LayerResult(Struct, frozen=True, kw_only=True, tag_field="kind", tag="layer"):
    """One layer between this machine and a model's answer: passed, failed, or not checked and why not."""

    target: str
    vantage: str
    outcome: Outcome
    address: str | None
    family: Family | None
    protocol: Protocol
    port: int | None
    started_at: str | None
    finished_at: str | None
    client: Client
    layer: LayerName
    status: LayerStatus
    evidence: Evidence
    why: str


class LimitReport(Struct, frozen=True, kw_only=True):
    """One limit of a budget held against a sample (method 2.6): `over` of `n` lie above it, `allowed` of them may."""

    metric: str
    limit: float
    unit: Literal["ms", "ratio"]
    over: int
    n: int
    allowed: float
    missed: bool
    confidence: Confidence


class PlaceReport(Struct, frozen=True, kw_only=True):
    """A candidate seen from one place. `floor_ms` is what light needs, `stretch` the least RTT over it (method 4.6)."""

    vantage: str
    outcome: Outcome
    weight: float
    rtt: Delay
    loss: Loss
    server: Delay
    ttft: Delay
    distance_km: float | None
    floor_ms: float | None
    stretch: float | None
    limits: tuple[LimitReport, ...]


class ComparisonResult(Struct, frozen=True, kw_only=True, tag_field="kind", tag="comparison"):
    """A candidate among others: its rank (1 is best), whether to buy it, and why; `score` is 0..1, 1 is best."""

    target: str
    rank: int | None
    advice: Advice
    reasons: tuple[str, ...]
    score: float | None
    price_month: float | None
    places: tuple[PlaceReport, ...]


class Difference(Struct, frozen=True, kw_only=True):
    """How two candidates differ in one metric from one place: `second` minus `first`, with its 99 % interval.

    `confidence` is `shown` where the interval leaves out zero (loss has an exact test in place of an interval), else
    `undecided`. `matters` is whether it is shown and not too small to matter.
    """

    first: str
    second: str
    vantage: str
    metric: Literal["rtt_p50", "loss", "server_p50", "ttft_p50"]
    unit: Literal["ms", "ratio"]
    first_value: float | None
    second_value: float | None
    difference: float | None
    low: float | None
    high: float | None
    confidence: Confidence
    matters: bool
    why: str


Measured = PingResult | TraceResult | HttpResult | StreamResult
"""Results of probes; the others are made of them."""
Result = Measured | LayerResult | ComparisonResult


class SegmentEnd(Struct, frozen=True, kw_only=True):
    """One end of a segment; TTL 0 is the measuring host itself."""

    ttl: int
    address: str | None
    asn: int | None


class Segment(Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """The stretch (from, to] in which a fault begins, on one flow."""

    from_: SegmentEnd
    to: SegmentEnd
    flow: int | None


class Owner(Struct, frozen=True, kw_only=True):
    """Whose it is (method 4.7)."""

    role: Role
    asns: tuple[int, ...] = ()
    name: str | None = None


class Finding(Struct, frozen=True, kw_only=True):
    """One judged fact with its numbers, how sure it is, and what to do (method 4.9)."""

    id: str
    kind: FindingKind
    severity: Severity
    confidence: Confidence
    target: str | None
    vantages: tuple[str, ...]
    segment: Segment | None
    direction: Literal["forward", "return", "either"]
    owner: Owner
    why: str
    evidence: Evidence
    changes_mind: str
    next_step: str


DID_NOT_MEASURE = frozenset({"vantage-failed", "quota", "skipped"})
"""Outcomes of places that say nothing of any target (method 6.1)."""


class VantageReport(Struct, frozen=True, kw_only=True):
    """A place that measured, and how that went."""

    name: str
    kind: VantageKind
    site: Site | None
    outcome: Literal["ok", "degraded", "target-failed", "vantage-failed", "quota", "skipped"]
    why: str | None
    controls: tuple[str, ...] = ()


class TargetReport(Struct, frozen=True, kw_only=True):
    """A target's status and its sentence."""

    name: str
    status: Status
    summary: str


class Verdict(Struct, frozen=True, kw_only=True):
    """The whole run in one sentence, then everything found, worst first."""

    status: Status
    summary: str
    findings: tuple[Finding, ...]


class FailureReport(Struct, frozen=True, kw_only=True):
    """Something that was not measured, and the remedy."""

    kind: Literal["vantage", "quota", "rights", "skipped", "usage", "bug"]
    target: str | None
    vantage: str | None
    why: str
    advice: str


class Report(Struct, frozen=True, kw_only=True):
    """The whole document."""

    schema: str = SCHEMA
    tool_version: str
    command: str
    started_at: str | None
    finished_at: str | None
    partial: bool
    vantages: tuple[VantageReport, ...]
    targets: tuple[TargetReport, ...]
    verdict: Verdict
    results: tuple[Result, ...]
    failures: tuple[FailureReport, ...]
    cause: FindingKind | None = None
    ruled_out: tuple[FindingKind, ...] = ()
    differences: tuple[Difference, ...] = ()

    @property
    def measured(self) -> tuple[Measured, ...]:
        """Results of probes alone: those that others were made of."""
        return tuple(one for one in self.results if not isinstance(one, LayerResult | ComparisonResult))
