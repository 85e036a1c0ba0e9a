"""`hopscope compare` against servers on loopback: the answer, the exit code, and the same files from the tape again."""

import shutil
from pathlib import Path

import pytest

from cli.invoking import here, valid
from cli.test_codes import closed_port
from net.servers import answering, serve

pytestmark = pytest.mark.loopback

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
DEFAULTS = '[defaults]\nprobes = ["ping"]\ncount = 20\ninterval = "5ms"\nbudget = { rtt_p95 = "2s", loss = "50%" }\n'
DOCUMENTS = ("report.json", "report.md", "report.html")


def targets(folder: Path, *tables: str, name: str = "dc") -> str:
    """A target file; each table is the name of a target and whatever else is to be said of it."""
    file = folder / f"{name}.toml"
    file.write_text(DEFAULTS + "".join(f"[[target]]\nname = {table}\n" for table in tables), encoding="utf-8")
    return str(file)


HOME = '"home"\nhost = "127.0.0.1"\nprice_month = 30'
OTHER = '"other"\nhost = "127.0.0.2"\nprice_month = 20'


def compared(document: dict[str, list[dict[str, object]]]) -> list[tuple[object, object, object]]:
    results = [one for one in document["results"] if one["kind"] == "comparison"]
    return [(one["target"], one["rank"], one["advice"]) for one in results]


