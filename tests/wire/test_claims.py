"""Claims of servers: units from the table, and nothing that is not a believable number gets through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.wire.claims import CLAIMS_LIMIT, HEADERS, LONGEST_MS, claims


def found(*headers: tuple[str, str]) -> list[tuple[str, float]]:
    return [(each.name, each.value_ms) for each in claims((name.encode(), value.encode()) for name, value in headers)]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("openai-processing-ms", "1234", [("openai-processing-ms", 1234.0)]),
        ("OpenAI-Processing-Ms", " 12 ", [("openai-processing-ms", 12.0)]),
        ("x-envoy-upstream-service-time", "7", [("x-envoy-upstream-service-time", 7.0)]),
        ("X-Kong-Upstream-Latency", "11", [("x-kong-upstream-latency", 11.0)]),
        ("X-Kong-Proxy-Latency", "3", [("x-kong-proxy-latency", 3.0)]),
        ("x-litellm-overhead-duration-ms", "2.75", [("x-litellm-overhead-duration-ms", 2.75)]),
        ("x-litellm-response-duration-ms", "9.5e-05", [("x-litellm-response-duration-ms", 9.5e-05)]),
        ("x-total-time", "320", [("x-total-time", 320.0)]),
        ("x-compute-time", "0.32", [("x-compute-time", 320.0)]),
        ("fireworks-server-time-to-first-token", "0.3", []),
        ("x-request-id", "17", []),
    ],
)
def test_headers(name: str, value: str, expected: list[tuple[str, float]]) -> None:
    assert found((name, value)) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("db;dur=53", [("db", 53.0)]),
        ('cache;desc="Cache Read";dur=23.2, app;dur=47.2', [("cache", 23.2), ("app", 47.2)]),
        ("gfet4t7; dur=2345", [("gfet4t7", 2345.0)]),
        ("cfEdge;dur=4,cfOrigin;dur=120", [("cfEdge", 4.0), ("cfOrigin", 120.0)]),
        (
            'cfL4;desc="?proto=TCP&rtt=5003&min_rtt=4257&rtt_var=1&lost=0&retrans=0&cwnd=54"',
            [("cfL4.rtt", 5.003), ("cfL4.min_rtt", 4.257)],
        ),
        ('tricky;desc="a,b;dur=9";dur=1', [("tricky", 1.0)]),
        ('escaped;desc="\\",x;dur=9";dur=2', [("escaped", 2.0)]),
        ('total;dur="3.5"', [("total", 3.5)]),
        ("twice;dur=1;dur=2", [("twice", 1.0)]),
        ("miss", []),
        ("bad name;dur=1", []),
        ('open;desc="never closed;dur=1', []),
        ("", []),
        (";;;,,,;dur=", []),
    ],
)
def test_server_timing(value: str, expected: list[tuple[str, float]]) -> None:
    assert found(("server-timing", value)) == expected


@pytest.mark.parametrize(
    "value",
    [
        "nan",
        "inf",
        "-inf",
        "-1",
        "1e99",
        "1e400",
        "86400001",
        "0x10",
        "1_000",
        "١٢",
        "1 2",
        "12ms",
        "",
        ".5",
        "+3",
        "9" * 99,
    ],
)
def test_a_value_that_is_not_believable(value: str) -> None:
    assert found(("openai-processing-ms", value), ("server-timing", f"x;dur={value}")) == []


def test_a_claim_says_what_it_covers_and_who_says_so() -> None:
    (envoy,) = claims([(b"x-envoy-upstream-service-time", b"7")])
    assert (envoy.source, envoy.scope) == ("envoy", "upstream and the network to it, until its head")
    edge, view = claims([(b"server-timing", b'cfEdge;dur=1, cfL4;desc="?rtt=2000"')])
    assert edge.source == view.source == "cloudflare edge"
    assert "this client" in view.scope


def test_a_flood_is_bounded() -> None:
    flood = [(b"server-timing", b",".join(b"m%d;dur=1" % n for n in range(10_000)))] * 50
    assert len(claims(flood)) == CLAIMS_LIMIT
    assert claims([(b"x", b"y")] * 1_000 + [(b"openai-processing-ms", b"1")]) == ()


@given(st.lists(st.tuples(st.sampled_from([*(name.encode() for name in HEADERS), b"server-timing"]), st.binary())))
def test_no_header_upsets_it(headers: list[tuple[bytes, bytes]]) -> None:
    assert all(0 <= each.value_ms <= LONGEST_MS for each in claims(headers))
