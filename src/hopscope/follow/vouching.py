"""What vouches for a place: its gateway and the file's controls, measured beside the targets (method 6.5)."""

from collections.abc import Iterator

from msgspec.structs import replace

from hopscope.analysis.uplink import MEASURING
from hopscope.analysis.views import lookups, routes
from hopscope.model.plan import About, PingTask, Plan, ResolveTask, RouteTask, Target, Task, Vantage, family_of
from hopscope.model.sample import Book
from hopscope.targets import tasks

REASON = "vouches for this place"


def asked(plan: Plan, book: Book) -> Iterator[Task]:
    """What every place is judged by; what was asked before is among it."""
    if plan.command not in MEASURING:
        return
    for vantage in plan.vantages:
        yield from _gateway(plan, book, vantage)
        for control in plan.controls:
            yield from _control(plan, book, vantage, control)


def _gateway(plan: Plan, book: Book, vantage: Vantage) -> Iterator[Task]:
    """The next hop towards the first target that has an address: which it is, then a series to it."""
    found = {task.target: sample.resolved for task, sample in lookups(book) if task.vantage == vantage.name}
    asked_for = any(
        isinstance(sample.task, RouteTask) and (sample.task.vantage, sample.task.reason) == (vantage.name, REASON)
        for sample in book.samples.values()
    )
    for target in () if asked_for else plan.targets:
        resolved = found.get(target.name)
        if resolved is None or not resolved.addresses:
            continue
        address = resolved.addresses[0]
        yield RouteTask(
            target=target.name, vantage=vantage.name, reason=REASON, address=address, family=family_of(address)
        )
        break
    for task, routed in routes(book):
        if (task.vantage, task.reason) == (vantage.name, REASON) and routed.gateway is not None:
            yield _series(plan, task.target, vantage.name, routed.gateway, None, "gateway")


def _control(plan: Plan, book: Book, vantage: Vantage, control: str) -> Iterator[Task]:
    """A host that is known to be well, by ICMP and by TCP: it may be deaf to one of them."""
    yield ResolveTask(target=control, vantage=vantage.name, reason=REASON, host=control, about="control")
    for task, sample in lookups(book, "control"):
        if (task.target, task.vantage) == (control, vantage.name) and sample.resolved is not None:
            for address in sample.resolved.addresses[:1]:
                for port in (None, tasks.FALLBACK_PORTS[0]):
                    yield _series(plan, control, vantage.name, address, port, "control")


def _series(plan: Plan, name: str, vantage: str, address: str, port: int | None, about: About) -> PingTask:
    """A series at the pace of the first target's, so that no run lasts longer for it."""
    pace = plan.targets[0]
    shape = Target(name=name, host=name, count=pace.count, interval_ns=pace.interval_ns, threshold_ns=pace.threshold_ns)
    usual = tasks.series(shape, vantage, address, "icmp" if port is None else "tcp", port, reason=REASON)
    return replace(usual, about=about, flows=1)
