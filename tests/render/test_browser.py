"""The HTML report in a real browser: it says nothing on the console and asks for nothing but itself."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from hopscope.model.report import Report
from hopscope.render import html
from hopscope.render.html_charts import Draw
from render.poison import poisoned

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND",
    "--enable-logging=stderr", "--v=0", "--dump-dom",
)  # fmt: skip
THE_BROWSER_ITSELF = "not an origin"  # what its network log calls the initiator of its own housekeeping
START_SECONDS = 60

pytestmark = pytest.mark.browser


def test_the_report_asks_for_nothing(report: Report, draw: Draw, tmp_path: Path) -> None:
    dom, console, asked = visit(html.render(report, draw), tmp_path)
    assert "Packets are lost" in dom
    assert dom.count("<svg") == 5
    assert console == []
    assert asked == set()


def test_a_page_that_asks_is_caught(tmp_path: Path) -> None:
    page = '<script>console.log("seen")</script><img src="http://127.0.0.1:9/i.png">'
    _, console, asked = visit(page, tmp_path)
    assert any("seen" in line for line in console)
    assert "http://127.0.0.1:9/i.png" in asked


@pytest.mark.parametrize(
    "nasty", ["<svg onload=alert(1)>\"'></text><image href='http://127.0.0.1:9/i.png'/>", "url(//x)"]
)
def test_hostile_names_in_charts_ask_for_nothing(nasty: str, report: Report, draw: Draw, tmp_path: Path) -> None:
    hostile = poisoned(report, Report, nasty)
    assert isinstance(hostile, Report)
    dom, console, asked = visit(html.render(hostile, draw), tmp_path)
    assert dom.count("<svg") == 3  # all targets have one name now, so their series share a chart
    assert console == []
    assert asked == set()


def test_the_policy_stops_what_is_not_ours(report: Report, draw: Draw, tmp_path: Path) -> None:
    page = html.render(report, draw).replace("</main>", '<script>1</script><img src="http://127.0.0.1:9/i.png"></main>')
    _, console, asked = visit(page, tmp_path)
    assert len([line for line in console if "Content Security Policy" in line]) == 2
    assert asked == set()


def visit(page: str, folder: Path) -> tuple[str, list[str], set[str]]:
    """Open a page: its elements, what the console said, and the network addresses asked for."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("no chromium: `make test-deps` installs it")
    file, log = folder / "page.html", folder / "net.json"
    file.write_text(page, encoding="utf-8")
    done = subprocess.run(
        [browser, *FLAGS, f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}", file.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=START_SECONDS,
    )
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done.stdout, console, requests(log)


def requests(log: Path) -> set[str]:
    """The addresses that the page asked for over a network, from the browser's network log."""
    told = [event.get("params", {}) for event in json.loads(log.read_text())["events"]]
    asked = [each for each in told if each.get("initiator", THE_BROWSER_ITSELF) != THE_BROWSER_ITSELF]
    return {str(each["url"]) for each in asked if "url" in each}
