"""The program: `hopscope` and `python -m hopscope`."""

import gc
import sys

from hopscope.cli import signals

ALLOCATIONS_A_COLLECTION = 50_000
"""What imports make is no garbage, and a run makes little in cycles: look for it less often than by default."""


def main() -> None:
    """Run the command line and exit with its code."""
    signals.arm()
    gc.set_threshold(ALLOCATIONS_A_COLLECTION)
    code = _code(sys.argv[1:])
    signals.ignore()
    sys.exit(code)


def _code(arguments: list[str]) -> int:
    """Run a command line; that of an agent is known without the others."""
    from hopscope.cli import agent

    if arguments == agent.WORDS:
        return agent.alone()
    from hopscope.cli.app import main_inner

    return main_inner(arguments)


if __name__ == "__main__":
    main()
