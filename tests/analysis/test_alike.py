"""Findings that say the same from several places are one group; whatever differs in kind, owner or place is another."""

import pytest
from msgspec.structs import replace

from hopscope.analysis.alike import grouped, places
from hopscope.model.report import Finding, Owner, Segment, SegmentEnd

BASE = Finding(
    id="lossy-from/t/a/192.0.2.1/5",
    kind="lossy-from",
    severity="warning",
    confidence="shown",
    target="t",
    vantages=("a",),
    segment=Segment(
        from_=SegmentEnd(ttl=4, address="192.0.2.4", asn=None),
        to=SegmentEnd(ttl=5, address="192.0.2.5", asn=None),
        flow=0,
    ),
    direction="either",
    owner=Owner(role="unknown"),
    why="12 % are lost",
    evidence={"metric": "loss", "end_lost": 12},
    changes_mind="",
    next_step="",
)
FARTHER = Segment(
    from_=SegmentEnd(ttl=5, address="192.0.2.4", asn=None), to=SegmentEnd(ttl=6, address="192.0.2.5", asn=None), flow=3
)
ELSEWHERE = Segment(from_=FARTHER.from_, to=SegmentEnd(ttl=6, address="192.0.2.6", asn=None), flow=0)
NAMELESS = Segment(from_=FARTHER.from_, to=SegmentEnd(ttl=6, address=None, asn=None), flow=0)


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        (replace(BASE, id="x", vantages=("b",), why="9 % are lost", confidence="likely"), True),
        (replace(BASE, id="x", vantages=("b",), evidence={"metric": "loss", "end_lost": 9}), True),
        (replace(BASE, id="x", vantages=("b",), segment=FARTHER), True),
        (replace(BASE, id="x", vantages=("b",), segment=ELSEWHERE), False),
        (replace(BASE, id="x", vantages=("b",), segment=NAMELESS), False),
        (replace(BASE, id="x", vantages=("b",), segment=None), False),
        (replace(BASE, id="x", vantages=("b",), target="u"), False),
        (replace(BASE, id="x", vantages=("b",), kind="slow-from"), False),
        (replace(BASE, id="x", vantages=("b",), severity="info"), False),
        (replace(BASE, id="x", vantages=("b",), owner=Owner(role="provider")), False),
        (replace(BASE, id="x", vantages=("b",), evidence={"metric": "rtt_p95"}), False),
    ],
)
def test_what_makes_two_findings_one(other: Finding, alike: bool) -> None:
    groups = grouped([BASE, other])
    assert groups == ([(BASE, other)] if alike else [(BASE,), (other,)])
    assert places(groups[0]) == (("a", "b") if alike else ("a",))


def test_findings_of_no_target_stay_alone_and_order_is_kept() -> None:
    first, second = (
        replace(BASE, id=f"vantage-fault/{name}", kind="vantage-fault", target=None, segment=None, vantages=(name,))
        for name in ("a", "b")
    )
    late = replace(BASE, id="z", vantages=("c",))
    assert grouped([first, BASE, second, late]) == [(first,), (BASE, late), (second,)]
