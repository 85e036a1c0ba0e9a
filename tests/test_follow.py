"""What records make worth doing, as a table: never twice, and less each time (method 2.12, 3.3, 4.2, 4.3)."""

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from analysis import notation
from analysis.notation import ADDRESS, PING, TRACE, book, losing, opened, ping, target, times, trace
from hopscope.follow import follow
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import (
    Budget,
    HttpTask,
    PingTask,
    Plan,
    ResolveTask,
    RouteTask,
    Target,
    Task,
    TraceTask,
    Vantage,
)
from hopscope.model.record import Begin, Done, Exchange, Failure, Record, Resolved, Routed
from hopscope.tape import gather
from hopscope.targets.tasks import COLD, HOT, series

RESOLVE = ResolveTask(target="it", vantage="here", reason="asked", host=ADDRESS)
RESOLVED: list[Record] = [
    Begin(id=90, at=0, task=RESOLVE),
    Resolved(task=90, at=0, addresses=(ADDRESS, "2001:db8::9"), took_ns=3),
    Done(task=90, at=0),
]


def plan(*targets: Target) -> Plan:
    """A plan without what vouches for a place, which is asked in the last tests alone."""
    return replace(notation.plan(*targets), command="ping")


def wanted(what: Plan, *records: Iterable[Record]) -> tuple[Task, ...]:
    return follow(what, book(*records, what=what))


def further(it: Target, *records: Iterable[Record]) -> list[Task]:
    """What a target's records ask for, the first tasks aside."""
    return [task for task in wanted(plan(it), *records) if task.reason != "asked"]


# First tasks


def test_a_run_begins_by_asking_for_names() -> None:
    both = (Vantage(name="here", kind="local"), Vantage(name="there", kind="ssh"))
    targets = (target(), Target(name="two", host="gpu.example", family=6, resolve_to="192.0.2.5"))
    got = wanted(replace(plan(*targets), vantages=both))
    assert got == tuple(
        task
        for vantage in ("here", "there")
        for task in (
            replace(RESOLVE, vantage=vantage),
            ResolveTask(target="two", vantage=vantage, reason="asked", host="192.0.2.5", family=6),
        )
    )


def test_an_address_is_pinged_and_traced() -> None:
    assert wanted(plan(), RESOLVED) == (
        replace(
            PING, count=50, interval_ns=200 * MS, threshold_ns=2 * SECOND, flows=4
        ),
        replace(TRACE, rounds=20, interval_ns=500 * MS, threshold_ns=2 * SECOND),
    )  # fmt: skip


def test_every_key_of_a_target_reaches_its_tasks() -> None:
    it = Target(
        name="it", host=ADDRESS, port=8443, url="https://gpu.example/v1?x=1", path="/health",
        probes=("ping", "trace", "http"),
        count=7, interval_ns=5, warmup=False, rounds=9, round_interval_ns=6, first_ttl=2, max_ttl=11, size=99, dscp=46,
        ttl=12, flows=2, threshold_ns=3, method="POST", body_file="b", headers=(("a", "b"),), headers_env=(("c", "D"),),
        api_key_env="K", ca_file="ca", insecure=True, http2=True, cold=2, hot=4,
    )  # fmt: skip
    icmp, tcp, path, http = wanted(plan(it), RESOLVED)
    assert icmp == replace(
        PING, count=7, interval_ns=5, threshold_ns=3, warmup=False, size=99, dscp=46, ttl=12, flows=2
    )
    assert tcp == replace(icmp, protocol="tcp", port=8443)
    assert path == replace(TRACE, rounds=9, interval_ns=6, threshold_ns=3, first_ttl=2, max_ttl=11, size=99)
    assert http == HttpTask(
        target="it", vantage="here", reason="asked", address=ADDRESS, family=4, port=8443, url="https://gpu.example/health",
        cold=2, hot=4, timeout_ns=15 * SECOND, dns_ns=3, method="POST", body_file="b", headers=(("a", "b"),),
        headers_env=(("c", "D"),), api_key_env="K", ca_file="ca", insecure=True, http2=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("it", "expected"),
    [
        (target(), [("icmp", None, 4)]),
        (target(port=443), [("icmp", None, 4), ("tcp", 443, 1)]),
        (Target(name="it", host=ADDRESS, port=443, protocol="icmp"), [("icmp", None, 4)]),
        (Target(name="it", host=ADDRESS, port=443, protocol="tcp"), [("tcp", 443, 1)]),
        (Target(name="it", host=ADDRESS, probes=("trace",)), []),
        (Target(name="it", host=ADDRESS, probes=("http",)), []),
    ],
)
def test_protocols_of_the_series(it: Target, expected: list[tuple[str, int | None, int]]) -> None:
    got = wanted(plan(it), RESOLVED)
    assert [(one.protocol, one.port, one.flows) for one in got if isinstance(one, PingTask)] == expected


