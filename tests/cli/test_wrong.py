"""Every kind of wrong invocation: its exit code, one clear message with place and remedy, with --json a document."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.invoking import here, process, valid

USAGE = 64
TARGET = '[[target]]\nname = "home"\nhost = "127.0.0.1"\n'

FILES: dict[str, str | bytes] = {
    "good.toml": TARGET,
    "syntax.toml": '[[target]]\nname = "home"\nhost = \n',
    "unclosed.toml": '[[target]\nname = "home"\n',
    "key.toml": TARGET + "cuont = 3\n",
    "type.toml": TARGET + 'count = "three"\n',
    "range.toml": TARGET + "port = 70000\n",
    "duration.toml": TARGET + 'interval = "5 parsecs"\n',
    "host.toml": '[[target]]\nname = "home"\nhost = "http//x"\n',
    "twins.toml": TARGET + TARGET,
    "none.toml": 'quorum = 1\n[[vantage]]\nname = "here"\nkind = "local"\n',
    "empty.toml": "",
    "kind.toml": TARGET + '[[vantage]]\nname = "v"\nkind = "locale"\n',
    "budget.toml": TARGET + 'budget = "chta"\n',
    "secret.toml": TARGET + 'api_key = "sk-planted-1"\n',
    "latin.toml": b'[[target]]\nname = "caf\xe9"\nhost = "127.0.0.1"\n',
    "text.txt": "PING 127.0.0.1\n64 bytes from 127.0.0.1\n",
    "empty.jsonl": "",
    "binary.jsonl": bytes(range(256)) * 20,
    "newer.jsonl": '{"record":"run","tape":99,"tool_version":"9","command":"run","at":1}\n',
    "json.jsonl": '{"schema":"hopscope/1","results":[]}\n',
    "body.json": "{}",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with good and bad files, where the command stands."""
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "folder").mkdir()
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "run.jsonl").write_text("{}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_SUCH_VARIABLE", raising=False)
    return tmp_path


