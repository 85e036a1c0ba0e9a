"""A name without an address → results all the same, one for each probe asked for: outcome `dns`, nothing else known."""

from collections.abc import Iterator

from hopscope.analysis import stream as streaming
from hopscope.analysis.case import Case
from hopscope.analysis.results import SeriesSamples
from hopscope.model.report import (
    Client,
    Delay,
    EndToEnd,
    HttpResult,
    HttpSummary,
    Loss,
    PathSummary,
    PingResult,
    Result,
    StreamResult,
    TraceResult,
)

NO_CLIENT = Client()
NO_LOSS = Loss(sent=0, received=0, lost=0)
NO_DELAY = Delay(n=0)


def results_without_address(case: Case) -> Iterator[Result]:
    """Results of a name without an address: outcome `dns`, nothing else known."""
    why = case.resolved.error if case.resolved is not None else None
    for kind in case.target.probes:
        match kind:
            case "ping":
                yield PingResult(
                    target=case.target.name, vantage=case.vantage, outcome="dns", address=None, family=None,
                    protocol=case.target.protocol or "icmp", port=case.target.port, started_at=None,
                    finished_at=None, client=NO_CLIENT, clock=None, loss=NO_LOSS, delay=NO_DELAY, flows=(),
                    samples=SeriesSamples(()), why=why,
                )  # fmt: skip
            case "trace":
                yield TraceResult(
                    target=case.target.name, vantage=case.vantage, outcome="dns", address=None, family=None,
                    protocol=case.target.trace_protocol or "icmp", port=case.target.port, started_at=None,
                    finished_at=None, client=NO_CLIENT, flow="constant", reached=False, end=None, hops=(), flows=(),
                    path=PathSummary(as_path=(), prefixes=(), hash=None),
                    end_to_end=EndToEnd(loss=NO_LOSS, delay=NO_DELAY), why=why,
                )  # fmt: skip
            case "stream":
                yield StreamResult(
                    target=case.target.name, vantage=case.vantage, outcome="dns", address=None, family=None,
                    protocol="tcp", port=case.target.port, started_at=None, finished_at=None, client=NO_CLIENT,
                    url=case.target.url or "", model=None, models_listed=None, api="openai", requests=(),
                    summary=streaming.summary((), None), why=why,
                )  # fmt: skip
            case "layer":
                pass
            case "http":
                yield HttpResult(
                    target=case.target.name, vantage=case.vantage, outcome="dns", address=None, family=None,
                    protocol="tcp", port=case.target.port, started_at=None, finished_at=None, client=NO_CLIENT,
                    url=case.target.url or "", requests=(),
                    summary=HttpSummary(network=NO_DELAY, server=NO_DELAY, total=NO_DELAY), why=why,
                )  # fmt: skip
