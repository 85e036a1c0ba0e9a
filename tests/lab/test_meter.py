"""The stand-in's figures have vLLM's names and add up."""

import pytest

from hopscope.lab.meter import DECODE, FIRST_TOKEN, INTER_TOKEN, PREFILL, QUEUE, Course, Meter


def figures(text: str) -> dict[str, float]:
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


LABELS = '{engine="0",model_name="m"}'


def test_a_course_is_cut_into_its_stages() -> None:
    meter = Meter("m")
    meter.finished(Course(arrived=1.0, scheduled=1.5, tokens=(2.5, 2.75, 3.25), prompt_tokens=7, finish_reason="stop"))
    found = figures(meter.exposition())
    sums = {name: found[f"{name}_sum{LABELS}"] for name in (QUEUE, PREFILL, DECODE, FIRST_TOKEN, INTER_TOKEN)}
    assert sums == {QUEUE: 0.5, PREFILL: 1.0, DECODE: 0.75, FIRST_TOKEN: 1.5, INTER_TOKEN: 0.75}
    assert found[f"{INTER_TOKEN}_count{LABELS}"] == 2
    assert found[f"vllm:generation_tokens_total{LABELS}"] == 3
    assert found[f"vllm:prompt_tokens_total{LABELS}"] == 7


def test_buckets_are_cumulative() -> None:
    meter = Meter("m")
    for wait in (0.1, 0.4, 0.4, 99.0):
        meter.finished(
            Course(arrived=0.0, scheduled=wait, tokens=(wait + 0.5,), prompt_tokens=1, finish_reason="length")
        )
    found = figures(meter.exposition())
    buckets = [found[f'{QUEUE}_bucket{{engine="0",model_name="m",le="{bound}"}}'] for bound in ("0.3", "0.5", "+Inf")]
    assert buckets == [1, 3, 4]
    assert found[f"{QUEUE}_sum{LABELS}"] == pytest.approx(99.9)
    assert found['vllm:request_success_total{engine="0",model_name="m",finished_reason="length"}'] == 4


def test_gauges_show_what_is_going_on() -> None:
    meter = Meter("m")
    meter.running, meter.waiting = 2, 3
    found = figures(meter.exposition())
    assert (found[f"vllm:num_requests_running{LABELS}"], found[f"vllm:num_requests_waiting{LABELS}"]) == (2, 3)
