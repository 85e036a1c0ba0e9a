"""A path whose probes have flows of their own names no segment, labels no hop and is asked no further (method 3.6)."""

from msgspec.structs import replace

from analysis.notation import ADDRESS, book, losing, plan, probes, router, target, times
from hopscope.analysis import judge
from hopscope.follow import follow
from hopscope.model.limits import SECOND
from hopscope.model.plan import Protocol, TraceTask
from hopscope.model.record import Begin, Done, Record
from hopscope.model.report import Report, TraceResult

ROUNDS = 60
ROWS = {1: times(ROUNDS, "1"), 2: times(ROUNDS, "2"), 3: losing(20, ROUNDS, 13), 4: losing(20, ROUNDS, 14)}


def traced(protocol: Protocol) -> list[Record]:
    """Loss and delay begin at hop 3; hop 4 is the target."""
    task = TraceTask(
        target="it", vantage="here", reason="asked", address=ADDRESS, family=4, protocol=protocol, rounds=ROUNDS,
        interval_ns=SECOND, threshold_ns=2 * SECOND, port=443 if protocol == "tcp" else None,
    )  # fmt: skip
    told: list[Record] = [Begin(id=1, at=0, task=task)]
    for ttl, text in ROWS.items():
        told += probes(text, 1, ttl=ttl, by=None if ttl == 4 else router(ttl))
    return [*told, Done(task=1, at=SECOND)]


def judged(protocol: Protocol) -> Report:
    what = plan(replace(target(), probes=("trace",)))
    return judge.report(book(traced(protocol), what=what), tool_version="0")


def path(report: Report) -> TraceResult:
    return next(one for one in report.results if isinstance(one, TraceResult))


def test_the_same_loss_has_a_segment_on_one_flow_and_none_on_many() -> None:
    constant, varying = judged("icmp"), judged("tcp")
    found = {one.kind: one for one in constant.verdict.findings}
    segment = found["lossy-from"].segment
    assert segment is not None
    assert (segment.from_.ttl, segment.to.ttl) == (2, 3)
    assert "slow-from" in found
    assert [(one.kind, one.segment) for one in varying.verdict.findings] == [("lossy-from", None)]


def test_no_hop_is_labelled_for_what_began_there() -> None:
    assert [hop.label for hop in path(judged("icmp")).hops] == ["ok", "ok", "lossy-from", "ok"]
    assert [hop.label for hop in path(judged("tcp")).hops] == ["ok", "ok", "ok", "ok"]
    assert (path(judged("icmp")).flow, path(judged("tcp")).flow) == ("constant", "varies")


def test_more_rounds_would_not_help_it() -> None:
    what = replace(plan(replace(target(), probes=("trace",))), command="trace")
    assert [task for task in follow(what, book(traced("tcp"), what=what)) if isinstance(task, TraceTask)] == []
