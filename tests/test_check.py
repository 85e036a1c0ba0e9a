"""A check from load to message: with reports made by hand and a clock of the test's own, then as the command does it.

The store outlives kills: a process that checks without pause is killed at moments of chance. This file is longer than
others because a check is where everything meets.
"""

import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import typer
from msgspec.structs import replace

from cli.invoking import SOURCE, valid
from history.made import MINUTE, START, Clock, file, finding, plan, report
from hopscope import check as checking
from hopscope.analysis import judge
from hopscope.check import Checked
from hopscope.cli import check as command
from hopscope.errors import LockedError, StoreError
from hopscope.history import query
from hopscope.history.lock import locked
from hopscope.model.plan import Plan
from hopscope.model.report import Report, Status, VantageReport
from hopscope.targets.contents import Alarm, Maintenance, TargetFile
from virtual.running import Running
from virtual.scenario import Expect, Hop, Scenario, Target

LOSSY: Status = "warning"
KILLS = 20


class Checks:
    """Checks one after another, five minutes apart."""

    def __init__(self, path: Path, found: TargetFile) -> None:
        self.path = path
        self.file = found
        self.clock = Clock()
        self.number = 0

    def __call__(self, made: Report) -> Checked:
        self.number += 1
        self.clock.now = START + self.number * 5 * MINUTE
        due = checking.due(self.file, self.clock.now, f"{self.number:06}")
        return checking.check(self.file, plan(self.file), due, self.path, measure=lambda _: made, clock=self.clock)

    def messages(self, *reports: Report) -> list[str]:
        return [checked.message for made in reports if (checked := self(made)).message]


@pytest.fixture
def checks(tmp_path: Path) -> Checks:
    return Checks(tmp_path / "history.sqlite", file("fra", "ham"))


WELL = report({"fra": "ok", "ham": "ok"})
BAD = report({"fra": LOSSY, "ham": "ok"})
BLIND = report({"fra": "unknown", "ham": "unknown"})


def test_six_checks_of_a_lossy_link_and_six_after_it_recovered_print_two_messages(checks: Checks) -> None:
    raised, cleared = checks.messages(*[BAD] * 6, *[WELL] * 6)
    assert raised.startswith("RAISED fra: bad in 2 of the last 2 runs, since 2026-01-01T00:05:01Z\n")
    assert cleared.startswith("CLEARED fra: well in 3 runs; was bad from 2026-01-01T00:05:01Z for 40 minutes\n")
    assert len(raised.splitlines()) <= 20
    assert [one.status for one in query.runs(checks.path, 99)] == ["warning"] * 6 + ["ok"] * 6
    assert [(one.kind, one.told) for one in query.events(checks.path, 99)] == [("raise", True), ("clear", True)]


def test_it_is_bad_since_the_first_bad_run_of_those_that_raised_it(checks: Checks) -> None:
    raised, cleared = checks.messages(WELL, BAD, WELL, BLIND, BAD, WELL, BAD, *[WELL] * 3)
    assert raised.startswith("RAISED fra: bad in 2 of the last 3 runs, since 2026-01-01T00:25:01Z\n")
    assert cleared.startswith("CLEARED fra: well in 3 runs; was bad from 2026-01-01T00:25:01Z for 25 minutes\n")


def test_two_targets_behind_one_link_are_one_message(checks: Checks) -> None:
    both = report({"fra": LOSSY, "ham": LOSSY})
    raised, cleared = checks.messages(*[both] * 6, *[WELL] * 6)
    assert raised.startswith("2 alarms with one cause, seen from here:\n")
    assert cleared.count("CLEARED") == 2
    assert len(query.events(checks.path, 99)) == 4


def test_nothing_measured_tells_nothing(checks: Checks) -> None:
    assert checks.messages(*[BLIND] * 6) == []
    assert checks.messages(*[BAD] * 2, *[BLIND] * 9) != []
    assert checks.messages(*[WELL] * 2, BLIND, WELL)[0].startswith("CLEARED")


def test_below_the_quorum_no_target_is_blamed_and_the_vantage_is_told_once(checks: Checks) -> None:
    down = VantageReport(name="here", kind="local", site=None, outcome="vantage-failed", why="ssh: refused")
    fault = finding(None, kind="vantage-fault", severity="unknown", why="vantage here measured nothing: ssh: refused")
    made = report({"fra": "critical", "ham": "critical"}, fault, vantages=(down,))
    (raised, cleared) = checks.messages(*[made] * 6, *[WELL] * 6)
    assert raised.startswith("RAISED vantage here: bad in 2 of the last 2 runs, since 2026-01-01T00:05:01Z\n")
    assert raised.splitlines()[1].startswith("  vantage here measured nothing")
    assert "fra" not in raised
    assert cleared.startswith("CLEARED vantage here")
    assert {one.outcome for one in query.runs(checks.path, 6)} == {"ok"}
    assert query.runs(checks.path, 99)[0].outcome == "vantage-failed"


