"""What charts are drawn from: which probes share a dot, what is left out and said, which part begins where."""

import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pytest
from msgspec.structs import replace

from hopscope.model.report import (
    HttpResult,
    Loss,
    PingResult,
    PingSample,
    Report,
    Request,
    SampleOutcome,
    Samples,
    ServerTime,
    TargetReport,
    TraceResult,
)
from hopscope.render import html, markdown, pictures, terminal
from hopscope.render.blocks import Chart, Dot, Ladder, OverTime, Rung, Span, Steps, Table, Waterfall

R = TypeVar("R", PingResult, TraceResult, HttpResult)
AT = 1_777_885_920_000  # 2026-05-04 09:12:00 UTC


class Listed(Samples):
    """A probe a second, with these outcomes; an answer takes as many milliseconds as its number."""

    def __init__(self, outcomes: Sequence[SampleOutcome]) -> None:
        self.outcomes = outcomes

    def __iter__(self) -> Iterator[PingSample]:
        for seq, outcome in enumerate(self.outcomes):
            yield PingSample(
                seq=seq,
                flow=0,
                warmup=seq == 0,
                sent_at=f"2026-05-04T09:{12 + seq // 60:02}:{seq % 60:02}.000000Z",
                outcome=outcome,
                rtt_ms=float(seq) if outcome in {"replied", "refused"} else None,
                clock="kernel",
                reply_ttl=57,
            )


def dot(second: int, sent: int = 1, lost: int = 0, rtts: tuple[float, float, float] | None = None) -> Dot:
    least, middle, most = rtts or (None, None, None)
    return Dot(at=AT + 1000 * second, sent=sent, lost=lost, min_ms=least, p50_ms=middle, max_ms=most)


# ---- over time ------------------------------------------------------------------------------------------------------


def test_each_probe_of_a_short_series_is_a_dot(report: Report) -> None:
    outcomes: list[SampleOutcome] = [
        "replied", "replied", "lost", "late", "unsent", "void", "refused", "unreachable", "replied"
    ]  # fmt: skip
    (chart,) = courses(report, [series(report, Listed(outcomes), sent=6, lost=3)])
    (line,) = drawn(chart).lines
    assert line.dots == (
        dot(1, rtts=(1, 1, 1)),
        dot(2, lost=1),
        dot(3, lost=1),
        dot(6, rtts=(6, 6, 6)),
        dot(7, lost=1),
        dot(8, rtts=(8, 8, 8)),
    )
    assert (line.name, line.told) == ("here TCP 443", "3 of 6 lost")
    assert (chart.legend, chart.note) == ("", "")
    assert chart.told == (
        "Round trips to par-a100 over time, and which were lost. here TCP 443: 3 of 6 lost, p50 8.31 ms."
    )


def test_probes_of_a_long_series_share_dots_and_none_is_dropped(report: Report) -> None:
    outcomes: list[SampleOutcome] = ["replied"] * 602
    outcomes[5] = outcomes[601] = "lost"
    (chart,) = courses(report, [series(report, Listed(outcomes), sent=601, lost=2)])
    (line,) = drawn(chart).lines
    assert line.dots[0] == dot(1, sent=4, rtts=(1, 2.5, 4))
    assert line.dots[1] == dot(5, sent=4, lost=1, rtts=(6, 7, 8))
    assert line.dots[-1] == dot(601, sent=1, lost=1)
    assert len(line.dots) == 151
    assert "up to 4 probes share a dot" in chart.legend


def test_the_table_counts_what_the_chart_counts(report: Report) -> None:
    outcomes: list[SampleOutcome] = ["lost" if seq and seq % 10 == 0 else "replied" for seq in range(51)]
    (chart,) = courses(report, [series(report, Listed(outcomes), sent=50, lost=5)])
    rows = texts(chart.table)
    assert len(rows) == 10
    assert rows[:2] == [
        ["here TCP 443", "09:12:01", "5", "0", "1.00", "3.00", "5.00"],
        ["here TCP 443", "09:12:06", "5", "1", "6.00", "7.50", "9.00"],
    ]
    assert [sum(int(row[column]) for row in rows) for column in (2, 3)] == [50, 5]


@pytest.mark.parametrize(("number", "rows"), [(1, 10), (2, 12), (3, 12), (6, 12)])
def test_the_table_stays_short_with_several_series(number: int, rows: int, report: Report) -> None:
    one = series(report, Listed(["replied"] * 121), sent=120, lost=0)
    (chart,) = courses(report, [replace(one, address=f"11.0.7.{index}") for index in range(number)])
    assert len(texts(chart.table)) == rows


def test_a_series_is_called_by_what_tells_it_apart(report: Report) -> None:
    one = series(report, Listed(["replied"] * 5), sent=4, lost=0)
    alone = replace(report, vantages=report.vantages[:1])
    assert names(courses(alone, [one])) == ["TCP 443"]
    icmp = replace(one, protocol="icmp", port=None, address="2001:db8::7")
    assert names(courses(alone, [one, icmp])) == ["TCP 443 11.0.7.2", "ICMP 2001:db8::7"]
    assert names(courses(report, [replace(one, vantage="x" * 500)])) == [f"{'x' * 21}… TCP 443"]


