"""Report → one JSON document, keys as `interface.md` "JSON". Rule: whatever is in the report, the output is valid.

The samples of a series are too many to stand in memory together. So the report is encoded with a hole in place of
each of them, and the holes are filled batch by batch. A hole is a NUL: JSON escapes control characters, so no text
of the report can hold another.
"""

import re
from collections.abc import Iterator
from itertools import islice

import msgspec

from hopscope.model.past import PastEvents, PastRuns
from hopscope.model.report import PingSample, Report, Samples

Document = Report | PastRuns | PastEvents

BATCH = 5000

_HOLE = b"\0"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ODD = re.compile(r"[^\0\x20-\x7e]")
_encoder = msgspec.json.Encoder()


def render(report: Document) -> Iterator[str]:
    """The document in pieces, on one line, with a newline at its end."""
    holes: list[Samples] = []

    def hole(value: object) -> bytes:
        if not isinstance(value, Samples):
            raise NotImplementedError(f"a report holds no {type(value).__name__}")
        holes.append(value)
        return _HOLE

    values: object = msgspec.to_builtins(report, enc_hook=hole, builtin_types=(bytes,))
    frame = _encoder.encode(_encodable(values)).decode()
    first, *rest = _tame(frame).split(_HOLE.decode())
    yield first
    for samples, text in zip(holes, rest, strict=True):
        yield "["
        yield from _batches(samples)
        yield "]"
        yield text
    yield "\n"


def schema() -> str:
    """The JSON Schema that every document validates against. Unknown keys are allowed: consumers ignore them."""
    (*roots, _), parts = msgspec.json.schema_components(
        [Report, PastRuns, PastEvents, PingSample], schema_hook=_samples_schema, ref_template="#/$defs/{name}"
    )
    whole = {"$schema": _DIALECT, "title": "hopscope report", "anyOf": roots, "$defs": parts}
    return msgspec.json.format(_encoder.encode(whole), indent=2).decode() + "\n"


def _encodable(value: object) -> object:
    """The same values without what UTF-8 cannot carry: half a surrogate pair, as bytes of an argument become."""
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case bytes():
            return msgspec.Raw(value)
        case dict():
            return {_encodable(key): _encodable(item) for key, item in value.items()}
        case list() | tuple():
            return [_encodable(item) for item in value]
        case _:
            return value


def _tame(text: str) -> str:
    """The same JSON with every character escaped that a terminal would obey or hide."""
    return _ODD.sub(lambda found: _escaped(found[0]), text)


def _escaped(char: str) -> str:
    if char.isprintable():
        return char
    units = char.encode("utf-16-be").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def _batches(samples: Samples) -> Iterator[str]:
    """The samples as JSON, without the brackets around them."""
    each = iter(samples)
    comma = ""
    while batch := list(islice(each, BATCH)):
        yield comma + _tame(_encoder.encode(batch).decode()[1:-1])
        comma = ","


def _samples_schema(kind: type) -> dict[str, object]:
    if kind is not Samples:
        raise NotImplementedError(f"no schema for {kind.__name__}")
    return {"type": "array", "items": {"$ref": "#/$defs/PingSample"}}
