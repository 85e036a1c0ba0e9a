"""A tiny pinger of the tests' own: `python prober.py DESTINATION COUNT INTERVAL_MS TTL` in a node of a lab.

Raw socket, kernel stamp on the way in, waits half a second for the last answers, prints a JSON list of what became of
each probe. Standard library only, and nothing of hopscope: it judges hopscope's lab.
"""

import json
import os
import select
import socket
import struct
import sys
import time
from typing import TypedDict

ECHO_REPLY, ECHO, TIME_EXCEEDED, UNREACHABLE = 0, 8, 11, 3
IDENTITY = os.getpid() & 0xFFFF  # raw sockets of one node hear each other's answers
SO_TIMESTAMPNS = 35
LAST_WAIT_S = 0.5


class Fate(TypedDict):
    """What became of one probe: the ICMP type and source of the answer and the RTT, or None thrice."""

    kind: int | None
    source: str | None
    rtt_ms: float | None
    at_ms: float


def checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total >> 16) + (total & 0xFFFF)
    return ~total & 0xFFFF


def echo(sequence: int) -> bytes:
    bare = struct.pack("!BBHHH", ECHO, 0, 0, IDENTITY, sequence) + bytes(32)
    return bare[:2] + struct.pack("!H", checksum(bare)) + bare[4:]


def ours(packet: bytes) -> tuple[int, int] | None:
    """The ICMP type and the sequence it answers, if it answers us."""
    icmp = packet[20:]
    kind = icmp[0]
    about = icmp if kind == ECHO_REPLY else icmp[28:]
    if kind not in (ECHO_REPLY, TIME_EXCEEDED, UNREACHABLE) or len(about) < 8:
        return None
    identity, sequence = struct.unpack("!HH", about[4:8])
    return (kind, sequence) if identity == IDENTITY else None


def probe(destination: str, count: int, interval_s: float, ttl: int) -> list[Fate]:
    fates: list[Fate] = []
    sent_ns: list[int] = []
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    raw.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    raw.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, ttl)
    start = time.monotonic()
    for sequence in range(count + 1):
        due = start + sequence * interval_s + (LAST_WAIT_S if sequence == count else 0)
        while (left := due - time.monotonic()) > 0:
            if select.select([raw], (), (), left)[0]:
                note(raw, fates, sent_ns)
        if sequence < count:
            at_ms = (time.monotonic() - start) * 1e3
            fates.append({"kind": None, "source": None, "rtt_ms": None, "at_ms": at_ms})
            sent_ns.append(time.time_ns())
            raw.sendto(echo(sequence), (destination, 0))
    return fates


def note(raw: socket.socket, fates: list[Fate], sent_ns: list[int]) -> None:
    packet, notes, _, source = raw.recvmsg(2048, 64)
    found = ours(packet)
    if found is None:
        return
    kind, sequence = found
    seconds, nanos = struct.unpack("@qq", notes[0][2])
    rtt_ms = (seconds * 1_000_000_000 + nanos - sent_ns[sequence]) / 1e6
    fates[sequence].update({"kind": kind, "source": source[0], "rtt_ms": rtt_ms})


if __name__ == "__main__":
    print(json.dumps(probe(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]) / 1e3, int(sys.argv[4]))))  # noqa: T201