@pytest.mark.parametrize(("url", "port"), [("https://gpu.example/v1", 443), ("http://gpu.example/v1", 80)])
def test_requests_by_default(url: str, port: int) -> None:
    (http,) = wanted(plan(Target(name="it", host=ADDRESS, url=url, probes=("http",))), RESOLVED)
    assert isinstance(http, HttpTask)
    assert (http.port, http.url, http.cold, http.hot) == (port, url, COLD, HOT)


def test_all_addresses_and_their_families() -> None:
    got = wanted(plan(replace(target(), all_addresses=True)), RESOLVED)
    assert [(one.address, one.family) for one in got if isinstance(one, PingTask | TraceTask)] == [
        (ADDRESS, 4),
        (ADDRESS, 4),
        ("2001:db8::9", 6),
        ("2001:db8::9", 6),
    ]


def test_no_address_no_tasks() -> None:
    failed: list[Record] = [Begin(id=90, at=0, task=RESOLVE), Resolved(task=90, at=0, error="NXDOMAIN")]
    assert wanted(plan(), failed) == ()
    assert wanted(plan(), failed[:1]) == ()


@pytest.mark.parametrize(("targets", "interval_ms"), [(1, 500), (2, 500), (3, 600), (10, 2000)])
def test_many_traces_ask_shared_routers_no_more_than_five_a_second(targets: int, interval_ms: int) -> None:
    names = [replace(target(), name="it" if n == 0 else str(n)) for n in range(targets)]
    (first,) = [one for one in wanted(plan(*names), RESOLVED) if isinstance(one, TraceTask)]
    assert first.interval_ns == interval_ms * MS


def test_a_series_of_one_has_no_warm_up_nor_has_a_continuation() -> None:
    assert series(replace(target(), count=1), "here", ADDRESS, "icmp", None, reason="asked").warmup is False
    assert series(target(), "here", ADDRESS, "icmp", None, reason="asked").warmup is True
    assert series(target(), "here", ADDRESS, "icmp", None, reason="more", first_seq=50).warmup is False


# Fallbacks


@pytest.mark.parametrize(
    ("text", "ports"),
    [(". . .", [443, 80]), ("~ ~", [443, 80]), ("5 . .", []), ("u1 u1", [443, 80])],
)
def test_icmp_silence_is_asked_again_by_tcp(text: str, ports: list[int]) -> None:
    got = further(target(), RESOLVED, ping(text))
    assert [one.port for one in got if isinstance(one, PingTask) and one.protocol == "tcp"] == ports


def test_no_fallback_where_the_user_chose_or_a_port_is_asked_already_or_it_still_runs() -> None:
    silent = ping(". . .")
    assert further(replace(target(), protocol="icmp"), RESOLVED, silent) == []
    assert further(target(port=22), RESOLVED, silent, ping("5", 2, protocol="tcp", port=22)) == []
    assert further(target(), RESOLVED, silent[:-1]) == []
    assert further(replace(target(), probes=("trace",)), RESOLVED, silent) == []


def test_no_right_to_ping_is_a_reason_for_tcp() -> None:
    refused = Failure(kind="rights", why="no socket", target="it", vantage="here", task=1)
    begun: list[Record] = [Begin(id=1, at=0, task=PING), refused, Done(task=1, at=1, complete=False)]
    got = further(target(), RESOLVED, begun)
    assert [one.port for one in got if isinstance(one, PingTask)] == [443, 80]


# More probes (2.12)


