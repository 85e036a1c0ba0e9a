"""Several runs → one comparison: what was asked of one target from one place is pooled, whichever run asked it.

Later runs go on where earlier ones ended: their sequence numbers follow with a gap, so that no variation is taken
across two runs. Where runs disagree on a target's limits the last one's hold, and that is said. A name that stands for
different hosts in two runs is refused: pooled they would be nobody.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from hopscope.analysis import judge
from hopscope.analysis.case import Pair, cases
from hopscope.analysis.compare import compared
from hopscope.analysis.faults import listed
from hopscope.errors import UsageError
from hopscope.model.plan import Budget, Plan, Target
from hopscope.model.record import TAPE_NUMBER, End, Failure, Named, Run
from hopscope.model.report import Report
from hopscope.model.sample import Book, Sample

GAP = 2
"""Between the sequence numbers of two runs, so that none are adjacent."""


class Pooled(Struct, frozen=True):
    """One book of several, the pairs of target and place that were to be measured, and what is to be said of each."""

    book: Book
    planned: frozenset[Pair]
    remarks: Mapping[str, tuple[str, ...]]


def report(pool: Pooled, *, tool_version: str) -> Report:
    """The comparison of a pool."""
    ordinary = judge.report(pool.book, tool_version=tool_version)
    return compared(ordinary, pool.book, cases(pool.book), planned=pool.planned, remarks=pool.remarks)


def pooled(books: Sequence[Book]) -> Pooled:
    """Put runs together, each with a plan, the oldest first whatever order they are given in.

    Raises UsageError where a name stands for two hosts, and for a run that is given twice: it would count double.
    """
    books = sorted(books, key=lambda book: book.run.at if book.run is not None else 0)
    _refuse_twice(books)
    plans = [book.plan for book in books if book.plan is not None]
    _refuse_two_hosts(plans)
    last = plans[-1]
    targets = {target.name: target for plan in plans for target in plan.targets}
    vantages = {vantage.name: vantage for plan in plans for vantage in plan.vantages}
    plan = replace(
        last,
        command="compare",
        targets=tuple(targets.values()),
        vantages=tuple(vantages.values()),
        quorum=min(last.quorum, len(vantages)),
    )
    book = Book(
        run=_run([book.run for book in books if book.run is not None]),
        plan=plan,
        samples=_samples(books),
        failures=[failure for book in books for failure in _failures(book, books)],
        named=_named(books),
        end=_end(books),
        unknown=sum(book.unknown for book in books),
        damaged=[number for book in books for number in book.damaged],
    )
    planned = frozenset((target.name, place.name) for one in plans for target in one.targets for place in one.vantages)
    return Pooled(book, planned, dict(_remarks(plans, plan)))


def narrowed(pool: Pooled, *, only: Sequence[str] = (), vantages: Sequence[str] = ()) -> Pooled:
    """The same pool for some targets and places, all where none is named. Raises UsageError for an unknown name."""
    plan = pool.book.plan
    if plan is None:
        return pool
    targets = tuple(one for one in plan.targets if not only or one.name in only)
    places = tuple(one for one in plan.vantages if not vantages or one.name in vantages)
    _refuse_unknown("target", only, [one.name for one in plan.targets])
    _refuse_unknown("vantage", vantages, [one.name for one in plan.vantages])
    chosen = replace(plan, targets=targets, vantages=places, quorum=min(plan.quorum, len(places)))
    asked: set[str | None] = {None, *(one.name for one in targets)}
    near: set[str | None] = {None, *(one.name for one in places)}
    failures = [one for one in pool.book.failures if one.target in asked and one.vantage in near]
    return Pooled(replace(pool.book, plan=chosen, failures=failures), pool.planned, pool.remarks)


def limited(pool: Pooled, name: str, budget: Budget) -> Pooled:
    """The same pool held against one budget, whatever its runs were held against."""
    plan = pool.book.plan
    if plan is None:
        return pool
    targets = tuple(replace(one, budget=budget, budget_name=name) for one in plan.targets)
    return Pooled(replace(pool.book, plan=replace(plan, targets=targets)), pool.planned, pool.remarks)


def _refuse_unknown(what: str, names: Sequence[str], known: Sequence[str]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        message = f"no {what} of these runs is named {listed(unknown)}"
        raise UsageError(message, f"they have: {listed(known)}")


def _refuse_twice(books: Sequence[Book]) -> None:
    for number, book in enumerate(books):
        if book.run is not None and any((other.run, other.plan) == (book.run, book.plan) for other in books[:number]):
            raise UsageError("one run is given twice", "give each run once: its samples would count double")


def _refuse_two_hosts(plans: Sequence[Plan]) -> None:
    seen: dict[str, Target] = {}
    for target in (target for plan in plans for target in plan.targets):
        before = seen.setdefault(target.name, target)
        if _asked(before) != _asked(target):
            message = f"{target.name} is {_asked(before)} in one run and {_asked(target)} in another"
            raise UsageError(message, "compare runs in which a name stands for one host, or give each its own name")


def _asked(target: Target) -> str:
    return target.url or (target.host if target.port is None else f"{target.host} port {target.port}")


def _run(runs: Sequence[Run]) -> Run | None:
    """The first line of the pool: begun with the first run, made by the last one's version."""
    if not runs:
        return None
    return Run(tape=TAPE_NUMBER, tool_version=runs[-1].tool_version, command="run", at=min(one.at for one in runs))


