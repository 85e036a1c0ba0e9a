"""The addresses of a host, once a run and vantage (method 2.11)."""

from collections.abc import AsyncGenerator

from hopscope.model.plan import ResolveTask
from hopscope.model.record import Done, Record, Resolved
from hopscope.net import resolve
from hopscope.probes.ports import Ports


async def run(task_id: int, task: ResolveTask, ports: Ports) -> AsyncGenerator[Record, None]:
    """Yield one `Resolved`: routable addresses first, each family in the resolver's order."""
    answers = await resolve.lookup(task.host, task.family, ports.clock)
    yield Resolved(
        task=task_id,
        at=ports.clock.now(),
        addresses=resolve.reachable_first(answers.addresses),
        took_ns=answers.took_ns,
        error=answers.error,
    )
    yield Done(task=task_id, at=ports.clock.now())