@pytest.mark.parametrize(
    ("lost", "sent", "expected"),
    [
        (0, 50, None),
        (1, 50, (50, 50)),
        (3, 50, (50, 50)),
        (4, 50, None),  # shown against 1 %
        (1, 20, (20, 30)),
        (1, 35, (35, 15)),
        (1, 100, (100, 100)),
        (1, 200, (200, 100)),
        (1, 299, (299, 1)),
        (1, 300, None),
        (50, 50, None),  # no answer: that is another row's
    ],
)
def test_a_loss_makes_a_series_go_on_to_its_next_look(lost: int, sent: int, expected: tuple[int, int] | None) -> None:
    got = further(target(), RESOLVED, ping(losing(lost, sent)))
    more = [one for one in got if isinstance(one, PingTask) and one.protocol == "icmp"]
    assert [(one.first_seq, one.count, one.reason) for one in more] == ([(*expected, "undecided")] if expected else [])
    exact = further(replace(target(), count=sent), RESOLVED, ping(losing(lost, sent)))
    assert [one for one in exact if one.reason == "undecided"] == []


@pytest.mark.parametrize(
    ("over", "budget", "more"),
    [
        (0, Budget(rtt_p95_ms=4), False),
        (2, Budget(rtt_p95_ms=4), False),  # 4 % are over where 5 % may be: the point value decides
        (3, Budget(rtt_p95_ms=4), True),  # likely missed
        (6, Budget(rtt_p95_ms=4), False),  # shown
        (3, Budget(), False),
        (3, Budget(ttfb_p95_ms=4), False),  # no ping decides that
    ],
)
def test_a_budget_that_seems_missed_makes_a_series_go_on(over: int, budget: Budget, more: bool) -> None:
    text = f"{times(over, '9')} {times(50 - over, '1')}"
    for it in (target(budget), target(critical=budget)):
        assert [one.reason for one in further(it, RESOLVED, ping(text))] == (["undecided"] if more else [])


def test_requests_over_their_budget_do_not_make_pings_go_on() -> None:
    task = HttpTask(
        target="it", vantage="here", reason="asked", address=ADDRESS, family=4, port=443, url="https://x", cold=1,
        hot=0, timeout_ns=1,
    )  # fmt: skip
    slow = Exchange(task=5, seq=0, cold=True, connection=0, scheduled=0, sent_first=0, sent_last=0, head=SECOND)
    asked: list[Record] = [Begin(id=5, at=0, task=task), slow, Done(task=5, at=1)]
    assert further(target(Budget(ttfb_p95_ms=1)), RESOLVED, ping(times(50, "1")), asked) == []


def test_only_the_series_that_lost_goes_on() -> None:
    records = [ping(times(50, "1"), 1), ping(losing(1, 50), 2, protocol="tcp", port=443)]
    (more,) = further(target(port=443), RESOLVED, *records)
    assert isinstance(more, PingTask)
    assert (more.protocol, more.port, more.first_seq) == ("tcp", 443, 50)


def test_only_the_series_that_a_budget_is_held_against_goes_on_for_it() -> None:
    slow = f"{times(3, '9')} {times(47, '1')}"
    records = [ping(slow, 1), ping(times(50, "1"), 2, protocol="tcp", port=443)]
    (more,) = further(target(Budget(rtt_p95_ms=4), port=443), RESOLVED, *records)
    assert isinstance(more, PingTask)
    assert more.protocol == "icmp"


def test_a_series_that_still_runs_is_left_alone() -> None:
    assert further(target(), RESOLVED, ping(losing(1, 50))[:-1]) == []


# More rounds (4.2) and confirmations (4.3)


