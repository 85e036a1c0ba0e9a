"""The stream probe on real sockets: what it sends, what it makes of every kind of answer, when it gives up."""

import asyncio
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import aclosing, contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median

import h2.config
import h2.connection
import h2.events
import msgspec
import pytest
from msgspec.structs import replace

from hopscope.lab.orders import Config, Truth
from hopscope.lab.topology import Inference
from hopscope.model.plan import StreamTask
from hopscope.model.record import Failure, Streamed
from hopscope.net.clock import SystemClock
from hopscope.probes.http import HttpPorts
from hopscope.probes.stream import run
from net.servers import Script, answering, authority, once, read_request, reset, say, serve, silent

pytestmark = pytest.mark.loopback

MS = 1_000_000
KEY = "sk-0123456789abcdef"

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
UNTIL_CLOSE = b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
END = b"0\r\n\r\n"
ROLE = b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
WORD = b'data: {"choices":[{"delta":{"content":"word "}}]}\n\n'
THOUGHT = b'data: {"choices":[{"delta":{"reasoning":"hm "}}]}\n\n'
STOP = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":6}}\n\n'
DONE = b"data: [DONE]\n\n"


def chunk(*parts: bytes) -> bytes:
    whole = b"".join(parts)
    return b"%x\r\n%b\r\n" % (len(whole), whole)


def plain(status: str, body: bytes, *fields: str) -> bytes:
    lines = (f"HTTP/1.1 {status}", *fields, f"Content-Length: {len(body)}", "", "")
    return "\r\n".join(lines).encode() + body


WHOLE = HEAD + chunk(ROLE, WORD, WORD, STOP, USAGE, DONE) + END
MODELS = plain("200 OK", b'{"object":"list","data":[{"id":"m"},{"id":"n"}]}', "Content-Type: application/json")


def task(port: int, cold: int = 1, hot: int = 0) -> StreamTask:
    return StreamTask(
        target="t",
        vantage="here",
        reason="asked",
        address="127.0.0.1",
        family=4,
        port=port,
        url=f"http://gpu.example:{port}/v1",
        cold=cold,
        hot=hot,
        timeout_ns=400 * MS,
        seed=1,
        model="m",
    )


def no_file(path: str) -> bytes:
    raise FileNotFoundError(2, "No such file or directory", path)


def records(
    what: StreamTask, environ: Mapping[str, str] | None = None, files: Mapping[str, bytes] | None = None
) -> list[Streamed | Failure]:
    def read_file(path: str) -> bytes:
        return files[path] if files and path in files else no_file(path)

    async def main() -> list[Streamed | Failure]:
        ports = HttpPorts(clock=SystemClock(), environ=environ or {}, read_file=read_file)
        return [record async for record in run(3, what, ports)]

    return asyncio.run(main())


def streams(what: StreamTask, environ: Mapping[str, str] | None = None) -> list[Streamed]:
    return [record for record in records(what, environ) if isinstance(record, Streamed)]


def one(script: Script, **changes: int | str | None) -> Streamed:
    """What becomes of one request to a server with this script."""
    with serve(script) as server:
        (got,) = streams(replace(task(server.port), **changes))
    return got


def ended(got: Streamed) -> tuple[str | None, str]:
    return got.exchange.error, got.exchange.detail or ""


def ms(later: int | None, earlier: int | None) -> float:
    assert later is not None
    assert earlier is not None
    return (later - earlier) / MS


def test_a_stream_with_pauses() -> None:
    got = one(once(HEAD, 0.1, chunk(ROLE), 0.1, chunk(THOUGHT), 0.1, chunk(WORD, STOP), chunk(USAGE, DONE), END))
    exchange = got.exchange
    assert ended(got) == (None, "")
    assert ms(got.first_event, exchange.head) > 50
    assert ms(got.first_token, got.first_event) > 50
    assert ms(got.first_visible, got.first_token) > 50
    assert got.last_token == got.first_visible
    assert got.finished is not None
    assert got.finished >= (got.last_token or 0)
    assert exchange.done is not None
    assert (got.events, got.token_events, len(got.token_gaps_ns)) == (6, 2, 1)
    assert (got.finish_reason, got.prompt_tokens, got.completion_tokens) == ("stop", 9, 6)
    assert (exchange.clock, exchange.status, got.model, got.models_listed) == ("kernel", 200, "m", None)


