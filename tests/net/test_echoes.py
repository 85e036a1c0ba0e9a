"""Which probe a quote of the error queue is about, where a router gave back no more than the ICMP header."""

import pytest

from hopscope.model.flight import Shot
from hopscope.net.echoes import Echoes, Out
from hopscope.net.ports import Arrival, DropSeen, Flight, Job, Packet
from hopscope.wire import icmp
from net.probing import Idle

ASKED = "192.0.2.1"


class Nowhere:
    """A channel that only lends its name to packets."""

    def fileno(self) -> int:
        raise NotImplementedError

    def send(self, flight: Flight) -> int:
        raise NotImplementedError

    def receive(self) -> list[Arrival | DropSeen]:
        raise NotImplementedError

    def wake_at(self) -> int | None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


def launched(echoes: Echoes, *, flow: int = 0, at: int = 0) -> tuple[Out, bytes]:
    packet = Packet(address=ASKED, family=4, port=None, size=56, dscp=0, ttl=0, horizon_ns=1000)
    return echoes.launch(Flight(Job(1, Idle(), Nowhere(), packet), Shot(seq=at, flow=flow, ttl=3, slot=at)), at)


@pytest.mark.parametrize("kept", [8, 12, 15, 16, 64])
def test_a_quote_of_any_length_from_the_header_on_names_its_probe(kept: int) -> None:
    echoes = Echoes(4, 0, own_identifier=False)
    probes = [launched(echoes, flow=flow, at=flow) for flow in range(4)]
    for out, message in probes:
        rewritten = message[:4] + b"\x99\x99" + message[6:]  # the kernel's own identifier stands there
        assert echoes.of_quote(rewritten[:kept], ASKED) is out


@pytest.mark.parametrize(
    ("kept", "destination"), [(7, ASKED), (0, ASKED), (8, "192.0.2.2"), (15, "192.0.2.2"), (8, "2001:db8::1")]
)
def test_a_quote_too_short_or_of_a_packet_to_somebody_else_names_none(kept: int, destination: str) -> None:
    echoes = Echoes(4, 0, own_identifier=False)
    _, message = launched(echoes)
    assert echoes.of_quote(message[:kept], destination) is None


def test_a_whole_quote_with_a_strangers_token_names_none() -> None:
    echoes = Echoes(4, 0, own_identifier=False)
    _, message = launched(echoes)
    strange = message[: icmp.HEADER_BYTES] + bytes(len(message) - icmp.HEADER_BYTES)
    assert echoes.of_quote(strange, ASKED) is None


def test_probes_past_their_horizon_are_forgotten_with_their_sequence() -> None:
    echoes = Echoes(4, 0, own_identifier=False)
    _, message = launched(echoes, at=0)
    launched(echoes, at=1001)
    assert echoes.of_quote(message[:8], ASKED) is None
    assert echoes.of_token(message) is None
    assert (len(echoes._out), len(echoes._by_sequence)) == (1, 1)
