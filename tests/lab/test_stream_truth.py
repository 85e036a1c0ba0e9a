"""What the stream probe says of a server, beside what that server wrote down about itself.

The server's own truth is the time from the last byte of the request to the first token written. Bounds are ratios and
generous; the figures are printed.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import msgspec
import pytest

from hopscope.analysis import stream
from hopscope.lab.box import Lab
from hopscope.lab.orders import Truth
from hopscope.lab.topology import Client, Host, Impairment, Inference, Link, Topology
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import StreamTask
from hopscope.model.record import Streamed
from hopscope.model.report import StreamRequest

pytestmark = [pytest.mark.lab, pytest.mark.slow]

STREAMER = Path(__file__).with_name("streamer.py")
ONE_WAY_MS = 30.0
QUEUE_MS, PREFILL_MS, PER_TOKEN_MS, TOKENS = 40.0, 110.0, 20.0, 8
PLAIN_PORT, TLS_PORT = 8000, 8443
HOT = 10
WORST_MEDIAN_MS = 10.0


def server(port: int, *, secured: bool) -> Inference:
    return Inference(
        port=port,
        tls="lab-ca" if secured else None,
        queue_ms=QUEUE_MS,
        prefill_ms=PREFILL_MS,
        per_token_ms=PER_TOKEN_MS,
        tokens=TOKENS,
    )


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    far = Impairment(delay_ms=ONE_WAY_MS)
    servers = (server(PLAIN_PORT, secured=False), server(TLS_PORT, secured=True))
    nodes = (Client(name="you"), Host(name="gpu", servers=servers))
    with Lab(Topology(nodes=nodes, links=(Link(a="you", b="gpu", forward=far, back=far),)), seed=1) as running:
        yield running


def asked(lab: Lab, port: int, scheme: str) -> list[Streamed]:
    """One cold and many hot completions, asked for inside the client."""
    address = lab.address("gpu")
    task = StreamTask(
        target="t",
        vantage="here",
        reason="asked",
        address=address,
        family=4,
        port=port,
        url=f"{scheme}://{address}:{port}/v1",
        cold=1,
        hot=HOT,
        timeout_ns=10 * SECOND,
        seed=7,
        ca_file=str(lab.ca_file) if scheme == "https" else None,
    )
    done = lab.exec(
        "you", [sys.executable, str(STREAMER), msgspec.json.encode(task).decode()], timeout_s=60, check=True
    )
    return [msgspec.json.decode(line, type=Streamed) for line in done.stdout.splitlines()]


def to_first_token_ms(truth: Truth) -> float:
    assert truth.first_token is not None
    return (truth.first_token.monotonic_ns - truth.last_in.monotonic_ns) / MS


def errors_ms(requests: Sequence[StreamRequest], truths: Sequence[Truth]) -> list[float]:
    """How far each estimate is from the truth."""
    found: list[float] = []
    for request, truth in zip(requests, truths, strict=True):
        assert request.ttft_server is not None
        assert request.ttft_server.estimate_ms is not None
        found.append(abs(request.ttft_server.estimate_ms - to_first_token_ms(truth)))
    return found


@pytest.mark.parametrize(("port", "scheme"), [(PLAIN_PORT, "http"), (TLS_PORT, "https")])
def test_the_time_of_the_server_is_found_behind_60_ms(
    lab: Lab, port: int, scheme: str, capsys: pytest.CaptureFixture[str]
) -> None:
    streams = asked(lab, port, scheme)
    truths = [truth for truth in lab.truth("gpu", port) if truth.path == "/v1/chat/completions"]
    assert [each.exchange.error for each in streams] == [None] * (1 + HOT)
    assert [(each.model, each.models_listed) for each in streams] == [("stand-in", 1)] * (1 + HOT)
    requests = [stream.request(each, None) for each in streams]

    errors = errors_ms(requests, truths)
    with capsys.disabled():
        print(f"\nttft_server over {scheme}: error p50 {median(errors):.2f} ms, worst {max(errors):.2f} ms")  # noqa: T201
    assert median(errors) < WORST_MEDIAN_MS
    assert all(each.token_source == "usage" and each.finish_reason == "stop" for each in requests)
    assert [each.tokens_out for each in requests] == [truth.tokens for truth in truths]
    whole = [2 * ONE_WAY_MS + to_first_token_ms(truth) for truth in truths]
    ratios = [(each.ttft_ms or 0) / expected for each, expected in zip(requests, whole, strict=True)]
    assert median(ratios) == pytest.approx(1, abs=0.1)

    got = stream.summary(streams, None)
    assert got.server.p50_ms is not None
    assert got.network.p50_ms is not None
    assert got.tpot.p50_ms is not None
    assert got.server.p50_ms < QUEUE_MS  # the head goes out at once, the token later
    assert got.network.p50_ms / (2 * ONE_WAY_MS) == pytest.approx(1, abs=0.2)
    assert got.tpot.p50_ms / PER_TOKEN_MS == pytest.approx(1, abs=0.2)
