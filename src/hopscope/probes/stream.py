"""Streamed chat completions from one address: some on connections of their own, then some on one that is kept.

One at a time, 50 ms after the one before; each prompt begins with a nonce of its own, past the prefix cache. The first
failure that asking again cannot mend (a silence, a redirect, the client's mistake, a quota) ends the series, three of
another kind in a row do; nothing is asked twice in silence. Time, bytes and memory are bounded whatever a server sends.
"""

from collections.abc import AsyncGenerator, Iterable
from http import HTTPStatus
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from hopscope.engine.stream import Fault, Head, Stop, Stream, refused
from hopscope.model.delta import Moment
from hopscope.model.limits import MS
from hopscope.model.plan import HttpTask, StreamTask
from hopscope.model.record import Exchange, Failure, Streamed
from hopscope.net.ports import Clock
from hopscope.probes.http import FAILURES_IN_A_ROW, PAUSE_NS, HttpPorts, UnreadyError, prepare, tls_context, until
from hopscope.wire import chat
from hopscope.wire.events import Comment, EventStream

if TYPE_CHECKING:
    import ssl

    from hopscope.net.dial import Read
    from hopscope.net.http import Call, Session

AFTER_DONE_NS = 500 * MS
MOST_BYTES = 8 << 20
MOST_BODY_BYTES = 1 << 20
"""What is kept of an answer that is no stream: an error's message, the list of models."""
MOST_NAMES, LONGEST_NAME = 20, 120
"""What is told of the list of models."""

ACCEPT = "text/event-stream, application/json"
RETRY_AFTER = ("retry-after", "retry-after-ms")


class _Chosen(NamedTuple):
    """The model to ask for; `listed` is how many there were where nobody named one, `names` the list if it was read."""

    name: str
    listed: int | None
    names: tuple[str, ...] = ()


