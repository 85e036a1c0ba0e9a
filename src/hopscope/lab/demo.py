"""The demo's network: three places where users are, and three datacentres with a planted truth each.

`fra-clean` is well. On the way to `ams-lossy` a router that answers 4 probes a second to anybody stands before the
link that really loses frames: the naive reading blames the router. `iad-slow` is on a clean path, near to one place
and far from two, with a server that takes its time. The rule: what the verdict must say is in `planted`, taken from
the same values that build the network. Delays are those of fibre between the cities, so floors by distance hold.

    berlin  - gateway - access -+                +- fra-edge ---------------------------------- fra-clean
                                +- eu-core ------+
    london  - gateway - access -+      |         +- ams-border - ams-limiter =12 %= ams-edge -- ams-lossy
                                       |
    newyork - gateway - access ---- us-core ------- iad-border - iad-edge ---------- iad-slow, server 1.5 s
"""

from collections.abc import Sequence

from msgspec import Struct

from hopscope.lab.box import Lab
from hopscope.lab.layout import Hop, Layout
from hopscope.lab.topology import Client, Host, Impairment, Inference, Link, Router, Topology

BERLIN, LONDON, NEW_YORK = "berlin", "london", "newyork"
PLACES = (BERLIN, LONDON, NEW_YORK)
CLEAN_TARGET, LOSSY_TARGET, SLOW_TARGET = "fra-clean", "ams-lossy", "iad-slow"
TARGETS = (CLEAN_TARGET, LOSSY_TARGET, SLOW_TARGET)
BEFORE_LIMITER, LIMITER, BEHIND_LOSS = "ams-border", "ams-limiter", "ams-edge"
LIMIT_PER_S = 4.0
LOSS = 0.12
THINK_MS = 1500.0
MODEL = "stand-in"
HTTPS = 443

SITES = {
    BERLIN: 'lat = 52.52, lon = 13.40, name = "Berlin"',
    LONDON: 'lat = 51.51, lon = -0.13, name = "London"',
    NEW_YORK: 'lat = 40.71, lon = -74.01, name = "New York"',
    CLEAN_TARGET: 'lat = 50.11, lon = 8.68, name = "Frankfurt"',
    LOSSY_TARGET: 'lat = 52.37, lon = 4.90, name = "Amsterdam"',
    SLOW_TARGET: 'lat = 39.04, lon = -77.49, name = "Ashburn"',
}
PRICES = {CLEAN_TARGET: 2300, LOSSY_TARGET: 1900, SLOW_TARGET: 2100}

VANTAGE = """
[[vantage]]
name = "{name}"
kind = "exec"
command = {command}
hopscope = {hopscope}
site = {{ {site} }}
"""
TARGET = """
[[target]]
name = "{name}"
url = "https://{address}/v1"
model = "{model}"
ca_file = "{ca_file}"
site = {{ {site} }}
price_month = {price}
"""
DEFAULTS = """\
# The demo: three candidates for users in three cities, on a network in a box.
[defaults]
probes = ["ping", "trace", "http"]
count = 100
interval = "100ms"
rounds = 200
round_interval = "100ms"
budget = { rtt_p95 = "100ms", loss = "1%", server_p95 = "500ms" }
"""


class Planted(Struct, frozen=True, kw_only=True):
    """What the demo's verdict must find, with the hops to the lossy target as a trace from each place sees them.

    last_clean is the end of the lossy link that still gets every probe: the limiter itself. A verdict that cannot
    make a limited router testify may name before_limiter in its place; first_lossy is never in doubt.
    """

    places: tuple[str, ...]
    clean_target: str
    lossy_target: str
    slow_target: str
    loss: float
    before_limiter: dict[str, Hop]
    limiter: dict[str, Hop]
    limit_per_s: float
    last_clean: dict[str, Hop]
    first_lossy: dict[str, Hop]
    think_ms: float

    def segment_is_right(self, place: str, from_ttl: int, to_ttl: int) -> bool:
        """Whether the segment (from_ttl, to_ttl] holds the lossy link and nothing that could be told apart from it."""
        clean = (self.before_limiter[place].ttl, self.last_clean[place].ttl)
        return from_ttl in clean and to_ttl == self.first_lossy[place].ttl


