"""Planted faults, one lab, one diagnosis each, all at the same time: cause, first failing layer, owner, exit code.

Every diagnosis runs as the program does, in its client's namespace, and has to end whole: before its deadline.
"""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec import Struct

from cli.invoking import Document, valid
from hopscope.lab.box import Lab
from hopscope.lab.topology import Block, Client, Host, Impairment, Inference, Link, Router, Topology

pytestmark = [pytest.mark.lab, pytest.mark.slow]

PATIENCE_S = 60
AT_ONCE = 12
KEY = "sesame"
PLAIN, SECURE, EXPIRED, MISNAMED, HANGS, BROKEN, LOCKED, SLOW = 8000, 8443, 8444, 8445, 8001, 8002, 8003, 8004
CLOSED, FILTERED, PROHIBITED = 82, 81, 444
SLOW_MS = 1500.0
WITH_SETTINGS = 'mount --bind "$1" /etc/resolv.conf && shift && exec "$@"'
"""A resolver of one's own, in a mount namespace of one's own."""
LOSSY = Impairment(loss=0.3)

# client - gateway - middle - edge - gpu, off, void, banned, lossy
CLIENTS = ("you", "second", "third", "fourth", "routeless", "down", "unplugged", "alone")
TOPOLOGY = Topology(
    nodes=(
        *(Client(name=name) for name in CLIENTS),
        Router(name="gateway", address="11.0.1.1"),
        Router(name="middle", address="11.0.2.1"),
        Router(
            name="edge",
            address="11.0.3.1",
            blocks=(
                Block(to="gpu", port=PROHIBITED),
                Block(to="banned"),
                Block(to="lost", how="unreachable"),
                Block(to="void", how="blackhole"),
            ),
        ),
        Host(
            name="gpu",
            address="11.0.9.1",
            filtered_ports=(FILTERED,),
            servers=(
                Inference(port=PLAIN),
                Inference(port=SECURE, tls="lab-ca", names=("gpu.example",)),
                Inference(port=EXPIRED, tls="expired"),
                Inference(port=MISNAMED, tls="wrong-name"),
                Inference(port=HANGS, fault="hangs"),
                Inference(port=BROKEN, status=503),
                Inference(port=LOCKED, api_key=KEY),
                Inference(port=SLOW, think_ms=SLOW_MS),
            ),
        ),
        Host(name="off", address="11.0.9.2", down=True),
        Host(name="void", address="11.0.9.3"),
        Host(name="banned", address="11.0.9.4"),
        Host(name="lossy", address="11.0.9.5", servers=(Inference(port=PLAIN),)),
        Host(name="lost", address="11.0.9.6"),
    ),
    links=(
        *(Link(a=name, b="gateway") for name in CLIENTS),
        Link(a="gateway", b="middle"),
        Link(a="middle", b="edge"),
        *(Link(a="edge", b=name) for name in ("gpu", "off", "void", "banned", "lost")),
        Link(a="edge", b="lossy", forward=LOSSY, adjustable=True),
    ),
)


class Fault(Struct, frozen=True, kw_only=True):
    """What is typed where, and what must come of it; `named` are words that the cause's sentence holds."""

    argv: tuple[str, ...]
    client: str = "you"
    resolver: str | None = None
    cause: str | None
    layer: str | None
    owner: str | None = None
    code: int
    named: tuple[str, ...] = ()
    step: str = ""
    ruled_out: tuple[str, ...] = ()


