"""How tests call the program: in this process for speed, as one of its own where streams and signals matter."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any

import jsonschema
import pytest

from hopscope.cli.app import main_inner
from hopscope.render.json import schema

Document = Any  # parsed JSON: its shape is what `valid` checks

PATIENCE_S = 60
SOURCE = Path(__file__).parents[2] / "src"


@cache
def validator() -> jsonschema.Draft202012Validator:
    """Checks documents against the schema that `hopscope report --schema` prints."""
    return jsonschema.Draft202012Validator(json.loads(schema()))


def valid(text: str) -> Document:
    """The one document in a text, which has to be valid and to stand alone."""
    found = json.loads(text)
    validator().validate(found)
    return found


class Done:
    """How an invocation ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err


def here(capfd: pytest.CaptureFixture[str], *argv: str) -> Done:
    """The command line in this process."""
    capfd.readouterr()
    code = main_inner(argv)
    out, err = capfd.readouterr()
    return Done(code, out, err)


def command(*argv: str) -> list[str]:
    """The command line as a process."""
    return [sys.executable, "-m", "hopscope", *argv]


def process(
    *argv: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[str] | None = subprocess.DEVNULL,
    before: str | None = None,
) -> Done:
    """The command line in a process of its own; `before` is a line of shell that ends in exec'ing it as "$@"."""
    whole = command(*argv) if before is None else ["sh", "-c", before, "sh", *command(*argv)]
    done = subprocess.run(
        whole,
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(SOURCE), **(env or {})},
        stdin=stdin,
        timeout=PATIENCE_S,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)