@pytest.mark.parametrize("size", [1, 3, 7])
def test_bytes_that_come_singly_or_in_crumbs(size: int) -> None:
    body = b"".join(
        chunk(part[at : at + size])
        for part in (b": hello\r\n\r\n", ROLE, WORD.replace(b"\n", b"\r\n"), WORD, STOP, USAGE, DONE)
        for at in range(0, len(part), size)
    )
    got = one(once(HEAD, *(body[at : at + 400] for at in range(0, len(body), 400)), END))
    assert ended(got) == (None, "")
    assert (got.events, got.token_events, got.comments, got.unknown_events) == (6, 2, 1, 0)


def test_an_event_has_the_stamp_of_the_read_that_completed_its_data_not_of_the_empty_line() -> None:
    got = one(once(HEAD + chunk(WORD[:-1]), 0.1, chunk(b"\n"), 0.1, chunk(WORD, DONE), END))
    assert got.first_token == got.exchange.head
    assert ms(got.last_token, got.first_token) > 150


@pytest.mark.parametrize("length", ["chunked", "told", "until close"])
def test_every_framing(length: str) -> None:
    body = ROLE + WORD + WORD + STOP + USAGE + DONE
    told = plain("200 OK", body, "Content-Type: text/event-stream")
    script = once({"chunked": WHOLE, "told": told, "until close": UNTIL_CLOSE + body}[length])
    got = one(script)
    assert ended(got) == (None, "")
    assert got.token_events == 2


@pytest.mark.parametrize(
    ("body", "finished"),
    [
        pytest.param(WORD + STOP + b"data:[DONE]\n\n", True, id="no space"),
        pytest.param(WORD + STOP + b"data: [DONE]", True, id="no end"),
        pytest.param(WORD + b"data: [DONE]\n", True, id="no empty line, no reason"),
        pytest.param(WORD + STOP, True, id="no [DONE]"),
        pytest.param(WORD + STOP + DONE + WORD + b"more", True, id="more behind it"),
        pytest.param(WORD, False, id="neither"),
        pytest.param(WORD + DONE[:-5], False, id="cut inside [DONE]"),
    ],
)
def test_how_a_stream_may_end(body: bytes, finished: bool) -> None:
    for script in (once(HEAD, chunk(body), END), once(UNTIL_CLOSE, body)):
        got = one(script)
        assert (got.exchange.error, got.finished is not None) == ((None, True) if finished else ("cut", False))


def test_after_done_a_server_may_do_as_it_likes() -> None:
    def rude(conn: socket.socket) -> None:
        read_request(conn)
        say(conn, (HEAD, chunk(WORD, DONE), 0.02))
        reset(conn)

    for script in (rude, answering(HEAD, chunk(WORD, DONE), 2.0), once(HEAD, chunk(WORD, DONE))):
        got = one(script)
        assert ended(got) == (None, "")
        assert got.exchange.done == got.finished


LONG_LINE = b"data: " + b"x" * (1 << 20)
COMMENTS = (b": " + b"x" * 9_997 + b"\n") * 100
ENDLESS = [0.02, chunk(WORD)] * 100


