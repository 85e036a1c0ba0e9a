"""Delay and its variation as tables: nanoseconds in, exact milliseconds out (method 2.5, 2.7)."""

import statistics
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.notation import fates, times
from hopscope.analysis.delay import carried, delay, deviation, ends, ipdv_mean, quantile
from hopscope.analysis.results import delay_of
from hopscope.model.limits import MS
from hopscope.model.report import Delay

RTTS = st.lists(st.integers(1, 5_000_000_000), min_size=1, max_size=400)


@pytest.mark.parametrize(
    ("values", "q", "expected"),
    [
        ([7.0], 0.5, 7.0),
        ([7.0], 0.99, 7.0),
        ([1.0, 2.0], 0.5, 1.5),
        ([1.0, 2.0, 3.0, 4.0], 0.5, 2.5),
        ([1.0, 2.0, 3.0, 4.0], 0.25, 1.75),
        ([10.0, 20.0, 30.0, 40.0, 50.0], 0.9, 46.0),
        ([10.0, 20.0, 30.0, 40.0, 50.0], 0.0, 10.0),
        ([10.0, 20.0, 30.0, 40.0, 50.0], 1.0, 50.0),
    ],
)
def test_quantile(values: list[float], q: float, expected: float) -> None:
    assert quantile(values, q) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("n", "q", "value", "interval"),
    [
        (5, 0.50, None, (None, None)),
        (6, 0.50, 2.5, (0.0, 5.0)),
        (71, 0.95, None, (None, None)),
        (72, 0.95, 67.45, (63.0, 71.0)),
        (367, 0.99, None, (None, None)),
        (368, 0.99, 363.33, (359.0, 367.0)),
    ],
)
def test_a_quantile_stands_where_n_carries_it(
    n: int, q: float, value: float | None, interval: tuple[float | None, float | None]
) -> None:
    ordered = [float(i) for i in range(n)]
    assert carried(ordered, q) == (None if value is None else pytest.approx(value))
    assert ends(ordered, q) == interval


@pytest.mark.parametrize(
    ("seqs", "rtts", "expected"),
    [
        ([], [], None),
        ([0], [10], None),
        ([0, 1], [10, 13], 3.0),
        ([0, 1], [13, 10], 3.0),
        ([0, 2], [10, 13], None),  # the gap is not bridged
        ([0, 1, 3, 4], [10, 13, 20, 21], 2.0),
        ([0, 1, 2], [333, 123, 123], 105.0),  # facts C32
        ([0, 1, 2, 3, 4], [20, 21, 20, 21, 20], 1.0),  # facts C34
    ],
)
def test_ipdv(seqs: list[int], rtts: list[int], expected: float | None) -> None:
    assert ipdv_mean(seqs, [rtt * MS for rtt in rtts]) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], None), ([5.0], None), ([10.0, 20.0], 7.0710678), ([1.0, 1.0, 1.0], 0.0), ([1.0, 2.0, 3.0, 4.0], 1.2909944)],
)
def test_deviation_divides_by_n_less_one(values: list[float], expected: float | None) -> None:
    assert deviation(values) == (None if expected is None else pytest.approx(expected))


def test_nothing_answered_is_nothing_known() -> None:
    assert delay([]) == Delay(n=0)
    assert delay([], []) == Delay(n=0)


def test_one_answer_has_no_spread() -> None:
    got = delay([3 * MS], [0])
    assert (got.n, got.min_ms, got.p50_ms, got.mean_ms, got.max_ms) == (1, 3.0, 3.0, 3.0, 3.0)
    assert (got.stdev_ms, got.p95_ms, got.p99_ms, got.p50_low_ms, got.pdv_p95_ms, got.ipdv_mean_ms) == (None,) * 6


def test_the_whole_table() -> None:
    got = delay([(100 - i) * MS for i in range(100)], list(range(100)))
    assert (got.n, got.min_ms, got.max_ms, got.mean_ms, got.p50_ms) == (100, 1.0, 100.0, 50.5, 50.5)
    assert (got.p50_low_ms, got.p50_high_ms) == (40.0, 61.0)
    assert got.p95_ms == pytest.approx(95.05)
    assert (got.p95_low_ms, got.p95_high_ms) == (90.0, 100.0)
    assert got.p99_ms is None
    assert got.stdev_ms == pytest.approx(29.0114919)
    assert got.pdv_p95_ms == pytest.approx(94.05)  # RFC 5481: against the minimum
    assert got.ipdv_mean_ms == 1.0


def test_variation_is_only_told_where_the_order_is_known() -> None:
    got = delay([MS] * 100)
    assert (got.pdv_p95_ms, got.ipdv_mean_ms, got.p95_ms) == (None, None, 1.0)


@pytest.mark.parametrize(
    ("text", "n", "mean", "ipdv"),
    [
        ("10 . 12 ! 15", 3, 37 / 3, None),
        ("10 12 . 15 16", 4, 13.25, 1.5),
        ("10 r14 ~ u x", 2, 12.0, 4.0),
        (". . .", 0, None, None),
        ("! !", 0, None, None),
    ],
)
def test_delays_of_probes(text: str, n: int, mean: float | None, ipdv: float | None) -> None:
    got = delay_of(fates(text))
    assert got.n == n
    assert got.mean_ms == (None if mean is None else pytest.approx(mean))
    assert got.ipdv_mean_ms == ipdv


def test_delays_are_put_in_order_of_sequence_before_neighbours_are_compared() -> None:
    fated = fates("10 12 15")
    assert delay_of([fated[2], fated[0], fated[1]]).ipdv_mean_ms == 2.5
    assert delay_of(fated, variation=False).ipdv_mean_ms is None


@given(RTTS)
def test_n_samples_give_at_most_n_less_one_differences(rtts: list[int]) -> None:
    steps = [abs(b - a) for a, b in pairwise(rtts)]
    got = ipdv_mean(range(len(rtts)), rtts)
    assert got == (pytest.approx(sum(steps) / len(steps) / MS) if steps else None)


@given(RTTS)
def test_statistics_are_those_of_the_library(rtts: list[int]) -> None:
    got = delay(rtts, list(range(len(rtts))))
    values = [rtt / MS for rtt in rtts]
    assert got.mean_ms == pytest.approx(statistics.fmean(values))
    assert got.p50_ms == pytest.approx(statistics.median(values))
    assert got.stdev_ms == (pytest.approx(statistics.stdev(values), abs=1e-9) if len(values) > 1 else None)
    assert got.p50_ms is not None
    assert min(values) <= got.p50_ms <= max(values)


@given(RTTS, st.integers(2, 50))
def test_scaling_every_delay_scales_everything(rtts: list[int], factor: int) -> None:
    seqs = list(range(len(rtts)))
    once, scaled = delay(rtts, seqs), delay([rtt * factor for rtt in rtts], seqs)
    for name in Delay.__struct_fields__:
        before, after = getattr(once, name), getattr(scaled, name)
        if name == "n" or before is None:
            assert after == before, name
        else:
            assert after == pytest.approx(before * factor, rel=1e-9, abs=1e-6), name


def test_a_day_of_seconds_has_the_mean_of_the_batch() -> None:
    rtts = [20_000_000 + (i * 7919) % 5_000_000 for i in range(86_400)]  # facts C35
    assert delay(rtts).mean_ms == pytest.approx(sum(rtts) / len(rtts) / MS, rel=1e-12)


def test_a_clean_series_of_72_carries_its_95th_percentile() -> None:
    assert delay_of(fates(times(71, "5"))).p95_ms is None
    assert delay_of(fates(times(72, "5"))).p95_ms == 5.0