def test_alarms_of_the_file(tmp_path: Path) -> None:
    found = replace(
        file("fra", "ham"),
        alarms=(
            Alarm(metric="status", raise_runs=3, of_runs=3),
            Alarm(metric="status", target="ham", raise_runs=1, of_runs=1),
            Alarm(metric="loss", target="fra", raise_runs=1, of_runs=1, clear=1),
            Alarm(metric="tpot_p95"),
        ),
    )
    checks = Checks(tmp_path / "store", found)
    over = finding("fra", kind="over-budget", metric="loss")
    both = report({"fra": LOSSY, "ham": LOSSY}, over)
    told = [checks(both) for _ in range(3)]
    assert [one.message.count("RAISED") for one in told] == [2, 0, 1]
    assert "RAISED fra loss: " in told[0].message
    assert "RAISED ham: " in told[0].message
    assert {failure.target for failure in told[0].report.failures} == {"fra", "ham"}
    assert "tpot_p95" in told[0].report.failures[0].why


def test_a_maintenance_is_silent_and_over_when_it_is_over(tmp_path: Path) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    window = Maintenance(start=start, end=start + timedelta(minutes=22), target="fra")
    checks = Checks(tmp_path / "store", replace(file("fra", "ham"), maintenance=(window,)))
    told = [checks(BAD).message for _ in range(6)]
    assert [bool(one) for one in told] == [False] * 4 + [True, False]
    assert "RAISED fra: bad since 2026-01-01T00:05:01Z" in told[4]
    assert [(one.kind, one.told) for one in query.events(checks.path, 9)] == [("raise", False), ("raise", True)]
    elsewhere = Checks(tmp_path / "other", replace(file("fra", "ham"), maintenance=(replace(window, target="ham"),)))
    assert len(elsewhere.messages(*[BAD] * 6)) == 1


def test_two_files_share_a_store_without_sharing_alarms(tmp_path: Path) -> None:
    one = Checks(tmp_path / "store", file("fra", "ham", at=tmp_path / "one.toml"))
    two = Checks(tmp_path / "store", file("fra", "ham", at=tmp_path / "two.toml"))
    two.number = 100
    assert [bool(checked.message) for checked in (one(BAD), two(BAD), one(BAD), two(BAD))] == [False, False, True, True]


def test_a_target_that_left_the_file_leaves_no_alarm(checks: Checks) -> None:
    checks.messages(BAD, BAD)
    config = str(Path(checks.file.file).absolute())
    assert ("fra", "status") in query.alarms(checks.path, config)
    checks.file = file("ham")
    checks(report({"ham": "ok"}))
    assert set(query.alarms(checks.path, config)) == {("ham", "status"), ("here", "vantage")}


def test_slots(tmp_path: Path) -> None:
    found = file("fra")
    now = START + 7 * MINUTE + 1
    assert checking.due(found, now, "x").slot_ns == now
    every = replace(found, interval_ns=5 * MINUTE)
    assert checking.due(every, now, "x").slot_ns == START + 5 * MINUTE
    assert checking.due(every, now, "abc").id == "20260101T000700.000Z-abc"
    checks = Checks(tmp_path / "store", replace(found, interval_ns=MINUTE * 60))
    for _ in range(3):
        checks(report({"fra": "ok"}))
    assert len({one.slot_at for one in query.runs(checks.path, 9)}) == 1
    assert len(query.runs(checks.path, 9)) == 3


def test_the_splay_is_steady_and_needs_an_interval() -> None:
    found = replace(file("fra"), interval_ns=5 * MINUTE, splay_ns=MINUTE)
    delays = {checking.splay_ns(found, f"host-{number}") for number in range(20)}
    assert len(delays) > 10
    assert all(0 <= delay < MINUTE for delay in delays)
    assert checking.splay_ns(found, "host") == checking.splay_ns(found, "host")
    assert checking.splay_ns(replace(found, interval_ns=None), "host") == 0
    assert checking.splay_ns(replace(found, splay_ns=None), "host") == 0


def never(_: Plan) -> Report:
    pytest.fail("measured in spite of everything")


