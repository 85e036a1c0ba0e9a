"""The message of a raise and a clear: short, clean, one head for one cause."""

from history.made import MINUTE, START, finding, report
from hopscope.analysis.alarm import Alarm, Change
from hopscope.analysis.watched import Event, Watch, against
from hopscope.model.report import Report
from hopscope.render.message import LINES, message, sentence

WAY = "on the way to, or back from, the target"


def event(found: Report, name: str, change: Change = "raise", *, told: bool = True, metric: str = "status") -> Event:
    watch = Watch(name, metric)
    fires = change != "clear"
    return Event(
        watch=watch,
        change=change,
        told=told,
        before=Alarm(since_ns=START, state="ok" if fires else "recovering"),
        alarm=Alarm(since_ns=START + 25 * MINUTE, state="firing" if fires else "ok", recent="bgb" if fires else ""),
        why="40 % of probes are lost",
        findings=against(found, watch) if fires else (),
    )


def test_nothing_told_is_no_message() -> None:
    found = report({"fra": "warning"})
    assert message([], found, "r1") == ""
    assert message([event(found, "fra", told=False)], found, "r1") == ""


def test_a_raise() -> None:
    found = report({"fra": "warning"}, finding("fra", segment=("192.0.2.1", "192.0.2.2")))
    assert message([event(found, "fra")], found, "20260101T000000.000Z-abc").splitlines() == [
        "RAISED fra: bad in 2 of the last 3 runs, since 2026-01-01T00:25:00Z",
        "  40 % of probes are lost",
        f"  where: between hop 1 (192.0.2.1) and hop 2 (192.0.2.2), {WAY}; a transit network",
        "  next: ask the owner",
        "Run 20260101T000000.000Z-abc; `hopscope history events` lists what came before.",
    ]


def test_a_store_that_is_not_the_usual_one_is_named_so_that_the_words_can_be_typed() -> None:
    found = report({"fra": "warning"}, finding("fra"))
    last = message([event(found, "fra")], found, "r1", "/srv/my store.sqlite").splitlines()[-1]
    assert last == "Run r1; `hopscope history events --store '/srv/my store.sqlite'` lists what came before."


def test_a_missed_budget_is_told_with_the_segment_that_explains_it() -> None:
    over = finding("fra", kind="over-budget", severity="critical", metric="loss", why="loss of fra misses 5 %")
    found = report({"fra": "critical"}, over, finding("fra", segment=("192.0.2.1", "192.0.2.2")))
    lines = message([event(found, "fra")], found, "r1").splitlines()
    assert lines[2] == f"  where: between hop 1 (192.0.2.1) and hop 2 (192.0.2.2), {WAY}; a transit network"
    refused = finding("fra", kind="refused", severity="critical", why="the port refuses")
    found = report({"fra": "critical"}, refused, finding("fra", segment=("192.0.2.1", "192.0.2.2")))
    assert [line for line in message([event(found, "fra")], found, "r1").splitlines() if "where" in line] == []


def test_a_clear() -> None:
    found = report({"fra": "ok"})
    lines = message([event(found, "fra", "clear")], found, "r1").splitlines()
    assert lines[0] == "CLEARED fra: well in 3 runs; was bad from 2026-01-01T00:00:00Z for 25 minutes"
    assert len(lines) == 3


def test_one_that_is_told_late() -> None:
    found = report({"fra": "warning"})
    late = event(found, "fra")
    late = Event(**{name: getattr(late, name) for name in late.__struct_fields__} | {"before": late.alarm})
    assert sentence(late).startswith("RAISED fra: bad since 2026-01-01T00:25:00Z. 40 %")


def test_many_with_one_cause_have_one_head_and_fit() -> None:
    names = [f"target-{number}" for number in range(100)]
    found = report(dict.fromkeys(names, "warning"))
    lines = message([event(found, name) for name in names], found, "r1").splitlines()
    assert len(lines) == LINES
    assert lines[0] == "100 alarms with one cause, seen from here:"
    assert lines[-2].startswith("… and ")
    assert lines[-1].startswith("Run r1")


def test_hostile_names_stay_in_their_line() -> None:
    hostile = "a\nb\x1b[2J\u202e"
    found = report({hostile: "warning"}, finding(hostile, why=hostile))
    text = message([event(found, hostile), event(found, hostile, "clear")], found, "r1")
    assert text.replace("\n", "").isprintable()
    assert sentence(event(found, hostile)).isprintable()


def test_a_metric_and_a_vantage_are_named() -> None:
    found = report({"fra": "warning"})
    assert sentence(event(found, "fra", metric="loss")).startswith("RAISED fra loss: ")
    assert sentence(event(found, "here", metric="vantage")).startswith("RAISED vantage here: ")
    assert sentence(event(found, "fra", "flapping")).startswith("FLAPPING fra: raised 3 times")
