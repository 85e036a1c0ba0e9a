"""One report, made by hand, that all renderers are shown: a lossy path, a clean one, a slow server, a dead name.

The run was cut short, one place could not measure, one measuring side was too busy. The numbers are invented but agree
with each other. This file is longer than others because a report is written out in full.
"""

from collections.abc import Callable, Iterator

import pytest

from hopscope.model.plan import Site
from hopscope.model.report import (
    ClaimReport,
    Client,
    Delay,
    EndToEnd,
    ErrorReport,
    FailureReport,
    Finding,
    FlowPath,
    FlowReport,
    Hop,
    HttpResult,
    HttpSummary,
    Label,
    Loss,
    Owner,
    PathEnd,
    PathSummary,
    Phases,
    PingResult,
    PingSample,
    Report,
    Request,
    Responder,
    Samples,
    Segment,
    SegmentEnd,
    ServerTime,
    TargetReport,
    TlsReport,
    TraceResult,
    VantageReport,
    Verdict,
)
from hopscope.render.html_charts import Draw, drawer

START, END = "2026-05-04T09:12:00Z", "2026-05-04T09:13:27Z"


class Generated(Samples):
    """Samples that are made while they are asked for; every fifth is lost."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __iter__(self) -> Iterator[PingSample]:
        for seq in range(self.number):
            lost = seq % 5 == 4
            yield PingSample(
                seq=seq,
                flow=seq % 4,
                warmup=seq == 0,
                sent_at=f"2026-05-04T09:12:{seq // 5 % 60:02}.{seq % 5 * 2}Z",
                outcome="lost" if lost else "replied",
                rtt_ms=None if lost else 8 + seq % 7 / 10,
                clock=None if lost else "kernel",
                reply_ttl=None if lost else 57,
            )


@pytest.fixture
def generated() -> Callable[[int], Samples]:
    return Generated


@pytest.fixture(scope="session")
def draw() -> Draw:
    found = drawer()
    if found is None:
        pytest.skip("no vl-convert-python: `make` installs it with the extra `report`")
    return found


@pytest.fixture
def report() -> Report:
    return Report(
        tool_version="0.1.0",
        command="run",
        started_at=START,
        finished_at=END,
        partial=True,
        vantages=(
            VantageReport(name="here", kind="local", site=None, outcome="ok", why=None),
            VantageReport(
                name="office",
                kind="ssh",
                site=Site(lat=48.2, lon=16.4, name="Vienna"),
                outcome="vantage-failed",
                why="the connection was refused",
            ),
        ),
        targets=(
            TargetReport(
                name="fra-h100", status="warning", summary="6 % of the packets are lost between hops 3 and 6."
            ),
            TargetReport(name="par-a100", status="ok", summary="Nothing was found."),
            TargetReport(name="ams-l40s", status="warning", summary="The server takes 1.84 s, the network 11.2 ms."),
            TargetReport(name="gone", status="critical", summary="The name cannot be looked up."),
        ),
        verdict=Verdict(
            status="critical",
            summary="gone cannot be reached: its name does not exist. fra-h100 loses 6 % of its packets in AS64500.",
            findings=(limiting(), losing(), slow(), dead()),
        ),
        results=(
            ping("fra-h100", "11.0.5.9", lossy=True),
            trace(),
            ping("par-a100", "11.0.7.2", lossy=False),
            ping("ams-l40s", "11.0.8.4", lossy=False),
            http(),
            nobody(),
        ),
        failures=(
            FailureReport(
                kind="vantage",
                target=None,
                vantage="office",
                why="ssh: connection refused by 192.0.2.7 port 22",
                advice="See whether the machine is up: ssh office true",
            ),
        ),
    )


def limiting() -> Finding:
    return Finding(
        id="replies-limited-1",
        kind="replies-limited",
        severity="info",
        confidence="shown",
        target="fra-h100",
        vantages=("here",),
        segment=None,
        direction="either",
        owner=Owner(role="transit", asns=(64500,), name="Example Transit"),
        why="Hop 2 answers 35 of 100 probes, and the hops behind it lose none.",
        evidence={"answered": 35, "sent": 100, "fast_rate_per_s": 2.0},
        changes_mind="",
        next_step="",
    )


def losing() -> Finding:
    return Finding(
        id="lossy-from-1",
        kind="lossy-from",
        severity="warning",
        confidence="shown",
        target="fra-h100",
        vantages=("here",),
        segment=Segment(
            from_=SegmentEnd(ttl=3, address="11.0.0.1", asn=64500),
            to=SegmentEnd(ttl=6, address="11.0.5.1", asn=64500),
            flow=0,
        ),
        direction="either",
        owner=Owner(role="transit", asns=(64500,), name="Example Transit"),
        why="Up to hop 3 no packet of 200 is lost; from hop 6 on 24 of 200 are.",
        evidence={"loss": 0.06, "loss_before": 0.0, "sent": 400, "p": 0.0000017},
        changes_mind="a run of 300 rounds in which hop 6 loses less than 1 %",
        next_step="Send this report to Example Transit (AS64500) and to your hosting provider.",
    )


def slow() -> Finding:
    return Finding(
        id="server-slow-1",
        kind="server-slow",
        severity="warning",
        confidence="likely",
        target="ams-l40s",
        vantages=("here",),
        segment=None,
        direction="either",
        owner=Owner(role="operator"),
        why="Of 1.86 s for the typical hot request 1.84 s are spent beyond the TCP endpoint 11.0.8.4.",
        evidence={"server_p50_ms": 1840.0, "network_p50_ms": 11.2, "requests": 4, "budget": None},
        changes_mind="the server's own metrics",
        next_step="Ask the operator for the queue length and the load of the GPU at 09:12 UTC.",
    )


def dead() -> Finding:
    return Finding(
        id="dns-failed-1",
        kind="dns-failed",
        severity="critical",
        confidence="shown",
        target="gone",
        vantages=("here",),
        segment=None,
        direction="either",
        owner=Owner(role="unknown"),
        why="gpu9.example.net does not exist, says each resolver that was asked.",
        evidence={"resolvers": 2},
        changes_mind="an answer from any resolver",
        next_step="See whether the name is spelt right.",
    )


def delay(n: int, least: float, typical: float, late: float) -> Delay:
    return Delay(
        n=n,
        min_ms=least,
        p50_ms=typical,
        p50_low_ms=typical - 0.12,
        p50_high_ms=typical + 0.2,
        mean_ms=typical + 0.1,
        p95_ms=late,
        p95_low_ms=late - 0.5 if n >= 72 else None,
        p95_high_ms=late + 1.4 if n >= 72 else None,
        p99_ms=late + 2 if n >= 368 else None,
        max_ms=late + 3,
        stdev_ms=0.4,
        pdv_p95_ms=late - least,
        ipdv_mean_ms=0.3,
    )


def loss(sent: int, lost: int, low: float, high: float) -> Loss:
    return Loss(sent=sent, received=sent - lost, lost=lost, ratio=lost / sent, low=low, high=high, episodes=lost)


NOTHING = Loss(sent=0, received=0, lost=0)
NO_DELAY = Delay(n=0)
CLEAN = loss(50, 0, 0.0, 0.0713)


def ping(target: str, address: str, *, lossy: bool) -> PingResult:
    counted = loss(300, 18, 0.0383, 0.0928) if lossy else CLEAN
    delays = delay(counted.received, 8.02, 8.31, 12.4)
    return PingResult(
        target=target,
        vantage="here",
        outcome="degraded" if lossy else "ok",
        address=address,
        family=4,
        protocol="tcp",
        port=443,
        started_at=START,
        finished_at=END,
        client=Client(late_p99_ms=0.045),
        clock="kernel",
        loss=counted,
        delay=delays,
        flows=(FlowReport(flow=0, loss=counted, delay=delays),),
        samples=Generated(6),
    )


def hop(ttl: int, label: Label, losses: Loss, delays: Delay, *responders: Responder) -> Hop:
    return Hop(ttl=ttl, label=label, labels=(label,), responders=responders, loss=losses, delay=delays, evidence={})


def router(address: str, delays: Delay, hostname: str | None = None, asn: int | None = None) -> Responder:
    name = {64500: "Example Transit", 64510: "Example Hosting"}.get(asn or 0)
    return Responder(address=address, received=delays.n, hostname=hostname, asn=asn, as_name=name, delay=delays)


def trace() -> TraceResult:
    near, far, there = delay(100, 0.31, 0.39, 0.7), delay(94, 7.4, 7.81, 9.2), delay(94, 8.02, 8.33, 12.4)
    some = loss(100, 6, 0.0278, 0.1248)
    return TraceResult(
        target="fra-h100",
        vantage="here",
        outcome="degraded",
        address="11.0.5.9",
        family=4,
        protocol="tcp",
        port=443,
        started_at=START,
        finished_at=END,
        client=Client(late_p99_ms=14.0, drops=3, clock_step_ms=0.0, limited=True),
        flow="constant",
        reached=True,
        end=PathEnd(how="syn-ack", code=None, address="11.0.5.9", ttl=7),
        hops=(
            hop(1, "ok", loss(100, 0, 0.0, 0.037), near, router("192.168.1.1", near)),
            hop(2, "replies-limited", loss(100, 65, 0.5525, 0.7364), near, router("100.64.0.1", near)),
            hop(
                3,
                "ok",
                loss(100, 0, 0.0, 0.037),
                delay(100, 3.9, 4.21, 6.02),
                router("11.0.0.1", near, "ae1.core1.vie.transit.example", 64500),
                router("11.0.0.5", near, None, 64500),
            ),
            hop(4, "silent", loss(100, 100, 0.963, 1.0), NO_DELAY),
            hop(5, "silent", loss(100, 100, 0.963, 1.0), NO_DELAY),
            hop(6, "lossy-from", some, far, router("11.0.5.1", far, "edge2.fra.hosting.example", 64510)),
            hop(7, "ok", some, there, router("11.0.5.9", there, "gpu1.example.net", 64510)),
        ),
        flows=(FlowPath(flow=0, source_port=40001, loss=some, ttls=(1, 2, 3, 6, 7)),),
        path=PathSummary(as_path=(64500, 64510), prefixes=(None, ("11.0.0.0/24",)), hash="5f3a"),
        end_to_end=EndToEnd(loss=some, delay=there),
        mtu_bytes=1500,
    )


def request(number: int, server: float, *, cold: bool) -> Request:
    wait = server + 11.2
    phases = Phases(wait=wait, upload=0.2, download=3.1, unattributed=0.0, total=wait + 3.3)
    if cold:
        phases = Phases(
            dns=4.2, connect=11.3, tls=13.8, upload=0.2, wait=wait, download=3.1, unattributed=0.0, total=wait + 32.6
        )
    return Request(
        cold=cold,
        connection=0 if cold else 1,
        scheduled_at=START,
        sent_at=START,
        status=200,
        level=3 if cold else 2,
        clock="kernel",
        phases_ms=phases,
        rtt_ms=11.2,
        ack_ms=11.3,
        queue_ms=None,
        server=ServerTime(
            lower_ms=server - 0.6, upper_ms=server + 0.9, estimate_ms=server, width_ms=1.5, basis="stamps"
        ),
        tls=TlsReport(
            version="TLSv1.3",
            cipher="TLS_AES_128_GCM_SHA256",
            alpn="http/1.1",
            resumed=False,
            not_after_at="2026-08-01T00:00:00Z",
            subject="gpu3.example.net",
            names=("gpu3.example.net",),
            issuer="Example CA",
            verified=True,
            why=None,
        ),
        claims=(ClaimReport(name="total", value_ms=server - 3, scope="request", source="server-timing"),),
        error=None,
    )


def http() -> HttpResult:
    times = (1780.0, 1840.0, 1910.0, 1830.0)
    answered = tuple(request(number, time, cold=number < 2) for number, time in enumerate(times))
    cut = Request(
        cold=False,
        connection=2,
        scheduled_at=END,
        sent_at=None,
        status=None,
        level=1,
        clock="user",
        phases_ms=Phases(),
        rtt_ms=None,
        ack_ms=None,
        queue_ms=None,
        server=None,
        tls=None,
        claims=(),
        error=ErrorReport(class_="timeout", detail="no answer within 30 s"),
    )
    return HttpResult(
        target="ams-l40s",
        vantage="here",
        outcome="degraded",
        address="11.0.8.4",
        family=4,
        protocol="tcp",
        port=443,
        started_at=START,
        finished_at=END,
        client=Client(late_p99_ms=0.1),
        url="https://gpu3.example.net/v1/models",
        requests=(*answered, cut),
        summary=HttpSummary(
            network=delay(4, 11.1, 11.2, 11.6), server=delay(4, 1780, 1840, 1905), total=delay(4, 1797, 1857, 1921)
        ),
    )


def nobody() -> PingResult:
    return PingResult(
        target="gone",
        vantage="here",
        outcome="dns",
        address=None,
        family=None,
        protocol="icmp",
        port=None,
        started_at=None,
        finished_at=None,
        client=Client(),
        clock=None,
        loss=NOTHING,
        delay=NO_DELAY,
        flows=(),
        samples=Generated(0),
        why="gpu9.example.net: no such name",
    )
