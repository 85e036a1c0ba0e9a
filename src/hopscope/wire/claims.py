"""What servers say about their own time in response headers: text in, claims in milliseconds out.

A header is a claim by the box that wrote it, valid only for what lies behind that box; units differ from header to
header and are taken from the table here, never guessed, so a header whose unit nobody vouches for is left out. Every
value is hostile until it has passed: plain decimal, finite, not negative, at most a day. Never raises.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hopscope.model.record import Claim

MILLISECOND = 1.0
SECOND = 1000.0
MICROSECOND = 0.001

HEADERS_LIMIT = 200
CLAIMS_LIMIT = 32
VALUE_BYTES_LIMIT = 4096
LONGEST_MS = 24 * 3600 * 1000.0

NUMBER = re.compile(r"\d{1,15}(\.\d{1,20})?([eE][+-]?\d{1,2})?", re.ASCII)
NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")


class Meaning(NamedTuple):
    """Unit in milliseconds, what the time covers, and who says so."""

    unit: float
    scope: str
    source: str


TGI = "text-generation-inference"
HEADERS = {
    "openai-processing-ms": Meaning(MILLISECOND, "processing behind the API, until the head", "openai api"),
    "x-envoy-upstream-service-time": Meaning(MILLISECOND, "upstream and the network to it, until its head", "envoy"),
    "x-kong-upstream-latency": Meaning(MILLISECOND, "upstream and the network to it, until its head", "kong"),
    "x-kong-proxy-latency": Meaning(MILLISECOND, "the gateway itself, retries included", "kong"),
    "x-litellm-response-duration-ms": Meaning(MILLISECOND, "gateway and model, from its handler on", "litellm"),
    "x-litellm-overhead-duration-ms": Meaning(MILLISECOND, "the gateway itself", "litellm"),
    "x-litellm-callback-duration-ms": Meaning(MILLISECOND, "the gateway's callbacks", "litellm"),
    "x-total-time": Meaning(MILLISECOND, "the whole request at the engine", TGI),
    "x-validation-time": Meaning(MILLISECOND, "validation of the input", TGI),
    "x-queue-time": Meaning(MILLISECOND, "queue at the engine", TGI),
    "x-inference-time": Meaning(MILLISECOND, "inference", TGI),
    "x-time-per-token": Meaning(MILLISECOND, "inference per token", TGI),
    "x-compute-time": Meaning(SECOND, "compute", TGI),
}

CLOUDFLARE = "cloudflare edge"
SERVER_TIMING = "server-timing"
TIMINGS = {
    "cfedge": Meaning(MILLISECOND, "the edge itself", CLOUDFLARE),
    "cforigin": Meaning(MILLISECOND, "origin and the network from edge to origin, until its first byte", CLOUDFLARE),
    "gfet4t7": Meaning(MILLISECOND, "as seen by the front end; not documented", "google front end"),
}
ANY_TIMING = Meaning(MILLISECOND, "not stated", SERVER_TIMING)
EDGE_VIEW = "cfl4"
EDGE_VIEW_FIELDS = ("rtt", "min_rtt")
EDGE_MEANING = Meaning(MICROSECOND, "round trip between edge and this client, as TCP at the edge saw it", CLOUDFLARE)


def claims(headers: Iterable[tuple[bytes, bytes]]) -> tuple[Claim, ...]:
    """Every claim in these response headers whose unit is known, in their order, at most 32."""
    found: list[Claim] = []
    for count, (raw_name, raw_value) in enumerate(headers):
        if count >= HEADERS_LIMIT or len(found) >= CLAIMS_LIMIT:
            break
        name = raw_name.decode("latin-1").lower()
        value = raw_value[:VALUE_BYTES_LIMIT].decode("latin-1")
        if name == SERVER_TIMING:
            found += _server_timing(value)
        elif name in HEADERS:
            found += _claim(name, value, HEADERS[name])
    return tuple(found[:CLAIMS_LIMIT])


def _claim(name: str, text: str, meaning: Meaning) -> list[Claim]:
    """The claim, or none when the text is no number that can be believed."""
    text = text.strip()
    if not NAME.fullmatch(name) or not NUMBER.fullmatch(text):
        return []
    value_ms = float(text) * meaning.unit
    if not value_ms <= LONGEST_MS:
        return []
    return [Claim(name=name, value_ms=value_ms, scope=meaning.scope, source=meaning.source)]


def _server_timing(value: str) -> Iterator[Claim]:
    """Metrics of a Server-Timing field: `name;dur=12.3;desc="…"`, comma-separated (W3C Server Timing §3)."""
    for metric in _split(value, ","):
        name, *parameters = (part.strip() for part in _split(metric, ";"))
        given: dict[str, str] = {}
        for parameter in parameters:
            key, _, text = parameter.partition("=")
            given.setdefault(key.strip().lower(), text.strip().strip('"'))
        if name.lower() == EDGE_VIEW:
            yield from _edge_view(name, given.get("desc", ""))
        elif "dur" in given:
            yield from _claim(name, given["dur"], TIMINGS.get(name.lower(), ANY_TIMING))


def _edge_view(name: str, query: str) -> Iterator[Claim]:
    """Cloudflare's `cfL4;desc="?proto=TCP&rtt=5003&min_rtt=4257&…"`: TCP_INFO of the edge, microseconds."""
    for pair in query.lstrip("?").split("&"):
        key, _, text = pair.partition("=")
        if key in EDGE_VIEW_FIELDS:
            yield from _claim(f"{name}.{key}", text, EDGE_MEANING)


def _split(text: str, separator: str) -> list[str]:
    """Parts between separators that stand outside double quotes."""
    parts: list[str] = []
    begin = 0
    quoted = escaped = False
    for at, character in enumerate(text):
        if escaped:
            escaped = False
        elif quoted and character == "\\":
            escaped = True
        elif character == '"':
            quoted = not quoted
        elif character == separator and not quoted:
            parts.append(text[begin:at])
            begin = at + 1
    parts.append(text[begin:])
    return parts
