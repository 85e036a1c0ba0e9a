"""`make bench`: figures of hopscope beside its peers, in one run on one machine, as ratios; the table is committed.

The rule: nothing is compared across runs, since machines are noisy. Truth for a delay is a capture on the client's own
interface of the very probes the tool sent. Needs root; fping, iputils-ping and tcpdump from Debian.
"""

import argparse
import json
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import NamedTuple

import whole
from whole import Figure

from hopscope import tape
from hopscope.analysis.delay import quantile
from hopscope.lab.box import Lab
from hopscope.lab.topology import Client, Host, Impairment, Link, Router, Topology
from hopscope.model.limits import MS
from hopscope.model.plan import PingTask, Plan, Target, Vantage
from hopscope.model.record import TAPE_NUMBER, Begin, Done, End, Planned, Probe, Run

HERE = Path(__file__).parent
TABLE = HERE / "RESULTS.md"
COUNT, INTERVAL_MS = 200, 10
ROUNDS = 5
SETTLE_S = 1.3  # for a capture to begin, and to have written what it saw
PEERS = {"fping": "fping", "ping": "iputils-ping", "tcpdump": "tcpdump"}
PCAP_HEADER, PACKET_HEADER = struct.Struct("=IHHiIII"), struct.Struct("=IIII")
ETHERNET, ECHO_REQUEST, ECHO_REPLY = 14, 8, 0
MILLION = 1_000_000


class Tool(NamedTuple):
    """A program that pings, and how its delays are read: ms in the order of sending, `None` for a loss."""

    name: str
    argv: Callable[[str], list[str]]
    read: Callable[[str], list[float | None]]


def hopscope_delays(output: str) -> list[float | None]:
    """Delays of our own JSON, the warm-up left out."""
    samples = json.loads(output)["results"][0]["samples"]
    return [sample["rtt_ms"] for sample in samples if not sample["warmup"]]


def ping_delays(output: str) -> list[float | None]:
    """Delays that iputils printed, by sequence."""
    found = {int(seq) - 1: float(ms) for seq, ms in re.findall(r"icmp_seq=(\d+) .*time=([\d.]+) ms", output)}
    return [found.get(seq) for seq in range(COUNT)]


def fping_delays(output: str) -> list[float | None]:
    """Delays that fping printed, by sequence."""
    found = {int(seq): float(ms) for seq, ms in re.findall(r"\[(\d+)\], \d+ bytes, ([\d.]+) ms", output)}
    return [found.get(seq) for seq in range(COUNT)]


TOOLS = (
    Tool(
        "hopscope",
        lambda host: [
            *(sys.executable, "-m", "hopscope", "ping", host, "-c", str(COUNT)),
            *("-i", f"{INTERVAL_MS}ms", "--json"),
        ],
        hopscope_delays,
    ),
    Tool("iputils ping", lambda host: ["ping", "-c", str(COUNT), "-i", str(INTERVAL_MS / 1000), host], ping_delays),
    Tool("fping", lambda host: ["fping", "-c", str(COUNT), "-p", str(INTERVAL_MS), "-t", "2000", host], fping_delays),
)


def true_delays(capture: bytes) -> list[float | None]:
    """Delays in ms from a capture with nanosecond stamps: echo requests in order, each with its reply."""
    sent: dict[tuple[int, int], int] = {}
    back: dict[tuple[int, int], int] = {}
    at = PCAP_HEADER.size
    while at + PACKET_HEADER.size <= len(capture):
        seconds, nanos, length, _ = PACKET_HEADER.unpack_from(capture, at)
        packet = capture[at + PACKET_HEADER.size : at + PACKET_HEADER.size + length]
        at += PACKET_HEADER.size + length
        icmp = packet[ETHERNET + (packet[ETHERNET] & 15) * 4 :]
        key = struct.unpack_from("!HH", icmp, 4)
        where = sent if icmp[0] == ECHO_REQUEST else back if icmp[0] == ECHO_REPLY else {}
        where.setdefault(key, seconds * 1_000_000_000 + nanos)
    return [(back[key] - instant) / 1e6 if key in back else None for key, instant in sent.items()]


def errors_us(lab: Lab, tool: Tool, host: str) -> list[float]:
    """What a tool reported against the wire, µs, probe by probe."""
    capture = lab.folder / f"{tool.name.replace(' ', '-')}.pcap"
    argv = ["tcpdump", "-i", "eth0", "-w", str(capture), "-U", "-Z", "root", "-B", "8192"]
    tcpdump = lab.start("client", [*argv, "--time-stamp-precision=nano", "icmp"], stderr=subprocess.DEVNULL)
    while not capture.exists() or not capture.stat().st_size:
        time.sleep(0.02)
    time.sleep(SETTLE_S)
    output = lab.exec("client", tool.argv(host))
    time.sleep(SETTLE_S)
    tcpdump.terminate()
    tcpdump.wait()
    reported = tool.read(output.stdout)
    truth = true_delays(capture.read_bytes())[-len(reported) :]
    pairs = zip(reported, truth, strict=True)
    return [abs(said - true) * 1000 for said, true in pairs if said is not None and true is not None]


