"""Help of every command, with an example that the command line itself accepts; and what no command may import."""

import json
import os
import re
import shlex
import subprocess
import sys
import time

import pytest

from cli.invoking import PATIENCE_S, here
from hopscope import __version__
from hopscope.cli.app import app

COMMANDS = sorted(str(command.name) for command in app.registered_commands if not command.hidden)
HEAVY = ("scapy", "sqlalchemy", "vl_convert", "asyncssh", "httpcore", "h2", "geoip2", "maxminddb", "tree_sitter")
COST = """
import json, sys
from hopscope.cli.app import main_inner
try:
    code = main_inner(sys.argv[1:])
finally:
    print(json.dumps([code, sorted(name.partition(".")[0] for name in sys.modules)]), file=sys.stderr)
"""


def test_there_is_help_for_every_command_of_this_version() -> None:
    assert {"demo", "http", "ping", "report", "run", "trace"} - set(COMMANDS) == set()


@pytest.mark.parametrize("flag", ["--help", "-h"])
@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_well_and_has_an_example(command: str, flag: str, capfd: pytest.CaptureFixture[str]) -> None:
    done = here(capfd, command, flag)
    assert (done.code, done.err) == (0, "")
    assert f"Usage: hopscope {command}" in done.out
    assert re.search(rf"Example:\s+hopscope\s+{command}\b", done.out)


def test_help_of_the_whole_names_every_command(capfd: pytest.CaptureFixture[str]) -> None:
    done = here(capfd, "--help")
    assert (done.code, done.err) == (0, "")
    assert [command for command in COMMANDS if not re.search(rf"^  {command} +\S", done.out, re.MULTILINE)] == []


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "demo"])
def test_an_example_has_only_options_that_there_are(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    out = here(capfd, command, "--help").out
    found = re.search(r"Example:\s+hopscope\s+(.*?)(?:\n\n|\Z)", out, re.DOTALL)
    assert found is not None
    words = shlex.split(" ".join(found[1].split()))
    assert words[0] == command
    options = set(re.findall(r"(?<!\S)(-[A-Za-z0-9]|--[a-z-]+)", out))
    assert [word for word in words[1:] if word.startswith("-") and word not in options] == []


def test_the_version(capfd: pytest.CaptureFixture[str]) -> None:
    done = here(capfd, "--version")
    assert (done.code, done.out, done.err) == (0, f"hopscope {__version__}\n", "")


@pytest.mark.loopback
@pytest.mark.parametrize(
    "argv", [("--help",), ("--version",), ("ping", "--help"), ("ping", "-c", "1", "127.0.0.1"), ("report", "--schema")]
)
def test_small_commands_do_not_pay_for_large_libraries(argv: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COST, *argv], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code == 0
    assert [name for name in HEAVY if name in modules] == []


@pytest.mark.loopback
@pytest.mark.slow
@pytest.mark.parametrize(("argv", "target"), [(("--help",), 10), (("ping", "-c", "1", "127.0.0.1"), 20)])
def test_starting_costs_a_small_multiple_of_python_itself(argv: tuple[str, ...], target: float) -> None:
    wall([sys.executable, "-m", "hopscope", *argv])  # leaves the bytecode that an installed program has
    took = [(wall([sys.executable, "-c", "pass"]), wall([sys.executable, "-m", "hopscope", *argv])) for _ in range(5)]
    bare, ours = (min(each) for each in zip(*took, strict=True))  # what it costs; the rest is what the machine adds
    print(f"hopscope {' '.join(argv)}: {ours / bare:.1f} times `python -c pass`")  # noqa: T201 - shown by pytest -s
    assert ours / bare < 2 * target  # twice the target: this machine may do something else besides


def wall(argv: list[str]) -> float:
    """Seconds from the start of a process to its end."""
    started = time.perf_counter()
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True, timeout=PATIENCE_S, env=env)
    return time.perf_counter() - started
