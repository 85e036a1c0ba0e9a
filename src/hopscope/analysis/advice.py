"""Buy, ask or avoid: the advice for each candidate, with its reasons, and the sentence that begins the report.

Buy: every limit is met at every usable place, nothing above info was found, and there is enough data; without a budget,
nothing was found and no difference is shown to the best. Avoid: it fails, or misses a limit for certain, at half of
the weight of places, or loses packets at its provider. A limit that a slow server explains is a question to its
seller. Everything else is a question too.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from hopscope.analysis.candidate import Candidate, Field
from hopscope.analysis.difference import alike
from hopscope.analysis.faults import LABELS, against, doubts, explained, findings, listed, misses
from hopscope.analysis.reasons import kept, likely, notes
from hopscope.analysis.standing import Standing, missed
from hopscope.model.report import Advice, Role

HALF = 0.5
AT_PROVIDER: frozenset[Role] = frozenset({"provider", "operator", "model-server"})
SENTENCES = 4
MOST_REASONS = 12
VERBS: dict[Advice, str] = {"buy": "buy", "ask": "ask about", "avoid": "avoid"}


class Advised(Struct, frozen=True):
    """A candidate with its rank (`None`: not ranked), advice and reasons, the weightiest first."""

    candidate: Candidate
    rank: int | None
    score: float | None
    advice: Advice
    reasons: tuple[str, ...]


def advised(whole: Field, order: Sequence[Standing]) -> list[Advised]:
    """All candidates in the order of their rank, then those of which nothing is known."""
    ranks = {one.candidate.target.name: rank for rank, one in enumerate(order, start=1)}
    limited = any(one.limited for one in whole.candidates)
    found = [_ranked(one, rank, order, limited=limited) for rank, one in enumerate(order, start=1)]
    return found + [_unknown(one) for one in whole.candidates if one.target.name not in ranks]


def below_quorum(whole: Field, why: str) -> list[Advised]:
    """All candidates, none of them ranked."""
    return [Advised(one, None, None, "ask", (why, *one.remarks)) for one in whole.candidates]


def _unknown(candidate: Candidate) -> Advised:
    why = next((one.why for one in candidate.findings if one.severity != "info"), "nothing was measured")
    return Advised(candidate, None, None, "ask", (f"not compared: {why}", *candidate.remarks))


def _ranked(standing: Standing, rank: int, order: Sequence[Standing], *, limited: bool) -> Advised:
    """The advice for one of the ranked."""
    candidate, best = standing.candidate, order[0].candidate
    other = order[0 if rank > 1 else 1].candidate if len(order) > 1 else None
    bad = tuple(against(candidate))
    unsure = tuple(doubts(candidate, others_limited=limited))
    beaten = not limited and candidate is not best and not alike(best, candidate)
    well = (
        not bad and not beaten and not any(one.severity != "info" for each in candidate.seen for one in each.findings)
    )
    advice: Advice = "avoid" if _hopeless(standing) else "buy" if well and not unsure else "ask"
    reasons = (
        *bad,
        *unsure,
        *(() if bad else (kept(candidate), *likely(candidate))),
        *notes(candidate, None if standing.failing else other),
        *(("no budget says whether that difference matters",) if beaten and not bad else ()),
        *(_questions(candidate, thin=bool(unsure)) if advice == "ask" else ()),
    )
    return Advised(candidate, rank, standing.score, advice, reasons[:MOST_REASONS])


def _hopeless(standing: Standing) -> bool:
    """Whether it is to be avoided."""
    candidate = standing.candidate
    certain = frozenset(_certain(candidate))
    at_provider = any(
        one.owner.role in AT_PROVIDER and one.confidence == "shown" for one in findings(candidate, "lossy-from")
    )
    return standing.failing >= HALF or candidate.share(certain) >= HALF or at_provider


def _certain(candidate: Candidate) -> list[str]:
    """Places that miss a limit for certain, and no slow server explains it."""
    return [
        each.vantage.name
        for each in candidate.seen
        if any(limit.confidence == "shown" and not explained(each, limit) for limit in missed(each))
    ]


def _questions(candidate: Candidate, *, thin: bool) -> Iterator[str]:
    """What to ask its seller, or to do first."""
    asked = []
    for one in findings(candidate, "lossy-from")[:1]:
        far = None if one.segment is None else one.segment.to.address
        asked.append(f"who runs {far}, and whether another way avoids it" if far else "where its packets are lost")
    if findings(candidate, "server-slow"):
        asked.append("what its server waits for: queue, model load, GPU")
    if findings(candidate, "doubtful-place"):
        asked.append("where it stands, and what answers there")
    if asked:
        yield f"ask {'; '.join(asked)}"
    perhaps = [
        LABELS[metric]
        for metric, places in misses(candidate).items()
        if all(limit.confidence != "shown" for _, limit in places)
    ]
    if perhaps:
        yield f"measure {listed(perhaps)} for longer before you decide"
    elif thin:
        yield "measure again with that before you decide"
    if certain := _certain(candidate):
        yield f"decide whether that is bearable from {listed(certain)}"


def answer(found: Sequence[Advised]) -> str:
    """The sentence that begins the report: what to buy, and why; then the others, in the order of their rank."""
    buys = [one for one in found if one.advice == "buy"]
    told = [*buys, *(one for one in found if one.advice != "buy")]
    parts = [f"{VERBS[one.advice]} {one.candidate.target.name}: {_first(one)}" for one in told[:SENTENCES]]
    if len(told) > SENTENCES:
        parts.append(f"and {len(told) - SENTENCES} more candidates")
    text = "; ".join(parts if buys else ["buy none of them as measured", *parts])
    return f"{text[:1].upper()}{text[1:]}."


def _first(one: Advised) -> str:
    """The weightiest reason; without its numbers for what is to be bought, which stand below."""
    return one.reasons[0].partition(": ")[0] if one.advice == "buy" else one.reasons[0]
