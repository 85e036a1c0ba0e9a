"""One target of a file: its own keys over the defaults, and what must hold between them.

A key of the target replaces the default whole (tables are not mixed). Its own `url` or `host` replaces a default
address; only a default `port` stays for a `host` of its own.
"""

from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from hopscope.model.plan import Budget
from hopscope.targets.hosts import HostSpec
from hopscope.targets.nodes import Node

_ADDRESS = ("url", "host", "port")


class Given(NamedTuple):
    """A table of the file: its node, the values that were right, and the keys that were given."""

    node: Node
    values: dict[str, object]
    given: tuple[str, ...]


def target(own: Given, defaults: Given, budgets: dict[str, Budget]) -> dict[str, object]:
    """The values of one target by their names in the model; complains where they contradict each other."""
    inherited = {key for key in defaults.given if key not in own.given and not _replaced(key, own)}
    origin = {key: defaults.node.at(key) for key in inherited} | {key: own.node.at(key) for key in own.given}
    values = {key: value for key, value in defaults.values.items() if key.removesuffix("_ns") in inherited} | own.values
    if "name" not in origin:
        own.node.at("name").wrong("missing; every target needs a name")
    values |= _address(own, origin, values)
    _check_probes(origin, values)
    _check_protocol(origin, values)
    if isinstance(name := values.get("budget"), str):
        values |= {"budget": budgets[name], "budget_name": name}
    return values


def _replaced(key: str, own: Given) -> bool:
    if "url" in own.given:
        return key in _ADDRESS
    return "host" in own.given and key == "url"


def _address(own: Given, origin: dict[str, Node], values: dict[str, object]) -> dict[str, object]:
    if "url" in origin:
        for key in ("host", "port"):
            if key in origin:
                origin[key].wrong("contradicts url: host and port come from it; leave one of them out")
        spec = values.pop("url", None)
        return {"host": spec.host, "port": spec.port, "url": spec.url} if isinstance(spec, HostSpec) else {}
    if "host" not in origin:
        own.node.wrong('expected url = "https://…" or host = "…"')
        return {}
    spec, port = values.pop("host", None), values.get("port")
    if not isinstance(spec, HostSpec):
        return {}
    if spec.port is not None and port is not None and port != spec.port:
        origin["port"].wrong(f"contradicts host, which says port {spec.port}")
    return {"host": spec.host} if spec.port is None else {"host": spec.host, "port": spec.port}


def _check_probes(origin: dict[str, Node], values: dict[str, object]) -> None:
    if "probes" not in origin:
        values["probes"] = ("ping", "trace", "http") if "url" in origin else ("ping", "trace")
        return
    probes = values.get("probes")
    if "host" in origin and "url" not in origin and isinstance(probes, tuple):
        for probe in probes:
            if probe in ("http", "stream"):
                origin["probes"].wrong(f'"{probe}" needs url = "https://…" instead of host')


def _check_protocol(origin: dict[str, Node], values: dict[str, object]) -> None:
    if values.get("protocol") == "tcp" and "host" in values and values.get("port") is None and "port" not in origin:
        origin["protocol"].wrong('"tcp" needs port')
    literal = _literal_family(values.get("host"))
    if "family" in values and literal is not None and values["family"] != literal:
        origin["family"].wrong(f"contradicts host, which is an IPv{literal} address")


def _literal_family(host: object) -> int | None:
    try:
        return 6 if isinstance(ip_address(str(host)), IPv6Address) else 4
    except ValueError:
        return None
