"""A program that was started elsewhere: its two byte streams, and how it ended. Its reader bounds what it may write.

Whoever starts programs elsewhere (a command of this machine, an SSH connection) gives one of these; who talks through
it knows nothing else of the way there.
"""

from typing import Protocol as Port

from msgspec import Struct

MAX_TAIL_BYTES = 4096
TOLD_LINES = 2
TOLD_CHARACTERS = 300


class Ending(Struct, frozen=True):
    """How a program ended: its exit code (negative: the signal; None: nobody knows), and its last words."""

    code: int | None
    said: str


class Far(Port):
    """A started program. Writing never waits and never raises: a program that has gone is found out by reading."""

    async def read(self) -> bytes:
        """The next bytes of its standard output, nothing after the last."""
        ...

    def write(self, data: bytes) -> None:
        """To its standard input."""
        ...

    def finish(self) -> None:
        """Its standard input ends here."""
        ...

    async def ended(self) -> Ending:
        """Wait until it has ended."""
        ...

    async def kill(self) -> None:
        """End it, unless it has ended, and give back what it held here."""
        ...


class Tail:
    """The end of what a program wrote on standard error, however much that was."""

    def __init__(self) -> None:
        self._kept = b""

    def add(self, data: bytes) -> None:
        """Keep the last of it."""
        self._kept = (self._kept + data)[-MAX_TAIL_BYTES:]

    def text(self) -> str:
        """Its last lines, as one."""
        return told(self._kept)


def told(data: bytes) -> str:
    """The last lines of what a program wrote, in printable characters, as one short line."""
    lines = (line.strip() for line in data.decode("utf-8", "replace").splitlines())
    whole = "; ".join([line for line in lines if line][-TOLD_LINES:])
    printable = "".join(character if character.isprintable() else "·" for character in whole)
    return printable if len(printable) <= TOLD_CHARACTERS else f"…{printable[1 - TOLD_CHARACTERS :]}"
