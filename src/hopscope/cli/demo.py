"""`hopscope demo`: the whole job on a network in a box; exit 0 when the verdict is the planted one."""

import os
import subprocess
import sys
from pathlib import Path

import typer

from hopscope.cli.options import OutFolder
from hopscope.errors import CannotMeasureError

DEMO_DEADLINE = "100s"


def demo(*, out: OutFolder = None, seed: int = typer.Option(1, "--seed", help="Seed of the emulated links.")) -> int:
    """Build three stand-in datacentres on this machine, measure them, and check the verdict against the truth.

    One is clean, one loses 12 % behind a router that limits its replies, one has a slow server.
    Example: hopscope demo
    """
    from hopscope.lab import namespaces

    if namespaces.missing():
        return _loopback_only(namespaces.missing())
    if namespaces.rights() == "userns":
        again = [sys.executable, "-m", "hopscope", "demo", "--seed", str(seed), *(["--out", str(out)] if out else [])]
        return subprocess.run(namespaces.reexec_argv(again), check=False).returncode
    return _whole(out, seed)


def _whole(out: Path | None, seed: int) -> int:
    """The demo on the lab: run from inside the client's namespace, then compare."""
    from hopscope.lab.box import Lab
    from hopscope.lab.demo import YOU, demo_targets, demo_topology, planted
    from hopscope.lab.verdict import mistakes

    folder = (out or Path("reports") / "demo").absolute()
    with Lab(demo_topology(), seed=seed) as lab:
        typer.echo("The lab stands: you, a gateway, eight routers, three datacentres. Measuring takes about 40 s.")
        file = lab.folder / "demo.toml"
        file.write_text(demo_targets(lab), encoding="utf-8")
        argv = [sys.executable, "-m", "hopscope", "run", str(file), "--out", str(folder), "--timeout", DEMO_DEADLINE]
        child = subprocess.run(lab.argv(YOU, argv), check=False, stdin=subprocess.DEVNULL)
        wrong = (
            mistakes(folder / "report.json", planted(lab.layout))
            if child.returncode in {0, 1, 2}
            else (f"hopscope run ended with {child.returncode}",)
        )
    for line in wrong:
        typer.echo(f"not as planted: {line}", err=True)
    if not wrong:
        typer.echo(
            "The verdict is the planted one: the lossy segment, the limiting router and the slow server are right."
        )
    typer.echo(f"report: {os.path.relpath(folder / 'report.html')}")
    return 1 if wrong else 0


def _loopback_only(missing: tuple[str, ...]) -> int:
    """What can be shown without a lab, and what was left out."""
    message = f"the lab cannot be built here: {'; '.join(missing)}"
    raise CannotMeasureError(message, "install what is named, or run as root")
