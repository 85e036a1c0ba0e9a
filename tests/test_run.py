"""A run with places that the test makes: order, failures that cost only themselves, ends, and what a tape keeps."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jsonschema
import pytest

from hopscope import tape
from hopscope.cli.app import main_inner
from hopscope.errors import CannotMeasureError, UsageError
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import PingTask, Plan, ResolveTask, Target, Task, Vantage
from hopscope.model.record import Begin, Done, End, Failure, Planned, Probe, Record, Resolved, Run
from hopscope.model.sample import Book
from hopscope.net.ports import NoRightsError
from hopscope.run import Ended, run
from hopscope.vantages import Openers, Place

SOURCE = Path(__file__).parents[1] / "src"
PATIENCE_S = 60

Acting = Callable[[int, Task], AsyncGenerator[Record, None]]


class FakePlace:
    """A vantage that does what it is told for each task."""

    def __init__(self, name: str, acting: Acting, *, closing: Exception | None = None) -> None:
        self.name = name
        self.closed = 0
        self._acting = acting
        self._closing = closing

    async def run(self, task_id: int, task: Task) -> AsyncGenerator[Record, None]:
        async for record in self._acting(task_id, task):
            yield record

    async def close(self) -> None:
        self.closed += 1
        if self._closing is not None:
            raise self._closing


async def well(task_id: int, task: Task) -> AsyncGenerator[Record, None]:
    """Every name resolves, every probe is answered."""
    if isinstance(task, ResolveTask):
        yield Resolved(task=task_id, at=1, addresses=(task.host,))
    if isinstance(task, PingTask):
        for seq in range(task.count):
            yield probe(task_id, seq)
    yield Done(task=task_id, at=2)


def probe(task_id: int, seq: int) -> Probe:
    return Probe(
        task=task_id,
        seq=seq,
        at=10 + seq,
        outcome="replied",
        rtt_ns=MS,
        clock="kernel",
        kind="echo-reply",
        reply_ttl=64,
    )


def failing(error: Exception, *, of: str) -> Acting:
    """One target fails after its first probe, the others are well."""

    async def acting(task_id: int, task: Task) -> AsyncGenerator[Record, None]:
        if task.target == of and isinstance(task, PingTask):
            yield probe(task_id, 0)
            raise error
        async for record in well(task_id, task):
            yield record

    return acting


async def hanging(task_id: int, task: Task) -> AsyncGenerator[Record, None]:
    """One probe is answered, then nothing ever happens again."""
    if isinstance(task, ResolveTask):
        yield Resolved(task=task_id, at=1, addresses=(task.host,))
        yield Done(task=task_id, at=2)
        return
    yield probe(task_id, 0)
    await asyncio.Event().wait()


def plan(*names: str, deadline_ns: int = 60 * SECOND, vantages: tuple[Vantage, ...] = ()) -> Plan:
    return Plan(
        command="run",
        name="test",
        targets=tuple(
            Target(name=name, host=f"192.0.2.{number}", probes=("ping",), protocol="icmp", count=3)
            for number, name in enumerate(names, start=1)
        ),
        vantages=vantages or (Vantage(name="here", kind="local"),),
        quorum=1,
        deadline_ns=deadline_ns,
    )


def opening(*places: Place) -> Openers:
    by_name = {place.name: place for place in places}

    def opener(vantage: Vantage, environ: Mapping[str, str]) -> Place:
        return by_name[vantage.name]

    return {"local": opener}


def measured(wanted: Plan, openers: Openers) -> tuple[list[bytes], Ended]:
    """The lines of the tape and how the run ended."""
    lines: list[bytes] = []
    ended = run(wanted, environ={}, write=lines.append, openers=openers)
    return lines, ended


def records(lines: list[bytes]) -> list[Record]:
    return [tape._decoder.decode(line) for line in lines]


def replies(book: Book) -> dict[str, int]:
    """Answers of each target's series."""
    return {
        sample.task.target: sum(one.outcome == "replied" for one in sample.probes)
        for sample in book.samples.values()
        if isinstance(sample.task, PingTask)
    }


