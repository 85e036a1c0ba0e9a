"""Whether a target was reached, by one series, path or set of requests: the `outcome` of each result.

Outcomes speak of the target alone (method 6.1); what our own rights or clock prevented is not in them.
"""

from collections.abc import Sequence

from hopscope.analysis.binomial import at_least
from hopscope.analysis.path import SIGNIFICANT, TOLERATED_LOSS, count
from hopscope.analysis.views import Fated, HttpView, SeriesView
from hopscope.model.record import Exchange
from hopscope.model.report import Outcome

PROHIBITED: dict[int, frozenset[int]] = {4: frozenset({9, 10, 13}), 6: frozenset({1})}
"""Unreachable codes that say "administratively prohibited" (RFC 1812 §5.2.7.1, RFC 4443 §3.1)."""

UNASKED = ("Temporary failure", "no answer within")
"""How a resolver that cannot be asked is told from one that knows no such name (EAI_AGAIN, RFC 3493 §6.1)."""
CLIENT_ERROR, SERVER_ERROR = 400, 500
"""Where the statuses of the client's and the server's mistakes begin (RFC 9110 §15)."""


def of_series(view: SeriesView) -> Outcome:
    """Outcome of a series."""
    counted = view.counted
    replied = sum(one.outcome == "replied" for one in counted)
    refused = sum(one.outcome == "refused" for one in counted)
    if replied + refused == 0:
        return _silent(counted, view.who.family)
    if any(sample.done is not None and sample.done.check.limited for sample in view.samples):
        return "client-limited"
    if not replied:
        return "refused"
    seen = count(counted)
    lossy = seen.lost > 0 and at_least(seen.lost, seen.sent, TOLERATED_LOSS) < SIGNIFICANT
    return "degraded" if lossy else "ok"


def _silent(counted: Sequence[Fated], family: int) -> Outcome:
    """Outcome where nothing answered as it should."""
    errors = [one.probe for one in counted if one.outcome == "unreachable"]
    if errors and all(probe.code in PROHIBITED[family] for probe in errors):
        return "prohibited"
    unsent = all(one.outcome == "unsent" for one in counted)
    return "unreachable" if errors or (counted and unsent) else "timeout"


def answers(view: SeriesView) -> bool:
    """Whether the address answered any probe of a series in time; late answers are losses (method 2.1)."""
    return any(one.outcome == "replied" for one in view.counted)


def refusing(view: SeriesView) -> bool:
    """Whether a port refused, and never answered otherwise."""
    return not answers(view) and any(one.outcome == "refused" for one in view.counted)


def of_requests(view: HttpView) -> Outcome:
    """Outcome of a set of requests: what became of most, errors of the connection before statuses."""
    good = [exchange for exchange in view.exchanges if exchange.error is None]
    if not good:
        return of_error(view.exchanges)
    if any(sample.done is not None and sample.done.check.limited for sample in view.samples):
        return "client-limited"
    if all(exchange.status is not None and exchange.status >= SERVER_ERROR for exchange in good):
        return "http"
    failed = len(good) < len(view.exchanges) or any((exchange.status or 0) >= SERVER_ERROR for exchange in good)
    return "degraded" if failed else "ok"


def unasked(error: str | None) -> bool:
    """Whether a name has no address because no resolver answered."""
    return any(words in (error or "") for words in UNASKED)


def of_error(exchanges: Sequence[Exchange]) -> Outcome:
    """Outcome of requests of which none was answered."""
    last = next((exchange for exchange in reversed(exchanges) if exchange.error is not None), None)
    match last.error if last is not None else None:
        case None | "timeout" | "bug":
            return "timeout"
        case "cut":
            return "http"
        case "dns" | "refused" | "unreachable" | "prohibited" | "tls" | "http" as known:
            return known
