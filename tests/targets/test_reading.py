"""Target files: what a good one says, exactly, and what is said of a bad one, word for word.

The bad ones are `invalid/NAME.toml`, their messages `invalid/NAME.txt`.
"""

from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopscope.errors import TargetFileError
from hopscope.model.plan import Budget, Site, Target, Vantage
from hopscope.targets import BUDGETS, REASONS, Alarm, Maintenance, TargetFile, budgets, read
from hopscope.targets.keys import SETTINGS, TOP, VANTAGE, target_keys

INVALID = sorted((Path(__file__).parent / "invalid").glob("*.toml"))
SHIPPED = Path(__file__).parents[2] / "targets"
EXAMPLE = (SHIPPED / "example.toml").read_text(encoding="utf-8")
PUBLIC = (SHIPPED / "public.toml").read_text(encoding="utf-8")

MS = 1_000_000
SECOND = 1000 * MS


def message(text: str, file: str = "bad.toml") -> str:
    with pytest.raises(TargetFileError) as caught:
        read(text, file=file)
    return str(caught.value)


def only_target(body: str, before: str = "") -> Target:
    (target,) = read(f'{before}\n[[target]]\nname = "a"\n{body}\n', file="good.toml").targets
    return target


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_every_error_of_a_bad_file_is_told_word_for_word(path: Path) -> None:
    expected = path.with_suffix(".txt").read_text(encoding="utf-8").rstrip("\n")
    assert message(path.read_text(encoding="utf-8")) == expected


def test_there_are_bad_files_and_each_has_its_message() -> None:
    assert len(INVALID) >= 20
    assert [path.stem for path in INVALID] == sorted(path.stem for path in INVALID[0].parent.glob("*.txt"))


def test_no_message_repeats_a_secret() -> None:
    secrets = next(path for path in INVALID if path.stem == "secrets").read_text(encoding="utf-8")
    assert secrets.count("hunter2") > 10
    assert "hunter2" not in message(secrets)


def test_a_bad_file_is_a_mistake_of_the_user() -> None:
    with pytest.raises(TargetFileError) as caught:
        read("", file="x.toml")
    assert caught.value.exit_code == 64


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = \x00", 'bad.toml:1: key "a": not TOML, column 5: this is no TOML value; '),
        ('[[target]]\nname = "\x1b[31m"', "bad.toml:2: key \"name\": not TOML, column 9: Illegal character '\\x1b'"),
        ("x = " + "[" * 5000, "bad.toml:1: the file is nested too deeply"),
        ("x = " + "9" * 5000, "bad.toml:1: not TOML: a number has too many digits"),
        ("\n" + ".".join("a" * 9) + " = 1", "bad.toml:2: a key has more than 8 parts"),
        ("x = { " + ' . "#" . '.join("a" * 5) + " = 1}", "bad.toml:1: a key has more than 8 parts"),
        ("[[target]]\nramp = [" + "1, " * 2000 + "]", 'bad.toml:2: key "target.ramp": expected at most 1000 items'),
        ("#" * (1 << 20) + "#", "bad.toml:1: the file is larger than 1 MiB"),
        ("#" + "é" * (1 << 19), "bad.toml:1: the file is larger than 1 MiB"),
        (
            "quorum = 0x" + "f" * 20000,
            'bad.toml:1: key "quorum": expected a whole number from 1 to 1, not a huge number',
        ),
        ("[check]\ninterval = 0x" + "f" * 20000, 'bad.toml:2: key "check.interval": "a huge number" is not a duration'),
        ("\ud800 = 1", "bad.toml:1: not TOML, column 1: Invalid statement"),
    ],
    ids=[
        "nul",
        "escape",
        "nested",
        "digits",
        "dots",
        "inner dots",
        "items",
        "large",
        "large in bytes",
        "hex",
        "hex seconds",
        "surrogate",
    ],
)
def test_hostile_text_is_refused_in_plain_words(text: str, expected: str) -> None:
    assert expected in message(text)


def test_control_characters_are_shown_as_escapes() -> None:
    said = message('[[target]]\nname = "a\\u001b[31m\\u202e"\nhost = "\\u0007"\n', file="x\x1b.toml")
    assert said.isprintable() or said.replace("\n", "").isprintable()
    assert said.splitlines()[0] == (
        'x\\x1b.toml:2: key "target.name": expected a name of printable text, not "a\\x1b[31m\\u202e"'
    )


