"""What shall be measured: targets, vantages, tasks and the plan that holds them.

Nothing here knows how a file is written or a packet is sent. Durations are whole nanoseconds (`_ns`), budgets are
milliseconds (`_ms`) or ratios 0..1. `None` means "not set": the default belongs to whoever acts on the value.
"""

from ipaddress import ip_address
from typing import Literal

from msgspec import Struct

from hopscope.model.limits import DEFAULT_PAYLOAD_BYTES, LOSS_THRESHOLD_NS, MAX_TTL, SECOND

Family = Literal[4, 6]
Protocol = Literal["icmp", "udp", "tcp"]
ProbeKind = Literal["ping", "trace", "http", "stream", "layer"]
About = Literal["target", "gateway", "control"]
VantageKind = Literal["local", "ssh", "exec", "globalping", "atlas", "fleet", "file"]

ICMP_FLOWS = 4


def family_of(address: str) -> Family:
    """4 or 6, by how an address is written."""
    return 6 if ":" in address else 4


def is_address(host: str) -> bool:
    """Whether a host is an address, with or without a zone, and no name."""
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


class Site(Struct, frozen=True, kw_only=True):
    """A place on Earth: degrees north and east, and what people call it."""

    lat: float
    lon: float
    name: str | None = None


class Budget(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Limits a result is held against: `_ms` in milliseconds, `loss` a ratio 0..1, `tps` tokens per second."""

    rtt_p50_ms: float | None = None
    rtt_p95_ms: float | None = None
    pdv_p95_ms: float | None = None
    loss: float | None = None
    connect_p95_ms: float | None = None
    tls_p95_ms: float | None = None
    ttfb_p95_ms: float | None = None
    ttft_p50_ms: float | None = None
    ttft_p95_ms: float | None = None
    tpot_p95_ms: float | None = None
    tps: float | None = None
    server_p95_ms: float | None = None


class Target(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing to measure. `host` is an IDNA-encoded name or a bare address; `url` holds no secret."""

    name: str
    host: str
    port: int | None = None
    url: str | None = None
    path: str | None = None
    site: Site | None = None
    probes: tuple[ProbeKind, ...] = ("ping", "trace")
    protocol: Protocol | None = None
    trace_protocol: Protocol | None = None
    family: Family | None = None
    all_addresses: bool = False
    count: int | None = None
    interval_ns: int | None = None
    warmup: bool = True
    rounds: int | None = None
    round_interval_ns: int | None = None
    first_ttl: int = 1
    max_ttl: int = MAX_TTL
    size: int = DEFAULT_PAYLOAD_BYTES
    dscp: int = 0
    ttl: int | None = None
    flows: int | None = None
    threshold_ns: int = LOSS_THRESHOLD_NS
    method: str = "GET"
    body_file: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    headers_env: tuple[tuple[str, str], ...] = ()
    api_key_env: str | None = None
    expect_status: tuple[int, ...] = ()
    resolve_to: str | None = None
    ca_file: str | None = None
    insecure: bool = False
    http2: bool = False
    cold: int | None = None
    hot: int | None = None
    requests: int | None = None
    model: str | None = None
    metrics: str | None = None
    prompt_tokens: int | None = None
    max_tokens: int | None = None
    ramp: tuple[int, ...] = ()
    rate: float | None = None
    price_month: float | None = None
    labels: tuple[tuple[str, str], ...] = ()
    weight: float = 1.0
    budget: Budget = Budget()
    budget_name: str | None = None
    critical: Budget = Budget()


class Vantage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A place to measure from. `settings` holds the keys that only its kind knows, as written in the file."""

    name: str
    kind: VantageKind
    site: Site | None = None
    weight: float = 1.0
    deadline_ns: int | None = None
    source: str | None = None
    interface: str | None = None
    settings: dict[str, str | int | float | bool | list[str]] = {}


class ResolveTask(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="resolve"):
    """Find the addresses of `host`, once a run and vantage (method 2.11); `timeout_ns` is for a lookup that hangs.

    `about` says whether it is a target's host, or a control's (method 6.5).
    """

    target: str
    vantage: str
    reason: str
    host: str
    family: Family | None = None
    timeout_ns: int | None = None
    about: About = "target"


class RouteTask(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="route"):
    """Ask this machine's own system how it would send to an address; without one, by its default route."""

    target: str
    vantage: str
    reason: str
    address: str | None = None
    family: Family | None = None


class PingTask(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="ping"):
    """A series of `count` counted probes to one pinned address; `first_seq` > 0 continues an earlier series.

    `about` says whom it tells of: a series to the gateway or a control speaks of the vantage, never of the target.
    """

    target: str
    vantage: str
    reason: str
    address: str
    family: Family
    protocol: Protocol
    count: int
    interval_ns: int
    threshold_ns: int
    port: int | None = None
    first_seq: int = 0
    warmup: bool = True
    size: int = DEFAULT_PAYLOAD_BYTES
    dscp: int = 0
    ttl: int | None = None
    flows: int = 1
    about: About = "target"


class TraceTask(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="trace"):
    """`rounds` rounds over the TTLs of one flow. With `confirm` set only that TTL is asked, slowly (method 4.3)."""

    target: str
    vantage: str
    reason: str
    address: str
    family: Family
    protocol: Protocol
    rounds: int
    interval_ns: int
    threshold_ns: int
    port: int | None = None
    first_round: int = 0
    first_ttl: int = 1
    max_ttl: int = MAX_TTL
    distance: int | None = None
    confirm: int | None = None
    flow: int = 0
    size: int = DEFAULT_PAYLOAD_BYTES


class HttpTask(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="http"):
    """`cold` requests on connections of their own, then `hot` ones on one connection, to one pinned address.

    Secrets are not in it: `headers_env` and `api_key_env` name environment variables, read when the request is made.
    """

    target: str
    vantage: str
    reason: str
    address: str
    family: Family
    port: int
    url: str
    cold: int
    hot: int
    timeout_ns: int
    dns_ns: int | None = None
    method: str = "GET"
    body_file: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    headers_env: tuple[tuple[str, str], ...] = ()
    api_key_env: str | None = None
    ca_file: str | None = None
    insecure: bool = False
    http2: bool = False


STREAM_PROMPT_TOKENS = 32
STREAM_MAX_TOKENS = 32
STREAM_LONGEST_NS = 300 * SECOND


class StreamTask(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="stream"):
    """Chat completions streamed from one pinned address: `cold` on connections of their own, then `hot` on one.

    `timeout_ns` is the longest silence, `longest_ns` the longest request. `model` absent: the first that the server
    lists; `listing` has the list told even where one is named. `prompt_tokens` counts words, so it is approximate;
    `seed` begins every prompt anew, past the prefix cache. Secrets are not in it, as in an HttpTask.
    """

    target: str
    vantage: str
    reason: str
    address: str
    family: Family
    port: int
    url: str
    cold: int
    hot: int
    timeout_ns: int
    seed: int
    longest_ns: int = STREAM_LONGEST_NS
    model: str | None = None
    listing: bool = False
    prompt_tokens: int = STREAM_PROMPT_TOKENS
    max_tokens: int = STREAM_MAX_TOKENS
    dns_ns: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    headers_env: tuple[tuple[str, str], ...] = ()
    api_key_env: str | None = None
    ca_file: str | None = None
    insecure: bool = False
    http2: bool = False


Task = ResolveTask | RouteTask | PingTask | TraceTask | HttpTask | StreamTask


class Plan(Struct, frozen=True, kw_only=True):
    """Everything a run intends. `quorum` is how many vantages must be usable (method 6.2), `controls` hosts (6.5)."""

    command: str
    name: str
    targets: tuple[Target, ...]
    vantages: tuple[Vantage, ...]
    quorum: int
    deadline_ns: int
    mmdb: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
