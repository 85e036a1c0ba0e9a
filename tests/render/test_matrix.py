"""Places × targets: a target's outcome and a place's failure never share a cell's words (method 6.1)."""

from msgspec.structs import replace

from hopscope.model.report import HttpResult, PingResult, Report, TraceResult
from hopscope.render import matrix
from hopscope.render.blocks import Cell, Table


def test_one_place_alone_has_no_matrix(report: Report) -> None:
    assert list(matrix.blocks(replace(report, vantages=report.vantages[:1]))) == []


def test_a_place_that_failed_says_nothing_of_any_target(report: Report) -> None:
    cells = column(report, "office")
    assert {cell.text for cell in cells} == {"–"}
    assert {cell.below for cell in cells} == {("place failed",)}
    assert {cell.tone for cell in cells} == {"quiet"}


def test_a_cell_tells_the_round_trip_then_what_stands_out(report: Report) -> None:
    cells = dict(zip(column(report, "target"), column(report, "here"), strict=True))
    told = {name.text: (cell.text, cell.below, cell.tone) for name, cell in cells.items()}
    assert told == {
        "fra-h100": ("8.31", ("loss 6 %", "Packets are lost"), "warning"),
        "par-a100": ("8.31", (), "plain"),
        "ams-l40s": ("8.31", ("server 1840", "The server is slow"), "warning"),
        "gone": ("–", ("The name cannot be looked up",), "critical"),
    }
    assert {name.text: name.below for name in cells} == {
        "fra-h100": ("WARNING",),
        "par-a100": ("OK",),
        "ams-l40s": ("WARNING",),
        "gone": ("CRITICAL",),
    }


def test_without_a_ping_the_trace_tells_and_without_both_the_requests(report: Report) -> None:
    trace = next(one for one in report.results if isinstance(one, TraceResult))
    http = next(one for one in report.results if isinstance(one, HttpResult))
    only = replace(report, results=(trace, http))
    cells = dict(zip((cell.text for cell in column(only, "target")), column(only, "here"), strict=True))
    assert cells["fra-h100"].text == f"{trace.end_to_end.delay.p50_ms}"
    assert cells["ams-l40s"].text == "11.2"
    assert cells["par-a100"].below == ("not measured",)


def test_a_silent_ping_does_not_hide_what_a_later_one_answers(report: Report) -> None:
    ping = next(one for one in report.results if isinstance(one, PingResult))
    silent = replace(
        ping,
        outcome="timeout",
        loss=replace(ping.loss, received=0, lost=ping.loss.sent),
        delay=replace(ping.delay, n=0, p50_ms=None),
    )
    tcp = replace(ping, protocol="tcp", port=443, outcome="ok")
    cells = column(replace(report, results=(silent, tcp)), "here")
    assert cells[0].text == "8.31"


def column(report: Report, title: str) -> list[Cell]:
    table = next(block for block in matrix.blocks(report) if isinstance(block, Table))
    index = [one.title for one in table.columns].index(title)
    return [row[index] for row in table.rows]