# what is typed, and words that the message must hold: what is wrong, where, and what to do
ROWS: list[tuple[str, list[str], tuple[str, ...]]] = [
    ("unknown command", ["png", "127.0.0.1"], ("'png'", "'ping'", "hopscope --help")),
    ("unknown option", ["ping", "--cuont", "3", "127.0.0.1"], ("--cuont", "--count", "hopscope ping --help")),
    ("unknown option of the whole", ["--jsn"], ("--jsn", "hopscope --help")),
    ("option of another command", ["trace", "127.0.0.1", "--size", "100"], ("--size", "hopscope trace --help")),
    ("a path by what is not built", ["trace", "127.0.0.1", "--udp"], ("--udp", "hopscope trace --help")),
    ("two protocols", ["trace", "--icmp", "--tcp", "127.0.0.1"], ("--icmp", "--tcp", "one of them")),
    ("port of no protocol", ["trace", "--port", "80", "127.0.0.1"], ("--port", "--tcp --port 80")),
    ("no such port of a path", ["trace", "--tcp", "--port", "70000", "::1"], ("--port", "70000", "65535")),
    ("no host", ["ping"], ("HOST", "hopscope ping --help")),
    ("no url", ["http"], ("URL", "hopscope http --help")),
    ("no file", ["run"], ("TARGETS.toml", "hopscope run --help")),
    ("two hosts to trace", ["trace", "127.0.0.1", "127.0.0.2"], ("127.0.0.2", "hopscope trace --help")),
    ("option without its value", ["ping", "127.0.0.1", "-c"], ("-c", "hopscope ping --help")),
    ("word for a number", ["ping", "-c", "many", "127.0.0.1"], ("-c", "'many'")),
    ("half a probe", ["ping", "-c", "1.5", "127.0.0.1"], ("-c", "'1.5'")),
    ("no probes", ["ping", "-c", "0", "127.0.0.1"], ("-c", "0", "1<=x")),
    ("negative probes", ["ping", "-c", "-4", "127.0.0.1"], ("-c", "-4", "1<=x")),
    ("port beyond the last", ["ping", "--tcp", "70000", "127.0.0.1"], ("--tcp", "70000", "65535")),
    ("ttl beyond the last", ["ping", "--ttl", "256", "127.0.0.1"], ("--ttl", "256", "255")),
    ("dscp beyond the last", ["ping", "--dscp", "64", "127.0.0.1"], ("--dscp", "64", "63")),
    ("payload too small", ["ping", "--size", "1", "127.0.0.1"], ("--size", "1", "10")),
    ("payload too large", ["ping", "--size", "66000", "127.0.0.1"], ("--size", "66000", "65000")),
    ("first hop beyond the last", ["trace", "-f", "9", "-m", "3", "127.0.0.1"], ("9", "3", "-f", "-m")),
    ("unit that is none", ["ping", "-i", "5parsecs", "127.0.0.1"], ("5parsecs", "unit", "200ms")),
    ("no interval at all", ["ping", "-i", "0", "127.0.0.1"], ('"0"', "more than zero", "200ms")),
    ("negative interval", ["ping", "--interval=-1s", "127.0.0.1"], ("-1s", "more than zero")),
    ("empty interval", ["ping", "-i", "", "127.0.0.1"], ("duration", "200ms")),
    ("deadline that is none", ["ping", "--timeout", "soon", "127.0.0.1"], ("soon", "duration", "200ms")),
    ("deadline of a run that is none", ["run", "good.toml", "--timeout", "0s"], ('"0s"', "more than zero")),
    ("interval beyond a year", ["ping", "-i", "400d", "127.0.0.1"], ("400d", "year")),
    ("both families", ["ping", "-4", "-6", "127.0.0.1"], ("-4", "-6")),
    ("the other family", ["ping", "-6", "127.0.0.1"], ("127.0.0.1", "IPv4", "leave out -6")),
    ("all and each kind of request", ["http", "-n", "3", "--cold", "1", "http://127.0.0.1/"], ("-n", "--cold")),
    ("no request at all", ["http", "--cold", "0", "--hot", "0", "http://127.0.0.1/"], ("--cold", "--hot")),
    ("empty host", ["ping", ""], ("host", "gpu1.example.net")),
    ("host with a space", ["ping", "a b"], ("a b", "space")),
    ("host with a slash", ["ping", "gpu1.example.net/v1"], ("gpu1.example.net/v1", "https://")),
    ("network", ["ping", "192.0.2.0/24"], ("192.0.2.0/24", "network")),
    ("address with too much", ["ping", "192.0.2.256"], ("192.0.2.256", "IPv4")),
    ("address with too many colons", ["ping", "2001:db8:::1"], ("2001:db8:::1", "IPv6")),
    ("port that is none", ["ping", "gpu1.example.net:https"], ("gpu1.example.net:https", "port")),
    ("scheme that is none", ["http", "ftp://gpu1.example.net/"], ("ftp", "https://")),
    ("url without a host", ["http", "http://"], ("http://", "host")),
    ("odd label", ["trace", "-gpu.example.net"], ("-g", "hopscope trace --help")),
    ("source that is not ours", ["ping", "--source", "192.0.2.7", "127.0.0.1"], ("192.0.2.7", "ip addr")),
    ("source that is a name", ["trace", "--source", "localhost", "127.0.0.1"], ("localhost", "address of this host")),
    ("interface that is not ours", ["ping", "--interface", "nosuch0", "127.0.0.1"], ("nosuch0", "lo")),
    ("header without a colon", ["http", "-H", "nonsense", "http://127.0.0.1/"], ("-H", "Name: value")),
    ("method of bytes", ["http", "-X", "G\udcff", "http://127.0.0.1/"], ("UTF-8",)),
    ("body on the command line", ["http", "-d", "{}", "http://127.0.0.1/"], ("-d", "@FILE")),
    ("body that is not there", ["http", "-d", "@nosuch", "http://127.0.0.1/"], ("nosuch", "@FILE")),
    ("half a --resolve", ["http", "--resolve", "a:443", "https://a.example/"], ("a:443", "HOST:PORT:ADDR")),
    ("--resolve of another", ["http", "--resolve", "b:443:127.0.0.1", "https://a.example/"], ("b:443", "a.example")),
    ("format that is none", ["ping", "--format", "yaml", "127.0.0.1"], ("--format", "yaml", "json")),
    ("budget that is none", ["ping", "--budget", "cat", "127.0.0.1"], ('"cat"', '"chat"')),
    ("no target file", ["run", "nosuch.toml"], ("nosuch.toml", "No such file")),
    ("folder for a file", ["run", "folder"], ("folder", "directory")),
    ("file of another encoding", ["run", "latin.toml"], ("latin.toml", "UTF-8")),
    ("syntax", ["run", "syntax.toml"], ("syntax.toml:3",)),
    ("bracket", ["run", "unclosed.toml"], ("unclosed.toml:1",)),
    ("unknown key", ["run", "key.toml"], ("key.toml:4", "cuont", '"count"')),
    ("wrong type", ["run", "type.toml"], ("type.toml:4", "count")),
    ("out of range", ["run", "range.toml"], ("range.toml:4", "port", "65535")),
    ("bad duration in a file", ["run", "duration.toml"], ("duration.toml:4", "interval", "parsecs")),
    ("bad host in a file", ["run", "host.toml"], ("host.toml:3", "http//x")),
    ("two of one name", ["run", "twins.toml"], ("twins.toml:5", "home", "line 2")),
    ("no target", ["run", "none.toml"], ("none.toml", "target")),
    ("empty file", ["run", "empty.toml"], ("empty.toml", "target")),
    ("vantage kind that is none", ["run", "kind.toml"], ("kind.toml:6", "locale", '"local"')),
    ("budget in a file that is none", ["run", "budget.toml"], ("budget.toml:4", "chta", '"chat"')),
    ("secret in a file", ["run", "secret.toml"], ("secret.toml:4", "api_key_env")),
    ("--only of nobody", ["run", "good.toml", "--only", "hom"], ("hom", '"home"', "--only")),
    ("--from nowhere", ["run", "good.toml", "--from", "her"], ("her", '"here"', "--from")),
    ("--budget of a run that is none", ["run", "good.toml", "--budget", "cat"], ('"cat"', '"chat"')),
    ("tape that is there already", ["run", "good.toml", "--out", "taken"], ("taken/run.jsonl", "--out")),
    ("folder that is a file", ["run", "good.toml", "--out", "text.txt"], ("text.txt", "--out")),
    ("report of nothing", ["report"], ("run.jsonl",)),
    ("report of what is not there", ["report", "nosuch"], ("nosuch", "run.jsonl")),
    ("report of a folder without a tape", ["report", "folder"], ("folder", "run.jsonl")),
    ("report of a text", ["report", "text.txt"], ("text.txt", "not a hopscope tape")),
    ("report of a document", ["report", "json.jsonl"], ("json.jsonl", "not a hopscope tape")),
    ("report of bytes", ["report", "binary.jsonl"], ("binary.jsonl", "not a hopscope tape")),
    ("report of a newer tape", ["report", "newer.jsonl"], ("tape 99", "upgrade")),
    ("report in a format that is none", ["report", "taken", "--format", "pdf"], ("--format", "pdf", "html")),
]


