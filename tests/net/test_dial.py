"""Connections to servers of the test's own: what they are told, when, and how each way of failing is called."""

import asyncio
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hopscope.net.clock import SystemClock
from hopscope.net.dial import Connection, UnansweredError, UnverifiedError, dial
from hopscope.net.tls import Trust
from net.servers import Authority, Script, answering, authority, once, read_request, reset, say, serve, silent

pytestmark = pytest.mark.loopback

REJECTING = """
table inet filter {
    chain input {
        type filter hook input priority 0
        meta nfproto ipv4 tcp dport 81 reject with icmp type admin-prohibited
        meta nfproto ipv6 tcp dport 81 reject with icmpv6 type admin-prohibited
        meta nfproto ipv4 tcp dport 82 reject with icmp type host-unreachable
        meta nfproto ipv4 tcp dport 83 reject with icmp type port-unreachable
        tcp dport 84 reject with tcp reset
    }
}
"""
HOUR_NS = 3_600_000_000_000
REQUEST = b"GET / HTTP/1.1\r\n\r\n"


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority(tmp_path_factory.mktemp("ca"))


class SteppedClock(SystemClock):
    """A clock whose kernel stamps land an hour away, as after a step that nobody saw."""

    def from_realtime(self, stamp: int) -> int:
        return super().from_realtime(stamp) + HOUR_NS


def with_connection(port: int, act: Callable[[Connection], Awaitable[None]], clock: SystemClock | None = None) -> None:
    async def main() -> None:
        connection = await dial("127.0.0.1", 4, port, clock or SystemClock())
        try:
            await act(connection)
        finally:
            connection.close()

    asyncio.run(main())


def test_marks_in_order_and_a_kernel_stamp_before_each_read() -> None:
    async def act(connection: Connection) -> None:
        first, last = await connection.send(REQUEST)
        got = await connection.receive()
        assert connection.dialled <= connection.connected <= first <= last <= got.at
        assert got.data == b"pong"
        if got.stamp is None:
            pytest.skip("no kernel stamps here")
        assert last - 1_000_000 <= got.stamp <= got.at
        assert connection.rtt_ns is not None
        assert connection.min_rtt_ns is not None
        assert connection.retransmits == 0

    with serve(answering(0.02, b"pong")) as server:
        with_connection(server.port, act)


def test_the_stamp_is_the_arrival_and_not_the_reading() -> None:
    async def act(connection: Connection) -> None:
        await connection.send(REQUEST)
        time.sleep(0.2)  # noqa: ASYNC251 - a client that does not get round to reading
        got = await connection.receive()
        if got.stamp is None:
            pytest.skip("no kernel stamps here")
        assert got.at - got.stamp > 100_000_000

    with serve(answering(b"pong")) as server:
        with_connection(server.port, act)


def test_a_stamp_that_cannot_be_true_is_not_used() -> None:
    async def act(connection: Connection) -> None:
        await connection.send(REQUEST)
        assert (await connection.receive()).stamp is None

    with serve(answering(b"pong")) as server:
        with_connection(server.port, act, SteppedClock())


def test_the_end_is_empty() -> None:
    async def act(connection: Connection) -> None:
        await connection.send(REQUEST)
        assert (await connection.receive()).data == b"bye"
        assert (await connection.receive()).data == b""

    with serve(once(b"bye")) as server:
        with_connection(server.port, act)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_by_hand(ca: Authority, version: ssl.TLSVersion) -> None:
    async def act(connection: Connection) -> None:
        context = Trust(ca_pem=ca.pem).context()
        session = await connection.secure(context, "good.example")
        assert connection.secured is not None
        assert connection.connected <= connection.secured
        assert session.version() == version.name.replace("_", ".")
        await connection.send(b"GET / HTTP/1.1\r\nContent-Length: 200000\r\n\r\n" + bytes(200_000))
        got = b""
        while len(got) < 100_000:
            got += (await connection.receive()).data
        assert got == bytes(100_000)

    context = ca.server()
    context.minimum_version = context.maximum_version = version
    with serve(answering(bytes(100_000)), context) as server:
        with_connection(server.port, act)


