"""Whether a vantage works: it is opened, asked for a name and a ping of its own machine, and closed again."""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing

from msgspec import Struct
from msgspec.structs import replace

from hopscope.errors import HopscopeError, UsageError
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import PingTask, ResolveTask, Task, Vantage
from hopscope.model.record import Failure
from hopscope.net.ports import NoRightsError
from hopscope.vantages import VANTAGES, Openers, Place
from hopscope.vantages.pipe import PipePlace

PINGS = 3


class Trial(Struct, frozen=True, kw_only=True):
    """How that went. `facts` are for people; `failures` say what does not work there, and `down` that nothing does."""

    vantage: Vantage
    down: bool
    facts: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()


def try_all(
    vantages: tuple[Vantage, ...], environ: Mapping[str, str], deadline_ns: int, openers: Openers = VANTAGES
) -> tuple[Trial, ...]:
    """Try every vantage, all at once, each for no longer than the deadline."""

    async def main() -> tuple[Trial, ...]:
        limited = (replace(one, deadline_ns=min(one.deadline_ns or deadline_ns, deadline_ns)) for one in vantages)
        return tuple(await asyncio.gather(*(_try(one, environ, openers) for one in limited)))

    return asyncio.run(main())


async def _try(vantage: Vantage, environ: Mapping[str, str], openers: Openers) -> Trial:
    opener = openers.get(vantage.kind)
    if opener is None:
        why = f"vantages of kind {vantage.kind} are not part of this version"
        return _down(vantage, Failure(kind="skipped", why=why, advice='measure from kind = "local"'))
    try:
        place = opener(vantage, environ)
    except UsageError as error:
        return _down(vantage, Failure(kind="usage", why=str(error), advice=error.advice))
    try:
        failures = [
            failure for number, task in enumerate(_tasks(vantage)) for failure in await _run(place, number, task)
        ]
        facts = _facts(place) if isinstance(place, PipePlace) else ()
        return Trial(vantage=vantage, down=False, facts=facts, failures=tuple(failures))
    except HopscopeError as error:
        return _down(vantage, Failure(kind="vantage", why=str(error), advice=error.advice))
    finally:
        await place.close()


def _down(vantage: Vantage, failure: Failure) -> Trial:
    return Trial(vantage=vantage, down=True, failures=(replace(failure, vantage=vantage.name),))


def _tasks(vantage: Vantage) -> tuple[Task, ...]:
    return (
        ResolveTask(target="itself", vantage=vantage.name, reason="trial", host="localhost"),
        PingTask(
            target="itself",
            vantage=vantage.name,
            reason="trial",
            address="127.0.0.1",
            family=4,
            protocol="icmp",
            count=PINGS,
            interval_ns=10 * MS,
            threshold_ns=SECOND,
        ),
    )


async def _run(place: Place, number: int, task: Task) -> list[Failure]:
    try:
        async with aclosing(place.run(number, task)) as records:
            return [record async for record in records if isinstance(record, Failure)]
    except NoRightsError as error:
        return [Failure(kind="rights", why=str(error), advice=error.advice, vantage=task.vantage)]


def _facts(place: PipePlace) -> tuple[str, ...]:
    """What is known of a vantage elsewhere: how far it is, and what a person is to know."""
    link = place.opened()
    if link is None or link.clock_error_ns is None:
        return ()
    return (f"hopscope {link.tool_version}", f"{2 * link.clock_error_ns / MS:.1f} ms away", *place.remarks())
