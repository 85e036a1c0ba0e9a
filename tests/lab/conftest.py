"""What the lab's tests share: the right to make one, and a pinger inside it."""

import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from hopscope.lab.box import Lab
from hopscope.lab.namespaces import missing, rights

PROBER = Path(__file__).with_name("prober.py")
IN_USER_NAMESPACE = "test_the_whole_lab_suite_in_a_user_namespace"


class Fate(msgspec.Struct, frozen=True):
    """What became of one probe; see prober.py."""

    kind: int | None
    source: str | None
    rtt_ms: float | None
    at_ms: float


Probe = Callable[[Lab, str, str, int, float, int], list[Fate]]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves to an ordinary user the one test that runs all others here in a user namespace; root does not need it."""
    mine = [item for item in items if item.path.parent == PROBER.parent and item.get_closest_marker("lab")]
    root = rights() == "root"
    left_out = [item for item in mine if (item.name == IN_USER_NAMESPACE) == root]
    if rights() != "none":
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(autouse=True)
def _may(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("lab") and missing():
        pytest.skip("; ".join(missing()))


@pytest.fixture(scope="session")
def probe() -> Probe:
    """`probe(lab, node, destination, count, interval_ms, ttl)`: pings from a node."""

    def run(lab: Lab, node: str, destination: str, count: int, interval_ms: float, ttl: int) -> list[Fate]:
        argv = [sys.executable, str(PROBER), destination, str(count), str(interval_ms), str(ttl)]
        done = lab.exec(node, argv, timeout_s=60, check=True)
        return msgspec.json.decode(done.stdout, type=list[Fate])

    return run