def test_session_tickets_are_neither_an_answer_nor_an_end(ca: Authority) -> None:
    async def act(connection: Connection) -> None:
        await connection.secure(Trust(ca_pem=ca.pem).context(), "good.example")
        await asyncio.sleep(0.1)
        assert not connection.ended()
        first, _ = await connection.send(REQUEST)
        got = await connection.receive()
        assert got.data == b"pong"
        assert (got.stamp or got.at) - first >= 150_000_000
        await asyncio.sleep(0.1)
        assert connection.ended()

    with serve(once(0.15, b"pong"), ca.server()) as server:
        with_connection(server.port, act)


@pytest.mark.parametrize(
    ("script", "ended"),
    [(answering(b"x"), False), (once(b"x"), True), (answering(b"x", 0.02, b"unasked"), True)],
)
def test_whether_an_idle_connection_has_ended(script: Script, ended: bool) -> None:
    async def act(connection: Connection) -> None:
        await connection.send(REQUEST)
        await connection.receive(1)
        await asyncio.sleep(0.1)
        assert connection.ended() is ended

    with serve(script) as server:
        with_connection(server.port, act)


def failure(port: int, name: str = "good.example", trust: Trust | None = None) -> UnansweredError:
    """How connecting, and with `trust` the handshake, fails."""

    async def act(connection: Connection) -> None:
        if trust is not None:
            await connection.secure(trust.context(), name)

    with pytest.raises(UnansweredError) as caught:
        with_connection(port, act)
    return caught.value


def test_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    refused = failure(port)
    assert refused.kind == "refused"
    assert f"127.0.0.1 port {port}" in refused.detail


def test_where_tcp_cannot_go_is_an_outcome() -> None:
    async def main() -> None:
        connection = await dial("224.0.0.1", 4, 9, SystemClock())
        connection.close()

    with pytest.raises(UnansweredError, match=r"224\.0\.0\.1 port 9") as caught:
        asyncio.run(main())
    assert caught.value.kind == "unreachable"


DIAL_IN_A_BOX = """
import asyncio, sys
from hopscope.net.clock import SystemClock
from hopscope.net.dial import UnansweredError, dial
try:
    asyncio.run(dial(sys.argv[1], 6 if ":" in sys.argv[1] else 4, int(sys.argv[2]), SystemClock()))
except UnansweredError as error:
    print(error.kind, error.detail, sep="|")
"""


@pytest.mark.lab
@pytest.mark.parametrize(
    ("address", "port", "expected"),
    [
        (
            "127.0.0.1",
            81,
            "prohibited|127.0.0.1 port 81: administratively prohibited (ICMP type 3 code 13 from 127.0.0.1)",
        ),
        ("::1", 81, "prohibited|::1 port 81: administratively prohibited (ICMP type 1 code 1 from ::1)"),
        ("127.0.0.1", 82, "unreachable|127.0.0.1 port 82: no route to host (ICMP type 3 code 1 from 127.0.0.1)"),
        ("127.0.0.1", 83, "refused|127.0.0.1 port 83: connection refused (ICMP type 3 code 3 from 127.0.0.1)"),
        ("127.0.0.1", 84, "refused|127.0.0.1 port 84: connection refused"),
    ],
)
def test_who_turned_it_away(address: str, port: int, expected: str) -> None:
    if not all(shutil.which(tool) for tool in ("unshare", "ip", "nft")):
        pytest.skip("needs unshare, ip and nft")
    script = 'ip link set lo up && nft -f - && exec "$@"'
    dialled = (sys.executable, "-c", DIAL_IN_A_BOX, address, str(port))
    box = ("unshare", "--map-root-user", "--net", "sh", "-c", script, "sh", *dialled)
    result = subprocess.run(box, input=REJECTING, capture_output=True, text=True, check=False)
    if "unshare" in result.stderr:
        pytest.skip(f"needs a user namespace: {result.stderr.strip()}")
    assert (result.stdout.strip(), result.stderr) == (expected, "")


