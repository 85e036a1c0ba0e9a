"""Tables of how numbers and findings are worded, and that no member of a closed list is without its word."""

from typing import get_args, get_type_hints

import pytest

from hopscope.analysis import say
from hopscope.model.record import ErrorClass
from hopscope.model.report import (
    Client,
    Confidence,
    Evidence,
    FailureReport,
    Finding,
    FindingKind,
    Label,
    Outcome,
    Owner,
    PathEnd,
    Role,
    Segment,
    SegmentEnd,
    ServerTime,
    Severity,
    Status,
    VantageReport,
)
from hopscope.render import terms, words


@pytest.mark.parametrize(
    ("value", "sentence", "cell"),
    [
        (None, "unknown", "–"),
        (float("nan"), "unknown", "–"),
        (float("inf"), "unknown", "–"),
        (0.0, "0 ms", "0"),
        (0.0004, "under 0.001 ms", "under 0.001"),
        (0.045, "0.045 ms", "0.045"),
        (0.2, "0.2 ms", "0.200"),
        (0.9996, "1.00 ms", "1.00"),
        (8.314, "8.31 ms", "8.31"),
        (9.996, "10.0 ms", "10.0"),
        (83.14, "83.1 ms", "83.1"),
        (831.4, "831 ms", "831"),
        (999.4, "999 ms", "999"),
        (999.6, "1.00 s", "1000"),
        (1523.0, "1.52 s", "1523"),
        (75_000.0, "75.0 s", "75000"),
        (-0.12, "−0.12 ms", "−0.120"),
    ],
)
def test_durations(value: float | None, sentence: str, cell: str) -> None:
    assert (say.ms(value), words.cell_ms(value)) == (sentence, cell)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "unknown"),
        (float("nan"), "unknown"),
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.06, "6 %"),
        (0.123, "12.3 %"),
        (0.3, "30 %"),
        (0.0312, "3.1 %"),
        (0.005, "0.5 %"),
        (0.0002, "0.02 %"),
        (0.0000012, "0.00012 %"),
        (1e-12, "under 0.0000001 %"),
        (0.995, "99.5 %"),
        (0.99985, "99.985 %"),
        (1 - 1e-12, "over 99.9999999 %"),
    ],
)
def test_ratios(value: float | None, text: str) -> None:
    assert say.ratio(value) == text


def test_intervals() -> None:
    assert words.ratio_interval(0.0, 0.0713) == "0–7.1 %"
    assert words.ratio_interval(1e-17, 0.0713) == "0–7.1 %"
    assert words.ratio_interval(0.963, 1.0) == "96.3–100 %"
    assert words.ratio_interval(None, 0.1) == ""
    assert words.interval(8.2, 8.44) == "8.20–8.44"
    assert words.interval(8.2, None) == ""
    assert words.bracket(None) == ""
    assert words.bracket(bracket(None, None)) == ""
    assert words.bracket(bracket(None, 92.4)) == "––92.4"
    assert words.bracket(bracket(88.1, 92.4)) == "88.1–92.4"


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({}, ""),
        ({"server_p50_ms": 1840.0, "mtu_bytes": 1400}, "server p50 1.84 s · mtu 1400 bytes"),
        ({"loss": 0.06, "loss_before": 0.0, "high": None}, "loss 6 % · loss before 0 % · high unknown"),
        ({"limited": True, "reached": False}, "limited yes · reached no"),
        ({"p": 0.00000174, "rate": 2.0, "sent": 300}, "p 1.74e-06 · rate 2 · sent 300"),
        ({"header\n": "x\x1b[2J"}, r"header\n x\x1b[2J"),
    ],
)
def test_evidence(facts: Evidence, text: str) -> None:
    assert words.evidence(facts) == text


@pytest.mark.parametrize(
    ("hostile", "text"),
    [
        ("plain, ñ 漢 é", "plain, ñ 漢 é"),
        ("a\nb\r\tc\0", r"a\nb\r\tc\x00"),
        ("\x1b[31mred\x9b0m\x07", r"\x1b[31mred\x9b0m\x07"),
        ("\u202egpj.exe\u2066\u200b\ufeff", r"\u202egpj.exe\u2066\u200b\ufeff"),
        ("\u2028\u2029\x85", r"\u2028\u2029\x85"),
        ("\U000e0041", r"\U000e0041"),
        ("\udcff", r"\udcff"),
        ("x" * 200, "x" * 119 + "…"),
    ],
)
def test_hostile_text(hostile: str, text: str) -> None:
    assert words.clean(hostile) == text
    assert words.clean(hostile).isprintable()


