"""The line of every key in a TOML text. Loaded only once something is wrong: the parser for it costs its import.

Never raises: where this parser and the standard library's differ, keys are missing and the line of the table is told.
"""

import tomllib

import tree_sitter_toml
from tree_sitter import Language, Node, Parser

from hopscope.targets.syntax import Path


def lines(text: str) -> dict[Path, int]:
    """The line, from 1, on which each key, table and list item first stands."""
    positions = _Positions()
    root = Parser(Language(tree_sitter_toml.language())).parse(text.encode("utf-8", "replace")).root_node
    rest: list[tuple[Node, Path]] = [(root, ())]  # a stack of our own: lists may be nested hundreds deep
    while rest:
        node, path = rest.pop()
        rest.extend(reversed(positions.below(node, path)))
    return positions.found


class _Positions:
    """The lines found so far, and how many tables each `[[name]]` has so far."""

    def __init__(self) -> None:
        self.found: dict[Path, int] = {}
        self._sizes: dict[Path, int] = {}

    def below(self, node: Node, path: Path) -> list[tuple[Node, Path]]:
        """The nodes inside one that stands at `path`, each with the path it stands at."""
        children = [child for child in node.named_children if child.type != "comment"]
        match node.type:
            case "table" | "table_array_element" if children:
                inside = self._header(children[0], new=node.type == "table_array_element")
                return [(child, inside) for child in children[1:]]
            case "pair" if len(children) > 1:
                return [(children[1], self._named(path, _parts(children[0]), _line(node)))]
            case "array":
                for index, child in enumerate(children):
                    self.found.setdefault((*path, index), _line(child))
                return [(child, (*path, index)) for index, child in enumerate(children)]
            case "document" | "inline_table":
                return [(child, path) for child in children]
            case _:
                return []

    def _header(self, key: Node, *, new: bool) -> Path:
        *outer, last = _parts(key) or [""]
        path = (*self._named((), outer, _line(key)), last)
        if new:
            self.found.setdefault(path, _line(key))
            self._sizes[path] = self._sizes.get(path, 0) + 1
        return self._named(path[:-1], [last], _line(key))

    def _named(self, path: Path, parts: list[str], line: int) -> Path:
        for part in parts:
            path = (*path, part)
            self.found.setdefault(path, line)
            if path in self._sizes:
                path = (*path, self._sizes[path] - 1)
                self.found.setdefault(path, line)
        return path


def _line(node: Node) -> int:
    return node.start_point[0] + 1


def _parts(key: Node) -> list[str]:
    """The parts of a key in order; the grammar nests `a.b.c` as `(a.b).c`."""
    parts: list[str] = []
    rest = [key]
    while rest:
        part = rest.pop()
        if part.type == "dotted_key":
            rest.extend(reversed(part.named_children))
        elif part.text is not None:
            parts.append(_unquoted(part.text.decode("utf-8", "replace")))
    return parts


def _unquoted(key: str) -> str:
    if not key.startswith(('"', "'")):
        return key
    try:
        return next(iter(tomllib.loads(f"{key}=0")), key)
    except ValueError:
        return key
