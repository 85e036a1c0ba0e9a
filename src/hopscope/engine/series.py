"""A series of probes to one address: when to send which, on which flow. Rules 2.1, 2.8 and 2.10 of the method.

This file does no I/O and never asks what time it is; it is told.
"""

from hopscope.engine.flights import Flights
from hopscope.model.flight import Answer, Shot
from hopscope.model.plan import PingTask
from hopscope.model.record import Record

WARMUP_SEQ = -1


class Series:
    """Sends `task.count` probes, one an interval from `start` (anchored ns), after one extra warm-up packet."""

    def __init__(self, task_id: int, task: PingTask, start: int) -> None:
        self._task = task
        self._flights = Flights(task_id, task.threshold_ns)
        self._next = WARMUP_SEQ if task.warmup else 0
        self._slot = start
        self._stopped = False

    def wake_at(self) -> int | None:
        """The next slot or the next loss, whichever comes first; `None` when all is sent and settled."""
        expiry = self._flights.next_expiry()
        if not self._more():
            return expiry
        return self._slot if expiry is None else min(self._slot, expiry)

    def step(self, now: int) -> list[Shot]:
        """Settle what is overdue; the probe whose slot has come, if any."""
        self._flights.expire(now)
        if not self._more() or now < self._slot:
            return []
        warmup = self._next == WARMUP_SEQ
        seq = self._task.first_seq + self._next if not warmup else WARMUP_SEQ
        flow = 0 if warmup else seq % self._task.flows
        shot = Shot(seq=seq, flow=flow, ttl=0, slot=self._slot, warmup=warmup)
        self._next += 1
        self._slot += self._task.interval_ns
        # Held up for more than an interval, we go on from here: a burst would measure itself.
        self._slot = max(self._slot, now)
        self._flights.launch(shot)
        return [shot]

    def _more(self) -> bool:
        return not self._stopped and self._next < self._task.count

    def stop(self) -> None:
        """Send no more; what is in the air may still be answered."""
        self._stopped = True

    def sent(self, shot: Shot, at: int) -> None:
        """The probe left at `at`."""
        self._flights.sent(shot, at)

    def unsent(self, shot: Shot, at: int, why: str) -> None:
        """The probe could not leave: outside the count, never loss."""
        self._flights.unsent(shot, at, why)

    def answered(self, shot: Shot, answer: Answer, now: int) -> None:
        """A reply to the probe was seen."""
        self._flights.answered(shot, answer)

    def strange(self, shot: Shot, answer: Answer, now: int) -> None:
        """A reply from another address."""
        self._flights.strange(shot, answer, now)

    def take(self) -> list[Record]:
        """Records made since the last call."""
        return self._flights.take()
