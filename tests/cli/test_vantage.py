"""`hopscope vantage`: which places there are, which of them work, and what to do about the others."""

import json
import sys
from pathlib import Path

import pytest

from cli.invoking import SOURCE, here, process, valid

pytestmark = pytest.mark.loopback

FILE = f"""
quorum = 1

[[target]]
name = "gpu"
host = "192.0.2.1"

[[vantage]]
name = "here"
kind = "local"

[[vantage]]
name = "pod"
kind = "exec"
command = ["env", "PYTHONPATH={SOURCE}"]
hopscope = {json.dumps([sys.executable, "-m", "hopscope"])}

[[vantage]]
name = "gone"
kind = "exec"
command = "no-such-command exec -i pod --"

[[vantage]]
name = "world"
kind = "globalping"
places = ["Frankfurt"]
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "targets.toml").write_text(FILE)
    return str(tmp_path / "targets.toml")


def test_list_starts_nothing(file: str, capfd: pytest.CaptureFixture[str]) -> None:
    done = here(capfd, "vantage", "list", file)
    assert (done.code, done.err) == (0, "")
    assert [line.split()[:2] for line in done.out.splitlines()] == [
        ["here", "(local)"], ["pod", "(exec)"], ["gone", "(exec)"], ["world", "(globalping)"],
    ]  # fmt: skip
    found = valid(here(capfd, "vantage", "list", file, "--json").out)
    assert [vantage["outcome"] for vantage in found["vantages"]] == ["skipped"] * 4


def test_test_says_what_works_and_how_to_mend_the_rest(file: str) -> None:
    done = process("vantage", "test", file)
    assert done.code == 1
    lines = done.out.splitlines()
    assert lines[0] == "here (local): works"
    assert lines[1].startswith("pod (exec) env PYTHONPATH=")
    assert ": works · hopscope " in lines[1]
    assert lines[2:5] == [
        "gone (exec) no-such-command exec -i pod --: does not work",
        "  there is no command no-such-command on this machine",
        "  → install no-such-command, or mend `command` of the vantage",
    ]
    assert lines[5].endswith("does not work")


def test_the_document_of_a_test(file: str) -> None:
    done = process("vantage", "test", file, "--json")
    found = valid(done.out)
    assert (done.code, found["verdict"]["status"], found["command"]) == (1, "warning", "vantage test")
    assert [vantage["outcome"] for vantage in found["vantages"]] == ["ok", "ok", "vantage-failed", "vantage-failed"]
    assert [(failure["kind"], failure["vantage"]) for failure in found["failures"]] == [
        ("vantage", "gone"), ("skipped", "world"),
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "code"), [("pod", 0), ("gone", 3)])
def test_one_of_them_below_the_quorum_is_unknown(file: str, name: str, code: int) -> None:
    assert process("vantage", "test", file, name).code == code


def test_mistakes(file: str, capfd: pytest.CaptureFixture[str]) -> None:
    done = here(capfd, "vantage", "test", file, "god")
    assert done.code == 64
    assert 'no vantage is named "god"' in done.err
    assert here(capfd, "vantage", "test", "/nonexistent.toml").code == 64
    assert here(capfd, "vantage", "tset", file).code == 64
