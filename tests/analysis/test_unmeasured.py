"""What was not measured is unknown: never well, and never the target's fault (method 6.1, 6.2; the status page).

A run may be killed after any record; each of these books is what the tape then holds.
"""

import pytest
from msgspec.structs import replace

from hopscope import tape
from hopscope.analysis import judge
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import HttpTask, PingTask, Plan, ResolveTask, Target, Vantage
from hopscope.model.record import Begin, Done, End, Failure, Planned, Probe, Record, Resolved, Run

ADDRESS = "192.0.2.7"
TARGET = Target(name="gpu1", host="gpu1.example", url="https://gpu1.example/v1", port=443, probes=("ping", "http"))
PLAN = Plan(
    command="run",
    name="gpu1",
    targets=(TARGET,),
    vantages=(Vantage(name="here", kind="local"),),
    quorum=1,
    deadline_ns=SECOND,
)
RESOLVE = ResolveTask(target="gpu1", vantage="here", reason="asked", host="gpu1.example")
PING = PingTask(
    target="gpu1",
    vantage="here",
    reason="asked",
    address=ADDRESS,
    family=4,
    protocol="icmp",
    count=20,
    interval_ns=MS,
    threshold_ns=SECOND,
)
HTTP = HttpTask(
    target="gpu1",
    vantage="here",
    reason="asked",
    address=ADDRESS,
    family=4,
    port=443,
    url="https://gpu1.example/v1",
    cold=1,
    hot=0,
    timeout_ns=SECOND,
)
START: tuple[Record, ...] = (
    Run(tape=1, tool_version="0", command="run", at=0),
    Planned(plan=PLAN),
    Begin(id=1, at=0, task=RESOLVE),
)
FOUND: tuple[Record, ...] = (*START, Resolved(task=1, at=1, addresses=(ADDRESS,), took_ns=1), Done(task=1, at=1))
PINGING: tuple[Record, ...] = (*FOUND, Begin(id=2, at=1, task=PING))
WARM = Probe(task=2, seq=-1, at=2, outcome="replied", rtt_ns=MS, clock="kernel", kind="echo-reply", warmup=True)
PINGED: tuple[Record, ...] = (
    *PINGING,
    *(
        Probe(task=2, seq=n, at=n + 3, outcome="replied", rtt_ns=MS, clock="kernel", kind="echo-reply")
        for n in range(20)
    ),
    Done(task=2, at=99),
)
NO_KEY = Failure(
    kind="rights", why="the environment variable GPU1_KEY is not set", target="gpu1", vantage="here", task=3
)


@pytest.mark.parametrize(
    ("records", "says"),
    [
        (START[:2], "gpu1 was not measured: the run ended first"),
        (START, "gpu1 was not measured: the run ended first"),
        (FOUND, "gpu1 was not measured: the run ended first"),
        (PINGING, "gpu1 was not measured: the run ended first"),
        ((*PINGING, WARM), "gpu1 was not measured: the run ended first"),
        (
            (*PINGED, Begin(id=3, at=1, task=HTTP)),
            "https://gpu1.example/v1 was not measured: the run ended first",
        ),
        (
            (*PINGED, Begin(id=3, at=1, task=HTTP), NO_KEY, Done(task=3, at=4, complete=False)),
            "https://gpu1.example/v1 was not measured: the environment variable GPU1_KEY is not set",
        ),
    ],
)
def test_what_a_run_did_not_come_to_is_unknown(records: tuple[Record, ...], says: str) -> None:
    report = judge.report(tape.gather(records), tool_version="0")
    assert (report.verdict.status, report.targets[0].status) == ("unknown", "unknown")
    assert [one.why for one in report.verdict.findings if one.severity != "info"] == [says]


def test_a_name_without_an_address_is_the_targets_and_critical() -> None:
    gone = Resolved(task=1, at=1, took_ns=1, error="Name or service not known")
    report = judge.report(tape.gather((*START, gone, Done(task=1, at=1))), tool_version="0")
    assert report.verdict.status == "critical"
    assert [(one.kind, one.severity) for one in report.verdict.findings] == [("dns-failed", "critical")]
    assert [result.outcome for result in report.measured] == ["dns", "dns"]


FAR = Vantage(name="far", kind="exec")
FAR_ASKED = Begin(id=9, at=0, task=replace(RESOLVE, vantage="far"))


@pytest.mark.parametrize(
    ("end", "usable"),
    [(End(at=99, partial=True, why="deadline reached"), 1), (None, 1), (End(at=99), 2)],
    ids=["cut short", "killed", "whole"],
)
def test_a_far_place_that_never_answered_did_not_measure(end: End | None, usable: int) -> None:
    what = replace(PLAN, vantages=(*PLAN.vantages, FAR), quorum=2)
    records = [START[0], Planned(plan=what), *PINGED[2:], FAR_ASKED, *([end] if end else [])]
    report = judge.report(tape.gather(records), tool_version="0")
    outcomes = {one.name: one.outcome for one in report.vantages}
    assert outcomes == {"here": "ok", "far": "ok" if usable == 2 else "vantage-failed"}
    faults = [(one.vantages, one.severity) for one in report.verdict.findings if one.kind == "vantage-fault"]
    assert faults == ([] if usable == 2 else [(("far",), "unknown")])