@pytest.mark.parametrize(
    ("pieces", "kind", "words"),
    [
        pytest.param([HEAD, chunk(WORD)], "cut", ["closed the connection", "after 1 token events", "log"], id="cut"),
        pytest.param([HEAD, chunk(WORD), b"zzz\r\n"], "http", ["malformed response", "after 1 token"], id="malformed"),
        pytest.param([HEAD, chunk(WORD), 0.6], "timeout", ["nothing more came within 0.4 s", "1 token"], id="silent"),
        pytest.param([0.6], "timeout", ["no response header within 0.4 s", "log"], id="no head"),
        pytest.param([HEAD, chunk(LONG_LINE), END], "http", ["line too long", "check that the URL"], id="long line"),
        pytest.param([HEAD, *ENDLESS], "timeout", ["does not end", "--max-tokens"], id="endless in time"),
        pytest.param([HEAD, *[chunk(COMMENTS)] * 9], "http", ["does not end", "max_tokens"], id="endless bytes"),
        pytest.param([HEAD, chunk(ROLE, STOP, DONE), END], "http", ["without a token"], id="no token"),
        pytest.param(
            [HEAD, chunk(WORD, b'data: {"error":{"message":"CUDA out of memory\\u001b[2J"}}\n\n', DONE), END],
            "http", ["error inside the stream: CUDA out of memory\\x1b[2J"], id="error inside",
        ),
        pytest.param([plain("200 OK", b"<html>", "Content-Type: text/html")], "http", ["text/html"], id="a page"),
        pytest.param([plain("200 OK", b'{"error":"busy"}')], "http", ["an error: busy"], id="an error with 200"),
        pytest.param([HEAD.replace(b"chunked\r\n", b"chunked\r\nContent-Encoding: gzip\r\n"), END], "http",
                     ["compressed (gzip)", "text/event-stream"], id="gzip"),
        pytest.param([plain("401 Unauthorized", b'{"error":{"message":"Incorrect API key"}}')], "http",
                     ["HTTP 401 Unauthorized: Incorrect API key", "--api-key-env"], id="401"),
        pytest.param([plain("404 Not Found", b'{"error":{"message":"The model `m` does not exist"}}')], "http",
                     ["HTTP 404 Not Found: The model `m` does not exist", "the model"], id="unknown model"),
        pytest.param([plain("307 Temporary Redirect", b"", "Location: https://new.example/v1")], "http",
                     ["pointing to https://new.example/v1"], id="redirect"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_one_line_with_a_class(pieces: list[bytes | float], kind: str, words: list[str]) -> None:
    got = one(once(*pieces), longest_ns=700 * MS if kind == "timeout" else 20_000 * MS)
    assert got.exchange.error == kind
    assert [part for part in words if part not in (got.exchange.detail or "")] == []
    assert (got.exchange.detail or "").isprintable()


@pytest.mark.parametrize(
    ("field", "low_s", "high_s"),
    [
        ("Retry-After: 30", 30, 30),
        ("retry-after-ms: 1500", 1.5, 1.5),
        ("Retry-After: Fri, 31 Dec 2199 23:59:59 GMT", 86_400, 1e10),
        ("Retry-After: Sun, 06 Nov 1994 08:49:37 GMT", 0, 0),
    ],
)
def test_a_quota_is_not_asked_again_and_says_when(field: str, low_s: float, high_s: float) -> None:
    with serve(answering(plain("429 Too Many Requests", b"", field))) as server:
        (got,) = streams(task(server.port, cold=1, hot=5))
    assert got.retry_after_ns is not None
    assert low_s <= got.retry_after_ns / 1e9 <= high_s
    assert field.split(": ")[1] in (got.exchange.detail or "")


def test_503_is_asked_three_times_and_each_is_told() -> None:
    with serve(answering(plain("503 Service Unavailable", b"", "Retry-After: 1"))) as server:
        got = streams(task(server.port, cold=1, hot=5))
    assert [(each.exchange.status, each.exchange.error) for each in got] == [(503, "http")] * 3


def test_one_failure_does_not_end_the_series() -> None:
    answers = [WHOLE, HEAD + chunk(WORD), WHOLE, WHOLE]

    def script(conn: socket.socket) -> None:
        while read_request(conn):
            answer = answers.pop(0)
            conn.sendall(answer)
            if answer != WHOLE:
                return

    with serve(script) as server:
        got = streams(task(server.port, cold=1, hot=3))
    assert [each.exchange.error for each in got] == [None, "cut", None, None]
    assert [each.exchange.cold for each in got] == [True, False, True, False]


def test_one_cold_then_hot_ones_on_its_connection() -> None:
    with serve(answering(WHOLE)) as server:
        got = streams(replace(task(server.port, cold=1, hot=4), dns_ns=5 * MS))
    assert [(each.exchange.seq, each.exchange.cold) for each in got] == [
        (0, True), (1, False), (2, False), (3, False), (4, False)
    ]  # fmt: skip
    assert {each.exchange.connection for each in got} == {0}
    assert [each.exchange.dns_ns for each in got] == [5 * MS, None, None, None, None]
    for before, after in pairwise(got):
        assert ms(after.exchange.scheduled, before.exchange.done) >= 50


def noting(seen: list[bytes], *answers: bytes) -> Script:
    left = list(answers)

    def script(conn: socket.socket) -> None:
        while left and (request := read_request(conn)):
            seen.append(request)
            conn.sendall(left.pop(0))

    return script


def test_what_is_sent() -> None:
    seen: list[bytes] = []
    with serve(noting(seen, WHOLE, WHOLE)) as server:
        what = replace(task(server.port, cold=1, hot=1), prompt_tokens=50, max_tokens=7, api_key_env="GPU_KEY")
        streams(what, {"GPU_KEY": KEY})
    head, _, body = seen[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /v1/chat/completions HTTP/1.1"
    wanted = {f"Authorization: Bearer {KEY}", "Content-Type: application/json", "Accept-Encoding: identity"}
    assert wanted <= set(lines)
    asked = json.loads(body)
    assert {key: asked[key] for key in ("model", "stream", "stream_options", "max_tokens")} == {
        "model": "m", "stream": True, "stream_options": {"include_usage": True}, "max_tokens": 7
    }  # fmt: skip
    (message,) = asked["messages"]
    assert len(message["content"].split()) == 50
    (other,) = json.loads(seen[1].partition(b"\r\n\r\n")[2])["messages"]
    assert message["content"].split()[0] != other["content"].split()[0]
    assert message["content"].split()[1:] == other["content"].split()[1:]


def test_without_a_model_the_first_listed_is_taken_and_said() -> None:
    seen: list[bytes] = []
    with serve(noting(seen, MODELS, WHOLE, WHOLE)) as server:
        got = streams(replace(task(server.port, cold=1, hot=1), model=None))
    assert [(each.model, each.models_listed, each.exchange.error) for each in got] == [("m", 2, None)] * 2
    assert [each.exchange.cold for each in got] == [True, False]
    assert len(server.accepted) == 2
    assert seen[0].startswith(b"GET /v1/models HTTP/1.1\r\n")
    assert b"Content-Type" not in seen[0]
    assert json.loads(seen[1].partition(b"\r\n\r\n")[2])["model"] == "m"


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (plain("200 OK", b'{"data":[]}'), "http", ["names none", "--model"]),
        (plain("200 OK", b"<html>"), "http", ["names none", "--model"]),
        (plain("200 OK", b"[" * (3 << 20)), "http", ["names none"]),
        (plain("401 Unauthorized", b"{}"), "http", ["asked for its models", "HTTP 401", "--api-key-env", "--model"]),
        (HEAD + b"5\r\nab", "cut", ["closed the connection"]),
    ],
)
def test_without_a_model_and_without_a_list(answer: bytes, kind: str, words: list[str]) -> None:
    got = one(once(answer), model=None)
    assert got.exchange.error == kind
    assert [part for part in words if part not in (got.exchange.detail or "")] == []


def test_a_dead_port_and_a_silent_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    dead = streams(task(port, cold=1, hot=5))
    assert [each.exchange.error for each in dead] == ["refused"] * 3
    assert [each.exchange.error for each in streams(replace(task(port), model=None))] == ["refused"]
    with serve(silent) as server:
        assert [each.exchange.error for each in streams(task(server.port, cold=1, hot=5))] == ["timeout"]


def test_no_record_holds_a_secret_or_steers_a_terminal() -> None:
    told = f"bad key {KEY}\x1b[2J\ud800".encode("utf-8", "surrogatepass")
    evil = b'data: {"choices":[{"delta":{"content":"x"},"finish_reason":"\\u001b[1m%b\\ud800"}]}\n\n' % KEY.encode()
    answers = [
        plain("500 Internal Server Error", b'{"error":{"message":"%b"}}' % told, f"Retry-After: {KEY}"),
        HEAD + chunk(WORD, b"data: %b\n\n" % told, evil, DONE) + END,
        HEAD + chunk(b"data: %b\n\n" % told) + END,
    ]
    for answer in answers:
        with serve(once(answer)) as server:
            (got,) = records(replace(task(server.port), api_key_env="GPU_KEY"), {"GPU_KEY": KEY})
        assert KEY not in repr(got)
        assert "\x1b" not in msgspec.json.encode(got).decode()


def test_what_cannot_be_sent_is_a_failure() -> None:
    (got,) = records(replace(task(80), api_key_env="GPU_KEY"))
    assert isinstance(got, Failure)
    assert (got.kind, got.why, got.task, got.target, got.vantage) == (
        "rights", "the environment variable GPU_KEY is not set", 3, "t", "here"
    )  # fmt: skip


def test_closing_the_generator_closes_the_connection() -> None:
    gone = threading.Event()

    def script(conn: socket.socket) -> None:
        answering(WHOLE)(conn)
        gone.set()

    async def main(port: int) -> None:
        ports = HttpPorts(clock=SystemClock(), environ={}, read_file=no_file)
        async with aclosing(run(3, task(port, cold=1, hot=5), ports)) as going:
            async for record in going:
                assert isinstance(record, Streamed)
                break

    with serve(script) as server:
        asyncio.run(main(server.port))
        assert gone.wait(2)


def test_over_tls_an_event_has_the_stamp_of_its_record(tmp_path_factory: pytest.TempPathFactory) -> None:
    ca = authority(tmp_path_factory.mktemp("ca"))
    with serve(answering(HEAD + chunk(ROLE), 0.2, chunk(WORD, DONE), END), ca.server("DNS:gpu.example")) as server:
        what = replace(task(server.port), url="https://gpu.example/v1", ca_file="ca.pem")
        (got,) = records(what, files={"ca.pem": ca.pem.encode()})
    assert isinstance(got, Streamed)
    assert ended(got) == (None, "")
    assert got.exchange.clock == "kernel"
    assert ms(got.first_token, got.first_event) > 100


def test_over_http2_every_frame_has_the_stamp_of_its_read(tmp_path_factory: pytest.TempPathFactory) -> None:
    ca = authority(tmp_path_factory.mktemp("ca"))
    context = ca.server("DNS:gpu.example")
    context.set_alpn_protocols(["h2"])
    with serve(http2(ROLE + WORD, 0.2, WORD + STOP, 0.2, USAGE + DONE), context) as server:
        what = replace(task(server.port, 1, 1), url="https://gpu.example/v1", ca_file="ca.pem", http2=True)
        got = [each for each in records(what, files={"ca.pem": ca.pem.encode()}) if isinstance(each, Streamed)]
    assert [(ended(each), each.exchange.http_version, each.exchange.cold) for each in got] == [
        ((None, ""), "2", True),
        ((None, ""), "2", False),
    ]
    for each in got:
        assert ms(each.last_token, each.first_token) > 100
        assert ms(each.finished, each.last_token) > 100
        assert (each.token_events, each.completion_tokens) == (2, 6)


def http2(*pieces: bytes | float) -> Script:
    """A server of HTTP/2 that answers every request with these frames; a number is a pause in seconds."""

    def script(conn: socket.socket) -> None:
        state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding=None))
        state.initiate_connection()
        conn.sendall(state.data_to_send())
        while data := conn.recv(65_536):
            for event in state.receive_data(data):
                if isinstance(event, h2.events.StreamEnded) and event.stream_id:
                    answer(conn, state, event.stream_id)
            conn.sendall(state.data_to_send())

    def answer(conn: socket.socket, state: h2.connection.H2Connection, stream: int) -> None:
        state.send_headers(stream, [(":status", "200"), ("content-type", "text/event-stream")])
        for piece in pieces:
            if isinstance(piece, bytes):
                state.send_data(stream, piece)
            say(conn, (state.data_to_send() if isinstance(piece, bytes) else piece,))
        state.end_stream(stream)

    return script


