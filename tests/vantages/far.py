"""What tests of vantages elsewhere share: places whose agent is a process here, tasks, and what became of them."""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

from hopscope.errors import VantageDownError
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import HttpTask, PingTask, ResolveTask, Task, Vantage
from hopscope.model.record import Record
from hopscope.vantages import Place
from hopscope.vantages.exec import open_exec
from hopscope.vantages.link import Pace
from hopscope.vantages.pipe import PipePlace

SOURCE = Path(__file__).parents[2] / "src"
HERE = ["env", f"PYTHONPATH={SOURCE}"]
HOPSCOPE = [sys.executable, "-m", "hopscope"]
PATIENCE_S = 30.0

# A fake agent that says hello as the real one does; what follows is the test's own.
HELLO = """
import json, sys, time
def say(**line): print(json.dumps(line), flush=True)
def here(): say(record="agent", nonce=hello["nonce"], at=time.time_ns())
def order(): return json.loads(sys.stdin.readline())
hello = order()
here()
say(record="run", tape=TAPE, tool_version="9.9.9", command="agent", at=time.time_ns())
order()
here()
"""


def hello(tape: int = 1) -> str:
    return HELLO.replace("TAPE", str(tape))


def vantage(
    command: Sequence[str] = HERE, *, hopscope: Sequence[str] = HOPSCOPE, deadline_s: float = PATIENCE_S
) -> Vantage:
    return Vantage(
        name="far",
        kind="exec",
        deadline_ns=int(deadline_s * SECOND),
        settings={"command": list(command), "hopscope": list(hopscope)},
    )


def here(environ: Mapping[str, str] | None = None) -> PipePlace:
    """A real agent."""
    return open_exec(vantage(), environ or {})


def fake(script: str, *, deadline_s: float = PATIENCE_S, pace: Pace | None = None) -> PipePlace:
    """An agent that is a few lines of Python."""
    place = open_exec(vantage([sys.executable, "-c", script], deadline_s=deadline_s), {})
    if pace is not None:
        place._pace = pace
    return place


def ping(address: str = "127.0.0.1", *, count: int = 5, interval_ms: float = 5) -> PingTask:
    return PingTask(
        target="t", vantage="far", reason="asked", address=address, family=4, protocol="icmp",
        count=count, interval_ns=int(interval_ms * MS), threshold_ns=500 * MS, warmup=False,
    )  # fmt: skip


def http(port: int, address: str = "127.0.0.1", **more: str) -> HttpTask:
    return HttpTask(
        target="t", vantage="far", reason="asked", address=address, family=4, port=port,
        url=f"{more.get('scheme', 'http')}://{address}:{port}/", cold=1, hot=2, timeout_ns=2 * SECOND,
        api_key_env=more.get("api_key_env"), ca_file=more.get("ca_file"), body_file=more.get("body_file"),
        method="POST" if "body_file" in more else "GET",
    )  # fmt: skip


def resolve(host: str = "localhost") -> ResolveTask:
    return ResolveTask(target="t", vantage="far", reason="asked", host=host, family=4)


async def records(place: Place, task_id: int, task: Task) -> list[Record]:
    async with aclosing(place.run(task_id, task)) as found:
        return [record async for record in found]


def collect(make: Callable[[], Place], *tasks: Task) -> list[list[Record]]:
    """The records of tasks that run side by side, numbered from 7."""

    async def main() -> list[list[Record]]:
        place = make()
        try:
            return await asyncio.gather(*(records(place, 7 + number, task) for number, task in enumerate(tasks)))
        finally:
            await place.close()

    return asyncio.run(main())


def down(make: Callable[[], Place], task: Task | None = None) -> VantageDownError:
    """How a vantage failed."""
    try:
        collect(make, task or ping())
    except VantageDownError as error:
        return error
    message = "the vantage did not fail"
    raise AssertionError(message)
