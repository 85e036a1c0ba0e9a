"""The program: `hopscope` and `python -m hopscope`."""

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    from hopscope.cli.app import main_inner

    sys.exit(main_inner(sys.argv[1:]))


if __name__ == "__main__":
    main()
