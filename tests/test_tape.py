"""The tape: every kind of record comes back as it was, and no damage to a file is worse than the lines it hit."""

import json
import math
from itertools import pairwise
from typing import get_args, get_type_hints

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hopscope.errors import TapeError
from hopscope.model.plan import (
    Budget,
    HttpTask,
    PingTask,
    Plan,
    ResolveTask,
    Site,
    Target,
    TraceTask,
    Vantage,
)
from hopscope.model.record import (
    TAPE_NUMBER,
    Begin,
    Certificate,
    Claim,
    Done,
    Drop,
    End,
    Exchange,
    Extra,
    Failure,
    Instant,
    Named,
    Planned,
    Probe,
    Record,
    Resolved,
    Run,
    SelfCheck,
    Ttl,
)
from hopscope.model.sample import Book
from hopscope.tape import MAX_DAMAGED_NOTED, MAX_LINE_BYTES, dump, gather, lines, read

PLAN = Plan(
    command="run", name="it", targets=(Target(name="ü\n", host="gpu.example", budget=Budget(loss=0.01)),),
    vantages=(Vantage(name="here", kind="local", site=Site(lat=1.5, lon=-2.5)),), quorum=1, deadline_ns=300,
)  # fmt: skip
PING = PingTask(
    target="it", vantage="here", reason="asked", address="192.0.2.1", family=4, protocol="icmp", count=5,
    interval_ns=1, threshold_ns=2,
)  # fmt: skip
TAPE: tuple[Record, ...] = (
    Run(tape=TAPE_NUMBER, tool_version="1", command="run", at=1_796_000_000_000_000_000),
    Planned(plan=PLAN),
    Begin(id=1, at=2, task=PING),
    Probe(task=1, seq=0, at=3, outcome="replied", rtt_ns=4, clock="kernel", kind="echo-reply"),
    Probe(task=1, seq=1, at=3, outcome="lost"),
    Extra(task=1, seq=1, at=9, what="late", rtt_ns=6),
    Drop(task=1, since=1, until=2, count=3),
    Begin(id=2, at=2, task=ResolveTask(target="it", vantage="here", reason="asked", host="gpu.example")),
    Resolved(task=2, at=5, addresses=("192.0.2.1", "2001:db8::1"), took_ns=7),
    Begin(id=3, at=2, task=TraceTask(
        target="it", vantage="here", reason="asked", address="2001:db8::1", family=6, protocol="icmp", rounds=1,
        interval_ns=1, threshold_ns=2, confirm=3,
    )),
    Begin(id=4, at=2, task=HttpTask(
        target="it", vantage="here", reason="asked", address="192.0.2.1", family=4, port=443, url="https://gpu.example",
        cold=1, hot=0, timeout_ns=2, headers=(("A", "b"),),
    )),
    Exchange(task=4, seq=0, cold=True, connection=0, scheduled=1, certificate=Certificate(names=("gpu.example",)),
             claims=(Claim(name="x", value_ms=1.5, scope="server", source="header"),), error="tls", detail="expired"),
    Failure(kind="rights", why="no socket", advice="be root", target="it", vantage="here", task=1),
    Named(address="192.0.2.1", source="db", asn=64496, lat=1.0, lon=2.0),
    Done(task=1, at=10, check=SelfCheck(late_p99_ns=3, limited=True)),
    End(at=11),
)  # fmt: skip
WHOLE = b"".join(dump(record) for record in TAPE)


def test_a_line_is_one_record_and_ends_with_a_newline() -> None:
    for record in TAPE:
        line = dump(record)
        assert line.count(b"\n") == 1
        assert line.endswith(b"}\n")
        assert msgspec.json.decode(line, type=Record) == record


def test_read_is_gather() -> None:
    assert read([WHOLE], name="it") == gather(TAPE)


