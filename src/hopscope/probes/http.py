"""HTTP requests to one address: some on connections of their own, then some on one that is kept (method 5).

One request at a time, 50 ms after the one before. The hot ones use the connection of the last cold one; if the server
has closed it, the request goes out on a new connection and its record says `cold`. A target that fails is not asked
to the end: at most three times in a row, once if it let the time run out. Secrets are read here, from the mapping
given, and go nowhere but into the request.
"""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote, urlsplit

from hopscope import __version__
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import HttpTask
from hopscope.model.record import Drop, Exchange, Failure
from hopscope.net.ports import Clock

if TYPE_CHECKING:
    from hopscope.net.http import Call, Session

PAUSE_NS = 50 * MS
FAILURES_IN_A_ROW = 3
REPEATABLE = {"GET", "HEAD", "OPTIONS"}
WITH_BODY = {"POST", "PUT", "PATCH"}

DEFAULT_PORTS = {"http": 80, "https": 443}
FIELD_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
UNPRINTABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
FRAMING = {"content-length", "transfer-encoding", "connection", "expect", "upgrade", "te", "trailer"}
"""Header fields that are not the user's to write."""
TELLING = {"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie"}
"""Header fields whose value is a secret wherever it comes from."""
SAFE_IN_TARGET = "%/:@!$&'()*+,;=~-._?"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpPorts:
    """What the probe needs from outside. `read_file` returns a file's bytes, or raises OSError."""

    clock: Clock
    environ: Mapping[str, str]
    read_file: Callable[[str], bytes]


class UnreadyError(Exception):
    """The request cannot be put together: becomes a Failure."""

    def __init__(self, kind: Literal["rights", "usage"], why: str, advice: str) -> None:
        super().__init__(why)
        self.kind: Literal["rights", "usage"] = kind
        self.advice = advice


async def run(task_id: int, task: HttpTask, ports: HttpPorts) -> AsyncGenerator[Exchange | Failure | Drop, None]:
    """The exchanges of one task as they end, or one Failure when there is nothing to send.

    Closing the generator, or cancelling it, closes the connection.
    """
    from hopscope.net.http import Session

    try:
        call = prepare(task, ports)
        context = tls_context(call, task.ca_file)
    except UnreadyError as error:
        yield Failure(
            kind=error.kind,
            why=str(error),
            advice=error.advice,
            target=task.target,
            vantage=task.vantage,
            task=task_id,
        )
        return
    numbers = count()
    session = Session(call, context, ports.clock, numbers)
    failures = 0
    due = ports.clock.now()
    try:
        for seq in range(task.cold + task.hot):
            if seq < task.cold:
                session.close()
            await until(due, ports.clock)
            dns_ns = task.dns_ns if seq == 0 else None
            exchange = await _one(session, call, task=task_id, seq=seq, scheduled=due, dns_ns=dns_ns)
            yield exchange
            failures = failures + 1 if exchange.error else 0
            if exchange.error == "timeout" or failures >= FAILURES_IN_A_ROW:
                return
            due = ports.clock.now() + PAUSE_NS
    finally:
        session.close()


async def _one(
    session: "Session", call: "Call", *, task: int, seq: int, scheduled: int, dns_ns: int | None
) -> Exchange:
    """One request, sent once more where a server closed the kept connection just as it was sent (RFC 9110 §9.2.2)."""
    exchange = await session.send(task=task, seq=seq, scheduled=scheduled, dns_ns=dns_ns)
    crossed = exchange.error == "cut" and not exchange.cold and exchange.bytes_down == 0
    if crossed and call.method in REPEATABLE:
        return await session.send(task=task, seq=seq, scheduled=scheduled)
    return exchange


async def until(due: int, clock: Clock) -> None:
    """Wait until an instant."""
    wait = due - clock.now()
    if wait > 0:
        await asyncio.sleep(wait / SECOND)


