"""The server's time to its first token, judged as its time to the head is (method 5.10)."""

import pytest

from hopscope import tape
from hopscope.analysis import judge
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import Budget, Plan, StreamTask, Target, Vantage
from hopscope.model.record import Begin, Done, Exchange, Planned, Record, Run, Streamed
from hopscope.model.report import Finding, Report

RTT = 60 * MS
START = 1_800_000_000 * SECOND


def streamed(seq: int, first_token_ms: int) -> Streamed:
    """A hot request whose head came at once and whose first token came so much beyond one round trip."""
    sent = START + seq * 10 * SECOND
    token = sent + RTT + first_token_ms * MS
    exchange = Exchange(
        task=1, seq=seq, cold=False, connection=1, scheduled=sent, sent_first=sent, sent_last=sent, head=sent + RTT,
        done=token, clock="kernel", level=2, min_rtt_ns=RTT, rtt_ns=RTT, status=200,
    )  # fmt: skip
    return Streamed(task=1, exchange=exchange, first_event=sent + RTT, first_token=token, last_token=token)


def judged(first_token_ms: int, budget: Budget) -> Report:
    target = Target(
        name="gpu1", host="192.0.2.7", url="https://192.0.2.7/v1", port=443, probes=("stream",), budget=budget
    )
    plan = Plan(
        command="run", name="it", targets=(target,), vantages=(Vantage(name="here", kind="local"),), quorum=1,
        deadline_ns=SECOND,
    )  # fmt: skip
    task = StreamTask(
        target="gpu1", vantage="here", reason="asked", address="192.0.2.7", family=4, port=443,
        url="https://192.0.2.7/v1", cold=0, hot=5, timeout_ns=SECOND, seed=1,
    )  # fmt: skip
    records: list[Record] = [
        Run(tape=1, tool_version="0", command="run", at=START),
        Planned(plan=plan),
        Begin(id=1, at=START, task=task),
        *(streamed(seq, first_token_ms) for seq in range(5)),
        Done(task=1, at=START + 60 * SECOND),
    ]
    return judge.report(tape.gather(records), tool_version="0")


def slow(report: Report) -> list[Finding]:
    return [one for one in report.verdict.findings if one.kind == "server-slow"]


@pytest.mark.parametrize(
    ("first_token_ms", "budget", "limit_ms"),
    [
        (999, Budget(), None),
        (1001, Budget(), 1000.0),
        (400, Budget(ttft_p95_ms=300.0), 300.0),
        (1500, Budget(ttft_p95_ms=2000.0), None),
    ],
)
def test_a_first_token_that_is_late_by_the_server_is_the_servers(
    first_token_ms: int, budget: Budget, limit_ms: float | None
) -> None:
    found = slow(judged(first_token_ms, budget))
    assert [one.evidence["limit_ms"] for one in found] == ([] if limit_ms is None else [limit_ms])
    assert [one.severity for one in found] == ["warning" for _ in found]
    assert [one.evidence["ttft_server_ms"] for one in found] == [float(first_token_ms) for _ in found]