def test_reset_while_reading() -> None:
    async def act(connection: Connection) -> None:
        await connection.send(REQUEST)
        assert (await connection.receive()).data == b"half"
        with pytest.raises(UnansweredError, match="reset") as caught:
            await connection.receive()
        assert caught.value.kind == "cut"

    def half(conn: socket.socket) -> None:
        read_request(conn)
        say(conn, (b"half", 0.05))
        reset(conn)

    with serve(half) as server:
        with_connection(server.port, act)


@pytest.mark.parametrize(
    ("names", "days", "expected"),
    [
        pytest.param("DNS:good.example", -1, "certificate expired", id="expired"),
        pytest.param("DNS:other.example", 30, "certificate is not for good.example", id="another name"),
    ],
)
def test_a_certificate_that_is_not_accepted(ca: Authority, names: str, days: int, expected: str) -> None:
    with serve(silent, ca.server(names, days=days)) as server:
        refused = failure(server.port, trust=Trust(ca_pem=ca.pem))
    assert isinstance(refused, UnverifiedError)
    assert refused.detail.startswith(expected)
    assert refused.certificate is not None
    assert refused.certificate.verified is False


def test_a_certificate_that_signed_itself(ca: Authority) -> None:
    with serve(silent, ca.self_signed()) as server:
        assert failure(server.port, trust=Trust(ca_pem=ca.pem)).detail == "self-signed certificate"


def test_an_authority_that_nobody_knows(ca: Authority, tmp_path: Path) -> None:
    other = authority(tmp_path)
    with serve(silent, other.server()) as server:
        assert "unknown authority" in failure(server.port, trust=Trust(ca_pem=ca.pem)).detail


def test_a_literal_address_is_checked_as_one(ca: Authority) -> None:
    async def act(connection: Connection) -> None:
        await connection.secure(Trust(ca_pem=ca.pem).context(), "127.0.0.1")

    seen: list[str | None] = []
    context = ca.server()
    context.sni_callback = lambda _socket, name, _context: seen.append(name)
    with serve(silent, context) as server:
        with_connection(server.port, act)
    assert seen == [None]


def test_tls_older_than_1_2(ca: Authority) -> None:
    context = ca.server()
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with serve(silent, context) as server:
        old = failure(server.port, trust=Trust(ca_pem=ca.pem))
    assert (old.kind, "no TLS version in common" in old.detail) == ("tls", True)


def greets_without_end(conn: socket.socket) -> None:
    """HelloRequests (RFC 5246 §7.4.1.1), which a client in its handshake may ignore."""
    with suppress(OSError):
        for _ in range(4000):
            conn.sendall(b"\x16\x03\x03\x00\x04\x00\x00\x00\x00" * 100)


def reset_at_once(conn: socket.socket) -> None:
    conn.recv(9)
    reset(conn)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param(lambda _: None, "closed the connection during the TLS handshake", id="closes"),
        pytest.param(lambda conn: conn.sendall(b"SSH-2.0-x\r\n"), "speaks SSH", id="ssh"),
        pytest.param(lambda conn: say(conn, (b"HTTP/1.1 400 Bad\r\n\r\n",)), "speaks plain HTTP", id="plain http"),
        pytest.param(lambda conn: conn.sendall(b"garbage" * 9), "not TLS", id="garbage"),
        pytest.param(reset_at_once, "during the TLS handshake", id="reset"),
        pytest.param(greets_without_end, "does not end within 1024 KiB", id="hello requests without end"),
    ],
)
def test_a_port_that_does_not_speak_tls(ca: Authority, script: Script, expected: str) -> None:
    def first_hear(conn: socket.socket) -> None:
        conn.recv(65_536, socket.MSG_PEEK)
        script(conn)
        conn.shutdown(socket.SHUT_WR)
        silent(conn)

    with serve(first_hear) as server:
        refused = failure(server.port, trust=Trust(ca_pem=ca.pem))
    assert refused.kind == "tls"
    assert expected in refused.detail


def test_a_cancelled_dial_leaves_nothing_behind(ca: Authority) -> None:
    async def main(port: int) -> None:
        connection = await dial("127.0.0.1", 4, port, SystemClock())
        waiting = asyncio.create_task(connection.receive())
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        connection.close()
        connection.close()

    with serve(silent) as server:
        asyncio.run(main(server.port))