def prepare(task: HttpTask, ports: HttpPorts) -> "Call":
    """The request as it will be sent. Raises UnreadyError."""
    from hopscope.net.http import Call
    from hopscope.net.tls import Trust

    scheme, host, authority, target = _parts(task.url)
    body = _file(task.body_file, ports) if task.body_file else b"" if task.method in WITH_BODY else None
    ca_pem = _file(task.ca_file, ports).decode("ascii", "replace") if task.ca_file else None
    headers, secrets = _headers(task, authority, ports.environ)
    return Call(
        address=task.address,
        family=task.family,
        port=task.port,
        scheme=scheme,
        host=host,
        target=target,
        method=task.method,
        trust=Trust(ca_pem=ca_pem, insecure=task.insecure),
        timeout_ns=task.timeout_ns,
        http2=task.http2,
        headers=headers,
        body=body,
        secrets=secrets,
    )


def tls_context(call: "Call", ca_file: str | None) -> ssl.SSLContext | None:
    """What HTTPS trusts, `None` for plain HTTP. Raises UnreadyError."""
    if call.scheme != "https":
        return None
    try:
        return call.trust.context()
    except ssl.SSLError as error:
        raise UnreadyError(
            "usage", f"{ca_file} holds no certificate in PEM form", "Name the authority's file."
        ) from error


def _parts(text: str) -> tuple[str, str, str, str]:
    """Scheme, host, authority and target of a URL, in ASCII (RFC 3986 §3, RFC 9110 §4.2). Raises UnreadyError."""
    try:
        url = urlsplit(text)
        host = (url.hostname or "").encode("idna" if not text.isascii() else "ascii").decode("ascii")
        port = url.port
    except ValueError as error:
        raise UnreadyError("usage", f"{text!r} is no URL: {error}", "Check host and port.") from error
    if url.scheme not in DEFAULT_PORTS or not host:
        raise UnreadyError("usage", f"{text!r} is no URL of a web server", "Write http:// or https:// and a host.")
    authority = f"[{host}]" if ":" in host else host
    if port not in (None, DEFAULT_PORTS[url.scheme]):
        authority += f":{port}"
    query = f"?{quote(url.query, safe=SAFE_IN_TARGET)}" if url.query else ""
    return url.scheme, host, authority, quote(url.path or "/", safe=SAFE_IN_TARGET) + query


def _file(path: str, ports: HttpPorts) -> bytes:
    try:
        return ports.read_file(path)
    except OSError as error:
        raise UnreadyError(
            "rights", f"cannot read {path}: {error.strerror}", "Name a file that is readable."
        ) from error


def _headers(
    task: HttpTask, authority: str, environ: Mapping[str, str]
) -> tuple[tuple[tuple[bytes, bytes], ...], tuple[str, ...]]:
    """Header fields, and the secret values among them. Later ones replace earlier ones. Raises UnreadyError."""
    fields = {
        "host": ("Host", authority),
        "user-agent": ("User-Agent", f"hopscope/{__version__}"),
        "accept": ("Accept", "*/*"),
        "accept-encoding": ("Accept-Encoding", "identity"),
    }
    if task.body_file:
        fields["content-type"] = ("Content-Type", "application/json")
    secrets: list[str] = []
    for name, value in task.headers:
        fields[name.lower()] = (name, value)
        secrets += [value] if name.lower() in TELLING else []
    for name, variable in task.headers_env:
        value = _variable(environ, variable)
        fields[name.lower()] = (name, value)
        secrets += [value, *value.split()]
    if task.api_key_env is not None:
        key = _variable(environ, task.api_key_env)
        fields.setdefault("authorization", ("Authorization", f"Bearer {key}"))
        secrets.append(key)
    for name, value in fields.values():
        _check_field(name, value)
    encoded = tuple((name.encode("ascii"), value.encode("utf-8")) for name, value in fields.values())
    return encoded, tuple(sorted(set(secrets), key=len, reverse=True))


def _variable(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name, "").strip()
    if not value:
        raise UnreadyError("rights", f"the environment variable {name} is not set", f"Set {name} and run again.")
    return value


def _check_field(name: str, value: str) -> None:
    """RFC 9110 §5.1 and §5.5. The value is not told: it may be a secret."""
    if not FIELD_NAME.fullmatch(name) or UNPRINTABLE.search(value):
        raise UnreadyError("usage", f"header field {name!r} has characters HTTP does not allow", "Check it for breaks.")
    if name.lower() in FRAMING:
        raise UnreadyError("usage", f"header field {name} is HTTP's own", "Leave it out.")
