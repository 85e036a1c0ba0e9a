"""TargetFile → Plan: which targets from which vantages, with everything settled that does not need the network."""

from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from hopscope.errors import UsageError
from hopscope.model.plan import Plan, Target, Vantage
from hopscope.targets.budgets import budget as budget_named
from hopscope.targets.contents import TargetFile
from hopscope.targets.wording import did_you_mean, shown

HERE = Vantage(name="here", kind="local")

_Named = TypeVar("_Named", Target, Vantage)


def plan(
    file: TargetFile,
    *,
    command: str,
    name: str,
    only: tuple[str, ...] = (),
    vantages: tuple[str, ...] = (),
    deadline_ns: int,
    budget: str | None = None,
) -> Plan:
    """The plan of a run; `only` and `vantages` choose by name (empty: all), `budget` replaces every target's.

    Raises UsageError for a name that is not in the file.
    """
    chosen = _chosen(file.targets, only, "target", "--only")
    places = _chosen(file.vantages or (HERE,), vantages, "vantage", "--from")
    targets = tuple(_settled(target) for target in chosen)
    if budget is not None:
        limits = budget_named(budget, file.budgets)
        targets = tuple(msgspec.structs.replace(target, budget=limits, budget_name=budget) for target in targets)
    return Plan(
        command=command,
        name=name,
        targets=targets,
        vantages=places,
        quorum=_quorum(file.quorum, len(places), chosen=bool(vantages)),
        deadline_ns=deadline_ns,
        mmdb=file.mmdb,
        controls=file.controls,
    )


def _chosen(items: tuple[_Named, ...], names: tuple[str, ...], what: str, option: str) -> tuple[_Named, ...]:
    known = [item.name for item in items]
    unknown = [f'no {what} is named "{shown(name)}"{did_you_mean(name, known)}' for name in names if name not in known]
    if unknown:
        raise UsageError("; ".join(unknown), f"{option} takes one of: {', '.join(map(shown, known))}")
    return tuple(item for item in items if not names or item.name in names)


def _quorum(wanted: int | None, places: int, *, chosen: bool) -> int:
    """Half of the places, rounded up, unless the file says otherwise; never more than were chosen by name."""
    if wanted is None:
        return (places + 1) // 2
    return min(wanted, places) if chosen else wanted


def _settled(target: Target) -> Target:
    """`requests` as cold and hot ones; `path` as interface.md "Defaults" has it, from the root of the URL."""
    cold, hot = target.cold, target.hot
    if target.requests is not None:
        cold, hot = 1, target.requests - 1
    path = target.path
    if path is None and target.model is not None and target.url is not None:
        own = urlsplit(target.url).path.rstrip("/")
        path = f"{own}/models" if own.endswith("/v1") else None
    return msgspec.structs.replace(target, path=path, cold=cold, hot=hot)
