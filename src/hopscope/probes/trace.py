"""A path to one address, over ICMP echo or TCP SYN."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from hopscope.engine.trace import Trace
from hopscope.model.plan import TraceTask
from hopscope.model.record import Record
from hopscope.net.ports import Job, Packet
from hopscope.probes.drive import drive
from hopscope.probes.ping import LATE_WINDOW_NS
from hopscope.probes.ports import Ports


async def run(task_id: int, task: TraceTask, ports: Ports) -> AsyncGenerator[Record, None]:
    """Yield the singletons of the trace. Raises NoRightsError when the protocol needs more than we have."""
    packet = Packet(
        address=task.address,
        family=task.family,
        port=task.port,
        size=task.size,
        dscp=0,
        ttl=0,
        horizon_ns=task.threshold_ns + LATE_WINDOW_NS,
    )
    channel = ports.channel(task.protocol, task.family)
    job = Job(task_id, Trace(task_id, task, ports.clock.now()), channel, packet)
    async with aclosing(drive(job, ports)) as records:
        async for record in records:
            yield record
