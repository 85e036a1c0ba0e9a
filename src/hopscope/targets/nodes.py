"""Checking a tree of TOML values, gathering complaints instead of stopping at the first.

A reader takes a node and gives the value as the model wants it, or complains and gives None. Readers are made by the
functions below and stand in the tables of `keys.py`; none of them raises.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeGuard

from msgspec import Struct

from hopscope.errors import UsageError
from hopscope.targets.hosts import HostSpec, host
from hopscope.targets.quantities import UNITS, duration, ratio, seconds, worded
from hopscope.targets.syntax import Path
from hopscope.targets.wording import NO_SECRETS, known_key, looks_secret, quoted

TEXT_CHARACTERS = 1000
LIST_ITEMS = 1000
LISTED_KEYS = 6
UNKNOWN = "unknown key"
SECRET_CHARACTERS = 20

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


class Complaint(Struct, frozen=True, kw_only=True):
    """One error: where, in which words, the wrong word with those it may have been, and where the other one stands."""

    path: Path
    says: str
    word: str = ""
    among: tuple[str, ...] = ()
    other: Path = ()


class Node(NamedTuple):
    """A value with its place in the file. Complaints of all nodes of one file go to one list."""

    value: object
    path: Path
    complaints: list[Complaint]

    def at(self, step: str | int, value: object = None) -> "Node":
        """The node of a key or list item below this one."""
        return Node(value, (*self.path, step), self.complaints)

    def wrong(self, says: str, *, word: str = "", among: tuple[str, ...] = (), other: Path = ()) -> None:
        """Complain about this place."""
        self.complaints.append(Complaint(path=self.path, says=says, word=word, among=among, other=other))

    def expected(self, what: str, *, word: str = "", among: tuple[str, ...] = ()) -> None:
        """Complain that this value is not what was expected."""
        self.wrong(f"expected {what}, not {quoted(self.value)}", word=word, among=among)


Reader = Callable[[Node], object]


class Key(NamedTuple):
    """What a key is called in the model, and how its value is read."""

    field: str
    read: Reader


def entries(value: object) -> dict[str, object]:
    """The keys of a table; empty for anything else."""
    return {str(key): inner for key, inner in value.items()} if isinstance(value, dict) else {}


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a number; true and false are none here. nan is outside of all limits."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def listed(words: Sequence[str | int], last: str = "and") -> str:
    """One word or more, in quotes, for a message."""
    plain = [str(word) if isinstance(word, int) else f'"{word}"' for word in words]
    return plain[0] if len(plain) == 1 else f"{', '.join(plain[:-1])} {last} {plain[-1]}"


def table_of(node: Node, keys: Mapping[str, Key], needs: tuple[str, ...] = ()) -> dict[str, object]:
    """The values of a table by their names in the model; wrong ones are left out. Unknown keys are complained about."""
    if not isinstance(node.value, dict):
        node.expected(f"a table with {listed(tuple(keys))}" if len(keys) <= LISTED_KEYS else "a table")
        return {}
    given = entries(node.value)
    found: dict[str, object] = {}
    for key, value in given.items():
        known = keys.get(key)
        if known is None:
            unknown_key(node.at(key), tuple(keys))
        elif (read := known.read(node.at(key, value))) is not None:
            found[known.field] = read
    for key in needs:
        if key not in given:
            node.at(key).wrong("missing, and needed here")
    return found


def unknown_key(node: Node, among: tuple[str, ...]) -> None:
    """Complain about a key that does not exist at this place."""
    node.wrong(UNKNOWN, word=str(node.path[-1]), among=among)


def tables(node: Node) -> list[Node]:
    """The nodes of `[[name]]`, one for each."""
    if not isinstance(node.value, list):
        node.expected(f"[[{node.path[-1]}]], with two brackets")
        return []
    items = [node.at(index, item) for index, item in enumerate(node.value)]
    for item in items:
        if not isinstance(item.value, dict):
            item.expected(f"[[{node.path[-1]}]], a table for each")
    return [item for item in items if isinstance(item.value, dict)]


def table(keys: Mapping[str, Key], needs: tuple[str, ...] = ()) -> Reader:
    """Reads a table with these keys."""

    def read(node: Node) -> object:
        found = table_of(node, keys, needs)
        return found if isinstance(node.value, dict) else None

    return read


def text(what: str, pattern: str | None = None) -> Reader:
    """Reads printable text that is not blank and fits the pattern."""

    def read(node: Node) -> object:
        value = node.value
        plain = isinstance(value, str) and value.isprintable() and 0 < len(value.strip()) <= TEXT_CHARACTERS
        if isinstance(value, str) and plain and (pattern is None or re.fullmatch(pattern, value)):
            return value
        node.expected(what)
        return None

    return read


def choice(*options: str | int) -> Reader:
    """Reads one of a few words or numbers."""

    def read(node: Node) -> object:
        if isinstance(node.value, str | int) and not isinstance(node.value, bool) and node.value in options:
            return node.value
        word = node.value if isinstance(node.value, str) else ""
        words = tuple(option for option in options if isinstance(option, str))
        node.expected(listed(options, last="or"), word=word, among=words)
        return None

    return read


def boolean(node: Node) -> object:
    """Reads true or false."""
    if isinstance(node.value, bool):
        return node.value
    node.expected("true or false")
    return None


def whole(low: int, high: int) -> Reader:
    """Reads a whole number from `low` to `high`."""

    def read(node: Node) -> object:
        if isinstance(node.value, int) and not isinstance(node.value, bool) and low <= node.value <= high:
            return node.value
        node.expected(f"a whole number from {low} to {high}")
        return None

    return read


def number(what: str, low: float, high: float, *, above: bool = False) -> Reader:
    """Reads a number from `low` (with `above`: more than `low`) to `high`."""

    def read(node: Node) -> object:
        value = node.value
        if is_number(value) and low <= value <= high and not (above and value == low):
            return float(value)
        node.expected(what)
        return None

    return read


def span(low_ns: int, high_ns: int, *, per_ns: int = 1) -> Reader:
    """Reads a duration between two limits, in nanoseconds, or with `per_ns` as a float of that unit."""

    def read(node: Node) -> object:
        value = node.value
        bare = is_number(value)
        try:
            if isinstance(value, str):
                found = duration(value)
            elif is_number(value):
                found = seconds(value)
            else:
                node.expected('a duration such as "200ms" or "5s"')
                return None
        except UsageError as error:
            node.wrong(_told(error))
            return None
        if low_ns <= found <= high_ns:
            return found if per_ns == 1 else found / per_ns
        limits = f"a duration from {worded(low_ns)} to {worded(high_ns)}"
        meant = (f"{value}ms",) if bare and low_ns <= found // (UNITS["s"] // UNITS["ms"]) <= high_ns else ()
        node.expected(
            f"{limits} (a bare number is seconds)" if bare else limits, word=meant[0] if meant else "", among=meant
        )
        return None

    return read


def share(node: Node) -> object:
    """Reads a ratio: "1%" or 0.01. A bare 1 is refused: it would be 100 %, and 1 % is meant."""
    value = node.value
    if is_number(value):
        if 0 <= value < 1:
            return float(value)
        meant = (f"{value}%",) if 1 <= value <= 100 else ()  # noqa: PLR2004 - per cent
        node.expected('a ratio such as "1%" or 0.01', word=meant[0] if meant else "", among=meant)
        return None
    if not isinstance(value, str):
        node.expected('a ratio such as "1%" or 0.01')
        return None
    try:
        return ratio(value)
    except UsageError as error:
        node.wrong(_told(error))
        return None


def variable(node: Node) -> object:
    """Reads the name of an environment variable. What is there instead is never repeated: it may be the secret."""
    value = node.value
    if isinstance(value, str) and _VARIABLE.fullmatch(value) and not _like_a_key(value):
        return value
    node.wrong(
        f"expected the name of an environment variable, such as GPU1_KEY ({NO_SECRETS}: set it and write its name)"
    )
    return None


def url(node: Node) -> object:
    """Reads an http or https URL."""
    spec = _host_spec(node)
    if spec is None:
        return None
    if spec.url is None:
        node.expected('a URL such as "https://gpu1.example.net/v1"')
        return None
    return spec


def url_text(node: Node) -> object:
    """Reads an http or https URL that is kept as text."""
    spec = url(node)
    return spec.url if isinstance(spec, HostSpec) else None


def bare_host(node: Node) -> object:
    """Reads a host that is no URL; a port may follow it."""
    spec = _host_spec(node)
    if spec is not None and spec.url is not None:
        node.wrong('expected a host, not a URL; write url = "…" for a URL')
        return None
    return spec


def host_name(node: Node) -> object:
    """Reads a host without a port, as text."""
    spec = bare_host(node)
    if isinstance(spec, HostSpec) and spec.port is not None:
        node.expected("a host without a port")
        return None
    return spec.host if isinstance(spec, HostSpec) else None


def list_of(what: str, item: Reader, *, alone: bool = False) -> Reader:
    """Reads a list that is not empty and has no item twice; with `alone` a single item needs no brackets."""

    def read(node: Node) -> object:
        if alone and isinstance(node.value, str | int) and not isinstance(node.value, bool):
            only = item(node)
            return None if only is None else (only,)
        if not isinstance(node.value, list) or not node.value:
            node.expected(what)
            return None
        if len(node.value) > LIST_ITEMS:
            node.wrong(f"expected at most {LIST_ITEMS} items")
            return None
        before = len(node.complaints)
        found = [item(node.at(index, value)) for index, value in enumerate(node.value)]
        for index, value in enumerate(found):
            if value is not None and value in found[:index]:
                node.at(index).wrong(f"{quoted(node.value[index])} is listed twice")
        return tuple(found) if len(node.complaints) == before else None

    return read


def pairs(what: str, name: str, item: Reader) -> Reader:
    """Reads a table of free names, each fitting the pattern, as pairs."""

    def read(node: Node) -> object:
        if not isinstance(node.value, dict):
            node.expected(what)
            return None
        found: list[tuple[str, object]] = []
        for key, value in entries(node.value).items():
            if not re.fullmatch(name, key) or not key.isprintable():
                node.at(key).wrong(f"expected {what}")
            elif (inner := item(node.at(key, value))) is not None:
                found.append((key, inner))
        return tuple(found)

    return read


def _host_spec(node: Node) -> HostSpec | None:
    if not isinstance(node.value, str):
        node.expected("text in quotes")
        return None
    if known_key(node.value):
        node.expected("a host or URL")
        return None
    try:
        return host(node.value)
    except UsageError as error:
        node.wrong(_told(error))
        return None


def _told(error: UsageError) -> str:
    return str(error) if str(error).endswith("?") else f"{error}; {error.advice}"


def _like_a_key(name: str) -> bool:
    mixed = any(character.islower() for character in name) and any(character.isdigit() for character in name)
    return looks_secret(name) or (len(name) >= SECRET_CHARACTERS and mixed)
