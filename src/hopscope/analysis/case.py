"""Everything known about one target at one address from one vantage: what each rule of judging is given."""

from msgspec import Struct
from msgspec.structs import replace

from hopscope.analysis import reach
from hopscope.analysis import stream as streaming
from hopscope.analysis.path import NOTHING, Count, LossAlong, Step, arrived, count, loss_along, steps
from hopscope.analysis.stream import StreamView
from hopscope.analysis.views import HttpView, PathView, SeriesView, lookups, paths, requests, routes, series
from hopscope.model.plan import Protocol, Site, Target
from hopscope.model.record import Named, Resolved, Routed
from hopscope.model.sample import Book


class PathCase(Struct, frozen=True, kw_only=True):
    """A path with what was judged of it."""

    view: PathView
    along: LossAlong
    steps: tuple[Step, ...]


class Case(Struct, frozen=True, kw_only=True):
    """One target, vantage and address (`None` when the name gave none).

    `route` is how this machine would send there, `default_route` where it sends what it knows no better way for;
    `gateway` is the series to the first router, `site` where the vantage stands. `elsewhere`: another address of the
    target has a route from here.
    """

    target: Target
    vantage: str
    address: str | None
    resolved: Resolved | None
    series: tuple[SeriesView, ...] = ()
    paths: tuple[PathCase, ...] = ()
    requests: tuple[HttpView, ...] = ()
    streams: tuple[StreamView, ...] = ()
    named: dict[str, list[Named]] = {}
    route: Routed | None = None
    default_route: Routed | None = None
    gateway: SeriesView | None = None
    elsewhere: bool = False
    site: Site | None = None

    @property
    def layered(self) -> bool:
        """Whether the target is diagnosed layer by layer."""
        return "layer" in self.target.probes

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
        connected = any(exchange.connected is not None for view in self.exchanged for exchange in view.exchanges)
        return reached or connected or any(reach.answers(view) for view in self.series) or self.served

    def other_than(self, protocol: Protocol) -> Count:
        """Counts of the first series by another protocol that the target answers."""
        return other_than(protocol, self.series)

    def least_rtt(self, port: int | None) -> int | None:
        """The least kernel-sampled delay of TCP series to a port, ns (method 5.2)."""
        probes = (one.probe for view in self.of("tcp") if view.who.port == port for one in view.counted)
        return min((one.rtt_ns for one in probes if one.rtt_ns is not None and one.clock == "tcp-info"), default=None)

    @property
    def exchanged(self) -> tuple[HttpView, ...]:
        """Every request, those whose answer was a stream too."""
        streamed = (
            HttpView(who=one.who, url=one.url, samples=one.samples, exchanges=[each.exchange for each in one.streams])
            for one in self.streams
        )
        return (*self.requests, *streamed)

    @property
    def served(self) -> bool:
        """Whether any request got an answer."""
        return any(exchange.status is not None for view in self.exchanged for exchange in view.exchanges)

    @property
    def end_series(self) -> SeriesView | None:
        """The end-to-end series that decides: ICMP where it is answered, else the first that is."""
        answered = [view for view in self.series if reach.answers(view)]
        return next((view for view in answered if view.who.protocol == "icmp"), next(iter(answered), None))


class _Views(Struct):
    """Everything asked of one target from one vantage."""

    series: list[SeriesView] = []
    paths: list[PathView] = []
    requests: list[HttpView] = []
    streams: list[StreamView] = []
    routes: dict[str, Routed] = {}
    default_route: Routed | None = None
    gateways: dict[str, SeriesView] = {}

    def addresses(self) -> dict[str, None]:
        """Addresses asked, in order."""
        asked = [view.who for view in self.series] + [view.who for view in self.paths]
        asked += [view.who for view in self.requests] + [view.who for view in self.streams]
        return dict.fromkeys((*self.routes, *(who.address for who in asked)))

    def gateway(self, route: Routed | None) -> SeriesView | None:
        """The series to the first router of a route."""
        return None if route is None or route.gateway is None else self.gateways.get(route.gateway)


Pair = tuple[str, str]


def cases(book: Book) -> list[Case]:
    """All cases of a book, in the order of targets in the plan."""
    if book.plan is None:
        return []
    found: list[Case] = []
    grouped = _grouped(book)
    named = {(task.target, task.vantage): sample.resolved for task, sample in lookups(book)}
    for target in book.plan.targets:
        for vantage in book.plan.vantages:
            pair = (target.name, vantage.name)
            resolved = named.get(pair)
            views = grouped.get(pair, _Views())
            nothing = Case(
                target=target, vantage=vantage.name, address=None, resolved=resolved, named=book.named,
                site=vantage.site, route=views.default_route, default_route=views.default_route,
                gateway=views.gateway(views.default_route),
            )  # fmt: skip
            found += [_at(nothing, views, address) for address in views.addresses()]
            if not views.addresses() and (resolved is not None or views.default_route is not None):
                found.append(nothing)
    return found


def _grouped(book: Book) -> dict[Pair, _Views]:
    """Views by target and vantage."""
    grouped: dict[Pair, _Views] = {}
    for one in series(book):
        grouped.setdefault((one.who.target, one.who.vantage), _Views()).series.append(one)
    for path in paths(book):
        grouped.setdefault((path.who.target, path.who.vantage), _Views()).paths.append(path)
    for request in requests(book):
        grouped.setdefault((request.who.target, request.who.vantage), _Views()).requests.append(request)
    for streamed in streaming.views(book):
        grouped.setdefault((streamed.who.target, streamed.who.vantage), _Views()).streams.append(streamed)
    for view in series(book, "gateway"):
        grouped.setdefault((view.who.target, view.who.vantage), _Views()).gateways[view.who.address] = view
    for task, routed in routes(book):
        views = grouped.setdefault((task.target, task.vantage), _Views())
        if task.address is None:
            views.default_route = routed
        else:
            views.routes[task.address] = routed
    return grouped


def _at(nothing: Case, views: _Views, address: str) -> Case:
    """The case of one address."""
    mine = tuple(view for view in views.series if view.who.address == address)
    route = views.routes.get(address)
    return replace(
        nothing,
        address=address,
        series=mine,
        paths=tuple(judged(view, mine) for view in views.paths if view.who.address == address),
        requests=tuple(view for view in views.requests if view.who.address == address),
        streams=tuple(view for view in views.streams if view.who.address == address),
        route=route,
        gateway=views.gateway(route),
        elsewhere=any(other != address and routed.error is None for other, routed in views.routes.items()),
    )


def judged(view: PathView, its_series: tuple[SeriesView, ...]) -> PathCase:
    """A path with loss and delay along it, the end-to-end series of its flow among the witnesses (method 4.2).

    Hops seen on flows of their own may lie on different paths: only the end is judged (method 3.6).
    """
    other = other_than(view.who.protocol, its_series)
    along = loss_along(view, end_count(view, its_series), other)
    if view.varies:
        end_alone = replace(along, limited=(), last_clean=None, first_lossy=None, p=None, decided=False)
        return PathCase(view=view, along=end_alone, steps=())
    return PathCase(view=view, along=along, steps=steps(view))


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
