"""The HTTP probe: how many requests on which connections, when it gives up, and what it does with secrets."""

import asyncio
import itertools
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import aclosing

import pytest
from msgspec.structs import replace

from hopscope import __version__
from hopscope.model.plan import HttpTask
from hopscope.model.record import Exchange, Failure
from hopscope.net.clock import SystemClock
from hopscope.probes.http import HttpPorts, run
from net.servers import OK, Script, Server, answering, authority, once, read_request, serve, silent

MS = 1_000_000
KEY = "sk-0123456789abcdef"


def task(port: int, cold: int = 1, hot: int = 0) -> HttpTask:
    return HttpTask(
        target="t",
        vantage="here",
        reason="asked",
        address="127.0.0.1",
        family=4,
        port=port,
        url=f"http://gpu.example:{port}/v1/models",
        cold=cold,
        hot=hot,
        timeout_ns=2_000 * MS,
    )


def no_file(path: str) -> bytes:
    raise FileNotFoundError(2, "No such file or directory", path)


def records(
    what: HttpTask, environ: Mapping[str, str] | None = None, files: Mapping[str, bytes] | None = None
) -> list[Exchange | Failure]:
    def read_file(path: str) -> bytes:
        return files[path] if files and path in files else no_file(path)

    async def main() -> list[Exchange | Failure]:
        ports = HttpPorts(clock=SystemClock(), environ=environ or {}, read_file=read_file)
        return [record async for record in run(3, what, ports) if isinstance(record, Exchange | Failure)]

    return asyncio.run(main())


def exchanges(what: HttpTask, environ: Mapping[str, str] | None = None) -> list[Exchange]:
    return [record for record in records(what, environ) if isinstance(record, Exchange)]


def failure(
    what: HttpTask, environ: Mapping[str, str] | None = None, files: Mapping[str, bytes] | None = None
) -> Failure:
    (record,) = records(what, environ, files)
    assert isinstance(record, Failure)
    assert (record.task, record.target, record.vantage) == (3, "t", "here")
    return record


def noting(server_requests: list[bytes]) -> Script:
    def script(conn: socket.socket) -> None:
        while request := read_request(conn):
            server_requests.append(request)
            conn.sendall(OK)

    return script


def kinds(got: list[Exchange]) -> list[tuple[int, bool, int]]:
    return [(each.seq, each.cold, each.connection) for each in got]


@pytest.mark.loopback
def test_cold_ones_each_dial_and_hot_ones_share_the_last() -> None:
    with serve(answering(OK)) as server:
        got = exchanges(replace(task(server.port, cold=3, hot=2), dns_ns=5 * MS))
    assert kinds(got) == [(0, True, 0), (1, True, 1), (2, True, 2), (3, False, 2), (4, False, 2)]
    assert [each.dns_ns for each in got] == [5 * MS, None, None, None, None]
    assert {each.error for each in got} == {None}
    assert len(server.accepted) == 3


@pytest.mark.loopback
def test_requests_are_due_50_ms_after_the_one_before() -> None:
    with serve(answering(0.03, OK)) as server:
        got = exchanges(task(server.port, cold=1, hot=3))
    for before, after in itertools.pairwise(got):
        assert before.done is not None
        assert after.sent_first is not None
        assert after.scheduled - before.done >= 50 * MS
        assert after.sent_first >= after.scheduled


@pytest.mark.loopback
def test_a_server_that_closes_makes_every_request_cold() -> None:
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    for script in (answering(closing), once(OK)):
        with serve(script) as server:
            got = exchanges(task(server.port, cold=1, hot=2))
        assert kinds(got) == [(0, True, 0), (1, True, 1), (2, True, 2)]
        assert {each.error for each in got} == {None}


@pytest.mark.loopback
@pytest.mark.parametrize(("method", "outcomes"), [("GET", [None, None]), ("POST", [None, "cut"])])
def test_a_close_that_crosses_the_request(method: str, outcomes: list[str | None]) -> None:
    def script(conn: socket.socket) -> None:
        if read_request(conn):
            conn.sendall(OK)
            read_request(conn)

    with serve(script) as server:
        got = exchanges(replace(task(server.port, cold=1, hot=1), method=method))
    assert [each.error for each in got] == outcomes
    assert [each.cold for each in got] == [True, method == "GET"]


@pytest.mark.loopback
def test_a_dead_port_is_asked_three_times() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert [each.error for each in exchanges(task(port, cold=3, hot=10))] == ["refused"] * 3


@pytest.mark.loopback
def test_a_silent_server_is_waited_for_once() -> None:
    with serve(silent) as server:
        got = exchanges(replace(task(server.port, cold=3, hot=10), timeout_ns=200 * MS))
    assert [each.error for each in got] == ["timeout"]