def test_the_book_has_everything_in_its_place() -> None:
    book = gather(TAPE)
    assert (book.run, book.plan, book.end) == (TAPE[0], PLAN, TAPE[-1])
    ping = book.samples[1]
    assert (len(ping.probes), len(ping.extras), len(ping.drops), len(ping.failures)) == (2, 1, 1, 1)
    assert (ping.begun, ping.done) == (2, TAPE[-2])
    assert book.samples[2].resolved == TAPE[8]
    assert book.samples[4].exchanges == [TAPE[11]]
    assert book.failures == [TAPE[12]]
    assert book.named == {"192.0.2.1": [TAPE[13]]}
    assert (book.unknown, book.damaged) == (0, [])


FLAT = [kind for kind in get_args(Record) if kind not in {Planned, Begin}]


def finite(value: object) -> bool:
    """Whether no number in a value is infinite or none, which JSON cannot say and we never measure."""
    match value:
        case float():
            return math.isfinite(value)
        case list() | tuple():
            return all(finite(one) for one in value)
        case msgspec.Struct():
            return finite(msgspec.structs.astuple(value))
        case _:
            return True


def in_time(value: object) -> object:
    """The same record with its instants brought into the years that a tape may hold."""
    if not isinstance(value, msgspec.Struct):
        return value
    changed: dict[str, object] = {}
    for name, hint in get_type_hints(type(value), include_extras=True).items():
        held = getattr(value, name)
        instant = Instant in (hint, *get_args(hint)) and isinstance(held, int)
        hop = Ttl in (hint, *get_args(hint)) and isinstance(held, int)
        changed[name] = abs(held) % 2**62 if instant else abs(held) % 256 if hop else in_time(held)
    return msgspec.structs.replace(value, **changed)


@pytest.mark.parametrize("at", [-1, 2**62 + 1, 10**30])
def test_an_instant_that_no_clock_shows_is_damage(at: int) -> None:
    line = b'{"record":"end","at":%d}' % at
    assert read([dump(TAPE[0]), line], name="it").damaged == [2]


@settings(max_examples=150, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.one_of(*[st.from_type(kind) for kind in FLAT]).filter(finite).map(in_time))
def test_every_record_comes_back_as_it_was(record: Record) -> None:
    assert msgspec.json.decode(dump(record), type=Record) == record


@given(st.lists(st.integers(1, len(WHOLE) - 1), max_size=8))
def test_it_does_not_matter_in_which_pieces_a_file_comes(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(WHOLE)]
    pieces = [WHOLE[a:b] for a, b in pairwise(edges)]
    assert read(pieces, name="it") == read([WHOLE], name="it")


def test_a_tape_that_ends_anywhere_is_a_shorter_run() -> None:
    whole_lines = [len(b"".join(dump(record) for record in TAPE[:n])) for n in range(len(TAPE) + 1)]
    for cut in range(len(WHOLE)):
        kept = max(n for n, size in enumerate(whole_lines) if size <= cut + 1)
        torn = cut not in whole_lines and cut + 1 not in whole_lines
        if kept == 0 and cut:
            with pytest.raises(TapeError, match="is not a hopscope tape"):
                read([WHOLE[:cut]], name="it")
            continue
        book = read([WHOLE[:cut]], name="it")
        expected = gather(TAPE[:kept])
        expected.damaged = [kept + 1] if torn else []
        assert book == expected, cut


def test_an_empty_tape_is_an_empty_book() -> None:
    assert read([], name="it") == Book()
    assert read([b""], name="it") == Book()


