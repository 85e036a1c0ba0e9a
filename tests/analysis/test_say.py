"""Numbers as words, to the letter: three digits, units, and no zero where something was lost (method 2.3)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.analysis.instants import iso, iso_or_none, milliseconds
from hopscope.analysis.say import count, digits, hop, ms, ns, rate, ratio, share
from hopscope.model.limits import SECOND


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "unknown"),
        (math.nan, "unknown"),
        (math.inf, "unknown"),
        (0.0, "0 ms"),
        (0.0004, "under 0.001 ms"),
        (0.0005, "0.001 ms"),
        (0.0006, "0.001 ms"),
        (0.045, "0.045 ms"),
        (0.5, "0.5 ms"),
        (0.9996, "1.00 ms"),
        (1.0, "1.00 ms"),
        (8.314, "8.31 ms"),
        (9.996, "10.0 ms"),
        (12.345, "12.3 ms"),
        (99.96, "100 ms"),
        (123.4, "123 ms"),
        (999.4, "999 ms"),
        (999.6, "1.00 s"),
        (1000.0, "1.00 s"),
        (1523.0, "1.52 s"),
        (15_234.0, "15.2 s"),
        (300_000.0, "300 s"),
        (-8.314, "−8.31 ms"),
    ],
)
def test_durations(value: float | None, words: str) -> None:
    assert ms(value) == words


@pytest.mark.parametrize(
    ("value", "words"), [(None, "unknown"), (45_000, "0.045 ms"), (8_314_000, "8.31 ms"), (1_523_000_000, "1.52 s")]
)
def test_nanoseconds(value: int | None, words: str) -> None:
    assert ns(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "unknown"),
        (math.nan, "unknown"),
        (0, "0 %"),
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.5, "50 %"),
        (0.12, "12 %"),
        (0.123, "12.3 %"),
        (0.01, "1 %"),
        (0.0125, "1.2 %"),
        (0.0002, "0.02 %"),
        (0.00021, "0.021 %"),
        (0.9998, "99.98 %"),
        (0.99999, "99.999 %"),
        (1e-10, "under 0.0000001 %"),
        (1 - 1e-10, "over 99.9999999 %"),
    ],
)
def test_ratios(value: float | None, words: str) -> None:
    assert ratio(value) == words


@pytest.mark.parametrize(
    ("lost", "sent", "words"),
    [
        (0, 0, "unknown (nothing sent)"),
        (0, 50, "0 % (0 of 50)"),
        (1, 50, "2 % (1 of 50)"),
        (50, 50, "100 % (50 of 50)"),
        (1, 70_000, "0.0014 % (1 of 70000)"),
    ],
)
def test_shares(lost: int, sent: int, words: str) -> None:
    assert share(lost, sent) == words


@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_no_share_says_none_or_all_unless_it_is(lost: int, kept: int) -> None:
    words = ratio(lost / (lost + kept))
    assert words != "0 %"
    assert (words == "100 %") == (kept == 0)


@pytest.mark.parametrize(
    ("interval_ns", "words"),
    [(None, "unknown"), (SECOND, "1/s"), (SECOND // 2, "2/s"), (2 * SECOND, "0.5/s"), (3 * SECOND, "0.333/s")],
)
def test_rates(interval_ns: int | None, words: str) -> None:
    assert rate(interval_ns) == words


@pytest.mark.parametrize(
    ("ttl", "address", "words"),
    [(0, None, "this host"), (3, "192.0.2.1", "hop 3 (192.0.2.1)"), (3, None, "hop 3")],
)
def test_hops(ttl: int, address: str | None, words: str) -> None:
    assert hop(ttl, address) == words


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 probes"), (1, "1 probe"), (2, "2 probes")]
)  # fmt: skip
def test_counts(number: int, words: str) -> None:
    assert count(number, "probe") == words
    assert count(2, "series", "series") == "2 series"


@pytest.mark.parametrize(
    ("value", "words"), [(0.5, "0.500"), (0.0, "0"), (12.0, "12.0"), (0.045, "0.045"), (0.0001, "under 0.001")]
)
def test_columns_keep_their_zeros(value: float, words: str) -> None:
    assert digits(value, padded=True) == words


def test_instants() -> None:
    assert iso(1_796_000_000_123_456_789) == "2026-11-30T00:53:20.123456Z"
    assert iso(0) == "1970-01-01T00:00:00.000000Z"
    assert iso_or_none(None) is None
    assert iso_or_none(1_000) == "1970-01-01T00:00:00.000001Z"
    assert (milliseconds(None), milliseconds(1_500_000)) == (None, 1.5)
