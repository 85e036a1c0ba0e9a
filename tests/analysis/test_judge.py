"""The report of a book: status and sentence as a table, and what holds for every book whatever is in it."""

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from analysis.notation import ADDRESS, book, losing, opened, ping, plan, target, times, trace
from hopscope.analysis.judge import report
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import Budget, HttpTask, PingTask, Plan, ResolveTask, Site, TraceTask, Vantage
from hopscope.model.record import (
    Begin,
    Done,
    Drop,
    End,
    Exchange,
    Extra,
    Failure,
    Named,
    Probe,
    Record,
    Resolved,
    SelfCheck,
)
from hopscope.model.report import PingResult, Report, TraceResult
from hopscope.model.sample import Book
from hopscope.tape import gather

CLEAN: list[list[Record]] = [
    ping(times(50, "3"), 1),
    trace({1: times(20, "1"), 2: times(20, "3")}, 2, end=2),
    [End(at=SECOND)],
]


LOST_HALF = (
    f"Network: 50 % (25 of 50) of the packets to {ADDRESS} are lost, on the way to, or back from there; "
    "no path was traced."
)


def judged(*records: list[Record], what: Plan | None = None) -> Report:
    return report(book(*records, what=what), tool_version="0")


def plain(got: Report) -> object:
    """A report as values that can be compared, its samples read out."""
    return msgspec.to_builtins(got, enc_hook=list)


# Status and sentence


@pytest.mark.parametrize(
    ("records", "status", "kinds", "summary"),
    [
        (CLEAN, "ok", [], "it is well: round trip 3.00 ms (median, icmp), no loss in 50."),
        ([], "unknown", ["not-enough-data"], "Unknown: it was not measured: the run ended first."),
        (
            [[Failure(kind="rights", why="no socket", target="it", vantage="here")]],
            "unknown",
            ["not-enough-data"],
            "Unknown: it was not measured: no socket.",
        ),
        (
            [[Failure(kind="vantage", why="no route", vantage="here")]],
            "unknown",
            ["vantage-fault", "not-enough-data"],
            "Vantage: vantage here measured nothing: no route. Unknown: it was not measured: no place could measure.",
        ),
        (
            [ping(losing(25, 50), 1)],
            "warning",
            ["lossy-from"],
            LOST_HALF,
        ),
    ],
)
def test_status_and_sentence(records: list[list[Record]], status: str, kinds: list[str], summary: str) -> None:
    got = judged(*records)
    assert got.verdict.status == status
    assert [one.kind for one in got.verdict.findings] == kinds
    assert got.verdict.summary == summary


def test_the_worst_finding_comes_first_and_decides() -> None:
    what = plan(target(Budget(rtt_p50_ms=1), Budget(loss=0.01), port=443))
    closed = ping(times(50, "r1"), 3, protocol="tcp", port=443)
    got = judged(ping(losing(25, 50), 1), closed, trace({1: losing(10, 20), 2: times(20, "5")}, 2, end=2), what=what)
    severities = [one.severity for one in got.verdict.findings]
    assert severities == sorted(severities, key=["critical", "unknown", "warning", "info"].index)
    assert (severities[0], got.verdict.status, got.targets[0].status) == ("critical", "critical", "critical")
    assert len({one.id for one in got.verdict.findings}) == len(severities)


@pytest.mark.parametrize(
    ("icmp", "tcp", "severities"),
    [
        ("5", "r1", ["critical", "unknown"]),
        (". 5", "5", ["unknown", "warning"]),
    ],
)
def test_unknown_is_worse_than_a_warning_and_better_than_critical(icmp: str, tcp: str, severities: list[str]) -> None:
    *series, _ = ping(times(25, icmp), 1)
    busy = Done(task=1, at=9, check=SelfCheck(limited=True))
    port = ping(times(25, tcp), 3, protocol="tcp", port=443)
    limit = Budget(rtt_p50_ms=4) if severities[1] == "warning" else None
    got = judged([*series, busy], port, what=plan(target(limit, port=443)))
    told = dict.fromkeys(one.severity for one in got.verdict.findings if one.severity != "info")
    assert list(told) == severities
    assert got.verdict.status == severities[0]


@pytest.mark.parametrize(("quorum", "severity"), [(1, "warning"), (2, "unknown")])
def test_a_failed_vantage_while_the_quorum_holds(quorum: int, severity: str) -> None:
    both = (Vantage(name="here", kind="local"), Vantage(name="there", kind="ssh"))
    what = replace(plan(), vantages=both, quorum=quorum)
    got = judged(*CLEAN, [Failure(kind="skipped", why="not yet", vantage="there")], what=what)
    assert [(one.kind, one.severity) for one in got.verdict.findings] == [("vantage-fault", severity)]
    assert [(one.name, one.outcome) for one in got.vantages] == [("here", "ok"), ("there", "skipped")]


def test_a_tape_without_a_plan_says_so() -> None:
    got = report(Book(), tool_version="0")
    assert got.verdict.summary == "Nothing was measured: this tape has no plan."
    assert [one.why for one in got.failures] == ["the tape is empty"]
    assert (got.partial, got.targets, got.results) == (True, (), ())