def test_a_record_fits_on_a_line_of_a_tape() -> None:
    gap = 3 * MS
    got = replace(one(answering(WHOLE)), token_gaps_ns=(gap,) * 100_000, comment_gaps_ns=(60 * MS,) * 5_000)
    assert len(msgspec.json.encode(got)) < 1 << 20


QUEUE_MS, PREFILL_MS, PER_TOKEN_MS = 30.0, 90.0, 10.0


@contextmanager
def stand_in(truth: Path) -> Iterator[int]:
    """The lab's inference server on loopback; its port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    server = Inference(
        port=port, queue_ms=QUEUE_MS, prefill_ms=PREFILL_MS, per_token_ms=PER_TOKEN_MS, tokens=8, models=("m", "n"),
        api_key=KEY,
    )  # fmt: skip
    config = Config(server=server, address="127.0.0.1", chain=None, key=None, truth=str(truth))
    argv = [sys.executable, "-m", "hopscope.lab.inference", "--config", msgspec.json.encode(config).decode()]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"listening\n"
        yield port
        process.stdin.close()


def to_first_token_ms(truth: Truth) -> float:
    assert truth.first_token is not None
    return ms(truth.first_token.monotonic_ns, truth.last_in.monotonic_ns)


def test_beside_the_truth_of_a_server(tmp_path: Path) -> None:
    with stand_in(tmp_path / "truth.jsonl") as port:
        what = replace(task(port, 1, 8), api_key_env="GPU_KEY", model=None)
        got = streams(what, {"GPU_KEY": KEY})
        keyless = streams(replace(what, model="m", api_key_env=None))
        unknown = streams(replace(what, model="other"), {"GPU_KEY": KEY})
    lines = (tmp_path / "truth.jsonl").read_bytes().splitlines()
    truths = [msgspec.json.decode(line, type=Truth) for line in lines]
    served = [truth for truth in truths if truth.first_token is not None]
    assert [(each.exchange.error, each.model, each.models_listed) for each in got] == [(None, "m", 2)] * 9
    assert [each.completion_tokens for each in got] == [truth.tokens for truth in served] == [8] * 9
    expected = [to_first_token_ms(truth) for truth in served]
    measured = [ms(each.first_token, each.exchange.sent_first) for each in got]
    assert 0.98 < median(one / other for one, other in zip(measured, expected, strict=True)) < 1.2
    assert 0.8 < median(ms(each.last_token, each.first_token) / 7 / PER_TOKEN_MS for each in got) < 1.5
    assert [(each.exchange.status, each.exchange.error) for each in (*keyless, *unknown)] == [
        (401, "http"),
        (404, "http"),
    ]
    assert "The model `other` does not exist" in (unknown[0].exchange.detail or "")


def test_the_http_library_waits_until_it_is_needed() -> None:
    code = "import sys, hopscope.probes.stream as _; sys.exit('httpcore' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
