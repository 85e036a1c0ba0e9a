"""A scenario: a made-up network, what is asked of it, and the verdict that it must give, read from TOML.

The file's name is the claim and the expectation stands in the file; a key that no struct below has is refused. Every
scenario is run with several seeds; `agree` says at how many of them a claim about chance must hold.
"""

from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from hopscope.model import plan as model
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import Budget, ProbeKind, Protocol
from hopscope.model.record import ErrorClass
from hopscope.model.report import Label, Severity, Status

Port = Literal["open", "closed", "filtered", "prohibited"]


class Node(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whatever answers. `rtt_ms` is the round trip to it; jitter, reordering and `drop` befall the way to it.

    So they befall everything beyond as well. The others are about its own ICMP replies: `limit_per_s` is a token
    bucket of `burst` as Linux has it, `extra_ms` a busy control plane, `withholds` a share left unanswered at random.
    """

    rtt_ms: float
    jitter_ms: float = 0.0
    drop: float = 0.0
    reorder: float = 0.0
    reorder_ms: float = 0.0
    duplicate: float = 0.0
    limit_per_s: float | None = None
    burst: int = 6
    answers_every: int = 1
    withholds: float = 0.0
    extra_ms: float = 0.0


class Hop(Node, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A router: silent without `addr`, one address a flow with a list. It stands on the path in [from_s, until_s).

    With `unreachable` it forwards nothing and says so with that code.
    """

    addr: str | tuple[str, ...] | None = None
    from_s: float = 0.0
    until_s: float | None = None
    unreachable: int | None = None


class Target(Node, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is measured; `ports` by number, all others as `other_ports`; `syn_drop` befalls connections alone."""

    address: str = "203.0.113.9"
    icmp: bool = True
    ports: dict[str, Port] = {}
    other_ports: Port = "closed"
    syn_drop: float = 0.0


class Http(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The server behind the port. One request in `slow_every` takes `slow_ms`; an `error` befalls all, at its stage."""

    server_ms: float = 5.0
    slow_ms: float = 0.0
    slow_every: int | None = None
    status: int = 200
    error: ErrorClass | None = None
    detail: str | None = None


class Client(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The measuring host: the system refuses to send one probe in `unsent_every`; the loop wakes up to `late_ms` late.

    `limited` is its own verdict on itself.
    """

    unsent_every: int | None = None
    late_ms: float = 0.0
    limited: bool = False


class Asked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The target of the plan; what is not set is the program's default."""

    probes: tuple[ProbeKind, ...] = ("ping", "trace")
    protocol: Protocol | None = None
    port: int | None = None
    url: str | None = None
    count: int | None = None
    interval_ms: float | None = None
    rounds: int | None = None
    round_interval_ms: float | None = None
    max_ttl: int = 30
    threshold_ms: float = 2000.0
    deadline_s: float = 300.0
    expect_status: tuple[int, ...] = ()
    budget: Budget = Budget()
    critical: Budget = Budget()


class Expect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the report must say. `findings` is complete: no other may be there but those that `may` names.

    One finding is `KIND [@WHERE] [(FROM,TO]] [SEVERITY] [CONFIDENCE]`; `|` stands between alternatives.
    """

    status: Status | None = None
    findings: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    outcomes: dict[str, str] = {}
    labels: tuple[Label, ...] | None = None
    reached: bool | None = None
    end: str | None = None
    end_ttl: int | None = None
    loss: dict[str, dict[str, int]] = {}
    sent: dict[str, tuple[int, int]] = {}
    rounds: tuple[int, int] | None = None
    confirms: int | None = None
    confirm_interval_ms: tuple[float, float] | None = None
    partial: bool = False


class Scenario(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    why: str
    target: Target
    expect: Expect
    hop: tuple[Hop, ...] = ()
    plan: Asked = Asked()
    http: Http = Http()
    client: Client = Client()
    dns_error: str | None = None
    seeds: int = 5
    agree: int | None = None

    @property
    def needed(self) -> int:
        """How many seeds must be right."""
        return self.seeds if self.agree is None else self.agree

    def as_plan(self) -> model.Plan:
        """What `run` would be given."""
        asked = self.plan
        target = model.Target(
            name="it",
            host="gpu.example" if self.dns_error else self.target.address,
            port=asked.port,
            url=asked.url,
            probes=asked.probes,
            protocol=asked.protocol,
            count=asked.count,
            interval_ns=_ns(asked.interval_ms),
            rounds=asked.rounds,
            round_interval_ns=_ns(asked.round_interval_ms),
            max_ttl=asked.max_ttl,
            threshold_ns=int(asked.threshold_ms * MS),
            expect_status=asked.expect_status,
            budget=asked.budget,
            critical=asked.critical,
        )
        return model.Plan(
            command="run",
            name="scenario",
            targets=(target,),
            vantages=(model.Vantage(name="here", kind="local"),),
            quorum=1,
            deadline_ns=int(asked.deadline_s * SECOND),
        )


class Wanted(Struct, frozen=True, kw_only=True):
    """One expected finding, taken apart."""

    kind: str
    where: str | None = None
    from_ttl: frozenset[int] | None = None
    to_ttl: frozenset[int] | None = None
    severity: Severity | None = None
    confidence: str | None = None


def wanted(text: str) -> Wanted:
    """Read `lossy-from @4 (2|3,4] warning shown`."""
    kind, *words = text.split()
    found = Wanted(kind=kind)
    for word in words:
        match word[0], word:
            case "@", _:
                found = msgspec.structs.replace(found, where=word[1:])
            case "(", _:
                near, far = word.removeprefix("(").removesuffix("]").split(",")
                found = msgspec.structs.replace(found, from_ttl=_numbers(near), to_ttl=_numbers(far))
            case _, "info" | "warning" | "unknown" | "critical" as severity:
                found = msgspec.structs.replace(found, severity=severity)
            case _, "shown" | "likely" | "undecided" as confidence:
                found = msgspec.structs.replace(found, confidence=confidence)
            case _:
                message = f"{text!r}: what is {word!r}?"
                raise ValueError(message)
    return found


def read(path: Path) -> Scenario:
    """Read one file."""
    return msgspec.toml.decode(path.read_bytes(), type=Scenario)


def _numbers(text: str) -> frozenset[int]:
    return frozenset(int(one) for one in text.split("|"))


def _ns(milliseconds: float | None) -> int | None:
    return None if milliseconds is None else int(milliseconds * MS)
