"""A store of no use is told before the first packet: one line, its remedy, and its class in the document."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from cli.invoking import Document, process, valid

pytestmark = pytest.mark.loopback

CRITICAL, UNKNOWN = 2, 3
TARGETS = """
[[target]]
name = "home"
host = "127.0.0.1"
port = 9
protocol = "tcp"
probes = ["ping"]
count = 2
interval = "5ms"
"""
STORE = "folder/history.sqlite"
MOUNTED = {
    "read-only": "mount --bind folder folder && mount -o remount,ro,bind folder",
    "full": "mount -t tmpfs -o size=64k none folder && ! head -c 70000 /dev/zero >folder/much 2>/dev/null",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a target file, and a store with one run of it."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "targets.toml").write_text(TARGETS)
    (folder / "folder").mkdir()
    assert process("check", "targets.toml", "--store", f"sqlite:///{STORE}", cwd=folder).code == CRITICAL
    return folder


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "place")


def damaged(store: Path) -> None:
    store.write_bytes(b"no database" * 1000)


def cut(store: Path) -> None:
    os.truncate(store, store.stat().st_size // 2)


def newer(store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA user_version = 99")


def foreign(store: Path) -> None:
    store.unlink()
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("CREATE TABLE theirs (word TEXT)")


def told(document: Document, err: str, trouble: str, advice: str) -> None:
    """One line on standard error, its remedy in the next, and the same as the one failure of the document."""
    (failure,) = document["failures"]
    assert failure["why"].startswith(f"store-{trouble}: ")
    assert advice in failure["advice"]
    assert err == f"hopscope: {failure['why']}\n  → {failure['advice']}\n"
    assert (document["verdict"]["status"], document["results"]) == ("unknown", [])


@pytest.mark.parametrize(
    ("spoil", "trouble", "advice"),
    [
        (damaged, "corrupt", "move it away"),
        (cut, "corrupt", "move it away"),
        (newer, "newer", "upgrade hopscope"),
        (foreign, "foreign", "--store"),
    ],
)
@pytest.mark.parametrize("words", [("check", "targets.toml"), ("history", "runs")])
def test_a_file_that_is_no_store_of_ours(
    spoil: Callable[[Path], None], trouble: str, advice: str, words: tuple[str, ...], place: Path
) -> None:
    spoil(place / STORE)
    before = (place / STORE).read_bytes()
    done = process(*words, "--store", f"sqlite:///{STORE}", "--json", cwd=place)
    assert done.code == UNKNOWN
    told(valid(done.out), done.err, trouble, advice)
    assert (place / STORE).read_bytes() == before  # whatever it is, it is somebody's


@pytest.mark.parametrize(
    ("trouble", "advice"), [("read-only", "make its folder writable"), ("full", "free some space on its disk")]
)
def test_a_disk_that_takes_nothing(trouble: str, advice: str, place: Path) -> None:
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs a mount namespace: run as root")
    mounted = f'unshare --mount sh -ec \'{MOUNTED[trouble]} && exec "$@"\' sh "$@"'
    done = process("check", "targets.toml", "--store", f"sqlite:///{STORE}", "--json", cwd=place, before=mounted)
    assert done.code == UNKNOWN
    told(valid(done.out), done.err, trouble, advice)


def test_a_folder_that_is_a_file(place: Path) -> None:
    shutil.rmtree(place / "folder")
    (place / "folder").write_text("a file where the folder was")
    done = process("check", "targets.toml", "--store", f"sqlite:///{STORE}", "--json", cwd=place)
    assert done.code == UNKNOWN
    told(valid(done.out), done.err, "io", "--store")


def test_every_kind_of_result_is_recorded_side_by_side(tmp_path: Path) -> None:
    closed = TARGETS + (
        '\n[[target]]\nname = "all"\nurl = "http://127.0.0.1:9/v1"\nmodel = "m"\ncount = 2\ninterval = "5ms"\n'
        'rounds = 1\nprobes = ["ping", "trace", "http", "stream"]\n'
        '\n[[target]]\nname = "nameless"\nurl = "http://no.invalid/v1"\nprobes = ["stream", "ping"]\ncount = 2\n'
    )
    (tmp_path / "targets.toml").write_text(closed)
    done = process("check", "targets.toml", "--store", "sqlite:///store", "--json", cwd=tmp_path)
    assert (done.code, done.err) == (CRITICAL, "")
    with closing(sqlite3.connect(tmp_path / "store")) as connection:
        kinds = [kind for (kind,) in connection.execute("SELECT kind FROM result ORDER BY number")]
        (lost,) = connection.execute("SELECT lost FROM result WHERE kind = 'stream' AND target = 'all'").fetchone()
    assert sorted(set(kinds)) == ["http", "ping", "stream", "trace"]
    assert kinds.count("stream") == 2
    assert lost >= 1
