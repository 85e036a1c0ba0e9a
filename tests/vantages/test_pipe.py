"""Far ends that are no agent, or a bad one: each is one clear line with a remedy, in bounded time and memory."""

import asyncio
import resource
import sys
import time
from contextlib import aclosing

import pytest

from hopscope.errors import VantageDownError
from hopscope.model.record import Done, Failure, Record, Resolved
from hopscope.vantages.exec import open_exec
from hopscope.vantages.link import MAX_STRANGE, Pace, most_records
from vantages.far import HERE, collect, down, fake, hello, http, ping, resolve, vantage

KEY = "sk-planted-0b5e77a1"

WORK = """
task = order()
"""
RESOLVED = 'say(record="resolved", task=task["id"], at=1, addresses=["192.0.2.1"])\n'
DONE = 'say(record="done", task=task["id"], at=2)\n'
WAIT = "sys.stdin.read()\n"

# what it does · what is said of it · what to do
FAKES = {
    "silent": ("import time; time.sleep(60)", "answered there within its deadline of 1 s", "hopscope agent"),
    "asks": (
        "import time; print('Password: ', end='', flush=True); time.sleep(60)",
        "no hopscope answered there within its deadline of 1 s; it said Password:",
        "hopscope agent",
    ),
    "exits": ("import sys; sys.exit('no such pod: gpu-7')", "ended with code 1: no such pod: gpu-7", "by hand"),
    "has gone": ("", "ended before the measuring did", "hopscope agent"),
    "speaks": ("print('Hello, who are you?')", "ended before the measuring did: Hello, who are you?", "hopscope agent"),
    "echoes": ("import sys\nfor line in sys.stdin: print(line, flush=True)", "no hopscope answered", "hopscope agent"),
    "not installed": ("import sys; print('sh: hopscope: not found', file=sys.stderr); sys.exit(127)",
                      "not installed there, or not on its PATH: sh: hopscope: not found", "/path/to/hopscope"),
    "no module": ("import sys; sys.exit('/usr/bin/python3: No module named hopscope')",
                  "not installed for the Python there", "/path/to/hopscope"),
    "may not": ("import sys; sys.exit(126)", "may not be run there", "executable"),
    "ssh of its own": ("import sys; print('ssh: Connection refused', file=sys.stderr); sys.exit(255)",
                       "the way there broke: ssh: Connection refused", "by hand"),
    "old": ("import sys; print(\"hopscope: No such command 'agent'.\", file=sys.stderr); sys.exit(64)",
            "of a version without `agent`", "upgrade hopscope there"),
    "killed": ("import os; os.kill(os.getpid(), 9)", "killed by signal 9", "who ends it"),
    "newer tape": (hello(2), "hopscope 9.9.9 there writes tape 2, this hopscope", "upgrade hopscope here"),
    "older tape": (hello(0), "hopscope 9.9.9 there writes tape 0, this hopscope", "upgrade hopscope there"),
    "no tape": (hello().replace('record="run"', 'record="walk"'), "no first record of a tape", "the same version"),
    "half a record": (hello() + WORK + "sys.stdout.write('{\"record\":\"resol')", "in the middle of a record", ""),
    "nonsense": (hello() + WORK + "print('Segmentation fault', flush=True)\n" + WAIT,
                 "wrote not a record: Segmentation fault", "same version"),
    "broken record": (hello() + WORK + "say(record='done', task='seven')\n" + WAIT, "a broken done record", ""),
    "ends early": (hello() + WORK + "say(record='end', at=1, partial=True, why='its deadline was reached')\n" + WAIT,
                   "ended: its deadline was reached", "run again"),
    "never was": (
        hello().removesuffix("order()\nhere()\n")
        + "say(record='failure', kind='vantage', why='no place', advice='move')\n"
        + WAIT,
        "no place",
        "move",
    ),
    "says why": (hello() + "say(record='failure', kind='vantage', why='no such place', advice='move')\n" + WAIT,
                 "no such place", "move"),
    "other tasks": (hello() + WORK + "for _ in range(5000): say(record='done', task=99, at=1)\n" + WAIT,
                    f"more than {MAX_STRANGE} records", ""),
    "too much": (hello() + WORK + f"for _ in range(5000): {RESOLVED}" + WAIT, "more records than task 7 can have", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", FAKES)
def test_a_far_end_that_is_of_no_use(name: str) -> None:
    script, why, advice = FAKES[name]
    began = time.monotonic()
    error = down(lambda: fake(script, deadline_s=1 if "answered" in why else 20), resolve())
    assert why in str(error)
    assert advice in error.advice
    assert error.advice
    assert "\n" not in str(error)
    assert len(str(error)) < 500
    assert time.monotonic() - began < 10


GIGABYTE = "import sys\nfor _ in range(1024): sys.stdout.buffer.write({piece})"


@pytest.mark.parametrize("piece", ["bytes(1 << 20)", "b'x' * (1 << 20)", "b'hello\\n' * (1 << 17)"])
@pytest.mark.parametrize("before", ["", hello()])
def test_a_gigabyte_is_not_kept(piece: str, before: str) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    error = down(lambda: fake(before + GIGABYTE.format(piece=piece)))
    assert "hopscope" in str(error)
    assert time.monotonic() - began < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 30_000  # KiB


def test_a_gigabyte_on_standard_error_is_not_kept() -> None:
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    flood = "import sys\nfor _ in range(256): sys.stderr.buffer.write(b'y' * (1 << 20))\nsys.exit('the reason')"
    assert "the reason" in str(down(lambda: fake(flood)))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 30_000


@pytest.mark.parametrize(
    "banner", ["Welcome to gpu-7\\n\\n** 3 updates **\\n", "no newline at its end", "\\x1b[1m{}[]"]
)
def test_a_banner_is_read_over(banner: str) -> None:
    command = ["sh", "-c", f'printf "{banner}"; exec "$@"', "sh", *HERE]
    ((resolved, done),) = collect(lambda: open_exec(vantage(command), {}), resolve())
    assert isinstance(resolved, Resolved)
    assert resolved.addresses == ("127.0.0.1",)
    assert isinstance(done, Done)


def test_what_came_before_the_end_is_kept_and_every_task_hears_of_it() -> None:
    async def one(place_task: int) -> list[Record]:
        kept: list[Record] = []
        async with aclosing(place.run(place_task, resolve())) as records:
            try:
                async for record in records:
                    kept += [record]
            except VantageDownError as error:
                told.append(str(error))
        return kept

    async def main() -> list[list[Record]]:
        kept = await asyncio.gather(one(7), one(8))
        again = await one(9)
        await place.close()
        return [*kept, again]

    told: list[str] = []
    place = fake(hello() + WORK + RESOLVED + "time.sleep(0.3); sys.exit('power cut')")
    first, second, third = asyncio.run(main())
    assert [type(record) for record in first] == [Resolved]
    assert second == third == []
    assert told == ["what was started there ended with code 1: power cut"] * 3


def test_one_that_hangs_is_noticed_before_its_deadline() -> None:
    pace = Pace(tick_s=0.1, silence_s=0.5)
    began = time.monotonic()
    error = down(lambda: fake(hello() + "time.sleep(60)", pace=pace))
    assert str(error) == "nothing was heard from there for 0.5 s"
    assert time.monotonic() - began < 5


def test_one_that_only_says_that_it_is_there_comes_to_its_deadline() -> None:
    ticking = hello() + "while True:\n    if order()['order'] == 'tick': here()\n"
    error = down(lambda: fake(ticking, deadline_s=1.5, pace=Pace(tick_s=0.1, silence_s=0.5)))
    assert str(error) == "not finished within its deadline of 1.5 s"
    assert "deadline" in error.advice


def test_records_of_a_later_version_are_skipped() -> None:
    later = hello() + WORK + "say(record='weather', sky='blue')\n" + RESOLVED + DONE + WAIT
    (records,) = collect(lambda: fake(later), resolve())
    assert [type(record) for record in records] == [Resolved, Done]


def test_another_version_of_the_tool_and_a_wrong_clock_are_remarked() -> None:
    slow = hello().replace("at=time.time_ns())\n", "at=time.time_ns() - 90 * 10**9)\n")

    async def main() -> tuple[tuple[str, ...], int | None]:
        place = fake(slow + WAIT)
        await place.link()
        told = place.remarks(), place.clock_offset_ns
        await place.close()
        return told

    (version, clock), offset = asyncio.run(main())
    assert "hopscope 9.9.9 there" in version
    assert "its clock is -90.0 s from ours" in clock
    assert offset is not None
    assert abs(offset + 90 * 10**9) < 10**9


def test_a_failure_from_there_is_of_the_task_it_is_about() -> None:
    lying = "say(record='failure', kind='bug', why='oops', target='other', vantage='other', task=task['id'])\n"
    ((failure, _),) = collect(lambda: fake(hello() + WORK + lying + DONE + WAIT), resolve())
    assert isinstance(failure, Failure)
    assert (failure.why, failure.target, failure.vantage) == ("oops", "t", "far")


def test_a_secret_goes_to_an_agent_only_and_is_not_repeated() -> None:
    saying = "import sys\nfor line in sys.stdin: print(line, file=sys.stderr, flush=True); print(line, flush=True)"
    place = open_exec(vantage([sys.executable, "-c", saying], deadline_s=1), {"PLANTED": KEY})
    assert KEY not in str(down(lambda: place, http(80, api_key_env="PLANTED")))

    telling = hello() + WORK + "sys.exit('I know ' + task['secrets']['PLANTED'])"
    place = open_exec(vantage([sys.executable, "-c", telling]), {"PLANTED": KEY, "OTHER": "unseen"})
    assert str(down(lambda: place, http(80, api_key_env="PLANTED"))).endswith("code 1: I know (hidden)")

    cut = hello() + WORK + "sys.exit(task['secrets']['PLANTED'] + 'x' * 290)"
    place = open_exec(vantage([sys.executable, "-c", cut]), {"PLANTED": KEY})
    told = str(down(lambda: place, http(80, api_key_env="PLANTED")))
    assert [KEY[start : start + 8] for start in range(len(KEY) - 7) if KEY[start : start + 8] in told] == []


def test_a_file_that_cannot_be_read_is_a_failure_of_its_task() -> None:
    place = open_exec(vantage(), {})
    ((failure, done),) = collect(lambda: place, http(80, ca_file="/nonexistent/ca.pem"))
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.why) == ("rights", "cannot read /nonexistent/ca.pem: No such file or directory")
    assert isinstance(done, Done)


def test_an_honest_agent_never_has_too_many_records() -> None:
    assert most_records(ping(count=100_000)) > 2 * 100_000
