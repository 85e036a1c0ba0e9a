"""Durations and ratios as people write them: exact, or refused with the place and the right form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.errors import UsageError
from hopscope.targets import duration, ratio
from hopscope.targets.quantities import LONGEST_NS, worded

HOW = 'write a number and a unit, such as "500us", "200ms", "5s", "1m" or "1h"; a bare number is seconds'


@pytest.mark.parametrize(
    ("text", "expected_ns"),
    [
        ("1ns", 1),
        ("500us", 500_000),
        ("500µs", 500_000),
        ("500μs", 500_000),
        ("200ms", 200_000_000),
        ("0.1ms", 100_000),
        (".5s", 500_000_000),
        ("5s", 5_000_000_000),
        ("5", 5_000_000_000),
        ("0.2", 200_000_000),
        ("1.1", 1_100_000_000),
        ("+5 s", 5_000_000_000),
        (" 1m ", 60_000_000_000),
        ("1.5h", 5_400_000_000_000),
        ("366d", LONGEST_NS),
    ],
)
def test_a_duration_is_exact(text: str, expected_ns: int) -> None:
    assert duration(text) == expected_ns


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", '"" is not a duration'),
        ("ms", '"ms" is not a duration'),
        ("fast\x07", '"fast\\x07" is not a duration'),
        ("1e3", '"1e3" is not a duration'),
        ("1,5s", '"1,5s" is not a duration'),
        ("1h30m", '"1h30m" is not a duration'),
        ("5 parsecs", '"5 parsecs" is not a duration: "parsecs" is not a unit'),
        ("200 msec", '"200 msec" is not a duration: "msec" is not a unit; did you mean "200ms"?'),
        ("2min", '"2min" is not a duration: "min" is not a unit; did you mean "2m"?'),
        ("5S", '"5S" is not a duration: "S" is not a unit; did you mean "5s"?'),
        ("0ms", '"0ms" is not a duration: it must be more than zero'),
        ("-5ms", '"-5ms" is not a duration: it must be more than zero'),
        ("0.1ns", '"0.1ns" is not a duration: it is less than a nanosecond'),
        ("367d", '"367d" is not a duration: it is longer than a year'),
        ("9" * 30, f'"{"9" * 30}" is not a duration'),
    ],
)
def test_a_duration_is_refused_with_the_right_form(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        duration(text)
    assert (str(caught.value), caught.value.advice) == (says, HOW)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1%", 0.01), ("0.01", 0.01), ("0", 0.0), ("100 %", 1.0), ("1", 1.0), ("0.1%", 0.001), (" 33.3% ", 0.333)],
)
def test_a_ratio_is_exact(text: str, expected: float) -> None:
    assert ratio(text) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", '"" is not a ratio'),
        ("some", '"some" is not a ratio'),
        ("nan", '"nan" is not a ratio'),
        ("5", '"5" is not a ratio: it is not between 0 and 1 (100 %); did you mean "5%"?'),
        ("101%", '"101%" is not a ratio: it is not between 0 and 1 (100 %)'),
        ("-1%", '"-1%" is not a ratio: it is not between 0 and 1 (100 %)'),
    ],
)
def test_a_ratio_is_refused_with_the_right_form(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        ratio(text)
    assert (str(caught.value), caught.value.advice) == (says, 'write a share such as "1%" or 0.01')


@given(st.integers(1, LONGEST_NS))
def test_a_duration_in_words_is_read_as_itself(duration_ns: int) -> None:
    assert duration(worded(duration_ns)) == duration_ns


def settled(text: str) -> bool:
    """Whether the text is within its limits as a duration and as a ratio, or refused in printable words."""
    for read, low, high in ((duration, 1, LONGEST_NS), (ratio, 0, 1)):
        try:
            if not low <= read(text) <= high:
                return False
        except UsageError as error:
            if not str(error).isprintable():
                return False
    return True


@given(st.text() | st.from_regex(r"[-+]?[0-9.]*[a-zµ%]*"))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    assert settled(text)
