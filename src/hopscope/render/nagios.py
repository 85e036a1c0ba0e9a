"""Report → one line as monitoring systems of the Nagios family read it: `HOPSCOPE OK - summary | perfdata`.

Perfdata is `'label'=value[UOM];[warn];[crit];[min];[max]` (Monitoring Plugins guidelines): nothing of a name may end a
label, the line, or the summary before its "|". Unknown is `U`; budgets, where given, are the thresholds.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from hopscope.model.plan import Budget, Target
from hopscope.model.report import HttpResult, Measured, PingResult, Report, StreamResult, TraceResult
from hopscope.render.terms import STATUSES
from hopscope.render.words import clean

NAME = "HOPSCOPE"
SUMMARY_LENGTH = 500
LINE_LENGTH = 4000
"""The oldest readers take 4096 bytes and no more."""
PERCENT = 100

_NOT_IN_LABELS = re.compile(r"[=|'\"]")


def render(report: Report, targets: Sequence[Target] = ()) -> str:
    """The line; `targets` give the thresholds."""
    verdict = report.verdict
    line = _line(STATUSES[verdict.status], verdict.summary)
    by_name = {target.name: target for target in targets}
    separator = " | "
    for item in _perfdata(report, by_name):
        if len((line + separator + item).encode()) > LINE_LENGTH:
            break
        line += separator + item
        separator = " "
    return f"{line}\n"


def trouble(message: str) -> str:
    """The line of a command that came to no verdict."""
    return f"{_line(STATUSES['unknown'], message)}\n"


def _line(word: str, text: str) -> str:
    return f"{NAME} {word} - {clean(text, SUMMARY_LENGTH).replace('|', '/')}"


def _perfdata(report: Report, targets: Mapping[str, Target]) -> Iterator[str]:
    """Each number of each result, under a label that no other has."""
    used: set[str] = set()
    alike: dict[tuple[str, type[Measured]], list[Measured]] = {}
    for result in report.measured:
        alike.setdefault((result.target, type(result)), []).append(result)
    for result in report.measured:
        target = targets.get(result.target)
        warn = target.budget if target is not None else Budget()
        critical = target.critical if target is not None else Budget()
        name = _name(alike[result.target, type(result)], result)
        for what, value, unit, limits, top in _numbers(result, warn, critical):
            label = _unused(f"{name} {what}", used)
            used.add(label)
            thresholds = ";".join(_number(limit) for limit in limits)
            yield f"'{label}'={_value(value, unit)};{thresholds};0;{top}".rstrip(";")


def _name(alike: Sequence[Measured], result: Measured) -> str:
    """What was measured: the target, and the vantage and protocol where one of several that are alike."""
    parts = [result.target]
    if any(one.vantage != result.vantage for one in alike):
        parts.append(result.vantage)
    if any(one.protocol != result.protocol for one in alike):
        parts.append(result.protocol)
    if any(one.address != result.address for one in alike):
        parts.append(result.address or "unknown")
    return _NOT_IN_LABELS.sub("_", clean(" ".join(parts)))


def _unused(label: str, used: set[str]) -> str:
    """The label, with a number behind it where another has it already."""
    count = 2
    tried = label
    while tried in used:
        tried = f"{label} {count}"
        count += 1
    return tried


_Numbers = Iterator[tuple[str, float | None, str, tuple[float | None, float | None], str]]


def _numbers(result: Measured, warn: Budget, critical: Budget) -> _Numbers:
    """Name, value, unit, thresholds and most of each number of a result."""
    match result:
        case PingResult():
            rtt = (warn.rtt_p50_ms, critical.rtt_p50_ms)
            yield "rtt p50", result.delay.p50_ms, "ms", rtt, ""
            yield "rtt p95", result.delay.p95_ms, "ms", (warn.rtt_p95_ms, critical.rtt_p95_ms), ""
            yield "loss", _percent(result.loss.ratio), "%", (_percent(warn.loss), _percent(critical.loss)), "100"
        case TraceResult():
            yield "trace loss", _percent(result.end_to_end.loss.ratio), "%", (None, None), "100"
            yield "hops", float(len(result.hops)) if result.reached else None, "", (None, None), ""
        case StreamResult():
            limits = (warn.ttft_p95_ms, critical.ttft_p95_ms)
            yield "ttft p50", result.summary.ttft.p50_ms, "ms", (warn.ttft_p50_ms, critical.ttft_p50_ms), ""
            yield "ttft p95", result.summary.ttft.p95_ms, "ms", limits, ""
            yield "tpot p50", result.summary.tpot.p50_ms, "ms", (None, None), ""
        case HttpResult():
            summary = result.summary
            limits = (warn.server_p95_ms, critical.server_p95_ms)
            yield "http total p50", summary.total.p50_ms, "ms", (None, None), ""
            yield "server p95", summary.server.p95_ms, "ms", limits, ""


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else ratio * PERCENT


def _value(value: float | None, unit: str) -> str:
    return f"{number}{unit}" if (number := _number(value)) else "U"


def _number(value: float | None) -> str:
    """A number in digits, sign and point alone; empty where there is none."""
    if value is None or not math.isfinite(value):
        return ""
    return f"{value:.6f}".rstrip("0").rstrip(".")
