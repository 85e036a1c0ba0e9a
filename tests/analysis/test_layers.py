"""A diagnosis as a table: which layer fails, the exact sentence, whose it is, and what is ruled out.

Each row changes one thing of a machine, a path and a server that are well.
"""

import inspect
import shlex
from collections.abc import Iterator
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from analysis.layered import (
    ADDRESS,
    BROKEN,
    CERTIFICATE,
    DAY,
    GATEWAY,
    GOOD,
    LAYERS,
    LOST,
    NO_ROUTE,
    NOW,
    OPEN,
    OTHER,
    RESOLVED,
    ROUTE,
    ROWS,
    SILENT_ROWS,
    SIX,
    SOURCE,
    STREAM,
    TARGET,
    TOLD,
    URL,
    WELL,
    Task,
    World,
    report,
)
from analysis.notation import losing, times
from analysis.test_judge import ADDRESSES, AT, RECORDS, SMALL, TASK_IDS, TASKS
from hopscope.analysis import judge, layers
from hopscope.analysis.rules import layer, path, place, reach, server, service
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import (
    PingTask,
    Plan,
    RouteTask,
    Target,
    Vantage,
)
from hopscope.model.record import (
    Begin,
    Named,
    Planned,
    Record,
    Resolved,
    Routed,
)
from hopscope.model.report import Finding, LayerResult, Report
from hopscope.render import ticket
from hopscope.tape import gather


def statuses(got: Report, address: str | None = ADDRESS) -> str:
    """A letter a layer: passed, Failed, - not checked."""
    rows = [one for one in got.results if isinstance(one, LayerResult)]
    mine = [one for one in rows if one.layer in LAYERS[:3] or one.address == address]
    assert [one.layer for one in mine] == list(LAYERS)
    return "".join(TOLD[one.status] for one in mine)


def why(got: Report, name: str, address: str | None = ADDRESS) -> str:
    """What was seen of one layer."""
    rows = (one for one in got.results if isinstance(one, LayerResult) and one.layer == name)
    return next(one.why for one in rows if one.layer in LAYERS[:3] or one.address == address)


def above(got: Report) -> list[Finding]:
    return [one for one in got.verdict.findings if one.severity != "info"]


# All well


def test_what_is_well_is_seen_to_be_and_rules_its_faults_out() -> None:
    got = report(World())
    assert (statuses(got), got.cause, above(got), got.verdict.status) == (WELL, None, [], "ok")
    assert {name: why(got, name) for name in LAYERS} == {
        "interface": f"eth0 sends from {SOURCE} by {GATEWAY}",
        "gateway": "answers in 1.00 ms, no loss in 10",
        "dns": f"gpu.example is {ADDRESS}, found in 3.00 ms",
        "path": "reached after 3 hops; ICMP in 5.00 ms, no loss in 10; TCP in 5.00 ms, no loss in 10",
        "port": "TCP 443 is open: 10 of 10 connections accepted, 5.00 ms",
        "tls": "TLSv1.3, certificate of gpu.example, in 7.00 ms",
        "http": "HTTP 200 to 1 request in 20.0 ms, 3.00 ms of it the server's",
        "model": "m streams: first token after 28.0 ms",
    }
    assert got.ruled_out == (
        "interface-fault", "dns-failed", "dns-slow", "unreachable", "lossy-from", "path-loop", "refused", "filtered",
        "admin-prohibited", "accept-limited", "tls-failed", "certificate-expiring", "http-error", "server-slow",
    )  # fmt: skip
    assert got.verdict.summary.endswith(
        "Every layer that was checked passed: interface, gateway, dns, path, port, tls, http and model."
    )


# One fault each: letters of the layers, the kind, the exact sentence of the layer, the owner's role

