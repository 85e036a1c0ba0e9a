"""A streamed answer as a table: events at instants in, facts and faults out. Times in milliseconds after ZERO."""

import pytest
from msgspec.structs import replace

from hopscope.engine.stream import MOST_COMMENTS, MOST_TOKEN_EVENTS, Fault, Head, Instants, Stop, Stream
from hopscope.model.delta import Delta, Moment
from hopscope.model.record import Exchange, Streamed

MS = 1_000_000
ZERO = 1_796_000_000_000_000_000
LATE = MS // 2
"""How long every read lies unread in these tables."""

ROLE = Delta()
TEXT = Delta(token=True, visible=True)
THOUGHT = Delta(token=True)
STOP = Delta(finish_reason="stop")
USAGE = Delta(prompt_tokens=30, completion_tokens=12)
DONE = Delta(done=True)
STRANGE = Delta(known=False)

EXCHANGE = Exchange(
    task=1, seq=0, cold=True, connection=0, scheduled=ZERO, sent_first=ZERO, sent_last=ZERO, head=ZERO + 5 * MS,
    done=ZERO + 99 * MS, clock="kernel", status=200,
)  # fmt: skip
OK = Head(status=200, content_type="text/event-stream")


def moment(at_ms: float) -> Moment:
    stamp = ZERO + round(at_ms * MS)
    return Moment(stamp + LATE, stamp)


def heard(*events: tuple[float, Delta | None]) -> Stream:
    """A stream of these events; `None` is a comment."""
    stream = Stream()
    for at_ms, delta in events:
        if delta is None:
            stream.comment(moment(at_ms))
        else:
            stream.event(delta, moment(at_ms), "strange")
    return stream


def streamed(*events: tuple[float, Delta | None]) -> Streamed:
    return heard(*events).streamed(EXCHANGE, OK)


def after(instant: int | None) -> float | None:
    return None if instant is None else (instant - ZERO) / MS


WHOLE = [(10, ROLE), (20, TEXT), (30, TEXT), (45, TEXT), (50, STOP), (51, USAGE), (52, DONE)]


def test_a_whole_stream() -> None:
    got = streamed(*WHOLE)
    firsts = (got.first_event, got.first_token, got.first_visible, got.last_token, got.finished)
    assert [after(each) for each in firsts] == [10, 20, 20, 45, 52]
    assert [gap / MS for gap in got.token_gaps_ns] == [10, 15]
    assert (got.events, got.token_events, got.comments, got.unknown_events) == (7, 3, 0, 0)
    assert (got.finish_reason, got.prompt_tokens, got.completion_tokens, got.n_first) == ("stop", 30, 12, None)
    assert (got.task, got.exchange, got.lag_ns) == (1, EXCHANGE, LATE)
    assert heard(*WHOLE).fault(EXCHANGE, OK, None) is None


def test_thinking_is_a_token_that_nobody_sees() -> None:
    got = streamed((10, THOUGHT), (20, THOUGHT), (60, TEXT), (70, DONE))
    assert [after(each) for each in (got.first_token, got.first_visible, got.last_token)] == [10, 60, 60]
    thoughts = streamed((10, THOUGHT), (70, DONE))
    assert (after(thoughts.first_token), thoughts.first_visible) == (10, None)


def test_comments_are_counted_and_stamped_and_are_no_event() -> None:
    got = streamed((7, None), (12, None), (20, TEXT), (21, None), (30, DONE))
    assert (after(got.first_comment), got.comments) == (7, 3)
    assert [gap / MS for gap in got.comment_gaps_ns] == [5, 9]
    assert (after(got.first_event), got.events) == (20, 2)


def test_usage_on_the_way_tells_how_many_came_first() -> None:
    counting = [replace(TEXT, completion_tokens=count) for count in (3, 5, 9)]
    got = streamed(*((10.0 * number, each) for number, each in enumerate(counting, 1)), (40, DONE))
    assert (got.n_first, got.completion_tokens) == (3, 9)


