"""The program: `hopscope` and `python -m hopscope`."""

import sys

from hopscope.cli import signals


def main() -> None:
    """Run the command line and exit with its code."""
    signals.arm()
    from hopscope.cli.app import main_inner

    code = main_inner(sys.argv[1:])
    signals.ignore()
    sys.exit(code)


if __name__ == "__main__":
    main()
