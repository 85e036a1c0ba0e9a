"""Every scenario: the whole pure chain from plan to report on a network in virtual time, with several seeds.

A file beside this one is a scenario and its name is the claim (facts and method numbers stand in `why`).
"""

from pathlib import Path

import msgspec
import pytest

from hopscope import tape
from hopscope.analysis.judge import report
from virtual.running import Running
from virtual.scenario import Scenario, read, wanted
from virtual.verdict import mistakes

FILES = sorted(Path(__file__).parent.glob("*.toml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    scenario = read(path)
    wrong = {seed: found for seed in range(1, scenario.seeds + 1) if (found := mistakes(scenario, seed))}
    right = scenario.seeds - len(wrong)
    assert right >= scenario.needed, wrong


def test_there_are_scenarios() -> None:
    assert len(FILES) >= 25
    assert all(scenario.why and scenario.needed >= 1 for scenario in map(read, FILES))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_tape_of_a_run_gives_the_same_report(path: Path) -> None:
    running = Running(read(path), seed=1)
    now = report(running.whole(), tool_version="0")
    tomorrow = report(tape.read((tape.dump(record) for record in running.records), name="it"), tool_version="0")
    plain = [msgspec.to_builtins(one, enc_hook=list) for one in (now, tomorrow)]
    assert plain[0] == plain[1]


@pytest.mark.parametrize("text", ["[target]\nrtt_ms = 1\nrtt_mss = 2", "hops = 3", "[expect]\nstatus = 'fine'"])
def test_a_key_or_value_that_nobody_knows_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "it.toml"
    path.write_text(text)
    with pytest.raises(msgspec.ValidationError):
        read(path)


def test_an_expectation_that_nobody_understands_is_refused() -> None:
    with pytest.raises(ValueError, match="what is 'loud'"):
        wanted("lossy-from @4 loud")
    found = wanted("lossy-from @4 (2|3,4] warning shown")
    assert (found.kind, found.where, found.severity, found.confidence) == ("lossy-from", "4", "warning", "shown")
    assert (found.from_ttl, found.to_ttl) == (frozenset({2, 3}), frozenset({4}))


def test_a_scenario_is_the_same_twice() -> None:
    scenario: Scenario = read(FILES[0])
    first, second = Running(scenario, seed=3), Running(scenario, seed=3)
    assert first.whole() == second.whole()
    assert first.records == second.records
