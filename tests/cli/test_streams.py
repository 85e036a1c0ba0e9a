"""Standard streams as cron, nohup, pipes and odd terminals leave them: no traceback, and the code of what was found."""

import os
import subprocess
from pathlib import Path

import pytest

from cli.invoking import PATIENCE_S, SOURCE, command, here, process, valid

pytestmark = pytest.mark.loopback

PING = ("ping", "127.0.0.1", "-c", "2", "-i", "10ms")
EVERYTHING = ("run", "home.toml", "--out", "out")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "home.toml").write_text(
        '[[target]]\nname = "home"\nhost = "127.0.0.1"\nprobes = ["ping"]\ncount = 3\ninterval = "10ms"\n'
    )
    return tmp_path


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_nothing_but_what_is_read(closed: str, place: Path) -> None:
    done = process(*EVERYTHING, cwd=place, before=f'exec "$@" {closed}')
    assert done.code == 0
    assert "Traceback" not in done.err
    assert (">&-" not in closed.replace("2>&-", "")) == ("home is well" in done.out)
    tape = (place / "out" / "run.jsonl").read_text().splitlines()
    assert '"record":"run"' in tape[0]
    assert '"record":"end"' in tape[-1]
    assert sorted(path.name for path in (place / "out").iterdir()) == [
        "report.html", "report.json", "report.md", "run.jsonl",
    ]  # fmt: skip


@pytest.mark.parametrize("argv", [PING, (*PING, "--json"), (*PING, "--format", "html"), ("--help",)])
def test_a_reader_who_has_gone_is_no_mistake(argv: tuple[str, ...]) -> None:
    for reader in ("head -1", "true"):
        whole = f'{{ "$@"; echo "code $?" >&2; }} | {reader}'
        done = subprocess.run(
            ["sh", "-c", whole, "sh", *command(*argv)],
            capture_output=True, text=True, check=False, timeout=PATIENCE_S,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )  # fmt: skip
        assert done.stderr == "code 0\n"


def test_a_reader_who_has_gone_leaves_the_bad_news_in_the_exit_code() -> None:
    whole = '{ "$@"; echo "code $?" >&2; } | true'
    done = subprocess.run(
        ["sh", "-c", whole, "sh", *command("ping", "nothing-here.invalid")],
        capture_output=True, text=True, check=False, timeout=PATIENCE_S, env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    assert done.stderr == "code 2\n"


@pytest.mark.parametrize("argv", [PING, (*PING, "--json"), ("--help",), ("report", "--schema")])
def test_a_full_standard_output_is_said(argv: tuple[str, ...]) -> None:
    done = process(*argv, before='exec "$@" >/dev/full')
    assert done.code == 3
    assert "No space left on device" in done.err
    assert done.err.startswith("hopscope: cannot write")
    assert "Traceback" not in done.err
    assert "Exception ignored" not in done.err


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_letters_that_an_encoding_lacks_stop_nothing(encoding: str, place: Path) -> None:
    (place / "home.toml").write_text(
        '[[target]]\nname = "Zürich 東京"\nhost = "127.0.0.1"\nprobes = ["ping"]\ncount = 3\ninterval = "10ms"\n',
        encoding="utf-8",
    )
    env = {"PYTHONIOENCODING": encoding}
    text = subprocess.run(
        command(*EVERYTHING), cwd=place, env={**os.environ, "PYTHONPATH": str(SOURCE), **env},
        capture_output=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    assert (text.returncode, b"Traceback" in text.stderr) == (0, False)
    assert "rich".encode(encoding) in text.stdout
    json = subprocess.run(
        command("report", "out", "--json"), cwd=place, env={**os.environ, "PYTHONPATH": str(SOURCE), **env},
        capture_output=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    assert valid(json.stdout.decode("utf-8"))["targets"][0]["name"] == "Zürich 東京"


def test_nohup_and_no_terminal_draw_no_progress_and_no_colour() -> None:
    done = process(*PING, "--timeout", "20s", env={"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1"})
    assert done.code == 0
    assert done.err == ""
    assert "\x1b" not in done.out


@pytest.mark.parametrize(
    ("env", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_a_terminal_has_colour_unless_it_is_told_otherwise(env: dict[str, str], coloured: bool) -> None:
    shown = on_terminal(*PING, env={"TERM": "xterm-256color", **env})
    assert ("\x1b[" in shown.replace("\r\x1b[K", "")) is coloured
    assert "127.0.0.1 is well" in shown


def on_terminal(*argv: str, env: dict[str, str]) -> str:
    """What a terminal of 100 columns is shown."""
    master, slave = os.openpty()
    clean = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "TERM", "COLUMNS"}}
    child = subprocess.Popen(
        command(*argv), stdin=slave, stdout=slave, stderr=slave, env={**clean, "PYTHONPATH": str(SOURCE), **env}
    )
    os.close(slave)
    shown = b""
    while True:
        try:
            piece = os.read(master, 65_536)
        except OSError:  # EIO: the last one at the other end has gone
            break
        if not piece:
            break
        shown += piece
    os.close(master)
    assert child.wait(PATIENCE_S) == 0
    return shown.decode()


def test_a_document_goes_to_its_file_and_nothing_to_the_screen(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "report.json"
    done = here(capfd, *PING, "--json", "--out", str(out))
    assert (done.code, done.out, done.err) == (0, "", "")
    assert valid(out.read_text())["command"] == "ping"
    assert [path.name for path in out.parent.iterdir()] == ["report.json"]


def test_a_device_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    done = process(*PING, "--json", "--out", "/dev/stdout")
    assert valid(done.out)["command"] == "ping"
    assert process(*PING, "--out", "/dev/null").code == 0
    assert Path("/dev/null").is_char_device()
    link, place = tmp_path / "link.md", tmp_path / "place.md"
    link.symlink_to(place)
    assert process(*PING, "--format", "md", "--out", str(link)).code == 0
    assert link.is_symlink()
    assert "127.0.0.1" in place.read_text()


@pytest.mark.parametrize("argv", [(*PING, "-q"), (*EVERYTHING, "-q")])
def test_quiet_is_one_line(argv: tuple[str, ...], place: Path) -> None:
    done = process(*argv, cwd=place)
    assert done.code == 0
    assert done.out.count("\n") == 1
    assert done.out.startswith("ok: ")