@pytest.mark.loopback
@pytest.mark.parametrize(("argv", "words"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_wrong_invocation_is_one_clear_message_and_64(
    argv: list[str], words: tuple[str, ...], place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = snapshot(place)
    plain = here(capfd, *argv)
    assert (plain.code, plain.out) == (USAGE, "")
    assert plain.err.startswith("hopscope: ")
    assert plain.err.count("hopscope: ") == 1
    assert "Traceback" not in plain.err
    assert [word for word in words if word not in plain.err] == []
    assert "\n  → " in plain.err
    assert snapshot(place) == before


@pytest.mark.loopback
@pytest.mark.parametrize(("argv", "words"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_with_json_it_is_also_one_valid_document(
    argv: list[str], words: tuple[str, ...], place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for asking in (["--json"], ["--format", "json"]):
        if "--format" in argv and "--format" in asking:
            continue
        done = here(capfd, *argv[:1], *asking, *argv[1:]) if argv[0] != "--jsn" else here(capfd, *argv, *asking)
        found = valid(done.out)
        assert done.code == USAGE
        assert found["partial"] is True
        assert (found["verdict"]["status"], found["results"]) == ("unknown", [])
        (failure,) = found["failures"]
        assert failure["kind"] == "usage"
        assert done.err == f"hopscope: {failure['why']}\n" + f"  → {failure['advice']}\n"


def snapshot(place: Path) -> list[tuple[str, int]]:
    """Everything in a folder: a refused command leaves nothing behind."""
    return sorted((str(path), path.stat().st_size) for path in place.rglob("*"))


SECRETS = [
    ["http", "-H", "Authorization: Bearer sk-planted-1", "http://127.0.0.1/"],
    ["http", "-H", "x-api-key: sk-planted-1", "http://127.0.0.1/"],
    ["http", "-H", "Cookie:session=sk-planted-1", "http://127.0.0.1/"],
    ["http", "-H", "Proxy-Authorization: Basic sk-planted-1", "http://127.0.0.1/"],
    ["http", "https://user:sk-planted-1@gpu1.example.net/"],
    ["ping", "https://user:sk-planted-1@gpu1.example.net/"],
    ["http", "https://gpu1.example.net/v1?api_key=sk-planted-1"],
    ["http", "https://gpu1.example.net/v1?token=sk-planted-1"],
    ["run", "secret.toml"],
]


@pytest.mark.parametrize("argv", SECRETS, ids=[" ".join(argv[:2]) for argv in SECRETS])
def test_a_literal_secret_is_refused_and_never_repeated(
    argv: list[str], place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for asking in ([], ["--json"]):
        done = here(capfd, *argv, *asking)
        assert done.code == USAGE
        assert "sk-planted-1" not in done.out + done.err
        assert "env" in done.err.partition("→")[2] or "_env" in done.err


def test_without_a_word_it_is_the_help_and_64(capfd: pytest.CaptureFixture[str]) -> None:
    done = here(capfd)
    assert done.code == USAGE
    assert "Usage: hopscope" in done.out + done.err
    assert "hopscope run targets/example.toml" in done.out + done.err


def unreadable(place: Path) -> list[str]:
    return ["run", "good.toml"]


def unwritable(place: Path) -> list[str]:
    return ["run", "good.toml", "--out", "shut/out"]


def document(place: Path) -> list[str]:
    return ["ping", "-c", "1", "127.0.0.1", "--out", "shut/report.txt"]


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (unreadable, USAGE, ("good.toml", "not readable")),
        (unwritable, 3, ("shut/out", "Permission denied", "--out")),
        (document, 3, ("shut/report.txt", "Permission denied", "--out")),
    ],
)
def test_files_that_may_not_be_read_or_written(
    argv: Callable[[Path], list[str]], code: int, words: tuple[str, ...], place: Path
) -> None:
    (place / "shut").mkdir()
    if argv is unreadable:
        (place / "good.toml").chmod(0)
    (place / "shut").chmod(0o555)
    # root may do everything unless it gives the right away
    away = 'exec setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-all -- "$@"'
    done = process(*argv(place), "--json", cwd=place, before=away if os.geteuid() == 0 else 'exec "$@"')
    (place / "shut").chmod(0o755)
    assert done.code == code
    assert valid(done.out)["failures"][0]["kind"] == ("usage" if code == USAGE else "skipped")
    assert [word for word in words if word not in done.err] == []
    assert "Traceback" not in done.err


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("out", "words"),
    [("folder", ("folder", "directory")), ("text.txt/x", ("text.txt", "directory")), ("a" * 300, ("too long",))],
)
def test_a_document_that_cannot_stand_there_is_refused_before_measuring(
    out: str, words: tuple[str, ...], place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    done = here(capfd, "ping", "-c", "1", "127.0.0.1", "--out", out)
    assert (done.code, done.out) == (3, "")
    assert [word for word in words if word not in done.err] == []


@pytest.mark.parametrize(
    "argv",
    [
        ["png", "127.0.0.1", "--json"],
        ["run", "key.toml", "--json"],
        ["report", "newer.jsonl", "--json"],
        ["http", "-H", "Authorization: sk-planted-1", "http://127.0.0.1/", "--json"],
    ],
)
def test_a_real_process_does_the_same(argv: list[str], place: Path) -> None:
    done = process(*argv, cwd=place)
    assert done.code == USAGE
    assert valid(done.out)["failures"][0]["kind"] == "usage"
    assert done.err.startswith("hopscope: ")
    assert "Traceback" not in done.err


@pytest.mark.loopback
def test_a_truncated_tape_reports_what_is_whole(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    argv = ["run", "short.toml", "--out", "whole"]
    (place / "short.toml").write_text(TARGET + 'probes = ["ping"]\ncount = 5\ninterval = "10ms"\n')
    assert here(capfd, *argv, "-q").code == 0
    tape = (place / "whole" / "run.jsonl").read_bytes()
    for cut in range(0, len(tape), 97):
        (place / "cut.jsonl").write_bytes(tape[:cut])
        done = here(capfd, "report", "cut.jsonl", "--json")
        found = valid(done.out)
        whole = tape[:cut].count(b"\n")
        assert done.code in ({0, 1, 2, 3} if whole >= 2 else {3, USAGE} if cut else {3}), cut
        assert found["partial"] is True
        assert "Traceback" not in done.err


def test_a_tape_that_ends_before_its_plan_has_nothing_to_report(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (place / "begun.jsonl").write_text('{"record":"run","tape":1,"tool_version":"0","command":"run","at":1}\n')
    for tape in ("empty.jsonl", "begun.jsonl"):
        done = here(capfd, "report", tape, "--json")
        assert done.code == 3
        (failure,) = valid(done.out)["failures"]
        assert (failure["kind"], failure["advice"]) == ("skipped", "run again")
        assert f"{tape} ends before its plan" in done.err
