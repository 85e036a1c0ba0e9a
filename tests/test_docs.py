"""What the documents say is what the program does: help blocks, dependencies and their licences, exit codes, files."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
BLOCK = re.compile(r"<!-- help: ?(\w*) -->\n```\n(.*?)```\n<!-- end -->", re.DOTALL)
COMMANDS = ("", "run", "ping", "trace", "http", "stream", "diagnose", "check", "compare", "report", "demo")


def help_of(command: str) -> str:
    """The help of a command, as a terminal of 100 columns shows it."""
    argv = [sys.executable, "-m", "hopscope", *command.split(), "--help"]
    env = {**os.environ, "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
    done = subprocess.run(argv, check=True, capture_output=True, text=True, env=env)
    return re.sub(r"[ \t]+\n", "\n", done.stdout).strip() + "\n"


def blocks() -> dict[str, str]:
    return {match[1]: match[2] for match in BLOCK.finditer(README.read_text(encoding="utf-8"))}


def test_every_command_has_its_help_in_the_readme() -> None:
    assert tuple(blocks()) == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_the_readme_shows_the_help_as_it_is(command: str) -> None:
    if os.environ.get("UPDATE_README"):
        text = README.read_text(encoding="utf-8")
        block = f"<!-- help: {command} -->" if command else "<!-- help: -->"
        start = text.index(block)
        end = text.index("<!-- end -->", start)
        README.write_text(f"{text[:start]}{block}\n```\n{help_of(command)}```\n{text[end:]}", encoding="utf-8")
    assert blocks()[command] == help_of(command)


def test_every_dependency_has_its_licence_in_the_readme() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [entry for name, extra in project["optional-dependencies"].items() if name != "dev" for entry in extra]
    wanted = {re.split(r"[\[<>=~ ]", entry)[0] for entry in [*project["dependencies"], *extras]}
    table = README.read_text(encoding="utf-8").split("<!-- licences -->")[1].split("<!-- end -->")[0]
    listed = {line.split("|")[1].strip() for line in table.strip().splitlines()[2:]}
    assert listed == wanted


def test_the_files_that_the_readme_points_at_exist() -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
