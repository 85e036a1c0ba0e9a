"""When a place may not speak of targets: its own way out is bad (method 6.5), and no target is blamed for that.

Every row is a whole book through the judge: who is accused, what status follows, whether any target is blamed.
"""

import pytest
from msgspec.structs import replace

from analysis.notation import ADDRESS, book, probes, router, times
from hopscope.analysis import judge
from hopscope.model.limits import SECOND
from hopscope.model.plan import About, PingTask, Plan, ResolveTask, Target, TraceTask, Vantage
from hopscope.model.record import Begin, Done, Failure, Probe, Record, Resolved
from hopscope.model.report import Report

GATEWAY, CONTROL = "192.168.1.1", "gate.example.net"
CLEAN, DEAD, LOSSY = times(30, "9"), times(30, "."), f"{times(10, '.')} {times(20, '9')}"
SHUT = times(30, "r9")
NAMES = ("a", "b", "c", "d")


def plan(count: int, *vantages: str, command: str = "run", quorum: int = 1) -> Plan:
    return Plan(
        command=command,
        name="it",
        targets=tuple(Target(name=name, host=ADDRESS, probes=("ping", "trace")) for name in NAMES[:count]),
        vantages=tuple(Vantage(name=name, kind="local") for name in vantages or ("here",)),
        quorum=quorum,
        deadline_ns=300 * SECOND,
        controls=(CONTROL,),
    )


def series(
    number: int, text: str, *, target: str, vantage: str = "here", address: str = ADDRESS, about: About = "target"
) -> list[Record]:
    task = PingTask(
        target=target, vantage=vantage, reason="asked", address=address, family=4, protocol="icmp",
        count=len(text.split()), interval_ns=SECOND, threshold_ns=2 * SECOND, about=about,
    )  # fmt: skip
    return [Begin(id=number, at=0, task=task), *probes(text, number), Done(task=number, at=SECOND)]


def gateway(text: str, vantage: str = "here") -> list[Record]:
    return series(90, text, target="a", vantage=vantage, address=GATEWAY, about="gateway")


def control(text: str) -> list[Record]:
    return series(91, text, target=CONTROL, address="198.51.100.1", about="control")


def path(number: int, target: str, rows: dict[int, str]) -> list[Record]:
    task = TraceTask(
        target=target, vantage="here", reason="asked", address=ADDRESS, family=4, protocol="icmp", rounds=30,
        interval_ns=SECOND, threshold_ns=2 * SECOND,
    )  # fmt: skip
    told: list[Record] = [Begin(id=number, at=0, task=task)]
    for ttl, text in rows.items():
        told += probes(text, number, ttl=ttl, by=router(ttl))
    return [*told, Done(task=number, at=SECOND)]


def all_of(count: int, text: str, vantage: str = "here", first: int = 1) -> list[Record]:
    return [
        record
        for number, name in enumerate(NAMES[:count], start=first)
        for record in series(number, text, target=name, vantage=vantage)
    ]


def nameless(count: int, error: str) -> list[Record]:
    told: list[Record] = []
    for number, name in enumerate(NAMES[:count], start=1):
        task = ResolveTask(target=name, vantage="here", reason="asked", host="x.example")
        told += [
            Begin(id=number, at=0, task=task),
            Resolved(task=number, at=1, took_ns=1, error=error),
            Done(task=number, at=1),
        ]
    return told


def judged(records: list[Record], what: Plan) -> Report:
    return judge.report(book(records, what=what), tool_version="0")


def accused(report: Report) -> list[str]:
    return [one.name for one in report.vantages if one.outcome == "vantage-failed"]


def blamed(report: Report) -> set[str | None]:
    return {one.target for one in report.verdict.findings if one.severity in {"warning", "critical"} and one.target}