def test_the_worst_series_and_targets_are_drawn_and_the_rest_is_said(report: Report) -> None:
    one = series(report, Listed(["replied"] * 5), sent=4, lost=0)
    many = [replace(one, address=f"11.0.7.{n}", loss=Loss(sent=4, received=4 - n % 2, lost=n % 2, ratio=n % 2 / 4))
            for n in range(9)]  # fmt: skip
    (chart,) = courses(report, many)
    assert names([chart]) == [f"here TCP 443 11.0.7.{n}" for n in (0, 1, 2, 3, 5, 7)]
    assert chart.note == "Drawn are the 6 worst of 9 series; the table above has them all."

    targets = tuple(TargetReport(name=f"t{n}", status="ok" if n else "warning", summary="") for n in range(13, -1, -1))
    charts = courses(replace(report, targets=targets), [replace(one, target=each.name) for each in targets])
    assert [chart.caption.split()[3] for chart in charts] == [*(f"t{n}" for n in range(13, 2, -1)), "t0"]
    assert [chart.note for chart in charts] == [
        *[""] * 11, "Drawn are the 12 worst of 14 targets; the table above has them all."
    ]  # fmt: skip


def test_what_was_sent_once_or_never_has_no_course(report: Report) -> None:
    assert courses(report, [series(report, Listed(["replied"] * 2), sent=1, lost=0)]) == []
    assert courses(report, [series(report, Listed([]), sent=0, lost=0)]) == []


@pytest.mark.slow
def test_samples_are_read_once_and_never_stand_together(report: Report, generated: Callable[[int], Samples]) -> None:
    sent = 200_000
    ping = series(report, generated(sent + 1), sent=sent, lost=40_000)
    tracemalloc.start()
    try:
        (chart,) = courses(report, [ping])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    (line,) = drawn(chart).lines
    assert len(line.dots) == pictures.MOST_DOTS
    assert [sum(each.sent for each in line.dots), sum(each.lost for each in line.dots)] == [sent, 40_000]
    assert peak < 10 * sent  # bytes; a sample alone takes more than a hundred


# ---- path -----------------------------------------------------------------------------------------------------------


def test_the_ladder_has_a_rung_for_each_hop_and_a_gap_for_silence(report: Report) -> None:
    (chart,) = pictures.of_path(find(report, TraceResult))
    assert isinstance(chart, Chart)
    assert isinstance(chart.picture, Ladder)
    near = {"min_ms": 0.31, "p50_ms": 0.39, "p95_ms": 0.7}
    assert [(rung.name, rung.told, rung.tone) for rung in chart.picture.rungs] == [
        ("1 192.168.1.1", "", "plain"),
        ("2 100.64.0.1", "65 % lost, limits replies", "info"),
        ("3 ae1.core1.vie.transit.example", "", "plain"),
        ("4–5", "no reply", "quiet"),
        ("6 edge2.fra.hosting.example", "6 % lost, loss begins", "critical"),
        ("7 gpu1.example.net", "6 % lost, loss goes on", "quiet"),
    ]
    assert chart.picture.rungs[0] == Rung(name="1 192.168.1.1", told="", tone="plain", **near)
    assert chart.picture.rungs[3] == Rung(name="4–5", told="no reply", tone="quiet")
    assert chart.table is None


def test_a_path_without_hops_has_no_ladder(report: Report) -> None:
    assert list(pictures.of_path(replace(find(report, TraceResult), hops=()))) == []


# ---- requests -------------------------------------------------------------------------------------------------------


def test_the_typical_cold_and_hot_request_fall_in_steps(report: Report) -> None:
    cold, hot = falls(find(report, HttpResult))
    assert (cold.name, cold.told) == ("cold, median of 2", "total 1824")
    assert (hot.name, hot.told) == ("hot, median of 2", "total 1844")
    assert [(span.name, span.told, round(span.begin_ms, 3), round(span.end_ms, 3)) for span in cold.spans] == [
        ("DNS", "4.20", 0, 4.2),
        ("connect", "11.3", 4.2, 15.5),
        ("TLS", "13.8", 15.5, 29.3),
        ("upload", "0.200", 29.3, 29.5),
        ("wait", "1791", 29.5, 1820.7),
        ("server", "1780", 34.65, 1815.55),
        ("download", "3.10", 1820.7, 1823.8),
    ]
    assert [span.kind for span in hot.spans] == ["network", "wait", "server", "network"]