def test_what_follows_done_means_nothing() -> None:
    got = streamed((10, TEXT), (20, DONE), (30, TEXT), (40, Delta(error="late")))
    assert (got.token_events, after(got.last_token), after(got.finished), got.events) == (1, 10, 20, 4)
    assert heard((10, TEXT), (20, DONE), (40, Delta(error="late"))).fault(EXCHANGE, OK, None) is None


@pytest.mark.parametrize(("clock", "expected"), [("kernel", [10, 20]), ("user", [10.5, 20.5])])
def test_instants_are_told_by_the_clock_of_the_exchange(clock: str, expected: list[float]) -> None:
    exchange = replace(EXCHANGE, clock="kernel" if clock == "kernel" else "user")
    got = heard((10, TEXT), (20, TEXT)).streamed(exchange, OK)
    assert [after(each) for each in (got.first_token, got.last_token)] == expected
    assert got.token_gaps_ns == (10 * MS,)
    assert got.lag_ns == (LATE if clock == "kernel" else None)


def test_nothing_stands_before_the_head() -> None:
    assert after(streamed((1, TEXT)).first_token) == 5


def test_a_read_without_a_stamp_stands_at_its_reading_and_time_never_runs_back() -> None:
    instants = Instants(10)
    for each in (Moment(12 * MS, 10 * MS), Moment(20 * MS, None), Moment(21 * MS, 19 * MS), Moment(31 * MS, 30 * MS)):
        instants.add(each)
    assert instants.gaps(kernel=True) == (10 * MS, 0, 10 * MS)
    assert instants.gaps(kernel=False) == (8 * MS, MS, 10 * MS)


def test_the_lag_is_that_of_the_99th_percentile() -> None:
    instants = Instants(1000)
    for number in range(101):
        instants.add(Moment(number * MS + number, number * MS))
    assert instants.lag() == 99
    assert Instants(1).lag() is None


def test_an_endless_stream_keeps_its_bounds_and_its_count() -> None:
    stream = Stream()
    for number in range(MOST_TOKEN_EVENTS + 100):
        stream.event(TEXT, moment(10 + number))
        stream.comment(moment(10 + number))
    got = stream.streamed(EXCHANGE, OK)
    assert (len(got.token_gaps_ns), got.token_events) == (MOST_TOKEN_EVENTS - 1, MOST_TOKEN_EVENTS + 100)
    assert (len(got.comment_gaps_ns), got.comments) == (MOST_COMMENTS - 1, MOST_TOKEN_EVENTS + 100)
    assert after(got.last_token) == 10 + MOST_TOKEN_EVENTS + 99


CUT = replace(EXCHANGE, done=None, error="cut", detail="the server closed the connection")
SILENT = replace(EXCHANGE, done=None, error="timeout", detail="nothing more came within 5 s")
BEGUN = [(10, TEXT), (20, TEXT)]


