"""Who on the way said that a packet goes no farther, or answered last, and whose that router is (method 3.4, 4.7)."""

from collections.abc import Iterator

from msgspec import Struct

from hopscope.analysis.case import Case, PathCase
from hopscope.analysis.path import ANSWERED, arrived, distance, responder
from hopscope.analysis.reach import PROHIBITED
from hopscope.analysis.rules.find import is_access, name_of
from hopscope.analysis.say import hop
from hopscope.analysis.views import Fated
from hopscope.model.plan import Family, family_of
from hopscope.model.report import Owner

GATEWAY_TTL = 1
NO_ROUTE: dict[Family, frozenset[int]] = {4: frozenset({0, 6, 11}), 6: frozenset({0})}
NO_HOST: dict[Family, frozenset[int]] = {4: frozenset({1, 7, 12}), 6: frozenset({3})}
NO_PORT: dict[Family, int] = {4: 3, 6: 4}
"""Unreachable codes (RFC 792, RFC 1122 §3.2.2.1, RFC 1812 §5.2.7.1, RFC 4443 §3.1)."""


class Speaker(Struct, frozen=True, kw_only=True):
    """Who spoke: a router, the target (`address` is then its own), or our own system, which says `why`."""

    name: str
    address: str | None
    ttl: int | None
    family: Family
    code: int | None = None
    why: str | None = None
    ours: bool = False

    @property
    def prohibits(self) -> bool:
        """Whether it says "administratively prohibited"."""
        return self.code in PROHIBITED[self.family]

    @property
    def host_missing(self) -> bool:
        """Whether it stands next to the target and gets no answer from it."""
        return self.code in NO_HOST[self.family] or self.ours


def words_of(said: Speaker) -> str:
    """What an unreachable says."""
    if said.why is not None:
        return said.why
    number = "" if said.code is None else f" (ICMP code {said.code})"
    if said.prohibits:
        return f'"administratively prohibited"{number}'
    if said.code in NO_HOST[said.family]:
        return f'"host unreachable"{number}'
    if said.code in NO_ROUTE[said.family]:
        return f'"network unreachable"{number}'
    return f'"port unreachable"{number}' if said.code == NO_PORT[said.family] else f'"unreachable"{number}'


def speaker(case: Case) -> Speaker | None:
    """Who says that the target cannot be reached: in a series, else in a trace; else why nothing could be sent."""
    probes = [one for view in case.series for one in view.counted]
    probes += [one for path in case.paths for one in path.view.all_probes()]
    return spoken(case, probes)


def spoken(case: Case, probes: list[Fated]) -> Speaker | None:
    """Who says so among some probes; those who give a name first."""
    said = (one for one in probes if one.outcome == "unreachable" or one.probe.kind == "unreachable")
    first = min(said, key=_nameless, default=None)
    if first is not None:
        return _who(case, first)
    unsent = next((one.probe.why for one in probes if one.probe.why is not None), None)
    if unsent is None or any(one.outcome != "unsent" for one in probes):
        return None
    why = f"{unsent}, and sends nothing,"
    return Speaker(name="this machine", address=None, ttl=0, family=_family(case), why=why)


def _who(case: Case, one: Fated) -> Speaker:
    """Who says so by one answer."""
    family, by = _family(case), one.probe.by
    if case.route is not None and by is not None and by == case.route.source:
        return Speaker(
            name="this machine", address=by, ttl=0, family=family, ours=True,
            why="that it gets no hardware address for it (ARP, ND)",
        )  # fmt: skip
    if by is None and one.probe.code is None:
        return Speaker(name="somebody on the way", address=None, ttl=None, family=family)
    address = by or case.address
    ttl = _ttl_of(case, address)
    name = f"{address}" if ttl is None else hop(ttl, address)
    return Speaker(name=name, address=address, ttl=ttl, family=family, code=one.probe.code)


def _nameless(one: Fated) -> bool:
    return one.probe.by is None


def furthest(case: Case) -> Speaker | None:
    """The hop farthest out that answered, over all traces; `None` when none did."""
    found: Speaker | None = None
    for ttl, address in _answers(case):
        if found is None or ttl > (found.ttl or 0):
            found = Speaker(name=hop(ttl, address), address=address, ttl=ttl, family=_family(case))
    return found


def arrival(path: PathCase) -> int | None:
    """How many hops away the target itself answered a trace."""
    last = distance(path.view)
    family = path.view.who.family
    return last if last is not None and any(arrived(one, family) for one in path.view.rounds[last]) else None


def _answers(case: Case) -> Iterator[tuple[int, str | None]]:
    """Each TTL of each trace at which a router answered, and which; errors that this machine makes are none."""
    ours = {None, case.route.source if case.route is not None else None}
    for path in case.paths:
        for ttl, probes in path.view.rounds.items():
            routers = [one for one in probes if one.outcome in ANSWERED and one.probe.by not in ours]
            if routers:
                yield ttl, responder(routers, path.view.who.address)


def _ttl_of(case: Case, address: str | None) -> int | None:
    """How far away an address is, where a trace saw it."""
    ttls = [ttl for ttl, name in _answers(case) if name == address]
    return min(ttls, default=None)


def owner_of_router(case: Case, said: Speaker) -> Owner:
    """Whose a router is (method 4.7): yours, the access provider's, that of an AS, of the network next to the host."""
    if said.address is None or said.ours:
        return Owner(role="you") if said.ttl == 0 else Owner(role="unknown")
    if said.address == case.address:
        return Owner(role="operator", name=f"whoever runs {case.address}")
    if case.route is not None and said.address == case.route.gateway:
        return Owner(role="you", name=f"your gateway {said.address}")
    asn, name = name_of(case, said.address)
    own, _ = name_of(case, case.address)
    last = min((ttl for path in case.paths if (ttl := arrival(path)) is not None), default=0)
    if (asn is not None and asn == own) or (said.ttl is not None and said.ttl == last - 1):
        return Owner(role="provider", asns=() if asn is None else (asn,), name=name or f"whoever runs {said.address}")
    if asn is not None:
        return Owner(role="transit", asns=(asn,), name=name)
    if is_access(said.address):
        return Owner(role="access", name=f"whoever runs {said.address}")
    return Owner(role="unknown", name=f"whoever runs {said.address}")


def owner_beyond(case: Case, last: Speaker) -> Owner:
    """Whose the way is behind the hop that answered last: your own gateway still answers for itself."""
    if last.ttl == GATEWAY_TTL or (case.route is not None and last.address == case.route.gateway):
        return Owner(role="access", name=f"whoever is behind your gateway {last.address}")
    owner = owner_of_router(case, last)
    return Owner(role=owner.role, asns=owner.asns, name=f"whoever runs {last.name} or what lies behind it")


def _family(case: Case) -> Family:
    return family_of(case.address or "")
