"""Exact tests against fractions computed the slow way, and against published numbers."""

from fractions import Fraction
from math import comb, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.analysis.binomial import (
    at_least,
    at_most,
    fisher_greater,
    fisher_two_sided,
    log_choose,
    log_likelihood,
    order_ranks,
    wilson,
)

COUNTS = st.integers(0, 60).flatmap(lambda sent: st.tuples(st.integers(0, sent), st.just(sent)))


def slow_fisher(lost_a: int, sent_a: int, lost_b: int, sent_b: int) -> Fraction:
    lost, sent = lost_a + lost_b, sent_a + sent_b
    ways = sum(comb(sent_a, k) * comb(sent_b, lost - k) for k in range(lost_a, min(lost, sent_a) + 1))
    return Fraction(ways, comb(sent, lost))


def slow_at_least(k: int, n: int, p: Fraction) -> Fraction:
    return sum((comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(max(k, 0), n + 1)), Fraction(0))


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ((3, 4, 1, 4), 17 / 70),  # Fisher's lady tasting tea
        ((4, 4, 0, 4), 1 / 70),
        ((0, 4, 4, 4), 1.0),
        ((5, 0, 1, 10), 1.0),
        ((1, 10, 0, 0), 1.0),
        ((12, 100, 0, 100), 1.7198e-4),
        ((9, 50, 0, 50), 1.3171e-3),
        ((10, 12, 3, 13), 3.8123e-3),
    ],
)
def test_fisher(table: tuple[int, int, int, int], expected: float) -> None:
    assert fisher_greater(*table) == pytest.approx(expected, rel=1e-3)


@given(COUNTS, COUNTS)
def test_fisher_is_exact(a: tuple[int, int], b: tuple[int, int]) -> None:
    expected = float(slow_fisher(*a, *b)) if a[1] and b[1] else 1.0
    assert fisher_greater(*a, *b) == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_fisher_keeps_its_digits_over_a_million_probes() -> None:
    assert fisher_greater(120_000, 1_000_000, 119_000, 1_000_000) == pytest.approx(0.01466, rel=0.01)
    assert fisher_greater(500, 1_000_000, 500, 1_000_000) == pytest.approx(0.5, abs=0.02)
    assert fisher_greater(1000, 1_000_000, 0, 1_000_000) < 1e-290


@pytest.mark.parametrize(
    ("k", "n", "p", "expected"),
    [
        (0, 10, 0.5, 1.0),
        (-3, 10, 0.5, 1.0),
        (11, 10, 0.5, 0.0),
        (10, 10, 0.5, 1 / 1024),
        (1, 10, 0.0, 0.0),
        (10, 10, 1.0, 1.0),
        (5, 10, 0.5, 638 / 1024),
        (3, 100, 0.01, 0.0793732),
        (12, 100, 0.01, 4.654e-10),
    ],
)
def test_at_least(k: int, n: int, p: float, expected: float) -> None:
    assert at_least(k, n, p) == pytest.approx(expected, rel=2e-3)


@given(COUNTS, st.integers(1, 99))
def test_tails_are_exact_and_meet(count: tuple[int, int], percent: int) -> None:
    k, n = count
    p = Fraction(percent, 100)
    assert at_least(k, n, float(p)) == pytest.approx(float(slow_at_least(k, n, p)), rel=1e-9, abs=1e-15)
    assert at_least(k, n, float(p)) + at_most(k - 1, n, float(p)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("lost", "sent", "low", "high"),
    [
        # Newcombe 1998, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0),
        (5, 10, 0.2366, 0.7634),
    ],
)
def test_wilson(lost: int, sent: int, low: float, high: float) -> None:
    assert wilson(lost, sent) == pytest.approx((low, high), abs=5e-5)


def test_wilson_is_exactly_none_and_all_at_its_ends() -> None:
    assert wilson(0, 50)[0] == 0.0
    assert wilson(50, 50)[1] == 1.0


@pytest.mark.parametrize(("n", "k", "expected"), [(5, 2, 10), (50, 0, 1), (50, 50, 1), (52, 5, 2_598_960)])
def test_log_choose(n: int, k: int, expected: int) -> None:
    assert log_choose(n, k) == pytest.approx(log(expected), abs=1e-9)


@pytest.mark.parametrize(
    ("lost", "sent", "expected"),
    [(0, 10, 0.0), (10, 10, 0.0), (5, 10, 10 * log(0.5)), (1, 4, log(1 / 4) + 3 * log(3 / 4))],
)
def test_log_likelihood(lost: int, sent: int, expected: float) -> None:
    assert log_likelihood(lost, sent) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("n", "q", "ranks"),
    [
        # Method 2.5: where n does not carry an interval there is none.
        (5, 0.50, None),
        (6, 0.50, (0, 5)),
        (10, 0.50, (1, 8)),
        (20, 0.50, (5, 14)),
        (71, 0.95, None),
        (72, 0.95, (63, 71)),
        (100, 0.95, (89, 99)),
        (367, 0.99, None),
        (368, 0.99, (359, 367)),
        (1, 0.50, None),
    ],
)
def test_order_ranks(n: int, q: float, ranks: tuple[int, int] | None) -> None:
    assert order_ranks(n, q) == ranks