class _Answer:
    """Listens to one answer: an event stream where it succeeds, else the beginning of whatever it is."""

    def __init__(self, call: "Call", clock: Clock, *, silence_ns: int, longest_ns: int) -> None:
        self.told: Head | None = None
        self.body = bytearray()
        self.stream = Stream()
        self.stopped: Stop | None = None
        self._call = call
        self._clock = clock
        self._silence_ns = silence_ns
        self._deadline = clock.now() + longest_ns
        self._events = EventStream[Moment]()
        self._bytes = 0
        self._last = Moment(0, None)

    def head(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> int | None:
        """The header of the final response."""
        clean = self._call.cleaned
        fields = {name.decode("latin-1").lower(): clean(value.decode("latin-1")) for name, value in headers}
        name = next((each for each in RETRY_AFTER if each in fields), "")
        wait = fields.get(name, "")
        self.told = Head(
            status=status,
            content_type=fields.get("content-type", ""),
            encoding=fields.get("content-encoding", ""),
            location=fields.get("location", ""),
            retry_after=wait + (" ms" if name == "retry-after-ms" else ""),
            retry_after_ns=chat.retry_after_ns(name, wait, self._clock.now()),
        )
        return self._silence_ns

    def piece(self, data: bytes, read: "Read") -> int | None:
        """A piece of the body; `None` when there is no sense in reading on."""
        self._bytes += len(data)
        self._last = Moment(read.at, read.stamp)
        if not self.stream.begun:
            self.body += data[: MOST_BODY_BYTES - len(self.body)]
        if self.told is not None and _good(self.told.status):
            self._hear(data)
        if self._events.too_long is not None:
            self.stopped = self._events.too_long
        elif self._bytes > MOST_BYTES:
            self.stopped = "bytes"
        elif self._clock.now() > self._deadline:
            self.stopped = "time"
        else:
            return AFTER_DONE_NS if self.stream.done else self._silence_ns
        return None

    def outcome(self, exchange: Exchange) -> Streamed:
        """What the answer was, its fault in the exchange; `[DONE]` ends it well whatever comes after."""
        self._finish()
        fault = self.stream.fault(exchange, self.told, self.stopped)
        streamed = self.stream.streamed(exchange, self.told)
        ended = _failed(exchange, fault, self._call)
        if fault is None and ended.done is None:
            ended = structs.replace(ended, done=streamed.finished)
        return structs.replace(streamed, exchange=ended)

    def _hear(self, data: bytes) -> None:
        for found in self._events.feed(data, self._last):
            if isinstance(found, Comment):
                self.stream.comment(found.mark)
            else:
                self._event(found.data, found.kind, found.mark)

    def _event(self, data: str, kind: str, moment: Moment) -> None:
        delta = chat.read(data, kind)
        clean = self._call.cleaned
        if delta.error is not None or delta.finish_reason is not None:
            delta = structs.replace(
                delta,
                error=None if delta.error is None else clean(delta.error),
                finish_reason=None if delta.finish_reason is None else clean(delta.finish_reason),
            )
        self.stream.event(delta, moment, "" if delta.known else clean(data))

    def _finish(self) -> None:
        """The end: an event without its empty line counts only if it says that all is done; errors have a message."""
        if self.told is None:
            return
        rest = self._events.rest(self._last) if _good(self.told.status) else None
        if rest is not None and chat.read(rest.data).done:
            self._event(rest.data, rest.kind, rest.mark)
        message = chat.refusal(bytes(self.body))
        if message is not None:
            self.told = self.told._replace(message=self._call.cleaned(message))


async def run(task_id: int, task: StreamTask, ports: HttpPorts) -> AsyncGenerator[Streamed | Failure, None]:
    """The completions of one task as they end, or one Failure when there is nothing to send.

    Closing the generator, or cancelling it, closes the connection.
    """
    from hopscope.net.http import Session

    try:
        call = prepare(_http(task, chat.endpoint(task.url), "POST"), ports)
        listing = prepare(_http(task, chat.listing(task.url), "GET"), ports)
        context = tls_context(call, task.ca_file)
    except UnreadyError as error:
        yield Failure(
            kind=error.kind, why=str(error), advice=error.advice, target=task.target, vantage=task.vantage, task=task_id
        )
        return
    model = await _choose(task_id, task, listing, context, ports.clock)
    if isinstance(model, Streamed):
        yield model
        return
    session = Session(call, context, ports.clock, count())
    failures = 0
    due = ports.clock.now()
    try:
        for seq in range(task.cold + task.hot):
            if seq < task.cold:
                session.close()
            await until(due, ports.clock)
            streamed = await _one(session, call, model, task, seq=seq, task_id=task_id, due=due, clock=ports.clock)
            yield streamed
            failures = failures + 1 if streamed.exchange.error else 0
            if _hopeless(streamed.exchange) or failures >= FAILURES_IN_A_ROW:
                return
            due = ports.clock.now() + PAUSE_NS
    finally:
        session.close()


async def _one(
    session: "Session",
    call: "Call",
    model: _Chosen,
    task: StreamTask,
    *,
    seq: int,
    task_id: int,
    due: int,
    clock: Clock,
) -> Streamed:
    """One completion."""
    text = chat.prompt(task.seed, seq, task.prompt_tokens)
    answer = _Answer(call, clock, silence_ns=task.timeout_ns, longest_ns=task.longest_ns)
    exchange = await session.send(
        task=task_id,
        seq=seq,
        scheduled=due,
        dns_ns=task.dns_ns if seq == 0 else None,
        body=chat.body(model.name, text, task.max_tokens),
        listener=answer,
    )
    names = tuple(call.cleaned(each[:LONGEST_NAME]) for each in model.names[:MOST_NAMES]) if task.listing else ()
    name = call.cleaned(model.name)
    return structs.replace(answer.outcome(exchange), model=name, models_listed=model.listed, listed=names)


async def _choose(
    task_id: int, task: StreamTask, call: "Call", context: "ssl.SSLContext | None", clock: Clock
) -> _Chosen | Streamed:
    """The model that was named, else the first that the server lists, else why there is none."""
    from hopscope.net.http import Session

    if task.model is not None and not task.listing:
        return _Chosen(task.model, None)
    session = Session(call, context, clock, count())
    answer = _Answer(call, clock, silence_ns=task.timeout_ns, longest_ns=task.longest_ns)
    try:
        exchange = await session.send(task=task_id, seq=0, scheduled=clock.now(), dns_ns=task.dns_ns, listener=answer)
    finally:
        session.close()
    names = chat.models(bytes(answer.body)) if exchange.error is None and _good(exchange.status) else ()
    if task.model is not None:
        return _Chosen(task.model, None, names)
    if names:
        return _Chosen(names[0], len(names), names)
    return Streamed(task=task_id, exchange=_failed(exchange, _unlisted(exchange, answer.told), call))


def _unlisted(exchange: Exchange, told: Head | None) -> Fault:
    """Why there is no list of models to choose from."""
    if exchange.error is not None:
        return Fault(exchange.error, exchange.detail or "")
    asked = "asked for its models, the server "
    if told is not None and not _good(told.status):
        return Fault("http", f"{asked}answers {refused(told)}; or name one by --model")
    return Fault("http", f"{asked}names none; name one by --model")


def _failed(exchange: Exchange, fault: Fault | None, call: "Call") -> Exchange:
    """The exchange with what was wrong in the end."""
    if fault is None:
        return structs.replace(exchange, error=None, detail=None)
    return structs.replace(exchange, error=fault.kind, detail=call.cleaned(fault.detail))


def _hopeless(exchange: Exchange) -> bool:
    """Whether asking again now would give the same answer, or do harm."""
    status = exchange.status or HTTPStatus.OK
    return exchange.error == "timeout" or HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.INTERNAL_SERVER_ERROR


def _good(status: int | None) -> bool:
    return status is not None and HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES


def _http(task: StreamTask, url: str, method: str) -> HttpTask:
    """A request of the task's, without its body."""
    kind = (("Content-Type", "application/json"),) if method == "POST" else ()
    return HttpTask(
        target=task.target,
        vantage=task.vantage,
        reason=task.reason,
        address=task.address,
        family=task.family,
        port=task.port,
        url=url,
        cold=task.cold,
        hot=task.hot,
        timeout_ns=task.timeout_ns,
        method=method,
        headers=(("Accept", ACCEPT), *kind, *task.headers),
        headers_env=task.headers_env,
        api_key_env=task.api_key_env,
        ca_file=task.ca_file,
        insecure=task.insecure,
        http2=task.http2,
    )
