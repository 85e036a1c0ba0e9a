"""The stand-in inference server: OpenAI's routes with times that the lab sets, and a log of what really happened.

Runs as `python -m hopscope.lab.inference --config JSON` in a host's namespace, prints one line when it listens, and
ends when its standard input does. The rule: waits are kept against absolute times, so tokens do not drift, on a
select loop, whose sleeps are exact to microseconds (epoll rounds up to a millisecond; the price is a limit of about
1000 connections). The log is the server's own view, scheduler's noise included: a Truth per request, JSON lines.

As vLLM does, a stream's head goes out at once, the role and the first token together after queue and prefill.
"""

import argparse
import asyncio
import os
import selectors
import signal
import socket
import ssl
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import TextIO

import msgspec

from hopscope.lab.completions import DONE, Chat, Frame, Refusal, Usage, error, models, read_chat
from hopscope.lab.meter import Course, Meter
from hopscope.lab.orders import Config, Instant, Truth
from hopscope.lab.topology import FIRST_FINAL_STATUS, LAST_STATUS, Inference
from hopscope.lab.webserver import Request, Responder, listen

EVENT_STREAM = "text/event-stream; charset=utf-8"
EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"
STATUS_ROUTE = "/status/"
MS_PER_S = 1e3
NS_PER_S = 1e9
STDIN = 0


class _Completion:
    """One completion under way."""

    def __init__(self, chat: Chat, tokens: int, arrived: float) -> None:
        self.chat = chat
        self.arrived = arrived
        self.scheduled = arrived
        self.limit = tokens if chat.limit is None else min(chat.limit, tokens)
        self.finish_reason = "length" if self.limit < tokens else "stop"
        self.sent_at: list[float] = []
        self.first_token: Instant | None = None

    def token(self) -> None:
        """Notes that a token is there."""
        now = Instant.now()
        self.first_token = self.first_token or now
        self.sent_at.append(now.monotonic_ns / NS_PER_S)

    def course(self) -> Course:
        """What the meter wants to know."""
        return Course(
            arrived=self.arrived,
            scheduled=self.scheduled,
            tokens=tuple(self.sent_at),
            prompt_tokens=self.chat.prompt_tokens,
            finish_reason=self.finish_reason,
        )

    def usage(self) -> Usage:
        """The tokens so far."""
        prompt, sent = self.chat.prompt_tokens, len(self.sent_at)
        return Usage(prompt_tokens=prompt, completion_tokens=sent, total_tokens=prompt + sent)