@pytest.mark.parametrize(
    ("line", "unknown", "damaged"),
    [
        (b'{"record":"probe","task":2,"seq":1,"at":1,"outcome":"lost","ttl":256}', 0, 1),
        (b'{"record":"probe","task":2,"seq":1,"at":1,"outcome":"lost","ttl":-1}', 0, 1),
        (b'{"record":"weather","sky":"grey"}', 1, 0),  # a kind that comes later
        (b'{"record":"probe","task":1,"seq":7,"at":3,"outcome":"replied","rtt_ns":4,"colour":"red"}', 0, 0),
        (b'{"record":"probe","task":1}', 0, 1),
        (b'{"record":"probe","task":1,"seq":7,"at":3,"outcome":"eaten"}', 0, 1),
        (b'{"record":7}', 0, 1),
        (b'{"rekord":"probe"}', 0, 1),
        (b"{", 0, 1),
        (b"hello", 0, 1),
        (b"[1, 2]", 0, 1),
        (b"\xff\xfe\x00", 0, 1),
        (b"[" * 100_000, 0, 1),
        (b"   ", 0, 0),
        (b"", 0, 0),
        (b'{"record":"run","tape":"two"}', 0, 1),
    ],
)
def test_a_line_that_cannot_be_used_is_counted(line: bytes, unknown: int, damaged: int) -> None:
    book = read([WHOLE, line, b"\n"], name="it")
    assert (book.unknown, len(book.damaged)) == (unknown, damaged)
    assert book.damaged in ([], [len(TAPE) + 1])
    assert len(book.samples[1].probes) in {2, 3}


def test_damage_is_noted_up_to_a_limit() -> None:
    book = read([WHOLE, b"x\n" * 1000], name="it")
    assert book.damaged == list(range(len(TAPE) + 1, len(TAPE) + 1 + MAX_DAMAGED_NOTED))


def test_records_of_a_task_that_never_began_are_dropped() -> None:
    stray: list[Record] = [
        Probe(task=9, seq=0, at=0, outcome="lost"),
        Extra(task=9, seq=0, at=0, what="late"),
        Drop(task=9, since=0, until=0, count=1),
        Exchange(task=9, seq=0, cold=True, connection=0, scheduled=0),
        Resolved(task=9, at=0),
        Done(task=9, at=0),
    ]
    assert gather([*TAPE, *stray]) == gather(TAPE)


def test_the_first_run_and_plan_count() -> None:
    second: list[Record] = [Run(tape=TAPE_NUMBER, tool_version="2", command="other", at=0), Planned(plan=Plan(
        command="other", name="", targets=(), vantages=(), quorum=0, deadline_ns=0
    ))]  # fmt: skip
    book = gather([*TAPE, *second])
    assert (book.run, book.plan) == (TAPE[0], PLAN)


@pytest.mark.parametrize(
    "line",
    [
        dump(Run(tape=TAPE_NUMBER + 1, tool_version="9", command="run", at=0)),
        json.dumps({"record": "run", "tape": TAPE_NUMBER + 1, "shape": "unheard of"}).encode() + b"\n",
    ],
)
def test_a_newer_tape_is_refused_by_its_number(line: bytes) -> None:
    with pytest.raises(TapeError) as caught:
        read([line, WHOLE], name="it")
    assert str(caught.value) == f"this is tape {TAPE_NUMBER + 1}; this hopscope reads tapes up to {TAPE_NUMBER}"
    assert caught.value.advice == "upgrade hopscope on this machine"
    assert caught.value.exit_code == 64


@pytest.mark.parametrize("text", [b"hello\nworld\n", b"\x00" * 1000, b'{"record":"weather"}\n', b"\n\n"])
def test_a_file_without_a_record_of_ours_is_refused_by_its_name(text: bytes) -> None:
    with pytest.raises(TapeError, match=r"holiday\.jpg is not a hopscope tape"):
        read([text], name="holiday.jpg")


def test_a_line_without_end_is_cut_and_counted_once() -> None:
    pieces = [WHOLE, *[b"x" * (MAX_LINE_BYTES // 2)] * 9, b"\n", dump(Drop(task=1, since=1, until=2, count=1))]
    assert max(len(line) for line in lines(pieces)) <= MAX_LINE_BYTES * 3 // 2
    book = read(pieces, name="it")
    assert book.damaged == [len(TAPE) + 1]
    assert len(book.samples[1].drops) == 2


@given(st.binary(max_size=300))
def test_no_bytes_do_more_than_be_counted(junk: bytes) -> None:
    book = read([WHOLE, junk], name="it")
    assert book.plan == PLAN
    assert book.samples.keys() >= {1, 2, 3, 4}
