"""What a lab is made of: nodes, links, what each link does to frames, servers.

Frozen values only; a value that no lab could have is refused when it is made. How they are laid out (addresses,
routes) is decided in lab/layout.py.
"""

from typing import Literal

from msgspec import Struct

from hopscope.errors import HopscopeError

PROVIDER_PREFIX = "11.0.0.0/8"
MAX_PORT = 65535

FIRST_FINAL_STATUS, LAST_STATUS = 200, 599

Tls = Literal["lab-ca", "self-signed", "expired", "wrong-name"]
Verb = Literal["prohibit", "unreachable", "blackhole"]
Fault = Literal["hangs", "full"]


class LabError(HopscopeError):
    """A lab that cannot be built or asked: the message says where, `advice` what to do about it."""

    exit_code = 3


class Impairment(Struct, frozen=True, kw_only=True):
    """What one direction of a link does to a frame. Raises LabError outside the ranges.

    delay_ms: fixed one-way delay. jitter_ms: an extra delay drawn uniformly from 0 to this; order is kept unless
    `reorder`. loss: share of frames dropped independently, 0..1. rate_mbit: 10^6 bits per second of Ethernet frame.
    queue_ms: a frame that would wait longer than this for the rate is dropped; means nothing without a rate.
    """

    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    loss: float = 0.0
    rate_mbit: float | None = None
    queue_ms: float = 100.0
    reorder: bool = False

    def __post_init__(self) -> None:
        """Refuses what no link can do."""
        if not 0.0 <= self.loss <= 1.0:
            raise LabError(f"loss {self.loss} of a link", "Give a ratio from 0 to 1.")
        if min(self.delay_ms, self.jitter_ms, self.queue_ms) < 0.0:
            raise LabError("negative delay_ms, jitter_ms or queue_ms of a link", "Give milliseconds from 0 up.")
        if self.rate_mbit is not None and self.rate_mbit <= 0.0:
            raise LabError(f"rate_mbit {self.rate_mbit} of a link", "Give a positive rate, or None for no limit.")


CLEAN = Impairment()


class Inference(Struct, frozen=True, kw_only=True):
    """A stand-in inference server on a host; see lab/inference.py. Times in milliseconds.

    queue_ms and prefill_ms pass before the first token, per_token_ms before each later one, think_ms before the
    head of any plain GET. slots: requests decoded at once, more wait (None: no limit). names: what the certificate
    is for besides the host's address. api_key: what /v1 asks for, else 401. A model that is not in models is 404.

    status: what every request but /metrics is answered with, at once (503: overloaded). fault: "hangs" takes requests
    and never answers; "full" never accepts and has its queue full, so that a connection gets no answer at all.
    """

    port: int
    tls: Tls | None = None
    names: tuple[str, ...] = ()
    queue_ms: float = 0.0
    prefill_ms: float = 0.0
    per_token_ms: float = 0.0
    think_ms: float = 0.0
    tokens: int = 16
    slots: int | None = None
    models: tuple[str, ...] = ("stand-in",)
    api_key: str | None = None
    status: int | None = None
    fault: Fault | None = None

    def __post_init__(self) -> None:
        """Refuses settings under which no request could be answered."""
        if not 0 < self.port <= MAX_PORT:
            raise LabError(f"port {self.port} of a server", f"Give 1 to {MAX_PORT}.")
        if min(self.queue_ms, self.prefill_ms, self.per_token_ms, self.think_ms, self.tokens) < 0:
            raise LabError(f"negative time or token count of the server on port {self.port}", "Give 0 or more.")
        if not self.models:
            raise LabError(f"no models on the server on port {self.port}", "Name one or more.")
        if self.slots is not None and self.slots < 1:
            raise LabError(f"slots {self.slots} of the server on port {self.port}", "Give 1 or more, or None.")
        if self.status is not None and not FIRST_FINAL_STATUS <= self.status <= LAST_STATUS:
            raise LabError(f"status {self.status} of the server on port {self.port}", "Give 200 to 599, or None.")


class Client(Struct, frozen=True, kw_only=True):
    """Where measuring programs run. datagram_ping opens the unprivileged ICMP socket to all groups."""

    name: str
    address: str | None = None
    prefix: str | None = None
    datagram_ping: bool = False


class Block(Struct, frozen=True, kw_only=True):
    """What a router does with packets to the node `to`, instead of forwarding them: of TCP to one port, or all.

    "prohibit" says that this is administratively prohibited (ICMP code 13), "unreachable" that the host is (code 1):
    to each sender a few times at once and then once a second, as Linux limits these whatever icmp_limit_per_s says.
    "blackhole" drops them without a word. A packet whose TTL ends here is treated so too.
    """

    to: str
    how: Verb = "prohibit"
    port: int | None = None

    def __post_init__(self) -> None:
        """Refuses what is no port."""
        if self.port is not None and not 0 < self.port <= MAX_PORT:
            raise LabError(f"port {self.port} of a block", f"Give 1 to {MAX_PORT}, or None for all packets.")


class Router(Struct, frozen=True, kw_only=True):
    """Forwards. icmp_limit_per_s: ICMP errors sent per second to one peer, None for no limit; silent: never says
    Time Exceeded, though it answers pings to itself. address: one for all its interfaces; else one for each link.
    blocks: what it does not forward.
    """

    name: str
    address: str | None = None
    prefix: str | None = None
    icmp_limit_per_s: float | None = None
    silent: bool = False
    blocks: tuple[Block, ...] = ()


class Host(Struct, frozen=True, kw_only=True):
    """A far end. Ports without a server refuse; filtered_ports (TCP and UDP) say nothing; icmp_deaf ignores pings.
    down: it says nothing at all, as if it were switched off; its link stays up.
    """

    name: str
    address: str | None = None
    prefix: str | None = None
    filtered_ports: tuple[int, ...] = ()
    icmp_deaf: bool = False
    down: bool = False
    servers: tuple[Inference, ...] = ()


Node = Client | Router | Host


class Link(Struct, frozen=True, kw_only=True):
    """A cable between two nodes; `forward` is a to b. Without impairment it is a plain veth pair, which cannot be
    changed later unless `adjustable`.
    """

    a: str
    b: str
    forward: Impairment = CLEAN
    back: Impairment = CLEAN
    adjustable: bool = False

    @property
    def relayed(self) -> bool:
        """Whether frames go through the relay."""
        return self.adjustable or self.forward != CLEAN or self.back != CLEAN


class Topology(Struct, frozen=True, kw_only=True):
    """A whole lab. Addresses not given are taken in order from the node's prefix, else from this one."""

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    prefix: str = PROVIDER_PREFIX