@pytest.mark.parametrize(
    ("count", "records", "why"),
    [
        (1, all_of(1, DEAD), None),
        (2, all_of(2, DEAD), None),
        (3, all_of(3, DEAD), "all of 3 targets are bad at once, and nothing beyond the gateway answers cleanly"),
        (4, all_of(4, DEAD), "all of 4 targets are bad at once, and nothing beyond the gateway answers cleanly"),
        (4, all_of(3, DEAD), None),
        (3, all_of(3, LOSSY), "all of 3 targets are bad at once, and nothing beyond the gateway answers cleanly"),
        (3, [*all_of(2, DEAD), *series(3, CLEAN, target="c")], None),
        (3, [*all_of(2, DEAD), *series(3, SHUT, target="c")], None),
        (3, [*all_of(3, DEAD), *path(5, "a", {1: CLEAN, 2: CLEAN})], None),
        (
            3,
            [*all_of(3, DEAD), *path(5, "a", {1: CLEAN, 2: DEAD})],
            "all of 3 targets are bad at once, and nothing beyond the gateway answers cleanly",
        ),
        (3, [*all_of(3, LOSSY), *path(5, "a", {1: CLEAN, 2: CLEAN, 3: LOSSY})], None),
        (
            3,
            nameless(3, "Temporary failure in name resolution"),
            "all of 3 targets are bad at once, and nothing beyond the gateway answers cleanly",
        ),
        (3, nameless(3, "Name or service not known"), None),
        (1, [*all_of(1, LOSSY), *gateway(LOSSY)], "its gateway 192.168.1.1 loses 33.3 % (10 of 30) of the echoes"),
        (1, [*all_of(1, LOSSY), *gateway(CLEAN)], None),
        (2, [*all_of(1, LOSSY), *series(2, CLEAN, target="b"), *gateway(LOSSY)], None),
        (1, [*all_of(1, LOSSY), *gateway(DEAD)], None),
        (1, [*all_of(1, DEAD), *control(DEAD)], "the controls fail too (gate.example.net)"),
        (1, [*all_of(1, DEAD), *control(LOSSY)], "the controls fail too (gate.example.net)"),
        (1, [*all_of(1, DEAD), *control(CLEAN)], None),
        (2, [*all_of(1, DEAD), *series(2, CLEAN, target="b"), *control(DEAD)], None),
        (1, [*all_of(1, DEAD), *control(SHUT)], None),
    ],
)
def test_who_is_to_blame(count: int, records: list[Record], why: str | None) -> None:
    report = judged(records, plan(count))
    if why is None:
        assert accused(report) == []
        assert not any(one.kind == "vantage-fault" for one in report.verdict.findings)
        return
    assert accused(report) == ["here"]
    assert (report.vantages[0].why or "").startswith(f"uplink: {why}")
    assert (report.verdict.status, blamed(report)) == ("unknown", set())
    assert {one.status for one in report.targets} == {"unknown"}
    faults = [one for one in report.verdict.findings if one.kind == "vantage-fault"]
    assert [(one.severity, one.vantages, one.owner.role) for one in faults] == [("unknown", ("here",), "you")]
    assert why in faults[0].why


def test_targets_that_are_deaf_to_ping_and_answer_otherwise_acquit() -> None:
    tcp = [
        replace(record, task=replace(record.task, protocol="tcp", port=443))
        if isinstance(record, Begin) and isinstance(record.task, PingTask)
        else record
        for record in all_of(3, CLEAN, first=11)
    ]
    report = judged([*all_of(3, DEAD), *tcp], plan(3))
    assert (accused(report), report.verdict.status) == ([], "ok")


def test_the_results_of_an_accused_place_are_kept() -> None:
    assert len(judged(all_of(3, DEAD), plan(3)).results) == 3


def test_another_place_still_judges_the_targets_while_the_quorum_holds() -> None:
    records = [*all_of(3, DEAD, "here"), *all_of(2, CLEAN, "there", 11), *series(20, DEAD, target="c", vantage="there")]
    report = judged(records, plan(3, "here", "there"))
    assert (accused(report), blamed(report)) == (["here"], {"c"})
    assert [one.status for one in report.targets] == ["ok", "ok", "critical"]
    fault = next(one for one in report.verdict.findings if one.kind == "vantage-fault")
    assert (fault.severity, fault.evidence) == ("warning", {"usable": 1, "quorum": 1})
    below = judged(records, plan(3, "here", "there", quorum=2))
    assert next(one for one in below.verdict.findings if one.kind == "vantage-fault").severity == "unknown"


def test_commands_that_judge_no_targets_accuse_nobody() -> None:
    assert accused(judged(all_of(3, DEAD), plan(3, command="ping"))) == []


def test_what_could_not_be_sent_accuses_nobody() -> None:
    rights = [Failure(kind="rights", why="no", target=name, vantage="here") for name in NAMES[:3]]
    asked = [record for record in all_of(3, "9") if not isinstance(record, Probe)]
    assert accused(judged([*asked, *rights], plan(3))) == []


def test_a_dead_vantage_is_told_by_its_failure_alone() -> None:
    down = Failure(kind="vantage", why="no route to host", vantage="here", advice="ssh there")
    report = judged([down], replace(plan(3), targets=plan(3).targets[:1]))
    faults = [one.why for one in report.verdict.findings if one.kind == "vantage-fault"]
    assert faults == ["vantage here measured nothing: no route to host"]