def accuracy(title: str, link: Impairment) -> list[Figure]:
    """Error of each pinging tool over one kind of path, several rounds, the tools taking turns."""
    topology = Topology(
        nodes=(Client(name="client"), Router(name="router"), Host(name="host")),
        links=(Link(a="client", b="router"), Link(a="router", b="host", forward=link, back=link)),
    )
    errors: dict[str, list[float]] = {tool.name: [] for tool in TOOLS}
    with Lab(topology, seed=1) as lab:
        for _ in range(ROUNDS):
            for tool in TOOLS:
                errors[tool.name] += errors_us(lab, tool, lab.address("host"))
    p50 = {name: quantile(sorted(all_), 0.50) for name, all_ in errors.items()}
    p95 = {name: quantile(sorted(all_), 0.95) for name, all_ in errors.items()}
    beside = [name for name in p50 if name != "hopscope"]
    return [
        (
            f"RTT error over {title}, p50",
            f"{p50['hopscope']:.1f} µs",
            ", ".join(f"{name} {p50[name]:.1f} µs" for name in beside),
            verdict(p50["hopscope"], p50["fping"], 0.5, "fping"),
        ),
        (
            f"RTT error over {title}, p95",
            f"{p95['hopscope']:.1f} µs",
            ", ".join(f"{name} {p95[name]:.1f} µs" for name in beside),
            verdict(p95["hopscope"], p95["fping"], 1.0, "fping"),
        ),
    ]


def verdict(ours: float, theirs: float, allowed: float, peer: str) -> str:
    """The ratio to a peer against the one allowed."""
    return f"{ours / theirs:.2f} × {peer}, allowed {allowed:g}: {'met' if ours <= allowed * theirs else 'MISSED'}"


def wall_s(argv: list[str]) -> float:
    """Median wall time of a command, s."""
    times = []
    # Where bytecode may not be kept, every start would compile the whole program.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(argv, check=False, capture_output=True, env=env)
    for _ in range(11):
        begun = time.perf_counter()
        subprocess.run(argv, check=False, capture_output=True, env=env)
        times.append(time.perf_counter() - begun)
    return median(times)


def start_up() -> list[Figure]:
    """How long a command takes that does next to nothing, beside Python's own start."""
    python = wall_s([sys.executable, "-c", "pass"])
    rows = (("--help", ["--help"], 10.0), ("ping -c 1 127.0.0.1", ["ping", "-c", "1", "127.0.0.1"], 20.0))
    return [
        (
            f"hopscope {name}",
            f"{wall * 1000:.0f} ms",
            f"python -c pass {python * 1000:.0f} ms",
            verdict(wall, python, allowed, "python"),
        )
        for name, argv, allowed in rows
        for wall in [wall_s([sys.executable, "-m", "hopscope", *argv])]
    ]


def big_tape(path: Path) -> None:
    """A tape of a million records, as a long series would leave it."""
    target = Target(name="long", host="192.0.2.1", probes=("ping",), count=MILLION)
    plan = Plan(
        command="run", name="long", targets=(target,), vantages=(Vantage(name="here", kind="local"),), quorum=1,
        deadline_ns=MS,
    )  # fmt: skip
    task = PingTask(
        target="long", vantage="here", reason="asked", address="192.0.2.1", family=4, protocol="icmp", count=MILLION,
        interval_ns=MS, threshold_ns=2000 * MS, flows=4,
    )  # fmt: skip
    start = 1_800_000_000_000_000_000
    with path.open("wb") as out:
        out.write(tape.dump(Run(tape=TAPE_NUMBER, tool_version="0", command="run", at=start)))
        out.write(tape.dump(Planned(plan=plan)))
        out.write(tape.dump(Begin(id=1, at=start, task=task)))
        for seq in range(MILLION):
            lost = seq % 97 == 0
            probe = Probe(
                task=1, seq=seq, at=start + seq * MS, outcome="lost" if lost else "replied", flow=seq % 4,
                rtt_ns=None if lost else 30 * MS + seq * 7919 % 1_000_003, clock=None if lost else "kernel",
                kind=None if lost else "echo-reply", reply_ttl=None if lost else 60,
            )  # fmt: skip
            out.write(tape.dump(probe))
        out.write(tape.dump(Done(task=1, at=start + MILLION * MS)))
        out.write(tape.dump(End(at=start + MILLION * MS)))


def million() -> list[Figure]:
    """A tape of 1,000,000 records to its three reports: wall time and the most memory it held."""
    with tempfile.TemporaryDirectory() as folder:
        big_tape(Path(folder) / "run.jsonl")
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-m", "hopscope", "report", folder], check=False, capture_output=True)
        wall = time.perf_counter() - begun
    held = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    met = "met" if wall <= 15 and held <= 500 else "MISSED"
    return [("tape of 1,000,000 records → report", f"{wall:.1f} s, {held:.0f} MB", "", f"allowed 15 s, 500 MB: {met}")]


PARTS: dict[str, Callable[[], list[Figure]]] = {
    "million": million,
    "start": start_up,
    "veth": lambda: accuracy("one veth and a router", Impairment()),
    "path": lambda: accuracy("a 30 ms path", Impairment(delay_ms=15.0)),
    "places": whole.ten_places,
    "check": whole.check_beside_run,
    "token": whole.first_token,
}


def main() -> int:
    """Measure, write the table, say what was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="only these")
    chosen = parser.parse_args().parts or list(PARTS)
    missing = [package for program, package in PEERS.items() if shutil.which(program) is None]
    if missing:
        print(f"bench needs: apt-get install {' '.join(missing)}", file=sys.stderr)
        return 1
    figures = [figure for part in chosen for figure in PARTS[part]()]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], check=False, capture_output=True, text=True)
    head = f"Measured {datetime.now(UTC):%Y-%m-%d} at commit {commit.stdout.strip()}, all rows in one run on 2 cores."
    rows = ["| figure | hopscope | beside | target |", "|---|---|---|---|"]
    rows += [f"| {' | '.join(figure)} |" for figure in figures]
    text = "\n".join(["# Figures", "", head, "", *rows, ""])
    print(text)
    if len(chosen) == len(PARTS):
        TABLE.write_text(text, encoding="utf-8")
    return 1 if any("MISSED" in figure[-1] for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
