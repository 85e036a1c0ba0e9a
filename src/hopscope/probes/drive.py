"""An engine in the probe thread, seen from the event loop: records as they come, and a stop when nobody listens."""

import asyncio
from collections.abc import AsyncGenerator

from hopscope.model.record import Done, Record, SelfCheck
from hopscope.net.ports import Job
from hopscope.probes.ports import Ports

Batch = tuple[list[Record], SelfCheck | Exception | None]


async def drive(job: Job, ports: Ports) -> AsyncGenerator[Record, None]:
    """Run a job to its end and yield its records; the last is `Done`. Closing the iterator stops the job.

    Raises what broke the job in the probe thread.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[Batch] = asyncio.Queue()

    def deliver(records: list[Record], end: SelfCheck | Exception | None) -> None:
        try:
            loop.call_soon_threadsafe(queue.put_nowait, (records, end))
        except RuntimeError:
            return  # the loop has ended, and with it whoever wanted these

    ports.prober.add(job, deliver)
    over = False
    try:
        while not over:
            records, end = await queue.get()
            for record in records:
                yield record
            over = end is not None
            if isinstance(end, Exception):
                raise end
            if end is not None:
                yield Done(task=job.task, at=ports.clock.now(), check=end)
    finally:
        if not over:
            ports.prober.drop(job.task)
