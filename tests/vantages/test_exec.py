"""A vantage behind a command: the records are those of a local one, the command leaves nothing, secrets stay home."""

import asyncio
import os
import subprocess
import sys
import time
from contextlib import aclosing
from pathlib import Path

import pytest

from hopscope.errors import UsageError
from hopscope.model.plan import Vantage
from hopscope.model.record import Done, Exchange, Failure, Probe, Record, Resolved
from hopscope.vantages.exec import open_exec
from hopscope.vantages.local import LocalPlace
from hopscope.vantages.pipe import PipePlace, agent_command
from net.servers import OK, answering, authority, read_request, say, serve
from vantages.far import HERE, HOPSCOPE, collect, down, here, http, ping, resolve, vantage

pytestmark = pytest.mark.loopback

KEY = "sk-planted-91d3fb7c20"


def local() -> LocalPlace:
    return LocalPlace(Vantage(name="far", kind="local"), {})


def shape(record: Record) -> tuple[object, ...]:
    """What a record says besides times."""
    match record:
        case Probe():
            return ("probe", record.seq, record.outcome, record.clock, record.kind, record.reply_ttl, record.warmup)
        case Exchange():
            return ("exchange", record.seq, record.cold, record.status, record.level, record.clock, record.bytes_down)
        case Resolved():
            return ("resolved", record.addresses, record.error)
        case Done():
            return ("done", record.complete)
        case _:
            return (record,)


def test_its_records_are_those_of_a_local_vantage() -> None:
    with serve(answering(OK)) as server:
        tasks = ping(), http(server.port), resolve()
        near, far = collect(local, *tasks), collect(here, *tasks)
    assert [[shape(record) for record in records] for records in far] == [
        [shape(record) for record in records] for records in near
    ]
    assert {record.task for record in far[0] if isinstance(record, Probe)} == {7}


def test_a_failure_there_is_a_failure_record_here() -> None:
    ((failure, done),) = collect(here, http(80, api_key_env="NOT_SET"))
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.task, failure.target, failure.vantage) == ("rights", 7, "t", "far")
    assert failure.why == "the environment variable NOT_SET is not set"
    assert isinstance(done, Done)


def test_many_tasks_share_one_process() -> None:
    async def main() -> list[list[Record]]:
        place = here()
        found = await asyncio.gather(*(_all(place, number) for number in range(20)))
        assert len(children()) == 1
        await place.close()
        return list(found)

    assert [len(records) for records in asyncio.run(main())] == [2] * 20
    assert children() == []


async def _all(place: PipePlace, number: int) -> list[Record]:
    return [record async for record in place.run(number, resolve())]


