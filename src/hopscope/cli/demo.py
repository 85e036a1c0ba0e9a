"""`hopscope demo`: the whole job on a network in a box; exit 0 when the verdict is the planted one."""

import os
import sys
from datetime import UTC, datetime
from typing import Annotated

import typer

from hopscope.cli.options import OutFolder
from hopscope.cli.runs import REPORTS, folder_name

NOT_AS_PLANTED = 1


def demo(
    *,
    out: OutFolder = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the emulated links.")] = 1,
    loopback: Annotated[bool, typer.Option("--loopback", help="Only the part that needs no network in a box.")] = False,
) -> int:
    """Compare stand-in datacentres from three places, on this machine; check the verdict against the planted truth.

    One is clean, one loses 12 % behind a router that limits its replies, one has a slow server. It takes 40 seconds.
    Example: hopscope demo
    """
    from hopscope.lab import namespaces, play

    folder = (out or REPORTS / folder_name("demo", datetime.now(UTC))).absolute()
    missing = namespaces.missing()
    if not missing and not loopback and namespaces.rights() == "userns":
        argv = [sys.executable, "-m", "hopscope", "demo", "--seed", str(seed), "--out", str(folder)]
        import subprocess

        return subprocess.run(namespaces.reexec_argv(argv), check=False).returncode
    if missing or loopback:
        typer.echo(f"Left out: the network in a box{''.join(f' – {line}' for line in missing)}.", err=True)
        wrong = play.on_loopback(folder)
    else:
        typer.echo("Three datacentres stand, three places measure them at once. That takes 40 seconds.", err=True)
        wrong = play.on_network(folder, seed)
    for line in wrong:
        typer.echo(f"not as planted: {line}", err=True)
    typer.echo("The verdict is not the planted one." if wrong else "The verdict is the planted one.")
    typer.echo(f"report: {os.path.relpath(folder / 'report.html')}")
    return NOT_AS_PLANTED if wrong else 0