def _end(books: Sequence[Book]) -> End | None:
    """The end of the last; without it for every run, none."""
    ends = [book.end for book in books if book.end is not None]
    if len(ends) < len(books):
        return None
    return End(at=max(one.at for one in ends), partial=any(one.partial for one in ends))


def _samples(books: Sequence[Book]) -> dict[int, Sample]:
    """The samples of all runs, numbered anew; the first run's records stay as they are."""
    found: dict[int, Sample] = {}
    shift = 0
    for book in books:
        numbers = [one.seq for sample in book.samples.values() for one in sample.probes]
        for sample in book.samples.values():
            found[len(found)] = _shifted(sample, len(found), shift)
        shift += max(numbers, default=0) + GAP
    return found


def _shifted(sample: Sample, number: int, by: int) -> Sample:
    """A sample with its sequence numbers moved on."""
    if not by:
        return replace(sample, id=number)
    return replace(
        sample,
        id=number,
        probes=[replace(one, seq=one.seq + by) for one in sample.probes],
        extras=[replace(one, seq=one.seq + by) for one in sample.extras],
    )


def _failures(book: Book, books: Sequence[Book]) -> Iterator[Failure]:
    """A run's failures; a place that measured in another run has not failed, so that is told of nobody."""
    elsewhere = {
        sample.task.vantage
        for other in books
        if other is not book
        for sample in other.samples.values()
        if sample.probes or sample.exchanges or sample.streams
    }
    for failure in book.failures:
        if failure.target is None and failure.vantage in elsewhere:
            why = f"in one of the runs vantage {failure.vantage} measured nothing: {failure.why}"
            yield Failure(kind=failure.kind, why=why, advice=failure.advice)
        else:
            yield failure


def _named(books: Sequence[Book]) -> dict[str, list[Named]]:
    """What databases say of each address, each saying once."""
    found: dict[str, list[Named]] = {}
    for book in books:
        for address, names in book.named.items():
            mine = found.setdefault(address, [])
            mine += [one for one in names if one not in mine]
    return found


def _remarks(plans: Sequence[Plan], whole: Plan) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What is to be said of each target because the runs differ."""
    for target in whole.targets:
        mine = [(plan, one) for plan in plans for one in plan.targets if one.name == target.name]
        said = []
        if any((one.budget, one.critical) != (target.budget, target.critical) for _, one in mine):
            said.append("its limits differ between the runs: those of the last one hold")
        if len(mine) < len(plans):
            places = dict.fromkeys(place.name for plan, _ in mine for place in plan.vantages)
            said.append(f"in {len(mine)} of {len(plans)} runs only, from {listed(places)}")
        if said:
            yield target.name, tuple(said)
