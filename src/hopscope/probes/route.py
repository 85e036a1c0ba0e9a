"""How this machine would send to an address: interface, gateway, neighbour, as its own system says.

The system answers from its own tables and sends nothing, so it is asked in the event loop.
"""

from collections.abc import AsyncGenerator

from hopscope.model.plan import RouteTask
from hopscope.model.record import Done, Record
from hopscope.net import route
from hopscope.net.ports import Clock


async def run(
    task_id: int, task: RouteTask, clock: Clock, *, source: str | None = None, interface: str | None = None
) -> AsyncGenerator[Record, None]:
    """Yield one `Routed`; `source` and `interface` are what the vantage sends from, where it was told."""
    yield route.ask(task_id, clock.now(), task.address, task.family, source=source, interface=interface)
    yield Done(task=task_id, at=clock.now())
