"""What becomes of each probe, stepped by hand: settled once, late never revised (method 2.1)."""

import pytest

from hopscope.engine.flights import REMEMBERED, Flights, key
from hopscope.model.flight import Answer, Shot
from hopscope.model.limits import MS, SECOND
from hopscope.model.record import Extra, Probe, ReplyKind

THRESHOLD = 2 * SECOND


def shot(seq: int = 0, *, ttl: int = 0, flow: int = 0, slot: int = 0, warmup: bool = False) -> Shot:
    return Shot(seq=seq, flow=flow, ttl=ttl, slot=slot, warmup=warmup)


def reply(rtt_ms: float = 10, kind: ReplyKind = "echo-reply") -> Answer:
    return Answer(kind=kind, rtt_ns=int(rtt_ms * MS), clock="kernel")


def sent(flights: Flights, which: Shot, at: int) -> None:
    flights.launch(which)
    flights.sent(which, at)


def test_an_answer_in_time_settles_a_probe_with_its_instant_of_sending() -> None:
    flights = Flights(7, THRESHOLD)
    which = shot(3, ttl=4, flow=1, slot=100)
    sent(flights, which, 105)
    assert len(flights) == 1
    answer = Answer(
        kind="time-exceeded", rtt_ns=10 * MS, clock="kernel", by="192.0.2.1", code=0, reply_ttl=60, quoted_ttl=1,
        quoted_tos=8, mpls=(16,),
    )  # fmt: skip
    assert flights.answered(which, answer)
    assert flights.take() == [
        Probe(
            task=7, seq=3, at=105, outcome="replied", ttl=4, flow=1, rtt_ns=10 * MS, clock="kernel",
            kind="time-exceeded", by="192.0.2.1", code=0, reply_ttl=60, quoted_ttl=1, quoted_tos=8, mpls=(16,),
        )
    ]  # fmt: skip
    assert (len(flights), flights.take(), flights.next_expiry()) == (0, [], None)


def test_no_answer_is_a_loss_at_the_threshold_and_not_before() -> None:
    flights = Flights(7, THRESHOLD)
    sent(flights, shot(), 50)
    assert flights.next_expiry() == 50 + THRESHOLD
    assert flights.expire(50 + THRESHOLD - 1) == []
    assert flights.expire(50 + THRESHOLD) == [shot()]
    assert flights.take() == [Probe(task=7, seq=0, at=50, outcome="lost")]
    assert flights.next_expiry() is None


def test_state_exists_before_the_send_so_that_no_answer_is_too_fast() -> None:
    flights = Flights(7, THRESHOLD)
    flights.launch(shot(slot=40))
    assert flights.answered(shot(slot=40), reply())
    flights.sent(shot(slot=40), 45)
    (probe,) = flights.take()
    assert isinstance(probe, Probe)
    assert (probe.outcome, probe.at) == ("replied", 40)
    assert flights.expire(10 * SECOND) == []


def test_an_answer_after_the_loss_is_late_and_the_next_one_a_duplicate() -> None:
    flights = Flights(7, THRESHOLD)
    sent(flights, shot(slot=10), 10)
    flights.expire(10 + THRESHOLD)
    assert not flights.answered(shot(slot=10), reply(2500))
    assert not flights.answered(shot(slot=10), reply(2600))
    lost, late, again = flights.take()
    assert lost == Probe(task=7, seq=0, at=10, outcome="lost")
    assert late == Extra(
        task=7, seq=0, at=10 + 2500 * MS, what="late", rtt_ns=2500 * MS, clock="kernel"
    )  # fmt: skip
    assert isinstance(again, Extra)
    assert again.what == "duplicate"


@pytest.mark.parametrize(("rtt_ms", "outcome"), [(1999, "replied"), (2000, "replied"), (2000.001, "lost")])
def test_an_answer_is_held_to_its_own_delay_not_to_when_it_was_heard(rtt_ms: float, outcome: str) -> None:
    flights = Flights(7, THRESHOLD)
    sent(flights, shot(), 0)
    assert flights.answered(shot(), reply(rtt_ms)) is (outcome == "replied")
    first, *rest = flights.take()
    assert isinstance(first, Probe)
    assert first.outcome == outcome
    assert [one.what for one in rest if isinstance(one, Extra)] == ([] if outcome == "replied" else ["late"])
    assert first.rtt_ns == (None if outcome == "lost" else int(rtt_ms * MS))


def test_a_second_answer_is_a_duplicate_and_settles_nothing() -> None:
    flights = Flights(7, THRESHOLD)
    sent(flights, shot(), 0)
    flights.answered(shot(), reply(10))
    assert not flights.answered(shot(), reply(11))
    assert [type(one) for one in flights.take()] == [Probe, Extra]


def test_unsent_is_no_loss_and_says_why() -> None:
    flights = Flights(7, THRESHOLD)
    flights.launch(shot())
    flights.unsent(shot(), 20, "EPERM")
    assert flights.take() == [Probe(task=7, seq=0, at=20, outcome="unsent", why="EPERM")]
    assert flights.expire(10 * SECOND) == []
    assert flights.next_expiry() is None


def test_a_stranger_touches_nothing() -> None:
    flights = Flights(7, THRESHOLD)
    sent(flights, shot(), 0)
    flights.strange(shot(), Answer(kind="echo-reply", rtt_ns=5, clock="user", by="192.0.2.9"), 77)
    assert flights.take() == [
        Extra(task=7, seq=0, at=77, what="stranger", rtt_ns=5, clock="user", by="192.0.2.9")
    ]  # fmt: skip
    assert len(flights) == 1


@pytest.mark.parametrize(
    ("ttl", "kind", "outcome"),
    [
        (0, "echo-reply", "replied"),
        (0, "syn-ack", "replied"),
        (0, "rst", "refused"),
        (0, "unreachable", "unreachable"),
        (0, "time-exceeded", "unreachable"),
        (3, "time-exceeded", "replied"),
        (3, "unreachable", "replied"),
        (3, "rst", "refused"),
    ],
)
def test_what_an_answer_makes_of_a_probe(ttl: int, kind: ReplyKind, outcome: str) -> None:
    flights = Flights(7, THRESHOLD)
    sent(flights, shot(ttl=ttl), 0)
    flights.answered(shot(ttl=ttl), reply(kind=kind))
    (probe,) = flights.take()
    assert isinstance(probe, Probe)
    assert probe.outcome == outcome


def test_probes_are_told_apart_by_sequence_ttl_and_flow() -> None:
    flights = Flights(7, THRESHOLD)
    three = [shot(1, ttl=2), shot(1, ttl=3), shot(1, ttl=2, flow=1)]
    assert len({key(one) for one in three}) == 3
    for at, one in enumerate(three):
        sent(flights, one, at)
    flights.answered(three[1], reply())
    assert flights.expire(THRESHOLD + 1) == [three[0]]
    assert flights.next_expiry() == THRESHOLD + 2
    assert len(flights) == 1


def test_what_was_settled_long_ago_is_forgotten() -> None:
    flights = Flights(7, THRESHOLD)
    for seq in range(REMEMBERED + 1):
        sent(flights, shot(seq), seq)
    flights.expire(10**15)
    flights.take()
    flights.answered(shot(1), reply(5000))
    flights.answered(shot(0), reply(5000))
    assert [one.what for one in flights.take() if isinstance(one, Extra)] == ["late", "duplicate"]