def test_damage_and_unknown_records_are_told() -> None:
    hurt = book(*CLEAN)
    hurt.damaged, hurt.unknown = [3, 9], 1
    got = report(hurt, tool_version="0")
    assert [one.why for one in got.failures] == [
        "damaged lines of the tape were left out: 3, 9",
        "1 record of a kind unknown to this version left out",
    ]


def test_many_targets_are_summed_up() -> None:
    names = [replace(target(), name=name) for name in ("it", "two", "three", "four", "five")]
    got = judged(*CLEAN, what=plan(*names))
    assert got.verdict.summary.startswith("Unknown: two – two was not measured: the run ended first.")
    assert got.verdict.summary.endswith("And 1 finding more. 1 of 5 targets is well.")
    well = [*CLEAN, [replace_target(record, "two", 10) for some in CLEAN[:2] for record in some]]
    assert judged(*well, what=plan(*names[:2])).verdict.summary == "All 2 targets are well."


def replace_target(record: Record, name: str, shift: int) -> Record:
    match record:
        case Begin(task=PingTask() | TraceTask() as task):
            return replace(record, id=record.id + shift, task=replace(task, target=name))
        case Probe() | Done():
            return replace(record, task=record.task + shift)
        case _:
            return record


# What holds for every book

WORD = st.sampled_from(["1", "5", "9", "200", ".", "~", "!", "r1", "u1", "u13", "x"])
TEXT = st.lists(WORD, min_size=1, max_size=40).map(" ".join)


@given(TEXT, TEXT, st.dictionaries(st.integers(1, 6), TEXT, min_size=1), st.integers(1, 7), st.randoms())
@settings(max_examples=60)
def test_a_report_does_not_care_how_tasks_ran_side_by_side(
    icmp: str, tcp: str, rows: dict[int, str], end: int, dice: random.Random
) -> None:
    tasks = [ping(icmp, 1), ping(tcp, 2, protocol="tcp", port=443), trace(rows, 3, end=end)]
    begins = [records[0] for records in tasks]
    rest = [list(records[1:]) for records in tasks]
    mixed: list[Record] = []
    while any(rest):
        mixed.append(dice.choice([records for records in rest if records]).pop(0))
    what = plan(target(Budget(rtt_p95_ms=6), port=443))
    assert plain(judged(begins, mixed, what=what)) == plain(judged(*tasks, what=what))


@given(TEXT, st.integers(2, 20))
@settings(max_examples=60)
def test_scaling_every_delay_scales_every_result(text: str, factor: int) -> None:
    once = ping(text, 1)
    scaled = [
        replace(one, rtt_ns=one.rtt_ns * factor) if isinstance(one, Probe) and one.rtt_ns is not None else one
        for one in once
    ]
    (before,), (after,) = judged(once).results, judged(scaled).results
    assert isinstance(before, PingResult)
    assert isinstance(after, PingResult)
    assert after.loss == before.loss
    assert after.delay.n == before.delay.n
    for name in ("min_ms", "p50_ms", "mean_ms", "max_ms", "stdev_ms", "ipdv_mean_ms"):
        value = getattr(before.delay, name)
        assert getattr(after.delay, name) == (None if value is None else pytest.approx(value * factor))


@given(TEXT)
@settings(max_examples=60)
def test_one_more_lost_probe_never_lowers_the_ratio(text: str) -> None:
    (before,), (after,) = judged(ping(text)).results, judged(ping(f"{text} .")).results
    assert isinstance(before, PingResult)
    assert isinstance(after, PingResult)
    assert after.loss.ratio is not None
    assert before.loss.ratio is None or after.loss.ratio >= before.loss.ratio


def test_every_hop_has_a_row_the_silent_included() -> None:
    rows = {1: times(20, "1"), 2: times(20, "."), 4: times(20, "5"), 5: times(20, "5")}
    (got,) = judged(trace(rows, 2, end=4)).results
    assert isinstance(got, TraceResult)
    assert [(hop.ttl, hop.label, hop.loss.sent) for hop in got.hops] == [
        (1, "ok", 20),
        (2, "silent", 20),
        (3, "not-enough-data", 0),
        (4, "slow-from", 20),
    ]
    assert (got.reached, got.end_to_end.loss.sent) == (True, 40)
    assert got.flows[0].ttls == (1, 4)


# Books of anything