class StandIn:
    """The routes, and the state behind them: the meter, the slots, the log."""

    def __init__(self, server: Inference, truth: TextIO) -> None:
        self._server = server
        self._truth = truth
        self._meter = Meter(server.models[0])
        self._slots = None if server.slots is None else asyncio.Semaphore(server.slots)
        self._created = int(time.time())
        self._answered = 0

    async def handle(self, request: Request, respond: Responder) -> None:
        """Answers one request and writes down the truth about it, also when the client goes away."""
        completion: _Completion | None = None
        route = request.path.partition("?")[0]
        try:
            if self._server.fault == "hangs":
                await asyncio.Event().wait()
            self._admit(route, request)
            if (request.method, route) == ("POST", "/v1/chat/completions"):
                completion = self._completion(request)
                await self._complete(completion, respond)
            elif request.method in ("GET", "HEAD"):
                await self._get(route, request, respond)
            else:
                await self._other(route, respond)
        except Refusal as refusal:
            await respond.send(refusal.status, error(refusal.code, str(refusal)))
        finally:
            self._write_down(request, respond, completion)

    def _admit(self, route: str, request: Request) -> None:
        status, key = self._server.status, self._server.api_key
        if status is not None and route != "/metrics":
            raise Refusal(status, "as_set", f"status {status}, as the lab has set it")
        given = request.headers.get("authorization")
        if key is not None and route.startswith("/v1/") and given != f"Bearer {key}":
            raise Refusal(HTTPStatus.UNAUTHORIZED, "invalid_api_key", "Incorrect API key provided")

    async def _get(self, route: str, request: Request, respond: Responder) -> None:
        if route == "/metrics":  # never late: others are judged by it
            await respond.send(HTTPStatus.OK, self._meter.exposition().encode(), EXPOSITION)
            return
        await _until(request.last_in.monotonic_ns / NS_PER_S + self._server.think_ms / MS_PER_S)
        if route == "/v1/models":
            await respond.send(HTTPStatus.OK, models(self._server.models, self._created))
        elif route == "/health":
            await respond.send(HTTPStatus.OK, b"")
        else:
            await self._other(route, respond)

    async def _other(self, route: str, respond: Responder) -> None:
        asked = route.removeprefix(STATUS_ROUTE)
        if asked != route and asked.isdecimal() and FIRST_FINAL_STATUS <= int(asked) <= LAST_STATUS:
            await respond.send(int(asked), error("asked_for", f"status {asked}, as asked"))
        else:
            raise Refusal(HTTPStatus.NOT_FOUND, "not_found", f"no {route} here")

    def _completion(self, request: Request) -> _Completion:
        chat = read_chat(request.body)
        if chat.model not in self._server.models:
            raise Refusal(HTTPStatus.NOT_FOUND, "model_not_found", f"The model `{chat.model}` does not exist")
        return _Completion(chat, self._server.tokens, request.last_in.monotonic_ns / NS_PER_S)

    async def _complete(self, completion: _Completion, respond: Responder) -> None:
        self._answered += 1
        frame = Frame(identity=f"chatcmpl-{self._answered}", model=completion.chat.model, created=self._created)
        try:
            if completion.chat.stream:
                await self._stream(completion, frame, respond)
            else:
                words: list[str] = []
                await self._generate(completion, _collector(words))
                body = frame.whole("".join(words), completion.finish_reason, completion.usage())
                await respond.send(HTTPStatus.OK, body)
        except (OSError, asyncio.CancelledError):
            self._meter.aborted()
            raise
        self._meter.finished(completion.course())

    async def _stream(self, completion: _Completion, frame: Frame, respond: Responder) -> None:
        async def send(word: str) -> None:
            if len(completion.sent_at) == 1:
                await respond.piece(frame.delta({"role": "assistant", "content": ""}))
            await respond.piece(frame.delta({"content": word}))

        await respond.begin(HTTPStatus.OK, EVENT_STREAM)
        await self._generate(completion, send)
        await respond.piece(frame.delta({}, completion.finish_reason))
        if completion.chat.wants_usage:
            await respond.piece(frame.usage(completion.usage()))
        await respond.piece(DONE)
        await respond.end()

    async def _generate(self, completion: _Completion, send: Callable[[str], Awaitable[None]]) -> None:
        async with self._slot(completion):
            due = completion.scheduled + self._server.prefill_ms / MS_PER_S
            for number in range(completion.limit):
                await _until(due)
                completion.token()
                await send(f"word{number} ")
                due += self._server.per_token_ms / MS_PER_S

    @asynccontextmanager
    async def _slot(self, completion: _Completion) -> AsyncIterator[None]:
        """Waits its turn, then holds a slot."""
        meter, slots = self._meter, self._slots
        async with AsyncExitStack() as held:
            meter.waiting += 1
            try:
                if slots is not None:
                    await held.enter_async_context(slots)
                await _until(completion.arrived + self._server.queue_ms / MS_PER_S)
            finally:
                meter.waiting -= 1
            completion.scheduled = time.monotonic()
            meter.running += 1
            try:
                yield
            finally:
                meter.running -= 1

    def _write_down(self, request: Request, respond: Responder, completion: _Completion | None) -> None:
        truth = Truth(
            method=request.method,
            path=request.path,
            status=respond.status,
            last_in=request.last_in,
            first_out=respond.first_out,
            first_token=None if completion is None else completion.first_token,
            last_out=respond.last_out,
            tokens=0 if completion is None else len(completion.sent_at),
        )
        self._truth.write(msgspec.json.encode(truth).decode() + "\n")


def _collector(words: list[str]) -> Callable[[str], Awaitable[None]]:
    async def collect(word: str) -> None:
        words.append(word)

    return collect


async def _until(due: float) -> None:
    left = due - time.monotonic()
    if left > 0:
        await asyncio.sleep(left)


async def _serve(config: Config, truth: TextIO) -> None:
    tls = None
    if config.chain is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(config.chain, config.key)
    stand_in = StandIn(config.server, truth)
    owner_gone = asyncio.Event()
    asyncio.get_running_loop().add_reader(STDIN, owner_gone.set)
    async with AsyncExitStack() as open_:
        if config.server.fault == "full":
            open_.enter_context(_full(config.address, config.server.port))
        else:
            server = await listen(config.address, config.server.port, stand_in.handle, tls)
            await open_.enter_async_context(server)
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        await owner_gone.wait()
        os._exit(0)  # requests under way die with the lab


@contextmanager
def _full(address: str, port: int) -> Iterator[None]:
    """A listener whose queue holds one connection (listen(2) and Linux: the backlog and one), and that one is ours."""
    with socket.create_server((address, port), backlog=0), socket.create_connection((address, port)):
        yield


def _select_loop() -> asyncio.AbstractEventLoop:
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


def main() -> None:
    """Parses the command line and serves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="a Config as JSON")
    arguments = parser.parse_args(namespace=_Arguments())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):  # exact timers
        Path("/proc/self/timerslack_ns").write_text("1", encoding="ascii")
    config = msgspec.json.decode(arguments.config, type=Config)
    with (
        Path(config.truth).open("a", encoding="utf-8", buffering=1) as truth,
        asyncio.Runner(loop_factory=_select_loop) as runner,
    ):
        runner.run(_serve(config, truth))


class _Arguments(argparse.Namespace):
    config: str


if __name__ == "__main__":
    main()