@pytest.mark.parametrize("q", [0.5, 0.95])
@pytest.mark.parametrize("n", [72, 73, 99, 150, 333, 1000])
def test_order_ranks_cover_95_percent_and_no_narrower_ends_do(n: int, q: float) -> None:
    ranks = order_ranks(n, q)
    assert ranks is not None
    low, high = ranks
    exact = Fraction(q).limit_denominator(100)

    def below(rank: int) -> float:  # P(fewer than rank + 1 samples lie below the quantile)
        return float(1 - slow_at_least(rank + 1, n, exact))

    # The quantile lies under sample `low` with P(B ≤ low − 1) … and over sample `high` with P(B ≥ high + 1).
    assert below(low - 1) <= 0.025 if low else True
    assert 1 - below(high) <= 0.025
    assert below(low) <= 0.025 < below(low + 1)
    assert 1 - below(high - 1) > 0.025


def test_order_ranks_of_many_samples_cover_no_less() -> None:
    ranks = order_ranks(100_000, 0.95)
    assert ranks is not None
    low, high = ranks
    assert at_most(low, 100_000, 0.95) <= 0.025
    assert at_least(high + 1, 100_000, 0.95) <= 0.025
    assert 94_850 < low < 94_880
    assert 95_120 < high < 95_150


@pytest.mark.parametrize(
    ("n", "ranks"),
    # 0.25 % on either side of the median: 0.5^8 is 0.39 %, 0.5^9 is 0.20 %.
    [(8, None), (9, (0, 8)), (13, (1, 11)), (50, (14, 35)), (100, (35, 64)), (1000, (455, 544)), (1001, (454, 547))],
)
def test_order_ranks_of_a_median_with_a_smaller_tail(n: int, ranks: tuple[int, int] | None) -> None:
    assert order_ranks(n, 0.5, tail=0.0025) == ranks


@pytest.mark.parametrize("n", [9, 13, 50, 99, 100, 999, 2000])
def test_what_a_smaller_tail_leaves_out(n: int) -> None:
    ranks = order_ranks(n, 0.5, tail=0.0025)
    assert ranks is not None
    low, high = ranks
    assert at_most(low, n, 0.5) <= 0.0025
    assert at_least(high + 1, n, 0.5) <= 0.0025


@pytest.mark.parametrize("tail", [0.025, 0.0025])
@pytest.mark.parametrize("q", [0.01, 0.05, 0.5, 0.75, 0.95, 0.99])
@pytest.mark.parametrize("n", [1001, 1002, 1500, 2000, 3333, 5000])
def test_the_approximation_for_many_samples_leaves_out_no_more_than_it_says(n: int, q: float, tail: float) -> None:
    ranks = order_ranks(n, q, tail=tail)
    assert ranks is not None
    low, high = ranks
    assert 0 <= low < n * q < high < n
    assert low == 0 or at_most(low, n, q) <= tail
    assert high == n - 1 or at_least(high + 1, n, q) <= tail


def test_the_ranks_of_an_approximation_stay_among_the_samples() -> None:
    # 0.99^1001 is 0.004 %, and the widened ranks would lie beyond both ends
    assert (order_ranks(1001, 0.99, tail=1e-4) or (0, 0))[1] == 1000
    assert (order_ranks(1001, 0.01, tail=1e-4) or (1, 1))[0] == 0


def slow_fisher_two_sided(lost_a: int, sent_a: int, lost_b: int, sent_b: int) -> Fraction:
    lost, sent = lost_a + lost_b, sent_a + sent_b
    ways = {k: comb(sent_a, k) * comb(sent_b, lost - k) for k in range(max(0, lost - sent_b), min(lost, sent_a) + 1)}
    return Fraction(sum(one for one in ways.values() if one <= ways[lost_a]), comb(sent, lost))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((3, 4), (1, 4), 0.4857143),  # the lady tasting tea (Fisher 1935)
        ((0, 50), (0, 50), 1.0),
        ((50, 50), (50, 50), 1.0),
        ((5, 10), (5, 10), 1.0),
        ((0, 0), (5, 10), 1.0),
        ((5, 10), (0, 0), 1.0),
        # where it is shown with p < 0.01: 8 of 50 against none, not 7
        ((7, 50), (0, 50), 0.0125),
        ((8, 50), (0, 50), 0.0058),
    ],
)
def test_fisher_two_sided(a: tuple[int, int], b: tuple[int, int], expected: float) -> None:
    assert fisher_two_sided(*a, *b) == pytest.approx(expected, abs=5e-5)


@given(COUNTS, COUNTS)
def test_fisher_two_sided_against_fractions(a: tuple[int, int], b: tuple[int, int]) -> None:
    exact = float(slow_fisher_two_sided(*a, *b)) if a[1] and b[1] else 1.0
    assert fisher_two_sided(*a, *b) == pytest.approx(exact, rel=1e-6)
    assert fisher_two_sided(*b, *a) == pytest.approx(exact, rel=1e-6)
