"""Book → report: every rule asked of every case, then the status and the sentence a person reads first.

Pure and total: the same book gives the same report, to the byte, whether it is still in memory or read from a tape.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from hopscope.analysis import layers, places, quorum, uplink
from hopscope.analysis import stream as streaming
from hopscope.analysis.alike import Alike, grouped
from hopscope.analysis.alike import places as places_of
from hopscope.analysis.case import Case, cases
from hopscope.analysis.compare import compared
from hopscope.analysis.instants import iso_or_none
from hopscope.analysis.nameless import results_without_address
from hopscope.analysis.results import delay_of, http_result, loss_of, ping_result, trace_result
from hopscope.analysis.rules.find import finding
from hopscope.analysis.rules.layer import path_loop
from hopscope.analysis.rules.path import accept_limited, lossy_from, replies_limited, slow_from
from hopscope.analysis.rules.place import doubtful_place
from hopscope.analysis.rules.reach import dns_failed, filtered, http_error, refused, tls_failed, unreachable
from hopscope.analysis.rules.server import client_limited, first_token_slow, not_enough_data, over_budget, server_slow
from hopscope.analysis.say import count as how_many
from hopscope.analysis.say import ms, ratio
from hopscope.model.plan import Plan, Target
from hopscope.model.report import (
    FailureReport,
    Finding,
    FindingKind,
    Report,
    Result,
    Severity,
    Status,
    TargetReport,
    Verdict,
)
from hopscope.model.sample import Book

Rule = Callable[[Case], Iterator[Finding]]

RULES: Final[tuple[Rule, ...]] = (
    dns_failed, unreachable, refused, filtered, tls_failed, http_error, path_loop, lossy_from, accept_limited,
    server_slow, first_token_slow, over_budget, replies_limited, slow_from, doubtful_place, client_limited,
    not_enough_data,
)  # fmt: skip

ORDER: Final[dict[Severity, int]] = {"info": 0, "warning": 1, "unknown": 2, "critical": 3}
AREAS: Final[dict[FindingKind, str]] = {
    "interface-fault": "This machine",
    "dns-failed": "Name",
    "dns-slow": "Name",
    "unreachable": "Network",
    "admin-prohibited": "Network",
    "path-loop": "Network",
    "family-broken": "Network",
    "filtered": "Firewall",
    "refused": "Server",
    "tls-failed": "Server",
    "certificate-expiring": "Server",
    "http-error": "Server",
    "server-slow": "Server",
    "accept-limited": "Server",
    "lossy-from": "Network",
    "slow-from": "Network",
    "over-budget": "Budget",
    "doubtful-place": "Place",
    "client-limited": "This machine",
    "vantage-fault": "Vantage",
    "not-enough-data": "Unknown",
}
SENTENCES = 3


def report(book: Book, *, tool_version: str, failures: Sequence[FailureReport] = ()) -> Report:
    """The report of a book; `failures` are those that did not come from its records (a damaged tape, say)."""
    all_cases = cases(book)
    diagnosis = layers.diagnose(all_cases, cut=book.end is None or book.end.partial)
    accused = {} if diagnosis.results else uplink.accused(book, all_cases)
    found_cases = [case for case in all_cases if case.vantage not in accused]
    mute = places.silent_places(book)
    findings = _judge(book, found_cases, accused, mute, diagnosis)
    run, plan = book.run, book.plan
    made = Report(
        tool_version=run.tool_version if run is not None else tool_version,
        command=run.command if run is not None else "report",
        started_at=iso_or_none(run.at if run is not None else None),
        finished_at=iso_or_none(book.end.at if book.end is not None else None),
        partial=book.end is None or book.end.partial,
        vantages=tuple(places.reported(book, vantage, accused, mute) for vantage in plan.vantages)
        if plan is not None
        else (),
        targets=tuple(_targets(plan, found_cases, findings)) if plan is not None else (),
        verdict=Verdict(
            status=_status(findings),
            summary=f"{_summary(plan, found_cases, findings)} {diagnosis.sentence}".strip(),
            findings=tuple(findings),
        ),
        results=(*diagnosis.results, *_results(book, all_cases)),
        failures=(*_failures(book), *failures),
        cause=diagnosis.cause,
        ruled_out=diagnosis.ruled_out,
    )
    return compared(made, book, all_cases) if made.command == "compare" else made


def _judge(
    book: Book,
    found_cases: Sequence[Case],
    accused: Mapping[str, str],
    mute: Sequence[str],
    diagnosis: layers.Diagnosis,
) -> list[Finding]:
    """Every finding, the worst first; the order of the plan within one severity."""
    findings = [one for rule in RULES for case in found_cases if not case.layered for one in rule(case)]
    findings += diagnosis.findings
    findings += places.faults(book, accused, mute)
    findings += _unmeasured(book, found_cases, findings, accused, mute)
    return sorted(quorum.held_back(findings), key=_badness, reverse=True)


def _badness(one: Finding) -> int:
    return ORDER[one.severity]


def _unmeasured(
    book: Book,
    found_cases: Sequence[Case],
    findings: Sequence[Finding],
    accused: Mapping[str, str],
    mute: Sequence[str],
) -> Iterator[Finding]:
    """Targets of which nothing is known, good or bad: unknown, never "ok"."""
    if book.plan is None:
        return
    by_target = _by_target(found_cases)
    worse = {one.target for one in findings if ORDER[one.severity] > 0}
    failed = {failure.vantage for failure in book.failures if failure.target is None} | {*mute}
    nowhere = all(vantage.name in failed for vantage in book.plan.vantages)
    usual = "no place could judge it" if accused else "no place could measure" if nowhere else "the run ended first"
    for target in book.plan.targets:
        mine = by_target.get(target.name, [])
        if target.name in worse:
            continue
        why = next((failure.why for failure in book.failures if failure.target == target.name), usual)
        if not any(case.answering for case in mine):
            here = next((vantage.name for vantage in book.plan.vantages), "")
            case = mine[0] if mine else Case(target=target, vantage=here, address=None, resolved=None)
            yield _not_measured(case, f"{target.name} was not measured: {why}")
            continue
        for case in mine:
            for view in case.exchanged:
                if not view.exchanges:
                    yield _not_measured(case, f"{view.url} was not measured: {why}")


def _by_target(found_cases: Sequence[Case]) -> dict[str, list[Case]]:
    """Cases by the name of their target."""
    grouped: dict[str, list[Case]] = {}
    for case in found_cases:
        grouped.setdefault(case.target.name, []).append(case)
    return grouped


def _not_measured(case: Case, why: str) -> Finding:
    """Something that was asked for and of which nothing is known."""
    return finding(
        case,
        "not-enough-data",
        "unknown",
        confidence="undecided",
        why=why,
        next_step="see the failures, then run again",
        changes_mind="any answer",
    )


def _status(findings: Sequence[Finding]) -> Status:
    """The worst severity; info counts as ok."""
    worst: Severity = max((one.severity for one in findings), key=ORDER.__getitem__, default="info")
    return "ok" if worst == "info" else worst


def _targets(plan: Plan, found_cases: Sequence[Case], findings: Sequence[Finding]) -> Iterator[TargetReport]:
    """Each target's status and sentence."""
    by_target = _by_target(found_cases)
    found: dict[str | None, list[Finding]] = {}
    for one in findings:
        found.setdefault(one.target, []).append(one)
    too_few = quorum.faults(findings)
    for target in plan.targets:
        mine = found.get(target.name, [])
        status = _status(mine)
        summary = mine[0].why if status != "ok" else _well(target, by_target.get(target.name, []))
        yield quorum.withheld(TargetReport(name=target.name, status=status, summary=summary), too_few)


