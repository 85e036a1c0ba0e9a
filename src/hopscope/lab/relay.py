"""Emulated links: one process that holds both ends of every relayed link of a lab and passes frames on in due time.

Runs as `python -m hopscope.lab.relay` in the lab's middle namespace: one packet socket per end, one heap of frames by
due time, one loop. The rule: a frame is due at the kernel's stamp of its arrival plus what the link asks for, so being
woken late does not add up; sleeping ends a little before the due time and the rest is spent looking, which is what
holds the noise down at little cost. Every direction draws from its own seeded generator, twice a frame whatever the
impairment, so that one seed loses the same frames again.

Orders come as JSON lines on standard input: first a Setup, then Change and Ask, each answered by a line of Counts.
The end of the input is the owner's death, also by kill -9: the relay then ends the lab and itself.

Noise, above the configured delay and what the same path adds as plain veth, RTT p50 / p95 of 300 pings at 100/s in a
VM with two CPUs: one 30 ms link 0.02-0.1 / 0.1-0.3 ms; seven links of 4 ms each 0.05-0.1 / 0.2-0.3 ms, for 10 % of a
CPU. A relayed link that asks for nothing adds 0.3 ms, since a wake-up there has no delay to hide in. Without root there
is no real-time priority: a busy machine then adds milliseconds.
"""

import array
import fcntl
import gc
import heapq
import os
import random
import select
import signal
import socket
import struct
import time
from contextlib import suppress
from itertools import count
from pathlib import Path

import msgspec

from hopscope.lab.namespaces import sweep_lab
from hopscope.lab.orders import Ask, Change, Counts, Setup
from hopscope.lab.topology import Impairment

LOOK_NS = 60_000  # how long before a due time sleeping ends: a wake-up here is 20-60 µs late
MAX_LEAD_NS = 100_000  # how much before its due time a frame may be handed to the kernel
LEAD_STEP_NS = 500
BURST = 64  # frames taken from one end before the heap gets its turn
FRAME_BYTES = 2048  # more than an Ethernet frame of the lab's 1500-byte links
MAX_AGE_NS = 5_000_000  # an older stamp is a clock step, not a late wake-up
NS_PER_MS = 1_000_000
BITS_PER_MBIT = 1_000_000
STDIN = 0

ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_QDISC_BYPASS = 20
PACKET_IGNORE_OUTGOING = 23
SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35
RECEIVE_BUFFER_BYTES = 4 << 20
STAMP = struct.Struct("@qq")  # struct timespec

SIOCETHTOOL = 0x8946
# linux/ethtool.h: receive and transmit checksums, scatter-gather, TCP segmentation, generic segmentation and receive
OFFLOADS = (0x15, 0x17, 0x19, 0x1F, 0x24, 0x2C)


class Way:
    """One direction of a link: decides when, if ever, a frame is due. Knows no socket and no clock."""

    def __init__(self, impairment: Impairment, seed: str) -> None:
        self._random = random.Random(seed)
        self._free_at = 0
        self._last_due = 0
        self.frames = self.lost = self.overflowed = 0
        self.impair(impairment)

    def impair(self, impairment: Impairment) -> None:
        """Takes a new impairment, from the next frame on."""
        self._impairment = impairment
        self._delay_ns = round(impairment.delay_ms * NS_PER_MS)
        self._jitter_ns = impairment.jitter_ms * NS_PER_MS
        self._queue_ns = impairment.queue_ms * NS_PER_MS
        rate = impairment.rate_mbit
        self._ns_per_byte = None if rate is None else 8e9 / (rate * BITS_PER_MBIT)

    def due(self, arrived_ns: int, size: int) -> int | None:
        """When a frame of `size` bytes leaves, on the clock of `arrived_ns`; None when it is dropped."""
        self.frames += 1
        chance, spread = self._random.random(), self._random.random()
        if chance < self._impairment.loss:
            self.lost += 1
            return None
        if self._ns_per_byte is not None:
            start = max(arrived_ns, self._free_at)
            if start - arrived_ns > self._queue_ns:
                self.overflowed += 1
                return None
            arrived_ns = self._free_at = start + round(size * self._ns_per_byte)
        due = arrived_ns + self._delay_ns + int(spread * self._jitter_ns)
        if not self._impairment.reorder:
            due = self._last_due = max(due, self._last_due)
        return due


class End:
    """One end of a link: where frames of one direction come in, and the socket at which they leave."""

    def __init__(self, way: Way, entrance: socket.socket, leave: socket.socket) -> None:
        self.way = way
        self.entrance = entrance
        self.leave = leave


