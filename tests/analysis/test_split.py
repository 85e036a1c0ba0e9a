"""The split as tables: exact marks in, exact increments and brackets out. Times in microseconds."""

import pytest
from msgspec.structs import replace

from hopscope.analysis.split import bracket, phases, request, self_check, summary
from hopscope.model.record import Certificate, Claim, Exchange, SelfCheck
from hopscope.model.report import Phases, ServerTime

US = 1_000
MS = 1_000_000
ZERO = 1_796_000_000_000_000_000
"""2026-11-30T00:53:20Z."""

COLD = Exchange(
    task=1,
    seq=0,
    cold=True,
    connection=0,
    scheduled=ZERO,
    dialled=ZERO + 100 * US,
    connected=ZERO + 25_100 * US,
    secured=ZERO + 52_100 * US,
    sent_first=ZERO + 52_300 * US,
    sent_last=ZERO + 52_400 * US,
    head=ZERO + 127_400 * US,
    done=ZERO + 130_400 * US,
    dns_ns=4_000 * US,
    clock="kernel",
    level=2,
    min_rtt_ns=24_500 * US,
    rtt_ns=24_900 * US,
    status=200,
)
HOT = replace(COLD, cold=False, dialled=None, connected=None, secured=None, dns_ns=None, seq=1)


@pytest.mark.parametrize(
    ("exchange", "expected"),
    [
        pytest.param(
            COLD,
            Phases(dns=4.0, connect=25.0, tls=27.0, upload=0.1, wait=75.0, download=3.0, unattributed=0.2, total=134.3),
            id="cold, TLS",
        ),
        pytest.param(
            replace(COLD, secured=None, dns_ns=None),
            Phases(connect=25.0, upload=0.1, wait=75.0, download=3.0, unattributed=27.2, total=130.3),
            id="cold, plain",
        ),
        pytest.param(HOT, Phases(upload=0.1, wait=75.0, download=3.0, unattributed=0.0, total=78.1), id="hot"),
        pytest.param(
            replace(COLD, secured=None, sent_first=None, sent_last=None, head=None, done=None, error="tls"),
            Phases(dns=4.0, connect=25.0, total=29.0),
            id="no handshake",
        ),
        pytest.param(
            replace(COLD, head=None, done=None, error="timeout"),
            Phases(dns=4.0, connect=25.0, tls=27.0, upload=0.1, unattributed=0.2, total=56.3),
            id="no answer",
        ),
        pytest.param(
            replace(HOT, done=None, error="cut"),
            Phases(upload=0.1, wait=75.0, unattributed=0.0, total=75.1),
            id="cut in the body",
        ),
        pytest.param(
            replace(HOT, sent_last=ZERO + 200_000 * US),
            Phases(upload=75.1, wait=0.0, download=3.0, unattributed=0.0, total=78.1),
            id="answered before it was all sent",
        ),
        pytest.param(
            Exchange(task=1, seq=0, cold=True, connection=0, scheduled=ZERO, dialled=ZERO, error="refused"),
            Phases(),
            id="refused",
        ),
    ],
)
def test_phases(exchange: Exchange, expected: Phases) -> None:
    got = phases(exchange)
    for name in Phases.__struct_fields__:
        assert getattr(got, name) == pytest.approx(getattr(expected, name)), name
    parts = [getattr(got, name) for name in Phases.__struct_fields__ if name != "total"]
    assert (got.total or 0) == pytest.approx(sum(part for part in parts if part is not None), abs=1e-9)


@pytest.mark.parametrize(
    ("exchange", "path_min_rtt_us", "expected"),
    [
        pytest.param(COLD, None, (0.0, 50.55, 50.5, 50.55, "tcp-info"), id="kernel stamp"),
        pytest.param(replace(COLD, clock="user"), None, (0.0, 51.5, 50.5, 51.5, "tcp-info"), id="user clock"),
        pytest.param(COLD, 24_000, (0.0, 51.05, 51.0, 51.05, "tcp-info"), id="the path knows less"),
        pytest.param(COLD, 30_000, (0.0, 50.55, 50.5, 50.55, "tcp-info"), id="the path knows more"),
        pytest.param(
            replace(COLD, min_rtt_ns=None), 25_000, (0.0, 50.05, 50.0, 50.05, "tcp-info"), id="SYN sent twice"
        ),
        pytest.param(replace(COLD, min_rtt_ns=None), None, (0.0, 75.05, None, 75.05, "tcp-info"), id="no round trip"),
        pytest.param(replace(COLD, min_rtt_ns=80 * MS), None, (0.0, 0.05, 0.0, 0.05, "tcp-info"), id="never negative"),
        pytest.param(
            replace(COLD, level=1, clock="user", min_rtt_ns=None),
            None,
            (0.0, 51.0, 50.0, 51.0, "connect"),
            id="connect time",
        ),
        pytest.param(
            replace(HOT, level=1, clock="user", min_rtt_ns=None),
            None,
            (0.0, 76.0, None, 76.0, "connect"),
            id="hot, nothing known",
        ),
        pytest.param(replace(COLD, sent_last=ZERO + 200 * MS), None, (0.0, 0.05, 0.0, 0.05, "tcp-info"), id="early"),
    ],
)
def test_server(
    exchange: Exchange, path_min_rtt_us: int | None, expected: tuple[float, float, float | None, float, str]
) -> None:
    got = request(exchange, None if path_min_rtt_us is None else path_min_rtt_us * US).server
    assert got is not None
    assert (got.lower_ms, got.upper_ms, got.estimate_ms, got.width_ms) == pytest.approx(expected[:4])
    assert got.basis == expected[4]