NOTHING = World(
    icmp=LOST, tcp=LOST, icmp_rows=SILENT_ROWS, tcp_rows=SILENT_ROWS, ends=None, tcp_ends=None, exchanges=None,
    streams=None,
)  # fmt: skip
UNSERVED = replace(World(), exchanges=None, streams=None)
LAST = "the last hop that answered is hop 2 (192.0.2.2)"
SAID = "hop 2 (192.0.2.2)"


def says(code: int) -> World:
    """A world in which a router says that it goes no farther."""
    return replace(
        NOTHING, icmp=times(10, f"u{code}"), tcp=times(10, f"u{code}"), icmp_rows={1: times(10, "1")},
        tcp_rows={1: times(10, "1")},
    )  # fmt: skip


FAULTS: dict[str, tuple[World, Target, str, str, str, str, str]] = {
    "nothing comes back": (
        NOTHING,
        TARGET,
        "pppF----",
        "unreachable",
        "path",
        f"nothing came back from {ADDRESS} by ping, tcp port 443; {LAST}",
        "unknown",
    ),
    "nothing answers but the gateway": (
        replace(NOTHING, icmp_rows={1: times(10, "1"), 2: LOST}, tcp_rows=None),
        TARGET,
        "pppF----",
        "unreachable",
        "path",
        f"nothing came back from {ADDRESS} by ping, tcp port 443; the last hop that answered is hop 1 (192.0.2.1)",
        "access",
    ),
    "the host is missing": (
        says(1),
        TARGET,
        "pppF----",
        "unreachable",
        "path",
        f'{ADDRESS} cannot be reached: 192.0.2.99 answers "host unreachable" (ICMP code 1) to ping, tcp port 443',
        "operator",
    ),
    "the network is missing": (
        says(0),
        TARGET,
        "pppF----",
        "unreachable",
        "path",
        f'{ADDRESS} cannot be reached: 192.0.2.99 answers "network unreachable" (ICMP code 0) to ping, tcp port 443',
        "unknown",
    ),
    "the host is prohibited": (
        says(13),
        TARGET,
        "pppF----",
        "admin-prohibited",
        "path",
        (
            f'{ADDRESS} cannot be reached: 192.0.2.99 answers "administratively prohibited" (ICMP code 13) to ping, '
            "tcp port 443"
        ),
        "unknown",
    ),
    "a loop": (
        replace(
            NOTHING,
            icmp_rows={ttl: times(10, "1") for ttl in range(1, 6)},
            tcp_rows=None,
            hops={4: "192.0.2.2", 5: "192.0.2.3"},
        ),
        TARGET,
        "pppF----",
        "path-loop",
        "path",
        f"packets to {ADDRESS} run in a loop: 192.0.2.2 and 192.0.2.3 take turns from hop 2 on, 4 times",
        "unknown",
    ),
    "loss": (
        replace(
            World(),
            icmp=f"{times(6, '.')} {times(4, '5')}",
            tcp=f"{times(5, '.')} {times(5, '5')}",
            icmp_rows={1: times(10, "1"), 2: times(10, "3"), 3: f"{times(6, '.')} {times(4, '5')}"},
            tcp_rows=None,
        ),
        TARGET,
        "pppFpppp",
        "lossy-from",
        "path",
        (
            "60 % (12 of 20) of the packets are lost from hop 3 (203.0.113.9) on: it begins between hop 2 "
            "(192.0.2.2) and hop 3 (203.0.113.9), on the way to, or back from there"
        ),
        "provider",
    ),
    "a closed port": (
        replace(UNSERVED, tcp=times(10, "r5")),
        TARGET,
        "ppppF---",
        "refused",
        "port",
        f"{ADDRESS} refuses port 443: the host is up, nothing listens there",
        "operator",
    ),
    "a port filtered next to the host": (
        replace(UNSERVED, tcp=LOST, tcp_rows={1: times(10, "1"), 2: times(10, "3"), 3: LOST}, tcp_ends=None),
        TARGET,
        "ppppF---",
        "filtered",
        "port",
        (
            f"port 443 of {ADDRESS} is silent while the host answers otherwise: something drops it; SYNs get as far as "
            f"{SAID}, next to the host"
        ),
        "provider",
    ),
    "a port filtered on the way": (
        replace(UNSERVED, tcp=LOST, tcp_rows={1: times(10, "1"), 2: LOST, 3: LOST}, tcp_ends=None),
        TARGET,
        "ppppF---",
        "filtered",
        "port",
        (
            f"port 443 of {ADDRESS} is silent while the host answers otherwise: something drops it; SYNs get no "
            "farther than hop 1 (192.0.2.1), 2 hops before the host"
        ),
        "access",
    ),
    "a port prohibited": (
        replace(UNSERVED, tcp=times(10, "u13"), tcp_rows=None),
        TARGET,
        "ppppF---",
        "admin-prohibited",
        "port",
        (
            f'TCP port 443 of {ADDRESS} is not let through: 192.0.2.99 answers "administratively prohibited" (ICMP '
            "code 13), while the host answers otherwise"
        ),
        "unknown",
    ),
    "a port rejected": (
        replace(UNSERVED, tcp=times(10, "u3"), tcp_rows=None),
        TARGET,
        "ppppF---",
        "filtered",
        "port",
        (
            f'TCP port 443 of {ADDRESS} is not let through: 192.0.2.99 answers "port unreachable" (ICMP code 3), while '
            "the host answers otherwise"
        ),
        "unknown",
    ),
    "TLS": (
        replace(World(), exchanges=(replace(BROKEN, error="tls", detail="it expired"),), streams=None),
        TARGET,
        "pppppF--",
        "tls-failed",
        "tls",
        f"TLS with {URL}/models fails: it expired",
        "operator",
    ),
    "a certificate that ends soon": (
        replace(World(), exchanges=(replace(GOOD, certificate=replace(CERTIFICATE, not_after=NOW + 3 * DAY)),)),
        TARGET,
        "pppppFpp",
        "certificate-expiring",
        "tls",
        "the certificate of gpu.example is valid for 3.0 more days",
        "operator",
    ),
    "503": (
        replace(World(), exchanges=(replace(GOOD, status=503),), streams=None),
        TARGET,
        "ppppppF-",
        "http-error",
        "http",
        f"{URL}/models answers 503 to 100 % (1 of 1) of the requests",
        "operator",
    ),
    "401 without a key": (
        replace(World(), exchanges=(replace(GOOD, status=401),), streams=None),
        TARGET,
        "ppppppF-",
        "http-error",
        "http",
        f"{URL}/models answers 401 to 100 % (1 of 1) of the requests; no key was given",
        "you",
    ),
    "401 with a key": (
        replace(World(), exchanges=(replace(GOOD, status=401),), streams=None),
        replace(TARGET, api_key_env="KEY"),
        "ppppppF-",
        "http-error",
        "http",
        f"{URL}/models answers 401 to 100 % (1 of 1) of the requests; the key was refused",
        "you",
    ),
    "a server that hangs": (
        replace(
            World(),
            streams=None,
            exchanges=(replace(GOOD, head=None, done=None, status=None, error="timeout", detail="no response header"),),
        ),
        TARGET,
        "ppppppF-",
        "http-error",
        "http",
        f"1 of 1 request to {URL}/models failed: no response header",
        "operator",
    ),
    "a slow server": (
        replace(World(), exchanges=(replace(GOOD, head=NOW + 1512 * MS, done=NOW + 1512 * MS),)),
        TARGET,
        "ppppppFp",
        "server-slow",
        "http",
        (
            f"{ADDRESS} needs 1.50 s beyond the TCP endpoint before it answers (more than 1.00 s); the whole wait is "
            "1.50 s, of which the network's round trip is 5.00 ms"
        ),
        "model-server",
    ),
    "an unknown model": (
        replace(
            World(),
            streams=(replace(STREAM, model="x", exchange=replace(GOOD, status=404, error="http", detail="HTTP 404")),),
        ),
        TARGET,
        "pppppppF",
        "http-error",
        "model",
        ("the server does not know the model x: HTTP 404; the server lists m, n"),
        "you",
    ),
    "a model that hangs": (
        replace(
            World(),
            streams=(replace(STREAM, listed=(), exchange=replace(GOOD, error="timeout", detail="nothing more came")),),
        ),
        TARGET,
        "pppppppF",
        "http-error",
        "model",
        "the model m fails: nothing more came",
        "model-server",
    ),
    "a late first token": (
        replace(World(), streams=(replace(STREAM, first_token=NOW + 2012 * MS, last_token=NOW + 2100 * MS),)),
        TARGET,
        "pppppppF",
        "server-slow",
        "model",
        (
            f"{ADDRESS} needs 2.00 s beyond the TCP endpoint to its first token (more than 1.00 s); the network's "
            "round trip is 5.00 ms"
        ),
        "model-server",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_one_fault_is_told_once_in_its_layer(name: str) -> None:
    world, target, letters, kind, failing, sentence, role = FAULTS[name]
    got = report(world, target=target)
    assert (statuses(got), got.cause) == (letters, kind)
    assert why(got, failing) == sentence
    (finding,) = above(got)
    assert (finding.kind, finding.why, finding.owner.role) == (kind, sentence, role)
    assert kind not in got.ruled_out
    assert f"The first layer that fails is {failing}" in got.verdict.summary


# This machine, its gateway, and the name


@pytest.mark.parametrize(
    ("route", "default", "sentence", "step"),
    [
        (
            NO_ROUTE,
            Routed(task=0, at=0, error="no default route"),
            "this machine has no default route (ENETUNREACH: no route)",
            "ip route add default via GATEWAY",
        ),
        (NO_ROUTE, ROUTE, f"this machine has no route to {ADDRESS} (ENETUNREACH: no route)", "ip route get"),
        (
            replace(NO_ROUTE, interface="eth0", up=False),
            ROUTE,
            "the interface eth0 of this machine is switched off",
            "ip link set eth0 up",
        ),
        (
            replace(ROUTE, carrier=False),
            ROUTE,
            "the interface eth0 of this machine has no carrier: nothing is plugged in, or the far end is off",
            "check the cable of eth0",
        ),
    ],
)
def test_a_machine_that_cannot_send_is_its_owners(route: Routed, default: Routed, sentence: str, step: str) -> None:
    got = report(replace(NOTHING, route=route), default=default)
    assert (statuses(got)[0], statuses(got)[3:], got.cause) == ("F", "-----", "interface-fault")
    (finding,) = above(got)
    assert (finding.why, finding.owner.role, finding.severity) == (sentence, "you", "critical")
    assert step in finding.next_step


def test_without_a_name_and_without_a_route_the_route_is_the_cause() -> None:
    unnamed = Resolved(task=0, at=1, error="Temporary failure in name resolution", took_ns=SECOND)
    got = report(resolved=unnamed, default=Routed(task=0, at=0, error="no default route"))
    assert (statuses(got, None), got.cause) == ("F-------", "interface-fault")
    assert why(got, "dns") == "not reached: interface fails first"
    assert [one.why for one in above(got)] == ["this machine has no default route (no default route)"]


@pytest.mark.parametrize("neighbour", ["failed", "incomplete"])
@pytest.mark.parametrize("named", [True, False])
def test_a_gateway_without_a_hardware_address_is_the_cause_of_all_silence(neighbour: str, named: bool) -> None:
    again = replace(ROUTE, neighbour="failed" if neighbour == "failed" else "incomplete")
    silent = replace(NOTHING, icmp_rows={1: LOST}, tcp_rows=None)
    unnamed = replace(RESOLVED, addresses=(), error="no answer within 10 s")
    got = report(silent, gateway=LOST, again=again) if named else report(resolved=unnamed, default=again, gateway=LOST)
    assert statuses(got, ADDRESS if named else None)[:2] == "pF"
    assert got.cause == "interface-fault"
    (finding,) = above(got)
    assert finding.why == (
        f"the gateway {GATEWAY} on eth0 does not answer on the link: this machine gets no hardware address for it "
        "(ARP, ND)"
    )
    assert (finding.owner.role, finding.segment is not None and finding.segment.to.address) == ("you", GATEWAY)


@pytest.mark.parametrize(
    ("gateway", "world", "letter", "sentence"),
    [
        (LOST, World(), "p", "answers no ping, and forwards: what lies behind it answers"),
        (
            LOST,
            replace(NOTHING, icmp_rows={1: times(10, "1"), 2: LOST}),
            "p",
            ("answers no ping, and forwards: what lies behind it answers"),
        ),
        (
            LOST,
            replace(NOTHING, icmp_rows={1: LOST}, tcp_rows=None),
            "-",
            ("answers no ping, and nothing behind it answers"),
        ),
        (f"{times(5, '.')} {times(5, '1')}", World(), "p", "answers in 1.00 ms, 50 % (5 of 10) lost"),
    ],
)
def test_a_gateway_that_says_nothing_or_little_is_not_blamed(
    gateway: str, world: World, letter: str, sentence: str
) -> None:
    got = report(world, gateway=gateway)
    assert (statuses(got)[1], why(got, "gateway")) == (letter, sentence)
    assert got.cause in {None, "unreachable"}


def test_a_gateway_that_loses_as_the_whole_way_does_is_the_cause() -> None:
    half = f"{times(5, '.')} {times(5, '5')}"
    rows = {1: half, 2: half, 3: half}
    got = report(replace(World(), icmp=half, tcp=half, icmp_rows=rows, tcp_rows=rows), gateway=half)
    assert (statuses(got)[:4], got.cause) == ("pFpp", "interface-fault")
    (finding,) = above(got)
    assert (finding.why, finding.severity, finding.owner.role) == (
        f"the gateway {GATEWAY} on eth0 loses 50 % (5 of 10) of the echoes: the loss begins on your own side",
        "warning",
        "you",
    )
    assert "lossy-from" not in got.ruled_out


def test_a_host_on_the_link_has_no_gateway() -> None:
    got = report(replace(World(), route=replace(ROUTE, gateway=None)))
    assert (statuses(got), got.cause) == ("p-pppppp", None)
    assert why(got, "gateway") == f"{ADDRESS} is on this machine's own link: no gateway between"


@pytest.mark.parametrize(
    ("error", "role", "step"),
    [
        ("Name or service not known", "unknown", "check the spelling of gpu.example"),
        ("Temporary failure in name resolution", "you", "check the resolver of this machine, 192.0.2.53"),
        ("no answer within 10 s", "you", "check the resolver of this machine, 192.0.2.53"),
    ],
)
def test_a_name_without_an_address(error: str, role: str, step: str) -> None:
    got = report(resolved=replace(RESOLVED, addresses=(), error=error))
    assert (statuses(got, None), got.cause) == ("ppF-----", "dns-failed")
    (finding,) = above(got)
    assert finding.why == f"the name gpu.example does not resolve: {error} (asked: 192.0.2.53)"
    assert finding.owner.role == role
    assert finding.next_step.startswith(step)


def test_a_slow_lookup_is_told_and_an_address_is_none() -> None:
    got = report(World(), resolved=replace(RESOLVED, took_ns=2 * SECOND))
    assert (statuses(got), got.cause) == ("ppFppppp", "dns-slow")
    got = report(World(), resolved=replace(RESOLVED, took_ns=None, resolvers=()))
    assert (statuses(got), got.cause) == ("pp-ppppp", None)
    assert why(got, "dns") == f"{ADDRESS} is an address: there is no name to look up"


# What is not asked is not checked


@pytest.mark.parametrize(
    ("target", "letters", "seen"),
    [
        (
            replace(TARGET, url=None),
            "ppppp---",
            {
                "tls": "no URL was given, so there is no TLS to ask",
                "http": "no URL was given, so there is no HTTP to ask",
            },
        ),
        (
            replace(TARGET, url=None, port=None),
            "ppppp---",
            {"port": "TCP 443 is open: 10 of 10 connections accepted, 5.00 ms (no port was named)"},
        ),
        (
            replace(TARGET, url="http://gpu.example/v1"),
            "ppppp-pp",
            {"tls": "the URL begins with http://: there is no TLS"},
        ),
        (
            replace(TARGET, url="https://gpu.example/"),
            "ppppppp-",
            {"model": "no model was named (--model), and the URL does not end in /v1"},
        ),
    ],
)
def test_what_is_not_asked_is_not_checked(target: Target, letters: str, seen: dict[str, str]) -> None:
    got = report(World(), target=target)
    assert (statuses(got), got.cause, got.verdict.status) == (letters, None, "ok")
    assert {name: why(got, name) for name in seen} == seen


@pytest.mark.parametrize(
    ("text", "word"), [(times(10, "r5"), "refuses"), (LOST, "is silent"), (times(10, "u13"), "is prohibited")]
)
def test_a_port_that_nobody_named_is_no_fault(text: str, word: str) -> None:
    got = report(replace(World(), tcp=text), target=replace(TARGET, url=None, port=None))
    assert (statuses(got), got.cause, got.verdict.status) == ("pppp----", None, "ok")
    assert why(got, "port") == f"no port was named; of the usual ones 443 {word}"
    assert not {"refused", "filtered", "admin-prohibited"} & set(got.ruled_out)


def test_a_list_of_models_that_is_missing_is_no_fault_where_the_model_answers() -> None:
    got = report(replace(World(), exchanges=(replace(GOOD, status=404),)), target=replace(TARGET, model="m"))
    assert (statuses(got), got.cause) == (WELL, None)


def test_few_losses_rule_no_loss_out() -> None:
    got = report(replace(World(), icmp=f". {times(9, '5')}"))
    assert (statuses(got), got.cause) == (WELL, None)
    assert "lossy-from" not in got.ruled_out
    assert "unreachable" in got.ruled_out


# Several addresses


def test_a_family_that_works_nowhere_while_the_other_works_is_one_warning() -> None:
    got = report(World(), replace(NOTHING, address=SIX))
    assert (statuses(got), statuses(got, SIX)) == (WELL, "pppF----")
    assert (got.cause, got.verdict.status) == ("family-broken", "warning")
    (finding,) = above(got)
    assert finding.why == (
        f"IPv6 does not work while IPv4 does: nothing came back from {SIX} by ping, tcp port 443; {LAST}"
    )
    assert finding.evidence == {"family": 6, "address": SIX, "layer": "path", "kind": "unreachable"}
    assert "unreachable" not in got.ruled_out


def test_one_dead_address_of_a_family_is_told_by_its_address() -> None:
    got = report(World(), replace(NOTHING, address=OTHER), replace(World(), address=SIX, streams=None))
    assert (statuses(got), statuses(got, OTHER)) == (WELL, "pppF----")
    assert (got.cause, got.verdict.status) == ("unreachable", "critical")
    assert [one.why for one in above(got)] == [f"nothing came back from {OTHER} by ping, tcp port 443; {LAST}"]
    assert f"The first layer that fails is path (of {OTHER})" in got.verdict.summary
    assert why(got, "model", SIX) == "the model was asked at another address"


def test_an_address_without_a_route_is_left_out_where_another_has_one() -> None:
    got = report(World(), replace(NOTHING, address=SIX, route=NO_ROUTE))
    assert (statuses(got), got.cause, got.verdict.status) == (WELL, None, "ok")
    assert SIX not in {one.address for one in got.results if isinstance(one, LayerResult)}


def test_the_first_failing_layer_is_the_cause_though_another_fault_is_worse() -> None:
    half = f"{times(6, '.')} {times(4, '5')}"
    rows = {**ROWS, 3: half}
    broken = (replace(GOOD, status=503),)
    got = report(replace(World(), icmp=half, tcp=half, icmp_rows=rows, tcp_rows=None, exchanges=broken, streams=None))
    assert [(one.kind, one.severity) for one in above(got)] == [("http-error", "critical"), ("lossy-from", "warning")]
    assert (statuses(got), got.cause) == ("pppFppF-", "lossy-from")


# Whose


@pytest.mark.parametrize(
    ("speaker_asn", "target_asn", "role"),
    [(64500, 64500, "provider"), (64500, 64501, "transit"), (None, 64501, "unknown")],
)
def test_a_router_that_prohibits_is_that_of_its_as(speaker_asn: int | None, target_asn: int, role: str) -> None:
    named = [
        Named(address="192.0.2.99", source="test", asn=speaker_asn),
        Named(address=ADDRESS, source="test", asn=target_asn),
    ]
    (finding,) = above(report(says(13), named=named))
    assert finding.owner.role == role
    assert finding.next_step == (
        "ask the admin of 192.0.2.99, which answers administratively prohibited, to allow ping, tcp port 443 to "
        f"{ADDRESS} from {SOURCE}"
    )


# The table


def test_every_rule_is_asked() -> None:
    modules: tuple[ModuleType, ...] = (path, reach, server, place, layer, service)
    written = {
        function
        for module in modules
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if not name.startswith("_")
        and function.__module__ == module.__name__
        and inspect.signature(function).return_annotation == Iterator[Finding]
    }
    in_table = {rule for row in layers.TABLE for rule in row.rules} | set(layers.BESIDE)
    assert written == set(judge.RULES) | in_table


def test_the_table_has_every_layer_in_its_order() -> None:
    assert tuple(row.layer for row in layers.TABLE) == LAYERS


ROUTES = st.builds(
    Routed, task=TASK_IDS, at=AT, interface=st.sampled_from([None, "eth0", "\x1b[2J"]),
    up=st.none() | st.booleans(), carrier=st.none() | st.booleans(), source=st.none() | ADDRESSES,
    gateway=st.none() | ADDRESSES, error=st.sampled_from([None, "no route"]),
    neighbour=st.sampled_from([None, "reachable", "failed"]),
)  # fmt: skip
LAYERED = st.one_of(
    TASKS,
    st.builds(RouteTask, target=st.just("it"), vantage=st.just("here"), reason=st.just("asked"), address=ADDRESSES),
    st.builds(
        PingTask, target=st.just("it"), vantage=st.just("here"), reason=st.just("asked"), address=ADDRESSES,
        family=st.sampled_from([4, 6]), count=SMALL, interval_ns=SMALL, threshold_ns=SMALL,
        about=st.sampled_from(["target", "gateway"]), protocol=st.sampled_from(["icmp", "tcp"]),
    ),
)  # fmt: skip


@settings(max_examples=200)
@given(st.lists(LAYERED, max_size=6), st.lists(RECORDS | ROUTES, max_size=60), st.sampled_from([None, 443]))
def test_a_diagnosis_is_total(tasks: list[Task], records: list[Record], port: int | None) -> None:
    target = replace(TARGET, port=port, url=URL if port else None, probes=("layer", "http"))
    here = Vantage(name="here", kind="local")
    what = Plan(command="diagnose", name="it", targets=(target,), vantages=(here,), quorum=1, deadline_ns=SECOND)
    begins: list[Record] = [Begin(id=n, at=0, task=task) for n, task in enumerate(tasks, start=1)]
    got = judge.report(gather([*OPEN, Planned(plan=what), *begins, *records]), tool_version="0")
    failed = [one for one in got.results if isinstance(one, LayerResult) and one.status == "failed"]
    assert (got.cause is None) <= (not failed)
    assert not {one.kind for one in got.verdict.findings} & set(got.ruled_out)
    assert "\x1b" not in ticket.render(got)


@pytest.mark.parametrize("name", ["x; rm -rf ~ #", "$(reboot)", "`id`", "a b", "plain-1.0:b"])
def test_a_model_that_a_server_lists_is_no_command_in_the_next_step(name: str) -> None:
    unknown = replace(
        STREAM,
        exchange=replace(GOOD, status=404, error="http"),
        model="m",
        listed=(name,),
        first_token=None,
        finished=None,
    )
    (one,) = [one for one in report(World(streams=(unknown,))).verdict.findings if one.kind == "http-error"]
    assert f"(--model {shlex.quote(name)})" in one.next_step


def test_loss_of_any_series_keeps_loss_from_being_ruled_out() -> None:
    assert "lossy-from" in report(World()).ruled_out
    assert "lossy-from" not in report(World(tcp=losing(1, 10))).ruled_out


def test_a_server_whose_time_is_unknown_is_not_said_to_be_fast() -> None:
    again = replace(GOOD, retransmits=1)
    told = report(World(exchanges=(again,), streams=(replace(STREAM, exchange=again),)))
    assert "server-slow" not in told.ruled_out


# What was cut short


PLAIN = replace(TARGET, url="http://gpu.example/v1")


@pytest.mark.parametrize(
    ("world", "target", "unreached"),
    [
        (UNSERVED, TARGET, "tls, http and model"),
        (UNSERVED, PLAIN, "http and model"),
        (UNSERVED, replace(TARGET, url="http://gpu.example/"), "http"),
        (replace(UNSERVED, tcp=None), replace(TARGET, url=None), "port"),
        (replace(UNSERVED, tcp=None), replace(TARGET, url=None, port=None), "port"),
    ],
)
def test_what_was_asked_for_and_not_reached_is_unknown(world: World, target: Target, unreached: str) -> None:
    got = report(world, target=target, partial=True)
    assert (got.verdict.status, got.cause) == ("unknown", "not-enough-data")
    (one,) = above(got)
    assert (one.kind, one.why) == (
        "not-enough-data",
        f"the run ended before {unreached} of it could be checked",
    )
    assert "is well" not in got.verdict.summary
    assert not {"http-error", "server-slow", "tls-failed"} & set(got.ruled_out)


@pytest.mark.parametrize(
    ("worlds", "target"),
    [
        ((World(),), TARGET),
        ((UNSERVED,), replace(TARGET, url=None)),
        ((replace(UNSERVED, tcp=times(10, "r5")),), replace(TARGET, url=None, port=None)),
        ((World(), replace(World(), address=OTHER, streams=None)), TARGET),
    ],
)
def test_a_run_that_was_cut_when_all_that_was_asked_for_had_passed_is_well(
    worlds: tuple[World, ...], target: Target
) -> None:
    got = report(*worlds, target=target, partial=True)
    assert (got.verdict.status, got.cause, above(got)) == ("ok", None, [])


def test_a_fault_of_a_run_that_was_cut_is_told_all_the_same() -> None:
    got = report(replace(UNSERVED, tcp=times(10, "r5")), partial=True)
    assert (got.cause, [one.kind for one in above(got)]) == ("refused", ["refused"])


def test_a_port_that_accepts_and_resets_is_open_and_its_server_fails() -> None:
    reset = replace(BROKEN, error="cut", detail="the connection was reset")
    mixed = f"{times(5, '5')} {times(5, 'r5')}"
    got = report(replace(World(), tcp=mixed, exchanges=(reset,), streams=None), target=PLAIN)
    assert (statuses(got), got.cause) == ("ppppp-F-", "http-error")
    assert not any("nothing listens" in one.why for one in got.verdict.findings)