def _well(target: Target, found_cases: Sequence[Case]) -> str:
    """The sentence of a target without a finding above info."""
    case = next((one for one in found_cases if one.target.name == target.name and one.answering), None)
    if case is None:
        return "unknown"
    parts = []
    view = case.end_series
    if view is not None:
        counted = view.counted
        delay, loss = delay_of(counted), loss_of(counted)
        lost = f"no loss in {loss.sent}" if not loss.lost else f"loss {ratio(loss.ratio)} of {loss.sent}"
        parts.append(f"round trip {ms(delay.p50_ms)} (median, {view.who.protocol}), {lost}")
    for path in case.paths if view is None else ():
        result = trace_result(path.view, path.along, path.steps, case.named)
        end = result.end_to_end
        if not end.loss.sent:
            continue
        lost = (
            f"no loss in {end.loss.sent}" if not end.loss.lost else f"loss {ratio(end.loss.ratio)} of {end.loss.sent}"
        )
        parts.append(
            f"reached after {how_many(len(result.hops), 'hop')}, round trip {ms(end.delay.p50_ms)} (median), {lost}"
        )
    for one in case.requests:
        summary = http_result(one, case.least_rtt(one.who.port)).summary
        if summary.server.p50_ms is not None:
            parts.append(f"server {ms(summary.server.p50_ms)}")
    for streamed in case.streams:
        seen = streaming.summary(streamed.streams, case.least_rtt(streamed.who.port))
        parts.append(f"first token after {ms(seen.ttft.p50_ms)}, {ms(seen.ttft_server.p50_ms)} of it the server's")
    return "; ".join(parts) or "answers"


