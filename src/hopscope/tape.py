"""The tape: records ⇄ JSON lines, and lines → book. Pure; who opens files is elsewhere.

A whole line is a whole record; a line that cannot be used is counted, never fatal. Only a higher tape number and a
file that holds no record at all are refused, by name.
"""

from collections.abc import Iterable, Iterator
from typing import get_args

import msgspec

from hopscope.errors import TapeError
from hopscope.model.record import (
    TAPE_NUMBER,
    Begin,
    Done,
    Drop,
    End,
    Exchange,
    Extra,
    Failure,
    Named,
    Planned,
    Probe,
    Record,
    Resolved,
    Routed,
    Run,
    Streamed,
)
from hopscope.model.sample import Book, Sample

MAX_LINE_BYTES = 1 << 20
MAX_DAMAGED_NOTED = 20

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


class _Tag(msgspec.Struct):
    """The least a line must have to be a record of some kind."""

    record: str
    tape: int | None = None


_tag_decoder = msgspec.json.Decoder(_Tag)
_KNOWN = frozenset(str(kind.__struct_config__.tag) for kind in get_args(Record))


def dump(record: Record) -> bytes:
    """One record as one line, newline included."""
    return _encoder.encode(record) + b"\n"


class Gatherer:
    """Folds records, as they come, into a book."""

    def __init__(self) -> None:
        self.book = Book()

    def add(self, record: Record) -> None:  # noqa: C901, PLR0912 - one arm a kind of record
        """Put one record where it belongs; records of a task that never began are damage, and dropped."""
        book = self.book
        match record:
            case Probe():
                if sample := book.samples.get(record.task):
                    sample.probes.append(record)
            case Extra():
                if sample := book.samples.get(record.task):
                    sample.extras.append(record)
            case Exchange():
                if sample := book.samples.get(record.task):
                    sample.exchanges.append(record)
            case Streamed():
                if sample := book.samples.get(record.task):
                    sample.streams.append(record)
            case Drop():
                if sample := book.samples.get(record.task):
                    sample.drops.append(record)
            case Begin():
                book.samples[record.id] = Sample(id=record.id, task=record.task, begun=record.at)
            case Resolved():
                if sample := book.samples.get(record.task):
                    sample.resolved = record
            case Routed():
                if sample := book.samples.get(record.task):
                    sample.routed = record
            case Done():
                if sample := book.samples.get(record.task):
                    sample.done = record
            case Failure():
                book.failures.append(record)
                if record.task is not None and (sample := book.samples.get(record.task)):
                    sample.failures.append(record)
            case Named():
                book.named.setdefault(record.address, []).append(record)
            case Run():
                book.run = book.run or record
            case Planned():
                book.plan = book.plan or record.plan
            case End():
                book.end = record

    def add_line(self, number: int, line: bytes) -> None:
        """Add one line of a tape, without its newline.

        Raises TapeError for a tape made by a newer format.
        """
        try:
            record = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._unusable(number, line)
            return
        if isinstance(record, Run):
            _check_number(record.tape)
        self.add(record)

    def _unusable(self, number: int, line: bytes) -> None:
        """Count a line as unknown (a kind we do not know) or damaged (anything else)."""
        try:
            tag = _tag_decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            tag = None
        if tag is not None and tag.record == "run" and tag.tape is not None:
            _check_number(tag.tape)
        if tag is not None and tag.record not in _KNOWN:
            self.book.unknown += 1
        elif len(self.book.damaged) < MAX_DAMAGED_NOTED:
            self.book.damaged.append(number)


def _check_number(number: int) -> None:
    """Refuse a tape of a newer format, by name."""
    if number > TAPE_NUMBER:
        message = f"this is tape {number}; this hopscope reads tapes up to {TAPE_NUMBER}"
        raise TapeError(message, "upgrade hopscope on this machine")


def lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Split pieces of a file into lines without newline; an over-long line is cut, so it counts as damaged once."""
    rest = b""
    for piece in pieces:
        rest += piece
        *whole, rest = rest.split(b"\n")
        yield from whole
        if len(rest) > MAX_LINE_BYTES:
            rest = rest[:MAX_LINE_BYTES]
    if rest:
        yield rest


def read(pieces: Iterable[bytes], *, name: str) -> Book:
    """Read a tape given as pieces of bytes.

    Raises TapeError when there are lines but no record of ours among them, or when the tape is of a newer format.
    """
    gatherer = Gatherer()
    number = 0
    for number, line in enumerate(lines(pieces), start=1):
        if line.strip():
            gatherer.add_line(number, line)
    book = gatherer.book
    if number and book.run is None and not book.samples and book.plan is None:
        message = f"{name} is not a hopscope tape: none of its {number} lines is a record of a run"
        raise TapeError(message, "give the folder of a run, or its run.jsonl")
    return book


def gather(records: Iterable[Record]) -> Book:
    """Fold records into a book."""
    gatherer = Gatherer()
    for record in records:
        gatherer.add(record)
    return gatherer.book
