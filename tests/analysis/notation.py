"""Probes in a tiny notation: `10 . 12 ! r3` is a reply after 10 ms, a loss, a reply, an unsent probe, a reset.

`~` is a late answer (its probe is lost), `u` an unreachable, `x` a loss that our own socket may have caused. One second
lies between probes, so that the sequence number is the second of sending.
"""

from collections.abc import Iterable, Mapping

from hopscope.analysis.views import Fated, PathView, SeriesView, paths, series
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import Budget, PingTask, Plan, Protocol, Target, TraceTask, Vantage
from hopscope.model.record import Begin, Done, Drop, Extra, Planned, Probe, Record, Run
from hopscope.model.sample import Book
from hopscope.tape import gather

ADDRESS = "203.0.113.9"
PING = PingTask(
    target="it", vantage="here", reason="asked", address=ADDRESS, family=4, protocol="icmp", count=1,
    interval_ns=SECOND, threshold_ns=2 * SECOND,
)  # fmt: skip
TRACE = TraceTask(
    target="it", vantage="here", reason="asked", address=ADDRESS, family=4, protocol="icmp", rounds=1,
    interval_ns=SECOND, threshold_ns=2 * SECOND,
)  # fmt: skip


def router(ttl: int) -> str:
    return f"192.0.2.{ttl}"


def probes(text: str, task: int = 1, *, ttl: int = 0, by: str | None = None, first: int = 0) -> list[Record]:
    """The records that a text stands for; with `by` replies are a router's Time Exceeded."""
    records: list[Record] = []
    for seq, word in enumerate(text.split(), start=first):
        records += _one(word, task, seq, ttl, by)
    return records


def _one(word: str, task: int, seq: int, ttl: int, by: str | None) -> list[Record]:
    at = seq * SECOND
    match word[0]:
        case ".":
            return [Probe(task=task, seq=seq, at=at, outcome="lost", ttl=ttl)]
        case "!":
            return [Probe(task=task, seq=seq, at=at, outcome="unsent", ttl=ttl, why="ENOBUFS")]
        case "~":
            late = Extra(task=task, seq=seq, at=at + 3 * SECOND, what="late", ttl=ttl, rtt_ns=3 * SECOND)
            return [Probe(task=task, seq=seq, at=at, outcome="lost", ttl=ttl), late]
        case "x":
            lost = Probe(task=task, seq=seq, at=at, outcome="lost", ttl=ttl)
            return [lost, Drop(task=task, since=at + MS, until=at + 2 * MS, count=1)]
        case "u":
            said = Probe(
                task=task, seq=seq, at=at, outcome="unreachable", ttl=ttl, rtt_ns=MS, clock="kernel",
                kind="unreachable", by=by or "192.0.2.99", code=int(word[1:] or 1),
            )  # fmt: skip
            return [said]
        case "r":
            rtt = int(float(word[1:]) * MS)
            return [Probe(task=task, seq=seq, at=at, outcome="refused", ttl=ttl, rtt_ns=rtt, clock="user", kind="rst")]
        case _:
            kind = "echo-reply" if by is None else "time-exceeded"
            rtt = int(float(word) * MS)
            reply = Probe(
                task=task, seq=seq, at=at, outcome="replied", ttl=ttl, rtt_ns=rtt, clock="kernel",
                kind="echo-reply" if kind == "echo-reply" else "time-exceeded", by=by,
            )  # fmt: skip
            return [reply]


def times(number: int, word: str) -> str:
    """The same word again and again."""
    return " ".join([word] * number)


def losing(lost: int, sent: int, rtt_ms: float = 1.0) -> str:
    """`lost` of `sent`, the losses first."""
    return f"{times(lost, '.')} {times(sent - lost, str(rtt_ms))}"


def target(budget: Budget | None = None, critical: Budget | None = None, *, port: int | None = None) -> Target:
    return Target(name="it", host=ADDRESS, port=port, budget=budget or Budget(), critical=critical or Budget())


def plan(*targets: Target) -> Plan:
    vantages = (Vantage(name="here", kind="local"),)
    return Plan(
        command="run", name="it", targets=targets or (target(),), vantages=vantages, quorum=1, deadline_ns=300 * SECOND
    )


def opened(what: Plan | None = None) -> list[Record]:
    return [Run(tape=1, tool_version="0", command="run", at=0), Planned(plan=what or plan())]


def ping(
    text: str, task: int = 1, *, protocol: Protocol = "icmp", port: int | None = None, begun: int = 0
) -> list[Record]:
    """A whole series, begun and done."""
    asked = PingTask(
        target="it", vantage="here", reason="asked", address=ADDRESS, family=4, protocol=protocol, port=port,
        count=len(text.split()), interval_ns=SECOND, threshold_ns=2 * SECOND,
    )  # fmt: skip
    return [Begin(id=task, at=begun, task=asked), *probes(text, task), Done(task=task, at=begun + SECOND)]


def trace(
    rows: Mapping[int, str], task: int = 2, *, end: int | None = None, confirm: int | None = None, slow_s: float = 1.0
) -> list[Record]:
    """A whole path: the text of each TTL; routers answer, and the target at `end` and beyond."""
    asked = TraceTask(
        target="it", vantage="here", reason="asked", address=ADDRESS, family=4, protocol="icmp",
        rounds=max(len(text.split()) for text in rows.values()), interval_ns=int(slow_s * SECOND),
        threshold_ns=2 * SECOND, confirm=confirm,
    )  # fmt: skip
    found: list[Record] = [Begin(id=task, at=0, task=asked)]
    for ttl, text in rows.items():
        found += probes(text, task, ttl=ttl, by=None if end is not None and ttl >= end else router(ttl))
    return [*found, Done(task=task, at=SECOND)]


def book(*records: Iterable[Record], what: Plan | None = None) -> Book:
    return gather([*opened(what), *(record for some in records for record in some)])


def series_of(*records: Iterable[Record]) -> SeriesView:
    (view,) = series(book(*records))
    return view


def path_of(*records: Iterable[Record]) -> PathView:
    (view,) = paths(book(*records))
    return view


def fates(text: str) -> list[Fated]:
    return series_of(ping(text)).fated