@pytest.mark.parametrize("missing", [replace(COLD, head=None, done=None), replace(COLD, sent_last=None)])
def test_no_bracket_without_both_ends(missing: Exchange) -> None:
    assert bracket(missing, 1) is None
    assert request(missing, 1).server is None


def test_a_request_as_it_is_reported() -> None:
    shown = Certificate(version="TLSv1.3", names=("a.example",), not_after=ZERO, verified=True)
    claim = Claim(name="db", value_ms=1.0, scope="not stated", source="server-timing")
    got = request(replace(COLD, certificate=shown, claims=(claim,), error="cut", detail="closed"), None)
    assert (got.scheduled_at, got.sent_at) == ("2026-11-30T00:53:20.000000Z", "2026-11-30T00:53:20.052300Z")
    assert (got.cold, got.connection, got.status, got.level, got.clock) == (True, 0, 200, 2, "kernel")
    assert (got.rtt_ms, got.ack_ms, got.queue_ms) == (24.9, None, None)
    assert got.tls is not None
    assert (got.tls.version, got.tls.not_after_at) == ("TLSv1.3", "2026-11-30T00:53:20.000000Z")
    assert [(each.name, each.value_ms) for each in got.claims] == [("db", 1.0)]
    assert got.error is not None
    assert (got.error.class_, got.error.detail) == ("cut", "closed")


def test_a_request_on_a_kept_connection_shows_no_certificate() -> None:
    got = request(HOT, None)
    assert (got.tls, got.error) == (None, None)
    assert got.server == ServerTime(lower_ms=0.0, upper_ms=50.55, estimate_ms=50.5, width_ms=50.55, basis="tcp-info")


def test_summary() -> None:
    failed = replace(COLD, error="cut", done=None)
    blind = replace(HOT, min_rtt_ns=None)
    got = summary([COLD, HOT, failed, blind], None)
    assert (got.network.n, got.network.min_ms, got.network.max_ms) == (2, 24.5, 24.5)
    assert (got.server.n, got.server.p50_ms) == (2, 50.5)
    assert (got.total.n, got.total.min_ms, got.total.max_ms) == (3, 78.1, 134.3)
    assert summary([], None).total.n == 0
    assert summary([COLD], 20 * MS).network.min_ms == 20.0


@pytest.mark.parametrize(
    ("lags_us", "wait_us", "expected"),
    [
        pytest.param([], 100, SelfCheck(), id="no stamps"),
        pytest.param([100, 200], 75_000, SelfCheck(late_p99_ns=199 * US), id="in time"),
        pytest.param([3_000] * 5, 75_000, SelfCheck(late_p99_ns=3_000 * US), id="late, but a small part of the wait"),
        pytest.param([3_000] * 5, 20_000, SelfCheck(late_p99_ns=3_000 * US, limited=True), id="late"),
        pytest.param([1_900] * 5, 2_000, SelfCheck(late_p99_ns=1_900 * US), id="a large part, but not late"),
    ],
)
def test_self_check(lags_us: list[int], wait_us: int, expected: SelfCheck) -> None:
    head = ZERO + 52_400 * US + wait_us * US
    late = [replace(HOT, head=head, lag_ns=lag * US) for lag in lags_us]
    by_user = replace(HOT, head=head, clock="user")
    assert self_check([*late, by_user]) == expected
    assert self_check([*late, by_user], clock_step_ns=7) == replace(expected, clock_step_ns=7)
    assert not self_check(late).limited


def test_after_a_retransmit_nobody_knows_how_much_of_the_wait_is_the_servers() -> None:
    clean, again = bracket(HOT, None), bracket(replace(HOT, retransmits=1), None)
    assert clean is not None
    assert again is not None
    assert (clean.estimate, again.estimate) == (50_500 * US, None)
    assert (again.lower, again.upper) == (0, clean.upper)
    told = request(replace(HOT, retransmits=1), None).server
    assert told is not None
    assert (told.estimate_ms, told.width_ms is None) == (None, False)
