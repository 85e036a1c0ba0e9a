"""What happened, as it goes on the tape: one struct a line, told apart by `record`.

Instants (`at`, and the marks of an exchange) are nanoseconds of UTC on a timeline that never steps: the vantage's
wall clock at its start plus monotonic time since. Differences of them are durations. A field that is not known is
absent. Kinds of record that a reader does not know are skipped and counted.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from hopscope.model.plan import Family, Plan, Task

TAPE_NUMBER = 1

Instant = Annotated[int, Meta(ge=0, le=2**62)]
"""Nanoseconds of UTC, up to the year 2116: a tape that says otherwise is damaged there."""

Ttl = Annotated[int, Meta(ge=0, le=255)]
"""As a packet can have it (RFC 791 §3.1)."""
Clock = Literal["kernel", "tcp-info", "user"]
ProbeOutcome = Literal["replied", "refused", "unreachable", "lost", "unsent"]
ReplyKind = Literal["echo-reply", "syn-ack", "rst", "time-exceeded", "unreachable"]
ErrorClass = Literal["dns", "refused", "timeout", "unreachable", "prohibited", "tls", "http", "cut", "bug"]


class Run(Struct, frozen=True, kw_only=True, tag_field="record", tag="run"):
    """First line of a tape."""

    tape: int
    tool_version: str
    command: str
    at: Instant


class Planned(Struct, frozen=True, kw_only=True, tag_field="record", tag="plan"):
    """Second line: what was to be measured, budgets included."""

    plan: Plan


class Begin(Struct, frozen=True, kw_only=True, tag_field="record", tag="begin"):
    """A task started; later records carry its number in `task`."""

    id: int
    at: Instant
    task: Task


class Resolved(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="record", tag="resolved"):
    """Answer of the name lookup: addresses in the order the resolver gave them. A literal has `took_ns` absent.

    `resolvers` are the addresses that this machine is set to ask, where it is known.
    """

    task: int
    at: Instant
    addresses: tuple[str, ...] = ()
    took_ns: int | None = None
    error: str | None = None
    resolvers: tuple[str, ...] = ()


class Routed(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="record", tag="routed"):
    """How this machine would send to an address. `error` says that it has no route; then little else is known.

    `gateway` is absent where the address is on the link. `up` is the interface's own switch, `carrier` whether
    anything is plugged in; `neighbour` what the neighbour table says of the next hop. Counters are since boot.
    """

    task: int
    at: Instant
    interface: str | None = None
    up: bool | None = None
    carrier: bool | None = None
    source: str | None = None
    gateway: str | None = None
    neighbour: Literal["reachable", "stale", "failed", "incomplete", "permanent"] | None = None
    mtu_bytes: int | None = None
    rx_errors: int | None = None
    tx_errors: int | None = None
    rx_dropped: int | None = None
    tx_dropped: int | None = None
    error: str | None = None


class Probe(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="record", tag="probe"):
    """One probe of a series or trace, settled. `seq` is the round in a trace; `ttl` 0 means "not limited".

    `rtt_ns` is the round-trip delay (RFC 2681) and stands only beside `replied`, `refused` and `unreachable`.
    `by` is absent when the target's own address answered.
    """

    task: int
    seq: int
    at: Instant
    outcome: ProbeOutcome
    ttl: Ttl = 0
    flow: int = 0
    rtt_ns: int | None = None
    clock: Clock | None = None
    kind: ReplyKind | None = None
    by: str | None = None
    code: int | None = None
    reply_ttl: int | None = None
    quoted_ttl: int | None = None
    quoted_tos: int | None = None
    mpls: tuple[int, ...] | None = None
    warmup: bool = False
    why: str | None = None


class Extra(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="record", tag="extra"):
    """A reply outside the count: later than the loss threshold, a second one, or from somebody not asked."""

    task: int
    seq: int
    at: Instant
    what: Literal["late", "duplicate", "stranger"]
    ttl: int = 0
    flow: int = 0
    rtt_ns: int | None = None
    clock: Clock | None = None
    by: str | None = None


class Drop(Struct, frozen=True, kw_only=True, tag_field="record", tag="drop"):
    """Our own socket lost `count` packets between two reads: losses that overlap it are void (method 1.6)."""

    task: int
    since: Instant
    until: Instant
    count: int


class Certificate(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the server showed. `why` says why it was not accepted."""

    version: str | None = None
    cipher: str | None = None
    alpn: str | None = None
    resumed: bool | None = None
    not_after: Instant | None = None
    subject: str | None = None
    names: tuple[str, ...] = ()
    issuer: str | None = None
    verified: bool | None = None
    why: str | None = None