def test_while_one_runs_another_does_nothing(checks: Checks) -> None:
    due = checking.due(checks.file, START, "x")
    with locked(checks.path), pytest.raises(LockedError):
        checking.check(checks.file, plan(checks.file), due, checks.path, measure=never, clock=checks.clock)
    checks(WELL)


def test_a_bad_store_is_told_before_the_first_packet(checks: Checks) -> None:
    checks.path.write_bytes(b"no database" * 1000)
    due = checking.due(checks.file, START, "x")
    with pytest.raises(StoreError, match="store-corrupt"):
        checking.check(checks.file, plan(checks.file), due, checks.path, measure=never, clock=checks.clock)


@pytest.mark.parametrize(("status", "wanted"), [("ok", "unknown"), (LOSSY, "unknown"), ("critical", "critical")])
def test_a_run_that_cannot_be_recorded_is_a_failure(checks: Checks, status: Status, wanted: Status) -> None:
    checks(WELL)

    def spoiling(_: Plan) -> Report:
        with closing(sqlite3.connect(checks.path)) as connection:
            connection.execute("DROP TABLE event")
            connection.execute("DROP TABLE result")
        return report({"fra": status, "ham": "ok"})

    due = checking.due(checks.file, START, "x")
    done = checking.check(checks.file, plan(checks.file), due, checks.path, measure=spoiling, clock=checks.clock)
    assert done.trouble is not None
    assert done.message == ""
    assert done.report.verdict.status == wanted
    assert "store-corrupt" in done.report.failures[-1].why
    assert "not recorded" in done.report.verdict.summary
    assert len(query.runs(checks.path, 9)) == 1


CHECK_WITHOUT_PAUSE = """
import sys
from pathlib import Path
from test_check import BAD, WELL, Checks
from history.made import file
checks = Checks(Path(sys.argv[1]), file("fra", "ham"))
checks.number = int(sys.argv[2])
while True:
    checks(BAD if checks.number // 7 % 2 else WELL)
    print(f"{checks.number:06}", flush=True)
"""


@pytest.mark.slow
def test_kills_cost_no_committed_run_and_leave_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    chance = random.Random(20260101)
    environ = {**os.environ, "PYTHONPATH": f"{Path(__file__).parent}:{SOURCE}"}
    committed: set[str] = set()
    for kill in range(KILLS):
        child = subprocess.Popen(
            [sys.executable, "-c", CHECK_WITHOUT_PAUSE, str(path), str(kill * 100_000)],
            stdout=subprocess.PIPE,
            text=True,
            env=environ,
        )
        assert child.stdout is not None
        first = child.stdout.readline() if kill % 4 else ""  # every fourth dies while it starts, or makes the store
        time.sleep(chance.uniform(0, 0.1) if kill % 4 else chance.uniform(0.2, 1.2))
        child.send_signal(signal.SIGKILL)
        out, _ = child.communicate()
        committed |= {line for line in (first + out).split("\n")[:-1] if line}
        with locked(path):
            pass
    checks = Checks(path, file("fra", "ham"))
    checks.number = KILLS * 100_000
    checks(WELL)
    recorded = {one.id.rpartition("-")[2] for one in query.runs(path, 1_000_000)}
    assert len(committed) > KILLS
    assert committed <= recorded
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def link(drop: float) -> Scenario:
    """A path whose last link loses a share of everything."""
    hops = tuple(Hop(rtt_ms=ttl, addr=f"192.0.2.{ttl}") for ttl in (1, 2, 3))
    return Scenario(why="a link", target=Target(rtt_ms=8.0, drop=drop), hop=hops, expect=Expect())


@pytest.mark.parametrize("seed", range(3))
def test_a_link_that_loses_and_recovers_is_told_twice_by_the_real_judge(tmp_path: Path, seed: int) -> None:
    bad, well = link(0.4), link(0.0)
    found = replace(file(), targets=bad.as_plan().targets)
    weather = [well] * 3 + [bad] * 6 + [well] * 6
    books = [Running(scenario, 100 * seed + number).whole() for number, scenario in enumerate(weather)]
    checks = Checks(tmp_path / "store", found)
    raised, cleared = checks.messages(*(judge.report(book, tool_version="0") for book in books))
    assert raised.startswith(f"RAISED {found.targets[0].name}: bad in 2 of the last")
    assert "  where: between hop 3 (192.0.2.3) and hop 4 (203.0.113.9)" in raised
    assert cleared.startswith("CLEARED")
    assert [one.status != "ok" for one in query.runs(checks.path, 99)] == [False] * 3 + [True] * 6 + [False] * 6


