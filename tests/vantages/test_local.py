"""This machine as a vantage: what it refuses at once, and that a channel is opened once and given back."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from hopscope.errors import UsageError
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import Family, PingTask, Protocol, ResolveTask, Task, Vantage
from hopscope.model.record import Done, Probe, Record, Resolved
from hopscope.net.ports import NoRightsError
from hopscope.vantages import VANTAGES
from hopscope.vantages.local import LocalPlace

pytestmark = pytest.mark.loopback

HOME: dict[Family, str] = {4: "127.0.0.1", 6: "::1"}


def vantage(*, source: str | None = None, interface: str | None = None) -> Vantage:
    return Vantage(name="here", kind="local", source=source, interface=interface)


def ping(address: str, *, family: Family = 4, protocol: Protocol = "icmp", port: int | None = None) -> PingTask:
    return PingTask(
        target="home", vantage="here", reason="asked", address=address, family=family, protocol=protocol, port=port,
        count=3, interval_ns=5 * MS, threshold_ns=SECOND,
    )  # fmt: skip


def lookup(host: str, family: Family | None = None) -> ResolveTask:
    return ResolveTask(target="home", vantage="here", reason="asked", host=host, family=family)


async def all_of(records: AsyncGenerator[Record, None]) -> list[Record]:
    return [record async for record in records]


def told(place: LocalPlace, *tasks: Task) -> list[list[Record]]:
    """The records of some tasks side by side; the place is closed afterwards."""

    async def main() -> list[list[Record]]:
        try:
            found = [all_of(place.run(number, task)) for number, task in enumerate(tasks, start=1)]
            return await asyncio.gather(*found)
        except NoRightsError as error:
            pytest.skip(f"{error}: {error.advice}")
        finally:
            await place.close()

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (vantage(source="192.0.2.1"), '"192.0.2.1" is not an address of this host'),
        (vantage(source="localhost"), '"localhost" is not an address of this host'),
        (vantage(source=""), '"" is not an address of this host'),
        (vantage(interface="nosuch0"), '"nosuch0" is not an interface of this host'),
    ],
)
def test_what_it_cannot_send_from_is_refused_when_it_is_opened(made: Vantage, words: str) -> None:
    with pytest.raises(UsageError, match=words) as found:
        VANTAGES["local"](made, {})
    assert found.value.advice


def test_every_task_ends_with_done_and_its_own_records() -> None:
    found = told(LocalPlace(vantage(), {}), lookup("127.0.0.1"), ping(HOME[4]), ping(HOME[6], family=6))
    assert found[0][0] == Resolved(task=1, at=found[0][0].at, addresses=("127.0.0.1",))  # type: ignore[union-attr]
    assert [[type(record) for record in records[-1:]] for records in found] == [[Done]] * 3
    for number in (1, 2):
        probes = [record for record in found[number] if isinstance(record, Probe)]
        assert [(probe.task, probe.seq, probe.outcome) for probe in probes] == [
            (number + 1, seq, "replied") for seq in (-1, 0, 1, 2)
        ]


def test_twenty_tasks_share_one_channel_and_all_is_given_back() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    place = LocalPlace(vantage(), {})
    found = told(place, *(ping(f"127.0.0.{number}") for number in range(1, 21)))
    assert [len([one for one in records if isinstance(one, Probe)]) for records in found] == [4] * 20
    assert list(place._channels) == [("icmp", 4)]
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_source_reaches_addresses_of_its_own_family_only() -> None:
    place = LocalPlace(vantage(source="127.0.0.1"), {})
    found = told(place, lookup("localhost"), lookup("::1"), lookup("::1", 6))
    resolved = [records[0] for records in found]
    assert [isinstance(one, Resolved) and one.addresses for one in resolved] == [("127.0.0.1",), (), ("::1",)]


def test_a_protocol_of_a_later_version_is_refused_in_words() -> None:
    with pytest.raises(UsageError, match="UDP probes are not part of this version"):
        told(LocalPlace(vantage(), {}), ping(HOME[4], protocol="udp", port=9))


def test_a_task_that_is_given_up_stops_sending() -> None:
    async def main() -> int:
        place = LocalPlace(vantage(), {})
        long = PingTask(
            target="home", vantage="here", reason="asked", address=HOME[4], family=4, protocol="icmp", count=10**6,
            interval_ns=MS, threshold_ns=SECOND,
        )  # fmt: skip
        try:
            records = place.run(1, long)
            first = [await anext(records) for _ in range(5)]
            await records.aclose()
            await asyncio.sleep(0.05)
            assert place.prober._works == {}
            return len(first)
        except NoRightsError as error:
            pytest.skip(f"{error}: {error.advice}")
        finally:
            await place.close()

    assert asyncio.run(main()) == 5
