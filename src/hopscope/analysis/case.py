"""Everything known about one target at one address from one vantage: what each rule of judging is given."""

from msgspec import Struct

from hopscope.analysis import reach
from hopscope.analysis.path import NOTHING, Count, LossAlong, Step, arrived, count, loss_along, steps
from hopscope.analysis.views import HttpView, PathView, SeriesView, lookups, paths, requests, series
from hopscope.model.plan import Protocol, Target
from hopscope.model.record import Named, Resolved
from hopscope.model.sample import Book


class PathCase(Struct, frozen=True, kw_only=True):
    """A path with what was judged of it."""

    view: PathView
    along: LossAlong
    steps: tuple[Step, ...]


class Case(Struct, frozen=True, kw_only=True):
    """One target, vantage and address (`None` when the name gave none)."""

    target: Target
    vantage: str
    address: str | None
    resolved: Resolved | None
    series: tuple[SeriesView, ...] = ()
    paths: tuple[PathCase, ...] = ()
    requests: tuple[HttpView, ...] = ()
    named: dict[str, list[Named]] = {}

    def of(self, protocol: Protocol) -> tuple[SeriesView, ...]:
        """Series of one protocol."""
        return tuple(view for view in self.series if view.who.protocol == protocol)

    @property
    def nameless(self) -> bool:
        """Whether the name was looked up and gave no address."""
        return self.address is None and self.resolved is not None and not self.resolved.addresses

    @property
    def answering(self) -> bool:
        """Whether the target answered anything at all as it should."""
        reached = any(arrived(one, path.view.who.family) for path in self.paths for one in path.view.all_probes())
        connected = any(exchange.connected is not None for view in self.requests for exchange in view.exchanges)
        return reached or connected or any(reach.answers(view) for view in self.series) or self.served

    def other_than(self, protocol: Protocol) -> Count:
        """Counts of the first series by another protocol that the target answers."""
        return other_than(protocol, self.series)

    def least_rtt(self, port: int | None) -> int | None:
        """The least kernel-sampled delay of TCP series to a port, ns (method 5.2)."""
        probes = (one.probe for view in self.of("tcp") if view.who.port == port for one in view.counted)
        return min((one.rtt_ns for one in probes if one.rtt_ns is not None and one.clock == "tcp-info"), default=None)

    @property
    def served(self) -> bool:
        """Whether any request got an answer."""
        return any(exchange.status is not None for view in self.requests for exchange in view.exchanges)

    @property
    def end_series(self) -> SeriesView | None:
        """The end-to-end series that decides: ICMP where it is answered, else the first that is."""
        answered = [view for view in self.series if reach.answers(view)]
        return next((view for view in answered if view.who.protocol == "icmp"), next(iter(answered), None))


def cases(book: Book) -> list[Case]:
    """All cases of a book, in the order of targets in the plan."""
    if book.plan is None:
        return []
    found: list[Case] = []
    all_series, all_paths, all_requests = series(book), paths(book), requests(book)
    for target in book.plan.targets:
        for vantage in book.plan.vantages:
            resolved = _resolved(book, target.name, vantage.name)
            mine = (target.name, vantage.name)
            its_series = [view for view in all_series if (view.who.target, view.who.vantage) == mine]
            its_paths = [view for view in all_paths if (view.who.target, view.who.vantage) == mine]
            its_requests = [view for view in all_requests if (view.who.target, view.who.vantage) == mine]
            asked = [view.who for view in its_series] + [view.who for view in its_paths]
            addresses = dict.fromkeys(who.address for who in (*asked, *(view.who for view in its_requests)))
            found += [
                _case(book, target, vantage.name, address, resolved, its_series, its_paths, its_requests)
                for address in addresses
            ]
            if not addresses and resolved is not None:
                found.append(Case(target=target, vantage=vantage.name, address=None, resolved=resolved))
    return found


def _resolved(book: Book, target: str, vantage: str) -> Resolved | None:
    """The name lookup of a target at a vantage."""
    return next(
        (sample.resolved for task, sample in lookups(book) if (task.target, task.vantage) == (target, vantage)), None
    )


def _case(
    book: Book,
    target: Target,
    vantage: str,
    address: str,
    resolved: Resolved | None,
    its_series: list[SeriesView],
    its_paths: list[PathView],
    its_requests: list[HttpView],
) -> Case:
    """The case of one address."""
    mine = tuple(view for view in its_series if view.who.address == address)
    return Case(
        target=target,
        vantage=vantage,
        address=address,
        resolved=resolved,
        series=mine,
        paths=tuple(judged(view, mine) for view in its_paths if view.who.address == address),
        requests=tuple(view for view in its_requests if view.who.address == address),
        named=book.named,
    )


def judged(view: PathView, its_series: tuple[SeriesView, ...]) -> PathCase:
    """A path with loss and delay along it, the end-to-end series of its flow among the witnesses (method 4.2)."""
    other = other_than(view.who.protocol, its_series)
    return PathCase(view=view, along=loss_along(view, end_count(view, its_series), other), steps=steps(view))


def other_than(protocol: Protocol, its_series: tuple[SeriesView, ...]) -> Count:
    """Counts of the first series by another protocol that the target answers."""
    others = (view for view in its_series if view.who.protocol != protocol and reach.answers(view))
    return next((count(view.counted) for view in others), NOTHING)


def end_count(view: PathView, its_series: tuple[SeriesView, ...]) -> Count:
    """Counts of the end-to-end series on the path's flow; where that protocol is silent, of another that answers."""
    for one in its_series:
        if one.who.protocol == view.who.protocol and reach.answers(one):
            return count([fated for fated in one.counted if fated.probe.flow == view.flow])
    for one in its_series:
        if reach.answers(one):
            return count(one.counted)
    return NOTHING
