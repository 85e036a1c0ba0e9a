"""Books of several candidates seen from several places, in the notation of probes: `{("fra", "berlin"): "10 . 12"}`."""

from collections.abc import Mapping, Sequence

from analysis.notation import probes
from hopscope.analysis.judge import report
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import Budget, HttpTask, PingTask, Plan, Protocol, Site, StreamTask, Target, Vantage
from hopscope.model.record import Begin, Done, End, Exchange, Failure, Planned, Record, Run, Streamed
from hopscope.model.report import ComparisonResult, Report
from hopscope.model.sample import Book
from hopscope.tape import gather

Pair = tuple[str, str]
Series = Mapping[Pair, str]

BERLIN = Site(lat=52.52, lon=13.40, name="Berlin")
FRANKFURT = Site(lat=50.11, lon=8.68, name="Frankfurt")
NEW_YORK = Site(lat=40.71, lon=-74.01, name="New York")
LIMIT = Budget(rtt_p95_ms=40.0, loss=0.01)


def address(target: str) -> str:
    """An address for a name, the same each time."""
    return f"203.0.113.{sum(target.encode('utf-8', 'surrogatepass')) % 250 + 1}"


def target(
    name: str, budget: Budget | None = None, *, price: float | None = None, site: Site | None = None, url: bool = False
) -> Target:
    return Target(
        name=name, host=address(name), budget=LIMIT if budget is None else budget, price_month=price, site=site,
        url=f"https://{address(name)}/v1" if url else None, port=443 if url else None,
        probes=("ping", "http") if url else ("ping",),
    )  # fmt: skip


def vantage(name: str, *, weight: float = 1.0, site: Site | None = None) -> Vantage:
    return Vantage(name=name, kind="exec", weight=weight, site=site)


def plan(targets: Sequence[Target], vantages: Sequence[Vantage], *, quorum: int = 1) -> Plan:
    return Plan(
        command="compare", name="it", targets=tuple(targets), vantages=tuple(vantages), quorum=quorum,
        deadline_ns=300 * SECOND,
    )  # fmt: skip


def series(text: str, pair: Pair, number: int, *, protocol: Protocol = "icmp", port: int | None = None) -> list[Record]:
    asked = PingTask(
        target=pair[0], vantage=pair[1], reason="asked", address=address(pair[0]), family=4, protocol=protocol,
        port=port, count=len(text.split()), interval_ns=SECOND, threshold_ns=2 * SECOND,
    )  # fmt: skip
    return [Begin(id=number, at=0, task=asked), *probes(text, number), Done(task=number, at=SECOND)]


def requests(
    server_ms: Sequence[float], pair: Pair, number: int, *, rtt_ms: float = 5.0, status: int = 200
) -> list[Record]:
    """Hot requests whose server takes so long."""
    asked = HttpTask(
        target=pair[0], vantage=pair[1], reason="asked", address=address(pair[0]), family=4, port=443,
        url=f"https://{address(pair[0])}/v1", cold=0, hot=len(server_ms), timeout_ns=15 * SECOND,
    )  # fmt: skip
    return [
        Begin(id=number, at=0, task=asked),
        *(exchange(number, seq, took, rtt_ms, status) for seq, took in enumerate(server_ms)),
        Done(task=number, at=SECOND),
    ]


def exchange(number: int, seq: int, server_ms: float, rtt_ms: float = 5.0, status: int = 200) -> Exchange:
    head = int((server_ms + rtt_ms) * MS)
    return Exchange(
        task=number, seq=seq, cold=False, connection=0, scheduled=0, connected=0, secured=0, sent_first=0, sent_last=0,
        head=head, done=head, clock="kernel", level=2, min_rtt_ns=int(rtt_ms * MS), status=status,
    )  # fmt: skip


def streams(ttft_ms: Sequence[float], pair: Pair, number: int) -> list[Record]:
    """Hot streams whose first token takes so long; the head comes at once."""
    asked = StreamTask(
        target=pair[0], vantage=pair[1], reason="asked", address=address(pair[0]), family=4, port=443,
        url=f"https://{address(pair[0])}/v1", cold=0, hot=len(ttft_ms), timeout_ns=15 * SECOND, seed=1,
    )  # fmt: skip
    made = (
        Streamed(task=number, exchange=exchange(number, seq, 0.0), first_token=int(took * MS), events=1, token_events=1)
        for seq, took in enumerate(ttft_ms)
    )
    return [Begin(id=number, at=0, task=asked), *made, Done(task=number, at=SECOND)]


def book(what: Plan, found: Series, *more: Sequence[Record], command: str = "compare", at: int = 0) -> Book:
    """A whole run: a series for each pair, then whatever else was recorded."""
    records: list[Record] = [Run(tape=1, tool_version="0", command=command, at=at), Planned(plan=what)]
    for number, (pair, text) in enumerate(found.items(), start=1):
        records += series(text, pair, number)
    records += [record for some in more for record in some]
    return gather([*records, End(at=at + SECOND)])


def down(vantage: str) -> list[Record]:
    return [Failure(kind="vantage", why="ssh: refused", vantage=vantage)]


def compared(what: Plan, found: Series, *more: Sequence[Record]) -> Report:
    return report(book(what, found, *more), tool_version="0")


def candidates(made: Report) -> list[ComparisonResult]:
    return [one for one in made.results if isinstance(one, ComparisonResult)]


def standing(made: Report) -> list[tuple[str, int | None, str, float | None]]:
    return [(one.target, one.rank, one.advice, one.score) for one in candidates(made)]


def reasons(made: Report, name: str) -> tuple[str, ...]:
    return next(one.reasons for one in candidates(made) if one.target == name)


HERE_AND_THERE = (vantage("here"), vantage("there"))
