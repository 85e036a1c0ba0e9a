"""The one clock of a vantage: wall time read once, then monotonic (method 1.1, 1.3, 1.5).

Kernel stamps are CLOCK_REALTIME, which may be stepped; `offset` is what tells, and `from_realtime` undoes it.
"""

from time import CLOCK_MONOTONIC, CLOCK_REALTIME, clock_gettime_ns, monotonic_ns

READINGS = 5
STEP_LIMIT_NS = 1_000_000
"""A change of the offset above this is a clock step (method 1.3); slewing stays below."""


class SystemClock:
    """Anchored time from the system's clocks."""

    def __init__(self) -> None:
        self.anchor = self.offset()

    def now(self) -> int:
        """Nanoseconds of UTC, never stepping: the anchor plus monotonic time."""
        return monotonic_ns() + self.anchor

    def offset(self) -> int:
        """CLOCK_REALTIME − CLOCK_MONOTONIC in ns: MONO-REAL-MONO, the tightest of five readings."""
        best = 0
        tightest: int | None = None
        for _ in range(READINGS):
            before = clock_gettime_ns(CLOCK_MONOTONIC)
            real = clock_gettime_ns(CLOCK_REALTIME)
            after = clock_gettime_ns(CLOCK_MONOTONIC)
            if tightest is None or after - before < tightest:
                tightest = after - before
                best = real - (before + after) // 2
        return best

    def from_realtime(self, stamp: int) -> int:
        """A CLOCK_REALTIME stamp in ns, on the anchored timeline."""
        return stamp - self.offset() + self.anchor


class StepWatch:
    """Counts clock steps: `epoch` rises by one with each; `last` is the offset of the last reading, in ns."""

    def __init__(self, first_offset: int) -> None:
        self.last = first_offset
        self.epoch = 0

    def see(self, offset: int) -> int:
        """Take a reading of the offset; returns the epoch it belongs to."""
        step = offset - self.last
        self.last = offset
        if abs(step) > STEP_LIMIT_NS:
            self.epoch += 1
        return self.epoch
