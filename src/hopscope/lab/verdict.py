"""A report held against the planted truth: the answer is the list of what is wrong, empty when all is right."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from hopscope.lab.demo import Planted


class _End(msgspec.Struct):
    ttl: int
    address: str | None


class _Segment(msgspec.Struct, rename={"from_": "from"}):
    from_: _End
    to: _End


class _Finding(msgspec.Struct):
    kind: str
    severity: str
    target: str | None
    segment: _Segment | None
    why: str


class _Verdict(msgspec.Struct):
    findings: list[_Finding]


class _Report(msgspec.Struct):
    """As much of a report as the truth speaks about."""

    verdict: _Verdict
    partial: bool


Expected = dict[str, frozenset[str]]
"""For each target the kinds of finding above info that it must have, and no others."""


def kinds(report: Path, expected: Expected) -> tuple[str, ...]:
    """What a report gets wrong about the kinds of finding of each target, one sentence each.

    Raises OSError and msgspec.DecodeError when there is no report.
    """
    seen = msgspec.json.decode(report.read_bytes(), type=_Report)
    found: dict[str, set[str]] = {name: set() for name in expected}
    for one in seen.verdict.findings:
        if one.severity != "info":
            found.setdefault(one.target or "", set()).add(one.kind)
    return tuple(
        f"{name} has {sorted(found[name])}, not {sorted(expected.get(name, ()))}"
        for name in found
        if found[name] != expected.get(name, frozenset())
    )


def mistakes(report: Path, truth: Planted) -> tuple[str, ...]:
    """What a report gets wrong about the planted truth, one sentence each.

    Raises OSError and msgspec.DecodeError when there is no report.
    """
    seen = msgspec.json.decode(report.read_bytes(), type=_Report)
    return tuple(_wrong(seen, truth))


def _wrong(seen: _Report, truth: Planted) -> Iterator[str]:
    """Every way in which a report can be wrong."""
    if seen.partial:
        yield "the run was cut short"
    findings = [one for one in seen.verdict.findings if one.severity != "info"]
    for one in findings:
        if one.target == truth.clean_target:
            yield f"{truth.clean_target} is clean, but: {one.why}"
        elif (one.target, one.kind) not in {(truth.lossy_target, "lossy-from"), (truth.slow_target, "server-slow")}:
            yield f"{one.target} has no such fault: {one.kind}: {one.why}"
    lossy = [one for one in findings if (one.target, one.kind) == (truth.lossy_target, "lossy-from")]
    if not lossy:
        yield f"the loss on the way to {truth.lossy_target} was not found"
    for one in lossy:
        yield from _wrong_segment(one, truth)
    if not any((one.target, one.kind) == (truth.slow_target, "server-slow") for one in findings):
        yield f"the slow server of {truth.slow_target} was not found"
    limiter = [
        one
        for one in seen.verdict.findings
        if one.kind == "replies-limited" and one.target == truth.lossy_target and truth.limiter.address in one.why
    ]
    if not limiter:
        yield f"the limiting router {truth.limiter.address} was not named"


def _wrong_segment(one: _Finding, truth: Planted) -> Iterator[str]:
    """Whether the lossy segment is another than the planted one."""
    if one.segment is None:
        yield f"the lossy segment was not named: {one.why}"
    elif not truth.segment_is_right(one.segment.from_.ttl, one.segment.to.ttl):
        yield (
            f"the lossy segment is ({truth.last_clean.ttl}, {truth.first_lossy.ttl}], "
            f"not ({one.segment.from_.ttl}, {one.segment.to.ttl}]"
        )
