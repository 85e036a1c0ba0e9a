"""The virtual network: which replies a probe draws, and when. Seeded; it knows instants, not clocks.

A probe walks the routers that stand on the path when it is sent. Each link may swallow or hold it; the router where its
TTL ends, one that cannot forward it, or the target answers, as far as its own limits let it.
"""

from collections import Counter
from collections.abc import Iterator
from random import Random

from msgspec import Struct

from hopscope.model.flight import Answer, Shot
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import PingTask, TraceTask
from hopscope.model.record import Clock, ReplyKind
from virtual.scenario import Hop, Node, Port, Scenario

FURTHEST = 255
DUPLICATE_AFTER_NS = MS
PROHIBITED_CODE = {4: 13, 6: 1}


class Arrival(Struct, frozen=True, kw_only=True):
    """A reply on its way: when it comes, and what it says."""

    at: int
    answer: Answer


class Bucket:
    """Tokens for ICMP replies, as `inet_peer_xrlim_allow` of Linux counts them."""

    def __init__(self, per_s: float, burst: int, at: int) -> None:
        self._spacing = int(SECOND / per_s)
        self._most = burst * self._spacing
        self._tokens = self._most
        self._last = at

    def allows(self, at: int) -> bool:
        """Whether one more reply may leave at `at`."""
        self._tokens = min(self._most, self._tokens + max(0, at - self._last))
        self._last = max(self._last, at)
        if self._tokens < self._spacing:
            return False
        self._tokens -= self._spacing
        return True


class Network:
    """One seeded world of a scenario, from `start` (anchored ns) on."""

    def __init__(self, scenario: Scenario, seed: int, start: int) -> None:
        self._scenario = scenario
        self.chance = Random(seed)
        self._start = start
        self._buckets: dict[int, Bucket] = {}
        self._asked: Counter[int] = Counter()

    def send(self, task: PingTask | TraceTask, shot: Shot, at: int) -> Iterator[Arrival]:
        """The replies that a probe sent at `at` draws."""
        reach = shot.ttl or FURTHEST
        held = 0
        for ttl, hop in enumerate(self._path(at), start=1):
            if self._happens(hop.drop):
                return
            held += self._held(hop)
            if ttl == reach:
                yield from self._said(task, hop, shot, at, held, "time-exceeded", None)
                return
            if hop.unreachable is not None:
                yield from self._said(task, hop, shot, at, held, "unreachable", hop.unreachable)
                return
        target = self._scenario.target
        if self._happens(target.drop) or (task.protocol == "tcp" and self._happens(target.syn_drop)):
            return
        held += self._held(target)
        kind, code = self._answer(task)
        if kind is not None and (task.protocol != "icmp" or self._willing(target, at)):
            yield from self._comes(target, at, held, _answer(task, kind, code, by=None))

    def _path(self, at: int) -> list[Hop]:
        """Routers on the path at an instant."""
        since = (at - self._start) / SECOND
        return [hop for hop in self._scenario.hop if hop.from_s <= since < (hop.until_s or float("inf"))]

    def _happens(self, probability: float) -> bool:
        return probability > 0 and self.chance.random() < probability

    def _held(self, node: Node) -> int:
        """How long the link to a node holds this packet back."""
        held = self.chance.uniform(0, node.jitter_ms) if node.jitter_ms else 0.0
        if self._happens(node.reorder):
            held += node.reorder_ms
        return int(held * MS)

    def _answer(self, task: PingTask | TraceTask) -> tuple[ReplyKind | None, int | None]:
        """What the target itself says to a probe."""
        target = self._scenario.target
        if task.protocol == "icmp":
            return ("echo-reply" if target.icmp else None), None
        state: Port = target.ports.get(str(task.port), target.other_ports)
        match state:
            case "open":
                return "syn-ack", None
            case "closed":
                return "rst", None
            case "prohibited":
                return "unreachable", PROHIBITED_CODE[task.family]
            case "filtered":
                return None, None

    def _said(
        self, task: PingTask | TraceTask, hop: Hop, shot: Shot, at: int, held: int, kind: ReplyKind, code: int | None
    ) -> Iterator[Arrival]:
        """An ICMP error of a router, if it gives one."""
        if hop.addr is None or not self._willing(hop, at):
            return
        speaker = hop.addr if isinstance(hop.addr, str) else hop.addr[shot.flow % len(hop.addr)]
        by = None if speaker == self._scenario.target.address else speaker
        yield from self._comes(hop, at, held, _answer(task, kind, code, by=by))

    def _willing(self, node: Node, at: int) -> bool:
        """Whether a node's limits let it answer once more."""
        self._asked[id(node)] += 1
        if (self._asked[id(node)] - 1) % node.answers_every or self._happens(node.withholds):
            return False
        if node.limit_per_s is None:
            return True
        bucket = self._buckets.setdefault(id(node), Bucket(node.limit_per_s, node.burst, at))
        return bucket.allows(at)

    def _comes(self, node: Node, at: int, held: int, answer: Answer) -> Iterator[Arrival]:
        """A reply, and perhaps a second one of it."""
        rtt = int((node.rtt_ms + node.extra_ms) * MS) + held
        yield Arrival(at=at + rtt, answer=_after(answer, rtt))
        if self._happens(node.duplicate):
            again = rtt + DUPLICATE_AFTER_NS
            yield Arrival(at=at + again, answer=_after(answer, again))


def _answer(task: PingTask | TraceTask, kind: ReplyKind, code: int | None, *, by: str | None) -> Answer:
    """A reply as the channel of its protocol would tell it: a TCP socket does not say who sent an ICMP error."""
    clock: Clock = "kernel" if task.protocol == "icmp" else "tcp-info" if kind == "syn-ack" else "user"
    if task.protocol == "tcp" and kind == "unreachable":
        return Answer(kind=kind, rtt_ns=0, clock=clock)
    return Answer(kind=kind, rtt_ns=0, clock=clock, by=by, code=code)


def _after(answer: Answer, rtt: int) -> Answer:
    return Answer(kind=answer.kind, rtt_ns=rtt, clock=answer.clock, by=answer.by, code=answer.code)
