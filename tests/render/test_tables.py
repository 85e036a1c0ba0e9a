"""What stands in the tables: which measurement a row rests on, which columns are left out, which request is shown."""

from collections.abc import Iterable
from typing import TypeVar

from msgspec.structs import replace

from hopscope.model.report import Hop, HttpResult, Label, PingResult, Report, Request, Result, TraceResult
from hopscope.render import tables
from hopscope.render.blocks import Table

R = TypeVar("R", PingResult, TraceResult, HttpResult)


def test_a_row_rests_on_the_ping_and_takes_the_request_beside_it(report: Report) -> None:
    ping, http = find(report, PingResult, "ams-l40s"), find(report, HttpResult, "ams-l40s")
    row = only_row(report, [ping, http])
    assert row["target"] == "ams-l40s / 11.0.8.4 TCP 443"
    assert row["RTT p50"] == "8.31 / 8.19–8.51"
    assert row["loss"] == "0 % / 0–7.1 %"
    assert row["TCP connect"] == "11.3"
    assert row["server p50"].startswith("1840")
    assert row["state"] == "degraded"


def test_without_a_ping_it_rests_on_the_trace(report: Report) -> None:
    row = only_row(report, [find(report, TraceResult, "fra-h100")])
    assert row["target"] == "fra-h100 / 11.0.5.9 trace TCP 443"
    assert row["loss"] == "6 % / 2.8–12.5 %"


def test_without_a_path_it_rests_on_the_connections(report: Report) -> None:
    row = only_row(report, [find(report, HttpResult, "ams-l40s")])
    assert row["target"] == "ams-l40s / 11.0.8.4 HTTP"
    assert row["RTT p50"].startswith("11.2")
    assert "loss" not in row


def test_each_ping_has_a_row_and_what_nobody_says_has_no_column(report: Report) -> None:
    tcp = find(report, PingResult, "par-a100")
    table = tables.targets(replace(report, results=(tcp, replace(tcp, protocol="icmp", port=None))))
    assert table is not None
    assert [row["target"] for row in texts(table)] == ["par-a100 / 11.0.7.2 TCP 443", "par-a100 / 11.0.7.2 ICMP"]
    assert set(texts(table)[0]) == {"target", "from", "RTT p50", "RTT p95", "loss", "PDV p95"}


def test_an_outcome_of_any_result_of_the_row_is_its_state(report: Report) -> None:
    ping = find(report, PingResult, "ams-l40s")
    http = replace(find(report, HttpResult, "ams-l40s"), outcome="tls")
    trace = replace(find(report, TraceResult, "fra-h100"), target="ams-l40s", address="11.0.8.4", outcome="unreachable")
    assert only_row(report, [ping, http, trace])["state"] == "TLS failed / unreachable"


def test_hops_that_are_silent_in_a_row_share_one(report: Report) -> None:
    rows = texts(tables.hops(find(report, TraceResult, "fra-h100")))
    assert [row["hop"] for row in rows] == ["1", "2", "3", "4–5", "6", "7"]
    assert rows[3]["address"] == "no reply"
    assert rows[2]["address"] == "ae1.core1.vie.transit.example / 11.0.0.1 / also 11.0.0.5 (×100)"
    assert [row["judged"] for row in rows] == ["ok", "limits replies", "ok", "", "loss begins", "loss goes on"]


def test_all_labels_of_a_hop_are_told(report: Report) -> None:
    trace = find(report, TraceResult, "fra-h100")
    hop = labelled(trace.hops[-1], "slow-from", "varying-from")
    assert texts(tables.hops(replace(trace, hops=(hop,))))[0]["judged"] == "delay begins / varying begins"


def test_the_typical_request_is_a_real_one(report: Report) -> None:
    requests = find(report, HttpResult, "ams-l40s").requests
    assert tables.typical(requests) == by_total(requests)[1]
    assert tables.typical(requests[-1:]) is None
    assert [row["request"] for row in texts(tables.phases(find(report, HttpResult, "ams-l40s")))] == [
        "cold / median of 2",
        "cold / slowest of 2",
        "hot / median of 2",
        "hot / slowest of 2",
    ]


def test_a_single_request_stands_alone_and_what_is_left_over_shows(report: Report) -> None:
    http = find(report, HttpResult, "ams-l40s")
    request = replace(http.requests[0], phases_ms=replace(http.requests[0].phases_ms, unattributed=1.2))
    rows = texts(tables.phases(replace(http, requests=(request,))))
    assert [(row["request"], row["unattributed"]) for row in rows] == [("cold", "1.20")]


def test_one_place_that_did_well_needs_no_table(report: Report) -> None:
    assert tables.vantages(replace(report, vantages=report.vantages[:1])) is None
    assert tables.vantages(replace(report, vantages=report.vantages[1:])) is not None


def find(report: Report, kind: type[R], target: str) -> R:
    return next(result for result in report.results if isinstance(result, kind) and result.target == target)


def labelled(hop: Hop, *labels: Label) -> Hop:
    return replace(hop, label=labels[0], labels=labels)


def by_total(requests: Iterable[Request]) -> list[Request]:
    answered = [request for request in requests if request.error is None]
    return sorted(answered, key=lambda request: request.phases_ms.total or 0.0)


def only_row(report: Report, results: list[Result]) -> dict[str, str]:
    (row,) = texts(tables.targets(replace(report, results=tuple(results))))
    return row


def texts(table: Table | None) -> list[dict[str, str]]:
    assert table is not None
    titles = [column.title for column in table.columns]
    return [
        dict(zip(titles, (" / ".join([cell.text, *cell.below]) for cell in row), strict=True)) for row in table.rows
    ]
