"""Every renderer writes exactly what is kept beside this file, piece by piece, and imports only what it needs.

`UPDATE_SNAPSHOTS=1` in the environment writes them anew; the difference is then for a person to read.
"""

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from hopscope.model.report import PingResult, Report, Samples
from hopscope.render import RENDERERS, html, terminal

SNAPSHOTS = Path(__file__).parent / "snapshots"
UPDATE = bool(os.environ.get("UPDATE_SNAPSHOTS"))


@pytest.mark.parametrize("name", [*RENDERERS, "80.text"])
def test_output_is_as_kept(name: str, report: Report) -> None:
    text = written(name, report)
    kept = SNAPSHOTS / f"report.{name.replace('text', 'txt')}"
    if UPDATE:
        kept.write_bytes(text.encode())
    assert text == kept.read_bytes().decode()


def written(name: str, report: Report) -> str:
    """The output; HTML without its charts, since their bytes are those of a library's version."""
    match name:
        case "80.text":
            return terminal.render(report, width=80, colour=False)
        case "html":
            return html.render(report, None)
        case _:
            return "".join(RENDERERS[name](report))


def test_importing_the_room_imports_no_renderer() -> None:
    program = "import sys, hopscope.render; print([m for m in ('rich', 'html', 'csv') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", [name for name in RENDERERS if name != "text"])
def test_only_the_terminal_needs_rich(name: str) -> None:
    module = {"md": "markdown"}.get(name, name)
    program = f"import sys, hopscope.render.{module}; print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["json", "csv"])
def test_samples_never_stand_in_memory_together(name: str, report: Report, generated: Callable[[int], Samples]) -> None:
    few, many = (peak(name, with_samples(report, generated(number))) for number in (20_000, 200_000))
    assert many < 3 * few


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
@pytest.mark.parametrize("colour", [False, True])
def test_the_terminal_keeps_to_its_width(width: int, colour: bool, report: Report) -> None:
    text = terminal.render(report, width=width, colour=colour)
    lines = [visible(line) for line in text.splitlines()]
    assert [line for line in lines if cell_len(line) > width] == []
    assert text.endswith("\n")
    assert ("\x1b" in text) is colour
    assert lines == terminal.render(report, width=width, colour=False).splitlines()


def test_the_terminal_begins_with_the_verdict(report: Report) -> None:
    assert terminal.render(report, width=200, colour=False).startswith(" CRITICAL  gone cannot be reached")


@pytest.mark.parametrize("name", ["text", "md", "html"])
def test_an_empty_report_is_still_a_document(name: str, report: Report) -> None:
    empty = replace(
        report,
        partial=False,
        started_at=None,
        finished_at=None,
        vantages=(),
        targets=(),
        verdict=replace(report.verdict, findings=()),
        results=(),
        failures=(),
    )
    text = "".join(RENDERERS[name](empty))
    assert "CRITICAL" in text
    assert "Targets" not in text


def peak(name: str, report: Report) -> int:
    """The most memory, in bytes, that stood at once while the report was written and thrown away."""
    tracemalloc.start()
    try:
        for _ in RENDERERS[name](report):
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def with_samples(report: Report, samples: Samples) -> Report:
    ping = next(result for result in report.results if isinstance(result, PingResult))
    sent = sum(not sample.warmup for sample in samples)
    return replace(report, results=(replace(ping, samples=samples, loss=replace(ping.loss, sent=sent)),))


def visible(line: str) -> str:
    """The line without the colours that rich wrote."""
    pieces = line.split("\x1b[")
    return pieces[0] + "".join(piece.split("m", 1)[1] for piece in pieces[1:])
