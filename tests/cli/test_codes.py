"""Exit codes of what was found, of signals, the deadline and bugs; with --json one valid document in every case."""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from cli.invoking import PATIENCE_S, SOURCE, Document, command, here, process, valid
from net.servers import Script, answering, once, serve, silent

pytestmark = pytest.mark.loopback

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
TEAPOT = b"HTTP/1.1 418 I'm a teapot\r\nContent-Length: 0\r\n\r\n"
BROKEN = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as it:
        return str(it.getsockname()[1])


PING = ("ping", "-c", "3", "-i", "10ms")

ROWS: list[tuple[str, tuple[str, ...], int, str, str | None]] = [
    ("an answer", (*PING, "127.0.0.1"), 0, "ok", None),
    ("an answer over IPv6", (*PING, "::1"), 0, "ok", None),
    ("two answers", (*PING, "127.0.0.1", "127.0.0.2"), 0, "ok", None),
    ("a trace", ("trace", "-c", "2", "-i", "50ms", "127.0.0.1"), 0, "ok", None),
    ("a name that is dead", (*PING, "nothing-here.invalid"), 2, "critical", "dns"),
    ("a good one beside a dead name", (*PING, "127.0.0.1", "nothing-here.invalid"), 2, "critical", "dns"),
    ("a trace to a dead name", ("trace", "-c", "1", "nothing-here.invalid"), 2, "critical", "dns"),
]


