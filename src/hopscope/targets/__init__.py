"""Target files and the words of the command line: text in, values of `model/plan.py` out.

This room is pure: no file is opened and no name is looked up here. A wrong file is answered with all of its errors at
once, each with line, key, what was expected and the nearest right word, and no secret is ever repeated in a message.
"""

from hopscope.targets.budgets import BUDGETS, REASONS, budget
from hopscope.targets.contents import Alarm, Maintenance, TargetFile
from hopscope.targets.hosts import HostSpec, host
from hopscope.targets.planning import plan
from hopscope.targets.quantities import duration, ratio
from hopscope.targets.reading import read

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
