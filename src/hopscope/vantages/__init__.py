"""Places to measure from. The seam is the task: tasks go in, records come out."""

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Final
from typing import Protocol as Port

from hopscope.model.plan import Task, Vantage, VantageKind
from hopscope.model.record import Record


class Place(Port):
    """A vantage at work."""

    @property
    def name(self) -> str:
        """As in the plan."""
        ...

    def run(self, task_id: int, task: Task) -> AsyncGenerator[Record, None]:
        """Run one task; ends with `Done`, or early when closed. Raises NoRightsError, HopscopeError."""
        ...

    async def close(self) -> None:
        """Give everything back."""
        ...


def _local(vantage: Vantage, environ: Mapping[str, str]) -> Place:
    from hopscope.vantages.local import LocalPlace

    return LocalPlace(vantage, environ)


Openers = Mapping[VantageKind, Callable[[Vantage, Mapping[str, str]], Place]]
"""What makes a place of a vantage, by its kind; may raise HopscopeError."""


def _exec(vantage: Vantage, environ: Mapping[str, str]) -> Place:
    from hopscope.vantages.exec import open_exec

    return open_exec(vantage, environ)


def _ssh(vantage: Vantage, environ: Mapping[str, str]) -> Place:
    from hopscope.vantages.ssh import open_ssh

    return open_ssh(vantage, environ)


VANTAGES: Final[Openers] = {"local": _local, "exec": _exec, "ssh": _ssh}
