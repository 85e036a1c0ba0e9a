"""An engine in the probe thread, seen from the event loop: records as they come, and a stop when nobody listens."""

import asyncio
from collections.abc import AsyncGenerator

from hopscope.model.record import Done, Record, SelfCheck
from hopscope.net.ports import Job
from hopscope.probes.ports import Ports

Batch = tuple[list[Record], SelfCheck | None]


async def drive(job: Job, ports: Ports) -> AsyncGenerator[Record, None]:
    """Run a job to its end and yield its records; the last is `Done`. Closing the iterator stops the job."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[Batch] = asyncio.Queue()

    def deliver(records: list[Record], check: SelfCheck | None) -> None:
        try:
            loop.call_soon_threadsafe(queue.put_nowait, (records, check))
        except RuntimeError:
            return  # the loop has ended, and with it whoever wanted these

    ports.prober.add(job, deliver)
    over = False
    try:
        while not over:
            records, check = await queue.get()
            for record in records:
                yield record
            if check is not None:
                over = True
                yield Done(task=job.task, at=ports.clock.now(), check=check)
    finally:
        if not over:
            ports.prober.drop(job.task)
