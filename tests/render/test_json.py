"""The JSON document: valid whatever is in the report, as the schema says, and with every sample in its place."""

import json
from collections.abc import Callable
from itertools import islice

import msgspec
import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from hopscope.model.report import PingResult, PingSample, Report, Samples
from hopscope.render import json as renderer

SCHEMA = json.loads(renderer.schema())


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert "additionalProperties" not in SCHEMA["$defs"]["Report"]


def test_every_output_validates(report: Report) -> None:
    document = json.loads("".join(renderer.render(report)))
    assert {result["kind"] for result in document["results"]} == {"ping", "trace", "http"}
    Draft202012Validator(SCHEMA).validate(document)


def test_a_key_of_a_newer_version_validates(report: Report) -> None:
    document = json.loads("".join(renderer.render(report)))
    Draft202012Validator(SCHEMA).validate({**document, "newer": [1]})


def test_a_wrong_value_does_not_validate(report: Report) -> None:
    document = json.loads("".join(renderer.render(report)))
    assert not Draft202012Validator(SCHEMA).is_valid({**document, "partial": "no"})


def test_it_is_one_line(report: Report) -> None:
    text = "".join(renderer.render(report))
    assert text.index("\n") == len(text) - 1


@pytest.mark.parametrize("number", [0, 1, renderer.BATCH - 1, renderer.BATCH, renderer.BATCH + 1, 2 * renderer.BATCH])
def test_every_sample_is_there(number: int, report: Report, generated: Callable[[int], Samples]) -> None:
    pings = [result for result in report.results if isinstance(result, PingResult)]
    two = tuple(replace(ping, samples=generated(number + index)) for index, ping in enumerate(pings[:2]))
    document = json.loads("".join(renderer.render(replace(report, results=two))))
    for index, result in enumerate(document["results"]):
        read = [msgspec.convert(sample, PingSample) for sample in result["samples"]]
        assert read == list(islice(generated(number + index), number + index))


def test_text_keeps_its_value(report: Report) -> None:
    odd = 'a\0b"\\\n\x1b[2J\x7f\x9b\u202e\U000e0041漢'
    text = "".join(renderer.render(replace(report, command=odd)))
    assert json.loads(text)["command"] == odd
    assert text[:-1].isprintable()


def test_half_a_surrogate_pair_is_shown(report: Report) -> None:
    text = "".join(renderer.render(replace(report, command="\udcff")))
    assert json.loads(text)["command"] == r"\udcff"


def test_no_number_is_no_number(report: Report) -> None:
    finding = replace(report.verdict.findings[0], evidence={"x": float("nan"), "y": None})
    text = "".join(renderer.render(replace(report, verdict=replace(report.verdict, findings=(finding,)))))
    assert json.loads(text)["verdict"]["findings"][0]["evidence"] == {"x": None, "y": None}
