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
    BERLIN,
    CLEAN_TARGET,
    LONDON,
    LOSSY_TARGET,
    NEW_YORK,
    PLACES,
    SLOW_TARGET,
    TARGETS,
    THINK_MS,
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


@pytest.mark.parametrize("place", PLACES)
def test_the_planted_hops_stand_in_the_drawn_order(place: str) -> None:
    layout = lay_out(demo_topology())
    truth = planted(layout)
    before, limiter, lossy = (hops[place] for hops in (truth.before_limiter, truth.limiter, truth.first_lossy))
    assert before.node == BEFORE_LIMITER
    assert before.ttl == limiter.ttl - 1 == lossy.ttl - 2
    assert truth.last_clean[place] == limiter
    assert layout.path(place, LOSSY_TARGET)[-1].ttl == lossy.ttl + 1
    assert truth.segment_is_right(place, limiter.ttl, lossy.ttl)
    assert truth.segment_is_right(place, before.ttl, lossy.ttl)
    assert not truth.segment_is_right(place, before.ttl, limiter.ttl)
    assert not truth.segment_is_right(place, lossy.ttl, lossy.ttl + 1)


@pytest.mark.lab
def test_the_targets_are_a_target_file_that_names_places_and_targets(lab: Lab) -> None:
    text = tomllib.loads(demo_targets(lab, ("hopscope",)))
    assert text["defaults"]["probes"] == ["ping", "trace", "http"]
    assert [(vantage["name"], vantage["kind"], vantage["hopscope"]) for vantage in text["vantage"]] == [
        (name, "exec", ["hopscope"]) for name in PLACES
    ]
    assert [vantage["command"] for vantage in text["vantage"]] == [lab.argv(name, ()) for name in PLACES]
    assert [(target["name"], target["url"]) for target in text["target"]] == [
        (name, f"https://{lab.address(name)}/v1") for name in TARGETS
    ]
    assert {target["ca_file"] for target in text["target"]} == {str(lab.ca_file)}
    assert all({"lat", "lon", "name"} == set(one["site"]) for one in (*text["vantage"], *text["target"]))


@pytest.mark.lab
@pytest.mark.parametrize(
    ("place", "target", "rtt_ms"),
    [
        (BERLIN, CLEAN_TARGET, 8),
        (BERLIN, LOSSY_TARGET, 20),
        (LONDON, CLEAN_TARGET, 16),
        (NEW_YORK, CLEAN_TARGET, 75),
        (NEW_YORK, SLOW_TARGET, 10),
    ],
)
def test_round_trips_are_the_drawn_ones(lab: Lab, probe: "Probe", place: str, target: str, rtt_ms: float) -> None:
    fates = probe(lab, place, lab.address(target), 50, 10, 64)
    found = [fate.rtt_ms for fate in fates if fate.rtt_ms is not None]
    assert min(found) / rtt_ms > 0.97
    assert sorted(found)[len(found) // 4] / rtt_ms < 1.25  # a busy machine delays the rest
    assert (len(found) == 50) == (target != LOSSY_TARGET)


@pytest.mark.lab
def test_loss_begins_behind_the_limiter_and_only_the_limiter_limits(lab: Lab, probe: "Probe") -> None:
    limiter = planted(lab.layout).limiter[BERLIN].ttl
    address, hops = lab.address(LOSSY_TARGET), lab.layout.path(BERLIN, LOSSY_TARGET)
    with ThreadPoolExecutor() as pool:
        rows = list(pool.map(lambda hop: probe(lab, BERLIN, address, 100, 10, hop.ttl), hops))
    answered: dict[int, int] = {}
    for hop, fates in zip(hops, rows, strict=True):
        answered[hop.ttl] = sum(fate.kind is not None for fate in fates)
        kind = ECHO_REPLY if hop.node == LOSSY_TARGET else TIME_EXCEEDED
        assert {(fate.kind, fate.source) for fate in fates if fate.kind is not None} == {(kind, hop.address)}
    assert [answered[ttl] for ttl in range(1, limiter)] == [100] * (limiter - 1)
    assert 6 <= answered[limiter] <= 13  # a bucket of six and four more in the second
    for ttl in (limiter + 1, limiter + 2):
        assert 70 <= answered[ttl] <= 98  # binomial(100, 0.88) leaves this range once in 10^6 seeds


@pytest.mark.lab
@pytest.mark.parametrize(
    ("target", "at_least_s", "at_most_s"),
    [(CLEAN_TARGET, 0.02, 1.0), (SLOW_TARGET, THINK_MS / 1e3 + 0.23, THINK_MS / 1e3 + 1.0)],
)
def test_the_servers_answer_over_tls_and_one_takes_its_time(
    lab: Lab, target: str, at_least_s: float, at_most_s: float
) -> None:
    argv = [sys.executable, "-c", ASK, f"https://{lab.address(target)}/v1", str(lab.ca_file)]
    status, seconds = lab.exec(BERLIN, argv, check=True).stdout.split()
    assert status == "200"
    assert at_least_s < float(seconds) < at_most_s
    assert [fact.path for fact in lab.truth(target, 443)] == ["/v1/models"]
