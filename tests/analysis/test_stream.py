"""Streamed completions as tables: exact instants in, exact durations, brackets and paces out. Times in milliseconds."""

import json

import msgspec
import pytest
from msgspec.structs import replace

from hopscope.analysis.stream import Pace, StreamView, pace, request, result, self_check, summary
from hopscope.analysis.views import Who
from hopscope.model.record import Exchange, SelfCheck, Streamed
from hopscope.model.report import Delay, StreamResult

MS = 1_000_000
ZERO = 1_796_000_000_000_000_000
RTT = 25 * MS


def at(ms: float) -> int:
    return ZERO + round(ms * MS)


EXCHANGE = Exchange(
    task=1, seq=1, cold=False, connection=0, scheduled=ZERO, sent_first=at(0), sent_last=at(1), head=at(31),
    done=at(400), clock="kernel", level=2, min_rtt_ns=RTT, rtt_ns=RTT, status=200, lag_ns=MS // 10,
)  # fmt: skip
STREAMED = Streamed(
    task=1, exchange=EXCHANGE, model="m", first_event=at(40), first_token=at(126), first_visible=at(200),
    last_token=at(326), finished=at(399), token_gaps_ns=(74 * MS, 126 * MS), events=6, token_events=3,
    finish_reason="length", prompt_tokens=30, completion_tokens=11, lag_ns=MS // 5,
)  # fmt: skip
COLD = replace(
    STREAMED,
    exchange=replace(EXCHANGE, cold=True, seq=0, dialled=at(-60), connected=at(-35), secured=at(-9)),
    first_token=at(901),
    last_token=at(1001),
)
FAILED = replace(STREAMED, exchange=replace(EXCHANGE, error="cut", detail="gone", done=None))


def test_durations_run_from_the_first_byte_sent() -> None:
    got = request(STREAMED, None)
    assert (got.ttfb_ms, got.ttfe_ms, got.ttft_ms, got.ttfo_ms, got.e2e_ms) == (31, 40, 126, 200, 326)
    assert (got.tpot_ms, got.decode_tps) == (20, 50)
    assert (got.prompt_tokens, got.tokens_out, got.token_source, got.n_first) == (30, 11, "usage", 1)
    assert (got.finish_reason, got.events, got.comments, got.unknown_events) == ("length", 6, 0, 0)
    assert (got.stalls, got.coalescing, got.retry_after_ms) == ((), None, None)
    assert got.phases_ms.download == 369
    assert request(COLD, None).ttft_ms == 901


def test_the_server_to_its_head_and_to_its_first_token() -> None:
    got = request(STREAMED, None)
    assert got.server is not None
    assert got.ttft_server is not None
    assert (got.server.lower_ms, got.server.estimate_ms, got.server.basis) == (0, 5, "tcp-info")
    assert (got.ttft_server.lower_ms, got.ttft_server.estimate_ms) == (0, 100)
    assert got.ttft_server.upper_ms == pytest.approx(100.05)
    nearer = request(STREAMED, RTT - 2 * MS).ttft_server
    assert nearer is not None
    assert nearer.estimate_ms == 102
    assert request(replace(STREAMED, first_token=None), None).ttft_server is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, Pace(11, "usage", 1, 20 * MS), id="usage"),
        pytest.param({"n_first": 3}, Pace(11, "usage", 3, 25 * MS), id="several came first"),
        pytest.param({"completion_tokens": None}, Pace(3, "events", 1, 100 * MS), id="events"),
        pytest.param({"completion_tokens": 0}, Pace(3, "events", 1, 100 * MS), id="usage of nothing"),
        pytest.param({"completion_tokens": 1}, Pace(1, "usage", 1, None), id="one token"),
        pytest.param({"completion_tokens": 3, "n_first": 3}, Pace(3, "usage", 3, None), id="all at once"),
        pytest.param({"last_token": at(126)}, Pace(11, "usage", 1, None), id="all in one read"),
        pytest.param({"completion_tokens": None, "token_events": 1}, Pace(1, "events", 1, None), id="one event"),
        pytest.param(
            {"completion_tokens": None, "token_events": 0, "first_token": None, "last_token": None},
            Pace(None, None, None, None),
            id="nothing",
        ),
        pytest.param(
            {"completion_tokens": 0, "token_events": 0, "first_token": None, "last_token": None},
            Pace(0, "usage", None, None),
            id="nothing, as told",
        ),
    ],
)
def test_the_pace(changes: dict[str, int | None], expected: Pace) -> None:
    assert pace(replace(STREAMED, **changes)) == expected
    got = request(replace(STREAMED, **changes), None)
    assert (got.tpot_ms is None) == (got.decode_tps is None) == (expected.tpot_ns is None)


