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
    vantages: list[str]
    segment: _Segment | None
    why: str


class _Compared(msgspec.Struct, tag_field="kind", tag="comparison"):
    target: str
    rank: int | None
    advice: str


class _Other(msgspec.Struct):
    kind: str


class _Verdict(msgspec.Struct):
    findings: list[_Finding]


class _Report(msgspec.Struct):
    """As much of a report as the truth speaks about."""

    verdict: _Verdict
    partial: bool
    results: list[msgspec.Raw]
    failures: list[msgspec.Raw]


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
    if seen.failures:
        yield f"{len(seen.failures)} failures, where nothing should fail"
    planted = {
        (truth.lossy_target, "lossy-from"),
        (truth.lossy_target, "over-budget"),
        (truth.slow_target, "server-slow"),
        (truth.slow_target, "over-budget"),
    }
    findings = [one for one in seen.verdict.findings if one.severity != "info"]
    for one in findings:
        if one.target == truth.clean_target:
            yield f"{truth.clean_target} is clean, but: {one.why}"
        elif (one.target, one.kind) not in planted:
            yield f"{one.target} has no such fault: {one.kind}: {one.why}"
    for place in truth.places:
        yield from _wrong_from(place, [one for one in seen.verdict.findings if place in one.vantages], truth)
    yield from _wrong_advice(seen, truth)


def _wrong_from(place: str, findings: list[_Finding], truth: Planted) -> Iterator[str]:
    """What is missing, or in the wrong place, as seen from one place."""
    lossy = [one for one in findings if (one.target, one.kind) == (truth.lossy_target, "lossy-from")]
    if not lossy:
        yield f"the loss on the way from {place} to {truth.lossy_target} was not found"
    for one in lossy:
        yield from _wrong_segment(place, one, truth)
    if not any((one.target, one.kind) == (truth.slow_target, "server-slow") for one in findings):
        yield f"the slow server of {truth.slow_target} was not found from {place}"
    address = truth.limiter[place].address
    if not any(one.kind == "replies-limited" and address in one.why for one in findings):
        yield f"the limiting router {address} was not named from {place}"


def _wrong_segment(place: str, one: _Finding, truth: Planted) -> Iterator[str]:
    """Whether the lossy segment is another than the planted one."""
    if one.segment is None:
        yield f"the lossy segment was not named: {one.why}"
    elif not truth.segment_is_right(place, one.segment.from_.ttl, one.segment.to.ttl):
        yield (
            f"the lossy segment from {place} is ({truth.last_clean[place].ttl}, {truth.first_lossy[place].ttl}], "
            f"not ({one.segment.from_.ttl}, {one.segment.to.ttl}]"
        )


def _wrong_advice(seen: _Report, truth: Planted) -> Iterator[str]:
    """Whether another candidate than the clean one is to be bought."""
    kinds = [(msgspec.json.decode(raw, type=_Other).kind, raw) for raw in seen.results]
    compared = [msgspec.json.decode(raw, type=_Compared) for kind, raw in kinds if kind == "comparison"]
    advice = {one.target: (one.rank, one.advice) for one in compared}
    if advice.get(truth.clean_target) != (1, "buy"):
        yield f"{truth.clean_target} is the one to buy, not {advice.get(truth.clean_target)}"
    for target in (truth.lossy_target, truth.slow_target):
        if advice.get(target, (None, "buy"))[1] == "buy":
            yield f"{target} is not to be bought"
