"""Names become addresses without holding anybody up, and a name that is dead says so."""

import asyncio
import socket
import subprocess
import sys

import pytest

from hopscope.model.plan import Family
from hopscope.net import resolve
from hopscope.net.clock import SystemClock
from hopscope.net.resolve import Answers

HUNG = """
import asyncio, sys, threading, time
from hopscope.net import resolve
from hopscope.net.clock import SystemClock

class Hung:
    "A clock that hangs where the resolver would: the first reading of it is made in the lookup's own thread."
    def __init__(self):
        self.system = SystemClock()
        self.asked = threading.Event()
    def now(self):
        if threading.current_thread() is not threading.main_thread():
            self.asked.set()
            time.sleep(3600)
        return self.system.now()
    def offset(self):
        return self.system.offset()
    def from_realtime(self, stamp):
        return stamp

async def main():
    clock = Hung()
    names = [asyncio.create_task(resolve.lookup(f"hung{i}.invalid", None, clock)) for i in range(40)]
    while not clock.asked.is_set():
        await asyncio.sleep(0)
    good = await resolve.lookup("192.0.2.1", None, clock)
    for name in names:
        name.cancel()
    await asyncio.gather(*names, return_exceptions=True)
    print(good.addresses[0], sum(name.cancelled() for name in names))

asyncio.run(main())
"""


def look_up(host: str, family: Family | None = None) -> Answers:
    return asyncio.run(resolve.lookup(host, family, SystemClock()))


@pytest.mark.parametrize(
    ("host", "literal"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1%eth0"),
        ("gpu1.example.net", None),
        ("xn--bcher-kva.example", None),
        ("1.2.3", None),
        ("", None),
    ],
)
def test_what_is_an_address(host: str, literal: str | None) -> None:
    assert resolve.literal(host) == literal


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "fe80::1%lo"])
def test_an_address_is_its_own_answer_and_took_no_time(address: str) -> None:
    assert look_up(address) == Answers((address,), None, None)


@pytest.mark.parametrize(("address", "family"), [("127.0.0.1", 6), ("::1", 4)])
def test_an_address_of_the_other_family_is_refused_in_words(address: str, family: Family) -> None:
    answers = look_up(address, family)
    assert answers.addresses == ()
    assert answers.error == f"{address} is not an IPv{family} address"


@pytest.mark.loopback
def test_localhost_has_addresses_and_a_time() -> None:
    answers = look_up("localhost", 4)
    assert answers.addresses == ("127.0.0.1",)
    assert answers.error is None
    assert answers.took_ns is not None
    assert answers.took_ns > 0


@pytest.mark.loopback
@pytest.mark.parametrize(
    "name",
    [
        "nothing-here.invalid",
        "xn--bcher-kva.invalid",
        "bücher.invalid",  # a name that nobody encoded is a dead name, not a crash
        "host_1.invalid",
        "a" * 64 + ".invalid",  # longer than a label may be: the codec raises, we answer
        "..",
    ],
)
def test_a_dead_name_says_why_and_has_no_addresses(name: str) -> None:
    answers = look_up(name)
    assert answers.addresses == ()
    assert answers.error
    assert answers.took_ns is not None


@pytest.mark.loopback
def test_addresses_without_a_route_come_last_in_their_own_order() -> None:
    loopback = ("127.0.0.1", "127.0.0.2")
    nowhere = ("fe80::1%nosuch", "fe80::2%nosuch")
    assert resolve.reachable_first((nowhere[0], *loopback, nowhere[1])) == (*loopback, *nowhere)


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("address", "ours"), [("127.0.0.1", True), ("::1", True), ("192.0.2.1", False), ("localhost", False), ("", False)]
)
def test_which_addresses_are_ours(address: str, ours: bool) -> None:
    assert resolve.is_ours(address) is ours


def test_interfaces_are_those_of_the_system() -> None:
    assert resolve.interfaces() == tuple(name for _, name in socket.if_nameindex())


@pytest.mark.loopback
def test_forty_hung_lookups_delay_neither_an_address_nor_the_end_of_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", HUNG], capture_output=True, text=True, check=False, timeout=30)
    assert (done.stdout, done.stderr, done.returncode) == ("192.0.2.1 40\n", "", 0)
