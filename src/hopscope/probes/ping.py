"""A series to one address, over ICMP echo or TCP SYN."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from hopscope.engine.series import Series
from hopscope.model.plan import PingTask
from hopscope.model.record import Record
from hopscope.net.ports import Job, Packet
from hopscope.probes.drive import drive
from hopscope.probes.ports import Ports

LATE_WINDOW_NS = 3_000_000_000
"""How long past the threshold a reply is still recognised as late."""


async def run(task_id: int, task: PingTask, ports: Ports) -> AsyncGenerator[Record, None]:
    """Yield the singletons of the series. Raises NoRightsError when the protocol needs more than we have."""
    packet = Packet(
        address=task.address,
        family=task.family,
        port=task.port,
        size=task.size,
        dscp=task.dscp,
        ttl=task.ttl or 0,
        horizon_ns=task.threshold_ns + LATE_WINDOW_NS,
    )
    channel = ports.channel(task.protocol, task.family)
    job = Job(task_id, Series(task_id, task, ports.clock.now()), channel, packet)
    async with aclosing(drive(job, ports)) as records:
        async for record in records:
            yield record
