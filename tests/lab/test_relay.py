"""What one direction of an emulated link does to frames: exact numbers in, exact numbers out."""

import pytest

from hopscope.lab.relay import Way
from hopscope.lab.topology import Impairment

MS = 1_000_000
SIZE = 1250  # 10 kbit


def dues(impairment: Impairment, arrivals_ns: list[int], *, seed: str = "s", size: int = SIZE) -> list[int | None]:
    way = Way(impairment, seed)
    return [way.due(arrived, size) for arrived in arrivals_ns]


def test_delay_counts_from_arrival() -> None:
    assert dues(Impairment(delay_ms=2.5), [0, 10 * MS]) == [2_500_000, 12_500_000]


def test_a_frame_waits_for_those_before_it_at_the_rate() -> None:
    assert dues(Impairment(rate_mbit=10), [0, 0, 0, 5 * MS]) == [1 * MS, 2 * MS, 3 * MS, 6 * MS]


def test_the_rate_comes_before_the_delay() -> None:
    assert dues(Impairment(rate_mbit=10, delay_ms=7), [0, 0]) == [8 * MS, 9 * MS]


def test_a_full_queue_drops() -> None:
    way = Way(Impairment(rate_mbit=10, queue_ms=2), "s")
    assert [way.due(0, SIZE) for _ in range(5)] == [1 * MS, 2 * MS, 3 * MS, None, None]
    assert (way.frames, way.lost, way.overflowed) == (5, 0, 2)


def test_jitter_stays_within_its_bounds_and_keeps_order() -> None:
    arrivals = [index * MS // 10 for index in range(2000)]
    found = [due for due in dues(Impairment(delay_ms=1, jitter_ms=4), arrivals) if due is not None]
    assert found == sorted(found)
    extra = [due - arrived - MS for due, arrived in zip(found, arrivals, strict=True)]
    assert min(extra) >= 0
    assert max(extra) < 4 * MS


def test_reordering_is_there_when_asked_for() -> None:
    arrivals = [index * MS // 10 for index in range(2000)]
    found = [due for due in dues(Impairment(jitter_ms=4, reorder=True), arrivals) if due is not None]
    assert found != sorted(found)
    extra = [due - arrived for due, arrived in zip(found, arrivals, strict=True)]
    assert sum(extra) / len(extra) == pytest.approx(2 * MS, rel=0.1)


def test_loss_is_near_the_ratio_and_counted() -> None:
    way = Way(Impairment(loss=0.12), "s")
    lost = sum(way.due(0, SIZE) is None for _ in range(10_000))
    assert lost == way.lost
    assert 1000 < lost < 1400  # 1200 ± 6 standard deviations of 32


def test_one_seed_loses_the_same_frames_whatever_else_the_link_does() -> None:
    plain = [due is None for due in dues(Impairment(loss=0.3), [0] * 500)]
    slow = [due is None for due in dues(Impairment(loss=0.3, delay_ms=9, jitter_ms=3), [0] * 500)]
    other = [due is None for due in dues(Impairment(loss=0.3), [0] * 500, seed="t")]
    assert plain == slow
    assert plain != other


def test_a_change_counts_from_the_next_frame() -> None:
    way = Way(Impairment(), "s")
    assert way.due(5, SIZE) == 5
    way.impair(Impairment(loss=1.0))
    assert way.due(6, SIZE) is None
    way.impair(Impairment(delay_ms=1))
    assert way.due(7, SIZE) == 7 + MS
