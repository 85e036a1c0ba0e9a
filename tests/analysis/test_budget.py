"""Limits held against samples by counting (method 2.6): met, missed and likely, at their exact boundaries."""

import pytest
from msgspec.structs import replace

from analysis.notation import ADDRESS, book, ping, plan, target, times
from hopscope.analysis.binomial import at_least, at_most
from hopscope.analysis.budget import Held, held, hold
from hopscope.analysis.case import Case, cases
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import Budget, HttpTask
from hopscope.model.record import Begin, Done, ErrorClass, Exchange, Probe, Record


def case(*records: list[Record], budget: Budget | None = None) -> Case:
    (only,) = cases(book(*records, what=plan(target(budget))))
    return only


def judged(one: Held | None) -> tuple[bool, str] | None:
    return None if one is None else (one.missed, one.confidence)


@pytest.mark.parametrize(
    ("over", "n", "allowed", "expected"),
    [
        (0, 0, 0.05, None),
        # 5 % may be over. P(X = 0) of 58 is 0.0510, of 59 is 0.0485: met is shown from 59 on.
        (0, 58, 0.05, (False, "likely")),
        (0, 59, 0.05, (False, "shown")),
        # P(X ≥ 5) of 50 is 0.104, P(X ≥ 6) is 0.038: missed is shown from 6 on.
        (2, 50, 0.05, (False, "likely")),
        (3, 50, 0.05, (True, "likely")),
        (5, 50, 0.05, (True, "likely")),
        (6, 50, 0.05, (True, "shown")),
        # exactly as many as may be: not missed
        (5, 100, 0.05, (False, "likely")),
        (6, 100, 0.05, (True, "likely")),
        (1, 13, 0.05, (True, "likely")),
        (1, 1, 0.05, (True, "likely")),
        (2, 2, 0.05, (True, "shown")),
        # the median
        (25, 50, 0.5, (False, "likely")),
        (26, 50, 0.5, (True, "likely")),
        (31, 50, 0.5, (True, "likely")),
        (32, 50, 0.5, (True, "shown")),
        (18, 50, 0.5, (False, "shown")),
        (19, 50, 0.5, (False, "likely")),
        # no loss allowed: one is enough
        (0, 50, 0.0, (False, "likely")),
        (1, 50, 0.0, (True, "shown")),
        # 1 % loss
        (0, 298, 0.01, (False, "likely")),
        (0, 299, 0.01, (False, "shown")),
        (2, 50, 0.01, (True, "likely")),
        (3, 50, 0.01, (True, "shown")),
        # everything allowed
        (50, 50, 1.0, (False, "likely")),
    ],
)
def test_hold(over: int, n: int, allowed: float, expected: tuple[bool, str] | None) -> None:
    assert judged(hold("rtt_p95", 1.0, "ms", over, n, allowed)) == expected


def test_the_bound_is_one_sided_95_percent() -> None:
    assert at_most(0, 58, 0.05) > 0.05 > at_most(0, 59, 0.05)
    assert at_least(5, 50, 0.05) > 0.05 > at_least(6, 50, 0.05)


@pytest.mark.parametrize(
    ("text", "budget", "expected"),
    [
        (times(50, "5"), Budget(rtt_p95_ms=5.0), [("rtt_p95", 0, 50)]),  # at the limit is not over it
        (times(50, "5"), Budget(rtt_p95_ms=4.999), [("rtt_p95", 50, 50)]),
        ("1 . 9", Budget(rtt_p50_ms=5.0), [("rtt_p50", 2, 3)]),  # lost = over
        ("1 ~ u 9", Budget(rtt_p50_ms=5.0), [("rtt_p50", 3, 4)]),
        ("1 ! x 9", Budget(rtt_p50_ms=5.0), [("rtt_p50", 1, 2)]),  # outside the count
        ("5 6 8 .", Budget(pdv_p95_ms=2.0), [("pdv_p95", 2, 4)]),  # against the minimum
        ("5 6 . 8", Budget(loss=0.01), [("loss", 1, 4)]),
        ("5 5", Budget(rtt_p50_ms=1, rtt_p95_ms=1, pdv_p95_ms=1, loss=0.5), [
            ("rtt_p50", 2, 2), ("rtt_p95", 2, 2), ("pdv_p95", 0, 2), ("loss", 0, 2)
        ]),
        (". . .", Budget(rtt_p95_ms=5.0), []),  # nothing answered: that is another finding's
        ("5 5", Budget(), []),
    ],
)  # fmt: skip
def test_series(text: str, budget: Budget, expected: list[tuple[str, int, int]]) -> None:
    assert [(one.metric, one.over, one.n) for one in held(case(ping(text)), budget)] == expected


