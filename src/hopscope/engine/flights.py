"""Probes in the air, and what becomes of each: the bookkeeping that series and traces share (method 2.1).

A probe is settled once: answered in time, or lost when the threshold has passed since it was sent. What comes later
is an `Extra`; it never revises the count. State exists before the probe is sent.
"""

from collections import deque

from hopscope.model.flight import Answer, Shot
from hopscope.model.record import Extra, Probe, ProbeOutcome, Record

Key = tuple[int, int, int]
REMEMBERED = 65536


def key(shot: Shot) -> Key:
    """What tells one probe of a task from another."""
    return shot.seq, shot.ttl, shot.flow


class Flights:
    """Open probes of one task."""

    def __init__(self, task_id: int, threshold_ns: int) -> None:
        self._task = task_id
        self._threshold = threshold_ns
        self._open: dict[Key, tuple[Shot, int]] = {}
        self._expiry: deque[tuple[int, Key]] = deque()
        self._closed: dict[Key, bool] = {}
        self._closed_order: deque[Key] = deque()
        self._records: list[Record] = []

    def __len__(self) -> int:
        """How many are in the air."""
        return len(self._open)

    def launch(self, shot: Shot) -> None:
        """The probe is about to be sent."""
        self._open[key(shot)] = (shot, shot.slot)

    def sent(self, shot: Shot, at: int) -> None:
        """The probe left at `at`; from here the threshold runs."""
        if key(shot) in self._open:
            self._open[key(shot)] = (shot, at)
            self._expiry.append((at + self._threshold, key(shot)))

    def unsent(self, shot: Shot, at: int, why: str) -> None:
        """The probe never left."""
        if self._open.pop(key(shot), None) is not None:
            self._records.append(self._probe(shot, at, None, why))

    def answered(self, shot: Shot, answer: Answer) -> bool:
        """Take a reply; returns whether it settled the probe (not late, not a second one)."""
        found = self._open.pop(key(shot), None)
        if found is None:
            late = self._closed.get(key(shot), False)
            self._close(key(shot), lost=False)
            self._records.append(self._extra(shot, answer, late=late))
            return False
        at = found[1]
        if answer.rtt_ns > self._threshold:
            self._records.append(self._lost(shot, at))
            self._records.append(self._extra(shot, answer, late=True))
        else:
            self._records.append(self._probe(shot, at, answer, None))
        self._close(key(shot), lost=False)
        return answer.rtt_ns <= self._threshold

    def strange(self, shot: Shot, answer: Answer, now: int) -> None:
        """A reply from somebody who was not asked."""
        self._records.append(
            Extra(
                task=self._task, seq=shot.seq, at=now, what="stranger", ttl=shot.ttl, flow=shot.flow,
                rtt_ns=answer.rtt_ns, clock=answer.clock, by=answer.by,
            )
        )  # fmt: skip

    def expire(self, now: int) -> list[Shot]:
        """Settle as lost what is past its threshold; returns those."""
        gone: list[Shot] = []
        while self._expiry and self._expiry[0][0] <= now:
            _, which = self._expiry.popleft()
            found = self._open.pop(which, None)
            if found is not None:
                self._close(which, lost=True)
                self._records.append(self._lost(*found))
                gone.append(found[0])
        return gone

    def _close(self, which: Key, *, lost: bool) -> None:
        """Remember for a while how a probe was settled, to tell a late answer from a second one."""
        if which not in self._closed:
            self._closed_order.append(which)
        self._closed[which] = lost
        if len(self._closed_order) > REMEMBERED:
            del self._closed[self._closed_order.popleft()]

    def next_expiry(self) -> int | None:
        """When the oldest open probe will be lost."""
        while self._expiry and self._expiry[0][1] not in self._open:
            self._expiry.popleft()
        return self._expiry[0][0] if self._expiry else None

    def take(self) -> list[Record]:
        """Records made since the last call."""
        records, self._records = self._records, []
        return records

    def _lost(self, shot: Shot, at: int) -> Probe:
        return Probe(
            task=self._task, seq=shot.seq, at=at, outcome="lost", ttl=shot.ttl, flow=shot.flow, warmup=shot.warmup
        )

    def _probe(self, shot: Shot, at: int, answer: Answer | None, why: str | None) -> Probe:
        """The record of a settled probe: answered, or unsent when there is no answer."""
        if answer is None:
            return Probe(
                task=self._task, seq=shot.seq, at=at, outcome="unsent", ttl=shot.ttl, flow=shot.flow,
                warmup=shot.warmup, why=why,
            )  # fmt: skip
        return Probe(
            task=self._task, seq=shot.seq, at=at, outcome=_outcome(shot, answer), ttl=shot.ttl, flow=shot.flow,
            rtt_ns=answer.rtt_ns, clock=answer.clock, kind=answer.kind, by=answer.by, code=answer.code,
            reply_ttl=answer.reply_ttl, quoted_ttl=answer.quoted_ttl, quoted_tos=answer.quoted_tos,
            mpls=answer.mpls, warmup=shot.warmup,
        )  # fmt: skip

    def _extra(self, shot: Shot, answer: Answer, *, late: bool) -> Extra:
        return Extra(
            task=self._task, seq=shot.seq, at=shot.slot + answer.rtt_ns, what="late" if late else "duplicate",
            ttl=shot.ttl, flow=shot.flow, rtt_ns=answer.rtt_ns, clock=answer.clock, by=answer.by,
        )  # fmt: skip


def _outcome(shot: Shot, answer: Answer) -> ProbeOutcome:
    """What an answer makes of a probe: in a trace any answer is one, in a series an unreachable is none."""
    match answer.kind:
        case "rst":
            return "refused"
        case "unreachable" | "time-exceeded" if shot.ttl == 0:
            return "unreachable"
        case _:
            return "replied"
