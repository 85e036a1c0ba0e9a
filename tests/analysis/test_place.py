"""An answer that comes sooner than light could (method 4.6): the floor between Berlin and New York is 62.9 ms."""

import pytest
from msgspec.structs import replace

from analysis.comparing import BERLIN, NEW_YORK, exchange
from analysis.notation import ADDRESS, book, ping, plan, probes, target, times
from hopscope.analysis.case import Case, cases
from hopscope.analysis.judge import report
from hopscope.analysis.rules.place import doubtful_place, least_rtt_ms
from hopscope.model.limits import SECOND
from hopscope.model.plan import HttpTask, Plan, Site, TraceTask, Vantage
from hopscope.model.record import Begin, Done, Record

HTTP = HttpTask(
    target="it", vantage="here", reason="asked", address=ADDRESS, family=4, port=443, url="https://gpu.example/v1",
    cold=0, hot=1, timeout_ns=15 * SECOND,
)  # fmt: skip
TRACE = TraceTask(
    target="it", vantage="here", reason="asked", address=ADDRESS, family=4, protocol="icmp", rounds=1,
    interval_ns=SECOND, threshold_ns=2 * SECOND,
)  # fmt: skip


def placed(here: Site | None = BERLIN, there: Site | None = NEW_YORK) -> Plan:
    return replace(plan(replace(target(), site=there)), vantages=(Vantage(name="here", kind="local", site=here),))


def case(*records: list[Record], what: Plan | None = None) -> Case:
    (only,) = cases(book(*records, what=what or placed()))
    return only


def request(rtt_ms: float) -> list[Record]:
    return [Begin(id=9, at=0, task=HTTP), exchange(9, 0, 1.0, rtt_ms), Done(task=9, at=1)]


def path(near_ms: float, end_ms: float) -> list[Record]:
    rows = [*probes(str(near_ms), 2, ttl=1, by="192.0.2.1"), *probes(str(end_ms), 2, ttl=2)]
    return [Begin(id=2, at=0, task=TRACE), *rows, Done(task=2, at=SECOND)]


@pytest.mark.parametrize(
    ("records", "least", "doubted"),
    [
        (ping("90 62.7 80"), 62.7, True),
        (ping("90 63.0 80"), 63.0, False),
        (ping("90 r1 80"), 1.0, True),  # a reset came from somewhere
        (ping("90 u1 80"), 80.0, False),  # an unreachable may be a router's
        (ping("90 ~ 80"), 80.0, False),
        (ping(". . ."), None, False),
        (path(0.3, 90), 90.0, False),  # a near router is near
        (path(0.3, 12), 12.0, True),
        (request(11.0), 11.0, True),
        (request(75.0), 75.0, False),
    ],
)
def test_the_least_round_trip_against_the_floor(records: list[Record], least: float | None, doubted: bool) -> None:
    one = case(records)
    assert least_rtt_ms(one) == least
    assert bool(list(doubtful_place(one))) == doubted


@pytest.mark.parametrize(("here", "there"), [(None, NEW_YORK), (BERLIN, None), (None, None), (BERLIN, BERLIN)])
def test_a_place_that_nobody_gave_is_not_doubted(here: Site | None, there: Site | None) -> None:
    assert list(doubtful_place(case(ping("0.1"), what=placed(here, there)))) == []


def test_the_finding_has_its_numbers_and_every_command_has_it() -> None:
    got = report(book(ping(times(20, "12")), what=placed()), tool_version="0")
    (finding,) = [one for one in got.verdict.findings if one.kind == "doubtful-place"]
    assert (finding.severity, finding.confidence, got.verdict.status) == ("warning", "shown", "warning")
    assert finding.evidence == {"least_rtt_ms": 12.0, "floor_ms": pytest.approx(62.90, abs=0.01), "distance_km": 6385}
    assert got.verdict.summary == (
        f"Place: {ADDRESS} answers in 12.0 ms, sooner than light could over the 6,385 km to where it is said to stand "
        "(62.9 ms at least): the target, the vantage or the place is wrong, or something nearer answered (anycast, "
        "edge, proxy)."
    )
