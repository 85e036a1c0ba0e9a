"""Whether a place may speak of targets at all: its own way out is judged first (method 6.5).

A gateway that answers and loses accuses its place, unless a target beyond it loses clearly less: then it limits its
answers. One or two bad targets never accuse the place, and one that answers cleanly acquits it; else all controls bad,
or every one of three or more targets bad at once do, the latter only where nothing beyond the gateway was seen to
answer cleanly: whatever the targets share may lie farther on.
"""

from collections.abc import Iterator, Sequence

from hopscope.analysis import reach
from hopscope.analysis.case import Case
from hopscope.analysis.path import count, excuses, shows_loss
from hopscope.analysis.say import count as how_many
from hopscope.analysis.say import share
from hopscope.analysis.views import SeriesView, lookups, series
from hopscope.model.sample import Book

MEASURING = frozenset({"run", "check", "compare"})
"""Commands that judge targets; the others say what they saw of what they were asked."""
LEAST_TARGETS = 3
BEYOND_GATEWAY = 2
"""The first TTL that is not the gateway's."""


def accused(book: Book, cases: Sequence[Case]) -> dict[str, str]:
    """Places whose own way out failed, each with the reason."""
    if book.plan is None or book.plan.command not in MEASURING:
        return {}
    gateways, controls = series(book, "gateway"), series(book, "control")
    found: dict[str, str] = {}
    for vantage in book.plan.vantages:
        mine = [case for case in cases if case.vantage == vantage.name]
        reasons = [*_gateway([view for view in gateways if view.who.vantage == vantage.name], mine)]
        if not any(_clean(case) for case in mine):
            reasons += _controls(book, vantage.name, [view for view in controls if view.who.vantage == vantage.name])
            reasons += _all_targets(mine, len(book.plan.targets))
        if reasons:
            found[vantage.name] = reasons[0]
    return found


def _clean(case: Case) -> bool:
    """Whether a target answers, and no series of it shows loss: the way out cannot be bad."""
    answered = case.served or any(reach.answers(view) for view in case.series)
    return answered and not any(reach.answers(view) and shows_loss(count(view.counted)) for view in case.series)


def _gateway(views: Sequence[SeriesView], mine: Sequence[Case]) -> Iterator[str]:
    """A gateway that answers, and loses; a silent one is not lossy, and one that only limits its answers neither."""
    beyond = [count(view.counted) for case in mine for view in case.series if reach.answers(view)]
    for view in views:
        seen = count(view.counted)
        if reach.answers(view) and shows_loss(seen) and not any(excuses(one, seen) for one in beyond):
            yield f"its gateway {view.who.address} loses {share(seen.lost, seen.sent)} of the echoes"


def _controls(book: Book, vantage: str, views: Sequence[SeriesView]) -> Iterator[str]:
    """Hosts that are known to be well, all of them bad: without an address, without an answer, or lossy."""
    asked = [view for view in views if view.counted]
    nameless = [
        task.target
        for task, sample in lookups(book, "control")
        if task.vantage == vantage and sample.resolved is not None and not sample.resolved.addresses
    ]
    if (asked or nameless) and all(_bad(view) for view in asked):
        names = ", ".join(dict.fromkeys((*nameless, *(view.who.target for view in asked))))
        yield f"the controls fail too ({names}), and they are known to be well"


def _bad(view: SeriesView) -> bool:
    return not (reach.answers(view) or reach.refusing(view)) or shows_loss(count(view.counted))


def _all_targets(mine: Sequence[Case], planned: int) -> Iterator[str]:
    """Every one of three or more targets bad at once, with nothing clean beyond the gateway."""
    names = {case.target.name for case in mine}
    if len(names) < max(LEAST_TARGETS, planned) or any(_works(case) for case in mine):
        return
    yield f"all of {how_many(len(names), 'target')} are bad at once, and nothing beyond the gateway answers cleanly"


def _works(case: Case) -> bool:
    """Whether anything that was measured says that the way out is fine."""
    if case.address is None:
        return case.resolved is None or not reach.unasked(case.resolved.error)
    tried = any(view.counted for view in case.series) or any(view.exchanges for view in case.exchanged)
    if not tried or case.served or any(reach.refusing(view) for view in case.series):
        return True
    witnesses = (witness for path in case.paths for witness in path.along.witnesses)
    return any(
        witness.ttl >= BEYOND_GATEWAY and witness.count.sent > witness.count.lost and not shows_loss(witness.count)
        for witness in witnesses
    )