# ---- the command -----------------------------------------------------------------------------------------------------

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """`hopscope WORDS`, with the store in the test's own state folder; its code and what it printed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    app = typer.Typer(rich_markup_mode=None)
    app.command("check")(command.check)
    app.add_typer(command.history)

    def invoked(*words: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code: object = typer.main.get_command(app).main(list(words), standalone_mode=False)
        out, err = capfd.readouterr()
        assert isinstance(code, int)
        return code, out, err

    return invoked


def target_file(tmp_path: Path, port: int, more: str = "") -> str:
    path = tmp_path / "targets.toml"
    path.write_text(
        f'[[target]]\nname = "fra"\nhost = "127.0.0.1"\nport = {port}\nprotocol = "tcp"\nprobes = ["ping"]\n'
        f'count = 3\ninterval = "10ms"\n{more}'
    )
    return str(path)


@contextmanager
def listening(port: int = 0) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", port)) as server:
        yield server.getsockname()[1]


@pytest.mark.loopback
def test_a_port_that_closes_and_opens_is_told_twice(run: Run, tmp_path: Path) -> None:
    with listening() as port:
        name = target_file(tmp_path, port)
        ends = [run("check", name) for _ in range(2)]
    ends += [run("check", name) for _ in range(4)]
    with listening(port):
        ends += [run("check", name) for _ in range(5)]
    assert [code for code, _, _ in ends] == [0, 0, 2, 2, 2, 2, 0, 0, 0, 0, 0]
    told = [out for _, out, _ in ends if out]
    assert len(told) == 2
    assert told[0].startswith("RAISED fra: ")
    assert told[1].startswith("CLEARED fra: ")
    assert {err for _, _, err in ends} == {""}
    code, out, _ = run("history", "runs", "--json")
    found = valid(out)
    assert (code, len(found["results"])) == (0, 11)
    assert {"id", "slot_at", "started_at", "status", "outcome"} <= set(found["results"][0])
    assert [one["outcome"] for one in found["results"]] == ["ok"] * 2 + ["target-failed"] * 4 + ["ok"] * 5
    assert [one["kind"] for one in valid(run("history", "events", "--json")[1])["results"]] == ["raise", "clear"]
    assert run("history", "events")[1].count("\n") == 3
    assert run("history", "runs", "-n", "4")[1].count("\n") == 5


@pytest.mark.loopback
def test_formats_print_every_time(run: Run, tmp_path: Path) -> None:
    with listening() as port:
        name = target_file(tmp_path, port)
        assert run("check", name) == (0, "", "")
        code, out, _ = run("check", name, "--always")
        assert (code, out.startswith("ok, unchanged: fra is well")) == (0, True)
        for words in (("--json",), ("--format", "json")):
            code, out, _ = run("check", name, *words)
            assert (code, valid(out)["command"], valid(out)["verdict"]["status"]) == (0, "check", "ok")
        code, out, _ = run("check", name, "--format", "nagios")
        assert (code, out.startswith("HOPSCOPE OK - fra is well"), out.count("\n")) == (0, True, 1)
        assert "'fra loss'=0%;;;0;100" in out
    code, out, _ = run("check", name, "--format", "nagios")
    assert (code, out.startswith("HOPSCOPE CRITICAL - ")) == (2, True)


@pytest.mark.loopback
def test_out_keeps_tape_and_reports_of_each_run(run: Run, tmp_path: Path) -> None:
    with listening() as port:
        name = target_file(tmp_path, port)
        for _ in range(2):
            assert run("check", name, "--out", str(tmp_path / "kept")) == (0, "", "")
    ids = [one["id"] for one in valid(run("history", "runs", "--json")[1])["results"]]
    assert sorted(folder.name for folder in (tmp_path / "kept").iterdir()) == ids
    assert json.loads((tmp_path / "kept" / ids[0] / "report.json").read_text())["command"] == "check"


@pytest.mark.loopback
def test_the_store_of_the_file_and_of_the_option(run: Run, tmp_path: Path) -> None:
    one, two = tmp_path / "one.sqlite", tmp_path / "two.sqlite"
    with listening() as port:
        name = target_file(tmp_path, port, f'[store]\nurl = "sqlite:///{one}"\n')
        run("check", name)
        run("check", name, "--store", f"sqlite:///{two}")
    assert len(query.runs(one, 9)) == len(query.runs(two, 9)) == 1
    assert not (tmp_path / "state").exists()


def test_the_lock_is_held(run: Run, tmp_path: Path) -> None:
    with locked(tmp_path / "state" / "hopscope" / "history.sqlite"), pytest.raises(LockedError):
        run("check", target_file(tmp_path, 1))
