"""The demo as a user plays it: the planted verdict, the part without a network, and a wrong truth.

Twenty seeds are `make matrix`. A demo that could not fail would prove nothing, so the verdict is also held against
truths that were not planted.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from hopscope.lab.demo import PLACES, demo_topology, planted
from hopscope.lab.layout import lay_out
from hopscope.lab.verdict import kinds, mistakes

TRUTH = planted(lay_out(demo_topology()))


def demo(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "hopscope", "demo", "--out", str(folder), *options]
    return subprocess.run(argv, check=False, capture_output=True, text=True, cwd=folder.parent)


def complaints(said: str) -> list[str]:
    return [line for line in said.splitlines() if line.startswith("not as planted")]


@pytest.mark.lab
@pytest.mark.parametrize("seed", [1])
def test_the_planted_segment_is_named_and_the_limiter_is_not_blamed(tmp_path: Path, seed: int) -> None:
    folder = tmp_path / "run"
    done = demo(folder, "--seed", str(seed))
    assert (done.returncode, [line for line in done.stderr.splitlines() if line.startswith("not as planted")]) == (
        0,
        [],
    )
    assert done.stdout.rstrip().splitlines()[-2:] == [
        "The verdict is the planted one.",
        "report: run/report.html",
    ]
    report = json.loads((folder / "report.json").read_text())
    lossy = [one for one in report["verdict"]["findings"] if one["kind"] == "lossy-from"]
    assert [(*one["vantages"], one["target"], one["segment"]["to"]["address"]) for one in lossy] == [
        (place, "ams-lossy", TRUTH.first_lossy[place].address) for place in PLACES
    ]
    assert [one["name"] for one in report["vantages"]] == list(PLACES)
    ranked = [one for one in report["results"] if one["kind"] == "comparison"]
    assert (ranked[0]["target"], ranked[0]["rank"], ranked[0]["advice"]) == ("fra-clean", 1, "buy")
    assert report["verdict"]["summary"].startswith("Buy fra-clean")
    assert report["partial"] is False
    wrong = replace(TRUTH, first_lossy=TRUTH.limiter, last_clean=TRUTH.before_limiter)
    assert mistakes(folder / "report.json", wrong) == (
        "the lossy segment from berlin is (4, 5], not (5, 6]",
        "the lossy segment from london is (4, 5], not (5, 6]",
        "the lossy segment from newyork is (5, 6], not (6, 7]",
    )


@pytest.mark.loopback
def test_without_a_network_the_loopback_part_is_played_and_what_was_left_out_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    done = demo(folder, "--loopback")
    assert (done.returncode, [line for line in done.stderr.splitlines() if line.startswith("not as planted")]) == (
        0,
        [],
    )
    assert "Left out: the network in a box." in done.stderr
    none: frozenset[str] = frozenset()
    expected = {"fast": none, "slow": frozenset({"server-slow"}), "closed": none}
    assert kinds(folder / "report.json", expected) == ("closed has ['refused'], not []",)