@pytest.mark.parametrize(
    ("events", "exchange", "head", "stopped", "kind", "words"),
    [
        pytest.param(BEGUN, CUT, OK, None, "cut", ["closed the connection, after 2 token", "see the log"], id="cut"),
        pytest.param(BEGUN, SILENT, OK, None, "timeout", ["nothing more came within 5 s", "see the log"], id="silent"),
        pytest.param(BEGUN, EXCHANGE, OK, None, "cut", ["2 token events without finish_reason or [DONE]"], id="half"),
        pytest.param([*BEGUN, (30, STOP)], CUT, OK, None, "cut", ["after 2 token events"], id="cut behind the reason"),
        pytest.param(BEGUN, EXCHANGE, OK, "line", "http", ["line too long", "check that the URL"], id="line"),
        pytest.param(BEGUN, EXCHANGE, OK, "event", "http", ["event too long"], id="event"),
        pytest.param(BEGUN, EXCHANGE, OK, "bytes", "http", ["does not end", "max_tokens"], id="endless bytes"),
        pytest.param(BEGUN, EXCHANGE, OK, "time", "timeout", ["does not end", "--max-tokens"], id="endless time"),
        pytest.param(
            [(10, TEXT), (20, Delta(error="CUDA out of memory"))], EXCHANGE, OK, None, "http",
            ["error inside the stream: CUDA out of memory", "see the log"], id="error inside",
        ),
        pytest.param([(10, ROLE), (20, STOP), (30, DONE)], EXCHANGE, OK, None, "http",
                     ["without a token (finish_reason stop)", "--max-tokens"], id="no token"),
        pytest.param([], EXCHANGE, Head(status=200, content_type="text/html"), None, "http",
                     ["no event (content type text/html)", "check that the URL"], id="a page"),
        pytest.param([], EXCHANGE, Head(status=200, message="no"), None, "http", ["an error: no"], id="error in 200"),
        pytest.param([(9, STRANGE)] * 2, EXCHANGE, OK, None, "http", ['the first is "strange"'], id="other events"),
        pytest.param([], EXCHANGE, Head(status=200, encoding="gzip"), None, "http", ["compressed (gzip)"], id="gzip"),
        pytest.param([], replace(EXCHANGE, status=None, head=None, error="refused", detail="no"), None, None,
                     "refused", ["no"], id="refused"),
        pytest.param([], replace(EXCHANGE, status=None, head=None, error="timeout", detail="no head"), None, None,
                     "timeout", ["no head; see the log"], id="no head"),
        pytest.param([], EXCHANGE, Head(status=401, message="bad key"), None, "http",
                     ["HTTP 401 Unauthorized: bad key", "--api-key-env"], id="401"),
        pytest.param([], EXCHANGE, Head(status=404, message="no `m`"), None, "http",
                     ["HTTP 404 Not Found: no `m`", "the model"], id="404"),
        pytest.param([], EXCHANGE, Head(status=429, retry_after="30", retry_after_ns=30_000 * MS), None, "http",
                     ["HTTP 429 Too Many Requests", "Retry-After: 30 (30 s)"], id="429"),
        pytest.param([], EXCHANGE, Head(status=503, retry_after="soon"), None, "http",
                     ["HTTP 503 Service Unavailable", "try again later", "Retry-After: soon"], id="503"),
        pytest.param([], EXCHANGE, Head(status=307, location="/v2"), None, "http",
                     ["HTTP 307 Temporary Redirect, pointing to /v2", "give the URL"], id="redirect"),
        pytest.param([], EXCHANGE, Head(status=799), None, "http", ["HTTP 799"], id="a status nobody knows"),
    ],
)  # fmt: skip
def test_faults(
    events: list[tuple[float, Delta]],
    exchange: Exchange,
    head: Head | None,
    stopped: Stop | None,
    kind: str,
    words: list[str],
) -> None:
    got = heard(*events).fault(exchange, head, stopped)
    assert got is not None
    assert got.kind == kind
    assert [part for part in words if part not in got.detail] == []
    assert "\n" not in got.detail


@pytest.mark.parametrize(
    ("events", "exchange"),
    [
        pytest.param([*BEGUN, (30, DONE)], CUT, id="cut behind [DONE]"),
        pytest.param([*BEGUN, (30, DONE)], SILENT, id="kept open behind [DONE]"),
        pytest.param([*BEGUN, (30, STOP)], EXCHANGE, id="no [DONE]"),
        pytest.param([(5, STRANGE), *BEGUN, (30, STRANGE), (40, DONE)], EXCHANGE, id="odd events between"),
        pytest.param([*BEGUN, (30, DONE)], replace(EXCHANGE, status=201), id="another success"),
    ],
)
def test_what_is_no_fault(events: list[tuple[float, Delta]], exchange: Exchange) -> None:
    assert heard(*events).fault(exchange, OK, None) is None


def test_a_fault_is_a_line_however_long_the_server_talks() -> None:
    head = Head(status=429, message="x" * 5000, retry_after="y" * 5000, location="z" * 5000)
    got = heard().fault(EXCHANGE, head, None)
    assert isinstance(got, Fault)
    assert len(got.detail) < 500
