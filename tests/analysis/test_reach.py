"""Outcomes of series and requests as tables (method 6.1, `interface.md` outcome)."""

import pytest

from analysis.notation import losing, ping, series_of, times
from hopscope.analysis.reach import answers, of_error, of_requests, of_series, refusing
from hopscope.analysis.views import HttpView, SeriesView, Who
from hopscope.model.plan import HttpTask
from hopscope.model.record import Done, ErrorClass, Exchange, SelfCheck
from hopscope.model.report import Outcome
from hopscope.model.sample import Sample

WHO = Who(target="it", vantage="here", address="203.0.113.9", family=4, protocol="tcp", port=443)
TASK = HttpTask(
    target="it", vantage="here", reason="asked", address="203.0.113.9", family=4, port=443, url="http://x", cold=1,
    hot=0, timeout_ns=1,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "outcome", "answering", "refuses"),
    [
        (times(50, "5"), "ok", True, False),
        (losing(3, 50), "ok", True, False),  # 3 of 50 are no proof against 1 %
        (losing(4, 50), "degraded", True, False),
        ("r1 r1", "refused", False, True),
        ("r1 5", "ok", True, False),
        ("r1 . .", "refused", False, True),
        (". .", "timeout", False, False),
        ("~ ~", "timeout", False, False),  # late is lost
        ("~ 5", "ok", True, False),
        ("u1 u1", "unreachable", False, False),
        ("u13 u13", "prohibited", False, False),
        ("u13 u9 u10 .", "prohibited", False, False),
        ("u13 u1", "unreachable", False, False),
        ("! !", "unreachable", False, False),
        ("! .", "timeout", False, False),
    ],
)
def test_series(text: str, outcome: Outcome, answering: bool, refuses: bool) -> None:
    view = series_of(ping(text))
    assert (of_series(view), answers(view), refusing(view)) == (outcome, answering, refuses)


def test_a_machine_that_was_too_busy_blames_nobody() -> None:
    begun, *records, _ = ping("5 5 5")
    busy = Done(task=1, at=9, check=SelfCheck(limited=True))
    assert of_series(series_of([begun, *records, busy])) == "client-limited"
    begun, *records, _ = ping(". . .")
    assert of_series(series_of([begun, *records, busy])) == "timeout"


def test_no_probe_is_a_timeout() -> None:
    assert of_series(SeriesView(who=WHO, samples=[], fated=[])) == "timeout"


def answered(status: int) -> Exchange:
    return Exchange(task=1, seq=0, cold=True, connection=0, scheduled=0, status=status, head=1, done=1)


def failed(error: ErrorClass) -> Exchange:
    return Exchange(task=1, seq=0, cold=True, connection=0, scheduled=0, error=error)


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        ([answered(200), answered(204)], "ok"),
        ([answered(404)], "ok"),
        ([answered(500), answered(503)], "http"),
        ([answered(200), answered(503)], "degraded"),
        ([answered(200), failed("timeout")], "degraded"),
        ([answered(503), failed("timeout")], "http"),
        ([failed("refused")], "refused"),
        ([failed("refused"), failed("tls")], "tls"),
        ([failed("unreachable")], "unreachable"),
        ([failed("prohibited")], "prohibited"),
        ([failed("dns")], "dns"),
        ([failed("http")], "http"),
        ([failed("cut")], "http"),
        ([failed("bug")], "timeout"),
        ([], "timeout"),
    ],
)
def test_requests(found: list[Exchange], outcome: Outcome) -> None:
    assert of_requests(HttpView(who=WHO, url="http://x", samples=[], exchanges=found)) == outcome


def test_requests_of_a_busy_machine() -> None:
    sample = Sample(id=1, task=TASK, begun=0, done=Done(task=1, at=1, check=SelfCheck(limited=True)))
    view = HttpView(who=WHO, url="http://x", samples=[sample], exchanges=[answered(200)])
    assert of_requests(view) == "client-limited"
    assert of_error(view.exchanges) == "timeout"
