"""Every key a target file may have, what it is called in the model, and how its value is read.

The tables follow interface.md "Target files"; a key that is not in one of them is an error.
"""

import shlex
from collections.abc import Mapping
from datetime import datetime
from ipaddress import ip_address

from hopscope.targets import nodes
from hopscope.targets.nodes import Key, Node, Reader
from hopscope.targets.quantities import UNITS
from hopscope.targets.wording import NO_SECRETS, looks_secret, quoted

PROBES = ("ping", "trace", "http", "stream")
MS = UNITS["ms"]
SECOND = UNITS["s"]
HOUR = UNITS["h"]
DAY = UNITS["d"]

_NAME = nodes.text("a name of printable text")
_PATH_OF_FILE = nodes.text("the path of a file")
_SITE: dict[str, Key] = {
    "lat": Key("lat", nodes.number("degrees north from -90 to 90", -90, 90)),
    "lon": Key("lon", nodes.number("degrees east from -180 to 180", -180, 180)),
    "name": Key("name", _NAME),
}
_WEIGHT = nodes.number("a number above 0", 0, 1e9, above=True)
_HEADER = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"  # RFC 9110 section 5.6.2
_PACE = {"rtt_p50": 10, "rtt_p95": 10, "pdv_p95": 10, "connect_p95": 60, "tls_p95": 60, "tpot_p95": 60}
_WAITS = ("ttfb_p95", "ttft_p50", "ttft_p95", "server_p95")


def _limit(longest_s: int) -> Reader:
    return nodes.span(1_000, longest_s * SECOND, per_ns=MS)


BUDGET: dict[str, Key] = {
    **{key: Key(f"{key}_ms", _limit(longest_s)) for key, longest_s in _PACE.items()},
    **{key: Key(f"{key}_ms", _limit(3600)) for key in _WAITS},
    "loss": Key("loss", nodes.share),
    "tps": Key("tps", nodes.number("tokens per second above 0", 0, 1e6, above=True)),
}

METRICS = ("status", *BUDGET)


def budget_or_name(names: tuple[str, ...]) -> Reader:
    """Reads `budget`: the name of a budget, or a table of limits."""
    limits = nodes.table(BUDGET)

    def read(node: Node) -> object:
        if not isinstance(node.value, str):
            return limits(node)
        if node.value in names:
            return node.value
        node.wrong(f"no budget is named {quoted(node.value)}", word=node.value, among=names)
        return None

    return read


def target_keys(budgets: tuple[str, ...]) -> dict[str, Key]:
    """The keys of `[[target]]` and `[defaults]`; `budgets` are the names that `budget` may have."""
    status = nodes.list_of("a status from 100 to 599, or a list of them", nodes.whole(100, 599), alone=True)
    readers: dict[str, Reader] = {
        "name": _NAME,
        "host": nodes.bare_host,
        "port": nodes.whole(1, 65535),
        "url": nodes.url,
        "path": nodes.text('a path that begins with "/", such as "/health"', r"/[!-~]*"),
        "site": nodes.table(_SITE, ("lat", "lon")),
        "probes": nodes.list_of('a list such as ["ping", "trace", "http"]', nodes.choice(*PROBES)),
        "protocol": nodes.choice("icmp", "udp", "tcp"),
        "family": nodes.choice(4, 6),
        "count": nodes.whole(1, 1_000_000),
        "rounds": nodes.whole(1, 100_000),
        "flows": nodes.whole(1, 64),
        "expect_status": status,
        "headers_env": nodes.pairs('header names with variables: { X-Key = "GPU1_KEY" }', _HEADER, nodes.variable),
        "api_key_env": nodes.variable,
        "ca_file": _PATH_OF_FILE,
        "insecure": nodes.boolean,
        "model": nodes.text("the name of a model"),
        "metrics": nodes.url_text,
        "prompt_tokens": nodes.whole(1, 10_000_000),
        "max_tokens": nodes.whole(1, 1_000_000),
        "requests": nodes.whole(1, 1_000_000),
        "ramp": nodes.list_of("a list of concurrencies such as [1, 2, 4, 8]", nodes.whole(1, 100_000)),
        "rate": nodes.number("requests per second above 0", 0, 1e6, above=True),
        "price_month": nodes.number("a price of 0 or more", 0, 1e12),
        "labels": nodes.pairs('labels such as { seller = "A" }', r".{1,100}", nodes.text("text in quotes")),
        "weight": _WEIGHT,
        "budget": budget_or_name(budgets),
        "critical": nodes.table(BUDGET),
    }
    return {
        **{key: Key(key, reader) for key, reader in readers.items()},
        "interval": Key("interval_ns", nodes.span(MS, HOUR)),
        "round_interval": Key("round_interval_ns", nodes.span(MS, HOUR)),
    }


def _command(node: Node) -> object:
    value = node.value
    if isinstance(value, str):
        try:
            words: list[str] = shlex.split(value)
        except ValueError:
            words = []
        value = words
    if isinstance(value, list) and value and all(isinstance(word, str) and word and "\0" not in word for word in value):
        return [str(word) for word in value]
    node.wrong('expected a command such as ["kubectl", "exec", "-i", "POD", "--"]')
    return None


def _places(node: Node) -> object:
    found = nodes.list_of('a list of places such as ["Frankfurt", "US"]', nodes.text("a place"), alone=True)(node)
    return [str(place) for place in found] if isinstance(found, tuple) else None


