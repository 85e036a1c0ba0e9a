"""Streamed completions as they are reported: from the first byte sent to each first and last, and beyond the endpoint.

Method 5.6 and 5.10. Instants go in, durations come out; connection set-up is in none of them. Undefined is `None`:
the pace of fewer than two tokens, of tokens that all came in one read, a bracket without a round trip to subtract.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from hopscope.analysis import reach, results, split
from hopscope.analysis.delay import delay
from hopscope.analysis.instants import milliseconds
from hopscope.analysis.views import HttpView, Who, checks, who
from hopscope.model.limits import MS
from hopscope.model.plan import StreamTask
from hopscope.model.record import Exchange, SelfCheck, Streamed
from hopscope.model.report import StreamRequest, StreamResult, StreamSummary
from hopscope.model.sample import Book, Sample

MS_PER_SECOND = 1000


class StreamView(Struct, kw_only=True):
    """Streamed completions from one address."""

    who: Who
    url: str
    samples: list[Sample]
    streams: list[Streamed]


def views(book: Book) -> list[StreamView]:
    """Every set of streamed completions of a book."""
    found: dict[Who, StreamView] = {}
    for sample in book.samples.values():
        if isinstance(sample.task, StreamTask):
            asked = who(sample.task)
            view = found.setdefault(asked, StreamView(who=asked, url=sample.task.url, samples=[], streams=[]))
            view.samples.append(sample)
            view.streams.extend(sample.streams)
    return list(found.values())


class Pace(NamedTuple):
    """Tokens of an answer, who counted them, and the time of one; `n_first` came with the first (method 5.6)."""

    tokens: int | None
    source: Literal["usage", "events"] | None
    n_first: int | None
    tpot_ns: float | None


def result(view: StreamView, path_min_rtt_ns: int | None) -> StreamResult:
    """Result of a set of completions; `path_min_rtt_ns` is the least delay of TCP series to the same address, port."""
    exchanges = [each.exchange for each in view.streams]
    first = view.streams[0] if view.streams else None
    return StreamResult(
        target=view.who.target,
        vantage=view.who.vantage,
        outcome=reach.of_requests(HttpView(who=view.who, url=view.url, samples=view.samples, exchanges=exchanges)),
        address=view.who.address,
        family=view.who.family,
        protocol="tcp",
        port=view.who.port,
        started_at=results.started(view.samples),
        finished_at=results.finished(view.samples),
        client=results.client(checks(view.samples)),
        url=view.url,
        model=first.model if first is not None else None,
        models_listed=first.models_listed if first is not None else None,
        api="openai",
        requests=tuple(request(each, path_min_rtt_ns) for each in view.streams),
        summary=summary(view.streams, path_min_rtt_ns),
        why=next((exchange.detail for exchange in exchanges if exchange.error is not None), None),
    )


def request(streamed: Streamed, path_min_rtt_ns: int | None) -> StreamRequest:
    """One completion as it is reported."""
    exchange, counted = streamed.exchange, pace(streamed)
    plain = split.request(exchange, path_min_rtt_ns)
    return StreamRequest(
        cold=plain.cold,
        connection=plain.connection,
        scheduled_at=plain.scheduled_at,
        sent_at=plain.sent_at,
        status=plain.status,
        level=plain.level,
        clock=plain.clock,
        phases_ms=plain.phases_ms,
        rtt_ms=plain.rtt_ms,
        ack_ms=plain.ack_ms,
        queue_ms=plain.queue_ms,
        server=plain.server,
        tls=plain.tls,
        claims=plain.claims,
        error=plain.error,
        ttft_server=split.request(_to_first_token(streamed), path_min_rtt_ns).server,
        ttfb_ms=milliseconds(_since_sent(exchange, exchange.head)),
        ttfe_ms=milliseconds(_since_sent(exchange, streamed.first_event)),
        ttft_ms=milliseconds(_since_sent(exchange, streamed.first_token)),
        ttfo_ms=milliseconds(_since_sent(exchange, streamed.first_visible)),
        tpot_ms=None if counted.tpot_ns is None else counted.tpot_ns / MS,
        prompt_tokens=streamed.prompt_tokens,
        tokens_out=counted.tokens,
        token_source=counted.source,
        n_first=counted.n_first,
        finish_reason=streamed.finish_reason,
        decode_tps=None if counted.tpot_ns is None else MS_PER_SECOND / (counted.tpot_ns / MS),
        e2e_ms=milliseconds(_since_sent(exchange, streamed.last_token)),
        events=streamed.events,
        comments=streamed.comments,
        unknown_events=streamed.unknown_events,
        retry_after_ms=milliseconds(streamed.retry_after_ns),
    )


def pace(streamed: Streamed) -> Pace:
    """The time of one token is (t_last_token − t_first_token) / (n_tokens − n_first), as method 5.6 defines `tpot`.

    The server's usage counts where it was told; else each token event counts as one token.
    """
    if streamed.completion_tokens:
        tokens, n_first = streamed.completion_tokens, streamed.n_first or 1
        return Pace(tokens, "usage", n_first, _time_of_one(streamed, tokens - n_first))
    if streamed.token_events:
        return Pace(streamed.token_events, "events", 1, _time_of_one(streamed, streamed.token_events - 1))
    return Pace(streamed.completion_tokens, None if streamed.completion_tokens is None else "usage", None, None)


def _time_of_one(streamed: Streamed, later: int) -> float | None:
    """Time of one of the tokens after the first ones, ns."""
    first, last = streamed.first_token, streamed.last_token
    if later < 1 or first is None or last is None or last <= first:
        return None
    return (last - first) / later


def summary(streams: Iterable[Streamed], path_min_rtt_ns: int | None) -> StreamSummary:
    """Statistics of the hot requests that ended well, of all where none was hot."""
    streams = list(streams)
    errors = Counter(each.exchange.error for each in streams if each.exchange.error is not None)
    cold = [each for each in streams if each.exchange.error is None and each.exchange.cold]
    chosen = hot(streams)
    exchanges = [each.exchange for each in chosen]
    of_heads = split.summary(exchanges, path_min_rtt_ns)
    brackets = [split.bracket(_to_first_token(each), path_min_rtt_ns) for each in chosen]
    uploads = [split.phases(exchange).upload for exchange in exchanges]
    paces = [pace(each).tpot_ns for each in chosen]
    return StreamSummary(
        ttft=delay(_first_tokens(chosen)),
        ttft_cold=delay(_first_tokens(cold)),
        ttft_server=delay([each.estimate for each in brackets if each is not None and each.estimate is not None]),
        server=of_heads.server,
        network=of_heads.network,
        upload=delay([round(upload * MS) for upload in uploads if upload is not None]),
        tpot=delay([round(tpot) for tpot in paces if tpot is not None]),
        errors=dict(errors),
    )


def hot(streams: Sequence[Streamed]) -> list[Streamed]:
    """The hot requests that ended well, all of them where none was hot."""
    good = [each for each in streams if each.exchange.error is None]
    return [each for each in good if not each.exchange.cold] or good


def self_check(streams: Iterable[Streamed], *, clock_step_ns: int = 0) -> SelfCheck:
    """How late heads and tokens were read (method 1.6)."""
    late = [replace(each.exchange, lag_ns=_latest(each)) for each in streams]
    return split.self_check(late, clock_step_ns=clock_step_ns)


def _to_first_token(streamed: Streamed) -> Exchange:
    """The exchange with the first token in place of R₁ (method 5.10)."""
    return replace(streamed.exchange, head=streamed.first_token, done=None)


def _since_sent(exchange: Exchange, instant: int | None) -> int | None:
    """Time since the first byte was sent."""
    return None if instant is None or exchange.sent_first is None else instant - exchange.sent_first


def _first_tokens(streams: Sequence[Streamed]) -> list[int]:
    times = (_since_sent(each.exchange, each.first_token) for each in streams)
    return [time for time in times if time is not None]


def _latest(streamed: Streamed) -> int | None:
    lags = [lag for lag in (streamed.exchange.lag_ns, streamed.lag_ns) if lag is not None]
    return max(lags, default=None)