class Relay:
    """The loop: takes frames in, keeps them until due, sends them out, obeys orders."""

    def __init__(self, setup: Setup, orders: "_Orders") -> None:
        self._ends: dict[int, End] = {}
        self._ways: dict[tuple[int, bool], Way] = {}
        self._heap: list[tuple[int, int, socket.socket, bytes]] = []
        self._number = count()
        self._orders = orders
        self._epoll = select.epoll()
        self._epoll.register(STDIN, select.EPOLLIN)
        for wire in setup.wires:
            a, b = _packet_socket(wire.a), _packet_socket(wire.b)
            for forward, impairment, entrance, leave in ((True, wire.forward, a, b), (False, wire.back, b, a)):
                way = Way(impairment, f"{setup.seed}/{wire.link}/{forward}")
                self._ways[wire.link, forward] = way
                self._ends[entrance.fileno()] = End(way, entrance, leave)
                self._epoll.register(entrance.fileno(), select.EPOLLIN)

    def run(self) -> None:
        """Passes frames on until the orders end."""
        monotonic_ns, heap, lead = time.monotonic_ns, self._heap, 0
        while True:
            now = monotonic_ns()
            while heap and heap[0][0] <= now + lead:
                due, _, leave, frame = heapq.heappop(heap)
                _send(leave, frame)
                before, now = now, monotonic_ns()
                # Follows the median lateness of the middle of a send; a busy moment moves it by one step only.
                late = before + now > 2 * due
                lead = max(0, min(MAX_LEAD_NS, lead + (LEAD_STEP_NS if late else -LEAD_STEP_NS)))
            wait_ns = heap[0][0] - now - lead - LOOK_NS if heap else None
            if wait_ns is None or wait_ns > 0:
                # epoll sleeps whole milliseconds; select on the epoll sleeps microseconds
                select.select([self._epoll], (), (), None if wait_ns is None else wait_ns / 1e9)
            for descriptor, _ in self._epoll.poll(0):
                if descriptor != STDIN:
                    self._take(self._ends[descriptor])
                elif not self._obey():
                    return

    def _take(self, end: End) -> None:
        received = end.entrance.recvmsg
        wall_to_monotonic = time.monotonic_ns() - time.time_ns()
        for _ in range(BURST):
            try:
                frame, notes, _, _ = received(FRAME_BYTES, 64)
            except OSError:  # nothing more, or the link is going away
                return
            now = time.monotonic_ns()
            arrived = now
            for _, kind, data in notes:
                if kind == SO_TIMESTAMPNS:
                    seconds, nanos = STAMP.unpack(data)
                    stamp = seconds * 1_000_000_000 + nanos + wall_to_monotonic
                    arrived = stamp if 0 <= now - stamp <= MAX_AGE_NS else now
            due = end.way.due(arrived, len(frame))
            if due is not None:
                heapq.heappush(self._heap, (due, next(self._number), end.leave, frame))

    def _obey(self) -> bool:
        for line in self._orders.lines():
            order = msgspec.json.decode(line, type=Change | Ask)
            way = self._ways[order.link, order.forward]
            match order:
                case Change(impairment=impairment):
                    way.impair(impairment)
                case Ask():
                    pass
            _answer(Counts(frames=way.frames, lost=way.lost, overflowed=way.overflowed))
        return not self._orders.ended


class _Orders:
    """Whole lines from standard input, read without ever waiting inside a line."""

    def __init__(self) -> None:
        self._rest = b""
        self.ended = False

    def lines(self) -> list[bytes]:
        """The lines complete by now; one read."""
        piece = os.read(STDIN, 1 << 16)
        self.ended = not piece
        *lines, self._rest = (self._rest + piece).split(b"\n")
        return lines

    def first(self) -> bytes | None:
        """The first line, waited for; None when the input ends before it."""
        while not self.ended:
            for line in self.lines():
                return line
        return None


def _packet_socket(interface: str) -> socket.socket:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    end.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    end.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
    end.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    with suppress(OSError):  # for the machine's own root only
        end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
    end.setblocking(False)
    end.bind((interface, ETH_P_ALL))
    return end


def _send(leave: socket.socket, frame: bytes) -> None:
    with suppress(OSError):  # a full buffer or a link that is down loses the frame, as a cable would
        leave.send(frame)


def _answer(value: Counts) -> None:
    os.write(1, msgspec.json.encode(value) + b"\n")


def _strip_offloads(interfaces: tuple[str, ...]) -> None:
    """Without this, UDP and TCP cross the packet sockets with unfinished checksums and vanish at the far end."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for interface in interfaces:
            for command in OFFLOADS:
                value = array.array("I", (command, 0))
                request = struct.pack("16sP", interface.encode(), value.buffer_info()[0])
                with suppress(OSError):  # one that this kernel does not let us change is off already
                    fcntl.ioctl(any_socket, SIOCETHTOOL, request)


def _be_punctual() -> None:
    """Asks for exact timers and, where allowed, to run before whatever is being measured."""
    with suppress(OSError):
        Path("/proc/self/timerslack_ns").write_text("1", encoding="ascii")
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    gc.disable()  # frames make no cycles


def main() -> None:
    """Reads the setup, answers once when frames can flow, relays until the input ends, then ends the lab."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    orders = _Orders()
    first = orders.first()
    if first is None:
        return
    setup = msgspec.json.decode(first, type=Setup)
    try:
        _strip_offloads(setup.interfaces)
        relay = Relay(setup, orders)
        _be_punctual()
        _answer(Counts(frames=0, lost=0, overflowed=0))
        relay.run()
    finally:
        sweep_lab(setup.lab)


if __name__ == "__main__":
    main()
