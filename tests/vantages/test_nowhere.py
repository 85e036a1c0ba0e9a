"""No route and no resolver: what cannot leave has its class and its reason, and no target is blamed for it.

A network namespace of its own with nothing but a loopback, and a resolver's address that leads nowhere.
"""

import json
import subprocess
import sys
from typing import Any

import pytest

from hopscope.lab.namespaces import missing, rights

pytestmark = pytest.mark.lab

Document = Any  # JSON, whose shape tests/cli checks against the schema

PATIENCE_S = 60
TARGETS = """
[defaults]
count = 3
interval = "10ms"
rounds = 2
requests = 2

[[target]]
name = "address"
host = "192.0.2.1"
probes = ["ping", "trace"]

[[target]]
name = "name"
host = "gpu1.example.net"
probes = ["ping", "trace"]

[[target]]
name = "server"
url = "http://192.0.2.2:8000/v1"
model = "m"
probes = ["ping", "http", "stream"]
"""
ALONE = 'ip link set lo up; mount --bind "$1" /etc/resolv.conf; shift; exec "$@"'


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Document:
    if rights() != "root":
        pytest.skip("; ".join(missing()) or "needs a network namespace furnished as root")
    tmp_path = tmp_path_factory.mktemp("nowhere")
    (tmp_path / "targets.toml").write_text(TARGETS)
    (tmp_path / "resolv.conf").write_text("nameserver 192.0.2.53\noptions timeout:1 attempts:1\n")
    argv = [sys.executable, "-m", "hopscope", "run", "targets.toml", "--out", "out", "--json"]
    whole = ["unshare", "--net", "--mount", "sh", "-ec", ALONE, "sh", str(tmp_path / "resolv.conf"), *argv]
    done = subprocess.run(whole, capture_output=True, text=True, check=False, timeout=PATIENCE_S, cwd=tmp_path)
    assert "Traceback" not in done.stderr
    document: Document = json.loads(done.stdout)
    document["code"] = done.returncode
    return document


def test_what_cannot_leave_has_a_class_and_blames_no_target(found: Document) -> None:
    outcomes = {(one["target"], one["kind"], one["outcome"]) for one in found["results"] if one["kind"] != "trace"}
    assert outcomes == {
        ("address", "ping", "unreachable"),
        ("name", "ping", "dns"),
        ("server", "ping", "unreachable"),
        ("server", "http", "unreachable"),
        ("server", "stream", "unreachable"),
    }
    whys = {one["target"]: one["why"] for one in found["results"] if one["kind"] == "ping"}
    assert whys["address"] == "ENETUNREACH: Network is unreachable"
    assert "name resolution" in whys["name"]
    for one in found["results"]:
        if one["kind"] == "ping" and one["outcome"] == "unreachable":
            assert (one["loss"]["sent"], one["loss"]["ratio"]) == (0, None)


def test_it_is_the_way_out_of_this_machine_and_not_three_targets_at_once(found: Document) -> None:
    assert (found["code"], found["verdict"]["status"], found["partial"]) == (3, "unknown", False)
    (fault,) = [one for one in found["verdict"]["findings"] if one["kind"] == "vantage-fault"]
    assert (fault["owner"]["role"], fault["target"]) == ("you", None)
    assert "mend the way out of that place first" in fault["next_step"]
    assert {one["status"] for one in found["targets"]} == {"unknown"}
    assert "critical" not in {one["severity"] for one in found["verdict"]["findings"]}
