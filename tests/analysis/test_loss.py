"""Loss as tables: fates in, exact counts, intervals and episodes out (method 2.1, 2.5, 1.6; RFC 6673, RFC 3357)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.notation import PING, book, fates, losing, ping, series_of, times
from hopscope.analysis.binomial import wilson
from hopscope.analysis.loss import autocorrelation, fate, is_lost, loss, runs
from hopscope.analysis.results import loss_of, ping_result
from hopscope.model.limits import MS, SECOND
from hopscope.model.record import Begin, Done, Drop, Extra, Probe, Record
from hopscope.model.report import Loss, SampleOutcome

OUTCOMES: list[SampleOutcome] = ["replied", "lost", "late", "unsent", "refused", "unreachable", "void"]


@pytest.mark.parametrize(
    ("text", "outcomes"),
    [
        ("10 . ~ ! r3 u x", ["replied", "lost", "late", "unsent", "refused", "unreachable", "void"]),
        ("~ ~", ["late", "late"]),
    ],
)
def test_fates(text: str, outcomes: list[SampleOutcome]) -> None:
    assert [one.outcome for one in fates(text)] == outcomes


@pytest.mark.parametrize(
    ("since_ms", "until_ms", "outcome"),
    [
        # The probe is in the air from 1000 to 3000 ms: a drop voids losses of its own interval only (1.6).
        (0, 999, "lost"),
        (0, 1000, "void"),
        (1500, 1600, "void"),
        (500, 9000, "void"),
        (3000, 3100, "void"),
        (3001, 3100, "lost"),
    ],
)
def test_a_drop_of_ours_voids_what_it_overlaps(since_ms: int, until_ms: int, outcome: SampleOutcome) -> None:
    drop = Drop(task=1, since=since_ms * MS, until=until_ms * MS, count=1)
    lost = Probe(task=1, seq=1, at=SECOND, outcome="lost")
    assert fate(lost, frozenset(), [drop], 2 * SECOND) == outcome
    answered = Probe(task=1, seq=1, at=SECOND, outcome="replied", rtt_ns=MS)
    assert fate(answered, frozenset(), [drop], 2 * SECOND) == "replied"


def test_a_late_answer_is_late_even_where_we_dropped() -> None:
    lost = Probe(task=1, seq=1, at=SECOND, outcome="lost", ttl=3, flow=2)
    drop = Drop(task=1, since=SECOND, until=SECOND, count=1)
    assert fate(lost, frozenset({(1, 3, 2)}), [drop], SECOND) == "late"
    assert fate(lost, frozenset({(1, 3, 1), (1, 2, 2), (2, 3, 2)}), [], SECOND) == "lost"


@pytest.mark.parametrize(
    ("outcome", "lost"),
    [
        ("replied", False),
        ("refused", False),
        ("lost", True),
        ("late", True),
        ("unreachable", True),
        ("unsent", None),
        ("void", None),
    ],
)
def test_what_counts(outcome: SampleOutcome, lost: bool | None) -> None:
    assert is_lost(outcome) is lost


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10 11 12", Loss(sent=3, received=3, lost=0, ratio=0.0, low=0.0, high=0.5615)),
        (
            "10 . 12 ! 15",
            Loss(sent=4, received=3, lost=1, unsent=1, ratio=0.25, low=0.0456, high=0.6994, episodes=1, longest=1),
        ),
        ("~ 10 r3 u", Loss(sent=4, received=2, lost=2, late=1, ratio=0.5, low=0.15, high=0.85, episodes=2, longest=1)),
        ("! !", Loss(sent=0, received=0, lost=0, unsent=2)),
        ("x x", Loss(sent=0, received=0, lost=0, void=2)),
        ("x 10", Loss(sent=1, received=1, lost=0, void=1, ratio=0.0, low=0.0, high=0.7935)),
        (". .", Loss(sent=2, received=0, lost=2, ratio=1.0, low=0.3424, high=1.0, episodes=1, longest=2)),
        ("", Loss(sent=0, received=0, lost=0)),
    ],
)  # fmt: skip
def test_loss(text: str, expected: Loss) -> None:
    got = loss_of(fates(text)) if text else loss([])
    for name in Loss.__struct_fields__:
        value = getattr(expected, name)
        assert getattr(got, name) == (pytest.approx(value, abs=5e-5) if isinstance(value, float) else value), name


@pytest.mark.parametrize(
    ("pattern", "episodes", "longest"),
    [("", 0, 0), ("0000", 0, 0), ("1111", 1, 4), ("0110100", 2, 2), ("1011", 2, 2), ("10101", 3, 1), ("0001", 1, 1)],
)
def test_episodes(pattern: str, episodes: int, longest: int) -> None:
    assert runs([one == "1" for one in pattern]) == (episodes, longest)


def test_an_unsent_probe_does_not_part_an_episode() -> None:
    got = loss_of(fates("10 . ! . 11"))
    assert (got.episodes, got.longest) == (1, 2)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("", 0.0), ("0000", 0.0), ("1111", 0.0), ("0101", -0.75), ("0011", 0.25), ("00001111", 0.625)],
)
def test_autocorrelation(pattern: str, expected: float) -> None:
    assert autocorrelation([one == "1" for one in pattern]) == pytest.approx(expected)


def test_the_interval_of_clustered_losses_is_wider() -> None:
    clustered, scattered = loss_of(fates(losing(20, 100))), loss_of(fates(" ".join([". 1 1 1 1"] * 20)))
    assert (clustered.lost, clustered.sent) == (scattered.lost, scattered.sent) == (20, 100)
    # Scattered losses keep n; r of the cluster is 0.9475, so n(1−r)/(1+r) is 2.7 (2.5).
    assert (scattered.low, scattered.high) == pytest.approx(wilson(20, 100))
    r = autocorrelation([True] * 20 + [False] * 80)
    effective = 100 * (1 - r) / (1 + r)
    assert r == pytest.approx(0.9475)
    assert effective == pytest.approx(2.6958, abs=1e-4)
    assert (clustered.low, clustered.high) == pytest.approx(wilson(0.2 * effective, effective))


def test_duplicates_and_warm_ups_stand_outside() -> None:
    records: list[Record] = [
        Begin(id=1, at=0, task=PING),
        Probe(task=1, seq=-1, at=0, outcome="lost", warmup=True),
        Extra(task=1, seq=-1, at=1, what="duplicate"),
        Probe(task=1, seq=0, at=SECOND, outcome="replied", rtt_ns=MS, clock="kernel", kind="echo-reply"),
        Extra(task=1, seq=0, at=2, what="duplicate"),
        Extra(task=1, seq=0, at=2, what="stranger", by="192.0.2.7"),
        Done(task=1, at=2),
    ]
    result = ping_result(series_of(records))
    assert (result.loss.sent, result.loss.received, result.loss.lost, result.loss.duplicates) == (1, 1, 0, 1)
    assert [(sample.warmup, sample.outcome) for sample in result.samples] == [(True, "lost"), (False, "replied")]


def test_episodes_of_a_series_follow_the_order_of_sending_not_of_settling() -> None:
    records = ping("10 . . 11")
    shuffled = [records[i] for i in (0, 1, 4, 3, 2, 5)]
    assert loss_of(series_of(shuffled).counted) == loss_of(series_of(ping("10 . . 11")).counted)
    assert book(shuffled).samples[1].probes[1].seq == 3


@given(st.lists(st.sampled_from(OUTCOMES), max_size=200), st.integers(0, 9))
def test_counts_always_add_up(outcomes: list[SampleOutcome], duplicates: int) -> None:
    got = loss(outcomes, duplicates=duplicates)
    assert got.sent == got.received + got.lost
    assert got.late <= got.lost
    assert got.sent + got.unsent + got.void == len(outcomes)
    assert got.longest <= got.lost
    assert got.episodes <= got.lost
    assert (got.lost == 0) == (got.episodes == 0)
    if got.ratio is None:
        assert (got.sent, got.low, got.high) == (0, None, None)
    else:
        assert got.low is not None
        assert got.high is not None
        assert 0.0 <= got.low <= got.ratio <= got.high <= 1.0


@given(st.lists(st.sampled_from(OUTCOMES), max_size=100), st.integers(0, 100))
def test_a_lost_probe_more_never_lowers_the_ratio(outcomes: list[SampleOutcome], where: int) -> None:
    before = loss(outcomes).ratio
    after = loss([*outcomes[:where], "lost", *outcomes[where:]]).ratio
    assert after is not None
    assert before is None or after >= before


def test_zero_is_only_said_when_nothing_was_lost() -> None:
    assert loss_of(fates(times(500, "1") + " .")).ratio == pytest.approx(1 / 501)
