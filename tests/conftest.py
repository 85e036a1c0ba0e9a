"""What every test may rely on, and what none may do.

A test opens no network socket unless its marker says that it does. A tier that cannot run skips and says why; where
CI=true it must run, so there such a skip is a failure.
"""

import os
import socket
from collections.abc import Generator

import hypothesis
import pytest

IN_CI = os.environ.get("CI") == "true"

MAY_OPEN_SOCKETS = {"loopback", "lab", "services", "browser"}
MUST_RUN_IN_CI = {"lab", "services", "browser"}
NETWORK_FAMILIES = {socket.AF_INET, socket.AF_INET6, getattr(socket, "AF_PACKET", socket.AF_INET)}

hypothesis.settings.register_profile("everywhere", deadline=None, derandomize=IN_CI)
hypothesis.settings.load_profile("everywhere")


@pytest.fixture(autouse=True)
def _no_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse network sockets to a test without a marker for them; socket pairs and Unix sockets stay."""
    if MAY_OPEN_SOCKETS & {mark.name for mark in request.node.iter_markers()}:
        return
    create = socket.socket.__init__

    def refuse(
        self: socket.socket,
        family: int = -1,
        type: int = -1,  # noqa: A002 - callers name it
        proto: int = -1,
        fileno: int | None = None,
    ) -> None:
        if fileno is None and (family == -1 or family in NETWORK_FAMILIES):
            pytest.fail(f"a network socket in a test marked none of {', '.join(sorted(MAY_OPEN_SOCKETS))}")
        create(self, family, type, proto, fileno)

    monkeypatch.setattr(socket.socket, "__init__", refuse)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure where CI must run the tier."""
    report = yield
    tiers = MUST_RUN_IN_CI & {mark.name for mark in item.iter_markers()}
    if IN_CI and report.skipped and tiers and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"marked {', '.join(sorted(tiers))}, so it must run in CI: {_why(report)}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn the skip of a whole file into a failure in CI, since the tiers of its tests cannot be read."""
    report = yield
    if IN_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skips all its tests, and CI cannot tell which tiers: {_why(report)}"
    return report


def _why(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Say the reason that a skipped test gave."""
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
