"""The stand-in server on this machine's loopback: what it says, when it says it, and that its log agrees."""

import json
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from pathlib import Path

import msgspec
import pytest

from hopscope.lab.certificates import make_authority, make_certificate
from hopscope.lab.inference import _select_loop
from hopscope.lab.orders import Config, Truth
from hopscope.lab.topology import Inference, Tls

pytestmark = pytest.mark.loopback

HERE = "127.0.0.1"
KEY = "sesame"
QUEUE_MS, PREFILL_MS, PER_TOKEN_MS, THINK_MS = 40.0, 80.0, 30.0, 60.0
HAS_OPENSSL = shutil.which("openssl") is not None


def free_port() -> int:
    with socket.create_server((HERE, 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


@contextmanager
def serving(server: Inference, truth: Path, *, chain: Path | None = None, key: Path | None = None) -> Iterator[Path]:
    truth.touch()
    config = Config(
        server=server,
        address=HERE,
        chain=None if chain is None else str(chain),
        key=None if key is None else str(key),
        truth=str(truth),
    )
    argv = [sys.executable, "-m", "hopscope.lab.inference", "--config", msgspec.json.encode(config).decode()]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"listening\n"
        yield truth
        process.stdin.close()  # the owner is gone
        assert process.wait(5) == 0


@pytest.fixture(scope="module")
def server() -> Inference:
    return Inference(
        port=free_port(),
        queue_ms=QUEUE_MS,
        prefill_ms=PREFILL_MS,
        per_token_ms=PER_TOKEN_MS,
        think_ms=THINK_MS,
        tokens=5,
        models=("m", "n"),
        api_key=KEY,
    )


@pytest.fixture(scope="module")
def truth(server: Inference, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with serving(server, tmp_path_factory.mktemp("truth") / "truth.jsonl") as path:
        yield path


@pytest.fixture
def http(server: Inference, truth: Path) -> Iterator[HTTPConnection]:
    connection = HTTPConnection(HERE, server.port, timeout=10)
    yield connection
    connection.close()


def last(truth: Path, path: str) -> Truth:
    """The newest line of the log, which must be about `path`: it is written after the answer has gone out."""
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        lines = truth.read_bytes().splitlines()
        if lines and (found := msgspec.json.decode(lines[-1], type=Truth)).path == path:
            return found
        time.sleep(0.01)
    pytest.fail(f"nothing about {path} in the log")


def get(http: HTTPConnection, path: str, method: str = "GET", key: str = KEY) -> tuple[int, bytes, float]:
    """Status, body, milliseconds to the head."""
    start = time.monotonic()
    http.request(method, path, headers={"Authorization": f"Bearer {key}"})
    answer = http.getresponse()
    waited_ms = (time.monotonic() - start) * 1e3
    return answer.status, answer.read(), waited_ms


def chat(http: HTTPConnection, **fields: object) -> HTTPResponse:
    body = {"model": "m", "messages": [{"role": "user", "content": "How far is it?"}], **fields}
    http.request("POST", "/v1/chat/completions", body=json.dumps(body), headers={"Authorization": f"Bearer {KEY}"})
    return http.getresponse()


def events(answer: HTTPResponse) -> list[tuple[float, bytes]]:
    """Every event with the moment it was read."""
    found: list[tuple[float, bytes]] = []
    while line := answer.readline():
        if line.strip():
            assert line.startswith(b"data: ")
            found.append((time.monotonic(), line.removeprefix(b"data: ").strip()))
    return found


def test_models_come_after_the_think_time(http: HTTPConnection, truth: Path) -> None:
    status, body, waited_ms = get(http, "/v1/models")
    assert status == 200
    assert [model["id"] for model in json.loads(body)["data"]] == ["m", "n"]
    assert 1.0 <= waited_ms / THINK_MS < 2.0
    fact = last(truth, "/v1/models")
    assert fact.first_out is not None
    assert 1.0 <= (fact.first_out.monotonic_ns - fact.last_in.monotonic_ns) / 1e6 / THINK_MS < 1.5


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/health", 200), ("/status/503", 503), ("/status/429", 429), ("/status/999", 404), ("/nowhere", 404)],
)
def test_plain_paths_answer_their_status(http: HTTPConnection, path: str, expected: int) -> None:
    assert get(http, path)[0] == expected


def test_the_key_guards_the_api_only(http: HTTPConnection) -> None:
    assert get(http, "/v1/models", key="wrong")[0] == 401
    assert get(http, "/health", key="wrong")[0] == 200


def test_a_connection_is_kept_over_every_kind_of_answer(http: HTTPConnection) -> None:
    http.connect()
    kept = http.sock
    assert get(http, "/health")[0] == 200
    assert get(http, "/v1/models", "HEAD")[:2] == (200, b"")
    assert get(http, "/status/500")[0] == 500
    chat(http, stream=True).read()
    assert chat(http).status == 200
    assert http.sock is kept


def test_a_stream_is_head_role_words_reason_usage_done(http: HTTPConnection) -> None:
    answer = chat(http, stream=True, stream_options={"include_usage": True})
    assert answer.getheader("Content-Type", "").startswith("text/event-stream")
    *chunks, done = (data for _, data in events(answer))
    assert done == b"[DONE]"
    parsed = [json.loads(chunk) for chunk in chunks]
    assert parsed[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [chunk["choices"][0]["delta"]["content"] for chunk in parsed[1:-2]] == [f"word{n} " for n in range(5)]
    assert parsed[-2]["choices"][0]["finish_reason"] == "stop"
    assert parsed[-1]["choices"] == []
    assert parsed[-1]["usage"]["completion_tokens"] == 5


def test_a_stream_keeps_its_times_and_the_log_knows_them(http: HTTPConnection, truth: Path) -> None:
    start = time.monotonic()
    answer = chat(http, stream=True)
    head_ms = (time.monotonic() - start) * 1e3
    at = [(moment - start) * 1e3 for moment, data in events(answer) if b'"word' in data.replace(b'content":"', b'"')]
    assert head_ms < QUEUE_MS
    assert 1.0 <= at[0] / (QUEUE_MS + PREFILL_MS) < 1.3
    assert (at[-1] - at[0]) / (4 * PER_TOKEN_MS) == pytest.approx(1.0, abs=0.2)
    time.sleep(0.05)
    fact = last(truth, "/v1/chat/completions")
    assert fact.first_token is not None
    inside_ms = (fact.first_token.monotonic_ns - fact.last_in.monotonic_ns) / 1e6
    assert inside_ms <= at[0]
    assert 1.0 <= inside_ms / (QUEUE_MS + PREFILL_MS) < 1.3
    assert fact.tokens == 5


def test_a_limit_cuts_the_answer(http: HTTPConnection) -> None:
    whole = json.loads(chat(http, max_tokens=2).read())
    assert whole["choices"][0]["finish_reason"] == "length"
    assert whole["choices"][0]["message"]["content"] == "word0 word1 "
    assert whole["usage"]["completion_tokens"] == 2


@pytest.mark.parametrize(("fields", "status"), [({"model": "x"}, 404), ({"messages": 7}, 400)])
def test_a_wrong_request_is_refused(http: HTTPConnection, fields: dict[str, object], status: int) -> None:
    answer = chat(http, **fields)
    assert answer.status == status
    assert json.loads(answer.read())["error"]["message"]


def test_metrics_are_prompt_and_agree_with_the_settings(http: HTTPConnection) -> None:
    def figure(name: str) -> float:
        status, body, waited_ms = get(http, "/metrics")
        assert status == 200
        assert waited_ms < THINK_MS
        line = next(line for line in body.decode().splitlines() if line.startswith(f"vllm:{name}{{"))
        return float(line.split()[-1])

    def average_ms(name: str, total: float, count: float) -> float:
        return (figure(f"{name}_sum") - total) / (figure(f"{name}_count") - count) * 1e3

    names = ("request_queue_time_seconds", "request_prefill_time_seconds", "inter_token_latency_seconds")
    before = {name: (figure(f"{name}_sum"), figure(f"{name}_count")) for name in names}
    chat(http).read()
    for name, expected in zip(names, (QUEUE_MS, PREFILL_MS, PER_TOKEN_MS), strict=True):
        assert average_ms(name, *before[name]) / expected == pytest.approx(1.0, abs=0.2)
    assert figure("num_requests_running") == 0


CHUNKED = (
    b"POST /status/201 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"
    b"Expect: 100-continue\r\nConnection: close\r\n\r\n"
    b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
)


@pytest.mark.parametrize(
    ("sent", "start", "rest"),
    [
        (b"GET /health HTTP/1.0\r\n\r\n", b"HTTP/1.1 200 OK\r\n", b""),
        (b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n", b"HTTP/1.1 200 OK\r\n", b""),
        (b"nonsense\r\n\r\n", b"HTTP/1.1 400 Bad Request\r\n", b""),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", b"HTTP/1.1 431 ", b""),
        (b"POST /status/200 HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"HTTP/1.1 413 ", b""),
        (CHUNKED, b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\n", b"as asked"),
    ],
)
def test_bytes_in_bytes_out_then_the_connection_ends(
    server: Inference, truth: Path, sent: bytes, start: bytes, rest: bytes
) -> None:
    with socket.create_connection((HERE, server.port), timeout=5) as raw:
        raw.sendall(sent)
        answer = b""
        while piece := raw.recv(4096):
            answer += piece
    assert answer.startswith(start)
    assert rest in answer


def test_a_client_that_goes_away_is_an_abort_and_no_trouble(server: Inference, http: HTTPConnection) -> None:
    goes = HTTPConnection(HERE, server.port, timeout=5)
    chat(goes, stream=True)
    goes.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # resets
    goes.close()
    time.sleep((QUEUE_MS + PREFILL_MS + 3 * PER_TOKEN_MS) / 1e3)
    body = get(http, "/metrics")[1].decode()
    assert 'finished_reason="abort"} 1' in body
    assert "num_requests_running" in body


def test_more_requests_than_slots_wait(tmp_path: Path) -> None:
    server = Inference(port=free_port(), prefill_ms=100, tokens=1, slots=1, models=("m",))
    with serving(server, tmp_path / "truth.jsonl"), ThreadPoolExecutor(3) as pool:

        def wait_ms(_: int) -> float:
            start = time.monotonic()
            with ExitStack() as stack:
                http = HTTPConnection(HERE, server.port, timeout=10)
                stack.callback(http.close)
                assert chat(http).read()
            return (time.monotonic() - start) * 1e3

        waits = sorted(pool.map(wait_ms, range(3)))
    assert [round(wait / 100 - 0.1) for wait in waits] == [1, 2, 3]


CODES = {"self-signed": 18, "expired": 10, "wrong-name": 64}


@pytest.mark.skipif(not HAS_OPENSSL, reason="openssl is missing: apt-get install openssl")
@pytest.mark.parametrize("kind", ["lab-ca", "self-signed", "expired", "wrong-name"])
def test_a_certificate_is_good_or_wrong_in_the_one_way_asked_for(kind: Tls, tmp_path: Path) -> None:
    authority = make_authority(tmp_path)
    made = make_certificate(tmp_path, "leaf", kind, address=HERE, names=("here.example",))
    server = Inference(port=free_port(), tls=kind, models=("m",))
    context = ssl.create_default_context(cafile=authority)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    with serving(server, tmp_path / "truth.jsonl", chain=made.chain, key=made.key):
        http = HTTPSConnection(HERE, server.port, timeout=5, context=context)
        if kind == "lab-ca":
            assert get(http, "/v1/models")[0] == 200
            http.close()
            with (
                socket.create_connection((HERE, server.port), timeout=5) as raw,
                context.wrap_socket(raw, server_hostname="here.example") as secured,
            ):
                assert secured.version() == "TLSv1.3"
        else:
            with pytest.raises(ssl.SSLCertVerificationError) as caught:
                http.connect()
            assert caught.value.verify_code == CODES[kind]
            http.close()


def test_the_loop_sleeps_finer_than_a_millisecond() -> None:
    loop = _select_loop()
    try:
        start, ended = loop.time(), [0.0]

        def stop() -> None:
            ended[0] = loop.time()
            loop.stop()

        loop.call_at(start + 0.0003, stop)
        loop.run_forever()
    finally:
        loop.close()
    assert ended[0] >= start + 0.0003