def test_at_most_a_hundred_errors_are_listed() -> None:
    said = message('[[target]]\nname = "a"\nhost = "a.example"\n' + "".join(f"zz{n} = 1\n" for n in range(250)))
    assert len(said.splitlines()) == 101
    assert said.splitlines()[0].startswith('bad.toml:4: key "target.zz0": unknown key')
    assert said.splitlines()[-1] == "bad.toml: and 150 more errors"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('\ufeff[[target]]\r\nname = "a"\r\nhost = "a.example"\r\ncount = 0\r\n', 4),
        ('[[target]]\nname = "a"\nhost = "a.example"\n"count" = 0\n', 4),
        ('[[target]]\nname = "a"\nhost = """\\\n  a.example"""\ncount = 0\n', 5),
        ('target = [\n  { name = "a", host = "a.example" },\n  { name = "b", host = "b.example", count = 0 },\n]\n', 3),
        ('[[target]]\nname = "a"\nhost = "a.example"\n[target.site]\nlat = 1\nlon = 500\n', 6),
        ('[[target]]\nname = "a"\nhost = "a.example"\n[[target]]\nname = "b"\nhost = "b.example"\nsite.lat = 1\n', 7),
        ('[[target]]\nname = "a"\nhost = "a.example"\nprobes = [\n  "ping", # fine\n  "pong",\n]\n', 6),
        ('[[ "target" ]] # fine\nname = "a"\nhost = "a.example"\ncount = 0\n', 4),
        ('[[target]]\nname = "a"\nhost = "a.example"\n[budget."o\\u0064d"]\nloss = 7\n', 5),
    ],
    ids=["windows", "quoted", "multiline", "inline", "table", "dotted", "list", "quoted header", "escaped header"],
)
def test_the_line_of_the_wrong_key_is_told(text: str, line: int) -> None:
    said = message(text)
    assert len(said.splitlines()) == 1
    assert said.startswith(f"bad.toml:{line}: key ")


def test_the_smallest_file_is_one_target_with_its_host() -> None:
    assert read('[[target]]\nname = "a"\nhost = "a.example"\n', file="t.toml") == TargetFile(
        file="t.toml", targets=(Target(name="a", host="a.example"),), budgets=BUDGETS
    )


def test_every_key_of_a_target_has_its_place() -> None:
    body = """
        url = "https://Bücher.example:8443/v1"
        site = { lat = 50.1, lon = -8, name = "Frankfurt" }
        probes = ["stream", "ping"]
        model = "m"
        api_key_env = "GPU1_KEY"
        metrics = "http://192.0.2.1/metrics"
        price_month = 2300
        budget = { rtt_p95 = "40ms", loss = "1%", ttft_p95 = 0.5, tps = 30 }
        critical = { rtt_p50 = "1500us", loss = 0.05 }
        count = 7
        interval = 1.5
        rounds = 8
        round_interval = "1m"
        flows = 9
        family = 6
        protocol = "udp"
        path = "/health?x=1"
        expect_status = 204
        headers_env = { X-Key = "OTHER_KEY" }
        ca_file = "ca.pem"
        insecure = true
        prompt_tokens = 10
        max_tokens = 11
        requests = 12
        ramp = [1, 2, 4]
        rate = 0.5
        labels = { gpu = "H100", seller = "A B" }
        weight = 2
    """
    assert only_target(body) == Target(
        name="a",
        host="xn--bcher-kva.example",
        port=8443,
        url="https://xn--bcher-kva.example:8443/v1",
        site=Site(lat=50.1, lon=-8.0, name="Frankfurt"),
        probes=("stream", "ping"),
        model="m",
        api_key_env="GPU1_KEY",
        metrics="http://192.0.2.1/metrics",
        price_month=2300.0,
        budget=Budget(rtt_p95_ms=40.0, loss=0.01, ttft_p95_ms=500.0, tps=30.0),
        critical=Budget(rtt_p50_ms=1.5, loss=0.05),
        count=7,
        interval_ns=1500 * MS,
        rounds=8,
        round_interval_ns=60 * SECOND,
        flows=9,
        family=6,
        protocol="udp",
        path="/health?x=1",
        expect_status=(204,),
        headers_env=(("X-Key", "OTHER_KEY"),),
        ca_file="ca.pem",
        insecure=True,
        prompt_tokens=10,
        max_tokens=11,
        requests=12,
        ramp=(1, 2, 4),
        rate=0.5,
        labels=(("gpu", "H100"), ("seller", "A B")),
        weight=2.0,
    )