def test_a_run_is_a_tape_from_its_first_line_to_its_last() -> None:
    place = FakePlace("here", well)
    lines, ended = measured(plan("one", "two"), opening(place))
    kinds = [type(record) for record in records(lines)]
    assert kinds[:2] == [Run, Planned]
    assert kinds[-1] is End
    assert kinds.count(Begin) == kinds.count(Done) == 5  # two lookups, two series, and the way out of the place
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    assert replies(ended.book) == {"one": 3, "two": 3}
    assert (ended.signal, place.closed) == (None, 1)
    assert tape.read([b"".join(lines)], name="tape").samples == ended.book.samples


def test_a_record_is_on_the_tape_before_anybody_hears_of_it() -> None:
    lines: list[bytes] = []
    heard: list[tuple[Record, int]] = []
    run(
        plan("one"), environ={}, write=lines.append, openers=opening(FakePlace("here", well)),
        listen=lambda record: heard.append((record, len(lines))),
    )  # fmt: skip
    assert [count for _, count in heard] == list(range(1, len(lines) + 1))
    assert [tape.dump(record) for record, _ in heard] == lines


@pytest.mark.parametrize(
    ("error", "kind", "why", "advice"),
    [
        (ZeroDivisionError("planted"), "bug", "ZeroDivisionError: planted", "please report this with the tape"),
        (NoRightsError("no socket", "sudo it"), "rights", "no socket", "sudo it"),
        (UsageError("no such thing", "name another"), "usage", "no such thing", "name another"),
        (CannotMeasureError("the place is gone", "come again"), "usage", "the place is gone", "come again"),
    ],
)
def test_what_breaks_at_one_target_is_a_failure_there_and_costs_the_others_nothing(
    error: Exception, kind: str, why: str, advice: str
) -> None:
    lines, ended = measured(plan("good", "bad", "better"), opening(FakePlace("here", failing(error, of="bad"))))
    (failure,) = ended.book.failures
    assert (failure.kind, failure.why, failure.advice) == (kind, why, advice)
    assert (failure.target, failure.vantage) == ("bad", "here")
    assert replies(ended.book) == {"good": 3, "bad": 1, "better": 3}
    done = {
        sample.task.target: sample.done.complete
        for sample in ended.book.samples.values()
        if sample.done is not None and isinstance(sample.task, PingTask)
    }
    assert {name: complete for name, complete in done.items() if name != "bad"} == {"good": True, "better": True}
    assert done["bad"] is False
    last = records(lines)[-1]
    assert isinstance(last, End)
    assert last.partial is False


def test_a_vantage_that_cannot_be_opened_or_is_of_a_later_version_is_a_failure_of_its_own() -> None:
    def opener(vantage: Vantage, environ: Mapping[str, str]) -> Place:
        if vantage.name == "wrong":
            raise UsageError("no such interface", "there are lo, eth0")
        return FakePlace(vantage.name, well)

    places = (
        Vantage(name="wrong", kind="local"),
        Vantage(name="later", kind="ssh"),
        Vantage(name="right", kind="local"),
    )
    _, ended = measured(plan("one", vantages=places), {"local": opener})
    told = {(failure.vantage, failure.kind, failure.why) for failure in ended.book.failures}
    assert told == {
        ("wrong", "usage", "no such interface"),
        ("later", "skipped", "vantages of kind ssh are not part of this version"),
    }
    by_place = {(sample.task.vantage, type(sample.task)) for sample in ended.book.samples.values() if sample.probes}
    assert by_place == {("right", PingTask)}


def test_the_deadline_cuts_off_what_hangs_and_keeps_what_came() -> None:
    place = FakePlace("here", hanging)
    lines, ended = measured(plan("one", "two", deadline_ns=300 * MS), opening(place))
    last = records(lines)[-1]
    assert isinstance(last, End)
    assert (last.partial, last.why) == (True, "deadline reached")
    assert replies(ended.book) == {"one": 1, "two": 1}
    cut = [sample.done for sample in ended.book.samples.values() if isinstance(sample.task, PingTask)]
    assert [done is not None and not done.complete for done in cut] == [True, True]
    assert place.closed == 1


def test_a_place_that_cannot_be_closed_is_told_and_the_others_are_closed() -> None:
    first, second = FakePlace("first", well, closing=OSError(5, "planted")), FakePlace("second", well)
    places = (Vantage(name="first", kind="local"), Vantage(name="second", kind="local"))
    lines, ended = measured(plan("one", vantages=places), opening(first, second))
    assert (first.closed, second.closed) == (1, 1)
    (failure,) = ended.book.failures
    assert (failure.kind, failure.vantage) == ("bug", "first")
    assert isinstance(records(lines)[-1], End)


