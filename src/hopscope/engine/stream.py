"""One streamed answer, event by event: what came when, and in one line what was wrong with it. Rules 5.6 and 5.10.

This file does no I/O and never asks what time it is; it is told. Both clocks of every event are kept until the end,
because only then it is known whether the kernel's can be believed (method 1.3). Whatever a server sends, memory has a
bound. Text of the server's must be fit to be shown before it comes here.
"""

from array import array
from http import HTTPStatus
from itertools import pairwise
from typing import Literal, NamedTuple

from hopscope.model.delta import Delta, Moment
from hopscope.model.limits import SECOND
from hopscope.model.record import ErrorClass, Exchange, Streamed

MOST_TOKEN_EVENTS = 100_000
MOST_COMMENTS = 5_000
HIGH_SHARE = 0.99
QUOTED = 100
QUOTED_SHORT = 40

Stop = Literal["line", "event", "bytes", "time"]

CHECK_URL = "check that the URL is a chat endpoint that streams"
CHECK_LOGS = "see the log of the server, and the timeouts of proxies before it"
ADVICE: dict[int, str] = {
    401: "name a variable that holds a valid key by --api-key-env",
    403: "name a variable that holds a key with the right to this model by --api-key-env",
    404: "check the URL and the model",
    429: "the rate or quota of this key is used up; try again later",
    503: "the server is overloaded or still loading the model; try again later",
}


class Head(NamedTuple):
    """What the head of an answer says, in text fit to be shown; `message` is that of an error in the body."""

    status: int
    content_type: str = ""
    encoding: str = ""
    location: str = ""
    retry_after: str = ""
    retry_after_ns: int | None = None
    message: str | None = None


class Fault(NamedTuple):
    """Why a request gave no whole stream: its class, and a line that ends with the remedy."""

    kind: ErrorClass
    detail: str


STOPPED: dict[Stop, Fault] = {
    "line": Fault("http", f"line too long: over 1 MiB; {CHECK_URL}"),
    "event": Fault("http", f"event too long: over 1 MiB; {CHECK_URL}"),
    "bytes": Fault("http", "the stream does not end: more bytes came than anybody asked for; look for what ignores "
                   "max_tokens"),
    "time": Fault("timeout", "the stream does not end: the time for one request is over; look for what ignores "
                  "max_tokens, or ask for less by --max-tokens"),
}  # fmt: skip


class Instants:
    """Moments in the order they came, so many of them at most, and all of them counted."""

    def __init__(self, most: int) -> None:
        self.count = 0
        self.first: Moment | None = None
        self.last: Moment | None = None
        self._most = most
        self._at = array("q")
        self._stamp = array("q")

    def add(self, moment: Moment) -> None:
        """One more. Without a stamp it stands at its reading, and no later stamp stands before it."""
        stamp = moment.at if moment.stamp is None else moment.stamp
        if self.last is not None and self.last.stamp is not None:
            stamp = max(stamp, self.last.stamp)
        self.count += 1
        self.last = Moment(moment.at, stamp)
        self.first = self.first or self.last
        if len(self._at) < self._most:
            self._at.append(moment.at)
            self._stamp.append(stamp)

    def gaps(self, *, kernel: bool) -> tuple[int, ...]:
        """Times between them."""
        return tuple(after - before for before, after in pairwise(self._stamp if kernel else self._at))

    def lag(self) -> int | None:
        """How long they lay unread, at the 99th percentile (nearest rank)."""
        lags = sorted(max(0, at - stamp) for at, stamp in zip(self._at, self._stamp, strict=True))
        return lags[int((len(lags) - 1) * HIGH_SHARE)] if lags else None


