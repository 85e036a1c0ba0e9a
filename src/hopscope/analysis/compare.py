"""Report → report with a comparison: candidates ranked, advised and told apart, and the answer in the first sentence.

A pure function of the ordinary report and the book it was made of: whoever reads the tape again gets the same. Status
and findings stay what they are for any run; below the quorum nothing is ranked, and that is unknown (method 6.2).
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise

from msgspec.structs import replace

from hopscope.analysis.advice import Advised, advised, answer, below_quorum
from hopscope.analysis.candidate import Candidate, Field, field
from hopscope.analysis.case import Case, Pair
from hopscope.analysis.difference import between
from hopscope.analysis.faults import NAMES
from hopscope.analysis.standing import ranked
from hopscope.model.plan import Plan
from hopscope.model.report import ComparisonResult, Difference, Finding, Owner, Report
from hopscope.model.sample import Book

ALL_PAIRS = 6
"""Up to so many candidates every pair is told apart, beyond that each from the next in rank."""


def compared(
    report: Report,
    book: Book,
    found: Sequence[Case],
    *,
    planned: frozenset[Pair] | None = None,
    remarks: Mapping[str, tuple[str, ...]] | None = None,
) -> Report:
    """The report with its targets compared; `planned` are the pairs of target and place, all of the plan's unless said.

    `remarks` are what is to be said of a target besides.
    """
    plan = book.plan
    if plan is None:
        return report
    pairs = planned or frozenset((target.name, place.name) for target in plan.targets for place in plan.vantages)
    whole = field(report, plan, found, pairs, remarks or {})
    if len(whole.usable) < max(1, plan.quorum):
        return _not_ranked(report, plan, whole)
    order = ranked(whole.candidates)
    told = advised(whole, order)
    verdict = replace(report.verdict, summary=f"{answer(told)}{_left_out(whole)}")
    return replace(
        report,
        command="compare",
        verdict=verdict,
        results=(*map(_result, told), *report.results),
        differences=tuple(_differences([one.candidate for one in order])),
    )


def _result(one: Advised) -> ComparisonResult:
    return ComparisonResult(
        target=one.candidate.target.name,
        rank=one.rank,
        advice=one.advice,
        reasons=one.reasons,
        score=one.score,
        price_month=one.candidate.target.price_month,
        places=tuple(each.report for each in one.candidate.seen),
    )


def _differences(order: Sequence[Candidate]) -> Iterator[Difference]:
    """The better ranked comes first in each pair."""
    for first, second in combinations(order, 2) if len(order) <= ALL_PAIRS else pairwise(order):
        yield from between(first, second)


def _left_out(whole: Field) -> str:
    """Places that nobody is compared over, with the reason."""
    told = [f"{name} ({why})" for name, why in whole.left_out.items()]
    more = f" and {len(told) - NAMES} more" if len(told) > NAMES else ""
    return f" Left out for all alike: {'; '.join(told[:NAMES])}{more}." if told else ""


def _not_ranked(report: Report, plan: Plan, whole: Field) -> Report:
    """Too few places could be compared over: nothing is ranked, and the verdict is unknown unless it is worse."""
    usable, needed = len(whole.usable), max(1, plan.quorum)
    why = f"not compared: {usable} of {len(plan.vantages)} places can be compared over, {needed} are needed"
    verdict = replace(report.verdict, summary=f"Nothing is ranked: {why.removeprefix('not compared: ')}.")
    verdict = replace(verdict, summary=f"{verdict.summary}{_left_out(whole)}")
    if verdict.status in {"ok", "warning"}:
        finding = Finding(
            id="not-enough-data/quorum", kind="not-enough-data", severity="unknown", confidence="shown", target=None,
            vantages=(), segment=None, direction="either", owner=Owner(role="you"), why=why,
            evidence={"usable": usable, "quorum": needed}, changes_mind="results from more places",
            next_step="see the failures, then run again",
        )  # fmt: skip
        verdict = replace(verdict, status="unknown", findings=(finding, *verdict.findings))
    return replace(
        report,
        command="compare",
        verdict=verdict,
        results=(*map(_result, below_quorum(whole, why)), *report.results),
    )
