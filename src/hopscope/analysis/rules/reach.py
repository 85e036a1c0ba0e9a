"""Findings about reaching a target at all: name, port, way, TLS, HTTP. Rules 3.4 and 6.1, and `interface.md` status."""

from collections.abc import Iterator

from hopscope.analysis import reach
from hopscope.analysis.case import Case
from hopscope.analysis.path import count
from hopscope.analysis.reach import CLIENT_ERROR, SERVER_ERROR
from hopscope.analysis.rules.find import OPERATOR, UNKNOWN, end_of, finding
from hopscope.analysis.say import count as how_many
from hopscope.analysis.say import ns, share
from hopscope.analysis.views import HttpView, SeriesView
from hopscope.model.plan import PingTask
from hopscope.model.record import ErrorClass, Exchange
from hopscope.model.report import Finding, Owner, Segment

CUT: frozenset[ErrorClass] = frozenset({"timeout", "http", "cut"})
"""Errors of a request that say nothing of the port."""
TLS_STEPS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("self-signed", "authority"), "trust its authority with --cacert FILE, or have the server send its whole chain"),
    (("expired",), "renew the certificate"),
    (("not valid yet",), "compare the clocks of this machine and of the server"),
    (("is not for",), "give the name that the certificate is for, or have a certificate made for this name"),
    (("speaks",), "check scheme and port: something else than TLS listens there, or its TLS is stuck"),
)
"""Words of a handshake's failure (net/tls), and what mends it."""
UNSERVED: frozenset[ErrorClass] = CUT | {"refused", "unreachable", "prohibited"}
"""Errors that are a server's failing where it answers other requests."""


def dns_failed(case: Case) -> Iterator[Finding]:
    """The name has no address."""
    if case.nameless and case.resolved is not None:
        reason = case.resolved.error or "the resolver knows no address for it"
        yield finding(
            case,
            "dns-failed",
            "critical",
            why=f"the name {case.target.host} does not resolve: {reason}",
            next_step=f"check the spelling of {case.target.host}, then ask a second resolver for it",
            changes_mind="an address for the name",
            evidence={"host": case.target.host, "error": reason},
        )


def unreachable(case: Case) -> Iterator[Finding]:
    """Nothing from the target by any protocol tried."""
    tried = any(view.counted for view in case.series) or any(view.exchanges for view in case.exchanged)
    if case.address is None or not tried or case.answering or any_refused(case):
        return
    said = _who_said(case)
    if said is None:
        last = _last_answering(case)
        where = f"; the last hop that answered is {last}" if last else ""
        why = f"{nothing_came(case)} by {protocols(case)}{where}"
    else:
        why = f"{case.address} cannot be reached: {said}"
    yield finding(
        case,
        "admin-prohibited" if _prohibited(case) else "unreachable",
        "critical",
        why=why,
        next_step="check that the host is up and that its firewall lets you in; then ask the owner of the last hop",
        changes_mind="an answer from the target by any protocol",
        evidence={"tried": protocols(case)},
        segment=_last_segment(case),
    )


def nothing_came(case: Case) -> str:
    """That nothing came, or nothing in time."""
    late = [view for view in case.series if any(one.outcome == "late" for one in view.counted)]
    if late:
        return f"{case.address} answers only later than {ns(_threshold_ns(late[0]))}, which is lost,"
    return f"nothing came back from {case.address}"


def _threshold_ns(view: SeriesView) -> int | None:
    """Past which delay an answer is late."""
    return next((sample.task.threshold_ns for sample in view.samples if isinstance(sample.task, PingTask)), None)


def any_refused(case: Case) -> bool:
    """Whether any port refused."""
    return any(reach.refusing(view) for view in case.series) or any(
        exchange.error == "refused" for view in case.exchanged for exchange in view.exchanges
    )


def _prohibited(case: Case) -> bool:
    return any(reach.of_series(view) == "prohibited" for view in case.series)


def protocols(case: Case) -> str:
    """What was tried, in words."""
    tried = [view.who for view in case.series if view.counted]
    words = [f"{who.protocol} port {who.port}" if who.port else "ping" for who in tried]
    words += ["HTTP" for view in case.exchanged if view.exchanges]
    return ", ".join(dict.fromkeys(words))


def _who_said(case: Case) -> str | None:
    """What a router or our own system said about the target."""
    for view in case.series:
        for one in view.counted:
            if one.outcome == "unreachable":
                who = one.probe.by or (
                    "the target" if one.probe.kind == "unreachable" and one.probe.code else "the way"
                )
                code = "" if one.probe.code is None else f" (ICMP unreachable, code {one.probe.code})"
                return f"{who} says so{code}"
            if one.probe.why is not None:
                return f"this host could not send: {one.probe.why}"
    return None


def _last_answering(case: Case) -> str | None:
    """The last hop of a trace that answered."""
    for path in case.paths:
        if path.along.witnesses:
            last = path.along.witnesses[-1]
            return f"{last.ttl} ({last.address})"
    return None


def _last_segment(case: Case) -> Segment | None:
    """From the last hop that answered to the target."""
    for path in case.paths:
        if path.along.witnesses:
            last = path.along.witnesses[-1]
            return Segment(
                from_=end_of(case, last.ttl, last.address),
                to=end_of(case, last.ttl + 1, case.address),
                flow=path.view.flow,
            )
    return None


