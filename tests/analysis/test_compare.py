"""Candidates ranked and told apart, with exact numbers: ranks, scores, advice, reasons, differences and their ends.

A limit of 40 ms on RTT p95 and of 1 % on loss holds unless a row says otherwise. This file is longer than others
because ranking, advice and differences are three tables over the same books.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from analysis.comparing import (
    BERLIN,
    FRANKFURT,
    NEW_YORK,
    Pair,
    Series,
    book,
    candidates,
    compared,
    down,
    plan,
    reasons,
    requests,
    series,
    standing,
    streams,
    target,
    vantage,
)
from analysis.notation import losing, times
from hopscope.analysis.judge import report
from hopscope.analysis.say import ratio
from hopscope.model.limits import SECOND
from hopscope.model.plan import Budget, Plan
from hopscope.model.record import Done, Exchange, SelfCheck
from hopscope.model.report import Difference, Report
from hopscope.model.sample import Book

FREE = Budget()
HERE = [vantage("here")]
TWO = [vantage("berlin"), vantage("london")]


def spread(centre: float, n: int = 50, step: float = 0.01) -> str:
    """Round trips around a centre, all different."""
    return " ".join(f"{centre + (index - n // 2) * step:.3f}" for index in range(n))


def apart(lost: int, sent: int) -> str:
    """Losses with answers between them."""
    return " ".join([*[". 10"] * lost, *["10"] * (sent - 2 * lost)])


def one_place(first: str, second: str, budget: Budget | None = None) -> Report:
    what = plan([target("fra", budget), target("ams", budget)], HERE)
    return compared(what, {("fra", "here"): first, ("ams", "here"): second})


def from_two(values: dict[str, tuple[str, str]]) -> Report:
    found: Series = {
        (name, place): text
        for name, texts in values.items()
        for place, text in zip(("berlin", "london"), texts, strict=True)
    }
    return compared(plan([target(name) for name in values], TWO), found)


# Rank and score


@pytest.mark.parametrize(
    ("fra", "ams", "expected"),
    [
        # both within the budget: the shorter wait
        (times(100, "20"), times(100, "10"), [("ams", 1, "buy", 1.0), ("fra", 2, "buy", 1.0)]),
        # 10 of 100 over 40 ms where 5 may be: 0.90 / 0.95
        (
            f"{times(90, '10')} {times(10, '50')}",
            times(100, "30"),
            [("ams", 1, "buy", 1.0), ("fra", 2, "avoid", 0.947368421)],
        ),
        # 5 of 100 over it is not too many
        (f"{times(95, '10')} {times(5, '50')}", times(100, "60"), [("fra", 1, "buy", 1.0), ("ams", 2, "avoid", 0.0)]),
        # likely missed (3 of 50): a question, behind whoever misses nothing; 0.94 / 0.95
        (
            f"{times(47, '10')} {times(3, '50')}",
            times(50, "39"),
            [("ams", 1, "buy", 1.0), ("fra", 2, "ask", 0.989473684)],
        ),
        # the worst limit counts: 12 lost of 100 are over 40 ms too, 0.88 / 0.95 and 0.88 / 0.99
        (losing(12, 100, 10), times(100, "39"), [("ams", 1, "buy", 1.0), ("fra", 2, "avoid", 0.888888889)]),
        # a port that answers nothing fails: it comes last whatever the other one misses
        (times(100, "."), times(100, "90"), [("ams", 1, "avoid", 0.0), ("fra", 2, "avoid", 0.0)]),
    ],
)
def test_rank_score_and_advice(fra: str, ams: str, expected: list[tuple[str, int, str, float]]) -> None:
    assert standing(one_place(fra, ams)) == expected


def test_a_share_is_of_places_by_their_weight() -> None:
    found: Series = {
        ("fra", "berlin"): times(100, "10"), ("fra", "london"): times(100, "90"),
        ("ams", "berlin"): times(100, "90"), ("ams", "london"): times(100, "10"),
    }  # fmt: skip
    heavy = [vantage("berlin", weight=3), vantage("london")]
    got = compared(plan([target("fra"), target("ams")], heavy), found)
    # misses for certain from a quarter of the weight: a question; from three quarters: to be avoided
    assert standing(got) == [("fra", 1, "ask", 0.75), ("ams", 2, "avoid", 0.25)]
    assert [place.weight for place in candidates(got)[0].places] == [3, 1]
    none = [vantage("berlin", weight=0), vantage("london", weight=0)]
    assert [one[3] for one in standing(compared(plan([target("fra"), target("ams")], none), found))] == [0.5, 0.5]


def test_a_limit_missed_for_certain_at_half_of_the_weight_is_enough_to_avoid() -> None:
    got = from_two({"fra": (times(100, "10"), times(100, "90")), "ams": (times(100, "20"), times(100, "20"))})
    assert standing(got) == [("ams", 1, "buy", 1.0), ("fra", 2, "avoid", 0.5)]


def test_whoever_fails_anywhere_ranks_behind_whoever_fails_nowhere() -> None:
    got = from_two({"fra": (times(100, "10"), times(100, ".")), "ams": (times(100, "90"), times(100, "90"))})
    assert standing(got) == [("ams", 1, "avoid", 0.0), ("fra", 2, "avoid", 0.5)]
    three = [*TWO, vantage("paris")]
    found: Series = {
        **{("fra", place.name): times(100, "." if place.name == "paris" else "10") for place in three},
        **{("ams", place.name): times(100, "20") for place in three},
    }
    got = compared(plan([target("fra"), target("ams")], three), found)
    # a third of the weight: not to be avoided yet, but to be asked about
    assert standing(got) == [("ams", 1, "buy", 1.0), ("fra", 2, "ask", 0.666666667)]
    assert reasons(got, "fra")[0].startswith("fails from paris: nothing came back from ")


def test_without_a_budget_the_score_is_the_least_wait_over_its_own() -> None:
    what = plan([target("fra", FREE), target("ams", FREE)], TWO)
    found: Series = {
        ("fra", "berlin"): times(50, "10"), ("fra", "london"): times(50, "40"),
        ("ams", "berlin"): times(50, "20"), ("ams", "london"): times(50, "20"),
    }  # fmt: skip
    # fra (1 + 20/40) / 2, ams (10/20 + 1) / 2: equals, so the one with the shorter mean wait, 20 of 25 ms, comes first
    got = compared(what, found)
    assert standing(got) == [("ams", 1, "buy", 0.75), ("fra", 2, "ask", 0.75)]
    assert reasons(got, "fra") == (
        "nothing was found against it from berlin and london",
        "RTT p50 20.0 ms higher than ams's from london",
        "no budget says whether that difference matters",
    )


def test_without_a_budget_the_best_and_whoever_does_not_differ_from_it_are_to_be_bought() -> None:
    what = plan([target(name, FREE) for name in ("fra", "ams", "iad", "par")], HERE)
    found: Series = {
        ("fra", "here"): spread(10.0), ("ams", "here"): spread(10.02), ("iad", "here"): spread(80.0),
        ("par", "here"): losing(10, 50, 9.0),
    }  # fmt: skip
    got = compared(what, found)
    assert standing(got) == [
        # medians 9.995, 10.015 and 79.995 ms, against the least, 9 ms of the lossy one
        ("fra", 1, "buy", 0.900450225), ("ams", 2, "buy", 0.898652022), ("iad", 3, "ask", 0.112507032),
        ("par", 4, "ask", 1.0),
    ]  # fmt: skip


def test_without_a_budget_the_wait_is_of_one_kind_for_all_candidates() -> None:
    what = plan([target("fra", FREE, url=True), target("ams", FREE, url=True)], HERE)
    rtts: Series = {("fra", "here"): times(50, "10"), ("ams", "here"): times(50, "20")}
    slow, fast = requests([90.0] * 12, ("fra", "here"), 8), requests([30.0] * 12, ("ams", "here"), 9)
    assert standing(compared(what, rtts, slow, fast))[0] == ("ams", 1, "buy", 1.0)
    assert standing(compared(what, rtts, slow, fast))[1] == ("fra", 2, "ask", 0.5)  # 20 + 30 of 10 + 90
    assert standing(compared(what, rtts, slow))[0] == ("fra", 1, "buy", 1.0)
    tokens = streams([100.0] * 12, ("fra", "here"), 10), streams([400.0] * 12, ("ams", "here"), 11)
    got = compared(what, rtts, slow, fast, *tokens)
    assert [(one[0], one[3]) for one in standing(got)] == [("fra", 1.0), ("ams", 0.25)]


def test_server_time_is_of_hot_requests_of_all_where_none_is_hot() -> None:
    what = plan([target("fra", FREE, url=True), target("ams", FREE, url=True)], HERE)
    rtts: Series = {("fra", "here"): times(50, "10"), ("ams", "here"): times(50, "10")}
    warm = requests([900.0] * 5 + [40.0] * 9, ("fra", "here"), 8)
    mixed = [replace(one, cold=True) if isinstance(one, Exchange) and one.seq < 5 else one for one in warm]
    cold = [
        replace(one, cold=True) if isinstance(one, Exchange) else one
        for one in requests([70.0] * 9, ("ams", "here"), 9)
    ]
    got = compared(what, rtts, mixed, cold)
    servers = {one.target: (one.places[0].server.n, one.places[0].server.p50_ms) for one in candidates(got)}
    assert servers == {"fra": (9, 40.0), "ams": (9, 70.0)}


# Ties


@pytest.mark.parametrize(
    ("fra", "ams", "prices", "order"),
    [
        # no difference shown: the cheaper
        (spread(10), spread(10), (2300, 1900), ["ams", "fra"]),
        (spread(10), spread(10), (1900, 2300), ["fra", "ams"]),
        # no difference that matters: the cheaper
        (spread(10), spread(10.9), (2300, 1900), ["ams", "fra"]),
        # a difference that matters: the faster, whatever it costs
        (spread(10), spread(11.1), (2300, 1900), ["fra", "ams"]),
        # a price that nobody said is no reason to be ahead
        (spread(10.02), spread(10), (None, 1900), ["ams", "fra"]),
        (spread(10.02), spread(10), (2300, None), ["fra", "ams"]),
        # neither price: the shorter wait; and the order of the file where even that is the same
        (spread(10.02), spread(10), (None, None), ["ams", "fra"]),
        (spread(10), spread(10), (None, None), ["fra", "ams"]),
    ],
)
def test_equals_stand_by_price_only_where_no_difference_is_shown(
    fra: str, ams: str, prices: tuple[float | None, float | None], order: list[str]
) -> None:
    what = plan([target("fra", price=prices[0]), target("ams", price=prices[1])], HERE)
    got = compared(what, {("fra", "here"): fra, ("ams", "here"): ams})
    assert [one.target for one in candidates(got)] == order
    assert [(one.advice, one.score) for one in candidates(got)] == [("buy", 1.0)] * 2


@pytest.mark.parametrize(
    ("ams", "order"),
    [
        (10.02, ["ams", "fra"]),  # noise: the cheaper
        (10.9, ["ams", "fra"]),  # shown, and too small to matter: the cheaper
        (11.1, ["fra", "ams"]),  # a difference that matters: the faster
    ],
)
def test_without_a_budget_price_decides_where_no_difference_is_shown(ams: float, order: list[str]) -> None:
    what = plan([target("fra", FREE, price=2000), target("ams", FREE, price=100)], HERE)
    got = compared(what, {("fra", "here"): spread(10), ("ams", "here"): spread(ams)})
    assert [one.target for one in candidates(got)] == order


@pytest.mark.parametrize(
    ("thin", "order"),
    [
        (times(3, "35"), ["well", "thin"]),
        (times(8, "35"), ["well", "thin"]),
        (spread(10.05), ["thin", "well"]),
    ],
)
def test_too_few_samples_to_tell_a_difference_are_not_alike(thin: str, order: list[str]) -> None:
    what = plan([target("well", price=2000), target("thin", price=100)], HERE)
    got = compared(what, {("well", "here"): spread(10), ("thin", "here"): thin})
    assert [one.target for one in candidates(got)] == order


def test_a_chain_of_small_steps_is_grouped_around_the_fastest() -> None:
    """The third differs from the first and not from the second: it stays behind both though it is the cheapest."""
    what = plan([target("a", price=300), target("b", price=200), target("c", price=100)], HERE)
    got = compared(what, {("a", "here"): spread(10), ("b", "here"): spread(10.8), ("c", "here"): spread(11.6)})
    assert [one.target for one in candidates(got)] == ["b", "a", "c"]


# Places and quorum


def test_a_place_that_failed_is_left_out_for_all_alike() -> None:
    what = plan([target("fra"), target("ams")], TWO)
    found: Series = {
        ("fra", "berlin"): times(100, "30"), ("ams", "berlin"): times(100, "20"),
        ("fra", "london"): times(100, "10"), ("ams", "london"): times(100, "90"),
    }  # fmt: skip
    assert [one[0] for one in standing(compared(what, found))] == ["fra", "ams"]
    got = compared(what, found, down("london"))
    assert standing(got) == [("ams", 1, "buy", 1.0), ("fra", 2, "buy", 1.0)]
    assert [[place.vantage for place in one.places] for one in candidates(got)] == [["berlin"], ["berlin"]]
    assert got.verdict.status == "warning"
    assert got.verdict.summary.endswith(" Left out for all alike: london (ssh: refused).")
    assert {one.vantage for one in got.differences} == {"berlin"}


def test_a_place_from_which_one_candidate_was_not_measured_is_left_out_for_all() -> None:
    what = plan([target("fra"), target("ams")], TWO)
    got = compared(what, {("fra", "berlin"): times(100, "10"), ("fra", "london"): times(100, "10"),
                          ("ams", "berlin"): times(100, "20")})  # fmt: skip
    assert [[place.vantage for place in one.places] for one in candidates(got)] == [["berlin"], ["berlin"]]
    assert got.verdict.summary.endswith("Left out for all alike: london (ams was not measured from there).")


def test_a_place_that_was_too_busy_is_left_out_for_all() -> None:
    what = plan([target("fra"), target("ams")], TWO)
    found: Series = {(name, place): times(50, "10") for name in ("fra", "ams") for place in ("berlin", "london")}
    busy = [Done(task=1, at=SECOND, check=SelfCheck(limited=True))]
    got = compared(what, found, busy)
    assert [[place.vantage for place in one.places] for one in candidates(got)] == [["london"], ["london"]]
    assert got.verdict.status == "unknown"


@pytest.mark.parametrize(("quorum", "ranks", "status"), [(1, [1, 2], "warning"), (2, [None, None], "unknown")])
def test_below_the_quorum_nothing_is_ranked(quorum: int, ranks: list[int | None], status: str) -> None:
    what = plan([target("fra"), target("ams")], TWO, quorum=quorum)
    found: Series = {(name, "berlin"): times(100, "10") for name in ("fra", "ams")}
    got = compared(what, found, down("london"))
    assert [one.rank for one in candidates(got)] == ranks
    assert got.verdict.status == status
    if status == "unknown":
        why = "not compared: 1 of 2 places can be compared over, 2 are needed"
        assert [(one.advice, one.score, one.reasons) for one in candidates(got)] == [("ask", None, (why,))] * 2
        assert got.verdict.summary == (
            "Nothing is ranked: 1 of 2 places can be compared over, 2 are needed. "
            "Left out for all alike: london (ssh: refused)."
        )
        assert got.differences == ()


def test_a_quorum_that_is_missed_without_a_failed_place_is_a_finding_of_its_own() -> None:
    what = plan([target("fra"), target("ams")], TWO, quorum=2)
    found: Series = {("fra", "berlin"): "10 10", ("fra", "london"): "10 10", ("ams", "berlin"): "10 10"}
    got = compared(what, found)
    assert [(one.id, one.severity) for one in got.verdict.findings] == [("not-enough-data/quorum", "unknown")]
    assert got.verdict.status == "unknown"


def test_a_candidate_of_which_nothing_is_known_is_not_ranked_and_costs_the_others_no_place() -> None:
    what = plan([target("fra"), target("ams"), target("iad")], TWO)
    found: Series = {(name, place): times(50, "10") for name in ("fra", "ams") for place in ("berlin", "london")}
    got = compared(what, found)
    assert [(one[0], one[1], one[2]) for one in standing(got)] == [
        ("fra", 1, "buy"), ("ams", 2, "buy"), ("iad", None, "ask")
    ]  # fmt: skip
    assert reasons(got, "iad") == ("not compared: iad was not measured: the run ended first",)
    assert got.verdict.status == "unknown"


# Reasons


def test_what_a_clean_candidate_is_told() -> None:
    what = plan(
        [target("fra", price=2300, site=FRANKFURT), target("ams", price=1900, site=FRANKFURT)],
        [vantage("berlin", site=BERLIN), vantage("newyork", site=NEW_YORK)],
    )
    found: Series = {
        ("fra", "berlin"): times(300, "8"), ("fra", "newyork"): times(300, "66"),
        ("ams", "berlin"): times(300, "20"), ("ams", "newyork"): times(300, "90"),
    }  # fmt: skip
    wide = Budget(rtt_p50_ms=70.0, loss=0.01)
    got = compared(replace(what, targets=tuple(replace(one, budget=wide) for one in what.targets)), found)
    assert reasons(got, "fra") == (
        "meets every limit from berlin and newyork: RTT p50 66.0 ms of 70.0 ms allowed, no loss in 600 (1 % allowed)",
        "61.1 ms of the 66.0 ms from newyork is distance (6,200 km): no money removes it",
        "RTT p50 12.0 ms lower than ams's from berlin; costs 400 a month more",
    )
    assert reasons(got, "ams") == (
        "misses RTT p50 of 70.0 ms from newyork: 100 % of the samples are over it, 50 % may be",
        "61.1 ms of the 90.0 ms from newyork is distance (6,200 km): no money removes it",
        "RTT p50 12.0 ms higher than fra's from berlin; costs 400 a month less",
    )
    places = {place.vantage: place for place in candidates(got)[0].places}
    assert places["newyork"].floor_ms == pytest.approx(61.073, abs=0.001)
    assert places["newyork"].stretch == pytest.approx(1.0807, abs=0.0001)
    assert places["berlin"].distance_km == pytest.approx(423.4, abs=0.1)


def test_a_limit_below_what_distance_needs_says_so() -> None:
    what = plan([target("fra", site=FRANKFURT), target("nyc", site=NEW_YORK)], [vantage("newyork", site=NEW_YORK)])
    got = compared(what, {("fra", "newyork"): times(100, "66"), ("nyc", "newyork"): times(100, "2")})
    assert reasons(got, "fra")[0] == (
        "misses RTT p95 of 40.0 ms from newyork: 100 % of the samples are over it, 5 % may be; "
        "61.1 ms of it is distance from newyork, no money removes it"
    )


def test_a_slow_server_is_a_question_to_its_seller_and_not_a_reason_to_avoid_it() -> None:
    limit = Budget(rtt_p95_ms=40.0, server_p95_ms=500.0)
    what = plan([target("fra", limit, url=True), target("iad", limit, url=True)], HERE)
    rtts: Series = {("fra", "here"): times(100, "5"), ("iad", "here"): times(100, "5")}
    fast, slow = requests([40.0] * 13, ("fra", "here"), 8), requests([1500.0] * 13, ("iad", "here"), 9)
    got = compared(what, rtts, fast, slow)
    assert standing(got) == [("fra", 1, "buy", 1.0), ("iad", 2, "ask", 0.0)]
    assert reasons(got, "fra")[0] == (
        "meets every limit from here: RTT p95 5.00 ms of 40.0 ms allowed, server p95 within 500 ms in 13 of 13"
    )
    assert reasons(got, "iad") == (
        "its server needs 1.50 s before the first byte, more than 500 ms: no route change will help",
        "server p50 1.46 s higher than fra's from here",
        "ask what its server waits for: queue, model load, GPU",
    )
    assert got.verdict.summary == (
        "Buy fra: meets every limit from here; ask about iad: its server needs 1.50 s before the first byte, more than "
        "500 ms: no route change will help."
    )


def test_what_was_not_measured_keeps_a_candidate_from_being_bought() -> None:
    limit = Budget(rtt_p95_ms=40.0, ttft_p95_ms=500.0, tls_p95_ms=100.0)
    what = plan([target("fra", limit), target("ams", limit, url=True)], HERE)
    got = compared(what, {("fra", "here"): times(100, "5"), ("ams", "here"): times(9, "5")})
    assert [one[2] for one in standing(got)] == ["ask", "ask"]
    assert reasons(got, "fra")[:2] == (
        "could not be judged: TTFT p95, nothing measured says it; add stream to its probes",  # it has no TLS
        "meets the limits that could be judged from here: RTT p95 5.00 ms of 40.0 ms allowed",
    )
    assert reasons(got, "ams")[:2] == (
        "could not be judged: TLS p95 and TTFT p95, nothing measured says it; add stream to its probes",
        "too little was measured from here to be sure",
    )
    assert got.verdict.summary.startswith("Buy none of them as measured; ask about fra: could not be judged")


def test_a_candidate_without_a_budget_among_others_with_one() -> None:
    what = plan([target("fra"), target("ams", FREE)], HERE)
    got = compared(what, {("fra", "here"): times(50, "20"), ("ams", "here"): times(50, "10")})
    assert [(one[0], one[2]) for one in standing(got)] == [("ams", "ask"), ("fra", "buy")]
    assert reasons(got, "ams")[0] == "no budget is set for it, while others have one"


def test_a_doubtful_place_is_a_question() -> None:
    what = plan([target("fra", site=NEW_YORK), target("ams")], [vantage("berlin", site=BERLIN)])
    got = compared(what, {("fra", "berlin"): times(50, "12"), ("ams", "berlin"): times(50, "20")})
    assert standing(got) == [("ams", 1, "buy", 1.0), ("fra", 2, "ask", 1.0)]
    assert reasons(got, "fra") == (
        "its stated place is doubtful: it answers berlin in 12.0 ms, and distance alone needs 62.9 ms",
        "RTT p50 8.00 ms lower than ams's from berlin",
        "ask where it stands, and what answers there",
    )


def burst(lost: int, sent: int) -> str:
    """Losses in a row, answers before and behind."""
    return f"{times((sent - lost) // 2, '10')} {times(lost, '.')} {times((sent - lost + 1) // 2, '10')}"


@pytest.mark.parametrize(
    ("berlin", "london", "told"),
    [
        # losses in a row are worth 100(1−r)/(1+r) = 5 trials: the interval that the table shows
        (burst(12, 100), times(100, "10"), "12 % loss (95 % interval 1.5–55.4 %), from berlin"),
        (apart(12, 100), times(100, "10"), "12 % loss (95 % interval 7–19.8 %), from berlin"),
        # of both places the trials are added: 5 and 100, 5 and 5
        (burst(12, 100), apart(12, 100), "12 % loss (95 % interval 7.1–19.6 %), from berlin and london"),
        (burst(12, 100), burst(12, 100), "12 % loss (95 % interval 2.4–42.7 %), from berlin and london"),
    ],
)
def test_the_interval_of_loss_knows_that_losses_cluster(berlin: str, london: str, told: str) -> None:
    got = from_two({"fra": (berlin, london), "ams": (times(100, "20"), times(100, "20"))})
    assert reasons(got, "fra")[0] == f"{told}; where it begins is not known yet; 1 % is allowed"
    loss = next(one.places[0].loss for one in candidates(got) if one.target == "fra")
    if "and london" not in told:
        assert f"{ratio(loss.low).removesuffix(' %')}–{ratio(loss.high)}" in told


def test_a_loss_limit_is_missed_where_no_finding_of_loss_tells_it() -> None:
    got = from_two({"fra": (apart(12, 100), apart(2, 50)), "ams": (times(100, "20"), times(100, "20"))})
    lossy = "12 % loss (95 % interval 7–19.8 %), from berlin; where it begins is not known yet; 1 % is allowed"
    assert reasons(got, "fra")[0] == lossy
    assert [one for one in reasons(got, "fra") if "misses loss" in one] == [
        "likely misses loss of 1 % from london: 4 % is lost"
    ]


def test_names_are_counted_and_reasons_bounded() -> None:
    places = [vantage(f"place{number}") for number in range(9)]
    what = plan([target("fra"), target("ams")], places)
    got = compared(what, {(name, place.name): times(20, "5") for name in ("fra", "ams") for place in places})
    assert reasons(got, "fra")[0].startswith("meets every limit from place0, place1, place2, place3 and 5 more: ")
    assert len(reasons(got, "fra")) <= 12


def test_many_candidates_are_a_short_sentence() -> None:
    names = [f"dc{number}" for number in range(9)]
    got = compared(plan([target(name) for name in names], HERE), {(name, "here"): times(20, "5") for name in names})
    assert got.verdict.summary.endswith("; and 5 more candidates.")
    assert len(got.verdict.summary) < 1000


# Differences


def rows(got: Report, metric: str = "rtt_p50") -> list[Difference]:
    return [one for one in got.differences if one.metric == metric]


@pytest.mark.parametrize(
    ("fra", "ams", "expected"),
    [
        # identical samples
        (spread(10), spread(10), (0.0, -0.21, 0.21, "undecided", False, "no difference shown")),
        # 1 ms of true shift, 50 samples: ranks 14 and 35 of each, so 1 ± 0.21 ms
        (spread(10), spread(11), (1.0, 0.79, 1.21, "shown", True, "ams takes 1.00 ms longer than fra")),
        (spread(11), spread(10), (1.0, 0.79, 1.21, "shown", True, "fra takes 1.00 ms longer than ams")),
        # ends that touch zero show nothing; a hundredth more does, and is too small to matter
        (spread(10), spread(10.21), (0.21, 0.0, 0.42, "undecided", False, "no difference shown")),
        (spread(10), spread(10.22), (0.22, 0.01, 0.43, "shown", False, "shown, but too small to matter")),
        # a millisecond is too small where the wait is 100 ms: 2 % are 2 ms
        (spread(100), spread(101.9), (1.9, 1.69, 2.11, "shown", False, "shown, but too small to matter")),
        (spread(100), spread(102.1), (2.1, 1.89, 2.31, "shown", True, "ams takes 2.10 ms longer than fra")),
        # nine samples on either side are the least
        (spread(10, 9), spread(11, 9), (1.0, 0.92, 1.08, "shown", True, "ams takes 1.00 ms longer than fra")),
        (spread(10, 8), spread(11, 50), (1.0, None, None, "undecided", False,
                                         "not enough data: 8 of the 9 samples that both need")),
    ],
)  # fmt: skip
def test_medians(fra: str, ams: str, expected: tuple[float, float | None, float | None, str, bool, str]) -> None:
    (row,) = rows(one_place(fra, ams))
    by, low, high, confidence, matters, why = expected
    assert row.difference == pytest.approx(by, abs=0.011)
    assert row.low == (None if low is None else pytest.approx(low, abs=1e-6))
    assert row.high == (None if high is None else pytest.approx(high, abs=1e-6))
    assert (row.confidence, row.matters, row.unit) == (confidence, matters, "ms")
    assert row.why == why


@pytest.mark.parametrize(
    ("fra", "ams", "confidence"),
    [
        # 8 of 50 against none is p = 0.0058, 7 of 50 is 0.0125; the losses stand apart, so each is a trial
        ((0, 50), (8, 50), "shown"),
        ((0, 50), (7, 50), "undecided"),
        ((8, 50), (0, 50), "shown"),
        ((8, 50), (8, 50), "undecided"),
        ((0, 4), (4, 8), "undecided"),
    ],
)
def test_loss(fra: tuple[int, int], ams: tuple[int, int], confidence: str) -> None:
    (row,) = rows(one_place(apart(*fra), apart(*ams), FREE), "loss")
    assert (row.confidence, row.matters, row.low, row.high) == (confidence, confidence == "shown", None, None)
    values = {row.first: row.first_value, row.second: row.second_value}
    assert values == {"fra": fra[0] / fra[1], "ams": ams[0] / ams[1]}
    assert row.difference == pytest.approx((row.second_value or 0) - (row.first_value or 0))


def test_losses_in_a_burst_are_fewer_trials() -> None:
    (row,) = rows(one_place(times(50, "10"), losing(8, 50, 10), FREE), "loss")
    assert (row.second_value, row.difference, row.confidence) == (0.16, 0.16, "undecided")


def test_server_time_and_first_token_have_rows_where_either_was_measured() -> None:
    what = plan([target("fra", FREE, url=True), target("ams", FREE, url=True)], HERE)
    rtts: Series = {("fra", "here"): times(50, "10"), ("ams", "here"): times(50, "10")}
    servers = requests([40.0] * 9, ("fra", "here"), 8), requests([55.0] * 9, ("ams", "here"), 9)
    (row,) = rows(compared(what, rtts, *servers), "server_p50")
    assert (row.first, row.difference, row.low, row.high, row.matters) == ("fra", 15.0, 15.0, 15.0, True)
    (alone,) = rows(compared(what, rtts, servers[0]), "server_p50")
    assert (alone.first_value, alone.second_value, alone.difference) == (40.0, None, None)
    assert alone.why == "not enough data: one of them gave no answer to compare"
    assert rows(compared(what, rtts), "server_p50") == []
    (token,) = rows(compared(what, rtts, streams([90.0] * 5, ("fra", "here"), 8)), "ttft_p50")
    assert (token.first_value, token.second_value) == (90.0, None)


def test_only_series_of_one_protocol_are_compared() -> None:
    what = plan([target("fra"), target("ams")], HERE)
    records = book(what, {("fra", "here"): times(50, "10")})
    assert rows(report(records, tool_version="0")) == []  # of ams nothing is known
    tcp: Pair = ("ams", "here")
    got = compared(what, {("fra", "here"): times(50, "10")}, series(times(50, "12"), tcp, 9, protocol="tcp", port=443))
    (row,) = rows(got)
    assert (row.first_value, row.second_value, row.difference) == (10.0, 12.0, None)
    assert row.why == "not comparable: no protocol is answered by both"
    assert [one.why for one in rows(got, "loss")] == [row.why]


@pytest.mark.parametrize(("number", "pairs"), [(2, 1), (6, 15), (7, 6), (20, 19)])
def test_up_to_six_candidates_every_pair_is_told_apart_beyond_that_the_next_in_rank(number: int, pairs: int) -> None:
    names = [f"dc{index}" for index in range(number)]
    found: Series = {(name, "here"): times(10, str(5 + 5 * index)) for index, name in enumerate(names)}
    got = compared(plan([target(name, FREE) for name in names], HERE), found)
    assert len(rows(got)) == pairs
    ranks = {one.target: one.rank or 0 for one in candidates(got)}
    assert all(ranks[one.first] < ranks[one.second] for one in got.differences)


# The whole


def test_comparisons_stand_first_in_the_order_of_rank_and_the_rest_is_what_a_run_says() -> None:
    what = plan([target("fra"), target("ams")], HERE)
    records = book(what, {("fra", "here"): times(50, "20"), ("ams", "here"): times(50, "10")})
    got, plain = report(records, tool_version="0"), report(_as_run(what), tool_version="0")
    assert [one.target for one in candidates(got)] == ["ams", "fra"]
    assert (got.command, plain.command) == ("compare", "run")
    assert (plain.differences, candidates(plain)) == ((), [])
    assert got.verdict.findings == plain.verdict.findings
    assert (got.targets, got.vantages, got.failures) == (plain.targets, plain.vantages, plain.failures)


def _as_run(what: Plan) -> Book:
    return book(what, {("fra", "here"): times(50, "20"), ("ams", "here"): times(50, "10")}, command="run")


@pytest.mark.parametrize("nasty", ["\x1b[31mred", "a|b`c`", "<script>", "\u202egnp", "x" * 5000, "", "=cmd()"])
def test_any_name_is_compared(nasty: str) -> None:
    what = plan([target(nasty), target("ams")], [vantage(f"{nasty}!")])
    got = compared(what, {(nasty, f"{nasty}!"): times(20, "20"), ("ams", f"{nasty}!"): times(20, "10")})
    assert standing(got) == [("ams", 1, "buy", 1.0), (nasty, 2, "buy", 1.0)]


WORDS = st.lists(st.sampled_from([".", "!", "x", "~", "u", "u13", "r3", "0", "10", "12.5", "9000"]), max_size=15)
BUDGETS = st.sampled_from([FREE, Budget(rtt_p95_ms=11.0), Budget(loss=1.0), Budget(loss=0.0, tls_p95_ms=1.0)])


@given(st.lists(WORDS, min_size=6, max_size=6), st.lists(BUDGETS, min_size=3, max_size=3), st.integers(0, 3))
@settings(max_examples=200)
def test_whatever_was_seen_there_is_an_order_and_a_reason_for_each(
    texts: list[list[str]], budgets: list[Budget], quorum: int
) -> None:
    names = ("fra", "ams", "iad")
    targets = [target(name, budget, site=FRANKFURT) for name, budget in zip(names, budgets, strict=True)]
    what = plan(targets, [vantage("berlin", site=BERLIN), vantage("london", weight=0)], quorum=quorum)
    pairs = [(name, place) for name in names for place in ("berlin", "london")]
    got = compared(what, {pair: " ".join(text) for pair, text in zip(pairs, texts, strict=True)})
    found = candidates(got)
    assert {one.target for one in found} == set(names)
    ranks = [one.rank for one in found if one.rank is not None]
    assert ranks == list(range(1, len(ranks) + 1))
    assert all(one.reasons and all(one.reasons) for one in found)
    assert all(one.score is None or 0 <= one.score <= 1 for one in found)
    assert all(one.advice == "ask" for one in found if one.rank is None)
    bought = {one.target for one in found if one.advice == "buy"}
    places = {place.vantage for one in found for place in one.places}
    worries = [one for one in got.verdict.findings if one.severity != "info" and one.target in bought]
    assert not [one for one in worries if places & set(one.vantages)]
    assert report(_again(what, pairs, texts), tool_version="0").verdict == got.verdict


def _again(what: Plan, pairs: list[Pair], texts: list[list[str]]) -> Book:
    return book(what, {pair: " ".join(text) for pair, text in zip(pairs, texts, strict=True)})
