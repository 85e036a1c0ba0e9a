"""Reports made by hand, a target file, and a clock that stands still until it is moved."""

from pathlib import Path

from hopscope.analysis.results import SeriesSamples
from hopscope.model.plan import Budget, Plan, Target, Vantage
from hopscope.model.report import (
    Client,
    Delay,
    Finding,
    FindingKind,
    Loss,
    Owner,
    PingResult,
    Report,
    Segment,
    SegmentEnd,
    Severity,
    Status,
    TargetReport,
    VantageReport,
    Verdict,
)
from hopscope.targets.contents import TargetFile

MINUTE = 60 * 1_000_000_000
START = 1_767_225_600_000_000_000
"""2026-01-01T00:00:00Z."""
ORDER: tuple[Status, ...] = ("ok", "warning", "unknown", "critical")


class Clock:
    """Says what it is told, and moves a second each time it is asked."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        self.now += MINUTE // 60
        return self.now


def file(*names: str, at: Path = Path("/etc/hopscope/targets.toml")) -> TargetFile:
    limits = Budget(rtt_p95_ms=40.0, loss=0.01)
    return TargetFile(file=str(at), targets=tuple(Target(name=name, host="192.0.2.1", budget=limits) for name in names))


def plan(found: TargetFile) -> Plan:
    return Plan(
        command="check",
        name="targets",
        targets=found.targets,
        vantages=found.vantages or (Vantage(name="here", kind="local"),),
        quorum=1,
        deadline_ns=MINUTE,
    )


def finding(
    target: str | None,
    *,
    kind: FindingKind = "lossy-from",
    severity: Severity = "warning",
    vantages: tuple[str, ...] = ("here",),
    segment: tuple[str, str] | None = None,
    metric: str | None = None,
    why: str = "40 % of probes are lost",
) -> Finding:
    ends = None
    if segment is not None:
        near, far = (SegmentEnd(ttl=ttl, address=address, asn=None) for ttl, address in enumerate(segment, 1))
        ends = Segment(from_=near, to=far, flow=None)
    return Finding(
        id=f"{kind}/{target}",
        kind=kind,
        severity=severity,
        confidence="shown",
        target=target,
        vantages=vantages,
        segment=ends,
        direction="either",
        owner=Owner(role="transit"),
        why=why,
        evidence={} if metric is None else {"metric": metric},
        changes_mind="another run",
        next_step="ask the owner",
    )


def ping(target: str, *, sent: int = 50, lost: int = 0, vantage: str = "here") -> PingResult:
    return PingResult(
        target=target,
        vantage=vantage,
        outcome="degraded" if lost else "ok",
        address="192.0.2.1",
        family=4,
        protocol="icmp",
        port=None,
        started_at=None,
        finished_at=None,
        client=Client(),
        clock="kernel",
        loss=Loss(sent=sent, received=sent - lost, lost=lost, ratio=lost / sent if sent else None),
        delay=Delay(n=sent - lost, min_ms=8.0, p50_ms=8.25, p95_ms=9.5) if sent > lost else Delay(n=0),
        flows=(),
        samples=SeriesSamples(()),
    )


def report(
    statuses: dict[str, Status],
    *findings: Finding,
    pings: tuple[PingResult, ...] | None = None,
    vantages: tuple[VantageReport, ...] | None = None,
) -> Report:
    """A report in which every target has a status; a bad one without a finding of its own gets one."""
    named = {one.target for one in findings}
    severities: dict[Status, Severity] = {"warning": "warning", "unknown": "unknown", "critical": "critical"}
    found = list(findings) + [
        finding(name, severity=severities[status])
        for name, status in statuses.items()
        if status != "ok" and name not in named
    ]
    grave: list[Status] = ["unknown"] if any(one.severity == "unknown" for one in found) else []
    worst: Status = max([*statuses.values(), *grave], key=ORDER.index, default="ok")
    return Report(
        tool_version="0.1.0",
        command="check",
        started_at=None,
        finished_at=None,
        partial=False,
        vantages=vantages or (VantageReport(name="here", kind="local", site=None, outcome="ok", why=None),),
        targets=tuple(
            TargetReport(name=name, status=status, summary="round trip 8.25 ms" if status == "ok" else "it loses")
            for name, status in statuses.items()
        ),
        verdict=Verdict(status=worst, summary=f"{len(found)} findings", findings=tuple(found)),
        results=tuple(ping(name, lost=20 if status == "warning" else 0) for name, status in statuses.items())
        if pings is None
        else pings,
        failures=(),
    )
