"""Servers that do exactly one thing, each connection on its own thread, and the certificates they show."""

import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

Script = Callable[[socket.socket], None]

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
HELLO_AFTER_SECONDS = 10.0


@dataclass
class Server:
    """Where it listens and how many connections it has taken."""

    port: int
    accepted: list[socket.socket] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)


@contextmanager
def serve(script: Script, context: ssl.SSLContext | None = None) -> Iterator[Server]:
    """Run `script` for every connection, after a TLS handshake if there is a context."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(listener.getsockname()[1])
        threads = [threading.Thread(target=_accept, args=(listener, server, script, context))]
        threads[0].start()
        try:
            yield server
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for conn in server.accepted:
                _quietly(conn.shutdown, socket.SHUT_RDWR)
            threads[0].join()


def _accept(listener: socket.socket, server: Server, script: Script, context: ssl.SSLContext | None) -> None:
    threads: list[threading.Thread] = []
    while True:
        try:
            conn, _ = listener.accept()
        except OSError:
            break
        conn.settimeout(HELLO_AFTER_SECONDS)
        server.accepted.append(conn)
        threads.append(threading.Thread(target=_handle, args=(conn, script, context)))
        threads[-1].start()
    for thread in threads:
        thread.join()


def _handle(conn: socket.socket, script: Script, context: ssl.SSLContext | None) -> None:
    with conn:
        try:
            if context is None:
                script(conn)
            else:
                with context.wrap_socket(conn, server_side=True) as secured:
                    script(secured)
        except OSError:
            return


def _quietly(action: Callable[[int], None], argument: int) -> None:
    try:
        action(argument)
    except OSError:
        return


def read_request(conn: socket.socket) -> bytes:
    """One request with its body; empty when the client has closed."""
    got = b""
    while b"\r\n\r\n" not in got:
        part = conn.recv(65_536)
        if not part:
            return b""
        got += part
    head, _, body = got.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length:
        body += conn.recv(65_536)
    return head + b"\r\n\r\n" + body


def answering(*pieces: bytes | float) -> Script:
    """Answer every request with these bytes; a number is a pause in seconds."""
    return lambda conn: _answer_all(conn, pieces)


def _answer_all(conn: socket.socket, pieces: tuple[bytes | float, ...]) -> None:
    while read_request(conn):
        say(conn, pieces)


def once(*pieces: bytes | float) -> Script:
    """Answer one request with these bytes and close."""

    def script(conn: socket.socket) -> None:
        if read_request(conn):
            say(conn, pieces)

    return script


def say(conn: socket.socket, pieces: tuple[bytes | float, ...]) -> None:
    pause = threading.Event()
    for piece in pieces:
        if isinstance(piece, bytes):
            conn.sendall(piece)
        else:
            pause.wait(piece)


def reset(conn: socket.socket) -> None:
    """Close with a RST."""
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    conn.close()


def silent(conn: socket.socket) -> None:
    """Say nothing until the client has gone."""
    while conn.recv(65_536):
        pass


@dataclass(frozen=True)
class Authority:
    """A certificate authority in a folder. Leaves are made as they are asked for."""

    folder: Path

    @property
    def pem(self) -> str:
        return (self.folder / "ca.pem").read_text()

    def server(self, names: str = "DNS:good.example,IP:127.0.0.1", *, days: int = 30) -> ssl.SSLContext:
        """A context for a leaf with these names, signed by the authority, ending that many days from now."""
        stem = self.folder / f"leaf-{abs(hash((names, days)))}"
        if not stem.with_suffix(".pem").exists():
            self._sign(stem, names, days)
        return _context(stem)

    def self_signed(self) -> ssl.SSLContext:
        """A context for a leaf that signed itself."""
        stem = self.folder / "self"
        alternative = ("-addext", "subjectAltName=DNS:good.example,IP:127.0.0.1")
        openssl("req", "-x509", *NEW_KEY, "-subj", "/CN=good.example", *alternative, *_out(stem))
        return _context(stem)

    def _sign(self, stem: Path, names: str, days: int) -> None:
        request = stem.with_suffix(".csr")
        key = ("-keyout", str(stem.with_suffix(".key")))
        openssl(
            "req",
            "-new",
            *NEW_KEY,
            "-subj",
            "/CN=leaf",
            "-addext",
            f"subjectAltName={names}",
            *key,
            "-out",
            str(request),
        )
        now = datetime.now(UTC)
        openssl(
            *("ca", "-batch", "-notext", "-config", str(self.folder / "ca.cnf")),
            *("-in", str(request), "-out", str(stem.with_suffix(".pem"))),
            *("-startdate", f"{now - timedelta(days=60):{STAMP}}", "-enddate", f"{now + timedelta(days=days):{STAMP}}"),
        )


STAMP = "%Y%m%d%H%M%SZ"
NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
CONFIGURATION = """\
[ca]
default_ca = here
[here]
database = {folder}/database
new_certs_dir = {folder}
certificate = {folder}/ca.pem
private_key = {folder}/ca.key
rand_serial = yes
unique_subject = no
default_md = sha256
policy = any
copy_extensions = copy
[any]
commonName = supplied
"""


def authority(folder: Path) -> Authority:
    """Make an authority in an empty folder."""
    (folder / "database").touch()
    (folder / "ca.cnf").write_text(CONFIGURATION.format(folder=folder))
    openssl("req", "-x509", *NEW_KEY, "-days", "30", "-subj", "/CN=test authority", *_out(folder / "ca"))
    return Authority(folder)


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def _out(stem: Path) -> tuple[str, ...]:
    return ("-keyout", str(stem.with_suffix(".key")), "-out", str(stem.with_suffix(".pem")))


def _context(stem: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(stem.with_suffix(".pem"), stem.with_suffix(".key"))
    return context
