"""Namespaces of a lab: their names, the wiring and settings inside, and their end, also after a crash.

The rule: a lab touches only what carries its own name, and a sweep only what carries a dead owner's. A name holds the
owner's PID namespace, PID and start time, so a reused PID or another container's process is never taken for the owner.
Nothing but iproute2 is needed: silence, limits and filters are sysctls and routing rules of the namespaces.

As root this works directly; anybody else first runs itself again by `reexec_argv` in a user namespace of its own.
"""

import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal

from hopscope.lab.layout import WIRES, Interface, Layout
from hopscope.lab.topology import Client, Host, LabError, Node, Router

Rights = Literal["root", "userns", "none"]

NETNS_FOLDER = Path("/run/netns")
OWNER_NAME = re.compile(r"hopscope-lab-(\d+)-(\d+)-(\d+)-[0-9a-f]{6}")
CAP_NET_ADMIN, CAP_SYS_ADMIN = 12, 21
PROGRAMS = {"ip": "iproute2", "openssl": "openssl", "unshare": "util-linux"}
START_TIME_FIELD = 19  # of /proc/PID/stat behind the command's name: "starttime", the 22nd in all

ICMP_UNREACHABLE, ICMP_TIME_EXCEEDED, ICMP_PARAMETER = 3, 11, 12
LIMITED_TYPES = 1 << ICMP_UNREACHABLE | 1 << ICMP_TIME_EXCEEDED | 1 << ICMP_PARAMETER
NEVER_MS = 2**31 - 1  # an ICMP error every 24 days, the first after that time
WHOLE_HOST_PER_S = 1_000_000
UNREACHABLE_TABLE = 100
FILTER_RULES, LOCAL_RULE = 100, 200  # places of the routing rules; the kernel's own first one is 0


def rights() -> Rights:
    """What a lab may use here: "root" directly, "userns" after `reexec_argv`, "none" not at all."""
    if _may_here():
        return "root"
    return "userns" if _may_in_user_namespace() else "none"


def reexec_argv(argv: Iterable[str]) -> list[str]:
    """The command that runs `argv` in a user namespace where a lab works directly."""
    script = 'mount -t tmpfs tmpfs /run && { ip link set lo up || true; } && exec "$@"'
    return ["unshare", "-Urnm", "sh", "-c", script, "sh", *argv]


def missing() -> tuple[str, ...]:
    """What must be added before a lab works here, each with the line that adds it; empty when nothing is missing."""
    lines = [
        f"{program}: apt-get install {package}"
        for program, package in PROGRAMS.items()
        if shutil.which(program) is None
    ]
    if not lines and rights() == "none":
        lines.append("rights: run as root, or allow user namespaces (sysctl -w user.max_user_namespaces=10000)")
    return tuple(lines)


def new_name() -> str:
    """A name for a lab of this process, never given twice."""
    pid = os.getpid()
    return f"hopscope-lab-{_pid_namespace()}-{pid}-{_start_time(pid)}-{secrets.token_hex(3)}"


def namespace(lab: str, node: str) -> str:
    """The name under which a node's namespace can be entered by `ip netns exec`."""
    return f"{lab}-{node}"


def create(lab: str, layout: Layout) -> tuple[str, ...]:
    """Makes the namespaces, and every link in the middle one; returns all interfaces there. Raises LabError.

    Offloads are to be taken off these interfaces before `move` hands the nodes theirs.
    """
    names = (WIRES, *layout.interfaces)
    _ip([f"netns add {namespace(lab, name)}" for name in names], "making namespaces")
    _sh(lab, WIRES, ["echo 1 > net/ipv6/conf/default/disable_ipv6"], [])
    interfaces: list[str] = []
    batch: list[str] = []
    for index, link in enumerate(layout.topology.links):
        near, far = _ends(layout, index)
        if link.relayed:
            for end, mac in (("a", near.mac), ("b", far.mac)):
                node_end, wire_end = f"n{index}{end}", wire_interface(index, end)
                batch.append(f"link add {node_end} address {mac} type veth peer name {wire_end}")
                batch.append(f"link set {wire_end} up")
                interfaces += [node_end, wire_end]
        else:
            batch.append(f"link add n{index}a address {near.mac} type veth peer name n{index}b address {far.mac}")
            interfaces += [f"n{index}a", f"n{index}b"]
    _ip(batch, "making links", inside=namespace(lab, WIRES))
    return tuple(interfaces)