def test_icmp_decides_where_it_answers_and_tcp_where_it_does_not() -> None:
    tcp = ping("9 9 9", 2, protocol="tcp", port=443)
    limit = Budget(rtt_p50_ms=5.0)
    assert [one.over for one in held(case(ping("1 1 1"), tcp), limit)] == [0]
    assert [one.over for one in held(case(ping(". . ."), tcp), limit)] == [3]


HTTP = HttpTask(
    target="it", vantage="here", reason="asked", address=ADDRESS, family=4, port=443, url="https://gpu.example/v1",
    cold=1, hot=0, timeout_ns=15 * SECOND,
)  # fmt: skip


def requests(*found: Exchange) -> list[Record]:
    return [Begin(id=9, at=0, task=HTTP), *found, Done(task=9, at=1)]


def request(wait_ms: float, *, cold: bool = False, level: int = 2, rtt_ms: float | None = 5.0) -> Exchange:
    ready = 30 * MS if cold else 0
    return Exchange(
        task=9, seq=0, cold=cold, connection=0, scheduled=0, dialled=0 if cold else None,
        connected=10 * MS if cold else None, secured=30 * MS if cold else None, sent_first=ready, sent_last=ready,
        head=ready + int(wait_ms * MS), done=ready + int(wait_ms * MS), clock="kernel", level=2 if level == 2 else 1,
        min_rtt_ns=None if rtt_ms is None else int(rtt_ms * MS), status=200,
    )  # fmt: skip


def failed(error: ErrorClass, *, cold: bool = True) -> Exchange:
    return Exchange(task=9, seq=0, cold=cold, connection=0, scheduled=0, dialled=0, error=error)


@pytest.mark.parametrize(
    ("found", "budget", "expected"),
    [
        ([request(20, cold=True)], Budget(connect_p95_ms=10, tls_p95_ms=20, ttfb_p95_ms=20, server_p95_ms=15), [
            ("connect_p95", 0, 1), ("tls_p95", 0, 1), ("ttfb_p95", 0, 1), ("server_p95", 0, 1)
        ]),
        ([request(20, cold=True)], Budget(connect_p95_ms=9, tls_p95_ms=19, ttfb_p95_ms=19, server_p95_ms=14), [
            ("connect_p95", 1, 1), ("tls_p95", 1, 1), ("ttfb_p95", 1, 1), ("server_p95", 1, 1)
        ]),
        ([request(20), request(40)], Budget(connect_p95_ms=9), []),  # no connection was made
        ([request(20), request(40), failed("timeout")], Budget(ttfb_p95_ms=30), [("ttfb_p95", 2, 3)]),
        ([request(20), failed("tls")], Budget(tls_p95_ms=30, server_p95_ms=30), [
            ("tls_p95", 1, 1), ("server_p95", 1, 2)
        ]),
        # a server time that nobody can know is not over its limit
        ([request(20, level=1, rtt_ms=None), request(20)], Budget(server_p95_ms=30), [("server_p95", 0, 1)]),
    ],
)  # fmt: skip
def test_requests(found: list[Exchange], budget: Budget, expected: list[tuple[str, int, int]]) -> None:
    assert [(one.metric, one.over, one.n) for one in held(case(requests(*found)), budget)] == expected


def test_the_least_round_trip_of_the_tcp_series_is_taken_from_requests_too() -> None:
    syns = ping("5 3 4", 2, protocol="tcp", port=443)
    exact = [replace(one, clock="tcp-info") if isinstance(one, Probe) else one for one in syns]
    limit = Budget(server_p95_ms=16.0)
    assert [one.over for one in held(case(requests(request(20))), limit)] == [0]  # 20 − 5
    assert [one.over for one in held(case(exact, requests(request(20))), limit)] == [1]  # 20 − 3
