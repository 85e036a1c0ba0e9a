"""A path: which TTLs to ask in which round. Rules 3.1, 3.2, 3.4 and 4.3 of the method.

This file does no I/O and never asks what time it is; it is told. The warm-up round sends TTLs upwards, 10 ms apart,
until the target has answered or the maximum is reached; then every round asks 1…distance together and one TTL beyond.
A round's end settles no probe. A task that confirms asks one TTL only, and has no warm-up.
"""

from hopscope.engine.flights import Flights
from hopscope.model.flight import Answer, Shot
from hopscope.model.limits import MS
from hopscope.model.plan import TraceTask
from hopscope.model.record import Record

WARMUP_ROUND = -1
WARMUP_SPACING_NS = 10 * MS
GAP_LIMIT = 5
"""Silent TTLs asked beyond the last that answered, while the target has not."""


def ends_path(answer: Answer) -> bool:
    """Whether nothing can lie beyond the TTL that drew this answer on this flow: arrival, or an unreachable."""
    return answer.kind != "time-exceeded"


class Trace:
    """Rounds over the TTLs of one flow, one an interval from `start` (anchored ns)."""

    def __init__(self, task_id: int, task: TraceTask, start: int) -> None:
        self._task = task
        self._flights = Flights(task_id, task.threshold_ns)
        warm = task.confirm is None and task.distance is None
        self._round = WARMUP_ROUND if warm else 0
        self._distance = task.distance
        self._furthest = 0
        self._slot = start
        self._ttl = task.first_ttl
        self._stopped = False

    def wake_at(self) -> int | None:
        """The next probe or the next loss, whichever comes first; `None` when all is sent and settled."""
        expiry = self._flights.next_expiry()
        if not self._more():
            return expiry
        return self._slot if expiry is None else min(self._slot, expiry)

    def _more(self) -> bool:
        return not self._stopped and self._round < self._task.rounds

    def step(self, now: int) -> list[Shot]:
        """Settle what is overdue; the probes of the slot that has come, if any."""
        self._flights.expire(now)
        if not self._more() or now < self._slot:
            return []
        shots = self._warm_up() if self._round == WARMUP_ROUND else self._whole_round()
        if self._slot < now - self._task.interval_ns:
            self._slot = now
        for shot in shots:
            self._flights.launch(shot)
        return shots

    def _warm_up(self) -> list[Shot]:
        """One TTL of the warm-up; the last one hands over to the first round, a whole interval after the start."""
        if self._distance is not None and self._ttl > self._distance:
            self._round = 0
            self._slot += max(0, self._task.interval_ns - (self._ttl - self._task.first_ttl) * WARMUP_SPACING_NS)
            return []
        shot = self._shot(self._ttl)
        self._slot += WARMUP_SPACING_NS
        self._ttl += 1
        if self._ttl > self._task.max_ttl:
            sent = self._ttl - self._task.first_ttl
            self._round = 0
            self._slot += max(0, self._task.interval_ns - sent * WARMUP_SPACING_NS)
        return [shot]

    def _whole_round(self) -> list[Shot]:
        """All TTLs of a round at once."""
        shots = [self._shot(ttl) for ttl in self._ttls()]
        self._round += 1
        self._slot += self._task.interval_ns
        return shots

    def _ttls(self) -> range:
        """TTLs to ask: up to one beyond the distance, or a gap beyond the last that answered while it is unknown."""
        task = self._task
        if task.confirm is not None:
            return range(task.confirm, task.confirm + 1)
        last = self._furthest + GAP_LIMIT if self._distance is None else self._distance + 1
        return range(task.first_ttl, max(min(last, task.max_ttl), task.first_ttl) + 1)

    def _shot(self, ttl: int) -> Shot:
        warmup = self._round == WARMUP_ROUND
        number = WARMUP_ROUND if warmup else self._task.first_round + self._round
        return Shot(seq=number, flow=self._task.flow, ttl=ttl, slot=self._slot, warmup=warmup)

    def stop(self) -> None:
        """Send no more; what is in the air may still be answered."""
        self._stopped = True

    def sent(self, shot: Shot, at: int) -> None:
        """The probe left at `at`."""
        self._flights.sent(shot, at)

    def unsent(self, shot: Shot, at: int, why: str) -> None:
        """The probe could not leave."""
        self._flights.unsent(shot, at, why)

    def answered(self, shot: Shot, answer: Answer, now: int) -> None:
        """Take a reply, and learn from it how far the target is."""
        self._flights.answered(shot, answer)
        self._furthest = max(self._furthest, shot.ttl)
        if ends_path(answer):
            self._distance = shot.ttl if self._distance is None else min(self._distance, shot.ttl)
        elif self._distance is not None and shot.ttl >= self._distance:
            # A router answers where the target did: the path grew (method 3.7), look for the end again.
            self._distance = None
            self._furthest = self._task.max_ttl - GAP_LIMIT

    def strange(self, shot: Shot, answer: Answer, now: int) -> None:
        """A reply that names our probe, from an address that cannot have had it."""
        self._flights.strange(shot, answer, now)

    def take(self) -> list[Record]:
        """Records made since the last call."""
        return self._flights.take()
