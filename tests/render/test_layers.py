"""Layers of a diagnosis as people read them: the table in every writer, and the ticket that a provider is sent."""

import pytest
from msgspec.structs import replace

from analysis.layered import ADDRESS, GATEWAY, LOST, RESOLVED, SIX, SOURCE, TARGET, World, report
from analysis.notation import times
from analysis.test_layers import NOTHING
from hopscope.model.record import Named
from hopscope.render import RENDERERS, layers, ticket
from hopscope.render.blocks import Heading, Paragraph, Table

BAD = "\x1b]0;owned\x07\u202e\r\nSubject: buy"


def drawn(kind: str, *worlds: World) -> str:
    return "".join(RENDERERS[kind](report(*worlds)))


def test_one_row_a_layer_and_what_was_ruled_out() -> None:
    heading, table, paragraph = layers.blocks(report(World()))
    assert isinstance(heading, Heading)
    assert isinstance(table, Table)
    assert isinstance(paragraph, Paragraph)
    assert [(row[0].text, row[1].text) for row in table.rows] == [
        (name, "passed") for name in ("interface", "gateway", "name (DNS)", "path", "port", "TLS", "HTTP", "model")
    ]
    assert [row[0].below for row in table.rows] == [(), (GATEWAY,), *[()] * 6]
    assert paragraph.text.startswith("Ruled out: a fault of this machine's interface, a name without an address, ")


def test_several_addresses_are_told_apart() -> None:
    _, table, *_ = layers.blocks(report(World(), replace(NOTHING, address=SIX)))
    assert isinstance(table, Table)
    failed = [row[0].below for row in table.rows if row[1].text == "FAILED"]
    assert (failed, len(table.rows)) == ([(SIX,)], 13)


@pytest.mark.parametrize("kind", ["text", "md", "html"])
def test_every_writer_draws_the_table(kind: str) -> None:
    text = drawn(kind, NOTHING)
    assert "Layer by layer" in text
    assert "FAILED" in text
    assert "reached: path fails first" in text


def test_a_report_without_layers_has_no_table() -> None:
    assert list(layers.blocks(report(target=replace(TARGET, probes=("ping",))))) == []


def test_a_ticket_holds_what_a_provider_needs() -> None:
    text = ticket.render(
        report(NOTHING, named=[Named(address="192.0.2.2", source="test", asn=64500, as_name="Transit")])
    )
    assert (
        text
        == f"""\
Subject: The target cannot be reached: it

When:  1970-01-01T00:00:00.000000Z to 1970-01-01T00:00:09.000000Z (UTC)
From:  {SOURCE}
To:    {ADDRESS}, TCP port 443
Whose: a transit network: whoever runs hop 2 (192.0.2.2) or what lies behind it (AS64500)
Where: between hop 2 (192.0.2.2, AS64500) and hop 3 (no address), on the way
       to, or back from, the target

What:  nothing came back from {ADDRESS} by ping, tcp port 443; the last hop
       that answered is hop 2 (192.0.2.2).

How sure: shown by the numbers. This would change it: an answer from the
       target by any protocol.

Numbers: tried ping, tcp port 443 · last hop 2 · last address 192.0.2.2

Layer by layer, from our machine to the answer:
  interface   passed      eth0 sends from {SOURCE} by {GATEWAY}
  gateway     passed      {GATEWAY}: answers in 1.00 ms, no loss in 10
  name (DNS)  passed      gpu.example is {ADDRESS}, found in 3.00 ms
  path        FAILED      nothing came back from {ADDRESS} by ping, tcp port
                          443; the last hop that answered is hop 2 (192.0.2.2)
  port        not checked not reached: path fails first
  TLS         not checked not reached: path fails first
  HTTP        not checked not reached: path fails first
  model       not checked not reached: path fails first

Hops by ICMP to {ADDRESS} (1 more hop left out):
  hop  address                                    loss  sent   p50 ms
    1  192.0.2.1                                   0 %    10     1.00
    2  192.0.2.2 AS64500                           0 %    10     3.00
    3  no reply                                  100 %    10        –
  not reached after 4 hops: too many hops in a row gave no reply at hop 2

Hops by TCP 443 to {ADDRESS} (1 more hop left out):
  hop  address                                    loss  sent   p50 ms
    1  192.0.2.1                                   0 %    10     1.00
    2  192.0.2.2 AS64500                           0 %    10     3.00
    3  no reply                                  100 %    10        –
  not reached after 4 hops: too many hops in a row gave no reply at hop 2

Ruled out: a fault of this machine's interface, a name without an address, a
       slow name lookup.

Next step: ask whoever runs hop 2 (192.0.2.2) where packets to {ADDRESS} go
       from there; and check that the host is up and lets you in.

Measured by hopscope 0: every number above is from this run.
"""
    )


def test_a_ticket_about_nothing_says_so() -> None:
    text = ticket.render(report(World()))
    assert text.startswith("Subject: nothing found: it\n")
    assert "\nNext step: none; all was well.\n" in text
    assert "FAILED" not in text


def test_a_ticket_shows_the_hops_around_the_fault() -> None:
    rows = {ttl: times(10, "1") for ttl in range(1, 21)} | {20: f"{times(6, '.')} {times(4, '9')}"}
    half = f"{times(6, '.')} {times(4, '9')}"
    text = ticket.render(report(replace(World(), icmp=half, tcp=half, icmp_rows=rows, tcp_rows=None, ends=20)))
    hops = text.partition("Hops by ICMP")[2].partition("\n\n")[0]
    assert hops.startswith(f" to {ADDRESS} (16 more hops left out):")
    assert [line.split()[0] for line in hops.splitlines()[2:-1]] == ["17", "18", "19", "20"]


def test_nothing_hostile_reaches_a_ticket_or_a_table() -> None:
    target = replace(TARGET, name=BAD, host=BAD)
    unnamed = replace(RESOLVED, addresses=(), error=BAD, resolvers=(BAD,))
    for got in (report(resolved=unnamed), report(replace(World(), icmp=LOST), target=target)):
        for text in (ticket.render(got), "".join(RENDERERS["text"](got)), "".join(RENDERERS["md"](got))):
            assert not any(mark in text for mark in ("\x1b", "\x07", "\u202e", "\r"))
            assert "\nSubject: buy" not in text