def _summary(plan: Plan | None, found_cases: Sequence[Case], findings: Sequence[Finding]) -> str:
    """The verdict in a sentence or a few: what is wrong, network or server, or that all is well."""
    bad = [one for one in findings if ORDER[one.severity] > 0]
    if plan is None:
        return "Nothing was measured: this tape has no plan."
    if not bad:
        if len(plan.targets) == 1:
            return f"{plan.targets[0].name} is well: {_well(plan.targets[0], found_cases)}."
        return f"All {len(plan.targets)} targets are well."
    groups = grouped(bad)
    sentences = quorum.sentences(findings, plan)
    sentences += [f"{AREAS.get(group[0].kind, 'Network')}: {_named(group, plan)}." for group in groups[:SENTENCES]]
    if len(groups) > SENTENCES:
        sentences.append(f"And {how_many(len(groups) - SENTENCES, 'finding')} more.")
    well = len(plan.targets) - len({one.target for one in bad if one.target is not None})
    if well and len(plan.targets) > 1 and not quorum.is_missed(findings):
        sentences.append(f"{well} of {len(plan.targets)} targets {'is' if well == 1 else 'are'} well.")
    return " ".join(sentences)


def _named(group: Alike, plan: Plan) -> str:
    """A group's first sentence, with its target in front where there are several, and its places behind."""
    one = group[0]
    prefix = f"{one.target} – " if one.target is not None and len(plan.targets) > 1 else ""
    seen_from = places_of(group)
    several = len(plan.vantages) > 1 and one.target is not None
    first, *others = seen_from or ("",)
    also = f"; likewise from {' and '.join(others)}" if others else ""
    return prefix + one.why + (f" (from {first}{also})" if several else "")


def _failures(book: Book) -> Iterator[FailureReport]:
    """What was not measured, from the records and from the tape itself."""
    for failure in book.failures:
        yield FailureReport(
            kind=failure.kind, target=failure.target, vantage=failure.vantage, why=failure.why, advice=failure.advice
        )
    if book.run is None and not book.samples:
        yield _skipped("the tape is empty", "run again; nothing had been recorded")
    if book.damaged:
        where = ", ".join(str(number) for number in book.damaged)
        yield _skipped(f"damaged lines of the tape were left out: {where}", "the rest is reported as it stands")
    if book.unknown:
        yield _skipped(
            f"{how_many(book.unknown, 'record')} of a kind unknown to this version left out", "upgrade hopscope"
        )


def _skipped(why: str, advice: str) -> FailureReport:
    return FailureReport(kind="skipped", target=None, vantage=None, why=why, advice=advice)


def _results(book: Book, found_cases: Sequence[Case]) -> Iterator[Result]:
    """One result for each task, vantage and address tried."""
    for case in found_cases:
        if case.address is None:
            if case.nameless:
                yield from results_without_address(case)
            continue
        for view in case.series:
            yield ping_result(view)
        for path in case.paths:
            yield trace_result(path.view, path.along, path.steps, book.named)
        for streamed in case.streams:
            yield streaming.result(streamed, case.least_rtt(streamed.who.port))
        for one in case.requests:
            yield http_result(one, case.least_rtt(one.who.port))
