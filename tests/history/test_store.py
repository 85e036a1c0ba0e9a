"""Stores that are new, newer, damaged, of others, read-only, full or held: one line, a class, a remedy, in time."""

import os
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from history.made import START, report
from hopscope.analysis.alarm import Alarm
from hopscope.errors import StoreError, UsageError
from hopscope.history import query, store, write
from hopscope.history.entries import Entry, Happened
from hopscope.history.migrations import APPLICATION_ID, VERSION
from hopscope.history.schema import METADATA

SOON_S = 5.0
NOBODY = 65534
KEY = ("a", "status")


def run(number: int, *, size: int = 1) -> Entry:
    return Entry(
        id=f"run-{number:06}",
        config="/etc/targets.toml",
        slot_ns=START,
        started_ns=START + number,
        finished_ns=START + number + 1,
        outcome="ok",
        report=report({f"a{index}": "ok" for index in range(size)}),
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "history.sqlite"
    store.prepare(made)
    return made


def pragma(path: Path, name: str) -> object:
    with closing(sqlite3.connect(path)) as connection:
        (value,) = connection.execute(f"PRAGMA {name}").fetchone()
        return value


def _use(path: Path) -> None:
    store.prepare(path)
    query.alarms(path, "")
    write.record(path, run(1), {}, [])


def trouble(path: Path) -> StoreError:
    """What a check is told of a store, in bounded time."""
    started = time.monotonic()
    with pytest.raises(StoreError) as told:
        _use(path)
    assert time.monotonic() - started < SOON_S
    message = str(told.value)
    assert "\n" not in message
    assert message.startswith(f"store-{told.value.trouble}: ")
    assert told.value.advice
    assert told.value.exit_code == 3
    return told.value


def test_a_new_store(path: Path) -> None:
    assert pragma(path, "journal_mode") == "wal"
    assert pragma(path, "user_version") == VERSION
    assert pragma(path, "application_id") == APPLICATION_ID
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    store.prepare(path)


def test_its_tables_are_strict_and_those_that_the_steps_make(path: Path) -> None:
    def plain(sql: str) -> str:
        return re.sub(r"\s*([(),])\s*", r"\1", " ".join(sql.split()))

    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    dialect = sqlite.dialect()
    wanted = {table.name: str(CreateTable(table).compile(dialect=dialect)) for table in METADATA.tables.values()}
    wanted |= {
        str(index.name): str(CreateIndex(index).compile(dialect=dialect))
        for table in METADATA.tables.values()
        for index in table.indexes
    }
    assert {name: plain(sql) for name, sql in rows} == {name: plain(sql) for name, sql in wanted.items()}
    assert all(sql.endswith("STRICT") for sql in (wanted[name] for name in METADATA.tables) for sql in [sql.strip()])


def test_what_goes_in_comes_out(path: Path) -> None:
    alarm = Alarm(since_ns=START, state="recovering", recent="bbg-", flaps=2, told=True)
    happened = Happened(target="a", metric="status", kind="raise", message="RAISED a\udcff", told=True)
    at_vantage = Happened(target="here", metric="vantage", kind="clear", message="CLEARED", told=False)
    write.record(path, run(1), {KEY: alarm}, [happened, at_vantage])
    write.record(path, run(2), {KEY: alarm, ("b", "loss"): Alarm(since_ns=START)}, [])
    assert query.alarms(path, "/etc/targets.toml") == {KEY: alarm, ("b", "loss"): Alarm(since_ns=START)}
    assert query.alarms(path, "/etc/others.toml") == {}
    assert [one.id for one in query.runs(path, 10)] == ["run-000001", "run-000002"]
    assert [one.id for one in query.runs(path, 1)] == ["run-000002"]
    first, second = query.events(path, 10)
    assert (first.target, first.vantage, first.message, first.told) == ("a", None, "RAISED a\\udcff", True)
    assert (second.target, second.vantage, second.told) == (None, "here", False)
    assert query.runs(path, 1)[0].slot_at == "2026-01-01T00:00:00.000000Z"
    write.record(path, run(3), {}, [])
    assert query.alarms(path, "/etc/targets.toml") == {}
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT run, target, kind, sent, lost, p50_ms FROM result ORDER BY run").fetchall()
    assert rows[0] == ("run-000001", "a0", "ping", 50, 0, 8.25)


def test_a_run_is_recorded_whole_or_not_at_all(path: Path) -> None:
    write.record(path, run(1), {KEY: Alarm(since_ns=START)}, [])
    with pytest.raises(Exception, match="UNIQUE"):
        write.record(path, run(1), {}, [])
    assert query.alarms(path, "/etc/targets.toml") == {KEY: Alarm(since_ns=START)}
    assert len(query.runs(path, 10)) == 1


def test_an_empty_file_and_a_step_that_was_not_finished_become_a_store(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    store.prepare(tmp_path / "empty")
    with closing(sqlite3.connect(tmp_path / "begun")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    store.prepare(tmp_path / "begun")
    assert pragma(tmp_path / "begun", "user_version") == VERSION


def test_reading_makes_no_store(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no store"):
        query.runs(tmp_path / "history.sqlite", 1)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_file(path: Path) -> None:
    path.write_bytes(b"SQLite fer\0" + os.urandom(20_000))
    told = trouble(path)
    assert told.trouble == "corrupt"
    assert f"mv {path}" in told.advice
    with pytest.raises(StoreError, match="store-corrupt"):
        query.runs(path, 1)


def test_a_file_with_damage_inside(path: Path) -> None:
    for number in range(50):
        write.record(path, run(number + 100, size=5), {}, [])
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + bytes(len(whole) - 4096))
    assert trouble(path).trouble == "corrupt"


def test_a_store_that_was_cut_off(path: Path) -> None:
    for number in range(50):
        write.record(path, run(number + 100, size=5), {}, [])
    with path.open("r+b") as opened:
        opened.truncate(8192)
    assert trouble(path).trouble == "corrupt"


def test_a_newer_one(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    told = trouble(path)
    assert told.trouble == "newer"
    assert f"version {VERSION + 1}" in str(told)
    assert "upgrade" in told.advice


def test_a_database_of_others_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (url)")
    before = path.read_bytes()
    assert trouble(path).trouble == "foreign"
    assert path.read_bytes() == before


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert trouble(tmp_path / "pipe").trouble == "foreign"
    assert trouble(tmp_path).trouble == "foreign"


def test_a_store_without_its_tables(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE alarm")
    assert trouble(path).trouble == "corrupt"


def test_one_that_another_program_holds(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "BUSY_S", 0.2)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        assert trouble(path).trouble == "busy"
        assert query.runs(path, 1) == []
        connection.execute("ROLLBACK")
    write.record(path, run(1), {}, [])


@contextmanager
def as_nobody() -> Iterator[None]:
    """Whom permissions bind: root becomes nobody for a while."""
    user = os.geteuid()
    os.seteuid(NOBODY if user == 0 else user)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that anybody may reach: those of pytest are its owner's alone."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_read_only_folder(open_folder: Path) -> None:
    made = open_folder / "history.sqlite"
    store.prepare(made)
    made.chmod(0o444)
    open_folder.chmod(0o555)
    with as_nobody():
        for path in (made, open_folder / "new.sqlite", open_folder / "new" / "new.sqlite"):
            assert trouble(path).trouble == "read-only"


def test_a_limit_on_the_size_of_files(path: Path) -> None:
    write.record(path, run(1), {}, [])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 8192, hard))
        with pytest.raises(StoreError) as told:
            write.record(path, run(2, size=2000), {}, [])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert told.value.trouble in {"io", "full"}
    assert told.value.advice
    assert [one.id for one in query.runs(path, 10)] == ["run-000001"]
    write.record(path, run(2, size=2000), {}, [])


ON_A_FULL_DISK = """
import sys
from pathlib import Path
from history.test_store import run
from hopscope.errors import StoreError
from hopscope.history import query, store, write
path = Path(sys.argv[1]) / "history.sqlite"
store.prepare(path)
done = 0
try:
    while done < 100:
        write.record(path, run(done, size=50), {}, [])
        done += 1
except StoreError as error:
    print(error.trouble, error.advice)
assert done
assert len(query.runs(path, 1000)) == done
"""


def test_a_full_disk(tmp_path: Path) -> None:
    inside = f"mount -t tmpfs -o size=256k none {tmp_path} && exec {sys.executable} -c '{ON_A_FULL_DISK}' {tmp_path}"
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", inside],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": f"{tests}:{tests.parent / 'src'}"},
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no tmpfs of one's own here: {done.stderr.strip()}")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.match(r"(full|io) .*space|(full|io) .*full disk", done.stdout)