@pytest.mark.parametrize(
    ("owner", "text"),
    [
        (Owner(role="you"), "you"),
        (Owner(role="unknown"), "unknown"),
        (Owner(role="transit", asns=(64500,), name="Example"), "a transit network: Example (AS64500)"),
        (Owner(role="provider", asns=(64500,)), "the server's hosting provider: AS64500"),
        (Owner(role="operator", name="Example"), "whoever operates the server: Example"),
        (Owner(role="border", asns=(64500, 64510)), "the border of AS64500 and AS64510"),
        (Owner(role="border", asns=(64500, 64510), name="A and B"), "the border of AS64500 and AS64510: A and B"),
    ],
)
def test_owners(owner: Owner, text: str) -> None:
    assert words.owner(owner) == text


def test_places() -> None:
    near = SegmentEnd(ttl=0, address=None, asn=None)
    third = SegmentEnd(ttl=3, address="11.0.0.1", asn=None)
    fourth = SegmentEnd(ttl=4, address=None, asn=None)
    either = finding(segment=Segment(from_=third, to=fourth, flow=None))
    forward = finding(segment=Segment(from_=near, to=third, flow=2), direction="forward")
    assert words.place(either) == (
        "between hop 3 (11.0.0.1) and hop 4 (no address), on the way to, or back from, the target"
    )
    assert words.place(forward) == "between this host and hop 3 (11.0.0.1), on the way to the target (flow 2)"
    assert words.place(finding(segment=None)) == "seen end to end, the hop is unknown"
    assert words.place(finding(segment=None, kind="server-slow")) is None


def test_how_sure() -> None:
    assert words.sureness(finding()) == "likely, not shown yet. This would change it: more rounds"


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (None, "how it ended is unknown"),
        (PathEnd(how="echo-reply", code=0, address="11.0.0.9", ttl=7), "the target answered the echo at hop 7"),
        (PathEnd(how="gap-limit", code=None, address=None, ttl=None), "too many hops in a row gave no reply"),
        (
            PathEnd(how="unreachable", code=13, address="11.0.0.1", ttl=3),
            "an ICMP unreachable ended it (code 13) by 11.0.0.1 at hop 3",
        ),
    ],
)
def test_ends_of_paths(end: PathEnd | None, text: str) -> None:
    assert words.path_end(end) == text


def test_the_measuring_side() -> None:
    assert words.client(Client()) == "the reason was not recorded"
    assert words.client(Client(late_p99_ms=14.0, drops=1, clock_step_ms=-2.5, limited=True)) == (
        "probes left up to 14.0 ms late (p99), 1 packet dropped by its own socket, its clock stepped by −2.50 ms"
    )


@pytest.mark.parametrize(
    ("table", "members"),
    [
        (terms.STATUSES, get_args(Status)),
        (terms.SEVERITIES, get_args(Severity)),
        (terms.CONFIDENCES, get_args(Confidence)),
        (terms.OUTCOMES, get_args(Outcome)),
        (terms.OUTCOME_TONES, get_args(Outcome)),
        (terms.LABELS, get_args(Label)),
        (terms.LABEL_TONES, get_args(Label)),
        (terms.ROLES, get_args(Role)),
        (terms.ERRORS, get_args(ErrorClass)),
        (terms.FINDINGS, get_args(FindingKind)),
        (terms.PATH_ENDS, get_args(get_type_hints(PathEnd)["how"])),
        (terms.FAILURES, get_args(get_type_hints(FailureReport)["kind"])),
        (terms.VANTAGE_OUTCOMES, get_args(get_type_hints(VantageReport)["outcome"])),
        (terms.BASES, get_args(get_type_hints(ServerTime)["basis"])),
        (words.DIRECTIONS, get_args(get_type_hints(Finding)["direction"])),
    ],
)
def test_every_member_has_its_word(table: dict[str, str], members: tuple[str, ...]) -> None:
    assert set(table) == set(members)


def bracket(lower: float | None, upper: float | None) -> ServerTime:
    return ServerTime(lower_ms=lower, upper_ms=upper, estimate_ms=None, width_ms=None, basis="stamps")


def finding(*, segment: Segment | None = None, kind: FindingKind = "lossy-from", direction: str = "either") -> Finding:
    return Finding(
        id="x",
        kind=kind,
        severity="warning",
        confidence="likely",
        target="t",
        vantages=(),
        segment=segment,
        direction="forward" if direction == "forward" else "either",
        owner=Owner(role="unknown"),
        why="",
        evidence={},
        changes_mind="more rounds",
        next_step="",
    )
