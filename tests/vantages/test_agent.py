"""The far end by itself: what it takes for an order, and that it never outlives its controller or its deadline."""

import fcntl
import json
import os
import pty
import subprocess
import time
from collections.abc import Iterator

import pytest

from hopscope import __version__
from hopscope.model.record import TAPE_NUMBER
from vantages.far import HERE, HOPSCOPE, SOURCE

PATIENCE_S = 20
NONCE = "6c1f"
HELLO = {"order": "hello", "agent": 1, "tape": TAPE_NUMBER, "version": __version__, "vantage": "far", "nonce": NONCE,
         "deadline_ns": 60 * 10**9}  # fmt: skip
LONG = {"order": "task", "id": 7, "task": {
    "kind": "ping", "target": "t", "vantage": "far", "reason": "r", "address": "127.0.0.1", "family": 4,
    "protocol": "icmp", "count": 100_000, "interval_ns": 10**7, "threshold_ns": 10**8}}  # fmt: skip


@pytest.fixture
def agent() -> Iterator["subprocess.Popen[str]"]:
    child = subprocess.Popen(
        [*HERE, *HOPSCOPE, "agent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with child:
        yield child
        child.kill()


def tell(agent: "subprocess.Popen[str]", *orders: object) -> None:
    assert agent.stdin is not None
    for order in orders:
        agent.stdin.write(json.dumps(order) + "\n")
    agent.stdin.flush()


def hear(agent: "subprocess.Popen[str]") -> dict[str, object]:
    assert agent.stdout is not None
    line = agent.stdout.readline()
    assert line
    found: dict[str, object] = json.loads(line)
    return found


def greeted(agent: "subprocess.Popen[str]", **changed: object) -> dict[str, object]:
    """The first record, after the line that says who it is."""
    assert agent.stdout is not None
    tell(agent, HELLO | changed)
    assert agent.stdout.readline() == "\n"
    here = hear(agent)
    assert (here["record"], here["nonce"]) == ("agent", NONCE)
    return hear(agent)


def rest(agent: "subprocess.Popen[str]") -> list[dict[str, object]]:
    out, _ = agent.communicate(timeout=PATIENCE_S)
    return [json.loads(line) for line in out.splitlines()]


def test_a_controller_that_ends_its_input_ends_it(agent: "subprocess.Popen[str]") -> None:
    run = greeted(agent)
    assert (run["record"], run["tape"], run["tool_version"]) == ("run", TAPE_NUMBER, __version__)
    tell(agent, LONG)
    assert hear(agent)["record"] == "probe"
    began = time.monotonic()
    *_, done, end = rest(agent)
    assert (done["record"], done["complete"]) == ("done", False)
    assert (end["record"], end["why"]) == ("end", "its controller is gone")
    assert agent.returncode == 0
    assert time.monotonic() - began < 3


def test_nobody_who_reads_ends_it(agent: "subprocess.Popen[str]") -> None:
    greeted(agent)
    tell(agent, LONG)
    hear(agent)
    assert agent.stdout is not None
    agent.stdout.close()
    assert agent.wait(PATIENCE_S) == 0


def test_its_deadline_ends_it(agent: "subprocess.Popen[str]") -> None:
    greeted(agent, deadline_ns=5 * 10**8)
    tell(agent, LONG)
    began = time.monotonic()
    *_, end = rest_while_open(agent)
    assert (end["record"], end["why"], end["partial"]) == ("end", "its deadline was reached", True)
    assert time.monotonic() - began < 5


def rest_while_open(agent: "subprocess.Popen[str]") -> list[dict[str, object]]:
    """What it says to its end though its input stays open."""
    assert agent.stdout is not None
    return [json.loads(line) for line in agent.stdout]


def test_a_controller_that_does_not_read_cannot_hold_it_beyond_its_deadline(agent: "subprocess.Popen[str]") -> None:
    assert agent.stdout is not None
    fcntl.fcntl(agent.stdout, fcntl.F_SETPIPE_SZ, 4096)
    greeted(agent, deadline_ns=5 * 10**8)
    tell(agent, LONG)
    assert agent.wait(PATIENCE_S) != 0  # its pipe is full: the system ended it


def test_ticks_are_answered_with_its_clock(agent: "subprocess.Popen[str]") -> None:
    greeted(agent)
    for _ in range(3):
        before = time.time_ns()
        tell(agent, {"order": "tick"})
        here = hear(agent)
        assert (here["record"], here["nonce"]) == ("agent", NONCE)
        assert isinstance(here["at"], int)
        assert before - 10**8 < here["at"] < time.time_ns() + 10**8
    tell(agent, {"order": "end"})
    (end,) = rest(agent)
    assert "why" not in end


def test_a_controller_of_another_tape_is_told_ours(agent: "subprocess.Popen[str]") -> None:
    run = greeted(agent, tape=TAPE_NUMBER + 1)
    assert run["tape"] == TAPE_NUMBER
    assert rest(agent) == []


@pytest.mark.parametrize("order", [{"order": "dance"}, {"order": "task", "id": 1, "task": {"kind": "stream"}}, HELLO])
def test_an_order_that_it_does_not_know_ends_it(agent: "subprocess.Popen[str]", order: object) -> None:
    greeted(agent)
    tell(agent, order)
    (end,) = rest_while_open(agent)
    assert end["partial"] is True


@pytest.mark.parametrize("text", ["", "\n", "GET / HTTP/1.1\r\n\r\n", '{"order":"tick"}\n', "\0" * 100 + "\n"])
def test_somebody_else_gets_one_line(agent: "subprocess.Popen[str]", text: str) -> None:
    out, err = agent.communicate(text, timeout=PATIENCE_S)
    assert out == ""
    assert err.startswith("hopscope: an agent takes its orders from a hopscope elsewhere")
    assert "Traceback" not in err
    assert agent.returncode == 64


def test_a_person_gets_one_line() -> None:
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [*HERE, *HOPSCOPE, "agent"], stdin=theirs, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 64
    assert "hopscope vantage test" in done.stderr
    assert str(SOURCE) not in done.stderr
