"""`hopscope diagnose` from the command line: its document, exit codes, ticket, and what it refuses."""

import socket
from pathlib import Path

import pytest

from cli.invoking import Document, here, process, valid
from net.servers import answering, serve, silent

pytestmark = pytest.mark.loopback

USAGE = 64
ODD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BROKEN = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
LAYERS = ["interface", "gateway", "dns", "path", "port", "tls", "http", "model"]


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as it:
        port: int = it.getsockname()[1]
        return port


def layers(found: Document) -> dict[str, str]:
    """Each layer with its status, in order."""
    return {one["layer"]: one["status"] for one in found["results"] if one["kind"] == "layer"}


def test_a_server_that_is_well(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with serve(answering(ODD)) as server:
        done = here(
            capfd, "diagnose", f"http://127.0.0.1:{server.port}/", "--json", "--ticket", str(tmp_path / "ticket")
        )
    found = valid(done.out)
    said = f"ticket: {tmp_path / 'ticket'}\n"
    assert (done.code, done.err, found["cause"], found["partial"]) == (0, said, None, False)
    assert list(layers(found)) == LAYERS
    assert layers(found) | {"interface": "passed", "path": "passed", "port": "passed", "http": "passed"} == layers(
        found
    )
    assert {"unreachable", "refused", "http-error"} <= set(found["ruled_out"])
    assert {one["kind"] for one in found["results"]} == {"layer", "ping", "trace", "http"}
    assert (tmp_path / "ticket").read_text().startswith("Subject: nothing found")


def test_a_name_of_the_hosts_file_passes_the_name_too(capfd: pytest.CaptureFixture[str]) -> None:
    with serve(answering(BROKEN)) as server:
        done = here(capfd, "diagnose", f"http://localhost:{server.port}/", "-4", "--json")
    found = valid(done.out)
    assert (done.code, found["cause"], layers(found)["dns"], layers(found)["http"]) == (
        2, "http-error", "passed", "failed",
    )  # fmt: skip


def test_a_closed_port_is_named_with_its_next_step(capfd: pytest.CaptureFixture[str]) -> None:
    done = here(capfd, "diagnose", f"127.0.0.1:{closed_port()}")
    assert done.code == 2
    assert "Server: 127.0.0.1 refuses port" in done.out
    assert "The first layer that fails is port" in " ".join(done.out.split())
    assert "Next step" in done.out


def test_quiet_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    done = here(capfd, "diagnose", "127.0.0.1", "-q")
    assert (done.code, done.out.count("\n"), done.out.startswith("ok: ")) == (0, 1, True)


def test_a_deadline_of_ones_own_still_ends_whole(capfd: pytest.CaptureFixture[str]) -> None:
    with serve(silent) as server:
        done = here(capfd, "diagnose", f"http://127.0.0.1:{server.port}/", "--timeout", "15s", "--json")
    found = valid(done.out)
    assert (done.code, found["cause"], found["partial"]) == (2, "http-error", False)


def test_a_key_is_never_told(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_KEY", "sk-planted-secret")
    with serve(answering(BROKEN)) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        done = here(capfd, "diagnose", url, "--api-key-env", "PLANTED_KEY", "--json")
    assert "sk-planted-secret" not in done.out + done.err
    assert valid(done.out)["cause"] == "http-error"


def test_an_authority_that_is_none_is_unknown_and_says_so(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("none")
    with serve(answering(ODD)) as server:
        url = f"https://127.0.0.1:{server.port}/v1"
        done = here(capfd, "diagnose", url, "--cacert", str(tmp_path / "ca.pem"), "--json")
    found = valid(done.out)
    assert (done.code, layers(found)["http"], layers(found)["model"]) == (3, "not-checked", "not-checked")
    (http,) = [one for one in found["results"] if one["kind"] == "layer" and one["layer"] == "http"]
    assert http["why"] == f"{tmp_path / 'ca.pem'} holds no certificate in PEM form"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ((), ("HOST|URL", "hopscope diagnose --help")),
        (("127.0.0.1", "--model", "m"), ("URL", "https://gpu1.example.net/v1")),
        (("127.0.0.1", "-H", "a: b"), ("URL", "https://gpu1.example.net/v1")),
        (("https://a.example", "-H", "Authorization: Bearer sk-1"), ("secret", "env:VAR")),
        (("https://a.example", "--resolve", "b.example:443:127.0.0.1"), ("b.example", "a.example")),
        (("a b",), ("space",)),
        (("127.0.0.1", "--timeout", "soon"), ("soon", "duration")),
        (("127.0.0.1", "-4", "-6"), ("-4", "-6")),
        (("127.0.0.1", "--source", "192.0.2.7"), ("192.0.2.7",)),
        (("127.0.0.1", "-6"), ("127.0.0.1", "IPv4", "leave out -6")),
        (("http://[::1]/v1", "-4"), ("::1", "IPv6", "leave out -4")),
        (("http://127.0.0.1/v1", "--model", ""), ("--model", "printable")),
        (("http://127.0.0.1/v1", "--model", "a\x1bb"), ("--model", "printable")),
        (("http://127.0.0.1/v1", "--source", "::1"), ("--source", "IPv6", "127.0.0.1", "IPv4")),
        (("[::1]", "--source", "127.0.0.1"), ("--source", "IPv4", "::1", "IPv6")),
        (("a.example", "-4", "--source", "::1"), ("--source", "IPv6", "leave out -4")),
        (("http://a.example", "-6", "--resolve", "a.example:80:127.0.0.1"), ("127.0.0.1", "IPv4", "leave out -6")),
        (("https://127.0.0.1/v1", "--api-key-env", "NO_SUCH_VARIABLE"), ("NO_SUCH_VARIABLE", "is not set", "export")),
        (("https://127.0.0.1/v1", "-H", "X-Api-Key: env:NO_SUCH_VARIABLE"), ("NO_SUCH_VARIABLE", "is not set")),
        (("https://127.0.0.1/v1", "--cacert", "/nonexistent/ca.pem"), ("--cacert", "/nonexistent/ca.pem", "No such")),
        (("https://127.0.0.1/v1", "--cacert", "/"), ("--cacert", "directory")),
        (("127.0.0.1", "--out", "same", "--ticket", "./same"), ("--ticket", "--out", "of its own")),
    ],
)
def test_what_makes_no_sense_is_refused(
    argv: tuple[str, ...], words: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    done = here(capfd, "diagnose", *argv)
    assert (done.code, done.out) == (USAGE, "")
    assert [word for word in words if word not in done.err] == []
    assert "sk-1" not in done.err


def test_a_ticket_that_cannot_be_written_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = process("diagnose", "127.0.0.1", "--ticket", str(tmp_path / "file" / "ticket"), "--json")
    assert (done.code, valid(done.out)["verdict"]["status"]) == (3, "unknown")
    assert "cannot write" in done.err
    assert "--ticket" in done.err


def test_what_was_not_reached_in_time_is_unknown_and_never_well(capfd: pytest.CaptureFixture[str]) -> None:
    with serve(silent) as server:
        done = here(capfd, "diagnose", f"http://127.0.0.1:{server.port}/v1", "--timeout", "1500ms", "--json")
    found = valid(done.out)
    assert (done.code, found["verdict"]["status"], found["partial"]) == (3, "unknown", True)
    assert "well" not in found["verdict"]["summary"]
    assert found["cause"] == "not-enough-data"
    assert {"http-error", "server-slow"} & set(found["ruled_out"]) == set()