@pytest.mark.parametrize("room", range(1, 16))
def test_a_tape_that_breaks_at_any_line_ends_the_run_there(room: int) -> None:
    lines: list[bytes] = []
    full = CannotMeasureError("cannot write: No space left on device", "free some space")

    def write(line: bytes) -> None:
        if len(lines) >= room:
            broken.append(line)
            raise full
        lines.append(line)

    broken: list[bytes] = []
    place = FakePlace("here", well)
    with pytest.raises(CannotMeasureError, match="No space left"):
        run(plan("one", "two", "three"), environ={}, write=write, openers=opening(place))
    assert len(lines) == room
    assert len(broken) == 1  # a tape that broke once is left alone
    assert place.closed == (1 if room >= 2 else 0)
    assert tape.read([b"".join(lines)], name="tape").damaged == []


def test_signals_are_given_back_as_they_were() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    measured(plan("one"), opening(FakePlace("here", well)))
    assert {number: signal.getsignal(number) for number in before} == before


@pytest.mark.parametrize(("number", "why"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")])
def test_a_signal_ends_the_run_as_partial_with_its_number(number: signal.Signals, why: str) -> None:
    async def acting(task_id: int, task: Task) -> AsyncGenerator[Record, None]:
        async for record in hanging(task_id, task):
            yield record
            if isinstance(record, Probe):
                os.kill(os.getpid(), number)

    lines, ended = measured(plan("one"), opening(FakePlace("here", acting)))
    last = records(lines)[-1]
    assert isinstance(last, End)
    assert (last.partial, last.why, ended.signal) == (True, why, number)
    assert replies(ended.book) == {"one": 1}


def test_a_bug_in_a_place_is_in_the_report_and_the_exit_code_is_of_what_was_found() -> None:
    from hopscope.analysis import judge
    from hopscope.cli.output import exit_code
    from hopscope.render.json import render, schema

    place = FakePlace("here", failing(ZeroDivisionError("planted"), of="bad"))
    _, ended = measured(plan("good", "bad"), opening(place))
    report = judge.report(ended.book, tool_version="0")
    document = json.loads("".join(render(report)))
    jsonschema.Draft202012Validator(json.loads(schema())).validate(document)
    assert [(one["kind"], one["target"]) for one in document["failures"]] == [("bug", "bad")]
    assert exit_code(report) in {0, 1, 3}
    assert {target["name"]: target["status"] for target in document["targets"]}["good"] == "ok"


# Real runs on the loopback

HOME = """
[[target]]
name = "home"
host = "127.0.0.1"
probes = ["ping"]
count = {count}
interval = "20ms"
"""


@pytest.mark.loopback
def test_report_makes_the_same_files_byte_for_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("home.toml").write_text(
        HOME.format(count=20).replace('probes = ["ping"]', 'rounds = 3\nround_interval = "50ms"')
        + '[[target]]\nname = "dead <b>&"\nhost = "nothing-here.invalid"\n'
    )
    assert main_inner(["run", "home.toml", "--out", "out", "-q"]) == 2
    names = ["report.html", "report.json", "report.md"]
    first = {name: Path("out", name).read_bytes() for name in names}
    again = {}
    for way in ("out", "out/run.jsonl"):
        for name in names:
            Path("out", name).unlink()
        assert main_inner(["report", way]) == 2
        again = {name: Path("out", name).read_bytes() for name in names}
        assert again == first
    Path("elsewhere").mkdir()
    Path("elsewhere/run.jsonl").write_bytes(Path("out/run.jsonl").read_bytes())
    child = subprocess.run(
        [sys.executable, "-m", "hopscope", "report", "elsewhere"], capture_output=True, check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONHASHSEED": "7"},
    )  # fmt: skip
    assert child.returncode == 2
    assert {name: Path("elsewhere", name).read_bytes() for name in names} == first


KILLS = 50
AT_ONCE = 4


@pytest.mark.loopback
@pytest.mark.slow
def test_fifty_runs_that_were_killed_all_have_a_report(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "home.toml").write_text(HOME.format(count=30))
    moments = random.Random(20)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        lags = list(pool.map(lambda number: killed(tmp_path, number, moments.uniform(0.0, 0.75)), range(KILLS)))
    for number in range(KILLS):
        content = (tmp_path / str(number) / "run.jsonl").read_bytes()
        *whole, rest = content.split(b"\n")
        assert [line for line in whole if not is_record(line)] == []
        assert rest == b"" or not is_record(rest)  # only the last line may be torn, and that one is
        capfd.readouterr()
        assert main_inner(["report", str(tmp_path / str(number)), "--json"]) in {0, 1, 2, 3}
        document = json.loads(capfd.readouterr().out)
        assert document["partial"] is (b'"record":"end"' not in content)
        if document["results"]:
            answered = content.count(b'"outcome":"replied"') - content.count(b'"warmup":true')
            assert document["results"][0]["loss"]["received"] == answered
            assert document["results"][0]["loss"]["lost"] == 0
    late = sorted(lag for lag in lags if lag is not None)
    assert len(late) > KILLS // 4
    print(f"last record before the kill: median {late[len(late) // 2]:.0f} ms, worst {late[-1]:.0f} ms")  # noqa: T201
    assert late[len(late) // 2] < 100  # a probe every 20 ms, which is answered at once
    assert late[-1] < 500


def killed(place: Path, number: int, after_s: float) -> float | None:
    """Kill a run so long after its tape began; how long before that its last record was made, in ms, if it pinged."""
    child = subprocess.Popen(
        [sys.executable, "-m", "hopscope", "run", "home.toml", "--out", str(number), "-q"],
        cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    path = place / str(number) / "run.jsonl"
    over = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert time.monotonic() < over
        time.sleep(0.002)
    time.sleep(after_s)
    at = time.time_ns()
    child.send_signal(signal.SIGKILL)
    child.wait(PATIENCE_S)
    content = path.read_bytes()
    made = [json.loads(line)["at"] for line in content.split(b"\n")[:-1] if b'"record":"probe"' in line]
    return (at - made[-1]) / MS if made and b'"record":"done","task":2' not in content else None


def is_record(line: bytes) -> bool:
    try:
        return "record" in json.loads(line)
    except ValueError:
        return False


# A disk that is full


@pytest.mark.loopback
@pytest.mark.parametrize("blocks", [0, 1, 2, 3, 5, 9])
def test_a_full_disk_ends_the_run_with_3_and_a_tape_that_reads(blocks: int, tmp_path: Path) -> None:
    """`ulimit -f` counts blocks of 512 bytes; a write over it fails as one on a full disk does."""
    (tmp_path / "home.toml").write_text(HOME.format(count=500).replace("20ms", "1ms"))
    argv = [sys.executable, "-m", "hopscope", "run", "home.toml", "--out", "out", "--json"]
    shell = f'ulimit -f {blocks}; exec "$@"'
    done = subprocess.run(
        ["sh", "-c", shell, "sh", *argv], cwd=tmp_path, capture_output=True, text=True, check=False,
        timeout=PATIENCE_S, env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr == (
        "hopscope: cannot write out/run.jsonl: File too large\n  → free some space, then run again\n"
    )
    assert json.loads(done.stdout)["failures"][0]["kind"] == "skipped"
    content = (tmp_path / "out" / "run.jsonl").read_bytes()
    assert b"\0" not in content
    assert content == b"" or content.endswith(b"\n")
    assert all(is_record(line) for line in content.splitlines())
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["run.jsonl"]


@pytest.mark.lab
def test_a_full_file_system_does_the_same(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("a file system of its own needs root")
    (tmp_path / "home.toml").write_text(HOME.format(count=2000).replace("20ms", "1ms"))
    (tmp_path / "small").mkdir()
    argv = [sys.executable, "-m", "hopscope", "run", "home.toml", "--out", "small/out"]
    shell = 'mount -t tmpfs -o size=64k none small && { "$@"; code=$?; cp small/out/run.jsonl kept; exit $code; }'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", shell, "sh", *argv], cwd=tmp_path, capture_output=True, text=True, check=False,
        timeout=PATIENCE_S, env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("hopscope: cannot write small/out/run.jsonl: No space left on device\n")
    assert main_inner(["report", str(tmp_path / "kept"), "--format", "text", "-q"]) == 0
    content = (tmp_path / "kept").read_bytes()
    assert len(content) > 40_000
    assert content.endswith(b"\n")
    assert all(is_record(line) for line in content.splitlines())


def test_failure_is_a_record() -> None:
    failure = Failure(kind="rights", why="no socket", advice="sudo it", target="t", vantage="here", task=3)
    assert records([tape.dump(failure)]) == [failure]
