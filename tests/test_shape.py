"""The shape of the source: what a reader may take for granted in every file.

The rules that a linter does not know are here: how a module opens, how long it is, what it is called, and which module
is the door of which library. The direction of imports is import-linter's; here it is only checked that no room was
forgotten in its contracts.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "hopscope"

LONGEST = 350
REASONS = ("longer than", "longer because")
NAMES_THAT_SAY_NOTHING = {"base", "common", "core", "helpers", "manager", "utils"}

# One library, one door: the only modules that may import it. A name stands for the module and everything inside it.
DOORS: dict[str, tuple[str, ...]] = {
    "anyio": ("net.http",),  # httpcore runs on it; loaded before any time counts
    "apprise": ("sinks.notify",),
    "asyncssh": ("net.ssh",),
    "celery": ("vantages.fleet",),
    "dns": ("net.resolve",),
    "duckdb": ("history",),
    "geoip2": ("net.geo",),
    "h2": ("net.http*",),
    "httpcore": ("net.dial", "net.http*"),
    "icmplib": ("net.icmp",),
    "idna": ("targets",),
    "jinja2": ("render.html",),
    "maxminddb": ("net.geo",),
    "msgspec": ("*",),  # its structs are the values of every room; who encodes is in ENCODERS
    "prometheus_client": ("wire.exposition",),
    "psycopg": ("history",),
    "rich": ("cli.live", "render.terminal"),
    "scapy": ("net.packets",),
    "sqlalchemy": ("history",),
    "tree_sitter": ("targets",),
    "tree_sitter_toml": ("targets",),
    "typer": ("cli",),
    "vl_convert": ("render.html_charts",),
}

# The modules that turn values into bytes or back: the waists, and the lab's own pipes.
ENCODERS = ("lab", "render.json", "tape", "targets", "vantages.orders")

# The rooms that each contract of import-linter is about, once they exist.
ROOMS_UNDER_CONTRACT = {
    "pure": ("analysis", "engine", "follow", "model", "render", "tape", "targets", "wire"),
    "screenless": ("net", "probes", "vantages"),
}


def test_every_module_says_what_it_is_for() -> None:
    assert [name for name, tree in _modules() if not _is_sentence(_first_paragraph(tree))] == []


def test_a_long_module_gives_its_reason() -> None:
    too_long = [
        f"{path.relative_to(ROOT)}: {lines} lines"
        for path in _paths()
        if (lines := len(path.read_text().splitlines())) > LONGEST and not _gives_reason(path)
    ]
    assert too_long == []


def test_every_name_says_something() -> None:
    named = [path.relative_to(ROOT) for top in (SOURCE, ROOT / "tests") for path in top.rglob("*.py")]
    assert [str(path) for path in named if NAMES_THAT_SAY_NOTHING & set(path.with_suffix("").parts)] == []


def test_every_library_comes_in_by_its_door() -> None:
    elsewhere = [
        f"{module} imports {library}"
        for module, tree in _modules()
        for library in _libraries(tree)
        if not any(_is_inside(module, door) for door in DOORS.get(library, ()))
    ]
    assert elsewhere == []


def test_values_become_bytes_at_the_waists_only() -> None:
    elsewhere = [
        module
        for module, tree in _modules()
        if any(
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "msgspec"
            and node.attr in {"json", "toml", "to_builtins", "convert"}
            for node in ast.walk(tree)
        )
        and not any(_is_inside(module, door) for door in ENCODERS)
    ]
    assert elsewhere == []


@pytest.mark.parametrize("contract", ROOMS_UNDER_CONTRACT)
def test_every_room_is_under_its_contract(contract: str) -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = {each["id"]: each for each in settings["tool"]["importlinter"]["contracts"]}
    existing = {room for room in ROOMS_UNDER_CONTRACT[contract] if _exists(room)}
    assert {name.removeprefix("hopscope.") for name in contracts[contract]["source_modules"]} == existing


@pytest.mark.parametrize(
    ("docstring", "sentence"),
    [
        ("Bytes in, values out: this file does no I/O.", True),
        ("The delay of one probe\nand of many.", True),
        ("Delay.", False),
        ("the delay of one probe", False),
        ("", False),
    ],
)
def test_what_counts_as_a_sentence(docstring: str, sentence: bool) -> None:
    assert _is_sentence(docstring) is sentence


@pytest.mark.parametrize(
    ("module", "door", "inside"),
    [
        ("cli", "cli", True),
        ("cli.app", "cli", True),
        ("client", "cli", False),
        ("net.http", "net.http*", True),
        ("net.http_proxy", "net.http*", True),
        ("net.dial", "net.http*", False),
        ("render", "render.terminal", False),
    ],
)
def test_what_is_inside_a_door(module: str, door: str, inside: bool) -> None:
    assert _is_inside(module, door) is inside


def _paths() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def _modules() -> Iterator[tuple[str, ast.Module]]:
    """Every module, named as seen from inside the package, with its syntax."""
    for path in _paths():
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        yield name or "__init__", ast.parse(path.read_text(), path)


def _first_paragraph(tree: ast.Module) -> str:
    return (ast.get_docstring(tree) or "").split("\n\n")[0]


def _is_sentence(text: str) -> bool:
    return len(text.split()) >= 3 and text.rstrip().endswith((".", ":", "?", "!"))


def _gives_reason(path: Path) -> bool:
    paragraph = " ".join(_first_paragraph(ast.parse(path.read_text())).lower().split())
    return any(reason in paragraph for reason in REASONS)


def _libraries(tree: ast.Module) -> set[str]:
    """The top names of what a module imports that is neither ours nor Python's own."""
    imported: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                imported |= {name.name.split(".")[0] for name in names}
            case ast.ImportFrom(module=str(module), level=0):
                imported.add(module.split(".")[0])
            case _:
                pass
    return imported - sys.stdlib_module_names - {"hopscope"}


def _is_inside(module: str, door: str) -> bool:
    return fnmatch(module, door) or fnmatch(module, f"{door}.*")


def _exists(room: str) -> bool:
    return (SOURCE / f"{room}.py").exists() or (SOURCE / room / "__init__.py").exists()
