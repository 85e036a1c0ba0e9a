"""Too few places measured: what was found is kept, and no target is called down or ok for it (method 6.2)."""

from collections.abc import Sequence

from msgspec.structs import replace

from hopscope.analysis.say import count as how_many
from hopscope.model.plan import Plan
from hopscope.model.report import Finding, TargetReport


def faults(findings: Sequence[Finding]) -> list[Finding]:
    """What was found of places: all that the functions here ask about."""
    return [one for one in findings if one.kind == "vantage-fault"]


def is_missed(findings: Sequence[Finding]) -> bool:
    """Whether fewer places than the quorum were usable."""
    return any(one.kind == "vantage-fault" and one.severity == "unknown" for one in findings)


def held_back(findings: Sequence[Finding]) -> list[Finding]:
    """Below the quorum nothing about a target is worse than unknown."""
    if not is_missed(findings):
        return list(findings)
    return [
        replace(one, severity="unknown", changes_mind="as many usable places as the quorum")
        if one.target is not None and one.severity == "critical"
        else one
        for one in findings
    ]


def sentences(findings: Sequence[Finding], plan: Plan) -> list[str]:
    """That there is no verdict, where some places measured and are too few."""
    if not is_missed(findings) or not _usable(findings):
        return []
    usable, places = _usable(findings), how_many(len(plan.vantages), "place")
    return [
        f"Unknown: {usable} of {places} could measure, the quorum is {plan.quorum}: no target is called down or ok."
    ]


def withheld(target: TargetReport, findings: Sequence[Finding]) -> TargetReport:
    """A target as it may be told: below the quorum it is unknown, with what was seen of it."""
    if not is_missed(findings) or not _usable(findings):
        return target
    seen = f"neither down nor ok, for too few places could measure: {target.summary}"
    return replace(target, status="unknown", summary=seen)


def _usable(findings: Sequence[Finding]) -> str | int | float | bool | None:
    """How many places were usable, as every fault of a place says."""
    return next((one.evidence["usable"] for one in findings if one.kind == "vantage-fault"), None)
