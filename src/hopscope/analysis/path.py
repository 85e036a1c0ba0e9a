"""Which hop loses, which only limits its replies, and where the way gets longer. Rules 3.5 and 4.1-4.4 of the method.

The end decides whether there is a problem; hops only say where. A hop whose loss is not carried on by those beyond it
cannot testify about the path. Over the hops that can, the change point is the most likely split of pooled counts, and
it is shown by Fisher's exact test.
"""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from hopscope.analysis.binomial import at_least, fisher_greater, log_likelihood
from hopscope.analysis.loss import is_lost
from hopscope.analysis.views import Fated, PathView
from hopscope.model.limits import MS
from hopscope.model.report import SampleOutcome

SIGNIFICANT = 0.002
"""Method 4.2: one-sided, at each look."""
TOLERATED_LOSS = 0.01
"""Method 4.2: loss seen at the end is tested against this."""
LEAD = 2.0
"""Splits whose log-likelihood is less than this behind the best are as good as it: seven to one is no proof."""
CONSISTENT = 0.05
"""A limited hop asked slowly is cleared where it loses no more than those beyond: one-sided, of 30 probes."""
SLOWER_LOSES_LESS = 0.01
"""A hop that loses this much less when asked slowly limits its replies: one-sided."""
LEAST_PROBES = 10
SLOW_STEP_NS = 2 * MS
SLOW_SHARE = 0.10
SLOW_SPREADS = 3
ANSWERED: frozenset[SampleOutcome] = frozenset({"replied", "refused"})
"""Outcomes of a probe of a path that somebody answered: a refusal is the answer of a closed port."""
ARRIVING_CODES: dict[int, frozenset[int]] = {4: frozenset({2, 3, 9, 10, 13}), 6: frozenset({1, 4})}
"""Unreachable codes by which a target itself shows that a probe arrived (method 3.4)."""


class Count(Struct, frozen=True):
    """Lost out of sent."""

    lost: int
    sent: int

    def __add__(self, other: "Count") -> "Count":
        """Counts pooled."""
        return Count(self.lost + other.lost, self.sent + other.sent)

    @property
    def ratio(self) -> float | None:
        """Loss ratio, undefined where nothing was sent."""
        return self.lost / self.sent if self.sent else None


NOTHING = Count(0, 0)


class Witness(Struct, frozen=True, kw_only=True):
    """A hop, or the end, that can testify; `slow` once it was asked slowly too."""

    ttl: int
    address: str | None
    count: Count
    end: bool = False
    slow: Count | None = None


class Limited(Struct, frozen=True, kw_only=True):
    """A hop whose replies are limited: what it lost, against the pooled loss beyond; `slow` once asked slowly.

    `p` is of its loss against that beyond, or against its own when asked slowly, whichever showed it.
    """

    ttl: int
    address: str | None
    count: Count
    beyond: Count
    p: float
    slow: Count | None

    @property
    def cleared(self) -> bool:
        """Whether it testifies once asked slowly: it then loses no more than those beyond (method 4.3)."""
        slow, beyond = self.slow, self.beyond
        return slow is not None and fisher_greater(slow.lost, slow.sent, beyond.lost, beyond.sent) >= CONSISTENT


class LossAlong(Struct, frozen=True, kw_only=True):
    """What the path says about loss.

    `first_lossy` is the witness where loss begins and `last_clean` the one before it (`None`: this host). `decided`
    is false when the end loses but no split is significant yet. `excused` counts another protocol's series that the
    target answers without that loss: it limits its answers, and nothing is lossy.
    """

    witnesses: tuple[Witness, ...]
    limited: tuple[Limited, ...]
    end: Count
    lossy: bool
    last_clean: Witness | None = None
    first_lossy: Witness | None = None
    p: float | None = None
    decided: bool = False
    excused: Count | None = None


class Step(Struct, frozen=True, kw_only=True):
    """The way gets longer at `ttl` by `step_ns`, kept by every later witness; `before` is the witness before it."""

    ttl: int
    address: str | None
    before_ttl: int
    before_address: str | None
    step_ns: int
    needed_ns: int


def count(probes: Sequence[Fated]) -> Count:
    """Lost out of sent among probes; those outside the count are left out."""
    losses = [lost for one in probes if (lost := is_lost(one.outcome)) is not None]
    return Count(sum(losses), len(losses))


def arrived(one: Fated, family: int) -> bool:
    """Whether a probe reached the target (method 3.4)."""
    probe = one.probe
    if probe.by is not None:
        return False
    match probe.kind:
        case "echo-reply" | "syn-ack" | "rst":
            return True
        case "unreachable":
            return probe.code in ARRIVING_CODES[family]
        case _:
            return False


