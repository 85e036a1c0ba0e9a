"""Whole requests to servers of the test's own: the marks of each, and what every way of going wrong is called."""

import asyncio
import itertools
import socket
import ssl
import threading
from collections.abc import Sequence
from dataclasses import replace

import h2.config
import h2.connection
import h2.events
import pytest

from hopscope.model.record import Exchange
from hopscope.net.clock import SystemClock
from hopscope.net.http import Call, Session
from hopscope.net.tls import Trust
from net.servers import OK, Authority, Script, answering, authority, once, read_request, reset, say, serve, silent

pytestmark = pytest.mark.loopback

MS = 1_000_000
KEY = "sk-very-secret-0123456789"


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority(tmp_path_factory.mktemp("ca"))


def call(port: int, scheme: str = "http", host: str = "good.example", trust: Trust | None = None) -> Call:
    return Call(
        address="127.0.0.1",
        family=4,
        port=port,
        scheme=scheme,
        host=host,
        target="/v1/models?limit=1",
        method="GET",
        trust=trust or Trust(),
        timeout_ns=2_000 * MS,
        headers=((b"Host", host.encode()), (b"Authorization", b"Bearer " + KEY.encode())),
        secrets=(KEY,),
    )


def ask(what: Call, times: int = 1, pause: float = 0.02, clock: SystemClock | None = None) -> list[Exchange]:
    """The exchanges of one session."""

    async def main() -> list[Exchange]:
        context = what.trust.context() if what.scheme == "https" else None
        session = Session(what, context, clock or SystemClock(), itertools.count())
        got: list[Exchange] = []
        try:
            for seq in range(times):
                got.append(await session.send(task=7, seq=seq, scheduled=seq))
                await asyncio.sleep(pause)
        finally:
            session.close()
        return got

    return asyncio.run(main())


def in_order(exchange: Exchange) -> list[int]:
    marks: Sequence[int | None] = (
        exchange.dialled,
        exchange.connected,
        exchange.secured,
        exchange.sent_first,
        exchange.sent_last,
        exchange.head,
        exchange.done,
    )
    return [mark for mark in marks if mark is not None]


def wait_ms(exchange: Exchange) -> float:
    assert exchange.head is not None
    assert exchange.sent_last is not None
    return (exchange.head - exchange.sent_last) / MS


