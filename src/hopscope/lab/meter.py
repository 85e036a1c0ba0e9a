"""The stand-in server's own figures, under the names, units and labels of vLLM's /metrics.

Pure: it is told what happened and prints the text exposition; all times in seconds as vLLM gives them.
"""

from bisect import bisect_left
from collections.abc import Iterator

from msgspec import Struct

TOKEN_BUCKETS_S = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
REQUEST_BUCKETS_S = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0)

FIRST_TOKEN = "vllm:time_to_first_token_seconds"
INTER_TOKEN = "vllm:inter_token_latency_seconds"
END_TO_END = "vllm:e2e_request_latency_seconds"
INFERENCE = "vllm:request_inference_time_seconds"
QUEUE = "vllm:request_queue_time_seconds"
PREFILL = "vllm:request_prefill_time_seconds"
DECODE = "vllm:request_decode_time_seconds"
BUCKETS_S = {
    FIRST_TOKEN: TOKEN_BUCKETS_S,
    INTER_TOKEN: TOKEN_BUCKETS_S,
    END_TO_END: REQUEST_BUCKETS_S,
    INFERENCE: REQUEST_BUCKETS_S,
    QUEUE: REQUEST_BUCKETS_S,
    PREFILL: REQUEST_BUCKETS_S,
    DECODE: REQUEST_BUCKETS_S,
}


class Course(Struct, frozen=True, kw_only=True):
    """When one inference request went through its stages: seconds of one monotonic clock."""

    arrived: float
    scheduled: float
    tokens: tuple[float, ...]
    prompt_tokens: int
    finish_reason: str


class _Histogram:
    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, labels: str) -> Iterator[str]:
        so_far = 0
        yield f"# TYPE {name} histogram"
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            so_far += count
            yield f'{name}_bucket{{{labels},le="{bound}"}} {so_far}'
        yield f"{name}_sum{{{labels}}} {self.total!r}"
        yield f"{name}_count{{{labels}}} {so_far}"


class Meter:
    """What the server has done since it started."""

    def __init__(self, model: str) -> None:
        self._labels = f'engine="0",model_name="{model}"'
        self._histograms = {name: _Histogram(bounds) for name, bounds in BUCKETS_S.items()}
        self._finished: dict[str, int] = {"stop": 0, "length": 0, "abort": 0}
        self._prompt_tokens = 0
        self._generated_tokens = 0
        self.running = 0
        self.waiting = 0

    def finished(self, course: Course) -> None:
        """Counts one request that went its way to the last token."""
        self._finished[course.finish_reason] += 1
        self._prompt_tokens += course.prompt_tokens
        self._generated_tokens += len(course.tokens)
        if not course.tokens:
            return
        first, last = course.tokens[0], course.tokens[-1]
        for name, value in (
            (FIRST_TOKEN, first - course.arrived),
            (END_TO_END, last - course.arrived),
            (INFERENCE, last - course.scheduled),
            (QUEUE, course.scheduled - course.arrived),
            (PREFILL, first - course.scheduled),
            (DECODE, last - first),
        ):
            self._histograms[name].add(value)
        for earlier, later in zip(course.tokens, course.tokens[1:], strict=False):
            self._histograms[INTER_TOKEN].add(later - earlier)

    def aborted(self) -> None:
        """Counts one request whose client went away."""
        self._finished["abort"] += 1

    def exposition(self) -> str:
        """The text exposition, format 0.0.4."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        labels = self._labels
        for name, histogram in self._histograms.items():
            yield from histogram.lines(name, labels)
        for name, gauge in (
            ("vllm:num_requests_running", self.running),
            ("vllm:num_requests_waiting", self.waiting),
            ("vllm:kv_cache_usage_perc", 0.0),
        ):
            yield f"# TYPE {name} gauge"
            yield f"{name}{{{labels}}} {gauge}"
        for name, counter in (
            ("vllm:prompt_tokens", self._prompt_tokens),
            ("vllm:generation_tokens", self._generated_tokens),
        ):
            yield f"# TYPE {name}_total counter"
            yield f"{name}_total{{{labels}}} {counter}"
        yield "# TYPE vllm:request_success_total counter"
        for reason, count in self._finished.items():
            yield f'vllm:request_success_total{{{labels},finished_reason="{reason}"}} {count}'