class Stream:
    """Is told of every event and comment, then tells what they were together."""

    def __init__(self) -> None:
        self.done = False
        self.failed: str | None = None
        self._tokens = Instants(MOST_TOKEN_EVENTS)
        self._comments = Instants(MOST_COMMENTS)
        self._events = 0
        self._unknown = 0
        self._strange: str | None = None
        self._first_event: Moment | None = None
        self._first_visible: Moment | None = None
        self._finished: Moment | None = None
        self._finish_reason: str | None = None
        self._prompt_tokens: int | None = None
        self._completion_tokens: int | None = None
        self._n_first: int | None = None

    @property
    def begun(self) -> bool:
        """Whether any event has come."""
        return self._events > 0

    @property
    def whole(self) -> bool:
        """Whether the server has said that this is all."""
        return self._finished is not None

    def comment(self, moment: Moment) -> None:
        """A comment came: the path is alive."""
        self._comments.add(moment)

    def event(self, delta: Delta, moment: Moment, text: str = "") -> None:
        """An event came; what follows `[DONE]` is counted and means nothing. `text` is quoted where it is unknown."""
        self._events += 1
        self._first_event = self._first_event or moment
        if self.done:
            return
        if not delta.known:
            self._unknown += 1
            self._strange = self._strange or text
        if delta.token:
            self._token(delta, moment)
        if delta.finish_reason is not None:
            self._finish_reason = delta.finish_reason[:QUOTED_SHORT]
        if delta.finish_reason is not None or delta.done:
            self._finished = moment
        self.done = delta.done
        self.failed = self.failed or delta.error
        self._prompt_tokens = _newer(delta.prompt_tokens, self._prompt_tokens)
        self._completion_tokens = _newer(delta.completion_tokens, self._completion_tokens)

    def _token(self, delta: Delta, moment: Moment) -> None:
        if self._tokens.first is None:
            self._n_first = delta.completion_tokens or None
        if delta.visible:
            self._first_visible = self._first_visible or moment
        self._tokens.add(moment)

    def streamed(self, exchange: Exchange, head: Head | None) -> Streamed:
        """The record of the answer to `exchange`, in whose clock it is told."""
        kernel = exchange.clock == "kernel"
        return Streamed(
            task=exchange.task,
            exchange=exchange,
            first_event=_instant(exchange, self._first_event),
            first_token=_instant(exchange, self._tokens.first),
            first_visible=_instant(exchange, self._first_visible),
            last_token=_instant(exchange, self._tokens.last),
            finished=_instant(exchange, self._finished),
            token_gaps_ns=self._tokens.gaps(kernel=kernel),
            first_comment=_instant(exchange, self._comments.first),
            comment_gaps_ns=self._comments.gaps(kernel=kernel),
            events=self._events,
            token_events=self._tokens.count,
            comments=self._comments.count,
            unknown_events=self._unknown,
            finish_reason=self._finish_reason,
            prompt_tokens=self._prompt_tokens,
            completion_tokens=self._completion_tokens,
            n_first=self._n_first,
            lag_ns=self._tokens.lag() if kernel else None,
            retry_after_ns=head.retry_after_ns if head is not None else None,
        )

    def fault(self, exchange: Exchange, head: Head | None, stopped: Stop | None) -> Fault | None:
        """What was wrong with the answer to `exchange`; `stopped` says why nobody read on."""
        if head is None:
            return _unanswered(exchange)
        if not HTTPStatus.OK <= head.status < HTTPStatus.MULTIPLE_CHOICES:
            return Fault("http", refused(head))
        if head.encoding.lower() not in ("", "identity"):
            told = (
                f"the answer is compressed ({head.encoding[:QUOTED_SHORT]}) though identity was asked for: tokens wait"
            )
            return Fault("http", f"{told} in the compressor; switch it off for text/event-stream")
        if self.failed is not None:
            told = f"the server reports an error inside the stream: {self.failed[:QUOTED]}"
            return Fault("http", f"{told}; {CHECK_LOGS}")
        if self.done:
            return self._tokenless()
        if stopped is not None:
            return STOPPED[stopped]
        return self._ending(exchange, head)

    def _ending(self, exchange: Exchange, head: Head) -> Fault | None:
        """A stream without `[DONE]`, by its end."""
        so_far = f"after {self._tokens.count} token events"
        if exchange.error is not None:
            return Fault(exchange.error, f"{exchange.detail or 'broken off'}, {so_far}; {CHECK_LOGS}")
        if self.whole:
            return self._tokenless()
        if self._events == self._unknown:
            return Fault("http", self._no_stream(head))
        return Fault("cut", f"the stream ended {so_far} without finish_reason or [DONE]; {CHECK_LOGS}")

    def _tokenless(self) -> Fault | None:
        """A whole stream that carries nothing has nothing to time."""
        if self._tokens.count:
            return None
        reason = f" (finish_reason {self._finish_reason})" if self._finish_reason else ""
        return Fault("http", f"the stream ended without a token{reason}; ask for more by --max-tokens")

    def _no_stream(self, head: Head) -> str:
        if head.message is not None:
            return f"the server answers with an error: {head.message[:QUOTED]}; {CHECK_LOGS}"
        if self._unknown:
            return f'no event is a chat chunk, the first is "{(self._strange or "")[:QUOTED]}"; {CHECK_URL}'
        kind = head.content_type[:QUOTED_SHORT] or "not told"
        return f"the answer holds no event (content type {kind}); {CHECK_URL}"


def _unanswered(exchange: Exchange) -> Fault | None:
    """No answer at all."""
    if exchange.error is None:
        return None
    advice = f"; {CHECK_LOGS}" if exchange.sent_last is not None and exchange.error in ("cut", "timeout") else ""
    return Fault(exchange.error, (exchange.detail or "no answer") + advice)


def refused(head: Head) -> str:
    """An answer with a status other than success, in one line."""
    phrase = next((f" {known.phrase}" for known in HTTPStatus if known == head.status), "")
    said = f": {head.message[:QUOTED]}" if head.message else ""
    where = f", pointing to {head.location[:QUOTED]}" if head.location else ""
    wait = f" ({head.retry_after_ns / SECOND:g} s)" if head.retry_after_ns is not None else ""
    advice = [
        "give the URL it points to" if head.location else ADVICE.get(head.status, ""),
        f"Retry-After: {head.retry_after[:QUOTED_SHORT]}{wait}" if head.retry_after else "",
    ]
    return "; ".join((f"HTTP {head.status}{phrase}{where}{said}", *filter(None, advice)))


def _newer(told: int | None, known: int | None) -> int | None:
    return known if told is None else told


def _instant(exchange: Exchange, moment: Moment | None) -> int | None:
    """A moment by the clock of an exchange; nothing of a body stands before its head."""
    if moment is None:
        return None
    known = moment.stamp if exchange.clock == "kernel" and moment.stamp is not None else moment.at
    return known if exchange.head is None else max(known, exchange.head)
