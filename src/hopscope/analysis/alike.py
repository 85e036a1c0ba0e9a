"""Findings that say the same of one target, seen from several places: told once, with every place named.

The JSON keeps each finding of each place with its own numbers; only what people read is put together. Two findings
are alike when kind, severity, target and owner agree, and where each has a place on a path, the far end of it.
"""

from collections.abc import Sequence

from hopscope.model.report import Finding

DISTINCT = ("metric", "port", "status")
"""Evidence that tells two faults of one kind apart."""

Alike = tuple[Finding, ...]
Key = tuple[object, ...]


def grouped(findings: Sequence[Finding]) -> list[Alike]:
    """Findings in groups, in the order of the first of each."""
    groups: dict[Key, list[Finding]] = {}
    for one in findings:
        groups.setdefault(_key(one), []).append(one)
    return [tuple(group) for group in groups.values()]


def places(group: Alike) -> tuple[str, ...]:
    """Every vantage that a group was seen from, each once."""
    return tuple(dict.fromkeys(name for one in group for name in one.vantages))


def _key(one: Finding) -> Key:
    """What makes two findings the same fault; one without a target stays alone."""
    if one.target is None:
        return (one.id,)
    far = None if one.segment is None else one.segment.to.address or one.id
    told = tuple(one.evidence.get(name) for name in DISTINCT)
    return (one.kind, one.severity, one.target, one.owner, far, told)
