"""Whether two candidates differ, by one metric from one place: shown with its interval, or "no difference shown".

Medians: the difference lies between the ends of both medians' intervals by order statistics, each of 99.5 %, so that
it holds with at least 99 % whatever the distribution (Bonferroni). Loss: Fisher's exact test, two-sided, p < 0.01, of
counts reduced where losses cluster. Nothing here corrects for many comparisons: each row stands alone, and of a
hundred rows without any true difference one is shown by chance at most, on average. It says what differed while it
was measured: a series of ten seconds knows nothing of the evening.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from hopscope.analysis.binomial import fisher_two_sided
from hopscope.analysis.candidate import PROTOCOLS, Candidate, Median, Seen, Trials
from hopscope.analysis.say import ms, ratio
from hopscope.model.report import Difference, Outcome

SIGNIFICANT = 0.01
LEAST_FOR_A_MEDIAN = 9
"""Fewer samples do not carry a median with 0.25 % left out on either side: 0.5^9 is 0.20 %."""
SMALL_MS = 1.0
SMALL_SHARE = 0.02
"""A difference below the larger of these is too small to matter to anybody who waits."""
NOT_SHOWN = "no difference shown"
TOO_SMALL = "shown, but too small to matter"
ANSWERING: frozenset[Outcome] = frozenset({"ok", "degraded"})
NO_ANSWER = "not enough data: one of them gave no answer to compare"
NO_PROTOCOL = "not comparable: no protocol is answered by both"


def between(first: Candidate, second: Candidate) -> tuple[Difference, ...]:
    """How two candidates differ, from every place that both answered at: a refusal is no round trip to compare."""
    places = {each.vantage.name: each for each in second.seen if each.report.outcome in ANSWERING}
    return tuple(
        one
        for each in first.seen
        if each.report.outcome in ANSWERING and each.vantage.name in places
        for one in _from(first.target.name, second.target.name, each, places[each.vantage.name])
    )


def alike(first: Candidate, second: Candidate) -> bool:
    """Whether no difference that matters is shown between two candidates, from any place."""
    return not any(one.matters for one in between(first, second))


def _from(first: str, second: str, here: Seen, there: Seen) -> Iterator[Difference]:
    """The rows of one place; a metric that neither has is left out."""
    blank = Difference(
        first=first, second=second, vantage=here.vantage.name, metric="rtt_p50", unit="ms", first_value=None,
        second_value=None, difference=None, low=None, high=None, confidence="undecided", matters=False, why=NOT_SHOWN,
    )  # fmt: skip
    if here.rtts or there.rtts:
        protocol = next((one for one in PROTOCOLS if one in here.rtts and one in there.rtts), None)
        if protocol is None:
            yield from _incomparable(blank, here, there)
        else:
            yield _medians(blank, here.rtts[protocol], there.rtts[protocol])
            yield _losses(blank, here.losses[protocol], there.losses[protocol])
    if here.server or there.server:
        yield _medians(replace(blank, metric="server_p50"), here.server, there.server)
    if here.ttft or there.ttft:
        yield _medians(replace(blank, metric="ttft_p50"), here.ttft, there.ttft)


def _incomparable(blank: Difference, here: Seen, there: Seen) -> Iterator[Difference]:
    """Round trips and losses of different protocols, or of one side alone, are shown and not compared."""
    why = NO_PROTOCOL if here.rtts and there.rtts else NO_ANSWER
    values = here.report.rtt.p50_ms, there.report.rtt.p50_ms
    yield replace(blank, first_value=values[0], second_value=values[1], why=why)
    ratios = here.report.loss.ratio, there.report.loss.ratio
    yield replace(blank, metric="loss", unit="ratio", first_value=ratios[0], second_value=ratios[1], why=why)


def _medians(blank: Difference, here: Median | None, there: Median | None) -> Difference:
    """The difference of two medians."""
    if here is None or there is None:
        values = None if here is None else here.value, None if there is None else there.value
        return replace(blank, first_value=values[0], second_value=values[1], why=NO_ANSWER)
    by = there.value - here.value
    known = replace(blank, first_value=here.value, second_value=there.value, difference=by)
    if here.low is None or here.high is None or there.low is None or there.high is None:
        few = min(here.n, there.n)
        return replace(known, why=f"not enough data: {few} of the {LEAST_FOR_A_MEDIAN} samples that both need")
    low, high = there.low - here.high, there.high - here.low
    shown = low > 0 or high < 0
    matters = shown and abs(by) >= max(SMALL_MS, SMALL_SHARE * max(here.value, there.value))
    return replace(
        known,
        low=low,
        high=high,
        confidence="shown" if shown else "undecided",
        matters=matters,
        why=_longer(blank, by) if matters else TOO_SMALL if shown else NOT_SHOWN,
    )


def _longer(blank: Difference, by: float) -> str:
    return f"{blank.second} takes {ms(abs(by))} {'longer' if by > 0 else 'less'} than {blank.first}"


def _losses(blank: Difference, here: Trials, there: Trials) -> Difference:
    """The difference of two shares of lost packets, by their counts of independent trials."""
    first, second = here.seen.ratio, there.seen.ratio
    known = replace(blank, metric="loss", unit="ratio", first_value=first, second_value=second)
    if first is None or second is None:
        return replace(known, why=NO_ANSWER)
    p = fisher_two_sided(there.worth.lost, there.worth.sent, here.worth.lost, here.worth.sent)
    by = second - first
    shown = p < SIGNIFICANT
    size = f"{points(by)} {'more' if by > 0 else 'less'}"
    why = f"{blank.second} loses {size} than {blank.first} (p = {p:.2g})"
    return replace(
        known,
        difference=by,
        confidence="shown" if shown else "undecided",
        matters=shown,
        why=why if shown else NOT_SHOWN,
    )


def points(by: float) -> str:
    """A difference of two shares: 9 percentage points."""
    return f"{ratio(abs(by)).removesuffix(' %')} percentage points"
