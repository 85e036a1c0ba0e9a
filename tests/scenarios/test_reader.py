"""Ours against the naive reader of a path, who flags each hop that loses more than the one before (method 4.2)."""

from functools import cache
from pathlib import Path

import pytest

from hopscope.analysis.judge import report
from hopscope.model.report import Report, TraceResult
from virtual.running import Running
from virtual.scenario import read

SEEDS = 100
LIMITER, BEHIND_LOSS = 3, 4


@cache
def reports(name: str, seeds: int) -> tuple[Report, ...]:
    scenario = read(Path(__file__).parent / f"{name}.toml")
    return tuple(report(Running(scenario, seed).whole(), tool_version="0") for seed in range(1000, 1000 + seeds))


def flagged(got: Report) -> set[int]:
    """TTLs that the naive reader blames."""
    path = next(result for result in got.results if isinstance(result, TraceResult))
    ratios = [hop.loss.ratio or 0.0 for hop in path.hops]
    return {ttl for ttl, (before, own) in enumerate(zip([0.0, *ratios], ratios, strict=False), start=1) if own > before}


def ours(got: Report) -> set[tuple[int, int]]:
    """Segments that our verdict blames."""
    lossy = (one.segment for one in got.verdict.findings if one.kind == "lossy-from")
    return {(segment.from_.ttl, segment.to.ttl) for segment in lossy if segment is not None}


def is_right(got: Report) -> bool:
    """One segment, which holds the lossy link, and at most one more."""
    return len(ours(got)) == 1 and all(near <= LIMITER < BEHIND_LOSS <= far <= near + 2 for near, far in ours(got))


@pytest.mark.parametrize("name", ["limiter_before_real_loss_100_rounds", "limiter_before_real_loss_by_default"])
def test_the_limiter_takes_in_the_naive_reader_and_not_us(name: str) -> None:
    got = reports(name, SEEDS)
    right = sum(is_right(one) for one in got)
    fooled = sum(LIMITER in flagged(one) for one in got)
    assert right >= 0.97 * SEEDS
    assert sum(ours(one) == {(LIMITER, BEHIND_LOSS)} for one in got) >= 0.85 * SEEDS
    assert fooled >= 0.88 * SEEDS


def test_over_100_rounds_ours_is_right_as_often_as_the_method_says() -> None:
    got = reports("limiter_before_real_loss_100_rounds", SEEDS)
    assert sum(is_right(one) for one in got) >= 0.95 * SEEDS


@pytest.mark.parametrize("name", ["clean", "limiter_and_a_clean_end", "one_answer_in_three", "long_clean_path"])
def test_nobody_is_blamed_where_nothing_is_lost(name: str) -> None:
    got = reports(name, 20)
    assert [ours(one) for one in got] == [set()] * 20
    assert {one.verdict.status for one in got} == {"ok"}