@pytest.mark.parametrize(
    ("body", "host", "port", "url"),
    [
        ('host = "A.example."', "a.example", None, None),
        ('host = "a.example:8000"', "a.example", 8000, None),
        ('host = "a.b.c.d.e.f.g.h.i.example"  # a.b.c.d.e.f.g.h.i', "a.b.c.d.e.f.g.h.i.example", None, None),
        ('host = "a.example:8000"\nport = 8000', "a.example", 8000, None),
        ('host = "2001:DB8::1"\nport = 1', "2001:db8::1", 1, None),
        ('host = "fe80::1%eth0"', "fe80::1%eth0", None, None),
        ('url = "http://a.example"', "a.example", 80, "http://a.example"),
        ('url = "https://[2001:db8::1]/v1"', "2001:db8::1", 443, "https://[2001:db8::1]/v1"),
    ],
)
def test_a_target_is_a_host_or_a_url(body: str, host: str, port: int | None, url: str | None) -> None:
    target = only_target(body)
    assert (target.host, target.port, target.url) == (host, port, url)


@pytest.mark.parametrize(
    ("body", "probes"),
    [
        ('host = "a.example"', ("ping", "trace")),
        ('url = "https://a.example"', ("ping", "trace", "http")),
        ('url = "https://a.example"\nprobes = ["trace"]', ("trace",)),
    ],
)
def test_probes_follow_from_the_address(body: str, probes: tuple[str, ...]) -> None:
    assert only_target(body).probes == probes


DEFAULTS = """
[defaults]
url = "https://default.example/v1"
count = 5
interval = "1s"
budget = "batch"
labels = { a = "1" }
"""


def test_defaults_stand_where_the_target_says_nothing() -> None:
    target = only_target("", DEFAULTS)
    assert (target.url, target.host, target.port) == ("https://default.example/v1", "default.example", 443)
    assert (target.count, target.interval_ns) == (5, SECOND)
    assert (target.budget_name, target.budget) == ("batch", BUDGETS["batch"])
    assert target.labels == (("a", "1"),)


def test_a_key_of_the_target_replaces_the_default_whole() -> None:
    target = only_target('host = "own.example"\ncount = 6\nbudget = { loss = "2%" }\nlabels = { b = "2" }', DEFAULTS)
    assert (target.url, target.host, target.port, target.probes) == (None, "own.example", None, ("ping", "trace"))
    assert target.count == 6
    assert (target.budget_name, target.budget) == (None, Budget(loss=0.02))
    assert target.labels == (("b", "2"),)


def test_a_default_port_stays_for_a_host_and_goes_for_a_url() -> None:
    before = "[defaults]\nport = 8000\n"
    assert only_target('host = "a.example"', before).port == 8000
    assert only_target('url = "https://a.example"', before).port == 443


@pytest.mark.parametrize("name", list(BUDGETS))
def test_a_budget_can_be_named(name: str) -> None:
    target = only_target(f'host = "a.example"\nbudget = "{name}"')
    assert (target.budget_name, target.budget) == (name, BUDGETS[name])


def test_a_budget_of_the_file_replaces_a_built_in_one() -> None:
    target = only_target('host = "a.example"\nbudget = "chat"', '[budget.chat]\nttft_p95 = "2s"\n')
    assert (target.budget_name, target.budget) == ("chat", Budget(ttft_p95_ms=2000.0))


