"""What passes between an engine and whoever sends for it: a probe to send, and what came back."""

from msgspec import Struct

from hopscope.model.record import Clock, ReplyKind


class Shot(Struct, frozen=True, kw_only=True, gc=False):
    """A probe that an engine wants sent: which one, how far, on which flow, and when it was due (anchored ns)."""

    seq: int
    flow: int
    ttl: int
    slot: int
    warmup: bool = False


class Answer(Struct, frozen=True, kw_only=True, gc=False):
    """What came back for one probe. `by` is absent when the address that was asked answered itself."""

    kind: ReplyKind
    rtt_ns: int
    clock: Clock
    by: str | None = None
    code: int | None = None
    reply_ttl: int | None = None
    quoted_ttl: int | None = None
    quoted_tos: int | None = None
    mpls: tuple[int, ...] | None = None
