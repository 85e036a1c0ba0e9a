"""A comparison as people read it: the answer first, the reasons, what differs; and no name is more than text."""

import json
from itertools import product

import pytest
from jsonschema import Draft202012Validator

from analysis.comparing import BERLIN, FRANKFURT, NEW_YORK, compared, plan, requests, target, vantage
from analysis.notation import times
from hopscope.model.report import Report
from hopscope.render import RENDERERS, ranking, terminal
from hopscope.render import json as json_renderer
from hopscope.render.blocks import Card, Heading, Paragraph, Table
from hopscope.render.outline import outline
from render.test_hostile import NASTIES


def made(nasty: str = "") -> Report:
    what = plan(
        [target(f"fra{nasty}", price=2300, site=FRANKFURT), target(f"ams{nasty}", price=1900.5)],
        [vantage(f"berlin{nasty}", site=BERLIN), vantage(f"newyork{nasty}", site=NEW_YORK)],
    )
    found = {
        (f"{name}{nasty}", f"{place}{nasty}"): times(100, rtt)
        for (name, place), rtt in zip(
            product(("fra", "ams"), ("berlin", "newyork")), ("8", "30", "20", "66"), strict=True
        )
    }
    return compared(what, found, requests([40.0] * 12, (f"fra{nasty}", f"berlin{nasty}"), 9, rtt_ms=8.0))


def test_the_document_begins_with_the_answer_and_the_candidates() -> None:
    document = outline(made())
    assert document.banner.sentence.startswith("Buy none of them as measured; ask about fra: its stated place is doubt")
    first, ranked, card, other, places, second, told, differences, *_ = document.blocks
    assert ranked == Paragraph(ranking.RANKED, "quiet")
    assert (first, second) == (Heading("Which one"), Heading("Differences"))
    assert isinstance(card, Card)
    assert (card.badge, card.title, card.tone) == ("Ask first", "fra", "warning")
    assert card.about == "rank 1 of 2, score 1.00, 2,300 a month"
    assert isinstance(other, Card)
    assert (other.badge, other.about, other.tone) == ("Avoid", "rank 2 of 2, score 0.50, 1,900.5 a month", "critical")
    assert [field.name for field in card.fields] == ["Why", *[""] * (len(card.fields) - 1)]
    assert isinstance(places, Table)
    assert isinstance(told, Paragraph)
    assert isinstance(differences, Table)


def test_the_numbers_of_all_candidates_from_one_place_stand_below_each_other() -> None:
    (places,) = [one for one in ranking.blocks(made()) if isinstance(one, Table) and "each place" in one.caption]
    assert [column.title for column in places.columns] == [
        "from", "candidate", "RTT p50", "loss", "server p50", "floor by distance", "stretch", "limits"
    ]  # fmt: skip
    assert [[cell.text for cell in row] for row in places.rows] == [
        ["berlin", "fra", "8.00", "0 %", "40.0", "3.24", "2.47", "2 of 2 met"],
        ["berlin", "ams", "20.0", "0 %", "–", "–", "–", "2 of 2 met"],
        ["newyork", "fra", "30.0", "0 %", "–", "61.1", "0.49", "2 of 2 met"],
        ["newyork", "ams", "66.0", "0 %", "–", "–", "–", "1 of 2 met"],
    ]
    assert places.rows[3][-1].below == ("missed: RTT p95",)


def test_differences_are_numbers_where_they_matter_and_words_where_they_do_not() -> None:
    (table,) = [one for one in ranking.blocks(made()) if isinstance(one, Table) and "differ" in one.caption]
    assert [column.title for column in table.columns] == ["second / first", "from", "round trip", "loss"]
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["ams / fra", "berlin", "+12.0", "no difference shown"],
        ["ams / fra", "newyork", "+36.0", "no difference shown"],
    ]
    assert table.rows[0][2].below == ("+12.0 to +12.0",)


def test_a_long_table_of_differences_keeps_what_matters_and_says_what_it_leaves_out() -> None:
    names, places = [f"dc{number}" for number in range(6)], [f"place{number}" for number in range(6)]
    found = {(name, place): times(20, "30" if name == "dc5" else "10") for name in names for place in places}
    got = compared(plan([target(name) for name in names], [vantage(place) for place in places]), found)
    *_, heading, _, table, rest = ranking.blocks(got)
    assert heading == Heading("Differences")
    assert isinstance(table, Table)
    assert len(table.rows) == 60
    assert [row[0].text.startswith("dc5 / ") for row in table.rows] == [True] * 30 + [False] * 30
    assert rest == Paragraph("30 more rows in report.json; they tell less.", "quiet")


def test_chance_is_told_of_differences_that_could_be_shown() -> None:
    # of 20 and 9 samples round trip and loss could be shown; of 3 the loss alone, and of server time nothing
    what = plan([target("fra", url=True), target("ams", url=True)], [vantage("near"), vantage("far")])
    found = {
        ("fra", "near"): times(20, "10"), ("ams", "near"): times(9, "30"),
        ("fra", "far"): times(20, "10"), ("ams", "far"): times(3, "30"),
    }  # fmt: skip
    got = compared(what, found, requests([40.0] * 12, ("fra", "near"), 9))
    assert len(got.differences) == 5
    told = [one.text for one in ranking.blocks(got) if isinstance(one, Paragraph)][1]
    assert told.startswith("1 of 3 differences shown, each for itself with 99 %")
    assert "chance would show about 0.03 of them" in told


def test_what_chance_would_show_of_many_differences_is_a_plain_number() -> None:
    names, places = [f"dc{number}" for number in range(6)], [f"place{number}" for number in range(34)]
    found = {(name, place): times(9, "10") for name in names for place in places}
    got = compared(plan([target(name) for name in names], [vantage(place) for place in places]), found)
    assert len(got.differences) == 1020
    told = [one.text for one in ranking.blocks(got) if isinstance(one, Paragraph)][1]
    assert "chance would show about 10 of them" in told


def test_nothing_is_drawn_where_nothing_was_compared(report: Report) -> None:
    assert list(ranking.blocks(report)) == []


def test_candidates_that_are_not_ranked() -> None:
    got = compared(plan([target("fra"), target("ams")], [vantage("here")]), {})
    card, other = (one for one in ranking.blocks(got) if isinstance(one, Card))
    assert (card.about, other.about, card.badge) == ("not ranked", "not ranked", "Ask first")


@pytest.mark.parametrize("nasty", NASTIES, ids=range(len(NASTIES)))
@pytest.mark.parametrize("name", RENDERERS)
def test_a_hostile_name_is_only_text(name: str, nasty: str) -> None:
    text = "".join(RENDERERS[name](made(nasty)))
    text.encode()
    assert [line for line in text.split("\r\n" if name == "csv" else "\n") if not line.isprintable()] == []
    if name == "html":
        assert "<script>alert" not in text
        assert "<img" not in text
    if name == "json":
        Draft202012Validator(json.loads(json_renderer.schema())).validate(json.loads(text))


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_a_terminal_has_room_for_it(width: int) -> None:
    assert all(len(line) <= width for line in terminal.render(made(), width=width, colour=False).splitlines())
