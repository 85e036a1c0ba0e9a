"""Findings about where things stand: an answer that comes sooner than light could. Rule 4.6 of the method.

Only places that the user gave are held against each other here. An answer may come late for many reasons, but early
for one: somebody is not where the file says.
"""

from collections.abc import Iterator

from hopscope.analysis.case import Case
from hopscope.analysis.distance import floor_ms, great_circle_km, place_of_site
from hopscope.analysis.path import ANSWERED, arrived
from hopscope.analysis.rules.find import finding
from hopscope.analysis.say import ms
from hopscope.model.limits import MS
from hopscope.model.report import Finding


def doubtful_place(case: Case) -> Iterator[Finding]:
    """The least round trip is below what distance needs: target, vantage or place is wrong, or another answered."""
    least = least_rtt_ms(case)
    if least is None or case.site is None or case.target.site is None:
        return
    here, there = place_of_site(case.site), place_of_site(case.target.site)
    floor, far = floor_ms(here, there), great_circle_km(here, there)
    if least < floor:
        yield finding(
            case,
            "doubtful-place",
            "warning",
            why=f"{case.address} answers in {ms(least)}, sooner than light could over the {far:,.0f} km to where it is "
            f"said to stand ({ms(floor)} at least): the target, the vantage or the place is wrong, or something nearer "
            "answered (anycast, edge, proxy)",
            next_step="correct the site in the target file, or ask the seller where the server stands and what answers",
            changes_mind="places of vantage and target that are as near as the delay says",
            evidence={"least_rtt_ms": least, "floor_ms": floor, "distance_km": round(far)},
        )


def least_rtt_ms(case: Case) -> float | None:
    """The least round trip to the target itself by anything that was sent, ms."""
    found = [one.probe.rtt_ns for view in case.series for one in view.counted if one.outcome in ANSWERED]
    for path in case.paths:
        ends = (one for one in path.view.all_probes() if arrived(one, path.view.who.family))
        found += [one.probe.rtt_ns for one in ends if one.outcome in ANSWERED]
    found += [each.min_rtt_ns for view in case.exchanged for each in view.exchanges]
    known = [rtt for rtt in found if rtt is not None]
    return min(known) / MS if known else None