def test_the_chat_budget_is_what_the_mission_says_and_batch_waits_for_no_token() -> None:
    chat, batch = BUDGETS["chat"], BUDGETS["batch"]
    assert (chat.ttft_p95_ms, chat.tps, chat.rtt_p95_ms) == (500.0, 30.0, 20.0)
    assert (batch.ttft_p50_ms, batch.ttft_p95_ms) == (None, None)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            'kind = "local"\nsource = "2001:DB8::1"\ninterface = "eth1.5"\nweight = 2\ndeadline = "2m"',
            Vantage(
                name="v", kind="local", source="2001:db8::1", interface="eth1.5", weight=2.0, deadline_ns=120 * SECOND
            ),
        ),
        (
            (
                'kind = "ssh"\nhost = "p.example"\nport = 22\nuser = "me"\nkey_file = "~/k"\nknown_hosts = "h"\n'
                'jump = "me@gate"\npin = "SHA256:abc"\nsite = { lat = 1, lon = 2 }'
            ),
            Vantage(
                name="v",
                kind="ssh",
                site=Site(lat=1.0, lon=2.0),
                settings={
                    "host": "p.example",
                    "port": 22,
                    "user": "me",
                    "key_file": "~/k",
                    "known_hosts": "h",
                    "jump": "me@gate",
                    "pin": "SHA256:abc",
                },
            ),
        ),
        (
            'kind = "exec"\ncommand = ["ip", "netns", "exec", "a b"]',
            Vantage(name="v", kind="exec", settings={"command": ["ip", "netns", "exec", "a b"]}),
        ),
        (
            'kind = "exec"\ncommand = "ip netns exec \'a b\'"',
            Vantage(name="v", kind="exec", settings={"command": ["ip", "netns", "exec", "a b"]}),
        ),
        (
            'kind = "globalping"\nplaces = "Berlin"\nlimit = 3\ntoken_env = "T"\napi = "http://127.0.0.1:1/v1"',
            Vantage(
                name="v",
                kind="globalping",
                settings={"places": ["Berlin"], "limit": 3, "token_env": "T", "api": "http://127.0.0.1:1/v1"},
            ),
        ),
        (
            'kind = "atlas"\nplaces = ["DE", "AS3320"]\ncount = 3\nkey_env = "K"',
            Vantage(name="v", kind="atlas", settings={"places": ["DE", "AS3320"], "count": 3, "key_env": "K"}),
        ),
        (
            'kind = "fleet"\nqueue = "fra"\nbroker_env = "B"',
            Vantage(name="v", kind="fleet", settings={"queue": "fra", "broker_env": "B"}),
        ),
        ('kind = "file"\npath = "run.jsonl"', Vantage(name="v", kind="file", settings={"path": "run.jsonl"})),
    ],
    ids=["local", "ssh", "exec", "exec text", "globalping", "atlas", "fleet", "file"],
)
def test_every_kind_of_vantage_has_its_keys(body: str, expected: Vantage) -> None:
    text = f'[[vantage]]\nname = "v"\n{body}\n[[target]]\nname = "a"\nhost = "a.example"\n'
    assert read(text, file="t.toml").vantages == (expected,)


def test_the_shipped_example_says_this_beside_its_targets() -> None:
    file = read(EXAMPLE, file="example.toml")
    assert [target.name for target in file.targets] == ["fra-h100", "ams-l40s", "ssh gateway"]
    assert [vantage.kind for vantage in file.vantages] == ["local", "ssh", "exec", "globalping"]
    assert (file.quorum, file.controls) == (2, ("gate.example.net",))
    assert file.mmdb == ("GeoLite2-City.mmdb", "GeoLite2-ASN.mmdb")
    assert (file.store_url, file.store_url_env) == ("sqlite:///hopscope.db", None)
    assert (file.interval_ns, file.splay_ns) == (300 * SECOND, 30 * SECOND)
    assert file.alarms == (Alarm(metric="ttft_p95", target="fra-h100", raise_runs=2, of_runs=3, clear=3),)
    assert file.maintenance == (
        Maintenance(
            start=datetime(2030, 1, 31, 22, tzinfo=UTC),
            end=datetime(2030, 2, 1, 2, tzinfo=UTC),
            target="ams-l40s",
            why="new switch",
        ),
    )
    assert file.notify_urls_env == ("HOPSCOPE_NOTIFY_URLS",)
    assert file.budgets["mine"] == Budget(rtt_p95_ms=30.0, connect_p95_ms=60.0, server_p95_ms=250.0)