class Claim(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A duration somebody on the way states about itself; valid only for what lies behind `source`."""

    name: str
    value_ms: float
    scope: str
    source: str


class Exchange(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="record", tag="exchange"):
    """One request. Marks are instants in this order; those not reached are absent.

    `head` is R1 of method 5.1: the read that completed the first record carrying bytes of the final response header.
    `min_rtt_ns` is the kernel's least round trip of the connection's life, absent where a retransmit spoiled it.
    `rtt_ns` is the kernel's first sample (the SYN's), `lag_ns` how long the last byte of the head lay unread.
    """

    task: int
    seq: int
    cold: bool
    connection: int
    scheduled: Instant
    dialled: Instant | None = None
    connected: Instant | None = None
    secured: Instant | None = None
    sent_first: Instant | None = None
    sent_last: Instant | None = None
    head: Instant | None = None
    done: Instant | None = None
    dns_ns: int | None = None
    clock: Clock = "user"
    level: Literal[3, 2, 1] = 1
    min_rtt_ns: int | None = None
    rtt_ns: int | None = None
    retransmits: int | None = None
    lag_ns: int | None = None
    status: int | None = None
    http_version: str | None = None
    bytes_up: int = 0
    bytes_down: int = 0
    certificate: Certificate | None = None
    claims: tuple[Claim, ...] = ()
    error: ErrorClass | None = None
    detail: str | None = None


class Failure(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="record", tag="failure"):
    """Something was not measured, through nobody's fault on the path: rights, a vantage, a quota, a bug of ours."""

    kind: Literal["vantage", "quota", "rights", "skipped", "usage", "bug"]
    why: str
    advice: str = ""
    target: str | None = None
    vantage: str | None = None
    task: int | None = None


class SelfCheck(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How well we did ourselves (method 1.6). Durations in ns; `limited` means: blame nobody on this evidence."""

    late_p99_ns: int | None = None
    drops: int = 0
    clock_step_ns: int = 0
    limited: bool = False


class Done(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="record", tag="done"):
    """A task ended; `complete` is false when the deadline or an interrupt cut it short."""

    task: int
    at: Instant
    complete: bool = True
    check: SelfCheck = SelfCheck()


class Named(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="record", tag="named"):
    """What databases and resolvers say about an address; `radius_km` is the database's own accuracy."""

    address: str
    source: str
    hostname: str | None = None
    asn: int | None = None
    as_name: str | None = None
    prefix: str | None = None
    place: str | None = None
    lat: float | None = None
    lon: float | None = None
    radius_km: float | None = None


class End(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="record", tag="end"):
    """Last line. A tape without it is a valid, shorter run."""

    at: Instant
    partial: bool = False
    why: str | None = None


class Streamed(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="record", tag="streamed"):
    """One streamed completion: its exchange and what its events said. An event's instant is that of the read which
    completed its last `data:` line, by the clock of the exchange.

    `token_gaps_ns` are the times between token events from `first_token` on, the first 100 000 of them, and likewise
    `comment_gaps_ns`: a tape's line has an end; the counts are whole. `finished` is `[DONE]`, where that is missing
    the finish reason. `n_first` is told by servers that count as they go. `lag_ns` is how long token events lay
    unread, at their 99th percentile. `models_listed`: the model was not named, and is the first of so many. `listed`
    are the first names of the server's list, where they were asked for.
    """

    task: int
    exchange: Exchange
    model: str | None = None
    models_listed: int | None = None
    listed: tuple[str, ...] = ()
    first_event: int | None = None
    first_token: int | None = None
    first_visible: int | None = None
    last_token: int | None = None
    finished: int | None = None
    token_gaps_ns: tuple[int, ...] = ()
    first_comment: int | None = None
    comment_gaps_ns: tuple[int, ...] = ()
    events: int = 0
    token_events: int = 0
    comments: int = 0
    unknown_events: int = 0
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    n_first: int | None = None
    lag_ns: int | None = None
    retry_after_ns: int | None = None


Record = (
    Run
    | Planned
    | Begin
    | Resolved
    | Routed
    | Probe
    | Extra
    | Drop
    | Exchange
    | Streamed
    | Failure
    | Done
    | Named
    | End
)

__all__ = [
    "TAPE_NUMBER",
    "Begin",
    "Certificate",
    "Claim",
    "Clock",
    "Done",
    "Drop",
    "End",
    "ErrorClass",
    "Exchange",
    "Extra",
    "Failure",
    "Family",
    "Named",
    "Planned",
    "Probe",
    "ProbeOutcome",
    "Record",
    "ReplyKind",
    "Resolved",
    "Routed",
    "Run",
    "SelfCheck",
    "Streamed",
]