def demo_topology() -> Topology:
    """The network of the drawing above; delays are one way, the same in both directions."""
    return Topology(
        nodes=(
            *(node for number, place in enumerate(PLACES, start=1) for node in _place(place, number)),
            Router(name="eu-core", prefix="11.2.0.0/16"),
            Router(name="us-core", prefix="11.2.0.0/16"),
            Router(name="fra-edge", prefix="11.10.0.0/16"),
            Router(name=BEFORE_LIMITER, prefix="11.2.0.0/16"),
            Router(name=LIMITER, prefix="11.20.0.0/16", icmp_limit_per_s=LIMIT_PER_S),
            Router(name=BEHIND_LOSS, prefix="11.20.0.0/16"),
            Router(name="iad-border", prefix="11.2.0.0/16"),
            Router(name="iad-edge", prefix="11.30.0.0/16"),
            _datacentre(CLEAN_TARGET, "11.10.1.10", prefill_ms=40.0),
            _datacentre(LOSSY_TARGET, "11.20.1.10", prefill_ms=40.0),
            _datacentre(SLOW_TARGET, "11.30.1.10", prefill_ms=THINK_MS, think_ms=THINK_MS),
        ),
        links=(
            *_access(BERLIN, "eu-core", 2.0, 0.5),
            *_access(LONDON, "eu-core", 2.0, 4.5),
            *_access(NEW_YORK, "us-core", 1.5, 0.5),
            _link("eu-core", "us-core", 34.0),
            _link("eu-core", "fra-edge", 1.0),
            _link("fra-edge", CLEAN_TARGET, 0.5),
            _link("eu-core", BEFORE_LIMITER, 2.0),
            _link(BEFORE_LIMITER, LIMITER, 1.0),
            _link(LIMITER, BEHIND_LOSS, 3.5, loss=LOSS),
            _link(BEHIND_LOSS, LOSSY_TARGET, 1.0),
            _link("us-core", "iad-border", 1.5),
            _link("iad-border", "iad-edge", 0.5),
            _link("iad-edge", SLOW_TARGET, 1.0),
        ),
    )


def demo_targets(lab: Lab, hopscope: tuple[str, ...]) -> str:
    """The target file for a lab of `demo_topology`: addresses, not names, so that nothing needs a resolver.

    `hopscope` is the command that starts hopscope inside a place.
    """
    places = [
        VANTAGE.format(name=name, command=_words(lab.argv(name, ())), hopscope=_words(hopscope), site=SITES[name])
        for name in PLACES
    ]
    targets = [
        TARGET.format(
            name=name,
            address=lab.address(name),
            model=MODEL,
            ca_file=lab.ca_file,
            site=SITES[name],
            price=PRICES[name],
        )
        for name in TARGETS
    ]
    return DEFAULTS + "".join((*places, *targets))


def planted(layout: Layout) -> Planted:
    """The truth about `demo_topology` as laid out."""
    hops = {place: {hop.node: hop for hop in layout.path(place, LOSSY_TARGET)} for place in PLACES}

    def seen(node: str) -> dict[str, Hop]:
        return {place: hops[place][node] for place in PLACES}

    return Planted(
        places=PLACES,
        clean_target=CLEAN_TARGET,
        lossy_target=LOSSY_TARGET,
        slow_target=SLOW_TARGET,
        loss=LOSS,
        before_limiter=seen(BEFORE_LIMITER),
        limiter=seen(LIMITER),
        limit_per_s=LIMIT_PER_S,
        last_clean=seen(LIMITER),
        first_lossy=seen(BEHIND_LOSS),
        think_ms=THINK_MS,
    )


def _words(argv: Sequence[str]) -> str:
    """Words of a command as TOML: paths and names of the lab's own, without a quote in them."""
    return "[" + ", ".join(f'"{word}"' for word in argv) + "]"


def _place(name: str, number: int) -> tuple[Client | Router, ...]:
    """A client behind a gateway and its provider's router."""
    return (
        Client(name=name, address=f"192.168.{number}.23", datagram_ping=True),
        Router(name=f"{name}-gateway", address=f"192.168.{number}.1"),
        Router(name=f"{name}-access", prefix="11.1.0.0/16"),
    )


def _access(place: str, core: str, last_mile_ms: float, to_core_ms: float) -> tuple[Link, ...]:
    return (
        Link(a=place, b=f"{place}-gateway"),
        _link(f"{place}-gateway", f"{place}-access", last_mile_ms),
        _link(f"{place}-access", core, to_core_ms),
    )


def _datacentre(name: str, address: str, *, prefill_ms: float, think_ms: float = 0.0) -> Host:
    server = Inference(
        port=HTTPS,
        tls="lab-ca",
        names=(f"{name}.example",),
        prefill_ms=prefill_ms,
        per_token_ms=20.0,
        think_ms=think_ms,
        models=(MODEL,),
    )
    return Host(name=name, address=address, servers=(server,))


def _link(a: str, b: str, one_way_ms: float, *, loss: float = 0.0) -> Link:
    return Link(a=a, b=b, forward=Impairment(delay_ms=one_way_ms, loss=loss), back=Impairment(delay_ms=one_way_ms))
