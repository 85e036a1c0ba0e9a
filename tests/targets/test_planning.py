"""The plan of a run: what was chosen by name, what is settled without the network, and how many vantages must work."""

import pytest

from hopscope.errors import UsageError
from hopscope.model.plan import Budget, Plan, Target, Vantage
from hopscope.targets import BUDGETS, budget, plan, read

TARGETS = """
[[target]]
name = "fra"
url = "https://fra.example.net/v1"

[[target]]
name = "ams"
host = "ams.example.net"
budget = "chat"
"""
VANTAGES = """
[[vantage]]
name = "berlin"
kind = "local"
[[vantage]]
name = "paris"
kind = "local"
[[vantage]]
name = "rome"
kind = "local"
"""


def planned(
    text: str, only: tuple[str, ...] = (), vantages: tuple[str, ...] = (), budget_name: str | None = None
) -> Plan:
    file = read(text, file="t.toml")
    return plan(file, command="run", name="t", only=only, vantages=vantages, deadline_ns=300, budget=budget_name)


def test_a_plan_holds_the_file_and_the_run() -> None:
    top = 'controls = ["Gate.example.net", "192.0.2.1"]\n[geo]\nmmdb = "city.mmdb"\n'
    assert planned(top + '[[target]]\nname = "a"\nhost = "a.example"\n') == Plan(
        command="run",
        name="t",
        targets=(Target(name="a", host="a.example"),),
        vantages=(Vantage(name="here", kind="local"),),
        quorum=1,
        deadline_ns=300,
        mmdb=("city.mmdb",),
        controls=("gate.example.net", "192.0.2.1"),
    )


@pytest.mark.parametrize(
    ("only", "names"),
    [((), ["fra", "ams"]), (("ams",), ["ams"]), (("ams", "fra"), ["fra", "ams"]), (("ams", "ams"), ["ams"])],
)
def test_targets_are_chosen_by_name_in_the_order_of_the_file(only: tuple[str, ...], names: list[str]) -> None:
    assert [target.name for target in planned(TARGETS, only).targets] == names


@pytest.mark.parametrize(
    ("quorum", "chosen", "expected"),
    [
        (None, (), 2),
        (None, ("rome",), 1),
        (None, ("rome", "paris"), 1),
        (3, (), 3),
        (1, (), 1),
        (3, ("rome", "paris"), 2),
    ],
)
def test_the_quorum_is_half_rounded_up_and_never_more_than_was_chosen(
    quorum: int | None, chosen: tuple[str, ...], expected: int
) -> None:
    top = "" if quorum is None else f"quorum = {quorum}\n"
    assert planned(top + VANTAGES + TARGETS, vantages=chosen).quorum == expected


def test_vantages_are_chosen_by_name() -> None:
    assert [vantage.name for vantage in planned(VANTAGES + TARGETS, vantages=("rome",)).vantages] == ["rome"]
    assert [vantage.name for vantage in planned(TARGETS, vantages=("here",)).vantages] == ["here"]


@pytest.mark.parametrize(
    ("only", "vantages", "says", "advice"),
    [
        (("frx",), (), 'no target is named "frx"; did you mean "fra"?', "--only takes one of: fra, ams"),
        (
            ("zzz\x07", "amms"),
            (),
            'no target is named "zzz\\x07"; no target is named "amms"; did you mean "ams"?',
            "--only takes one of: fra, ams",
        ),
        ((), ("rom",), 'no vantage is named "rom"; did you mean "rome"?', "--from takes one of: berlin, paris, rome"),
        ((), ("here",), 'no vantage is named "here"', "--from takes one of: berlin, paris, rome"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(
    only: tuple[str, ...], vantages: tuple[str, ...], says: str, advice: str
) -> None:
    with pytest.raises(UsageError) as caught:
        planned(VANTAGES + TARGETS, only, vantages)
    assert (str(caught.value), caught.value.advice, caught.value.exit_code) == (says, advice, 64)


@pytest.mark.parametrize(("requests", "cold", "hot"), [(1, 1, 0), (2, 1, 1), (11, 1, 10)])
def test_the_first_request_is_cold_and_the_others_hot(requests: int, cold: int, hot: int) -> None:
    (target,) = planned(f'[[target]]\nname = "a"\nurl = "https://a.example"\nrequests = {requests}\n').targets
    assert (target.requests, target.cold, target.hot) == (requests, cold, hot)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ('url = "https://a.example/v1"\nmodel = "m"', "/v1/models"),
        ('url = "https://a.example/openai/v1/"\nmodel = "m"', "/openai/v1/models"),
        ('url = "https://a.example/v1"', None),
        ('url = "https://a.example"\nmodel = "m"', None),
        ('url = "https://a.example/v1/chat/completions"\nmodel = "m"', None),
        ('url = "https://a.example/v1"\nmodel = "m"\npath = "/health"', "/health"),
        ('host = "a.example"\nmodel = "m"', None),
    ],
)
def test_http_asks_for_the_models_below_v1_when_there_is_a_model(body: str, path: str | None) -> None:
    (target,) = planned(f'[[target]]\nname = "a"\n{body}\n').targets
    assert target.path == path


def test_a_budget_of_the_command_line_replaces_that_of_every_target() -> None:
    targets = planned('[budget.mine]\nloss = "3%"\n' + TARGETS, budget_name="mine").targets
    assert [(target.budget_name, target.budget) for target in targets] == [("mine", Budget(loss=0.03))] * 2
    assert planned(TARGETS, budget_name="batch").targets[1].budget == BUDGETS["batch"]


def test_an_unknown_budget_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        budget("chatt")
    assert (str(caught.value), caught.value.advice) == (
        'no budget is named "chatt"; did you mean "chat"?',
        "there are chat, autocomplete, realtime, agents, batch",
    )
