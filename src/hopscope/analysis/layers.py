"""The layers between this machine and a model's answer as a table: what fails first, and what that rules out.

A row has the rules that can find its layer at fault, and a judge that says what shows it to be well. A layer fails
where one of its rules found something above info; what follows from an earlier fault is no cause of its own. What
passed rules out the kinds that it would have shown.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from hopscope.analysis import signs
from hopscope.analysis.case import Case
from hopscope.analysis.causes import Found, causes
from hopscope.analysis.results import client, finished, started
from hopscope.analysis.rules.find import finding
from hopscope.analysis.rules.layer import dns_slow, gateway_fault, interface_fault, name_fails, path_loop, way_fails
from hopscope.analysis.rules.path import accept_limited, lossy_from, replies_limited, slow_from
from hopscope.analysis.rules.reach import refused, tls_failed
from hopscope.analysis.rules.server import client_limited, first_token_slow, not_enough_data, over_budget, server_slow
from hopscope.analysis.rules.service import certificate_expiring, model_fails, port_filtered, prohibited, requests_fail
from hopscope.analysis.signs import Seen
from hopscope.analysis.views import checks
from hopscope.model.plan import Protocol, family_of
from hopscope.model.report import Finding, FindingKind, LayerName, LayerResult, LayerStatus, Outcome

Rule = Callable[[Case], Iterator[Finding]]


class Row(Struct, frozen=True, kw_only=True):
    """A layer; `near` ones are the same for every address of a target."""

    layer: LayerName
    rules: tuple[Rule, ...]
    judge: Callable[[Case], Seen]
    near: bool = False
    protocol: Protocol = "tcp"


TABLE: Final[tuple[Row, ...]] = (
    Row(layer="interface", near=True, protocol="icmp", judge=signs.interface, rules=(interface_fault,)),
    Row(layer="gateway", near=True, protocol="icmp", judge=signs.gateway, rules=(gateway_fault,)),
    Row(layer="dns", near=True, protocol="icmp", judge=signs.dns, rules=(name_fails, dns_slow)),
    Row(
        layer="path", protocol="icmp", judge=signs.path,
        rules=(path_loop, way_fails, lossy_from, slow_from, replies_limited),
    ),
    Row(layer="port", judge=signs.port, rules=(refused, prohibited, port_filtered, accept_limited)),
    Row(layer="tls", judge=signs.tls, rules=(tls_failed, certificate_expiring)),
    Row(layer="http", judge=signs.http, rules=(requests_fail, server_slow)),
    Row(layer="model", judge=signs.model, rules=(model_fails, first_token_slow)),
)  # fmt: skip
BESIDE: Final[tuple[Rule, ...]] = (over_budget, client_limited, not_enough_data)
"""Rules that speak of no layer."""
COUNTED: Final[frozenset[FindingKind]] = frozenset({"lossy-from", "slow-from", "accept-limited", "server-slow"})
"""Kinds that stand on counts and times of ours."""
OUTCOMES: Final[dict[FindingKind, Outcome]] = {
    "interface-fault": "unreachable", "dns-failed": "dns", "unreachable": "unreachable",
    "admin-prohibited": "prohibited", "path-loop": "unreachable", "refused": "refused", "filtered": "timeout",
    "tls-failed": "tls", "http-error": "http",
}  # fmt: skip


class Diagnosis(Struct, frozen=True, kw_only=True):
    """All layers of all targets that are diagnosed; `sentence` sums them up."""

    findings: tuple[Finding, ...] = ()
    results: tuple[LayerResult, ...] = ()
    cause: FindingKind | None = None
    ruled_out: tuple[FindingKind, ...] = ()
    sentence: str = ""


def diagnose(cases: Sequence[Case], *, cut: bool = False) -> Diagnosis:
    """Judge every case whose target is diagnosed, layer by layer; `cut`: the run ended before its work did."""
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        if case.layered:
            groups.setdefault((case.target.name, case.vantage), []).append(case)
    findings: list[Finding] = []
    results: list[LayerResult] = []
    excluded: list[FindingKind] = []
    first: Found | None = None
    for mine in groups.values():
        ways = [case for case in mine if not (case.elsewhere and _unrouted(case))]
        judged = causes(list(_found(ways)), [case.address for case in ways if case.address is not None])
        first = first or next((one for one in judged.told if one.finding.severity != "info"), None)
        findings += [one.finding for one in judged.told]
        rows = list(_rows(ways, judged.failing))
        results += [result for result, _ in rows]
        excluded += _excluded(rows)
        findings += [one for rule in BESIDE for case in ways for one in rule(case)]
        if cut and first is None:
            findings += _not_reached(ways, rows)
    findings = [_weighed(one, first) for one in findings]
    kinds = {one.kind for one in findings}
    above = [one.kind for one in findings if one.severity != "info"]
    return Diagnosis(
        findings=tuple(findings),
        results=tuple(results),
        cause=first.finding.kind if first is not None else next(iter(above), None),
        ruled_out=tuple(kind for kind in dict.fromkeys(excluded) if kind not in kinds),
        sentence=_sentence(results, first),
    )


def _not_reached(ways: Sequence[Case], rows: Sequence[tuple[LayerResult, Seen]]) -> Iterator[Finding]:
    """A diagnosis that was cut short, of a target of which nothing bad is known: what was asked for and not checked."""
    for case in ways[:1]:
        missing = [
            result.layer for result, seen in rows if result.status == "not-checked" and _is_due(case, seen, result)
        ]
        if any(result.layer == "model" and result.status == "passed" for result, _ in rows):
            missing = [layer for layer in missing if layer != "model"]  # it is asked at one address only
        if missing:
            yield finding(
                case,
                "not-enough-data",
                "unknown",
                confidence="undecided",
                why=f"the run ended before {_list(missing)} of {case.target.name} could be checked",
                next_step="give it more time (--timeout), and run again",
                changes_mind="an answer from every layer",
                where="cut",
            )


def _is_due(case: Case, seen: Seen, result: LayerResult) -> bool:
    """Whether a layer would have been checked, given time; no port is asked for where none is named and some answer."""
    unasked = result.layer == "port" and case.target.port is None and seen.why != ""
    return result.layer in _wanted(case) and not unasked


def _wanted(case: Case) -> frozenset[LayerName]:
    """Layers that are checked of any such target, given time."""
    url = case.target.url or ""
    more: set[LayerName] = {"http"} if url else set()
    more |= {"tls"} if url.startswith("https:") else set()
    more |= {"model"} if signs.asks_model(case.target) else set()
    return frozenset({"path", "port", *more})


def _unrouted(case: Case) -> bool:
    return case.route is not None and case.route.error is not None


def _weighed(one: Finding, first: Found | None) -> Finding:
    """Our own lateness can make loss and delay; it makes no answer, no error and no lasting silence.

    Nor does it take back what is shown where most of what was measured is unspoiled.
    """
    if one.kind != "client-limited":
        return one
    spoiled, all_ = one.evidence.get("spoiled"), one.evidence.get("of")
    most = isinstance(spoiled, int) and isinstance(all_, int) and spoiled * 2 > all_
    counted = first is not None and first.finding.kind in COUNTED
    if counted and (most or (first is not None and first.finding.confidence != "shown")):
        return one
    return replace(one, severity="info", why=f"{one.why}; the layers do not stand on them")


def _found(ways: Sequence[Case]) -> Iterator[Found]:
    """What the rules of each layer find, from this machine outwards; near layers are asked once."""
    for row in TABLE:
        for case in ways[:1] if row.near else ways:
            for rule in row.rules:
                for one in rule(case):
                    yield Found(layer=row.layer, address=None if row.near else case.address, finding=one)


def _rows(ways: Sequence[Case], failing: Sequence[Found]) -> Iterator[tuple[LayerResult, Seen]]:
    """Each layer, of each address where that makes a difference."""
    for row in TABLE:
        for case in ways[:1] if row.near else ways:
            address = None if row.near else case.address
            mine = [one for one in failing if one.address in {None, address} and one.finding.severity != "info"]
            seen = row.judge(case)
            if row.layer == "model" and not seen.well and not seen.why and any(other.streams for other in ways):
                seen = replace(seen, why="the model was asked at another address")
            yield _result(row, case, seen, mine), seen


def _result(row: Row, case: Case, seen: Seen, failing: Sequence[Found]) -> LayerResult:
    """One layer of one address: failed, passed, or why it was not checked."""
    fault = next((one for one in failing if one.layer == row.layer), None)
    order = [each.layer for each in TABLE]
    before = next((one for one in failing if order.index(one.layer) < order.index(row.layer)), None)
    status: LayerStatus = "failed" if fault is not None else "passed" if seen.well else "not-checked"
    why, evidence, blamed = seen.why, seen.evidence, fault
    if fault is not None:
        why, evidence = fault.finding.why, fault.finding.evidence
    elif not seen.well:
        blamed = before
        why = why or (f"not reached: {before.layer} fails first" if before else "nothing was seen of it in this run")
    address = seen.about if row.near else case.address
    return LayerResult(
        target=case.target.name,
        vantage=case.vantage,
        outcome="ok" if blamed is None else OUTCOMES.get(blamed.finding.kind, "degraded"),
        address=address,
        family=None if address is None else family_of(address),
        protocol=row.protocol,
        port=case.target.port if row.protocol == "tcp" else None,
        started_at=started(seen.samples),
        finished_at=finished(seen.samples),
        client=client(checks(seen.samples)),
        layer=row.layer,
        status=status,
        evidence=evidence,
        why=why,
    )


def _excluded(rows: Sequence[tuple[LayerResult, Seen]]) -> Iterator[FindingKind]:
    """Kinds that a layer excludes which passed at every address, as far as each of them excludes it."""
    for layer in dict.fromkeys(result.layer for result, _ in rows):
        its = [(result, seen) for result, seen in rows if result.layer == layer]
        checked = [seen for result, seen in its if result.status == "passed"]
        if not checked or len(checked) < len(its):
            continue
        for kind in checked[0].rules_out:
            if all(kind in seen.rules_out for seen in checked):
                yield kind


def _sentence(results: Sequence[LayerResult], first: Found | None) -> str:
    """Which layer fails first, and which passed before it."""
    if not results:
        return ""
    passed = [one.layer for one in results if one.status == "passed"]
    if first is None:
        return f"Every layer that was checked passed: {_list(passed)}." if passed else ""
    order = [row.layer for row in TABLE]
    before = [layer for layer in passed if order.index(layer) < order.index(first.layer)]
    several = len({one.address for one in results if one.layer == "path"}) > 1
    where = f" (of {first.address})" if first.address is not None and several else ""
    return f"The first layer that fails is {first.layer}{where}" + (f"; {_list(before)} passed." if before else ".")


def _list(layers: Sequence[LayerName]) -> str:
    *others, last = dict.fromkeys(layers)
    return f"{', '.join(others)} and {last}" if others else last
