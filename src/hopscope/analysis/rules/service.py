"""Findings of a diagnosis about the far end: port, certificate, HTTP and model, each with owner and next step.

They are the general rules told better by what a diagnosis knows besides, and what only a diagnosis asks.
"""

from collections.abc import Iterator
from shlex import quote

from msgspec.structs import replace

from hopscope.analysis import reach
from hopscope.analysis.case import Case
from hopscope.analysis.reach import CLIENT_ERROR, SERVER_ERROR
from hopscope.analysis.rules.find import OPERATOR, end_of, finding
from hopscope.analysis.rules.reach import any_refused, asked_for, filtered, http_error
from hopscope.analysis.rules.speaker import Speaker, arrival, owner_beyond, owner_of_router, spoken, words_of
from hopscope.analysis.say import hop
from hopscope.analysis.views import SeriesView
from hopscope.model.limits import SECOND
from hopscope.model.record import Streamed
from hopscope.model.report import Finding, Owner, Segment

DAY_NS = 86_400 * SECOND
SOON_NS = 14 * DAY_NS
"""A certificate that is valid no longer than this is told; those that are renewed by themselves are so earlier."""
UNAUTHORIZED, NOT_FOUND = 401, 404
NO_LISTING = frozenset({404, 405, 501})
"""Statuses by which a server says that it lists no models; one that is named is asked all the same."""


def prohibited(case: Case) -> Iterator[Finding]:
    """The way to the port is refused by an ICMP error, while the host answers otherwise: who says so."""
    if not case.layered or not (case.answering or any_refused(case)):
        return
    for view in case.of("tcp"):
        if reach.of_series(view) not in {"prohibited", "unreachable"}:
            continue
        said = spoken(case, view.counted)
        if said is not None:
            yield _prohibited(case, view, said)


def _prohibited(case: Case, view: SeriesView, said: Speaker) -> Finding:
    port = view.who.port
    source = case.route.source if case.route is not None and case.route.source is not None else "your address"
    action = "answers administratively prohibited" if said.prohibits else f"answers {words_of(said)}"
    return finding(
        case,
        "admin-prohibited" if said.prohibits else "filtered",
        "critical" if asked_for(case, port) else "info",
        why=f"TCP port {port} of {case.address} is not let through: {said.name} answers {words_of(said)}, while the "
        "host answers otherwise",
        next_step=f"ask the admin of {said.name}, which {action}, to allow TCP {port} to {case.address} from {source}",
        changes_mind="a SYN-ACK from the port",
        evidence={"port": port, "by": said.address, "code": said.code, "ttl": said.ttl},
        owner=owner_of_router(case, said),
        where=str(port),
    )


def port_filtered(case: Case) -> Iterator[Finding]:
    """A silent port, and how far on the way its SYNs are answered."""
    for one in filtered(case) if case.layered else ():
        port = one.evidence.get("port")
        yield one if one.severity == "info" or port is None else _filtered(case, one, int(str(port)))


def _filtered(case: Case, one: Finding, port: int) -> Finding:
    """The finding with the place where SYNs stop, if traces by TCP and by another protocol tell."""
    source = case.route.source if case.route is not None and case.route.source is not None else "your address"
    ask = f"to allow TCP {port} to {case.address} from {source}"
    end = min((ttl for path in case.paths if (ttl := arrival(path)) is not None), default=None)
    last = _last_of_syns(case, port)
    if end is None or last is None or last.ttl is None:
        return replace(one, next_step=f"ask whoever runs {case.address} or its firewall {ask}")
    segment = Segment(
        from_=end_of(case, last.ttl, last.address),
        to=end_of(case, last.ttl + 1, case.address if last.ttl + 1 == end else None),
        flow=None,
    )
    if last.ttl >= end - 1:
        why = f"{one.why}; SYNs get as far as {last.name}, next to the host"
        return replace(
            one, why=why, segment=segment, next_step=f"ask whoever runs {case.address} or the firewall before it {ask}"
        )
    why = f"{one.why}; SYNs get no farther than {last.name}, {end - last.ttl} hops before the host"
    return replace(
        one,
        why=why,
        segment=segment,
        owner=owner_beyond(case, last),
        next_step=f"ask whoever runs {last.name} or the hop behind it {ask}",
    )


