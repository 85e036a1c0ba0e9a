"""OpenAI's objects for the stand-in server: the request it understands and every byte it answers with.

Pure: bytes to values and values to bytes.
"""

from http import HTTPStatus

import msgspec
from msgspec import Struct

BYTES_PER_TOKEN = 4  # a usual estimate for English text
DONE = b"data: [DONE]\n\n"


class Message(Struct, frozen=True, kw_only=True):
    """One message of a conversation; the content may be text or parts."""

    role: str
    content: msgspec.Raw = msgspec.Raw(b'""')


class StreamOptions(Struct, frozen=True, kw_only=True):
    """What a stream is asked to carry besides its text."""

    include_usage: bool = False


class Chat(Struct, frozen=True, kw_only=True):
    """The body of POST /v1/chat/completions, as far as it matters here."""

    model: str
    messages: tuple[Message, ...]
    stream: bool = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None

    @property
    def limit(self) -> int | None:
        """How many tokens are wanted at most."""
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    @property
    def prompt_tokens(self) -> int:
        """The prompt's length, estimated from its bytes; at least one token."""
        return max(1, sum(len(bytes(message.content)) for message in self.messages) // BYTES_PER_TOKEN)

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with a usage event."""
        return self.stream_options is not None and self.stream_options.include_usage


class Refusal(Exception):
    """A request that is answered with an error: its status, OpenAI's code, the message."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Usage(Struct, frozen=True, kw_only=True):
    """OpenAI's token counts."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Frame(Struct, frozen=True, kw_only=True):
    """Makes the objects of one completion."""

    identity: str
    model: str
    created: int

    def delta(self, delta: dict[str, str], finish_reason: str | None = None) -> bytes:
        """One event of a stream."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return self._event([choice], None)

    def usage(self, usage: Usage) -> bytes:
        """The usage event: no choices."""
        return self._event([], usage)

    def whole(self, text: str, finish_reason: str, usage: Usage) -> bytes:
        """The answer to a request that is not streamed."""
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
        return msgspec.json.encode(
            {
                "id": self.identity,
                "object": "chat.completion",
                "created": self.created,
                "model": self.model,
                "choices": [choice],
                "usage": usage,
            }
        )

    def _event(self, choices: list[dict[str, object]], usage: Usage | None) -> bytes:
        chunk: dict[str, object] = {
            "id": self.identity,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }
        if usage is not None:
            chunk["usage"] = usage
        return b"data: " + msgspec.json.encode(chunk) + b"\n\n"


def read_chat(body: bytes) -> Chat:
    """The request in `body`; raises Refusal when it is none."""
    try:
        return msgspec.json.decode(body, type=Chat)
    except msgspec.MsgspecError as error:
        raise Refusal(HTTPStatus.BAD_REQUEST, "invalid_request_error", str(error)) from error


def error(code: str, message: str) -> bytes:
    """OpenAI's error object."""
    return msgspec.json.encode({"error": {"message": message, "type": code, "param": None, "code": code}})


def models(names: tuple[str, ...], created: int) -> bytes:
    """OpenAI's list of models."""
    data = [{"id": name, "object": "model", "created": created, "owned_by": "lab"} for name in names]
    return msgspec.json.encode({"object": "list", "data": data})
