"""Findings of all layers → causes: what merely follows from a fault before it is not told as a fault of its own."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from hopscope.model.plan import Family, family_of
from hopscope.model.report import SURENESS, Finding, FindingKind, LayerName

ENDING: Final[frozenset[FindingKind]] = frozenset({"unreachable", "admin-prohibited", "path-loop"})
"""Faults of the path with which nothing behind them can be reached."""


class Found(Struct, frozen=True, kw_only=True):
    """A finding of one layer; without an address it holds for all of them."""

    layer: LayerName
    address: str | None
    finding: Finding


class Causes(Struct, frozen=True, kw_only=True):
    """`told` are the causes as people are told of them; `failing` are those of each layer and address, before that."""

    told: tuple[Found, ...]
    failing: tuple[Found, ...]


def causes(found: Sequence[Found], addresses: Sequence[str]) -> Causes:
    """What is left of findings, from this machine outwards, without those that follow from others."""
    kept: list[Found] = []
    for one in _best(found):
        if not any(_explains(before, one) for before in kept):
            kept.append(one)
    return Causes(told=tuple(_summed(kept, _broken(kept, addresses))), failing=tuple(kept))


def _best(found: Sequence[Found]) -> Iterator[Found]:
    """One finding of each kind in each layer of each address, the one with a place first; remarks all of them."""
    seen: set[tuple[object, ...]] = set()
    order: list[LayerName] = list(dict.fromkeys(one.layer for one in found))
    for one in sorted(found, key=lambda each: (order.index(each.layer), *_vagueness(each.finding))):
        many = one.finding.kind in {"replies-limited", "refused"}
        key = (one.layer, one.address, one.finding.kind, one.finding.id if many else one.finding.severity == "info")
        if key not in seen:
            seen.add(key)
            yield one


def _vagueness(one: Finding) -> tuple[int, bool]:
    return SURENESS.index(one.confidence), one.segment is None


def _explains(before: Found, one: Found) -> bool:
    """Whether a fault nearer to this machine is enough to explain another."""
    first, second = before.finding, one.finding
    if first.severity == "info" or before.address not in {None, one.address}:
        return False
    if before.layer in {"interface", "gateway"}:
        return first.severity == "critical" or second.kind == "lossy-from"
    if before.layer == "path" and first.kind in ENDING and first.severity == "critical":
        return True
    return first.kind == second.kind and before.layer != one.layer


def _broken(kept: Sequence[Found], addresses: Sequence[str]) -> frozenset[Family]:
    """Families of which no address works, while one of the other family has nothing against it."""
    families: dict[Family, list[str]] = {}
    for address in addresses:
        families.setdefault(family_of(address), []).append(address)
    failing = {one.address for one in kept if one.finding.severity == "critical"}
    doubted = {one.address for one in kept if one.finding.severity != "info"}
    dead = {family for family, its in families.items() if all(address in failing for address in its)}
    alive = {family for family, its in families.items() if any(address not in doubted for address in its)}
    return frozenset(dead) if alive else frozenset()


def _summed(kept: Sequence[Found], broken: frozenset[Family]) -> Iterator[Found]:
    """What is told: the faults of a family that works nowhere, while the other works, are one (`family-broken`)."""
    told: set[Family] = set()
    for one in kept:
        family = None if one.address is None else family_of(one.address)
        if family is None or family not in broken or one.finding.severity == "info":
            yield one
        elif family not in told:
            told.add(family)
            yield replace(one, finding=_family_broken(one, family))


def _family_broken(one: Found, family: Family) -> Finding:
    """A family that works nowhere: clients that try it first wait, and fall back to the other."""
    first = one.finding
    other = 4 if family == 6 else 6  # noqa: PLR2004 - the numbers of the two families
    return replace(
        first,
        id="/".join(part for part in ("family-broken", first.target, *first.vantages, f"ipv{family}") if part),
        kind="family-broken",
        severity="warning",
        why=f"IPv{family} does not work while IPv{other} does: {first.why}",
        evidence={"family": family, "address": one.address, "layer": one.layer, "kind": first.kind},
        changes_mind=f"an answer by IPv{family}",
    )