GPU = "11.0.9.1"
WHOLE = ("interface-fault", "unreachable", "lossy-from", "refused", "filtered", "admin-prohibited", "http-error")
FAULTS: dict[str, Fault] = {
    "no default route": Fault(
        client="routeless", argv=(GPU,), cause="interface-fault", layer="interface", owner="you", code=2,
        named=("no default route",), step="ip route add default",
    ),
    "link down": Fault(
        client="down", argv=(f"http://{GPU}:{PLAIN}/v1",), cause="interface-fault", layer="interface", owner="you",
        code=2, named=("eth0", "switched off"), step="ip link set eth0 up",
    ),
    "far end of the cable down": Fault(
        client="unplugged", argv=(GPU,), cause="interface-fault", layer="interface", owner="you", code=2,
        named=("eth0", "no carrier"), step="cable of eth0",
    ),
    "dead gateway": Fault(
        client="alone", argv=(f"http://{GPU}:{PLAIN}/",), cause="interface-fault", layer="gateway", owner="you",
        code=2, named=("11.0.1.1", "hardware address"), step="11.0.1.1",
    ),
    "no such name": Fault(
        argv=("https://nothing-here.invalid/v1",), cause="dns-failed", layer="dns", code=2,
        named=("nothing-here.invalid",), ruled_out=("interface-fault",),
    ),
    "a name behind a dead gateway": Fault(
        client="alone", argv=("https://nothing-here.invalid/v1",), cause="interface-fault", layer="gateway",
        owner="you", code=2, named=("11.0.1.1", "hardware address"), step="11.0.1.1",
    ),
    "a resolver that says nothing": Fault(
        argv=("https://gpu.example/v1",), resolver="11.0.9.3", cause="dns-failed", layer="dns", owner="you", code=2,
        named=("gpu.example", "asked: 11.0.9.3"), step="check the resolver of this machine, 11.0.9.3",
        ruled_out=("interface-fault",),
    ),
    "host down": Fault(
        argv=(f"11.0.9.2:{PLAIN}",), cause="unreachable", layer="path", code=2, named=("11.0.9.2", "11.0.3.1"),
        step="11.0.9.2", ruled_out=("interface-fault",),
    ),
    "host unreachable": Fault(
        client="fourth", argv=(f"11.0.9.6:{PLAIN}",), cause="unreachable", layer="path", owner="operator", code=2,
        named=("11.0.3.1", '"host unreachable"'), step="11.0.9.6",
    ),
    "black hole": Fault(
        argv=(f"http://11.0.9.3:{PLAIN}/",), cause="unreachable", layer="path", owner="unknown", code=2,
        named=("last hop that answered is hop 2 (11.0.2.1)",), step="11.0.2.1",
    ),
    "host prohibited": Fault(
        client="second", argv=(f"11.0.9.4:{PLAIN}",), cause="admin-prohibited", layer="path", code=2,
        named=("11.0.3.1", "administratively prohibited"), step="11.0.3.1",
    ),
    "port prohibited": Fault(
        client="third", argv=(f"{GPU}:{PROHIBITED}",), cause="admin-prohibited", layer="port", owner="provider",
        code=2, named=("11.0.3.1", "444"), step="allow TCP 444", ruled_out=("unreachable", "lossy-from"),
    ),
    "closed port": Fault(
        argv=(f"http://{GPU}:{CLOSED}/",), cause="refused", layer="port", owner="operator", code=2,
        named=(GPU, "82"), ruled_out=("unreachable", "lossy-from"),
    ),
    "filtered port": Fault(
        argv=(f"http://{GPU}:{FILTERED}/",), cause="filtered", layer="port", owner="provider", code=2,
        named=(GPU, "81", "11.0.3.1"), ruled_out=("unreachable",),
    ),
    "expired certificate": Fault(
        argv=(f"https://{GPU}:{EXPIRED}/v1/models", "--cacert", "CA"), cause="tls-failed", layer="tls",
        owner="operator", code=2, named=("expired",), ruled_out=("refused", "filtered"),
    ),
    "certificate of another": Fault(
        argv=(f"https://{GPU}:{MISNAMED}/v1/models", "--cacert", "CA"), cause="tls-failed", layer="tls",
        owner="operator", code=2, named=("somebody-else.example",),
    ),
    "503": Fault(
        argv=(f"http://{GPU}:{BROKEN}/v1",), cause="http-error", layer="http", owner="operator", code=2,
        named=("503",), ruled_out=("refused",),
    ),
    "no key": Fault(
        argv=(f"http://{GPU}:{LOCKED}/v1",), cause="http-error", layer="http", owner="you", code=1, named=("401",),
        step="--api-key-env",
    ),
    "server hangs": Fault(
        argv=(f"http://{GPU}:{HANGS}/v1",), cause="http-error", layer="http", owner="operator", code=2,
        named=("no response header",), step="the network delivered the request",
    ),
    "unknown model": Fault(
        argv=(f"http://{GPU}:{PLAIN}/v1", "--model", "absent"), cause="http-error", layer="model", owner="you", code=1,
        named=("absent", "lists stand-in"), step="--model stand-in",
    ),
    "loss": Fault(
        argv=(f"http://11.0.9.5:{PLAIN}/v1",), cause="lossy-from", layer="path", code=1, named=("lost",),
    ),
    "slow server": Fault(
        argv=(f"http://{GPU}:{SLOW}/v1/models",), cause="server-slow", layer="http", owner="model-server", code=1,
        named=("1.5",), ruled_out=("unreachable", "lossy-from"),
    ),
    "well": Fault(
        argv=(f"https://{GPU}:{SECURE}/v1", "--cacert", "CA"), cause=None, layer=None, code=0,
        ruled_out=(*WHOLE, "tls-failed", "certificate-expiring", "server-slow"),
    ),
    "well by name and model": Fault(
        argv=(
            f"https://gpu.example:{SECURE}/v1", "--cacert", "CA", "--model", "stand-in",
            "--resolve", f"gpu.example:{SECURE}:{GPU}",
        ),
        cause=None, layer=None, code=0, ruled_out=WHOLE,
    ),
}  # fmt: skip
BREAKING = {
    "routeless": (("routeless", "ip route del default"),),
    "down": (("down", "ip link set eth0 down"),),
    "unplugged": (("gateway", "ip link set eth6 down"),),
    "alone": (("gateway", "ip link set eth7 arp off"), ("alone", "ip neigh flush nud all dev eth0")),
}