@pytest.mark.parametrize(
    ("lower", "upper", "begin", "end", "least"),
    [
        (2.0, 6.0, 2.0, 8.0, 4.0),
        (0.0, 6.0, 2.0, 8.0, 2.0),
        (None, 6.0, 2.0, 8.0, None),
        (4.0, None, 3.0, 7.0, 7.0),
        (4.0, 12.0, 0.0, 10.0, 4.0),
    ],
)
def test_the_bracket_lies_in_the_middle_of_the_wait(
    lower: float | None, upper: float | None, begin: float, end: float, least: float | None, report: Report
) -> None:
    server = ServerTime(lower_ms=lower, upper_ms=upper, estimate_ms=None, width_ms=None, basis="tcp-info")
    wait, found = steps_of(report, server)
    assert (wait.begin_ms, wait.end_ms) == (0, 10)
    assert (found.begin_ms, found.end_ms, found.least_ms) == (begin, end, least)


def test_a_bracket_without_ends_is_not_drawn(report: Report) -> None:
    nothing = ServerTime(lower_ms=None, upper_ms=None, estimate_ms=None, width_ms=None, basis="tcp-info")
    assert [span.name for span in steps_of(report, nothing)] == ["wait"]


def test_what_lies_between_the_phases_is_a_step(report: Report) -> None:
    http = find(report, HttpResult)
    phases = replace(http.requests[0].phases_ms, unattributed=1.5)
    (cold,) = falls(replace(http, requests=(replace(http.requests[0], phases_ms=phases),)))
    assert cold.name == "cold"
    assert [span.name for span in cold.spans][2:5] == ["TLS", "unattributed", "upload"]


def test_requests_that_failed_have_no_steps(report: Report) -> None:
    http = find(report, HttpResult)
    assert list(pictures.of_requests(replace(http, requests=http.requests[-1:]))) == []


# ---- what the writers make of it ------------------------------------------------------------------------------------


def test_without_a_drawer_charts_are_tables_and_the_report_says_so(report: Report) -> None:
    page = html.render(report, None)
    assert page.count("pip install &#x27;hopscope[report]&#x27;") == 1
    assert page.count("<caption>Round trips to") == 3
    assert "<figure" not in page


def test_with_a_drawer_each_chart_is_a_figure(report: Report) -> None:
    page = html.render(report, lambda chart: "<svg></svg>")
    assert page.count("<figure>") == page.count("<svg></svg>") == 5
    assert page.count("<summary>As a table</summary>") == 3
    assert "hopscope[report]" not in page


def test_a_chart_that_cannot_be_drawn_is_its_table(report: Report) -> None:
    page = html.render(report, lambda chart: None)
    assert page.count("<caption>Round trips to") == 3
    assert "<figure" not in page
    assert "hopscope[report]" not in page


def test_so_many_charts_are_drawn_and_no_more(report: Report) -> None:
    trace = find(report, TraceResult)
    page = html.render(replace(report, results=(trace,) * 70), lambda chart: "<svg></svg>")
    assert page.count("<svg>") == html.MOST_DRAWN
    assert page.count("The first 60 charts are drawn") == 1
    assert page.count("<caption>Hops to") == 70


def test_a_report_without_charts_says_nothing_of_them(report: Report) -> None:
    for draw in (None, lambda chart: "<svg></svg>"):
        page = html.render(replace(report, results=()), draw)
        assert "hopscope[report]" not in page
        assert "<figure" not in page


def test_markdown_has_the_table_and_the_terminal_nothing(report: Report) -> None:
    assert markdown.render(report).count("**Round trips to") == 3
    assert "over time" not in terminal.render(report, width=100, colour=False)


def series(report: Report, samples: Samples, *, sent: int, lost: int) -> PingResult:
    loss = Loss(sent=sent, received=sent - lost, lost=lost, ratio=lost / sent if sent else None)
    ping = next(one for one in report.results if isinstance(one, PingResult) and one.target == "par-a100")
    return replace(ping, samples=samples, loss=loss)


def courses(report: Report, pings: list[PingResult]) -> list[Chart]:
    return [each for each in pictures.over_time(replace(report, results=tuple(pings))) if isinstance(each, Chart)]


def drawn(chart: Chart) -> OverTime:
    assert isinstance(chart.picture, OverTime)
    return chart.picture


def names(charts: list[Chart]) -> list[str]:
    return [line.name for chart in charts for line in drawn(chart).lines]


def falls(http: HttpResult) -> tuple[Steps, ...]:
    (chart,) = pictures.of_requests(http)
    assert isinstance(chart, Chart)
    assert isinstance(chart.picture, Waterfall)
    return chart.picture.requests


def steps_of(report: Report, server: ServerTime) -> tuple[Span, ...]:
    """The steps of a hot request that waits 10 ms and does nothing else."""
    http = find(report, HttpResult)
    hot: Request = next(request for request in http.requests if not request.cold)
    phases = replace(hot.phases_ms, upload=None, wait=10.0, download=None, unattributed=None, total=10.0)
    (steps,) = falls(replace(http, requests=(replace(hot, phases_ms=phases, server=server),)))
    return steps.spans


def find(report: Report, kind: type[R]) -> R:
    return next(result for result in report.results if isinstance(result, kind))


def texts(table: Table | None) -> list[list[str]]:
    assert table is not None
    return [[cell.text for cell in row] for row in table.rows]