def ended(one: Fated, family: int) -> bool:
    """Whether nothing can lie beyond what answered: the target, or whoever said that it cannot be reached."""
    return arrived(one, family) or one.probe.kind == "unreachable"


def distance(path: PathView) -> int | None:
    """The TTL at which the path ends: the lowest where most answers ended it; `None` when none did."""
    for ttl in sorted(path.rounds):
        answers = [one for one in path.rounds[ttl] if one.outcome in ANSWERED]
        ending = sum(ended(one, path.who.family) for one in answers)
        if ending and ending * 2 >= len(answers):
            return ttl
    return None


def responder(probes: Sequence[Fated], target: str) -> str | None:
    """Who answered most at one TTL."""
    names = Counter(one.probe.by or target for one in probes if one.outcome in ANSWERED)
    return names.most_common(1)[0][0] if names else None


def shows_loss(seen: Count) -> bool:
    """Loss seen end to end, against 1 % (method 4.2)."""
    if seen.sent < LEAST_PROBES or not seen.lost:
        return False
    return at_least(seen.lost, seen.sent, TOLERATED_LOSS) < SIGNIFICANT


def excuses(other: Count, end: Count) -> bool:
    """Whether another protocol's series shows that the target merely limits its answers to the first (method 4.2).

    It must lose less, not only too little to be shown.
    """
    return not shows_loss(other) and fisher_greater(end.lost, end.sent, other.lost, other.sent) < SIGNIFICANT


def loss_along(path: PathView, series: Count, other: Count = NOTHING) -> LossAlong:
    """Judge loss along a path; `series` counts the end-to-end series of the same flow (method 4.2).

    `other` counts a series by another protocol that the target answers.
    """
    last = distance(path)
    end = _end_count(path, last) + series
    witnesses, limited = _testimonies(path, last, end)
    lossy = shows_loss(end)
    splits, p = _change_point(witnesses)
    located = bool(splits) and p < SIGNIFICANT and end.lost > 0
    if (lossy or located) and (not located or witnesses[splits[-1]].end) and excuses(other, end):
        return LossAlong(witnesses=witnesses, limited=limited, end=end, lossy=False, decided=True, excused=other)
    if located:
        return LossAlong(
            witnesses=witnesses, limited=limited, end=end, lossy=True, last_clean=witnesses[splits[0] - 1],
            first_lossy=witnesses[splits[-1]], p=p, decided=True,
        )  # fmt: skip
    if lossy and _from_the_start(witnesses):
        first = witnesses[0]
        return LossAlong(
            witnesses=witnesses, limited=limited, end=end, lossy=True, first_lossy=first,
            p=at_least(first.count.lost, first.count.sent, TOLERATED_LOSS), decided=True,
        )  # fmt: skip
    return LossAlong(witnesses=witnesses, limited=limited, end=end, lossy=lossy)


def _end_count(path: PathView, last: int | None) -> Count:
    """Counts of the target itself: its own TTL and the one beyond, where probes arrive as well."""
    if last is None or not any(arrived(one, path.who.family) for one in path.rounds[last]):
        return NOTHING
    beyond = path.rounds.get(last + 1, [])
    arrivals = any(arrived(one, path.who.family) for one in beyond)
    return count(path.rounds[last]) + (count(beyond) if arrivals else NOTHING)


def _testimonies(path: PathView, last: int | None, end: Count) -> tuple[tuple[Witness, ...], tuple[Limited, ...]]:
    """Going back from the end: who can testify, and who only limits replies."""
    witnesses: list[Witness] = []
    limited: list[Limited] = []
    pooled = NOTHING
    if end.sent > end.lost:
        ttl = last if last is not None else max(path.rounds, default=0) + 1
        witnesses.append(Witness(ttl=ttl, address=path.who.address, count=end, end=True))
        pooled = end
    for ttl in sorted(path.rounds, reverse=True):
        probes = path.rounds[ttl]
        seen = count(probes)
        if (last is not None and ttl >= last) or seen.lost == seen.sent:
            continue
        address = responder(probes, path.who.address)
        slow = count(path.slow[ttl]) if ttl in path.slow else None
        p = _limits(seen, pooled, slow)
        if p is not None:
            hop = Limited(ttl=ttl, address=address, count=seen, beyond=pooled, p=p, slow=slow)
            limited.append(hop)
            if slow is None or not hop.cleared:
                continue
            seen = slow
        elif slow is not None:
            seen += slow
        witnesses.append(Witness(ttl=ttl, address=address, count=seen, slow=slow))
        pooled += seen
    return tuple(reversed(witnesses)), tuple(reversed(limited))


