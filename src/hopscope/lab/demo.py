"""The demo's network: you, behind a gateway and an access router, and three datacentres with a planted truth each.

`fra-clean` is near and well. On the way to `ams-lossy` a router that answers 4 probes a second stands before the link
that really loses frames: the naive reading blames the router. `iad-slow` is far, on a clean path, with a server that
takes its time. The rule: what the verdict must say is in `planted`, taken from the same values that build the network.

    you - gateway - access - core -+- fra-edge --------------------------------- fra-clean    8 ms
                                   +- ams-border - ams-limiter =12 %= ams-edge - ams-lossy   20 ms
                                   +- iad-border - iad-edge -------------------- iad-slow    60 ms, server 1.5 s
"""

from msgspec import Struct

from hopscope.lab.box import Lab
from hopscope.lab.layout import Hop, Layout
from hopscope.lab.topology import Client, Host, Impairment, Inference, Link, Router, Topology

YOU = "you"
CLEAN_TARGET, LOSSY_TARGET, SLOW_TARGET = "fra-clean", "ams-lossy", "iad-slow"
TARGETS = (CLEAN_TARGET, LOSSY_TARGET, SLOW_TARGET)
BEFORE_LIMITER, LIMITER, BEHIND_LOSS = "ams-border", "ams-limiter", "ams-edge"
LIMIT_PER_S = 4.0
LOSS = 0.12
THINK_MS = 1500.0
MODEL = "stand-in"
HTTPS = 443

TARGET = """
[[target]]
name = "{name}"
url = "https://{address}/v1"
model = "{model}"
ca_file = "{ca_file}"
"""
DEFAULTS = """\
# The demo: three datacentres on a network in a box.
[defaults]
probes = ["ping", "trace", "http"]
count = 100
interval = "100ms"
rounds = 200
round_interval = "100ms"
"""


class Planted(Struct, frozen=True, kw_only=True):
    """What the demo's verdict must find, with the hops as a trace from `you` to the lossy target sees them.

    last_clean is the end of the lossy link that still gets every probe: the limiter itself. A verdict that cannot
    make a limited router testify may name before_limiter in its place; first_lossy is never in doubt.
    """

    clean_target: str
    lossy_target: str
    slow_target: str
    loss: float
    before_limiter: Hop
    limiter: Hop
    limit_per_s: float
    last_clean: Hop
    first_lossy: Hop
    think_ms: float

    def segment_is_right(self, from_ttl: int, to_ttl: int) -> bool:
        """Whether the segment (from_ttl, to_ttl] holds the lossy link and nothing that could be told apart from it."""
        return from_ttl in (self.before_limiter.ttl, self.last_clean.ttl) and to_ttl == self.first_lossy.ttl


def demo_topology() -> Topology:
    """The network of the drawing above; delays are one way, the same in both directions."""
    return Topology(
        nodes=(
            Client(name=YOU, address="192.168.1.23", datagram_ping=True),
            Router(name="gateway", address="192.168.1.1"),
            Router(name="access", prefix="11.1.0.0/16"),
            Router(name="core", prefix="11.2.0.0/16"),
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
            Link(a=YOU, b="gateway"),
            _link("gateway", "access", 2.0),
            _link("access", "core", 0.5),
            _link("core", "fra-edge", 1.0),
            _link("fra-edge", CLEAN_TARGET, 0.5),
            _link("core", BEFORE_LIMITER, 2.0),
            _link(BEFORE_LIMITER, LIMITER, 1.0),
            _link(LIMITER, BEHIND_LOSS, 3.5, loss=LOSS),
            _link(BEHIND_LOSS, LOSSY_TARGET, 1.0),
            _link("core", "iad-border", 26.0),
            _link("iad-border", "iad-edge", 0.5),
            _link("iad-edge", SLOW_TARGET, 1.0),
        ),
    )


def demo_targets(lab: Lab) -> str:
    """The target file for a lab of `demo_topology`: addresses, not names, so that nothing needs a resolver."""
    parts = [TARGET.format(name=name, address=lab.address(name), model=MODEL, ca_file=lab.ca_file) for name in TARGETS]
    return DEFAULTS + "".join(parts)


def planted(layout: Layout) -> Planted:
    """The truth about `demo_topology` as laid out."""
    hops = {hop.node: hop for hop in layout.path(YOU, LOSSY_TARGET)}
    return Planted(
        clean_target=CLEAN_TARGET,
        lossy_target=LOSSY_TARGET,
        slow_target=SLOW_TARGET,
        loss=LOSS,
        before_limiter=hops[BEFORE_LIMITER],
        limiter=hops[LIMITER],
        limit_per_s=LIMIT_PER_S,
        last_clean=hops[LIMITER],
        first_lossy=hops[BEHIND_LOSS],
        think_ms=THINK_MS,
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