@pytest.mark.parametrize(("argv", "code", "status", "outcome"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_what_was_found_is_the_exit_code_and_the_status(
    argv: tuple[str, ...], code: int, status: str, outcome: str | None, capfd: pytest.CaptureFixture[str]
) -> None:
    done = here(capfd, *argv, "--json")
    found = valid(done.out)
    assert (done.code, found["verdict"]["status"], found["partial"]) == (code, status, False)
    assert done.err == ""
    if outcome is not None:
        assert outcome in {result["outcome"] for result in found["results"]}


def test_a_refused_port_is_critical(capfd: pytest.CaptureFixture[str]) -> None:
    done = here(capfd, *PING, "--tcp", closed_port(), "127.0.0.1", "--json")
    found = valid(done.out)
    assert (done.code, [result["outcome"] for result in found["results"]]) == (2, ["refused"])
    assert {sample["outcome"] for sample in found["results"][0]["samples"]} == {"refused"}


@pytest.mark.parametrize(
    ("script", "code", "outcome"),
    [(answering(OK), 0, "ok"), (answering(TEAPOT), 1, "ok"), (answering(BROKEN), 2, "http"), (once(b""), 2, "http")],
    ids=["200", "418", "503", "closed without a word"],
)
def test_answers_of_a_server(script: Script, code: int, outcome: str, capfd: pytest.CaptureFixture[str]) -> None:
    with serve(script) as server:
        done = here(capfd, "http", "-n", "2", f"http://127.0.0.1:{server.port}/", "--json")
    found = valid(done.out)
    assert (done.code, [result["outcome"] for result in found["results"]]) == (code, [outcome])


def test_a_refused_url_is_critical(capfd: pytest.CaptureFixture[str]) -> None:
    done = here(capfd, "http", f"http://127.0.0.1:{closed_port()}/", "--json")
    assert (done.code, [result["outcome"] for result in valid(done.out)["results"]]) == (2, ["refused"])


def test_a_missed_budget_is_a_warning(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "targets.toml"
    file.write_text(
        '[[target]]\nname = "home"\nhost = "127.0.0.1"\nprobes = ["ping"]\ncount = 20\ninterval = "5ms"\n'
        'budget = { rtt_p95 = "1us" }\n'
    )
    done = here(capfd, "run", str(file), "--out", str(tmp_path / "out"), "--json")
    found = valid(done.out)
    assert (done.code, found["verdict"]["status"]) == (1, "warning")
    assert "over-budget" in {finding["kind"] for finding in found["verdict"]["findings"]}


def test_nothing_measured_is_unknown(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "targets.toml"
    file.write_text(
        '[[target]]\nname = "home"\nhost = "127.0.0.1"\n[[vantage]]\nname = "away"\nkind = "exec"\ncommand = ["true"]\n'
    )
    done = here(capfd, "run", str(file), "--out", str(tmp_path / "out"), "--json")
    found = valid(done.out)
    assert (done.code, found["verdict"]["status"]) == (3, "unknown")
    assert [(failure["kind"], failure["vantage"]) for failure in found["failures"]] == [("vantage", "away")]


@pytest.mark.parametrize("argv", [("ping",), ("trace",)])
def test_the_deadline_gives_a_partial_result_with_the_code_of_what_was_found(
    argv: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    done = here(capfd, *argv, "127.0.0.1", "-c", "100000", "-i", "20ms", "--timeout", "700ms", "--json")
    found = valid(done.out)
    assert (done.code, found["partial"], found["verdict"]["status"]) == (0, True, "ok")
    (result,) = found["results"]
    loss = result["loss"] if argv == ("ping",) else result["end_to_end"]["loss"]
    assert loss["sent"] > 5
    assert loss["lost"] == 0


def test_a_hung_server_costs_the_deadline_and_no_more(capfd: pytest.CaptureFixture[str]) -> None:
    with serve(silent) as server:
        started = time.monotonic()
        done = here(capfd, "http", f"http://127.0.0.1:{server.port}/", "--timeout", "2s", "--json")
        took = time.monotonic() - started
    found = valid(done.out)
    assert (done.code, found["verdict"]["status"], found["partial"]) == (2, "critical", False)
    assert [one["error"]["class"] for one in found["results"][0]["requests"]] == ["timeout"]
    assert took < 5


def interrupted(number: signal.Signals, *argv: str, cwd: Path, tape: Path) -> tuple[int, Document]:
    """Start, wait until it measures, send the signal; its exit code and the document that came."""
    started = time.monotonic()
    child = subprocess.Popen(
        command(*argv),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        text=True,
    )
    while not tape.exists() or tape.read_bytes().count(b"replied") <= 5:
        assert time.monotonic() - started < PATIENCE_S
        time.sleep(0.01)
    child.send_signal(number)
    out, err = child.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in err
    return child.returncode, valid(out)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_run_with_its_partial_result(number: signal.Signals, code: int, tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(
        '[[target]]\nname = "home"\nhost = "127.0.0.1"\nprobes = ["ping"]\ncount = 100000\ninterval = "10ms"\n'
    )
    tape = tmp_path / "out" / "run.jsonl"
    ended, found = interrupted(number, "run", "long.toml", "--out", "out", "--json", cwd=tmp_path, tape=tape)
    assert (ended, found["partial"], found["verdict"]["status"]) == (code, True, "ok")
    assert found["results"][0]["loss"]["received"] >= 5
    last = tape.read_text().splitlines()[-1]
    assert '"record":"end"' in last
    assert '"partial":true' in last
    assert valid((tmp_path / "out" / "report.json").read_text()) == found


@pytest.mark.parametrize("argv", [("http", "http://127.0.0.1:{port}/"), ("ping", "--tcp", "{port}", "127.0.0.1")])
def test_a_signal_ends_what_hangs_at_once(argv: tuple[str, ...], tmp_path: Path) -> None:
    with serve(silent) as server, socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.socket() as first:
        first.connect(full.getsockname())
        port = server.port if argv[0] == "http" else full.getsockname()[1]
        typed = [word.format(port=port) for word in argv]
        child = subprocess.Popen(
            command(*typed, "--json"), stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(SOURCE)}, text=True
        )
        while argv[0] == "http" and not server.accepted:
            time.sleep(0.01)
        time.sleep(0.5)
        started = time.monotonic()
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=PATIENCE_S)
        took = time.monotonic() - started
    assert (child.returncode, valid(out)["partial"]) == (130, True)
    assert took < 5


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_any_moment_of_starting_still_gives_a_document(number: signal.Signals, tmp_path: Path) -> None:
    codes = set()
    for step in range(6):
        child = subprocess.Popen(
            # the shell's own time is over when the program is there: what is left is ours
            command("ping", "127.0.0.1", "-c", "1", "--json"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            text=True,
        )
        wait_for_main(child.pid)
        time.sleep(0.05 * step)
        child.send_signal(number)
        out, err = child.communicate(timeout=PATIENCE_S)
        assert "Traceback" not in err
        codes.add(child.returncode)
        valid(out)
    assert codes <= {0, 128 + number}
    assert 128 + number in codes


def wait_for_main(pid: int) -> None:
    """Until the program has taken the signals: the mask of caught ones in /proc holds both."""
    wanted = (1 << signal.SIGINT - 1) | (1 << signal.SIGTERM - 1)
    over = time.monotonic() + PATIENCE_S
    while time.monotonic() < over:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
        if int(caught.split()[1], 16) & wanted == wanted:
            return
        time.sleep(0.001)
    pytest.fail("the program never took the signals")


@pytest.fixture
def broken_library(tmp_path: Path) -> Path:
    """A folder with a library that does not work: what a command meets there is a bug, wherever it comes from."""
    (tmp_path / "idna.py").write_text('raise RuntimeError("planted")\n')
    return tmp_path


def test_a_bug_is_one_line_70_and_a_document(broken_library: Path) -> None:
    path = f"{broken_library}{os.pathsep}{SOURCE}"
    done = process("ping", "bücher.invalid", "--json", env={"PYTHONPATH": path})
    assert done.code == 70
    (failure,) = valid(done.out)["failures"]
    assert (failure["kind"], failure["why"]) == ("bug", "bug: RuntimeError: planted")
    assert done.err == "hopscope: bug: RuntimeError: planted\n  → please report this; -vv shows where\n"
    loud = process("-vv", "ping", "bücher.invalid", "--json", env={"PYTHONPATH": path})
    assert loud.code == 70
    assert "Traceback" in loud.err
    assert valid(loud.out)["command"] == "ping"
