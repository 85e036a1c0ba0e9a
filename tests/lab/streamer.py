"""Runs the stream probe once: `python streamer.py TASK` in a node of a lab, TASK being a StreamTask as JSON.

Prints its records, JSON lines.
"""

import asyncio
import os
import sys
from pathlib import Path

import msgspec

from hopscope.model.plan import StreamTask
from hopscope.net.clock import SystemClock
from hopscope.probes.http import HttpPorts
from hopscope.probes.stream import run


async def main(task: StreamTask) -> None:
    ports = HttpPorts(clock=SystemClock(), environ=os.environ, read_file=lambda path: Path(path).read_bytes())
    async for record in run(0, task, ports):
        print(msgspec.json.encode(record).decode())  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(msgspec.json.decode(sys.argv[1], type=StreamTask)))