def test_two_candidates_are_measured_ranked_and_written(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    done = here(capfd, "compare", targets(tmp_path, HOME, OTHER), "--out", str(tmp_path / "run"), "--json")
    found = valid(done.out)
    assert (done.code, found["verdict"]["status"], found["command"]) == (0, "ok", "compare")
    assert {(one[0], one[2]) for one in compared(found)} == {("home", "buy"), ("other", "buy")}
    assert [one[1] for one in compared(found)] == [1, 2]
    assert found["verdict"]["summary"].startswith(f"Buy {compared(found)[0][0]}: meets every limit from here")
    assert {one["metric"] for one in found["differences"]} == {"rtt_p50", "loss"}
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == sorted([*DOCUMENTS, "run.jsonl"])
    text = here(capfd, "report", str(tmp_path / "run"), "--format", "text").out
    assert "Which one" in text
    assert "no difference" in text


def test_a_candidate_that_fails_is_to_be_avoided_and_critical(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    closed = f'"closed"\nhost = "127.0.0.1"\nport = {closed_port()}\nprobes = ["ping"]'
    done = here(capfd, "compare", targets(tmp_path, closed, HOME), "--out", str(tmp_path / "run"))
    assert done.code == 2
    assert done.out.splitlines()[0].lstrip().startswith("CRITICAL  Buy home: ")
    assert "avoid closed: fails from here: 127.0.0.1 refuses port" in " ".join(done.out.split())


def test_a_server_is_compared_with_its_requests(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with serve(answering(OK)) as one, serve(answering(OK)) as two:
        tables = [
            f'"{name}"\nurl = "http://127.0.0.1:{server.port}/"\nprobes = ["ping", "http"]\nrequests = 11'
            for name, server in (("one", one), ("two", two))
        ]
        done = here(capfd, "compare", targets(tmp_path, *tables), "--out", str(tmp_path / "run"), "--json")
    found = valid(done.out)
    assert {one["metric"] for one in found["differences"]} == {"rtt_p50", "loss", "server_p50"}
    places = [place for one in found["results"] if one["kind"] == "comparison" for place in one["places"]]
    assert [place["server"]["n"] for place in places] == [10, 10]  # the hot ones


def test_a_tape_gives_the_same_files_again(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run, again = tmp_path / "run", tmp_path / "again"
    here(capfd, "compare", targets(tmp_path, HOME, OTHER, '"far"\nhost = "127.0.0.3"'), "--out", str(run))
    again.mkdir()
    shutil.copy(run / "run.jsonl", again)
    assert here(capfd, "report", str(again)).code == 0
    for name in DOCUMENTS:
        assert (again / name).read_bytes() == (run / name).read_bytes()
    from_tape = here(capfd, "compare", str(run), "--json")
    assert from_tape.out == (run / "report.json").read_text(encoding="utf-8")


def test_runs_are_compared_without_sending_anything(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name, table in (("first", HOME), ("second", OTHER)):
        done = here(capfd, "run", targets(tmp_path, table, name=name), "--out", str(tmp_path / name), "--quiet")
        assert done.code == 0
    runs = str(tmp_path / "first"), str(tmp_path / "second" / "run.jsonl")
    done = here(capfd, "compare", *runs, "--json")
    found = valid(done.out)
    assert (done.code, found["command"], found["partial"]) == (0, "compare", False)
    assert {one[0] for one in compared(found)} == {"home", "other"}
    whole = here(capfd, "compare", *runs, "--out", str(tmp_path / "both"), "--quiet")
    assert (whole.code, whole.out.startswith("ok: Buy ")) == (0, True)
    assert (tmp_path / "both" / "report.json").read_text(encoding="utf-8") == done.out
    assert sorted(path.name for path in (tmp_path / "both").iterdir()) == sorted(DOCUMENTS)
    strict = here(capfd, "compare", *runs, "--budget", "chat", "--json")
    assert {one["advice"] for one in valid(strict.out)["results"] if one["kind"] == "comparison"} == {"ask"}
    refused = here(capfd, "compare", *runs, "--out", str(tmp_path / "first"))
    assert (refused.code, "run.jsonl is there already" in refused.err) == (64, True)


def test_a_place_below_the_quorum_is_unknown(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = Path(targets(tmp_path, HOME, OTHER))
    away = '[[vantage]]\nname = "away"\nkind = "exec"\ncommand = ["true"]\n'
    file.write_text(file.read_text(encoding="utf-8") + away, encoding="utf-8")
    done = here(capfd, "compare", str(file), "--out", str(tmp_path / "run"), "--json")
    found = valid(done.out)
    assert (done.code, found["verdict"]["status"], found["differences"]) == (3, "unknown", [])
    assert [one[1:] for one in compared(found)] == [(None, "ask")] * 2


@pytest.mark.parametrize(
    ("argv", "message", "remedy"),
    [
        (
            ("compare", "one.toml"),
            "compare needs two candidates at least, and there is home",
            "write a second [[target]]",
        ),
        (("compare", "two.toml", "--only", "other"), "two candidates at least, and there is other", "--only"),
        (("compare", "one.toml", "two.toml"), "compare takes one target file, or runs", "put all candidates into one"),
        (("compare", "two.toml", "runs"), "compare takes one target file, or runs", "put all candidates into one"),
        (("compare", "nowhere"), "no tape is at nowhere", "run.jsonl"),
        (("compare", "runs", "--timeout", "5s"), "--timeout is for measuring", "leave it out"),
        (("compare", "two.toml", "--from", "mars"), 'no vantage is named "mars"', "--from takes one of: here"),
        (("compare",), "Missing argument", "hopscope compare --help"),
    ],
)
def test_what_cannot_be_compared_is_a_usage_error_with_its_remedy(
    argv: tuple[str, ...],
    message: str,
    remedy: str,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    targets(tmp_path, HOME, name="one")
    targets(tmp_path, HOME, OTHER, name="two")
    done = here(capfd, *argv, "--json")
    found = valid(done.out)
    assert (done.code, [one["kind"] for one in found["failures"]]) == (64, ["usage"])
    assert message in done.err
    assert remedy in done.err
    assert not (tmp_path / "reports").exists()


@pytest.mark.parametrize(
    "nasty", ["[red]x[/red] :bomb:", "<script>alert(1)</script>", "=cmd()|'/c calc'!A0", "a|b`c`*d"]
)
def test_a_hostile_name_is_escaped_in_every_output(
    nasty: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = targets(tmp_path, f'"{nasty}"\nhost = "127.0.0.1"', OTHER)
    done = here(capfd, "compare", file, "--out", str(tmp_path / "run"))
    assert done.code == 0
    written = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "run").glob("report.*")}
    for text in (done.out, done.err, *written.values()):
        assert [line for line in text.split("\n") if not line.isprintable()] == []
    assert "<script>alert" not in written["report.html"]
    assert valid(written["report.json"])["command"] == "compare"