class Told(Struct, frozen=True, kw_only=True):
    """How a diagnosis ended."""

    code: int
    document: Document
    error: str


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab(TOPOLOGY, seed=3) as running:
        for orders in BREAKING.values():
            for node, order in orders:
                running.exec(node, order.split(), check=True)
        yield running


@pytest.fixture(scope="module")
def told(lab: Lab) -> dict[str, Told]:
    """Every diagnosis, some at a time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        done = pool.map(lambda fault: _diagnose(lab, fault), FAULTS.values())
        return dict(zip(FAULTS, done, strict=True))


def _diagnose(lab: Lab, fault: Fault) -> Told:
    words = [str(lab.ca_file) if word == "CA" else word for word in fault.argv]
    argv = [sys.executable, "-m", "hopscope", "diagnose", *words, "--json"]
    if fault.resolver is not None:
        settings = lab.folder / "resolv.conf"
        settings.write_text(f"nameserver {fault.resolver}\n")
        argv = ["unshare", "--mount", "sh", "-c", WITH_SETTINGS, "sh", str(settings), *argv]
    done: subprocess.CompletedProcess[str] = lab.exec(fault.client, argv, timeout_s=PATIENCE_S)
    return Told(code=done.returncode, document=valid(done.stdout), error=done.stderr)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_with_its_layer_and_owner(told: dict[str, Told], name: str) -> None:
    fault, got = FAULTS[name], told[name]
    assert got.error == ""
    found = got.document
    above = [one for one in found["verdict"]["findings"] if one["severity"] != "info"]
    assert (got.code, found["cause"], found["partial"]) == (fault.code, fault.cause, False), above
    failed = [one["layer"] for one in found["results"] if one["kind"] == "layer" and one["status"] == "failed"]
    assert (failed[0] if failed else None) == fault.layer
    assert set(fault.ruled_out) <= set(found["ruled_out"])
    assert not {one["kind"] for one in found["verdict"]["findings"]} & set(found["ruled_out"])
    if fault.cause is None:
        assert above == []
        return
    assert [one["kind"] for one in above] == [fault.cause]
    (cause,) = above
    assert [word for word in fault.named if word not in cause["why"]] == [], cause["why"]
    assert fault.step in cause["next_step"], cause["next_step"]
    if fault.owner is not None:
        assert cause["owner"]["role"] == fault.owner
