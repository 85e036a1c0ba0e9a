"""Names to addresses, by the system's own resolver (hosts file included), in a thread that nothing waits for.

getaddrinfo cannot be cancelled, so each lookup has a daemon thread of its own and never one of a pool that a hung
resolver could fill.
"""

import asyncio
import socket
import threading

from msgspec import Struct

from hopscope.model.plan import Family, family_of, is_address
from hopscope.net.ports import Clock

MAX_ADDRESSES = 64


class Answers(Struct, frozen=True):
    """Addresses in the resolver's order with the time it took (ns, `None` for a literal), or why there are none."""

    addresses: tuple[str, ...]
    took_ns: int | None
    error: str | None


def literal(host: str) -> str | None:
    """The host if it is an address (a zone is kept), else `None`."""
    return host if is_address(host) else None


async def lookup(host: str, family: Family | None, clock: Clock) -> Answers:
    """Resolve a host; `family` restricts the answer."""
    address = literal(host)
    if address is not None:
        if family is not None and family_of(address) != family:
            return Answers((), None, f"{address} is not an IPv{family} address")
        return Answers((address,), None, None)
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Answers] = loop.create_future()

    def settle(answers: Answers) -> None:
        if not future.done():
            future.set_result(answers)

    def work() -> None:
        answers = _ask(host, family, clock)
        if not loop.is_closed():
            try:
                loop.call_soon_threadsafe(settle, answers)
            except RuntimeError:
                return  # the run ended while the resolver was still thinking

    threading.Thread(target=work, name=f"resolve {host}", daemon=True).start()
    return await future


def _ask(host: str, family: Family | None, clock: Clock) -> Answers:
    """The blocking lookup."""
    wanted = {4: socket.AF_INET, 6: socket.AF_INET6, None: socket.AF_UNSPEC}[family]
    before = clock.now()
    try:
        found = socket.getaddrinfo(host, None, family=wanted, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        return Answers((), clock.now() - before, str(error.strerror or error))
    except (OSError, UnicodeError) as error:
        return Answers((), clock.now() - before, str(error))
    took = clock.now() - before
    addresses = dict.fromkeys(_address(entry[4]) for entry in found)
    return Answers(tuple(addresses)[:MAX_ADDRESSES], took, None)


def _address(sockaddr: tuple[object, ...]) -> str:
    """The address of a socket address, with its zone where it has one."""
    return str(sockaddr[0])


def reachable_first(addresses: tuple[str, ...]) -> tuple[str, ...]:
    """The same addresses, those that have a route from here first; sends nothing (a UDP connect only looks up)."""
    return tuple(sorted(addresses, key=lambda address: not has_route(address)))


def has_route(address: str) -> bool:
    """Whether the routing table knows a way to an address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
    except OSError:
        return False
    return True


def is_ours(address: str) -> bool:
    """Whether this host has an address, so that probes can be sent from it; a name is none."""
    if literal(address) is None:
        return False
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def interfaces() -> tuple[str, ...]:
    """Names of this host's network interfaces."""
    return tuple(name for _, name in socket.if_nameindex())