def rows(*lost: int, sent: int = 20) -> dict[int, str]:
    """The losses of TTL 1, 2, … over `sent` rounds, spread evenly; the last row is the target."""
    spread = {
        ttl: " ".join("." if (i * some) // sent != ((i + 1) * some) // sent else "1" for i in range(sent))
        for ttl, some in enumerate(lost, start=1)
    }
    assert [text.split().count(".") for text in spread.values()] == list(lost)
    return spread


@pytest.mark.parametrize(
    ("lost", "sent", "expected"),
    [
        ((0, 0, 0), 20, None),
        ((0, 0, 1), 20, (20, 30)),
        ((0, 0, 1), 50, (50, 50)),
        ((0, 0, 1), 100, (100, 100)),
        ((0, 0, 1), 200, (200, 100)),
        ((0, 0, 1), 300, None),
        ((0, 8, 8), 20, None),  # decided
        ((9, 0, 0), 20, None),  # a limiter before a clean end
    ],
)
def test_a_path_whose_end_loses_goes_on(lost: tuple[int, ...], sent: int, expected: tuple[int, int] | None) -> None:
    got = further(target(), RESOLVED, trace(rows(*lost, sent=sent), end=3))
    more = [one for one in got if isinstance(one, TraceTask) and one.confirm is None]
    assert [(one.first_round, one.rounds, one.distance) for one in more] == ([(*expected, 3)] if expected else [])
    exact = further(replace(target(), rounds=sent), RESOLVED, trace(rows(*lost, sent=sent), end=3))
    assert exact == []


@pytest.mark.parametrize(
    ("lost", "sent", "asked_s", "expected"),
    [
        # TTL 2 limits its replies inside the segment (1, 3]; asked once a second it answers 40 %: half is 0.2/s
        ((0, 60, 20, 20), 100, 1.0, [(2, 5.0)]),
        ((0, 60, 20, 20), 100, 0.1, [(2, 0.5)]),  # at most 2/s
        ((0, 60, 20, 20), 100, 0.5, [(2, 2.5)]),
        ((60, 0, 20, 20), 100, 1.0, []),  # before the segment it hides nothing
        ((0, 0, 20, 60, 20), 100, 1.0, []),
        ((0, 60, 0, 0), 100, 1.0, []),
        ((0, 0, 20, 20), 100, 1.0, []),
        ((0, 24, 20, 20), 100, 1.0, [(2, 2.6)]),  # loss seems to begin there, with more of it than beyond
    ],
)
def test_who_limits_replies_in_doubt_is_asked_slowly(
    lost: tuple[int, ...], sent: int, asked_s: float, expected: list[tuple[int, float]]
) -> None:
    it = replace(target(), rounds=sent)
    got = further(it, RESOLVED, trace(rows(*lost, sent=sent), end=len(lost), slow_s=asked_s))
    assert all(isinstance(one, TraceTask) and one.rounds == 30 for one in got)
    asked = [one for one in got if isinstance(one, TraceTask)]
    assert [one.confirm for one in asked] == [ttl for ttl, _ in expected]
    intervals = [one.interval_ns / SECOND for one in asked]
    assert intervals == pytest.approx([interval for _, interval in expected], abs=0.05)


def test_the_rate_of_answers_is_that_after_the_first_burst() -> None:
    burst = " ".join(["1"] * 30 + [". . . . 1"] * 14)
    path = {**rows(0, 0, 20, 20, sent=100), 2: burst}
    (confirm,) = further(replace(target(), rounds=100), RESOLVED, trace(path, end=4))
    assert isinstance(confirm, TraceTask)
    assert (confirm.confirm, confirm.interval_ns) == (2, 10 * SECOND)  # one in five, not 44 of 100


def test_confirmations_wait_for_the_rounds_that_would_use_up_the_replies() -> None:
    undecided = trace(rows(0, 60, 4, 6, sent=100), end=4)
    got = further(target(), RESOLVED, undecided)
    assert [one.confirm for one in got if isinstance(one, TraceTask)] == [None]
    done = further(replace(target(), rounds=100), RESOLVED, undecided)
    assert [one.confirm for one in done if isinstance(one, TraceTask)] == [2]
    assert further(replace(target(), rounds=100), RESOLVED, undecided[:-1]) == []


def test_a_hop_is_asked_slowly_once() -> None:
    fast = trace(rows(0, 60, 20, 20, sent=100), end=4)
    for slow in (times(30, "1"), losing(25, 30), times(30, ".")):
        confirmed = trace({2: slow}, 3, end=4, confirm=2)
        assert further(replace(target(), rounds=100), RESOLVED, fast, confirmed) == []


# Never twice, and less each time

WORDS = st.lists(st.sampled_from(["1", "9", ".", "~", "!", "r1", "u1", "u13", "x"]), min_size=1, max_size=30)
TEXT = WORDS.map(" ".join)
BUDGETS = [Budget(), Budget(rtt_p95_ms=5)]


@settings(max_examples=60)
@given(TEXT, TEXT, st.lists(TEXT, min_size=1, max_size=5), st.booleans(), st.sampled_from(BUDGETS))
def test_follow_shrinks_to_nothing(icmp: str, tcp: str, hops: list[str], port: bool, budget: Budget) -> None:
    it = target(budget, port=443 if port else None)
    records = [*opened(plan(it)), *RESOLVED, *ping(icmp, 1), *trace(dict(enumerate(hops, start=1)), 2, end=len(hops))]
    if port:
        records += ping(tcp, 3, protocol="tcp", port=443)
    seen: list[Task] = []
    for number in range(100, 200):
        tasks = follow(plan(it), gather(records))
        if not tasks:
            break
        assert all(task not in seen for task in tasks)
        seen += tasks
        for offset, task in enumerate(tasks):
            task_id = number * 100 + offset
            records += [Begin(id=task_id, at=number, task=task), Done(task=task_id, at=number, complete=False)]
    assert follow(plan(it), gather(records)) == ()


@pytest.mark.parametrize(
    ("icmp", "tcp", "more"),
    [
        (losing(0, 50), losing(4, 50), ["icmp", "tcp"]),
        (losing(0, 50), losing(0, 50), []),
        (losing(0, 50), losing(12, 50), []),
        (losing(4, 50), losing(5, 50), []),
        (losing(0, 300), losing(6, 300), []),
    ],
    ids=["may differ or not", "neither loses", "they differ", "both lose", "the last look is over"],
)
def test_series_that_may_differ_or_not_go_on_until_it_is_shown(icmp: str, tcp: str, more: list[str]) -> None:
    asked = further(target(port=443), RESOLVED, ping(icmp, 1), ping(tcp, 2, protocol="tcp", port=443))
    assert [task.protocol for task in asked if isinstance(task, PingTask)] == more


# What vouches for a place (method 6.5)

WAY = RouteTask(target="it", vantage="here", reason="vouches for this place", address=ADDRESS, family=4)
GATEWAY, CONTROL = "192.168.1.1", "gate.example.net"


def vouching(what: Plan, *records: Iterable[Record]) -> list[Task]:
    return [task for task in wanted(what, *records) if task.reason == WAY.reason]


def routed(gateway: str | None) -> list[Record]:
    told = Routed(task=91, at=0, interface="eth0", gateway=gateway)
    return [Begin(id=91, at=0, task=WAY), told, Done(task=91, at=0)]


@pytest.mark.parametrize("command", ["run", "check", "compare"])
def test_what_judges_targets_asks_for_the_gateway_at_the_pace_of_the_first_target(command: str) -> None:
    what = replace(plan(replace(target(), count=7, interval_ns=5 * MS), target()), command=command)
    assert vouching(what) == []
    assert vouching(what, RESOLVED) == [WAY]
    assert vouching(what, RESOLVED, routed(None)) == []
    (echoes,) = vouching(what, RESOLVED, routed(GATEWAY))
    assert isinstance(echoes, PingTask)
    assert (echoes.address, echoes.protocol, echoes.about) == (GATEWAY, "icmp", "gateway")
    assert (echoes.count, echoes.interval_ns, echoes.flows) == (7, 5 * MS, 1)
    begun: list[Record] = [Begin(id=92, at=0, task=echoes)]
    assert vouching(what, RESOLVED, routed(GATEWAY), begun) == []


def test_each_place_is_vouched_for_by_its_own_gateway() -> None:
    both = (Vantage(name="here", kind="local"), Vantage(name="there", kind="ssh"))
    what = replace(plan(), command="run", vantages=both)
    there = replace(RESOLVE, vantage="there")
    found: list[Record] = [Begin(id=93, at=0, task=there), Resolved(task=93, at=0, addresses=("192.0.2.9",))]
    assert vouching(what, RESOLVED, found) == [WAY, replace(WAY, vantage="there", address="192.0.2.9")]
    (echoes,) = vouching(
        what,
        RESOLVED,
        routed(GATEWAY),
        [*found, Begin(id=94, at=0, task=replace(WAY, vantage="there", address="192.0.2.9"))],
    )
    assert (echoes.vantage, echoes.target) == ("here", "it")


def test_controls_are_looked_up_and_asked_by_two_protocols() -> None:
    what = replace(plan(), command="run", controls=(CONTROL,))
    (lookup,) = vouching(what)
    assert lookup == ResolveTask(target=CONTROL, vantage="here", reason=WAY.reason, host=CONTROL, about="control")
    found: list[Record] = [
        Begin(id=95, at=0, task=lookup), Resolved(task=95, at=0, addresses=("198.51.100.7", "198.51.100.8")),
    ]  # fmt: skip
    asked = [task for task in vouching(what, found) if isinstance(task, PingTask)]
    assert [(task.target, task.address, task.protocol, task.port, task.about) for task in asked] == [
        (CONTROL, "198.51.100.7", "icmp", None, "control"),
        (CONTROL, "198.51.100.7", "tcp", 443, "control"),
    ]


def test_other_commands_ask_for_nothing_that_vouches() -> None:
    assert vouching(replace(plan(), controls=(CONTROL,)), RESOLVED) == []