def children() -> list[int]:
    """Agents of ours that run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"agent" in words and b"hopscope" in words and str(os.getpid()).encode() in _parents(path.parent):
            found.append(int(path.parent.name))
    return found


def _parents(process: Path) -> list[bytes]:
    try:
        stat = (process / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []
    return [stat[1]] if stat[0] != b"Z" else []


def test_a_task_that_nobody_waits_for_is_cut_off_and_the_others_go_on() -> None:
    async def main() -> tuple[int, int]:
        place = here()
        first = 0
        async with aclosing(place.run(1, ping(count=1000, interval_ms=20))) as records:
            async for _ in records:
                first += 1
                if first == 3:
                    break
        second = [record async for record in place.run(2, ping(count=5))]
        began = time.monotonic()
        await place.close()
        assert time.monotonic() - began < 2
        return first, len(second)

    assert asyncio.run(main()) == (3, 6)
    assert children() == []


def test_a_cancelled_run_leaves_no_process() -> None:
    async def main() -> None:
        place = here()
        work = asyncio.create_task(_all(place, 1))
        await asyncio.sleep(0.05)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await place.close()

    asyncio.run(main())
    assert children() == []


def test_a_command_that_ignores_us_is_ended_with_its_children() -> None:
    stubborn = ["sh", "-c", "trap '' TERM; sleep 61 & wait", "sh"]
    began = time.monotonic()
    assert "answered" in str(down(lambda: open_exec(vantage(stubborn, deadline_s=0.5), {})))
    assert time.monotonic() - began < 6
    left = subprocess.run(["pgrep", "-f", "^sleep 61$"], capture_output=True, check=False)
    assert left.stdout == b""


@pytest.mark.parametrize(
    ("command", "why", "advice"),
    [
        (["no-such-command", "exec"], "there is no command no-such-command on this machine", "install"),
        (["/etc/passwd"], "/etc/passwd cannot be started on this machine: Permission denied", "by hand"),
        (["sh", "-c", 'exec "$@"', "sh", "no-such-hopscope"], "not installed there", "install hopscope there"),
        (["sh", "-c", "exec /etc/passwd"], "may not be run there", "executable"),
        ([sys.executable, "-m", "no_such_module"], "not installed for the Python there", "install hopscope there"),
    ],
)
def test_a_command_that_starts_nothing(command: list[str], why: str, advice: str) -> None:
    error = down(lambda: open_exec(vantage(command), {}))
    assert why in str(error)
    assert advice in error.advice


def test_settings_that_are_no_command() -> None:
    with pytest.raises(UsageError, match="has no command"):
        open_exec(Vantage(name="far", kind="exec"), {})
    with pytest.raises(UsageError, match="`hopscope` of vantage"):
        open_exec(Vantage(name="far", kind="exec", settings={"command": ["x"], "hopscope": "'"}), {})


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (None, ["hopscope", "agent"]),
        ("/opt/hopscope/bin/hopscope", ["/opt/hopscope/bin/hopscope", "agent"]),
        ("python3 -m hopscope", ["python3", "-m", "hopscope", "agent"]),
        (["/my programs/hopscope"], ["/my programs/hopscope", "agent"]),
    ],
)
def test_how_hopscope_starts_there(setting: str | list[str] | None, words: list[str]) -> None:
    there = Vantage(name="far", kind="exec")
    if setting is not None:
        there.settings["hopscope"] = setting
    assert agent_command(there) == words


def test_a_key_reaches_the_server_and_nothing_else(tmp_path: Path) -> None:
    got: list[bytes] = []
    seen: list[bytes] = []

    def script(conn: object) -> None:
        while request := read_request(conn):  # type: ignore[arg-type]
            got.append(request)
            seen.extend(path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists())
            say(conn, (f"HTTP/1.1 200 {KEY}\r\nX-Echo: {KEY}\r\nContent-Length: 0\r\n\r\n".encode(),))  # type: ignore[arg-type]

    said = tmp_path / "said"
    shell = ["sh", "-c", f'tee {tmp_path}/in | "$@" 2>{said} | tee {tmp_path}/tape', "sh", *HERE]
    with serve(script) as server:
        place = open_exec(vantage(shell), {"PLANTED": KEY, "OTHER": "sk-other-77"})
        (records,) = collect(lambda: place, http(server.port, api_key_env="PLANTED"))
    assert [f"Bearer {KEY}".encode() in request for request in got] == [True] * 3
    assert (tmp_path / "in").read_bytes().count(KEY.encode()) == 1
    assert b"sk-other" not in (tmp_path / "in").read_bytes()
    for text in (repr(records), said.read_text(), (tmp_path / "tape").read_text()):
        assert KEY not in text
    assert [line for line in seen if KEY.encode() in line] == []


def test_files_of_a_task_go_along_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the agent runs elsewhere, where these names mean nothing
    (tmp_path / "ca").mkdir()
    made = authority(tmp_path / "ca")
    (tmp_path / "body.json").write_bytes(b'{"all": "of it"}')
    got: list[bytes] = []

    def script(conn: object) -> None:
        while request := read_request(conn):  # type: ignore[arg-type]
            got.append(request)
            say(conn, (OK,))  # type: ignore[arg-type]

    log = tmp_path / "in"
    shell = ["sh", "-c", f'cd /; tee {log} | "$@"', "sh", *HERE]
    with serve(script, made.server("IP:127.0.0.1")) as server:
        task = http(server.port, ca_file="ca/ca.pem", body_file="body.json", scheme="https")
        first, second = collect(lambda: open_exec(vantage(shell), {}), task, task)
    for record in (*first, *second):
        assert not isinstance(record, Failure)
    assert [request.partition(b"\r\n\r\n")[2] for request in got] == [b'{"all": "of it"}'] * 6
    assert log.read_bytes().count(b'"files"') == 1


def test_a_far_place_does_not_look_at_its_own_environment() -> None:
    shell = ["env", "PLANTED=sk-theirs", *HERE]
    ((failure, _),) = collect(lambda: open_exec(vantage(shell), {}), http(80, api_key_env="PLANTED"))
    assert isinstance(failure, Failure)
    assert "PLANTED is not set" in failure.why
    assert HOPSCOPE[0] == sys.executable
