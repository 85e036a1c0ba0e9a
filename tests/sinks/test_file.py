"""Files of a run: the tape line by line, documents whole or not at all, and what stands in the way in words."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hopscope.errors import CannotMeasureError, UsageError
from hopscope.sinks import file
from hopscope.sinks.file import TapeFile


def test_each_line_is_in_the_file_before_the_next_is_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "run.jsonl"
    tape = TapeFile(path)
    for number in range(5):
        tape.write(b'{"n":%d}\n' % number)
        assert [json.loads(line)["n"] for line in path.read_bytes().splitlines()] == list(range(number + 1))
    tape.close()


def test_a_tape_is_never_written_over(tmp_path: Path) -> None:
    TapeFile(tmp_path / "run.jsonl").close()
    with pytest.raises(UsageError, match=r"run\.jsonl is there already") as found:
        TapeFile(tmp_path / "run.jsonl")
    assert "--out" in found.value.advice


def test_a_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(UsageError, match="taken is there already"):
        TapeFile(tmp_path / "taken" / "run.jsonl")
    with pytest.raises(CannotMeasureError, match="no directory"):
        TapeFile(tmp_path / "taken" / "deeper" / "run.jsonl")


def test_after_a_line_that_did_not_fit_the_tape_ends_whole_and_goes_on_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    tape = TapeFile(path)
    tape.write(b"first\n")
    good = os.dup(tape._fd)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, tape._fd)
    with pytest.raises(CannotMeasureError, match=r"cannot write .*run\.jsonl: No space left on device") as found:
        tape.write(b"second\n")
    assert found.value.advice.startswith("free some space")
    os.dup2(good, tape._fd)
    os.write(tape._fd, b"sec")  # what a disk took of the second before it was full …
    os.ftruncate(tape._fd, tape._size)  # … is cut off
    tape.write(b"third\n")
    tape.close()
    os.close(good)
    os.close(full)
    assert path.read_bytes() == b"first\nthird\n"


def test_a_document_replaces_the_one_before_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    file.document(path, ["one", "\n"])

    def breaking() -> Iterator[str]:
        yield "half of "
        assert path.read_text() == "one\n"
        raise ZeroDivisionError("planted")

    with pytest.raises(ZeroDivisionError):
        file.document(path, breaking())
    assert path.read_text() == "one\n"
    file.document(path, ["two\r\n", "drei ü\n"])
    assert path.read_bytes() == "two\r\ndrei ü\n".encode()
    assert [one.name for one in tmp_path.iterdir()] == ["report.md"]


def test_a_link_stays_a_link_and_a_pipe_a_pipe(tmp_path: Path) -> None:
    place, link = tmp_path / "place.md", tmp_path / "link.md"
    link.symlink_to(place)
    file.document(link, ["through"])
    assert (link.is_symlink(), place.read_text()) == (True, "through")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    file.check(pipe)
    file.document(pipe, ["through"])
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    ("place", "words"),
    [("folder", "Is a directory"), ("text/deeper.md", "no directory"), ("n" * 300, "File name too long")],
)
def test_what_stands_in_the_way_is_told_the_same_before_and_after(place: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("")
    before = sorted(one.name for one in tmp_path.iterdir())
    for attempt in (file.check, lambda path: file.document(path, ["x"])):
        with pytest.raises(CannotMeasureError, match=words) as found:
            attempt(tmp_path / place)
        assert place[:20] in str(found.value)
        assert "--out" in found.value.advice
    assert sorted(one.name for one in tmp_path.iterdir()) == before


def test_a_place_that_is_good_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "old.md").write_text("old")
    file.check(tmp_path / "old.md")
    file.check(tmp_path / "new.md")
    file.check(Path("/dev/null"))
    assert {one.name: one.read_text() for one in tmp_path.iterdir()} == {"old.md": "old"}


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_a_file_comes_in_pieces(size: int, tmp_path: Path) -> None:
    content = bytes(range(256)) * 5
    (tmp_path / "it").write_bytes(content)
    pieces = list(file.pieces_of(tmp_path / "it", size))
    assert b"".join(pieces) == content
    assert {len(piece) for piece in pieces[:-1]} <= {size}
