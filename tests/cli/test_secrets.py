"""A planted key goes into the request and nowhere else: not on tape, in reports, on screen, or in the arguments."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from cli.invoking import PATIENCE_S, SOURCE, command, here
from net.servers import Script, read_request, say, serve

pytestmark = pytest.mark.loopback

KEY = "sk-planted-7f3a9c51e8"
TARGET = """
[[target]]
name = "keyed"
url = "http://127.0.0.1:{port}/v1"
probes = ["ping", "http"]
count = 3
interval = "10ms"
requests = 2
api_key_env = "PLANTED_KEY"
headers_env = {{ X-Api-Key = "PLANTED_KEY", X-Other = "PLANTED_KEY" }}
"""


def echoing(status: str) -> Script:
    """A server that says back all it was told: in the status line, in header fields and in the body."""

    def script(conn: object) -> None:
        while request := read_request(conn):  # type: ignore[arg-type]
            told = request.decode("latin-1").split("\r\n")
            fields = "".join(f"X-Echo-{number}: {line}\r\n" for number, line in enumerate(told) if line)
            body = request
            head = f"HTTP/1.1 {status} {KEY}\r\nServer-Timing: {KEY};dur=3\r\nX-Processing-Time: {KEY}\r\n{fields}"
            say(conn, (f"{head}Content-Length: {len(body)}\r\n\r\n".encode("latin-1") + body,))  # type: ignore[arg-type]

    return script


def run(place: Path, *argv: str) -> tuple[str, str]:
    """All that a command says, and its arguments as every process can read them."""
    child = subprocess.Popen(
        command(*argv), cwd=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "PLANTED_KEY": KEY}, text=True,
    )  # fmt: skip
    typed = Path(f"/proc/{child.pid}/cmdline").read_text()
    said, _ = child.communicate(timeout=PATIENCE_S)
    assert child.returncode in {0, 1, 2}
    return said, typed


def nowhere(place: Path, *texts: str) -> None:
    """The key stands in no text and in no file."""
    assert [text for text in texts if KEY in text] == []
    files = [path for path in place.rglob("*") if path.is_file()]
    assert [path.name for path in files if KEY.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("status", ["200", "401", "500"])
def test_a_key_of_a_target_file(status: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with serve(echoing(status)) as server:
        (tmp_path / "keyed.toml").write_text(TARGET.format(port=server.port))
        told = run(tmp_path, "run", "keyed.toml", "--out", "out")
        assert server.accepted
    again = [here(capfd, "report", f"{tmp_path}/out", "--format", name).out for name in ("text", "md", "html", "csv")]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "report.html", "report.json", "report.md", "run.jsonl",
    ]  # fmt: skip
    nowhere(tmp_path, *told, *again)
    assert "PLANTED_KEY" in (tmp_path / "out" / "run.jsonl").read_text()


@pytest.mark.parametrize("format_", ["text", "json", "csv", "html", "md"])
def test_a_key_of_the_command_line(format_: str, tmp_path: Path) -> None:
    with serve(echoing("200")) as server:
        url = f"http://127.0.0.1:{server.port}/"
        fields = ("-H", "Authorization: env:PLANTED_KEY", "-H", "X-Other: env:PLANTED_KEY")
        told = run(tmp_path, "http", url, "-n", "2", *fields, "--format", format_)
    nowhere(tmp_path, *told)


def test_the_server_did_get_the_key(tmp_path: Path) -> None:
    got: list[bytes] = []

    def script(conn: object) -> None:
        while request := read_request(conn):  # type: ignore[arg-type]
            got.append(request)
            say(conn, (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",))  # type: ignore[arg-type]

    with serve(script) as server:
        (tmp_path / "keyed.toml").write_text(TARGET.format(port=server.port))
        run(tmp_path, "run", "keyed.toml", "--out", "out")
    assert [f"Bearer {KEY}".encode() in request for request in got] == [True, True]
    assert [request.count(KEY.encode()) for request in got] == [3, 3]


def test_a_variable_that_is_not_set_is_named_and_nothing_is_sent(tmp_path: Path) -> None:
    with serve(echoing("200")) as server:
        done = subprocess.run(
            command("http", f"http://127.0.0.1:{server.port}/", "-H", "Authorization: env:NO_SUCH_KEY", "--json"),
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            capture_output=True, text=True, check=False, timeout=PATIENCE_S,
        )  # fmt: skip
        assert server.accepted == []
    (failure,) = json.loads(done.stdout)["failures"]
    assert failure["kind"] == "rights"
    assert "NO_SUCH_KEY" in failure["why"]
