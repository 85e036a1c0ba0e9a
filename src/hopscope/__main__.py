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
    from hopscope.cli.app import main_inner

    code = main_inner(sys.argv[1:])
    signals.ignore()
    sys.exit(code)


if __name__ == "__main__":
    main()