def test_marks_of_a_plain_request() -> None:
    with serve(answering(0.05, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", 0.05, b"ok")) as server:
        (got,) = ask(call(server.port))
    assert got.error is None
    assert (got.task, got.seq, got.cold, got.connection, got.status, got.http_version) == (7, 0, True, 0, 200, "1.1")
    marks = in_order(got)
    assert len(marks) == 6
    assert marks == sorted(marks)
    assert wait_ms(got) >= 49
    assert got.done is not None
    assert got.head is not None
    assert (got.done - got.head) / MS >= 40
    assert got.bytes_down == 40
    assert got.bytes_up > 100
    if got.level == 2:
        assert got.retransmits == 0
        assert got.rtt_ns
        assert got.min_rtt_ns
    if got.clock == "kernel":
        assert got.lag_ns is not None
        assert got.lag_ns >= 0


def test_a_kept_connection_is_used_again_and_a_closed_one_is_not() -> None:
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
    with serve(answering(OK)) as server:
        kept = ask(call(server.port), 3)
    assert [(each.cold, each.connection, each.error) for each in kept] == [(True, 0, None), *[(False, 0, None)] * 2]
    assert [(each.dialled, each.connected) for each in kept[1:]] == [(None, None)] * 2
    for script in (answering(closing), once(OK)):
        with serve(script) as server:
            closed = ask(call(server.port), 3)
        assert [(each.cold, each.connection, each.error) for each in closed] == [(True, n, None) for n in range(3)]


def test_head_and_body_leave_in_one_segment() -> None:
    reads: list[bytes] = []

    def script(conn: socket.socket) -> None:
        threading.Event().wait(0.05)
        reads.append(conn.recv(65_536))
        conn.sendall(OK)

    with serve(script) as server:
        (got,) = ask(replace(call(server.port), method="POST", body=b'{"model": "x"}'))
    assert got.status == 200
    assert reads[0].endswith(b'\r\n\r\n{"model": "x"}')
    assert b"Content-Length: 14" in reads[0]
    assert reads[0].startswith(b"POST /v1/models?limit=1 HTTP/1.1\r\nHost: good.example\r\n")


def test_interim_heads_are_not_the_answer() -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    with serve(answering(b"HTTP/1.1 100 Continue\r\n\r\n", 0.05, interim, 0.05, OK)) as server:
        (got,) = ask(call(server.port))
    assert got.status == 200
    assert wait_ms(got) >= 95


def test_the_answer_begins_with_its_first_byte() -> None:
    with serve(answering(0.05, b"H", 0.1, b"TTP/1.1 200 OK\r\nContent-", 0.1, b"Length: 0\r\n\r\n")) as server:
        (got,) = ask(call(server.port))
    assert 49 <= wait_ms(got) < 140


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tickets_are_not_the_answer(ca: Authority, version: ssl.TLSVersion) -> None:
    context = ca.server()
    context.minimum_version = context.maximum_version = version
    with serve(answering(0.1, OK), context) as server:
        got = ask(call(server.port, "https", trust=Trust(ca_pem=ca.pem)), 2, pause=0.1)
    assert [each.error for each in got] == [None, None]
    assert [each.cold for each in got] == [True, False]
    assert min(wait_ms(each) for each in got) >= 99
    assert in_order(got[0]) == sorted(in_order(got[0]))
    shown = got[0].certificate
    assert shown is not None
    assert (shown.version, shown.verified, shown.resumed) == (version.name.replace("_", "."), True, False)
    assert shown.names == ("good.example", "127.0.0.1")
    assert (shown.subject, shown.issuer) == ("CN=leaf", "CN=test authority")
    assert shown.not_after is not None
    days_left = (shown.not_after - SystemClock().now()) / (86_400_000 * MS)
    assert 29 < days_left <= 30
    assert got[1].certificate is None


@pytest.mark.parametrize(
    ("names", "days", "why"),
    [
        pytest.param("DNS:good.example", -2, "certificate expired on 20", id="expired"),
        pytest.param(
            "DNS:a.example,DNS:b.example,DNS:c.example,DNS:d.example",
            30,
            "certificate is not for good.example but for a.example, b.example, c.example and 1 more",
            id="other names",
        ),
    ],
)
def test_a_refused_certificate_is_read_all_the_same(ca: Authority, names: str, days: int, why: str) -> None:
    with serve(answering(OK), ca.server(names, days=days)) as server:
        (got,) = ask(call(server.port, "https", trust=Trust(ca_pem=ca.pem)))
    assert (got.error, got.status, got.secured, got.sent_first) == ("tls", None, None, None)
    assert got.detail is not None
    assert got.detail.startswith(why)
    assert got.certificate is not None
    assert got.certificate.verified is False
    assert got.certificate.why == got.detail
    assert got.certificate.not_after is not None
    assert got.certificate.names == tuple(name.removeprefix("DNS:") for name in names.split(","))


def test_certificates_without_a_trusted_authority(ca: Authority) -> None:
    with serve(answering(OK), ca.self_signed()) as server:
        (refused,) = ask(call(server.port, "https", trust=Trust(ca_pem=ca.pem)))
        (asked,) = ask(call(server.port, "https", trust=Trust(insecure=True)))
    assert (refused.error, refused.detail) == ("tls", "self-signed certificate")
    assert refused.certificate is not None
    assert (refused.certificate.verified, refused.certificate.names) == (False, ())
    assert (asked.error, asked.status) == (None, 200)
    assert asked.certificate is not None
    assert (asked.certificate.verified, asked.certificate.why) == (None, "not checked, as asked")
    assert asked.certificate.cipher


def half_then_reset(conn: socket.socket) -> None:
    read_request(conn)
    say(conn, (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", 0.05))
    reset(conn)


def reset_on_request(conn: socket.socket) -> None:
    read_request(conn)
    reset(conn)


@pytest.mark.parametrize(
    ("script", "error", "detail"),
    [
        pytest.param(half_then_reset, "cut", "reset inside the response, after 42 bytes", id="reset in the body"),
        pytest.param(reset_on_request, "cut", "the connection was reset without an answer", id="reset"),
        pytest.param(once(), "cut", "the server closed the connection without an answer", id="closed"),
        pytest.param(once(b"HTTP/1.1 200 O"), "cut", "closed the connection inside the header", id="cut in the head"),
        pytest.param(
            once(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"),
            "cut",
            "closed the connection inside the response",
            id="cut in a chunk",
        ),
        pytest.param(
            once(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 0.1),
            "http",
            "malformed response: illegal chunk header",
            id="no chunk",
        ),
        pytest.param(
            once(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n", 0.1),
            "http",
            "malformed response: conflicting Content-Length",
            id="two lengths",
        ),
        pytest.param(
            once(b"SPAM \x1b[31m you\r\n\r\n", 0.1),
            "http",
            "malformed response: illegal status line; the response begins: SPAM \\x1b[31m you",
            id="another language",
        ),
        pytest.param(once(b"SSH-2.0-x\r\n\r\n", 0.1), "http", "the port speaks SSH, not plain HTTP", id="ssh"),
        pytest.param(
            once(b"\x15\x03\x01\x00\x02\x02\x46"),
            "http",
            "the port speaks TLS, not plain HTTP: use https://",
            id="TLS on a plain port",
        ),
        pytest.param(
            once(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 30_000, 0.1),
            "http",
            "the response header does not end within 100 KiB",
            id="endless head",
        ),
        pytest.param(
            once(*[b"HTTP/1.1 100 Continue\r\n\r\n" * 2_000] * 40, 0.1),
            "http",
            "no final response header within 256 KiB",
            id="endless interim answers",
        ),
        pytest.param(
            once(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(300_000)), "cut", "longer than 200000 bytes", id="endless body"
        ),
    ],
)
def test_what_goes_wrong_after_the_request(script: Script, error: str, detail: str) -> None:
    with serve(script) as server:
        (got,) = ask(replace(call(server.port), body_limit=200_000))
    assert got.error == error
    assert got.detail is not None
    assert detail in got.detail
    assert len(got.detail) <= 300
    assert got.done is None
    assert in_order(got) == sorted(in_order(got))


def test_tls_to_a_plain_port(ca: Authority) -> None:
    with serve(lambda conn: say(conn, (b"HTTP/1.1 400 Bad Request\r\n\r\n", 0.1))) as server:
        (got,) = ask(call(server.port, "https", trust=Trust(ca_pem=ca.pem)))
    assert (got.error, got.detail) == ("tls", "the port speaks plain HTTP, not TLS")


def test_plain_http_to_a_tls_port(ca: Authority) -> None:
    with serve(answering(OK), ca.server()) as server:
        (got,) = ask(call(server.port))
    assert got.status is None
    assert (got.error, got.detail) in [
        ("http", "the port speaks TLS, not plain HTTP: use https://"),
        ("cut", "the server closed the connection without an answer"),
        ("cut", "the connection was reset without an answer"),
    ]


@pytest.mark.parametrize(
    ("script", "detail"),
    [
        (silent, "no response header within 0.2 s"),
        (answering(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), "body not finished within 0.2 s"),
        (answering(b"HTTP/1.1 100 Continue\r\n\r\n"), "no response header within 0.2 s"),
    ],
)
def test_time_runs_out(script: Script, detail: str) -> None:
    with serve(script) as server:
        (got,) = ask(replace(call(server.port), timeout_ns=200 * MS))
    assert (got.error, got.detail) == ("timeout", detail)
    assert got.sent_last is not None


def test_time_runs_out_in_the_handshake(ca: Authority) -> None:
    with serve(silent) as server:
        (got,) = ask(replace(call(server.port, "https", trust=Trust(ca_pem=ca.pem)), timeout_ns=200 * MS))
    says = "TLS handshake not finished within 0.2 s: the port takes connections, and speaks no TLS"
    assert (got.error, got.detail) == ("tls", says)
    assert got.connected is not None
    assert got.secured is None


def test_refused_is_an_exchange_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    (got,) = ask(call(port))
    assert (got.error, got.connected, got.sent_first, got.status) == ("refused", None, None, None)
    assert got.dialled is not None


def test_a_server_that_answers_before_it_has_read_everything() -> None:
    def script(conn: socket.socket) -> None:
        conn.recv(1000)
        say(conn, (b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", 0.05))
        reset(conn)

    with serve(script) as server:
        (got,) = ask(replace(call(server.port), method="POST", body=bytes(20_000_000)))
    assert got.status in (413, None)
    assert got.error in (None, "cut")


def test_no_secret_is_told_even_if_the_server_sends_it_back() -> None:
    def echo(conn: socket.socket) -> None:
        request = read_request(conn)
        conn.sendall(f"{KEY} is\r\n".encode() + request)
        silent(conn)

    def claim(conn: socket.socket) -> None:
        read_request(conn)
        conn.sendall(f"HTTP/1.1 200 OK\r\nServer-Timing: {KEY};dur=1, db;dur=2\r\nContent-Length: 0\r\n\r\n".encode())
        silent(conn)

    with serve(echo) as server:
        (echoed,) = ask(call(server.port))
    assert echoed.error == "http"
    assert KEY not in repr(echoed)
    with serve(claim) as server:
        (claimed,) = ask(call(server.port))
    assert [each.name for each in claimed.claims] == ["db"]
    assert KEY not in repr(call(1))


def test_a_clock_step_leaves_the_monotonic_times() -> None:
    class Stepping(SystemClock):
        readings = 0

        def offset(self) -> int:
            self.readings += 1
            return super().offset() + (3_600_000 * MS if self.readings > 2 else 0)

    with serve(answering(0.05, OK)) as server:
        (got,) = ask(call(server.port), clock=Stepping())
    assert got.clock == "user"
    assert got.lag_ns is None
    assert 49 <= wait_ms(got) < 1_000


def test_cancelling_closes_the_connection() -> None:
    async def main(port: int) -> None:
        session = Session(call(port), None, SystemClock(), itertools.count())
        sending = asyncio.create_task(session.send(task=1, seq=0, scheduled=0))
        await asyncio.sleep(0.1)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending

    gone = threading.Event()

    def script(conn: socket.socket) -> None:
        silent(conn)
        gone.set()

    with serve(script) as server:
        asyncio.run(main(server.port))
        assert gone.wait(2)


def http2(*, interim: bool = False, body: bytes = b"ok", reset_stream: bool = False, pause: float = 0.1) -> Script:
    """A server of HTTP/2 that thinks for `pause` seconds after everything that is not yet the answer."""

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
        say(conn, (state.data_to_send(), pause))
        if interim:
            state.send_headers(stream, [(":status", "103"), ("link", "</x>")])
            say(conn, (state.data_to_send(), pause))
        if reset_stream:
            state.reset_stream(stream, error_code=2)
            return
        state.send_headers(stream, [(":status", "200"), ("openai-processing-ms", "42")])
        state.send_data(stream, body, end_stream=True)

    return script


@pytest.mark.parametrize(("interim", "least"), [(False, 99), (True, 198)])
def test_http2(ca: Authority, interim: bool, least: float) -> None:
    context = ca.server()
    context.set_alpn_protocols(["h2", "http/1.1"])
    with serve(http2(interim=interim), context) as server:
        got = ask(replace(call(server.port, "https", trust=Trust(ca_pem=ca.pem)), http2=True), 3)
    assert [(each.error, each.status, each.http_version, each.cold) for each in got] == [
        (None, 200, "2", True),
        (None, 200, "2", False),
        (None, 200, "2", False),
    ]
    assert min(wait_ms(each) for each in got) >= least
    assert [each.claims[0].value_ms for each in got] == [42.0] * 3
    assert got[0].certificate is not None
    assert got[0].certificate.alpn == "h2"
    assert all(in_order(each) == sorted(in_order(each)) for each in got)


def test_http2_to_a_server_without_it(ca: Authority) -> None:
    with serve(answering(OK), ca.server()) as server:
        (got,) = ask(replace(call(server.port, "https", trust=Trust(ca_pem=ca.pem)), http2=True))
    assert (got.error, got.http_version) == (None, "1.1")


@pytest.mark.parametrize(
    ("script", "error", "detail"),
    [
        (http2(reset_stream=True, pause=0), "cut", "the server ended the request (HTTP/2 error 2)"),
        (once(), "cut", "the server closed the connection"),
        (lambda conn: say(conn, (b"\x00\x00\x05\x00\x00\x00\x00\x00\x07hello", 0.1)), "http", "malformed response"),
    ],
)
def test_http2_going_wrong(ca: Authority, script: Script, error: str, detail: str) -> None:
    def then_close(conn: socket.socket) -> None:
        script(conn)

    context = ca.server()
    context.set_alpn_protocols(["h2"])
    with serve(then_close, context) as server:
        what = replace(call(server.port, "https", trust=Trust(ca_pem=ca.pem)), http2=True, timeout_ns=1_000 * MS)
        (got,) = ask(what)
    assert got.error == error
    assert got.detail is not None
    assert detail in got.detail
