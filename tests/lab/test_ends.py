"""Whatever a lab started ends with it: at the end of its block, after kill -9 of its owner, and at the latest when
the next lab starts. A living owner's lab is never touched, and two labs never meet.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import msgspec
import pytest

import hopscope.lab
from hopscope.lab.box import Lab
from hopscope.lab.namespaces import NETNS_FOLDER, reexec_argv, rights
from hopscope.lab.topology import Client, Host, Impairment, LabError, Link, Topology

if TYPE_CHECKING:
    from lab.conftest import Probe

pytestmark = pytest.mark.lab

SOURCE = Path(hopscope.lab.__file__).parents[2]
NOBODY = "65534"


def two_nodes(one_way_ms: float) -> Topology:
    there = Impairment(delay_ms=one_way_ms)
    return Topology(nodes=(Client(name="c"), Host(name="h")), links=(Link(a="c", b="h", forward=there, back=there),))


OWNER = f"""
import sys, time
from hopscope.lab.box import Lab
from hopscope.lab.topology import *
with Lab({two_nodes(1)!r}) as lab:
    child = lab.start("h", ["sleep", "987"])
    print(lab.name, lab._relay.pid, child.pid, flush=True)
    time.sleep(60)
"""


@contextmanager
def owner() -> Iterator[tuple[subprocess.Popen[str], str, int, int]]:
    env = {**os.environ, "PYTHONPATH": f"{SOURCE}:{os.environ.get('PYTHONPATH', '')}"}
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        name, relay, child = process.stdout.readline().split()
        yield process, name, int(relay), int(child)
        process.kill()


def traces(name: str) -> list[str]:
    """What is left of a lab: namespaces and folder."""
    places = (NETNS_FOLDER, Path(tempfile.gettempdir()))
    return [str(entry) for place in places for entry in place.glob(f"{name}*")]


def command_lines() -> Iterator[bytes]:
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            yield (process / "cmdline").read_bytes()


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def soon(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 5
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_nothing_is_left_behind_the_block_even_after_an_error() -> None:
    lab = Lab(two_nodes(1))
    children: list[subprocess.Popen[bytes]] = []

    def fail() -> None:
        with lab:
            assert len(traces(lab.name)) == 4
            children.append(lab.start("h", ["sh", "-c", "trap '' TERM; setsid sleep 986 & sleep 985"]))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert traces(lab.name) == []
    assert children[0].poll() is not None
    assert soon(lambda: not any(b"sleep\x00986" in line for line in command_lines()))


def test_after_kill_9_of_the_owner_the_lab_ends_by_itself() -> None:
    with owner() as (process, name, relay, child):
        assert traces(name)
        process.send_signal(signal.SIGKILL)
        assert soon(lambda: traces(name) == [] and not alive(relay) and not alive(child))


def test_what_even_that_missed_the_next_lab_sweeps_and_a_living_owner_is_left_alone() -> None:
    with owner() as (dead, dead_name, dead_relay, orphan), owner() as (living, living_name, living_relay, _):
        os.kill(dead_relay, signal.SIGKILL)
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        assert traces(dead_name)
        with Lab(two_nodes(1)):
            assert traces(dead_name) == []
            assert soon(lambda: not alive(orphan))
        assert len(traces(living_name)) == 4
        assert living.poll() is None
        assert alive(living_relay)


def test_two_labs_side_by_side_never_meet(probe: "Probe") -> None:
    def round_trip(one_way_ms: float) -> float:
        with Lab(two_nodes(one_way_ms)) as lab:
            fates = probe(lab, "c", lab.address("h"), 100, 5, 64)
            assert lab.counts("c", "h").frames == 100
        return median(fate.rtt_ms for fate in fates if fate.rtt_ms is not None)

    with ThreadPoolExecutor() as pool:
        fast, slow = pool.map(round_trip, (2.0, 20.0))
    assert 0.98 < fast / 4 < 1.5
    assert 0.98 < slow / 40 < 1.15


def test_a_lab_that_cannot_start_leaves_nothing_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(two_nodes(1))
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(LabError, match="relay"), lab:
        pass
    assert traces(lab.name) == []


@pytest.mark.skipif(rights() != "root", reason="becomes an ordinary user, which takes root")
@pytest.mark.skipif(os.environ.get("LAB_INSIDE") == "1", reason="a user namespace has no other users")
def test_an_ordinary_user_gets_the_same_lab(world_readable: Path) -> None:
    script = world_readable / "ordinary.py"
    script.write_text(ORDINARY, encoding="utf-8")
    python = f"{world_readable}/python/bin/{Path(sys.executable).resolve().name}"
    become = [
        "setpriv",
        "--reuid",
        NOBODY,
        "--regid",
        NOBODY,
        "--clear-groups",
        "env",
        "-i",
        f"PATH={os.environ['PATH']}",
    ]
    command = [*become, f"PYTHONPATH={world_readable}/src:{world_readable}/site", python, "-B", str(script)]
    # The interpreter may lie where only root may go: a mount of this test's own makes it reachable.
    mounts = f'mount --bind "{sys.base_prefix}" "{world_readable}/python" && exec "$@"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mounts, "sh", *command], capture_output=True, text=True, check=False, timeout=60
    )
    if done.stdout.startswith("none"):
        pytest.skip("user namespaces are forbidden to ordinary users here")
    assert done.stderr == ""
    before, inside, answers = done.stdout.splitlines()
    assert (before, inside) == ("userns 65534", "root 0")
    assert 0.98 < float(answers) / 20 < 1.5


ORDINARY = f"""
import os, subprocess, sys
from hopscope.lab.namespaces import reexec_argv, rights
print(rights(), os.geteuid(), flush=True)
if rights() == "userns":
    argv = reexec_argv([sys.executable, "-B", __file__])
    os.execvp(argv[0], argv)
if rights() == "root":
    import json, statistics
    from hopscope.lab.box import Lab
    from hopscope.lab.topology import *
    with Lab({two_nodes(10)!r}) as lab:
        prober = os.path.join(os.path.dirname(__file__), "prober.py")
        done = lab.exec("c", [sys.executable, prober, lab.address("h"), "50", "10", "64"], check=True)
        print(statistics.median(fate["rtt_ms"] for fate in json.loads(done.stdout)))
"""


@pytest.fixture
def world_readable() -> Iterator[Path]:
    """A folder open to all with the source, the pinger and the one library a lab needs."""
    folder = Path(tempfile.mkdtemp(prefix="lab-for-all-"))
    shutil.copytree(SOURCE / "hopscope", folder / "src" / "hopscope", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(Path(msgspec.__file__).parent, folder / "site" / "msgspec")
    shutil.copy(Path(__file__).with_name("prober.py"), folder)
    (folder / "python").mkdir()
    subprocess.run(["chmod", "-R", "a+rX", str(folder)], check=True)
    yield folder
    shutil.rmtree(folder)


def test_the_whole_lab_suite_in_a_user_namespace(tmp_path: Path) -> None:
    """For an ordinary user: all the other tests of this folder, run again where they can run; see conftest.py."""
    inside = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-m",
        "lab",
        "-p",
        "no:cacheprovider",
        f"--basetemp={tmp_path}/inside",
        str(Path(__file__).parent),
    ]
    done = subprocess.run(
        reexec_argv(inside),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "LAB_INSIDE": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
