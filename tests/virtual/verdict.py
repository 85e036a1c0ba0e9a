"""A report held against what its scenario expects: the answer is the list of what is wrong, empty when all is right."""

from collections.abc import Iterator

from hopscope.analysis.judge import report
from hopscope.model.limits import MS
from hopscope.model.plan import TraceTask
from hopscope.model.report import Finding, HttpResult, PingResult, Report, StreamResult, TraceResult
from hopscope.model.sample import Book
from virtual.running import Running
from virtual.scenario import Expect, Scenario, Wanted, wanted


def mistakes(scenario: Scenario, seed: int) -> list[str]:
    """What one run of a scenario gets wrong."""
    book = Running(scenario, seed).whole()
    return list(wrong(scenario.expect, book, report(book, tool_version="0")))


def wrong(expect: Expect, book: Book, got: Report) -> Iterator[str]:
    """Every way in which a report differs from what is expected."""
    if expect.status is not None and got.verdict.status != expect.status:
        yield f"status {got.verdict.status}, not {expect.status}"
    if got.partial != expect.partial:
        yield f"partial is {got.partial}"
    yield from _wrong_findings(expect, got)
    yield from (
        f"{part!r} is not in {got.verdict.summary!r}" for part in expect.says if part not in got.verdict.summary
    )
    for result in got.measured:
        match result:
            case PingResult():
                yield from _wrong_series(expect, result)
            case TraceResult():
                yield from _wrong_path(expect, result)
            case StreamResult():
                yield from _differs("outcome of stream", result.outcome, expect.outcomes.get("stream"))
            case HttpResult():
                yield from _differs("outcome of http", result.outcome, expect.outcomes.get("http"))
    yield from _wrong_tasks(expect, book)


def _wrong_findings(expect: Expect, got: Report) -> Iterator[str]:
    """Findings that are missing, and those that nobody expects."""
    left = list(got.verdict.findings)
    for text in expect.findings:
        found = next((one for one in left if any(_fits(wanted(part), one) for part in text.split(" or "))), None)
        if found is None:
            yield f"no finding {text!r}"
        else:
            left.remove(found)
    for one in left:
        if not any(_fits(wanted(text), one) for text in expect.may):
            segment = "" if one.segment is None else f" ({one.segment.from_.ttl},{one.segment.to.ttl}]"
            yield f"unexpected {one.id}{segment} {one.severity} {one.confidence}: {one.why}"


def _fits(want: Wanted, one: Finding) -> bool:
    """Whether a finding is the expected one."""
    near, far = (None, None) if one.segment is None else (one.segment.from_.ttl, one.segment.to.ttl)
    return (
        want.kind == one.kind
        and want.severity in {None, one.severity}
        and want.confidence in {None, one.confidence}
        and (want.where is None or one.id.rsplit("/", 1)[-1] == want.where)
        and (want.from_ttl is None or near in want.from_ttl)
        and (want.to_ttl is None or far in want.to_ttl)
    )


def _wrong_series(expect: Expect, result: PingResult) -> Iterator[str]:
    """Counts of a series, exact where the scenario says so."""
    name = result.protocol if result.port is None else f"{result.protocol}/{result.port}"
    yield from _differs(f"outcome of {name}", result.outcome, expect.outcomes.get(name))
    for field, value in expect.loss.get(name, {}).items():
        yield from _differs(f"{field} of {name}", getattr(result.loss, field), value)
    least, most = expect.sent.get(name, (0, result.loss.sent))
    if not least <= result.loss.sent <= most:
        yield f"{result.loss.sent} probes of {name}, not {least} to {most}"
    if result.loss.sent != result.loss.received + result.loss.lost:
        yield f"{name}: {result.loss.sent} sent, {result.loss.received} received, {result.loss.lost} lost"


def _wrong_path(expect: Expect, result: TraceResult) -> Iterator[str]:
    """Labels, end and counts of a path."""
    yield from _differs("outcome of trace", result.outcome, expect.outcomes.get("trace"))
    yield from _differs("reached", result.reached, expect.reached)
    yield from _differs("end.how", None if result.end is None else result.end.how, expect.end)
    yield from _differs("end.ttl", None if result.end is None else result.end.ttl, expect.end_ttl)
    yield from _differs("labels", tuple(hop.label for hop in result.hops), expect.labels)
    loss = result.end_to_end.loss
    for field, value in expect.loss.get("trace", {}).items():
        yield from _differs(f"{field} of the path's end", getattr(loss, field), value)


def _wrong_tasks(expect: Expect, book: Book) -> Iterator[str]:
    """How much was asked: rounds, confirmations and their rate."""
    tasks = [sample.task for sample in book.samples.values()]
    rounds = sum(task.rounds for task in tasks if isinstance(task, TraceTask) and task.confirm is None)
    if expect.rounds is not None and not expect.rounds[0] <= rounds <= expect.rounds[1]:
        yield f"{rounds} rounds, not {expect.rounds[0]} to {expect.rounds[1]}"
    confirms = [task for task in tasks if isinstance(task, TraceTask) and task.confirm is not None]
    yield from _differs("confirmations", len(confirms), expect.confirms)
    if expect.confirm_interval_ms is not None:
        low, high = expect.confirm_interval_ms
        for one in confirms:
            if not low <= one.interval_ns / MS <= high:
                yield f"hop {one.confirm} asked again every {one.interval_ns / MS} ms, not {low} to {high}"


def _differs(name: str, got: object, expected: object) -> Iterator[str]:
    if expected is not None and got != expected:
        yield f"{name} is {got}, not {expected}"
