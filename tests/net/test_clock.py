"""Anchored time never steps; a step of the wall clock is told from its slewing."""

import time
from itertools import pairwise

import pytest

from hopscope.net.clock import STEP_LIMIT_NS, StepWatch, SystemClock

NOON = 1_800_000_000_000_000_000


@pytest.mark.parametrize(
    ("readings", "epochs"),
    [
        ([], []),
        ([0, 0, 0], [0, 0, 0]),
        ([STEP_LIMIT_NS], [0]),
        ([STEP_LIMIT_NS + 1], [1]),
        ([-STEP_LIMIT_NS - 1], [1]),
        ([5_000_000_000, 5_000_000_000], [1, 1]),
        ([-5_000_000_000, 0], [1, 2]),
        ([900_000 * step for step in range(1, 6)], [0, 0, 0, 0, 0]),  # slewing: far in sum, small each time
        ([2_000_000, 2_900_000, 5_000_000], [1, 1, 2]),
    ],
)
def test_a_step_is_what_moves_the_offset_by_more_than_a_millisecond(readings: list[int], epochs: list[int]) -> None:
    watch = StepWatch(NOON)
    assert [watch.see(NOON + reading) for reading in readings] == epochs
    assert watch.epoch == (epochs[-1] if epochs else 0)
    assert watch.last == NOON + (readings[-1] if readings else 0)


def test_anchored_time_is_wall_time_and_advances_with_the_monotonic_clock() -> None:
    clock = SystemClock()
    pairs = [(time.monotonic_ns(), clock.now()) for _ in range(1000)]
    assert all(earlier[1] <= later[1] for earlier, later in pairwise(pairs))
    assert {now - monotonic >= clock.anchor for monotonic, now in pairs} == {True}
    assert abs(clock.now() - time.time_ns()) < 1_000_000_000


def test_a_kernel_stamp_stands_between_the_readings_around_it() -> None:
    clock = SystemClock()
    before = clock.now()
    stamp = time.time_ns()
    after = clock.now()
    slack = STEP_LIMIT_NS  # what slewing and a preempted reading may add
    assert before - slack <= clock.from_realtime(stamp) <= after + slack
