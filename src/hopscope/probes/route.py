"""How this machine would send to an address: interface, gateway, neighbour, as its own system says."""

from collections.abc import AsyncGenerator

from hopscope.model.plan import RouteTask
from hopscope.model.record import Done, Record, Routed
from hopscope.probes.ports import Ports


async def run(task_id: int, task: RouteTask, ports: Ports) -> AsyncGenerator[Record, None]:
    """Yield one `Routed`."""
    yield Routed(task=task_id, at=ports.clock.now())
    yield Done(task=task_id, at=ports.clock.now())
