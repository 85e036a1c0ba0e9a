"""The virtual server: what requests to a scenario's target look like on the tape, mark by mark."""

from collections.abc import Iterator

from hopscope.model.limits import MS
from hopscope.model.plan import HttpTask
from hopscope.model.record import ErrorClass, Exchange
from virtual.scenario import Scenario

LOOKUP_NS = 3 * MS
BODY_NS = MS // 10
CRYPTO_NS = MS

UNCONNECTED: frozenset[ErrorClass] = frozenset({"refused", "unreachable", "prohibited", "timeout", "dns"})


def exchanges(scenario: Scenario, number: int, task: HttpTask, start: int) -> Iterator[tuple[int, Exchange]]:
    """Each request of a task with the instant at which it is over."""
    now = start
    for seq in range(task.cold + task.hot):
        now, exchange = _exchange(scenario, task, number, seq, now)
        yield now, exchange


def _exchange(scenario: Scenario, task: HttpTask, number: int, seq: int, now: int) -> tuple[int, Exchange]:
    """One request: its marks follow from the round trip and the server's time."""
    http, rtt = scenario.http, int(scenario.target.rtt_ms * MS)
    cold = seq < task.cold
    error = http.error
    connection = seq if cold else task.cold
    dialled = now if cold else None
    if error in UNCONNECTED:
        over = now + (task.timeout_ns if error == "timeout" else rtt)
        return over, Exchange(
            task=number, seq=seq, cold=cold, connection=connection, scheduled=now, dialled=now, error=error,
            detail=http.detail,
        )  # fmt: skip
    connected = now + rtt if cold else None
    if error == "tls":
        return now + 2 * rtt, Exchange(
            task=number, seq=seq, cold=cold, connection=connection, scheduled=now, dialled=dialled,
            connected=connected, error=error, detail=http.detail,
        )  # fmt: skip
    secured = now + 2 * rtt + CRYPTO_NS if cold and task.url.startswith("https:") else None
    ready = secured or connected or now
    slow = http.slow_every is not None and seq % http.slow_every == 0
    thinking = int((http.slow_ms if slow else http.server_ms) * MS)
    head = None if error else ready + rtt + thinking
    done = ready + task.timeout_ns if head is None else head + BODY_NS
    return done, Exchange(
        task=number, seq=seq, cold=cold, connection=connection, scheduled=now, dialled=dialled, connected=connected,
        secured=secured, sent_first=ready, sent_last=ready, head=head, done=None if error else done, clock="kernel",
        level=2, min_rtt_ns=rtt, rtt_ns=rtt, status=None if error else http.status, error=error, detail=http.detail,
    )  # fmt: skip