def refused(case: Case) -> Iterator[Finding]:
    """A port answers with a reset: the host is up, nothing listens there."""
    ports = [view.who.port for view in case.of("tcp") if reach.refusing(view)]
    ports += [view.who.port for view in case.exchanged if reach.of_requests(view) == "refused"]
    for port in dict.fromkeys(ports):
        yield finding(
            case,
            "refused",
            "critical" if asked_for(case, port) else "info",
            why=f"{case.address} refuses port {port}: the host is up, nothing listens there",
            next_step=f"start the server on port {port}, or correct the port",
            changes_mind="a SYN-ACK from the port",
            evidence={"port": port},
            owner=OPERATOR,
            where=str(port),
        )


def asked_for(case: Case, port: int | None) -> bool:
    """Whether the plan names the port, or nothing else answers."""
    return port == case.target.port or not case.answering


def filtered(case: Case) -> Iterator[Finding]:
    """One protocol or port is silent while the target answers another."""
    if not (case.answering or any_refused(case)):
        return
    for view in case.series:
        counted = view.counted
        silent = counted and all(one.outcome in {"lost", "late"} for one in counted)
        if not silent:
            continue
        if view.who.port is None:
            yield _icmp_silent(case, view)
        elif asked_for(case, view.who.port):
            yield finding(
                case,
                "filtered",
                "critical",
                why=f"port {view.who.port} of {case.address} is silent while the host answers otherwise: "
                "something drops it",
                next_step=f"open port {view.who.port} in the host's or the provider's firewall for your address",
                changes_mind="any answer from the port",
                evidence={"port": view.who.port, "sent": count(counted).sent},
                owner=Owner(role="provider"),
                where=str(view.who.port),
            )


def _icmp_silent(case: Case, view: SeriesView) -> Finding:
    """Ping is dropped, other protocols are not: worth knowing, no fault."""
    return finding(
        case,
        "filtered",
        "info",
        why=f"{case.address} does not answer ping, but answers otherwise",
        next_step="none needed; judge by the TCP series",
        changes_mind="an echo reply",
        evidence={"sent": count(view.counted).sent},
        owner=UNKNOWN,
        where="icmp",
    )


def tls_failed(case: Case) -> Iterator[Finding]:
    """The handshake fails."""
    for view in case.exchanged:
        failed = [exchange for exchange in view.exchanges if exchange.error == "tls"]
        if failed:
            detail = failed[-1].detail or "the handshake failed"
            yield finding(
                case,
                "tls-failed",
                "critical",
                why=f"TLS with {view.url} fails: {detail}",
                next_step=_tls_step(detail),
                changes_mind="a handshake that verifies",
                evidence={"failed": len(failed), "requests": len(view.exchanges)},
                owner=OPERATOR,
            )


def _tls_step(detail: str) -> str:
    """What mends a handshake that fails with these words."""
    for words, step in TLS_STEPS:
        if any(word in detail for word in words):
            return step
    return "look at the server's TLS settings and its log; renew or correct the certificate"


def http_error(case: Case) -> Iterator[Finding]:
    """Answers that are errors, and requests that got none although the port is open."""
    for view in case.exchanged:
        wrong = [exchange for exchange in view.exchanges if _wrong_status(case, exchange)]
        if wrong:
            yield _status_finding(case, view, wrong)
        kinds = UNSERVED if case.served else CUT
        silent = [one for one in view.exchanges if one.error in kinds and not _wrong_status(case, one)]
        if silent and case.answering:
            detail = silent[-1].detail or "no answer"
            delivered = all(exchange.sent_last is not None for exchange in silent)
            yield finding(
                case,
                "http-error",
                "critical" if len(silent) * 2 > len(view.exchanges) else "warning",
                why=f"{len(silent)} of {how_many(len(view.exchanges), 'request')} to {view.url} failed: {detail}",
                next_step="look at the server's own log for that time"
                + ("; the network delivered the request" if delivered else ""),
                changes_mind="answers to the same request",
                evidence={"failed": len(silent), "requests": len(view.exchanges)},
                owner=OPERATOR,
                where="silent",
            )


def _wrong_status(case: Case, exchange: Exchange) -> bool:
    """Whether a status is not what the target file expects, or an error where it says nothing."""
    if exchange.status is None:
        return False
    if case.target.expect_status:
        return exchange.status not in case.target.expect_status
    return exchange.status >= CLIENT_ERROR


def _status_finding(case: Case, view: HttpView, wrong: list[Exchange]) -> Finding:
    """A finding about wrong statuses: the server's errors are critical, ours a warning."""
    statuses = sorted({exchange.status for exchange in wrong if exchange.status is not None})
    worst = statuses[-1]
    hint = {
        401: "give the key: api_key_env names the variable that holds it",
        403: "the key or your address is not allowed here",
        404: "correct the path of the URL",
        429: "you are over the server's rate limit: ask less often, or ask for more",
    }.get(worst, "look at the server's own log for that time")
    words = ", ".join(str(status) for status in statuses)
    return finding(
        case,
        "http-error",
        "critical" if worst >= SERVER_ERROR else "warning",
        why=f"{view.url} answers {words} to {share(len(wrong), len(view.exchanges))} of the requests",
        next_step=hint,
        changes_mind="an expected status",
        evidence={"status": worst, "wrong": len(wrong), "requests": len(view.exchanges)},
        owner=OPERATOR,
        where=str(worst),
    )