def test_an_answer_that_never_came_has_no_times() -> None:
    exchange = Exchange(task=1, seq=0, cold=True, connection=0, scheduled=ZERO, error="refused", detail="no")
    got = request(Streamed(task=1, exchange=exchange), None)
    assert {got.ttfb_ms, got.ttfe_ms, got.ttft_ms, got.ttfo_ms, got.e2e_ms, got.tpot_ms, got.decode_tps} == {None}
    assert (got.server, got.ttft_server, got.tokens_out, got.token_source) == (None, None, None, None)
    assert got.error is not None


def test_the_summary_is_that_of_the_hot_ones_and_the_cold_one_stands_apart() -> None:
    later = replace(STREAMED, first_token=at(146))
    got = summary([COLD, STREAMED, later, FAILED], None)
    assert (got.ttft.n, got.ttft.min_ms, got.ttft.max_ms) == (2, 126, 146)
    assert (got.ttft_cold.n, got.ttft_cold.max_ms) == (1, 901)
    assert (got.ttft_server.min_ms, got.ttft_server.max_ms) == (100, 120)
    assert (got.server.p50_ms, got.network.p50_ms, got.upload.p50_ms) == (5, 25, 1)
    assert (got.tpot.n, got.tpot.max_ms) == (2, 20)
    assert got.errors == {"cut": 1}


def test_where_none_was_hot_the_cold_ones_count() -> None:
    got = summary([COLD, COLD, FAILED], None)
    assert (got.ttft.n, got.ttft.p50_ms, got.ttft_cold.n) == (2, 901, 2)
    nothing = summary([FAILED], None)
    assert nothing.ttft == nothing.ttft_server == nothing.tpot == Delay(n=0)


def test_self_check() -> None:
    assert self_check([STREAMED]) == SelfCheck(late_p99_ns=MS // 5)
    assert self_check([replace(STREAMED, lag_ns=None)], clock_step_ns=7) == SelfCheck(
        late_p99_ns=MS // 10, clock_step_ns=7
    )
    assert self_check([]) == SelfCheck()


WHO = Who(target="t", vantage="here", address="203.0.113.9", family=4, protocol="tcp", port=443)
URL = "https://h/v1"


@pytest.mark.parametrize(
    ("streams", "outcome", "why"),
    [
        ([COLD, STREAMED], "ok", None),
        ([COLD, FAILED], "degraded", "gone"),
        ([FAILED], "http", "gone"),
        ([], "timeout", None),
    ],
)
def test_the_result(streams: list[Streamed], outcome: str, why: str | None) -> None:
    got = result(StreamView(who=WHO, url=URL, samples=[], streams=streams), None)
    assert (got.outcome, got.why, got.url, got.api) == (outcome, why, URL, "openai")
    assert (got.model, len(got.requests)) == ("m" if streams else None, len(streams))
    told = json.loads(msgspec.json.encode(got))
    assert told["kind"] == "stream"
    assert (told["ramp"], told["knee"]) == ([], None)
    assert msgspec.json.decode(msgspec.json.encode(got), type=StreamResult) == got