@pytest.mark.loopback
def test_one_failure_does_not_end_the_series() -> None:
    answers = [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", OK, b"nonsense\r\n\r\n", OK]

    def script(conn: socket.socket) -> None:
        read_request(conn)
        conn.sendall(answers.pop(0))

    with serve(script) as server:
        got = exchanges(task(server.port, cold=4))
    assert [each.error for each in got] == ["cut", None, "http", None]


@pytest.mark.loopback
def test_what_is_sent() -> None:
    seen: list[bytes] = []
    with serve(noting(seen)) as server:
        what = replace(
            task(server.port),
            url=f"http://gpu.example:{server.port}/v1/mo dels?q=ü#fragment",
            headers=(("X-Tag", "1"), ("accept", "application/json")),
            headers_env=(("X-Team", "TEAM"),),
            api_key_env="GPU_KEY",
        )
        (got,) = exchanges(what, {"GPU_KEY": f" {KEY}\n", "TEAM": "blue"})
    assert got.error is None
    lines = seen[0].decode().split("\r\n")
    assert lines[:2] == ["GET /v1/mo%20dels?q=%C3%BC HTTP/1.1", f"Host: gpu.example:{server.port}"]
    assert set(lines[2:]) == {
        f"User-Agent: hopscope/{__version__}",
        "accept: application/json",
        "Accept-Encoding: identity",
        "X-Tag: 1",
        "X-Team: blue",
        f"Authorization: Bearer {KEY}",
        "",
    }


@pytest.mark.loopback
def test_a_body_from_a_file() -> None:
    seen: list[bytes] = []
    with serve(noting(seen)) as server:
        what = replace(task(server.port), method="POST", body_file="body.json")
        assert len(records(what, files={"body.json": b'{"a": 1}'})) == 1
    assert seen[0].endswith(b'\r\n\r\n{"a": 1}')
    assert b"Content-Type: application/json\r\n" in seen[0]
    assert b"Content-Length: 8\r\n" in seen[0]


@pytest.mark.loopback
def test_proxies_of_the_environment_and_redirects_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with serve(answering(b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")) as server:
        got = exchanges(task(server.port, cold=1, hot=1))
    assert [(each.status, each.error) for each in got] == [(302, None)] * 2


@pytest.mark.loopback
def test_no_record_holds_a_secret() -> None:
    def echo(conn: socket.socket) -> None:
        conn.sendall(read_request(conn).replace(b"GET", KEY.encode()))

    with serve(echo) as server:
        got = records(replace(task(server.port, cold=2), api_key_env="GPU_KEY"), {"GPU_KEY": KEY})
    assert len(got) == 2
    assert KEY not in repr(got)


@pytest.mark.loopback
def test_closing_the_generator_closes_the_connection() -> None:
    gone = threading.Event()

    def script(conn: socket.socket) -> None:
        answering(OK)(conn)
        gone.set()

    async def main(server: Server) -> None:
        ports = HttpPorts(clock=SystemClock(), environ={}, read_file=no_file)
        async with aclosing(run(3, task(server.port, cold=1, hot=5), ports)) as going:
            async for record in going:
                assert isinstance(record, Exchange)
                break

    with serve(script) as server:
        asyncio.run(main(server))
        assert gone.wait(2)


@pytest.mark.loopback
def test_an_authority_of_ones_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    ca = authority(tmp_path_factory.mktemp("ca"))
    with serve(answering(OK), ca.server("DNS:gpu.example")) as server:
        what = replace(task(server.port), url="https://gpu.example/v1", ca_file="ca.pem")
        (got,) = records(what, files={"ca.pem": ca.pem.encode()})
    assert isinstance(got, Exchange)
    assert (got.status, got.error, got.secured is None) == (200, None, False)


@pytest.mark.parametrize(
    ("changes", "kind", "why"),
    [
        ({"api_key_env": "GPU_KEY"}, "rights", "the environment variable GPU_KEY is not set"),
        ({"headers_env": (("X-Key", "EMPTY"),)}, "rights", "the environment variable EMPTY is not set"),
        ({"headers_env": (("X-Key", "BROKEN"),)}, "usage", "header field 'X-Key' has characters HTTP does not allow"),
        ({"headers": (("X Key", "1"),)}, "usage", "header field 'X Key' has characters HTTP does not allow"),
        ({"headers": (("Content-Length", "1"),)}, "usage", "header field Content-Length is HTTP's own"),
        ({"body_file": "body.json"}, "rights", "cannot read body.json: No such file or directory"),
        ({"url": "https://x.example", "ca_file": "bad"}, "usage", "bad holds no certificate in PEM form"),
        ({"url": "ftp://x.example/"}, "usage", "'ftp://x.example/' is no URL of a web server"),
        ({"url": "http://x.example:port/"}, "usage", "'http://x.example:port/' is no URL"),
    ],
)
def test_what_cannot_be_sent_is_a_failure(changes: dict[str, str], kind: str, why: str) -> None:
    environ = {"EMPTY": " ", "BROKEN": f"{KEY}\nX-Other: 1"}
    got = failure(replace(task(80), **changes), environ, {"bad": b"no certificate"})
    assert got.kind == kind
    assert got.why.startswith(why)
    assert KEY not in repr(got)
    assert got.advice


def test_the_http_library_waits_until_it_is_needed() -> None:
    code = "import sys, hopscope.probes.http as _; sys.exit('httpcore' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
