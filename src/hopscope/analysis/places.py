"""How each place did: it failed, or its way out did, or it never answered (method 6.1, 6.2, 6.5)."""

from collections.abc import Iterator, Mapping, Sequence

from hopscope.model.plan import Vantage
from hopscope.model.report import Finding, Owner, Severity, VantageReport
from hopscope.model.sample import Book, Sample

UPLINK_STEP = "mend the way out of that place first: cable, Wi-Fi, gateway, provider; then run again"
MUTE_STEP = "try it by hand: hopscope vantage test; or give it more time: --timeout"


def faults(book: Book, accused: Mapping[str, str], silent: Sequence[str]) -> Iterator[Finding]:
    """Vantages that failed: a warning while the quorum holds, unknown below it (method 6.2, 6.5)."""
    if book.plan is None:
        return
    told = {name: (f"no target is judged from vantage {name}: {why}", UPLINK_STEP) for name, why in accused.items()}
    for failure in book.failures:
        if failure.vantage is not None and failure.target is None:
            why = f"vantage {failure.vantage} measured nothing: {failure.why}"
            told[failure.vantage] = why, failure.advice or "see the failures"
    for name in silent:
        told.setdefault(name, (f"vantage {name} measured nothing: it did not answer before the time was up", MUTE_STEP))
    usable = len(book.plan.vantages) - len(told)
    severity: Severity = "warning" if usable >= book.plan.quorum else "unknown"
    for name, (why, next_step) in told.items():
        yield Finding(
            id=f"vantage-fault/{name}",
            kind="vantage-fault",
            severity=severity,
            confidence="shown",
            target=None,
            vantages=(name,),
            segment=None,
            direction="either",
            owner=Owner(role="you"),
            why=why,
            evidence={"usable": usable, "quorum": book.plan.quorum},
            changes_mind="results from this vantage",
            next_step=next_step,
        )


def silent_places(book: Book) -> list[str]:
    """Far places that were asked for something, and of which nothing ever came before a run was cut short."""
    if book.plan is None or (book.end is not None and not book.end.partial):
        return []
    asked = {sample.task.vantage for sample in book.samples.values()}
    heard = {sample.task.vantage for sample in book.samples.values() if _told_anything(sample)}
    return [one.name for one in book.plan.vantages if one.kind != "local" and one.name in asked - heard]


def _told_anything(sample: Sample) -> bool:
    came = sample.probes or sample.exchanges or sample.streams or sample.extras
    return bool(came) or sample.resolved is not None or sample.routed is not None


def reported(book: Book, vantage: Vantage, accused: Mapping[str, str], silent: Sequence[str]) -> VantageReport:
    """How a vantage did; `controls` are the hosts that vouch for its way out."""
    failure = next((one for one in book.failures if one.vantage == vantage.name and one.target is None), None)
    controls = book.plan.controls if book.plan is not None else ()
    if failure is None and vantage.name in silent:
        return VantageReport(
            name=vantage.name, kind=vantage.kind, site=vantage.site, outcome="vantage-failed",
            why="it did not answer before the time was up", controls=controls,
        )  # fmt: skip
    if failure is None and vantage.name in accused:
        return VantageReport(
            name=vantage.name, kind=vantage.kind, site=vantage.site, outcome="vantage-failed",
            why=f"uplink: {accused[vantage.name]}", controls=controls,
        )  # fmt: skip
    return VantageReport(
        name=vantage.name,
        kind=vantage.kind,
        site=vantage.site,
        outcome="ok" if failure is None else "skipped" if failure.kind == "skipped" else "vantage-failed",
        why=None if failure is None else failure.why,
        controls=controls,
    )