INTS = st.integers(-(2**63), 2**63 - 1)
NAMES = st.sampled_from(["it", "two", "", "ü\n"])
OURS = st.sampled_from(["it", "it", "it", "two"])
ADDRESSES = st.sampled_from([ADDRESS, "192.0.2.1", "192.0.2.2", "2001:db8::1", "fe80::1%eth0", "", "nonsense"])
TASKS = st.one_of(
    st.builds(
        PingTask, target=OURS, vantage=OURS, reason=NAMES, address=ADDRESSES, family=st.sampled_from([4, 6]),
        count=INTS, interval_ns=INTS, threshold_ns=INTS, port=st.sampled_from([None, 0, 443]),
    ),
    st.builds(
        TraceTask, target=OURS, vantage=OURS, reason=NAMES, address=ADDRESSES, family=st.sampled_from([4, 6]),
        rounds=INTS, interval_ns=st.integers(1, 10**12), threshold_ns=INTS, confirm=st.sampled_from([None, 1, 2]),
    ),
    st.builds(
        HttpTask, target=OURS, vantage=OURS, reason=NAMES, address=ADDRESSES, family=st.sampled_from([4, 6]),
        port=INTS, url=NAMES, cold=INTS, hot=INTS, timeout_ns=INTS,
    ),
    st.builds(ResolveTask, target=OURS, vantage=OURS, reason=NAMES, host=NAMES),
)  # fmt: skip
TASK_IDS = st.integers(1, 4)
SMALL = st.integers(-2, 5)
MAYBE = st.none() | st.integers(0, 10**10)
AT = st.integers(0, 2**62)
RECORDS: st.SearchStrategy[Record] = st.one_of(
    st.builds(Begin, id=TASK_IDS, at=AT, task=TASKS),
    st.builds(
        Probe, task=TASK_IDS, seq=SMALL, at=AT, ttl=SMALL, flow=SMALL, rtt_ns=MAYBE, by=st.none() | ADDRESSES,
        kind=st.sampled_from([None, "echo-reply", "syn-ack", "rst", "time-exceeded", "unreachable"]),
        clock=st.sampled_from([None, "kernel", "tcp-info", "user"]), warmup=st.booleans(), why=st.none() | NAMES,
        code=st.none() | st.integers(0, 255), reply_ttl=SMALL, quoted_ttl=SMALL, quoted_tos=SMALL,
    ),
    st.builds(Extra, task=TASK_IDS, seq=SMALL, at=AT, ttl=SMALL, flow=SMALL, rtt_ns=MAYBE, by=st.none() | ADDRESSES),
    st.builds(Drop, task=TASK_IDS, since=AT, until=AT, count=SMALL),
    st.builds(Resolved, task=TASK_IDS, at=AT, addresses=st.lists(ADDRESSES, max_size=2).map(tuple)),
    st.builds(
        Exchange, task=TASK_IDS, seq=SMALL, connection=SMALL, scheduled=AT, dialled=MAYBE, connected=MAYBE,
        secured=MAYBE, sent_first=MAYBE, sent_last=MAYBE, head=MAYBE, done=MAYBE, min_rtt_ns=MAYBE, rtt_ns=MAYBE,
        lag_ns=MAYBE, status=st.none() | st.integers(-1, 1000),
        error=st.sampled_from([None, "dns", "refused", "timeout", "unreachable", "prohibited", "tls", "http", "cut"]),
        level=st.sampled_from([1, 2, 3]),
    ),
    st.builds(Failure, target=st.none() | NAMES, vantage=st.none() | NAMES, task=st.none() | TASK_IDS),
    st.builds(
        Named, address=ADDRESSES, source=NAMES, asn=st.none() | SMALL, lat=st.none() | st.floats(-90, 90),
        lon=st.none() | st.floats(-180, 180), radius_km=st.none() | st.floats(0, 1e4),
    ),
    st.builds(Done, task=TASK_IDS, at=AT, check=st.builds(SelfCheck, limited=st.booleans())),
    st.builds(End, at=AT),
)  # fmt: skip
LIMITS = st.builds(Budget, rtt_p95_ms=st.none() | st.floats(0, 10), loss=st.none() | st.floats(0, 1))
PLANS = st.builds(
    lambda budget, critical, vantages: Plan(
        command="run", name="it",
        targets=(replace(target(budget, critical, port=443), url="https://x", probes=("ping", "trace", "http")),),
        vantages=vantages, quorum=1, deadline_ns=1,
    ),
    LIMITS, LIMITS, st.lists(st.just(Vantage(name="it", kind="local", site=Site(lat=1, lon=2))), max_size=2).map(tuple),
)  # fmt: skip


@settings(max_examples=300)
@given(PLANS, st.lists(TASKS, max_size=4), st.lists(RECORDS, max_size=60))
def test_judging_is_total(what: Plan, tasks: list[HttpTask], records: list[Record]) -> None:
    begins: list[Record] = [Begin(id=n, at=0, task=task) for n, task in enumerate(tasks, start=1)]
    whole = gather([*opened(what), *begins, *records])
    once, again = report(whole, tool_version="0"), report(whole, tool_version="0")
    assert plain(once) == plain(again)
    assert once.verdict.status in {"ok", "warning", "unknown", "critical"}
    assert once.verdict.summary


def test_durations_of_the_notation_are_what_they_say() -> None:
    (got,) = judged(ping("10 . 12")).results
    assert isinstance(got, PingResult)
    assert [sample.rtt_ms for sample in got.samples] == [10.0, None, 12.0]
    assert got.delay.max_ms == 12 * MS / MS