def test_the_shipped_example_names_nobody_and_shows_every_key() -> None:
    hosts = {target.host for target in read(EXAMPLE, file="example.toml").targets}
    assert all(host.endswith((".example.net", ".example.com")) for host in hosts)
    shown = {*TOP, *target_keys(()), *VANTAGE, *(key for settings in SETTINGS.values() for key in settings)}
    rare = {"rate", "jump", "pin", "api", "queue", "broker_env"}
    assert {key for key in shown if key not in EXAMPLE} <= rare


def test_the_shipped_public_file_is_polite_and_needs_no_key() -> None:
    file = read(PUBLIC, file="public.toml")
    assert len(file.targets) >= 10
    for target in file.targets:
        assert target.probes == ("ping", "trace", "http")
        assert (target.api_key_env, target.headers_env, target.model) == (None, (), None)
        assert {401, 404, 421} <= set(target.expect_status)
        assert (target.count or 99) <= 20
        assert (target.rounds or 99) <= 10
        assert (target.requests or 99) <= 4
        assert (target.interval_ns or 0) >= 500 * MS


def test_the_table_of_budgets_gives_each_its_numbers_and_reason() -> None:
    rows = {row.split(" | ")[0].strip("| "): row for row in (budgets.__doc__ or "").splitlines() if row.startswith("|")}
    assert list(BUDGETS) == list(REASONS)
    for name, limits in BUDGETS.items():
        assert REASONS[name] in rows[name]
        assert f" | {(limits.loss or 0) * 100:.0f} % | " in rows[name]
        assert limits.tps is None or f" | {limits.tps:.0f} | " in rows[name]


WORDS = sorted({*TOP, *target_keys(()), *VANTAGE, *(key for settings in SETTINGS.values() for key in settings), "zz"})
LITERALS = [
    "1", "0", "-1", "1e400", "nan", "true", '""', '"a"', '"5ms"', '"1%"', '"ping"', '"chat"', "[]", "{}", '["ping"]',
    '"https://a.example/v1"', '"local"', "1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "[[1]]", "{ a = { b = 1 } }",
    '"\\u0000"', "0xffffffffffffffffffffffffffffffffff", "'''\n'''", "{ lat = 1, lon = 2 }", '["kubectl", 1]', '"2/3"',
]  # fmt: skip
HEADERS = ["", *(f"[{key}]" for key in TOP), *(f"[[{key}]]" for key in TOP), "[budget.x]", "[target.site]"]


def survives(text: str) -> bool:
    """Whether reading ends as it must: with a file, or with the one kind of mistake, told in printable lines."""
    try:
        return len(read(text, file="t.toml").targets) > 0
    except TargetFileError as error:
        lines = str(error).split("\n")
        return all(line.isprintable() and line.startswith("t.toml:") for line in lines)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    assert survives(text)


@given(st.lists(st.tuples(st.sampled_from(HEADERS), st.sampled_from(WORDS), st.sampled_from(LITERALS)), max_size=8))
def test_any_value_at_any_key_is_read_or_refused(rows: list[tuple[str, str, str]]) -> None:
    assert survives("".join(f"{header}\n{key} = {literal}\n" for header, key, literal in rows))


@settings(deadline=None)
@given(
    st.sampled_from([EXAMPLE, PUBLIC]),
    st.lists(st.tuples(st.integers(0, 6000), st.integers(0, 40), st.text(max_size=12)), max_size=5),
)
def test_a_damaged_file_is_read_or_refused(text: str, cuts: list[tuple[int, int, str]]) -> None:
    for at, length, instead in cuts:
        text = text[:at] + instead + text[at + length :]
    assert survives(text)


@settings(deadline=None)
@given(st.sampled_from([EXAMPLE, PUBLIC]), st.randoms(use_true_random=False))
def test_a_file_with_its_values_shuffled_is_read_or_refused(text: str, chance: Random) -> None:
    rows = [line.partition(" = ") for line in text.splitlines() if not line.startswith("#")]
    values = [value for _, mark, value in rows if mark]
    chance.shuffle(values)
    drawn = iter(values)
    assert survives("\n".join(f"{key} = {next(drawn)}" if mark else key for key, mark, _ in rows))