def _limits(seen: Count, beyond: Count, slow: Count | None) -> float | None:
    """The p that shows a hop to limit its replies: it loses more than those beyond, or than when asked slowly."""
    p = fisher_greater(seen.lost, seen.sent, beyond.lost, beyond.sent)
    if p < SIGNIFICANT:
        return p
    if slow is not None and (own := fisher_greater(seen.lost, seen.sent, slow.lost, slow.sent)) < SLOWER_LOSES_LESS:
        return own
    return None


def _change_point(witnesses: Sequence[Witness]) -> tuple[tuple[int, ...], float]:
    """The split with the highest binomial likelihood among those that come near it, and Fisher's p for the best.

    A split is the index of the first lossy witness. Splits within LEAD cannot be told apart: the segment spans them.
    """
    found: list[tuple[float, int, float]] = []
    for split in range(1, len(witnesses)):
        near = sum((witness.count for witness in witnesses[:split]), NOTHING)
        far = sum((witness.count for witness in witnesses[split:]), NOTHING)
        if not near.sent or not far.sent or far.lost * near.sent <= near.lost * far.sent:
            continue
        likelihood = log_likelihood(near.lost, near.sent) + log_likelihood(far.lost, far.sent)
        found.append((likelihood, split, fisher_greater(far.lost, far.sent, near.lost, near.sent)))
    if not found:
        return (), 1.0
    best = max(found, key=_likelihood)
    return tuple(split for likelihood, split, _ in found if likelihood >= best[0] - LEAD), best[2]


def _likelihood(found: tuple[float, int, float]) -> float:
    return found[0]


def _from_the_start(witnesses: Sequence[Witness]) -> bool:
    """Whether the very first witness is already lossy, as lossy as those beyond it."""
    if not witnesses:
        return False
    first = witnesses[0].count
    if first.sent < LEAST_PROBES or at_least(first.lost, first.sent, TOLERATED_LOSS) >= SIGNIFICANT:
        return False
    far = sum((witness.count for witness in witnesses[1:]), NOTHING)
    return fisher_greater(far.lost, far.sent, first.lost, first.sent) >= SIGNIFICANT


def steps(path: PathView) -> tuple[Step, ...]:
    """Where the way gets longer for good (method 4.4).

    A hop slower than one behind it has a busy control plane: the least delay seen at or beyond a hop bounds the way
    to it, so that is what steps are taken of.
    """
    last = distance(path)
    floors: list[tuple[int, str | None, int, int]] = []
    least: int | None = None
    for ttl in sorted((ttl for ttl in path.rounds if last is None or ttl <= last), reverse=True):
        probes = [one for one in path.rounds[ttl] if one.outcome in ANSWERED]
        rtts = [one.probe.rtt_ns for one in probes if one.probe.rtt_ns is not None]
        if len(rtts) < LEAST_PROBES:
            continue
        least = min(rtts) if least is None else min(least, *rtts)
        floors.append((ttl, responder(probes, path.who.address), least, _spread(rtts)))
    floors.reverse()
    if not floors:
        return ()
    far = floors[-1][2]
    before: tuple[int, str | None, int, int] = (0, None, 0, 0)
    found: list[Step] = []
    for hop in floors:
        needed = max(SLOW_STEP_NS, int(SLOW_SHARE * far), SLOW_SPREADS * max(hop[3], before[3]))
        if hop[2] - before[2] > needed:
            found.append(
                Step(
                    ttl=hop[0], address=hop[1], before_ttl=before[0], before_address=before[1],
                    step_ns=hop[2] - before[2], needed_ns=needed,
                )
            )  # fmt: skip
        before = hop
    return tuple(found)


def _spread(rtts: Sequence[int]) -> int:
    """Spread of the least delays over thirds of the run, ns; there are at least three."""
    size = len(rtts) // 3
    minima = [min(third) for third in (rtts[:size], rtts[size : 2 * size], rtts[2 * size :])]
    return max(minima) - min(minima)


def doubtful(along: LossAlong) -> tuple[int, ...]:
    """TTLs of hops whose own limit could hide where loss begins, and that were not yet asked slowly (method 4.3).

    Those limited inside the segment found; and the hop at which loss seems to begin, where it loses more than those
    beyond: too few probes to call it limited, and enough to blame it for what lies behind.
    """
    if not along.lossy:
        return ()
    first = along.first_lossy
    near = along.last_clean.ttl if along.last_clean is not None else 0
    far = first.ttl if first is not None else along.witnesses[-1].ttl if along.witnesses else 0
    doubts = [hop.ttl for hop in along.limited if near < hop.ttl < far and hop.slow is None]
    if first is not None and not first.end and first.slow is None:
        beyond = sum((witness.count for witness in along.witnesses if witness.ttl > first.ttl), NOTHING)
        if first.count.lost * beyond.sent > beyond.lost * first.count.sent:
            doubts.append(first.ttl)
    return tuple(doubts)
