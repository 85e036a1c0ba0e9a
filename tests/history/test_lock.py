"""One check at a time, and no lock that outlives its process."""

import subprocess
import sys
from pathlib import Path

import pytest

from hopscope.errors import LockedError, StoreError
from hopscope.history.lock import lock_path, locked

HOLD = """
import sys, time
from pathlib import Path
from hopscope.history.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_one_is_refused_at_once_and_in_one_line(tmp_path: Path) -> None:
    store = tmp_path / "new" / "history.sqlite"
    with locked(store), pytest.raises(LockedError) as refused, locked(store):
        pass
    assert refused.value.exit_code == 75
    assert refused.value.advice == ""
    assert str(refused.value).count("\n") == 0
    with locked(store):
        assert lock_path(store).is_file()


def test_other_stores_are_not_locked(tmp_path: Path) -> None:
    with locked(tmp_path / "a"), locked(tmp_path / "b"):
        pass


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    store = tmp_path / "history.sqlite"
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(store)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    with pytest.raises(LockedError), locked(store):
        pass
    child.kill()
    child.communicate()
    with locked(store):
        pass


def test_a_file_left_behind_is_no_lock(tmp_path: Path) -> None:
    lock_path(tmp_path / "x").write_text("12345\n")
    with locked(tmp_path / "x"):
        pass


def test_a_place_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"store-io: .*file"), locked(tmp_path / "file" / "x"):
        pass
