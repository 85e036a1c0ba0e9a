"""The state of one alarm and how a run moves it (method 7.2): OK → pending → firing → recovering → OK.

Pure: the instant and the outcome of a run are given, the new state and what is to be told come back. Three rules:
missing data moves nothing; what was told is remembered, so that whatever is silent now (a maintenance, say) is told
later if it still holds, and never twice; an alarm that flaps is told once, and then not before it has been steady.
"""

from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

State = Literal["ok", "pending", "firing", "recovering"]
Seen = Literal["good", "bad", "missing"]
Change = Literal["raise", "clear", "flapping"]

LETTERS: Final[dict[Seen, str]] = {"good": "g", "bad": "b", "missing": "-"}
MEMORY: Final = 200
"""Runs that are remembered: the most that a rule may ask for, and as many that told nothing."""
STEADY_NS: Final = 24 * 3600 * 1_000_000_000
FLAPPING: Final = 3
"""Raised so many times, each less than STEADY_NS after the clear before it."""


class Rule(Struct, frozen=True, kw_only=True):
    """Raise when `raise_runs` of the last `of_runs` are bad, clear after `clear` good ones in a row."""

    raise_runs: int = 2
    of_runs: int = 3
    clear: int = 3


class Alarm(Struct, frozen=True, kw_only=True):
    """What is known of an alarm: `since_ns` is since when it is as it is, `recent` are the runs since its clear.

    `told` is what people believe: that it fires.
    """

    since_ns: int
    state: State = "ok"
    recent: str = ""
    flaps: int = 0
    told: bool = False

    @property
    def fires(self) -> bool:
        """Whether it was raised and has not cleared."""
        return self.state in {"firing", "recovering"}


class Step(Struct, frozen=True):
    """An alarm after a run, how the run moved it, and what is to be told."""

    alarm: Alarm
    moved: Change | None = None
    told: Change | None = None


def step(alarm: Alarm, seen: Seen, now_ns: int, rule: Rule, *, quiet: bool) -> Step:
    """The alarm after one more run. `quiet` holds back what would be told, for as long as it is set."""
    after = replace(alarm, recent=(alarm.recent + LETTERS[seen])[-MEMORY:])
    if seen == "missing":
        return Step(after)
    if now_ns - alarm.since_ns > STEADY_NS:
        after = replace(after, flaps=0)
    after = _cleared(after, now_ns, rule) if alarm.fires else _raised(after, seen, now_ns, rule)
    moved: Change | None = None
    if after.fires != alarm.fires:
        moved = "raise" if after.fires else "clear"
    told = None if quiet else _to_tell(after)
    if told is not None:
        after = replace(after, told=told != "clear")
    return Step(after, moved, told)


def _raised(alarm: Alarm, seen: Seen, now_ns: int, rule: Rule) -> Alarm:
    """What becomes of an alarm that does not fire."""
    bad = alarm.recent[-rule.of_runs :].count(LETTERS["bad"])
    if seen == "bad" and bad >= rule.raise_runs:
        return replace(alarm, state="firing", since_ns=now_ns, flaps=alarm.flaps + 1)
    return replace(alarm, state="pending" if bad else "ok")


def _cleared(alarm: Alarm, now_ns: int, rule: Rule) -> Alarm:
    """What becomes of an alarm that fires; a run that measured nothing neither counts nor breaks the row."""
    measured = alarm.recent.replace(LETTERS["missing"], "")
    good = len(measured) - len(measured.rstrip(LETTERS["good"]))
    if good >= rule.clear:
        return replace(alarm, state="ok", since_ns=now_ns, recent="")
    return replace(alarm, state="recovering" if good else "firing")


def _to_tell(alarm: Alarm) -> Change | None:
    """What people do not know yet."""
    if alarm.flaps >= FLAPPING:
        return None if alarm.told else "flapping"
    if alarm.fires == alarm.told:
        return None
    return "raise" if alarm.fires else "clear"
