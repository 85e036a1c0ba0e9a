"""The demo's network really has its planted faults, where `planted` says they are."""

import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from hopscope.lab.box import Lab
from hopscope.lab.demo import (
    BEFORE_LIMITER,
    CLEAN_TARGET,
    LOSSY_TARGET,
    SLOW_TARGET,
    TARGETS,
    THINK_MS,
    YOU,
    demo_targets,
    demo_topology,
    planted,
)
from hopscope.lab.layout import lay_out

if TYPE_CHECKING:
    from lab.conftest import Probe

ECHO_REPLY, TIME_EXCEEDED = 0, 11
ASK = """
import ssl, sys, time, urllib.request as request
context = ssl.create_default_context(cafile=sys.argv[2])
start = time.monotonic()
answer = request.urlopen(sys.argv[1] + "/models", context=context, timeout=20)
print(answer.status, time.monotonic() - start)
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab(demo_topology(), seed=1) as running:
        yield running


def test_the_planted_hops_stand_in_the_drawn_order() -> None:
    layout = lay_out(demo_topology())
    truth = planted(layout)
    assert truth.before_limiter.node == BEFORE_LIMITER
    assert truth.before_limiter.ttl == truth.limiter.ttl - 1 == truth.first_lossy.ttl - 2
    assert truth.last_clean == truth.limiter
    assert layout.path(YOU, LOSSY_TARGET)[-1].ttl == truth.first_lossy.ttl + 1
    assert truth.segment_is_right(truth.limiter.ttl, truth.first_lossy.ttl)
    assert truth.segment_is_right(truth.before_limiter.ttl, truth.first_lossy.ttl)
    assert not truth.segment_is_right(truth.before_limiter.ttl, truth.limiter.ttl)
    assert not truth.segment_is_right(truth.first_lossy.ttl, truth.first_lossy.ttl + 1)


@pytest.mark.lab
def test_the_targets_are_a_target_file_that_names_them_all(lab: Lab) -> None:
    text = tomllib.loads(demo_targets(lab))
    assert text["defaults"]["probes"] == ["ping", "trace", "http"]
    assert [(target["name"], target["url"]) for target in text["target"]] == [
        (name, f"https://{lab.address(name)}/v1") for name in TARGETS
    ]
    assert {target["ca_file"] for target in text["target"]} == {str(lab.ca_file)}


@pytest.mark.lab
@pytest.mark.parametrize(("target", "rtt_ms"), [(CLEAN_TARGET, 8), (LOSSY_TARGET, 20), (SLOW_TARGET, 60)])
def test_round_trips_are_the_drawn_ones(lab: Lab, probe: "Probe", target: str, rtt_ms: float) -> None:
    fates = probe(lab, YOU, lab.address(target), 50, 10, 64)
    found = [fate.rtt_ms for fate in fates if fate.rtt_ms is not None]
    assert min(found) / rtt_ms > 0.97
    assert sorted(found)[len(found) // 4] / rtt_ms < 1.25  # a busy machine delays the rest
    assert (len(found) == 50) == (target != LOSSY_TARGET)


@pytest.mark.lab
def test_loss_begins_behind_the_limiter_and_only_the_limiter_limits(lab: Lab, probe: "Probe") -> None:
    truth = planted(lab.layout)
    address, hops = lab.address(LOSSY_TARGET), lab.layout.path(YOU, LOSSY_TARGET)
    with ThreadPoolExecutor() as pool:
        rows = list(pool.map(lambda hop: probe(lab, YOU, address, 100, 10, hop.ttl), hops))
    answered: dict[int, int] = {}
    for hop, fates in zip(hops, rows, strict=True):
        answered[hop.ttl] = sum(fate.kind is not None for fate in fates)
        kind = ECHO_REPLY if hop.node == LOSSY_TARGET else TIME_EXCEEDED
        assert {(fate.kind, fate.source) for fate in fates if fate.kind is not None} == {(kind, hop.address)}
    assert [answered[ttl] for ttl in range(1, truth.limiter.ttl)] == [100] * (truth.limiter.ttl - 1)
    assert 6 <= answered[truth.limiter.ttl] <= 13  # a bucket of six and four more in the second
    for ttl in (truth.first_lossy.ttl, truth.first_lossy.ttl + 1):
        assert 70 <= answered[ttl] <= 98  # binomial(100, 0.88) leaves this range once in 10^6 seeds


@pytest.mark.lab
@pytest.mark.parametrize(
    ("target", "at_least_s", "at_most_s"),
    [(CLEAN_TARGET, 0.02, 1.0), (SLOW_TARGET, THINK_MS / 1e3 + 0.18, THINK_MS / 1e3 + 1.0)],
)
def test_the_servers_answer_over_tls_and_one_takes_its_time(
    lab: Lab, target: str, at_least_s: float, at_most_s: float
) -> None:
    argv = [sys.executable, "-c", ASK, f"https://{lab.address(target)}/v1", str(lab.ca_file)]
    status, seconds = lab.exec(YOU, argv, check=True).stdout.split()
    assert status == "200"
    assert at_least_s < float(seconds) < at_most_s
    assert [fact.path for fact in lab.truth(target, 443)] == ["/v1/models"]
