"""What every value promises: it is frozen, goes through JSON unchanged, and undefined is null (method 2.3)."""

from typing import get_args

import msgspec
import pytest

from hopscope.model import plan, record, report
from hopscope.model.plan import Budget, Task
from hopscope.model.record import Probe, Record
from hopscope.model.report import Delay, Finding, FindingKind, Loss, Owner, Segment, SegmentEnd

STRUCTS = [
    value
    for module in (plan, record, report)
    for value in vars(module).values()
    if isinstance(value, type) and issubclass(value, msgspec.Struct) and value is not msgspec.Struct
]


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_a_value_is_frozen_and_says_what_it_is(struct: type[msgspec.Struct]) -> None:
    assert struct.__struct_config__.frozen
    assert (struct.__doc__ or "").strip()


def test_records_and_tasks_are_told_apart_by_a_tag_of_their_own() -> None:
    tags = [kind.__struct_config__.tag for kind in get_args(Record)]
    assert len(set(tags)) == len(tags)
    assert {kind.__struct_config__.tag_field for kind in get_args(Record)} == {"record"}
    kinds = [kind.__struct_config__.tag for kind in get_args(Task)]
    assert len(set(kinds)) == len(kinds)
    assert {kind.__struct_config__.tag_field for kind in get_args(Task)} == {"kind"}


def test_a_probe_line_holds_only_what_is_known() -> None:
    line = msgspec.json.encode(Probe(task=1, seq=2, at=3, outcome="lost"))
    assert line == b'{"record":"probe","task":1,"seq":2,"at":3,"outcome":"lost"}'


def test_unknown_is_null_in_a_report() -> None:
    assert msgspec.to_builtins(Delay(n=0)) == {
        "n": 0,
        **dict.fromkeys([name for name in Delay.__struct_fields__ if name != "n"]),
    }
    nothing = msgspec.to_builtins(Loss(sent=0, received=0, lost=0))
    assert (nothing["ratio"], nothing["low"], nothing["high"]) == (None, None, None)


def test_a_finding_reads_as_the_interface_says() -> None:
    end = SegmentEnd(ttl=0, address=None, asn=None)
    one = Finding(
        id="lossy-from/it", kind="lossy-from", severity="warning", confidence="shown", target="it", vantages=("here",),
        segment=Segment(from_=end, to=end, flow=0), direction="either", owner=Owner(role="you"), why="w", evidence={},
        changes_mind="c", next_step="n",
    )  # fmt: skip
    got = msgspec.to_builtins(one)
    assert list(got) == [
        "id", "kind", "severity", "confidence", "target", "vantages", "segment", "direction", "owner", "why",
        "evidence", "changes_mind", "next_step",
    ]  # fmt: skip
    assert list(got["segment"]) == ["from", "to", "flow"]
    assert list(got["owner"]) == ["role", "asns", "name"]


def test_kinds_of_finding_are_told_once() -> None:
    kinds = get_args(FindingKind)
    assert len(set(kinds)) == len(kinds)
    assert {"lossy-from", "accept-limited", "server-slow", "not-enough-data"} <= set(kinds)


def test_limits_that_nobody_set_are_none() -> None:
    assert {getattr(Budget(), name) for name in Budget.__struct_fields__} == {None}
