"""Chat completions as OpenAI's API has them: the request's bytes, and what an event of the answer carries.

A token is generated text of any channel: content, reasoning, refusal, a tool's name or arguments; a role, an empty or
null content, a finish reason are none (method 5.6). Every answer is hostile: wrong types are passed over, what is no
chunk at all is `known=False`, and nothing raises.
"""

import json
import re
from datetime import UTC, datetime
from hashlib import sha256
from itertools import cycle, islice
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from hopscope.model.delta import Delta
from hopscope.model.limits import MS, SECOND

DONE = "[DONE]"
CHAT = "/chat/completions"
ENDPOINTS = (CHAT, "/completions")
DEFAULT_BASE = "/v1"
VISIBLE = ("content", "refusal")
HIDDEN = ("reasoning", "reasoning_content")
CALLS = ("name", "arguments")
PART_TEXTS = {"text": True, "refusal": True, "thinking": False}
"""Texts in the parts of a content that is a list, and whether people read them."""

MOST_TOKENS = 10**9
MOST_MODELS = 10_000
TEXT_LIMIT = 4096
NONCE_DIGITS = 12
FILLING = (
    "river stone light garden winter paper market bridge silver cloud mountain letter ship forest bread window "
    "summer road horse island candle music ocean table village apple clock field story rain"
)
WISH = "Tell a long story about all of these."
SECONDS = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)
HTTP_DATE = "%a, %d %b %Y %H:%M:%S GMT"


def endpoint(url: str) -> str:
    """Where chat is asked for: below the URL, `/v1` added where it has no path; as it is if it ends in an endpoint."""
    return _below(url, CHAT)


def listing(url: str) -> str:
    """Where the models are listed: beside that endpoint."""
    return _below(url, "/models")


def _below(url: str, route: str) -> str:
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    ending = next((each for each in ENDPOINTS if path.endswith(each)), None)
    if ending is not None and route == CHAT:
        return urlunsplit(parts._replace(fragment=""))
    base = path.removesuffix(ending or "") if path else DEFAULT_BASE
    return urlunsplit(parts._replace(path=base + route, fragment=""))


def prompt(seed: int, number: int, words: int) -> str:
    """A prompt of about so many tokens, words being counted; its first word differs with each seed and number."""
    nonce = sha256(f"{seed} {number}".encode()).hexdigest()[:NONCE_DIGITS]
    filling = islice(cycle(FILLING.split()), max(0, words - 1 - len(WISH.split())))
    return " ".join((nonce, *filling, WISH))


def body(model: str, text: str, max_tokens: int) -> bytes:
    """The request for one streamed completion, its usage told at the end."""
    asked = {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": max_tokens,
    }
    return json.dumps(asked, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def read(data: str, kind: str = "") -> Delta:
    """What an event with this data carries."""
    if data.strip() == DONE:
        return Delta(done=True)
    chunk = _decoded(data)
    if not isinstance(chunk, dict):
        return Delta(known=False, error=data[:TEXT_LIMIT] or None if kind == "error" else None)
    failed = _failed(chunk, kind)
    if failed is not None:
        return Delta(error=failed)
    choices = [each for each in _list(chunk.get("choices")) if isinstance(each, dict)]
    usage = _dict(chunk.get("usage"))
    channels = [found for choice in choices for found in _channels(choice.get("delta"))]
    reasons = (choice.get("finish_reason") for choice in choices)
    return Delta(
        token=bool(channels),
        visible="visible" in channels,
        finish_reason=next((reason[:TEXT_LIMIT] for reason in reasons if isinstance(reason, str) and reason), None),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        known=bool(choices or usage) or chunk.get("choices") == [],
    )


def models(listed: bytes) -> tuple[str, ...]:
    """The names in an answer of the models' route; none where it is no such answer."""
    entries = _list(_dict(_decoded(listed)).get("data"))[:MOST_MODELS]
    names = (entry.get("id") for entry in entries if isinstance(entry, dict))
    return tuple(name for name in names if isinstance(name, str) and name)


def refusal(answered: bytes) -> str | None:
    """The message of an answer that is no stream: an error object of any known shape."""
    found = _decoded(answered)
    return _failed(found, "error") if isinstance(found, dict) else None


def retry_after_ns(name: str, value: str, now_ns: int) -> int | None:
    """How long `Retry-After` (RFC 9110 §10.2.3, seconds or a date) or `retry-after-ms` asks to wait from now on."""
    value = value.strip()
    if SECONDS.fullmatch(value):
        return round(float(value) * (MS if name == "retry-after-ms" else SECOND))
    try:
        date = datetime.strptime(value, HTTP_DATE).replace(tzinfo=UTC)
    except ValueError:
        return None
    return max(0, int(date.timestamp()) * SECOND - now_ns)


def _decoded(text: str | bytes) -> object:
    """JSON, or `None` for what is none."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found


def _failed(chunk: dict[object, object], kind: str) -> str | None:
    """The message of an error object: OpenAI's `{"error": {"message": …}}`, text in its place, or a bare message."""
    error = chunk.get("error")
    if isinstance(error, dict) and error:
        return _message(error.get("message") or error.get("code") or error.get("type"))
    if isinstance(error, str) and error:
        return _message(error)
    if kind == "error" or chunk.get("object") == "error":
        return _message(chunk.get("message") or chunk.get("detail"))
    return None


def _message(told: object) -> str:
    return str(told)[:TEXT_LIMIT] if isinstance(told, str | int) else "no message"


def _channels(delta: object) -> list[Literal["visible", "hidden"]]:
    """The channels that carry text in one delta."""
    found: list[Literal["visible", "hidden"]] = []
    fields = _dict(delta)
    for name in VISIBLE:
        found += ["visible" if shown else "hidden" for shown in _texts(fields.get(name))]
    if any(_is_text(fields.get(name)) for name in HIDDEN):
        found.append("hidden")
    functions = [_dict(call).get("function") for call in _list(fields.get("tool_calls"))]
    calls = [_dict(call) for call in (*functions, fields.get("function_call"))]
    if any(_is_text(call.get(name)) for call in calls for name in CALLS):
        found.append("hidden")
    return found


def _texts(content: object) -> list[bool]:
    """Whether people read each text of a content, which is text or a list of parts."""
    if _is_text(content):
        return [True]
    parts = [_dict(part) for part in _list(content)]
    return [shown for part in parts for name, shown in PART_TEXTS.items() if part.get(name)]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _dict(value: object) -> dict[object, object]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int | None:
    """A number of tokens that can be believed."""
    plain = isinstance(value, int) and not isinstance(value, bool)
    return value if plain and isinstance(value, int) and 0 <= value <= MOST_TOKENS else None