def wire_interface(link: int, end: str) -> str:
    """The relay's interface at end "a" or "b" of a link."""
    return f"w{link}{end}"


def move(lab: str, layout: Layout) -> None:
    """Hands each node its interfaces, addresses, routes and settings, all nodes side by side. Raises LabError."""
    batch: list[str] = []
    for index in range(len(layout.topology.links)):
        for end, interface in zip("ab", _ends(layout, index), strict=True):
            batch.append(f"link set n{index}{end} netns {namespace(lab, interface.node)} name {interface.name}")
    _ip(batch, "handing out links", inside=namespace(lab, WIRES))
    started = [
        (node, _start_sh(lab, node.name, _settings(node)), "\n".join(_wiring(layout, node)))
        for node in layout.topology.nodes
    ]
    for node, process, text in started:
        _finish(process, text, f"setting up {node.name}")


def sweep_dead() -> None:
    """Ends every lab whose owner is gone."""
    labs = {
        found.group()
        for folder in (NETNS_FOLDER, Path(tempfile.gettempdir()))
        for name in _entries(folder)
        if (found := OWNER_NAME.match(name)) and _owner_is_dead(found)
    }
    for lab in labs:
        sweep_lab(lab)


def sweep_lab(lab: str) -> None:
    """Ends one lab: its processes (never this one), its namespaces, its folder. Never fails on what is gone."""
    names = [name for name in _entries(NETNS_FOLDER) if name.startswith(f"{lab}-")]
    _kill_inside(names)
    for name in names:
        # One by one: a batch stops at a name that somebody else's sweep was faster with.
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    shutil.rmtree(folder_path(lab), ignore_errors=True)


def folder_path(lab: str) -> Path:
    """Where a lab keeps its files."""
    return Path(tempfile.gettempdir()) / lab


def _may_here() -> bool:
    if os.geteuid() != 0 or not os.access(NETNS_FOLDER.parent, os.W_OK):
        return False
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    capabilities = int(line.split()[1], 16)
    return all(capabilities >> bit & 1 for bit in (CAP_NET_ADMIN, CAP_SYS_ADMIN))


@cache
def _may_in_user_namespace() -> bool:
    # Only trying tells: distributions forbid this in several ways, some only at the mount.
    try:
        return subprocess.run(reexec_argv(["true"]), capture_output=True, check=False, timeout=10).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _pid_namespace() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino


def _start_time(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return int(stat.rpartition(")")[2].split()[START_TIME_FIELD])


def _owner_is_dead(name: re.Match[str]) -> bool:
    pid_namespace, pid, start = (int(name.group(place)) for place in (1, 2, 3))
    if pid_namespace != _pid_namespace():
        return False
    try:
        os.kill(pid, 0)
        return _start_time(pid) != start
    except (ProcessLookupError, FileNotFoundError):
        return True
    except PermissionError:
        return False


def _entries(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except OSError:
        return []


def _kill_inside(names: list[str]) -> None:
    inodes: set[int] = set()
    for name in names:
        with suppress(OSError):
            inodes.add((NETNS_FOLDER / name).stat().st_ino)
    for pid in _processes_inside(inodes):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _processes_inside(inodes: set[int]) -> Iterator[int]:
    for entry in _entries(Path("/proc")):
        if entry.isdigit() and int(entry) != os.getpid():
            with suppress(OSError):
                if Path(f"/proc/{entry}/ns/net").stat().st_ino in inodes:
                    yield int(entry)


def _ends(layout: Layout, link: int) -> tuple[Interface, Interface]:
    ends = {
        interface.node: interface for own in layout.interfaces.values() for interface in own if interface.link == link
    }
    chosen = layout.topology.links[link]
    return ends[chosen.a], ends[chosen.b]


def _settings(node: Node) -> list[str]:
    lines = [
        "echo 1 > net/ipv6/conf/all/disable_ipv6",
        "echo 0 > net/ipv4/conf/all/rp_filter",
        "for each in net/ipv4/conf/eth*/rp_filter; do echo 0 > $each; done",
    ]
    interval_ms, types = 0, 0
    match node:
        case Router(silent=True):
            interval_ms, types = NEVER_MS, 1 << ICMP_TIME_EXCEEDED
        case Router(icmp_limit_per_s=float() | int() as limit):
            interval_ms, types = round(1000 / limit), LIMITED_TYPES
            # a knob of each namespace in newer kernels only; in older ones it stands at 1000/s for the machine
            each = "net/ipv4/icmp_msgs_per_sec"
            lines.append(f"if [ -w {each} ]; then echo {WHOLE_HOST_PER_S} > {each}; fi")
        case Client(datagram_ping=True):
            # a user namespace knows no group but its own 0
            groups = "net/ipv4/ping_group_range"
            lines.append(f"echo '0 2147483647' 2>/dev/null > {groups} || echo '0 0' > {groups}")
        case Host(icmp_deaf=True):
            lines.append("echo 1 > net/ipv4/icmp_echo_ignore_all")
        case Router() | Client() | Host():
            pass
    if isinstance(node, Router):
        lines.append("echo 1 > net/ipv4/ip_forward")
        lines.append("for each in net/ipv4/conf/*/send_redirects; do echo 0 > $each; done")
    lines += [f"echo {interval_ms} > net/ipv4/icmp_ratelimit", f"echo {types} > net/ipv4/icmp_ratemask"]
    return lines


def _wiring(layout: Layout, node: Node) -> Iterator[str]:
    yield "link set lo up"
    interfaces = layout.interfaces[node.name]
    for own in interfaces:
        yield f"addr add {own.address} peer {own.peer_address} dev {own.name}"
        yield f"link set {own.name} up"
        # Fixed neighbours: address resolution would cross the emulated link too, and be delayed and lost there.
        yield f"neigh replace {own.peer_address} lladdr {own.peer_mac} dev {own.name} nud permanent"
    for route in layout.routes(node.name):
        yield f"route add {route.destination} via {route.via} dev {route.interface} src {route.source}"
    match node:
        case Router() if node.blocks:
            yield from _blocking(layout, node)
        case Host():
            yield from _filtering(node, interfaces[0].name)
        case Router() | Client():
            pass


def _blocking(layout: Layout, router: Router) -> Iterator[str]:
    """Routing rules in the place of routes; what is for the router itself is looked up before them.

    A rule that says unreachable speaks of the network (code 0); of the host (code 1) only a route does.
    """
    verbs = {"prohibit": "prohibit", "unreachable": f"lookup {UNREACHABLE_TABLE}", "blackhole": "blackhole"}
    yield f"route add unreachable default table {UNREACHABLE_TABLE}"
    for block in router.blocks:
        which = "" if block.port is None else f" ipproto tcp dport {block.port}"
        for address in dict.fromkeys(own.address for own in layout.interfaces[block.to]):
            yield f"rule add pref {FILTER_RULES} to {address}{which} {verbs[block.how]}"


def _filtering(host: Host, interface: str) -> Iterator[str]:
    """A rule that says blackhole drops without a word; the local table's own rule must move behind it."""
    which = [f" ipproto {protocol} dport {port}" for port in host.filtered_ports for protocol in ("tcp", "udp")]
    rules = ["", *which] if host.down else which
    if rules:
        yield from (f"rule add pref {FILTER_RULES} iif {interface}{rule} blackhole" for rule in rules)
        yield f"rule add pref {LOCAL_RULE} lookup local"
        yield "rule del pref 0"


def _ip(batch: list[str], doing: str, *, inside: str | None = None) -> None:
    where = [] if inside is None else ["-n", inside]
    try:
        process = subprocess.Popen(
            ["ip", *where, "-batch", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    except FileNotFoundError as error:
        raise LabError(f"{doing}: no ip command", "apt-get install iproute2") from error
    _finish(process, "\n".join(batch), doing)


def _sh(lab: str, node: str, settings: list[str], wiring: list[str]) -> None:
    _finish(_start_sh(lab, node, settings), "\n".join(wiring), f"setting up {node}")


def _start_sh(lab: str, node: str, settings: list[str]) -> subprocess.Popen[str]:
    script = "\n".join(["set -e", "cd /proc/sys", *settings, "exec ip -batch -"])
    return subprocess.Popen(
        ["ip", "netns", "exec", namespace(lab, node), "sh", "-c", script],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _finish(process: subprocess.Popen[str], text: str, doing: str) -> None:
    _, trouble = process.communicate(text + "\n")
    if process.returncode != 0:
        remedy = "; ".join(missing()) or "The line above is the kernel's own; `modprobe veth` helps if veth is unknown."
        raise LabError(f"{doing}: {trouble.strip()}", remedy)