def _source(node: Node) -> object:
    try:
        return str(ip_address(str(node.value)))
    except ValueError:
        node.expected("an IP address of this machine")
        return None


VANTAGE: dict[str, Key] = {
    "name": Key("name", _NAME),
    "kind": Key("kind", nodes.choice("local", "ssh", "exec", "globalping", "atlas", "fleet", "file")),
    "site": Key("site", nodes.table(_SITE, ("lat", "lon"))),
    "weight": Key("weight", _WEIGHT),
    "deadline": Key("deadline_ns", nodes.span(SECOND, DAY)),
}

_LOCAL: dict[str, Reader] = {"source": _source, "interface": nodes.text("the name of an interface", r"[^\s/]{1,15}")}
_SSH: dict[str, Reader] = {
    "host": nodes.host_name,
    "port": nodes.whole(1, 65535),
    "user": nodes.text("a user name", r"[^\s:@/-][^\s:@/]*"),
    "key_file": _PATH_OF_FILE,
    "hopscope": _command,
    "known_hosts": _PATH_OF_FILE,
    "jump": nodes.text('a jump host such as "user@gate.example.net"', r"[^\s-]\S*"),
    "pin": nodes.text('a host key fingerprint such as "SHA256:…"'),
}
_GLOBALPING: dict[str, Reader] = {
    "places": _places,
    "limit": nodes.whole(1, 500),
    "token_env": nodes.variable,
    "api": nodes.url_text,
}
_ATLAS: dict[str, Reader] = {
    "places": _places,
    "count": nodes.whole(1, 1000),
    "key_env": nodes.variable,
    "api": nodes.url_text,
}

# The keys that only a kind of vantage knows, and those it cannot do without.
SETTINGS: dict[str, dict[str, Reader]] = {
    "local": _LOCAL,
    "ssh": _SSH,
    "exec": {"command": _command, "hopscope": _command},
    "globalping": _GLOBALPING,
    "atlas": _ATLAS,
    "fleet": {"queue": nodes.text("the name of a queue"), "broker_env": nodes.variable},
    "file": {"path": _PATH_OF_FILE},
}
NEEDS: Mapping[str, tuple[str, ...]] = {
    "ssh": ("host",),
    "exec": ("command",),
    "fleet": ("broker_env",),
    "file": ("path",),
}


def _raise(node: Node) -> object:
    match node.value:
        case str() as value if len(value) <= len("100/100") and value.replace("/", "", 1).isdecimal() and "/" in value:
            runs, _, of = value.partition("/")
            if runs and of and 1 <= int(runs) <= int(of) <= 100:  # noqa: PLR2004 - runs in a row
                return (int(runs), int(of))
        case _:
            pass
    node.expected('bad runs of runs such as "2/3"')
    return None


def _instant(node: Node) -> object:
    if isinstance(node.value, datetime) and node.value.tzinfo is not None:
        return node.value
    node.expected("an instant with its offset and without quotes, such as 2030-01-31T22:00:00Z")
    return None


def _target_of(names: tuple[str, ...]) -> Reader:
    def read(node: Node) -> object:
        if isinstance(node.value, str) and node.value in names:
            return node.value
        node.expected("the name of a target", word=node.value if isinstance(node.value, str) else "", among=names)
        return None

    return read


def alarm_keys(targets: tuple[str, ...]) -> dict[str, Key]:
    """The keys of `[[alarm]]`."""
    return {
        "target": Key("target", _target_of(targets)),
        "metric": Key("metric", nodes.choice(*METRICS)),
        "raise": Key("raise", _raise),
        "clear": Key("clear", nodes.whole(1, 100)),
    }


def maintenance_keys(targets: tuple[str, ...]) -> dict[str, Key]:
    """The keys of `[[maintenance]]`."""
    return {
        "target": Key("target", _target_of(targets)),
        "start": Key("start", _instant),
        "end": Key("end", _instant),
        "why": Key("why", nodes.text("a reason")),
    }


GEO: dict[str, Key] = {"mmdb": Key("mmdb", nodes.list_of("a list of database files", _PATH_OF_FILE, alone=True))}


def _store_url(node: Node) -> object:
    value = node.value
    if isinstance(value, str) and value.isprintable():
        scheme, mark, rest = value.partition("://")
        if looks_secret(value):
            node.wrong(f"expected no password in a URL ({NO_SECRETS}: put the URL in one and write url_env)")
            return None
        if mark and rest and scheme.split("+")[0] in ("sqlite", "postgresql"):
            return value
    node.expected('a database such as "sqlite:///history.db" or "postgresql://user@db.example.net/hopscope"')
    return None


STORE: dict[str, Key] = {"url": Key("store_url", _store_url), "url_env": Key("store_url_env", nodes.variable)}
CHECK: dict[str, Key] = {
    "interval": Key("interval_ns", nodes.span(SECOND, 7 * DAY)),
    "splay": Key("splay_ns", nodes.span(1, DAY)),
}
NOTIFY: dict[str, Key] = {
    "urls_env": Key("notify_urls_env", nodes.list_of("a variable name, or a list", nodes.variable, alone=True))
}
CONTROLS: Reader = nodes.list_of('a list of hosts such as ["192.0.2.1"]', nodes.host_name)
TOP = (
    "defaults",
    "vantage",
    "target",
    "budget",
    "quorum",
    "controls",
    "geo",
    "store",
    "check",
    "alarm",
    "maintenance",
    "notify",
)
