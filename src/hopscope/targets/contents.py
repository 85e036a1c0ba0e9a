"""What a target file says, as one frozen value: defaults merged, names checked, of secrets only a variable's name."""

from datetime import datetime

from msgspec import Struct

from hopscope.model.plan import Budget, Target, Vantage


class Alarm(Struct, frozen=True, kw_only=True):
    """Raise when `raise_runs` of the last `of_runs` are bad, clear after `clear` good ones (method 7.2).

    `target` None means every target.
    """

    metric: str
    target: str | None = None
    raise_runs: int = 2
    of_runs: int = 3
    clear: int = 3


class Maintenance(Struct, frozen=True, kw_only=True):
    """A time in which nothing alarms: from `start` until before `end`. `target` None means every target."""

    start: datetime
    end: datetime
    target: str | None = None
    why: str | None = None


class TargetFile(Struct, frozen=True, kw_only=True):
    """A whole target file. `quorum` None means half of the vantages, rounded up; `_env` names a variable."""

    file: str
    targets: tuple[Target, ...]
    vantages: tuple[Vantage, ...] = ()
    budgets: dict[str, Budget] = {}
    quorum: int | None = None
    controls: tuple[str, ...] = ()
    mmdb: tuple[str, ...] = ()
    store_url: str | None = None
    store_url_env: str | None = None
    interval_ns: int | None = None
    splay_ns: int | None = None
    alarms: tuple[Alarm, ...] = ()
    maintenance: tuple[Maintenance, ...] = ()
    notify_urls_env: tuple[str, ...] = ()