def _last_of_syns(case: Case, port: int) -> Speaker | None:
    """The last hop that answered a SYN to the port."""
    found: Speaker | None = None
    for path in case.paths:
        if path.view.who.port != port:
            continue
        for witness in path.along.witnesses:
            if not witness.end:
                found = Speaker(
                    name=hop(witness.ttl, witness.address), address=witness.address, ttl=witness.ttl,
                    family=path.view.who.family,
                )  # fmt: skip
    return found


def certificate_expiring(case: Case) -> Iterator[Finding]:
    """The certificate is good, and will not be for long."""
    shown = [
        (exchange.certificate.not_after - exchange.scheduled, exchange.certificate)
        for view in case.requests
        for exchange in view.exchanges
        if exchange.certificate is not None and exchange.certificate.not_after is not None and exchange.error is None
    ]
    if not case.layered or not shown:
        return
    left, certificate = shown[-1]
    if 0 < left < SOON_NS:
        days = left / DAY_NS
        yield finding(
            case,
            "certificate-expiring",
            "warning",
            why=f"the certificate of {certificate.subject or case.target.host} is valid for {days:.1f} more days",
            next_step="have it renewed now, and see why it was not renewed by itself",
            changes_mind="a certificate that is valid longer",
            evidence={"days": days, "subject": certificate.subject},
            owner=OPERATOR,
        )


def requests_fail(case: Case) -> Iterator[Finding]:
    """What HTTP answers; that models are not listed is none where the model itself answers."""
    for one in http_error(replace(case, streams=())) if case.layered else ():
        status = one.evidence.get("status")
        if status in NO_LISTING and any(streams_well(each) for view in case.streams for each in view.streams):
            continue
        if status == UNAUTHORIZED:
            key = _gives_a_key(case)
            why = one.why + ("; the key was refused" if key else "; no key was given")
            step = "give a key that is valid" if key else "give the key: --api-key-env names the variable that holds it"
            yield replace(one, why=why, owner=Owner(role="you"), next_step=step)
        else:
            yield one


def _gives_a_key(case: Case) -> bool:
    named = (*case.target.headers, *case.target.headers_env)
    return case.target.api_key_env is not None or any(
        name.lower() in {"authorization", "x-api-key"} for name, _ in named
    )


def streams_well(streamed: Streamed) -> bool:
    """Whether a completion came, whole and without an error."""
    return streamed.exchange.error is None and streamed.exchange.status is not None


def model_fails(case: Case) -> Iterator[Finding]:
    """The model does not answer: it is unknown there, its stream is none, or nothing comes."""
    for view in case.streams if case.layered else ():
        failed = [each for each in view.streams if not streams_well(each)]
        if failed:
            yield _model_finding(case, failed[-1])


def _model_finding(case: Case, failed: Streamed) -> Finding:
    exchange = failed.exchange
    status, name = exchange.status, failed.model or case.target.model or "the model"
    detail = exchange.detail or "no answer"
    listed = f"; the server lists {', '.join(failed.listed)}" if failed.listed else ""
    unknown = status == NOT_FOUND and failed.model is not None
    step = f"ask the operator to serve {name}" if unknown else "look at the model server's own log for that time"
    others = [each for each in failed.listed if each != name]
    if unknown and others:
        step = f"name a model that is served (--model {quote(others[0])}), or {step}"
    broken = exchange.error in {"timeout", "cut"} or (status is not None and status >= SERVER_ERROR)
    refused = status is not None and CLIENT_ERROR <= status < SERVER_ERROR
    return finding(
        case,
        "http-error",
        "critical" if broken else "warning",
        why=(f"the server does not know the model {name}: {detail}" if unknown else f"the model {name} fails: {detail}")
        + listed,
        next_step=step,
        changes_mind="a stream of tokens from this model",
        evidence={
            "model": name,
            "status": status,
            "error": exchange.error,
            "listed": ", ".join(failed.listed) or None,
        },
        owner=Owner(role="you") if unknown or refused else Owner(role="model-server"),
        where="model",
    )
