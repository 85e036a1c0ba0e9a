"""The state of an alarm, one letter a run: what goes in is g(ood), b(ad), - (missing); what is told is R, C or F."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from hopscope.analysis.alarm import MEMORY, STEADY_NS, Alarm, Change, Rule, Seen, step

SEEN: dict[str, Seen] = {"g": "good", "b": "bad", "-": "missing"}
SAID: dict[Change | None, str] = {None: ".", "raise": "R", "clear": "C", "flapping": "F"}
MINUTE = 60_000_000_000
DEFAULT = Rule()
TOUCHY = Rule(raise_runs=1, of_runs=1, clear=1)


def after(
    runs: str, rule: Rule = DEFAULT, *, quiet: str = "", alarm: Alarm | None = None, at: int = 0
) -> tuple[Alarm, str]:
    """The alarm after some runs a minute apart, and what was told; `quiet` has a q for each run in a maintenance."""
    alarm = alarm or Alarm(since_ns=at)
    told = ""
    for number, letter in enumerate(runs):
        moved = step(alarm, SEEN[letter], at + number * MINUTE, rule, quiet=quiet[number : number + 1] == "q")
        alarm = moved.alarm
        told += SAID[moved.told]
    return alarm, told


@pytest.mark.parametrize(
    ("runs", "told", "state"),
    [
        ("", "", "ok"),
        ("ggg", "...", "ok"),
        ("b", ".", "pending"),
        ("bgg", "...", "pending"),
        ("bggg", "....", "ok"),
        ("bb", ".R", "firing"),
        ("bgb", "..R", "firing"),
        ("bggb", "....", "pending"),
        ("bbbbbb", ".R....", "firing"),
        ("bbg", ".R.", "recovering"),
        ("bbggb", ".R...", "firing"),
        ("bbggbggg", ".R.....C", "ok"),
        ("bbggg", ".R..C", "ok"),
        ("bbbbbbgggggg", ".R......C...", "ok"),
        ("bbgggb", ".R..C.", "pending"),
        ("bbgggbb", ".R..C.R", "firing"),
    ],
)
def test_two_of_three_raise_and_three_in_a_row_clear(runs: str, told: str, state: str) -> None:
    alarm, said = after(runs)
    assert (said, alarm.state) == (told, state)


@pytest.mark.parametrize(
    ("runs", "told", "state"),
    [
        ("-----", ".....", "ok"),
        ("b-b", "..R", "firing"),
        ("b--b", "....", "pending"),
        ("b-", "..", "pending"),
        ("bb" + "-" * 50, ".R" + "." * 50, "firing"),
        ("bb" + "-" * 5 * MEMORY + "ggg", ".R" + "." * 5 * MEMORY + "..C", "ok"),
        ("bbg-g-g", ".R....C", "ok"),
        ("bbgg-", ".R...", "recovering"),
    ],
)
def test_missing_data_raises_nothing_and_clears_nothing(runs: str, told: str, state: str) -> None:
    alarm, said = after(runs)
    assert (said, alarm.state) == (told, state)


@pytest.mark.parametrize(
    ("rule", "runs", "told"),
    [
        (TOUCHY, "bg", "RC"),
        (Rule(raise_runs=2, of_runs=5, clear=1), "bbgggb", ".RC..."),
        (Rule(raise_runs=2, of_runs=5, clear=1), "bgggb", "....R"),
        (Rule(raise_runs=3, of_runs=3, clear=2), "bbgbbbgg", ".....R.C"),
        (Rule(raise_runs=100, of_runs=100, clear=100), "b" * 100 + "g" * 100, "." * 99 + "R" + "." * 99 + "C"),
    ],
)
def test_other_rules(rule: Rule, runs: str, told: str) -> None:
    assert after(runs, rule)[1] == told


def test_flapping_is_told_once_and_its_end_after_a_steady_day() -> None:
    alarm, told = after("bgbgbgbgbgbg", TOUCHY)
    assert told == "RCRCF......."
    assert after("g", TOUCHY, alarm=alarm, at=STEADY_NS // 2)[1] == "."
    later, told = after("gg", TOUCHY, alarm=alarm, at=2 * STEADY_NS)
    assert (told, later.flaps) == ("C.", 0)
    assert after("bg", TOUCHY, alarm=later, at=3 * STEADY_NS)[1] == "RC"


def test_flapping_that_ends_in_a_lasting_fault_is_cleared_as_any_other() -> None:
    alarm, told = after("bgbgb", TOUCHY)
    assert told == "RCRCF"
    later, told = after("b", TOUCHY, alarm=alarm, at=2 * STEADY_NS)
    assert (told, later.told) == (".", True)
    assert after("g", TOUCHY, alarm=later, at=2 * STEADY_NS + MINUTE)[1] == "C"


def test_raises_a_day_apart_are_no_flapping() -> None:
    alarm = Alarm(since_ns=0)
    for day in range(10):
        alarm, told = after("bg", TOUCHY, alarm=alarm, at=day * 2 * STEADY_NS)
        assert told == "RC"


@pytest.mark.parametrize(
    ("runs", "quiet", "told"),
    [
        ("bbbbb", "qqq..", "...R."),
        ("bbbggggg", "qqqqqqqq", "........"),
        ("bbbgggg", "qqqqqq.", "......."),
        ("bbggggg", "..qqqq.", ".R....C"),
        ("bbgggbbg", "..qqqqqq", ".R......"),
        ("bbb-b", "qqq..", "....R"),
    ],
)
def test_what_a_maintenance_kept_silent_is_told_after_it_if_it_still_holds(runs: str, quiet: str, told: str) -> None:
    assert after(runs, quiet=quiet)[1] == told


@given(
    runs=some.text("gb-", max_size=60),
    quiet=some.text("q.", max_size=60),
    m=some.integers(1, 4),
    more=some.integers(0, 3),
    clear=some.integers(1, 4),
)
def test_raise_and_clear_take_turns(runs: str, quiet: str, m: int, more: int, clear: int) -> None:
    alarm, told = after(runs, Rule(raise_runs=m, of_runs=m + more, clear=clear), quiet=quiet)
    said = told.replace(".", "")
    assert "RR" not in said
    assert "CC" not in said
    assert not said.startswith("C")
    assert said.count("F") <= 1
    assert alarm.told == (bool(said) and said[-1] != "C")
    assert not any(letter != "." for letter, seen in zip(told, runs, strict=True) if seen == "-")
