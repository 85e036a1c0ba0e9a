"""The addresses of a host, once a run and vantage (method 2.11); a lookup that hangs is told, not waited for."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

from hopscope.model.limits import SECOND
from hopscope.model.plan import ResolveTask
from hopscope.model.record import Done, Record, Resolved
from hopscope.net import resolve
from hopscope.probes.ports import Ports

SETTINGS = Path("/etc/resolv.conf")
MOST_RESOLVERS = 3
"""As many as resolv.conf(5) lets the system ask."""
MOST_BYTES = 65_536


async def run(task_id: int, task: ResolveTask, ports: Ports) -> AsyncGenerator[Record, None]:
    """Yield one `Resolved`: routable addresses first, each family in the resolver's order."""
    before = ports.clock.now()
    try:
        async with asyncio.timeout(None if task.timeout_ns is None else task.timeout_ns / SECOND):
            answers = await resolve.lookup(task.host, task.family, ports.clock)
    except TimeoutError:
        took = ports.clock.now() - before
        answers = resolve.Answers((), took, f"no answer within {(task.timeout_ns or took) / SECOND:.3g} s")
    yield Resolved(
        task=task_id,
        at=ports.clock.now(),
        addresses=resolve.reachable_first(answers.addresses),
        took_ns=answers.took_ns,
        error=answers.error,
        resolvers=() if answers.took_ns is None else _resolvers(),
    )
    yield Done(task=task_id, at=ports.clock.now())


def _resolvers() -> tuple[str, ...]:
    """The name servers that this machine is set to ask; none where that cannot be read."""
    try:
        with SETTINGS.open("rb") as file:
            lines = file.read(MOST_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return ()
    words = (line.split() for line in lines)
    found = (line[1] for line in words if len(line) > 1 and line[0] == "nameserver")
    return tuple(name for name in found if resolve.literal(name) is not None)[:MOST_RESOLVERS]
