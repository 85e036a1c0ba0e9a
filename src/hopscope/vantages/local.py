"""This machine as a vantage: one clock, one probe thread, one channel for each protocol and family."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import assert_never

from msgspec.structs import replace

from hopscope.errors import UsageError
from hopscope.model.plan import (
    Family,
    HttpTask,
    PingTask,
    Protocol,
    ResolveTask,
    RouteTask,
    StreamTask,
    Task,
    TraceTask,
    Vantage,
    family_of,
)
from hopscope.model.record import Done, Exchange, Record, Streamed
from hopscope.net.clock import SystemClock
from hopscope.net.ports import Channel, Clock
from hopscope.net.prober import Prober
from hopscope.net.resolve import interfaces, is_ours
from hopscope.probes import ping, resolve, route, trace


class LocalPlace:
    """Runs tasks here; see `vantages.Place` and `probes.ports.Ports`."""

    def __init__(self, vantage: Vantage, environ: Mapping[str, str]) -> None:
        """Raises UsageError for a source or an interface that this host does not have."""
        check(vantage)
        self.name = vantage.name
        self.environ = environ
        self.clock: Clock = SystemClock()
        self.prober = Prober(self.clock)
        self._vantage = vantage
        self._channels: dict[tuple[Protocol, Family], Channel] = {}

    def channel(self, protocol: Protocol, family: Family) -> Channel:
        """The one channel of a protocol and family, opened when first asked for. Raises NoRightsError, UsageError."""
        channel = self._channels.get((protocol, family))
        if channel is None:
            channel = self._open(protocol, family)
            self._channels[protocol, family] = channel
        return channel

    def _open(self, protocol: Protocol, family: Family) -> Channel:
        source, interface = self._vantage.source, self._vantage.interface
        match protocol:
            case "tcp":
                from hopscope.net.tcp import TcpChannel

                return TcpChannel(self.clock, family, source=source, interface=interface)
            case "icmp":
                from hopscope.net.icmp import IcmpChannel

                return IcmpChannel(self.clock, family, source=source, interface=interface)
            case "udp":
                message = "UDP probes are not part of this version"
                raise UsageError(message, "ask by icmp or tcp")

    async def run(self, task_id: int, task: Task) -> AsyncGenerator[Record, None]:
        """Run one task with the probe of its kind."""
        match task:
            case ResolveTask():
                records: AsyncGenerator[Record, None] = resolve.run(task_id, self._of_our_family(task), self)
            case RouteTask():
                source, interface = self._vantage.source, self._vantage.interface
                records = route.run(task_id, task, self.clock, source=source, interface=interface)
            case PingTask():
                records = ping.run(task_id, task, self)
            case TraceTask():
                records = trace.run(task_id, task, self)
            case HttpTask():
                records = self._requests(task_id, task)
            case StreamTask():
                records = self._streams(task_id, task)
            case _:
                assert_never(task)
        async with aclosing(records):
            async for record in records:
                yield record

    def _of_our_family(self, task: ResolveTask) -> ResolveTask:
        """A source address reaches addresses of its own family only."""
        source = self._vantage.source
        return task if source is None or task.family else replace(task, family=family_of(source))

    async def _requests(self, task_id: int, task: HttpTask) -> AsyncGenerator[Record, None]:
        """Requests, and how well we timed them."""
        from hopscope.analysis import split
        from hopscope.probes import http

        ports = http.HttpPorts(clock=self.clock, environ=self.environ, read_file=self.read_file)
        exchanges: list[Exchange] = []
        async with aclosing(http.run(task_id, task, ports)) as records:
            async for record in records:
                if isinstance(record, Exchange):
                    exchanges.append(record)
                yield record
        yield Done(task=task_id, at=self.clock.now(), check=split.self_check(exchanges))

    async def _streams(self, task_id: int, task: StreamTask) -> AsyncGenerator[Record, None]:
        """Streamed completions, and how well we timed them."""
        from hopscope.analysis import stream as analysis
        from hopscope.probes import http, stream

        ports = http.HttpPorts(clock=self.clock, environ=self.environ, read_file=self.read_file)
        streams: list[Streamed] = []
        async with aclosing(stream.run(task_id, task, ports)) as records:
            async for record in records:
                if isinstance(record, Streamed):
                    streams.append(record)
                yield record
        yield Done(task=task_id, at=self.clock.now(), check=analysis.self_check(streams))

    def read_file(self, path: str) -> bytes:
        """A file that a task names. Raises OSError."""
        return Path(path).read_bytes()

    async def close(self) -> None:
        """End the probe thread, close the channels."""
        self.prober.close()
        for channel in self._channels.values():
            channel.close()


def check(vantage: Vantage) -> None:
    """See whether this host has what a vantage wants to send from. Raises UsageError."""
    if vantage.source is not None and not is_ours(vantage.source):
        message = f'"{vantage.source}" is not an address of this host'
        raise UsageError(message, "give one that `ip addr` shows, or leave it out")
    known = interfaces()
    if vantage.interface is not None and vantage.interface not in known:
        message = f'"{vantage.interface}" is not an interface of this host'
        raise UsageError(message, f"there are {', '.join(known)}")
