"""Findings of a diagnosis about the near end and the path: this machine, its gateway, the name, the way.

Each says whose it is as far as addresses tell, and one thing to do for that owner. Rules of the port, TLS, HTTP and
the model are in `rules.service`. `path_loop` is asked of every path.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from hopscope.analysis import reach
from hopscope.analysis.case import Case, PathCase
from hopscope.analysis.path import LEAST_PROBES, NOTHING, count, excuses, responder, shows_loss
from hopscope.analysis.rules.find import UNKNOWN, end_of, finding
from hopscope.analysis.rules.reach import any_refused, dns_failed, nothing_came, protocols
from hopscope.analysis.rules.speaker import Speaker, furthest, owner_beyond, owner_of_router, speaker, words_of
from hopscope.analysis.say import ns, share
from hopscope.model.limits import MS, SECOND
from hopscope.model.record import Routed
from hopscope.model.report import Finding, Owner, Segment

YOU = Owner(role="you", name="this host up to its gateway")
SLOW_LOOKUP_NS = SECOND
LEAST_LOOP = 4
"""TTLs at which the same two routers must alternate."""


def interface_fault(case: Case) -> Iterator[Finding]:
    """This machine cannot send there at all: no route, an interface that is off or unplugged."""
    route = case.route
    if not case.layered or route is None or case.answering or case.elsewhere:
        return
    told = _fault_of(case, route)
    if told is not None:
        why, next_step = told
        yield finding(
            case,
            "interface-fault",
            "critical",
            why=why,
            next_step=next_step,
            changes_mind="a route, and an answer by it",
            evidence={
                "interface": route.interface,
                "up": route.up,
                "carrier": route.carrier,
                "error": route.error,
                "source": route.source,
            },
            owner=YOU,
        )


def _fault_of(case: Case, route: Routed) -> tuple[str, str] | None:
    """What is wrong with a route, and what to do."""
    name = route.interface or "the interface"
    if route.up is False:
        return f"the interface {name} of this machine is switched off", f"ip link set {name} up"
    if route.carrier is False:
        return (
            f"the interface {name} of this machine has no carrier: nothing is plugged in, or the far end is off",
            f"check the cable of {name}, the Wi-Fi, or the virtual switch",
        )
    if route.error is None:
        return None
    default = case.default_route
    if case.address is None or (default is not None and default.error is not None):
        return (
            f"this machine has no default route ({route.error})",
            "set one: ip route add default via GATEWAY, or have DHCP set it",
        )
    return (
        f"this machine has no route to {case.address} ({route.error})",
        f"add a route to it: ip route get {case.address} shows what this machine would do",
    )


def gateway_fault(case: Case) -> Iterator[Finding]:
    """The gateway does not answer on the link, or it loses as the whole way does; a silent one is not lossy (6.5)."""
    route, view = case.route, case.gateway
    if not case.layered or route is None or route.gateway is None or view is None:
        return
    where = f"the gateway {route.gateway} on {route.interface or 'the link'}"
    if dead_neighbour(case):
        yield finding(
            case,
            "interface-fault",
            "critical",
            why=f"{where} does not answer on the link: this machine gets no hardware address for it (ARP, ND)",
            next_step=f"check that {route.gateway} is on and in the same network as {route.source or 'this machine'}; "
            f"ip neigh show {route.gateway} tells when it is back",
            changes_mind="any answer from the gateway, or from beyond it",
            evidence={"gateway": route.gateway, "neighbour": route.neighbour, "sent": count(view.counted).sent},
            owner=YOU,
            segment=_to_gateway(case, route.gateway),
            where="gateway",
        )
    elif loses(case):
        seen = count(view.counted)
        yield finding(
            case,
            "interface-fault",
            "warning",
            why=f"{where} loses {share(seen.lost, seen.sent)} of the echoes: the loss begins on your own side",
            next_step="look at this machine's cable, Wi-Fi or virtual switch, then at the gateway itself",
            changes_mind="a clean series to the gateway",
            evidence={
                "gateway": route.gateway,
                "lost": seen.lost,
                "sent": seen.sent,
                "rx_errors": route.rx_errors,
                "tx_errors": route.tx_errors,
                "rx_dropped": route.rx_dropped,
                "tx_dropped": route.tx_dropped,
            },
            owner=YOU,
            segment=_to_gateway(case, route.gateway),
            where="gateway",
        )


def dead_neighbour(case: Case) -> bool:
    """Whether the gateway has no hardware address, and nothing at all came back by it."""
    route, view = case.route, case.gateway
    if route is None or view is None or case.answering or any_refused(case) or furthest(case) is not None:
        return False
    ours = any(
        one.outcome == "unreachable" and one.probe.by is not None and one.probe.by == route.source
        for one in view.counted
    )
    return not reach.answers(view) and (ours or route.neighbour in {"failed", "incomplete"})


def loses(case: Case) -> bool:
    """Whether the gateway loses echoes, and what lies beyond it does not show that it merely limits its answers."""
    view = case.gateway
    if view is None or not reach.answers(view) or not shows_loss(count(view.counted)):
        return False
    beyond = sum((count(one.counted) for one in case.series if reach.answers(one)), NOTHING)
    return beyond.sent < LEAST_PROBES or (shows_loss(beyond) and not excuses(beyond, count(view.counted)))


def _to_gateway(case: Case, gateway: str) -> Segment:
    return Segment(from_=end_of(case, 0, None), to=end_of(case, 1, gateway), flow=None)


def name_fails(case: Case) -> Iterator[Finding]:
    """The name has no address; who was asked, and whether anybody answered."""
    for one in dns_failed(case) if case.layered else ():
        resolvers = ", ".join(case.resolved.resolvers) if case.resolved is not None else ""
        unasked = reach.unasked(str(one.evidence["error"]))
        asked = f" (asked: {resolvers})" if resolvers else ""
        yield replace(
            one,
            why=f"{one.why}{asked}",
            owner=Owner(role="you", name="the resolver that this machine is set to ask") if unasked else UNKNOWN,
            next_step=f"check the resolver of this machine{f', {resolvers}' if resolvers else ''}: it gave no answer; "
            "set another one in /etc/resolv.conf"
            if unasked
            else one.next_step,
        )


def dns_slow(case: Case) -> Iterator[Finding]:
    """The lookup took longer than most requests do: a resolver that had to be asked again."""
    took = case.resolved.took_ns if case.resolved is not None else None
    if case.layered and took is not None and took >= SLOW_LOOKUP_NS and not case.nameless:
        asked = ", ".join(case.resolved.resolvers) if case.resolved is not None else ""
        yield finding(
            case,
            "dns-slow",
            "warning",
            why=f"looking up {case.target.host} took {ns(took)}: every new connection that asks anew waits for it",
            next_step=f"check the resolver of this machine{f', {asked}' if asked else ''}, and its order in "
            "/etc/resolv.conf",
            changes_mind="a lookup that is fast twice in a row",
            evidence={"took_ms": took / MS, "resolvers": asked or None},
            owner=Owner(role="you", name="the resolver that this machine is set to ask"),
        )


def way_fails(case: Case) -> Iterator[Finding]:
    """Nothing from the target by any protocol tried: who says so, else who answered last."""
    tried = any(view.counted for view in case.series)
    if not case.layered or case.address is None or not tried or case.answering or any_refused(case):
        return
    said = speaker(case)
    yield _unreached(case) if said is None else _said(case, said)


def _said(case: Case, said: Speaker) -> Finding:
    """A router, or our own system, says that the target cannot be reached."""
    words = words_of(said)
    route = case.route
    source = route.source if route is not None and route.source is not None else "your address"
    owner = owner_of_router(case, said)
    next_step = f"ask whoever runs {said.name} why it has no way to {case.address}"
    if said.prohibits:
        next_step = (
            f"ask the admin of {said.name}, which answers administratively prohibited, to allow "
            f"{protocols(case)} to {case.address} from {source}"
        )
    elif said.host_missing:
        owner = Owner(role="operator", name=f"whoever runs {case.address}")
        next_step = (
            f"check that {case.address} is switched on and its network is up: {said.name} gets no answer from it"
        )
    return finding(
        case,
        "admin-prohibited" if said.prohibits else "unreachable",
        "critical",
        why=f"{case.address} cannot be reached: {said.name} answers {words} to {protocols(case)}",
        next_step=next_step,
        changes_mind="an answer from the target by any protocol",
        evidence={"by": said.address, "code": said.code, "ttl": said.ttl, "tried": protocols(case)},
        segment=None
        if said.ttl is None
        else Segment(
            from_=end_of(case, said.ttl, said.address), to=end_of(case, said.ttl + 1, case.address), flow=None
        ),
        owner=owner,
    )


def _unreached(case: Case) -> Finding:
    """Silence: the last hop that answered is the last that is known to work."""
    last = furthest(case)
    if last is None:
        where = "; no hop answered either" if case.paths else ""
        owner, step = Owner(role="unknown"), "check that this machine may send at all, then ask your access provider"
        segment = None
    else:
        where = f"; the last hop that answered is {last.name}"
        owner = owner_beyond(case, last)
        step = (
            f"ask whoever runs {last.name} where packets to {case.address} go from there; and check that the host is "
            "up and lets you in"
        )
        segment = Segment(
            from_=end_of(case, last.ttl or 0, last.address),
            to=end_of(case, (last.ttl or 0) + 1, None),
            flow=None,
        )
    return finding(
        case,
        "unreachable",
        "critical",
        why=f"{nothing_came(case)} by {protocols(case)}{where}",
        next_step=step,
        changes_mind="an answer from the target by any protocol",
        evidence={
            "tried": protocols(case),
            "last_hop": None if last is None else last.ttl,
            "last_address": None if last is None else last.address,
        },
        segment=segment,
        owner=owner,
    )


def path_loop(case: Case) -> Iterator[Finding]:
    """The same two routers take turns at four TTLs or more: each sends the packet to the other."""
    for path in case.paths:
        found = _loop(path)
        if found is None:
            continue
        ttl, one, other, length = found
        segment = Segment(from_=end_of(case, ttl, one), to=end_of(case, ttl + 1, other), flow=path.view.flow)
        near, far = segment.from_.asn, segment.to.asn
        asns = tuple(dict.fromkeys(asn for asn in (near, far) if asn is not None))
        owner = Owner(
            role="border" if len(asns) > 1 else "transit" if asns else "unknown",
            asns=asns,
            name=None if asns else f"whoever runs {one} and {other}",
        )
        yield finding(
            case,
            "path-loop",
            "warning" if case.answering else "critical",
            why=f"packets to {case.address} run in a loop: {one} and {other} take turns from hop {ttl} on, "
            f"{length} times",
            next_step=f"tell whoever runs {one} and {other} that their routes for {case.address} point at each other",
            changes_mind="a trace that gets past these two",
            evidence={"first_ttl": ttl, "length": length, "one": one, "other": other},
            segment=segment,
            owner=owner,
        )
        return


def _loop(path: PathCase) -> tuple[int, str, str, int] | None:
    """Where two routers begin to take turns, which, and at how many TTLs."""
    view = path.view
    names = {ttl: responder(probes, view.who.address) for ttl, probes in sorted(view.rounds.items())}
    for ttl in names:
        one, other = names.get(ttl), names.get(ttl + 1)
        if one is None or other is None or one == other or view.who.address in {one, other}:
            continue
        length = 2
        while names.get(ttl + length) == (one, other)[length % 2]:
            length += 1
        if length >= LEAST_LOOP:
            return ttl, one, other, length
    return None
