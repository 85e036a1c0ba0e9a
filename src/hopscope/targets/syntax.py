"""TOML text → plain values, or the place of the first thing that is not TOML.

Bounded: text of a size or shape that would cost seconds is refused before it is parsed.
"""

import re
import tomllib

from hopscope.errors import TargetFileError
from hopscope.targets.wording import shown

Path = tuple[str | int, ...]

LIMIT_BYTES = 1 << 20
LIMIT_KEY_PARTS = 8

# Dotted keys cost tomllib the square of their parts; no target file has more than three. Text in quotes counts as one.
_QUOTED_OR_COMMENT = re.compile(r"""("(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')|\#.*""")
_MANY_PARTS = re.compile(rf"(?<![\w.-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{LIMIT_KEY_PARTS}}}")
_PLACE = re.compile(r" \(at (?:line ([0-9]+), column ([0-9]+)|end of document)\)$")
_KEY = re.compile(r"[\s,{]*([A-Za-z0-9_.-]{1,80})\s*=")
_HINTS: dict[str, str] = {
    "Cannot overwrite a value": "this key or table is given twice",
    "Expected newline or end of document after a statement": "the value ends here; text and durations go in quotes",
    "Invalid value": "this is no TOML value; text and durations go in quotes, true and false are in lower case",
}


def parse(text: str, file: str) -> dict[str, object]:
    """The tables of a TOML text. Raises TargetFileError with the line and column of the first mistake."""
    if len(text) > LIMIT_BYTES or len(text.encode("utf-8", "replace")) > LIMIT_BYTES:
        raise TargetFileError(f"{shown(file)}:1: the file is larger than 1 MiB")
    bare = _QUOTED_OR_COMMENT.sub(lambda found: "q" if found[1] else "", text)
    many = _MANY_PARTS.search(bare)
    if many is not None:
        line = bare.count("\n", 0, many.start()) + 1
        raise TargetFileError(f"{shown(file)}:{line}: a key has more than {LIMIT_KEY_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise TargetFileError(f"{shown(file)}:1: the file is nested too deeply") from None
    except ValueError as error:  # TOMLDecodeError, and a number with thousands of digits
        raise TargetFileError(_mistake(str(error), text, file)) from None


def _mistake(words: str, text: str, file: str) -> str:
    place = _PLACE.search(words)
    what = words[: place.start()] if place else "a number has too many digits"
    last = max(1, len(text.rstrip().splitlines()))
    line = int(place[1]) if place and place[1] else last
    column = f", column {place[2]}" if place and place[2] else ""
    rows = text.replace("\r\n", "\n").split("\n")
    key = _KEY.match(rows[line - 1]) if place and line <= len(rows) else None
    where = f' key "{key[1]}":' if key else ""
    return f"{shown(file)}:{line}:{where} not TOML{column}: {_HINTS.get(what) or shown(what)}"
