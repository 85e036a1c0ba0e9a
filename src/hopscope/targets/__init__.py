"""Target files and the words of the command line: text in, values of `model/plan.py` out.

This room is pure: no file is opened and no name is looked up here. A wrong file is answered with all of its errors at
once, each with line, key, what was expected and the nearest right word, and no secret is ever repeated in a message.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hopscope.targets.budgets import BUDGETS, REASONS, budget
    from hopscope.targets.contents import Alarm, Maintenance, TargetFile
    from hopscope.targets.hosts import HostSpec, host
    from hopscope.targets.planning import plan
    from hopscope.targets.quantities import duration, ratio
    from hopscope.targets.reading import read

_HOMES = {
    "budgets": ("BUDGETS", "REASONS", "budget"),
    "contents": ("Alarm", "Maintenance", "TargetFile"),
    "hosts": ("HostSpec", "host"),
    "planning": ("plan",),
    "quantities": ("duration", "ratio"),
    "reading": ("read",),
}
"""Where each name lives: a command that reads no file does not pay for the parser (PEP 562)."""

__all__ = [
    "BUDGETS",
    "REASONS",
    "Alarm",
    "HostSpec",
    "Maintenance",
    "TargetFile",
    "budget",
    "duration",
    "host",
    "plan",
    "ratio",
    "read",
]


def __getattr__(name: str) -> object:
    """Import a name's module when it is first asked for."""
    from importlib import import_module

    for module, names in _HOMES.items():
        if name in names:
            found: object = getattr(import_module(f"hopscope.targets.{module}"), name)
            return found
    raise AttributeError(name)
