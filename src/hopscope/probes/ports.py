"""What a probe may use: the clock, the probe thread, channels and the environment of its vantage."""

from collections.abc import Mapping
from typing import Protocol as Port

from hopscope.model.plan import Family, Protocol
from hopscope.net.ports import Channel, Clock
from hopscope.net.prober import Prober


class Ports(Port):
    """The local vantage implements this."""

    @property
    def clock(self) -> Clock:
        """Time of the vantage."""
        ...

    @property
    def prober(self) -> Prober:
        """The probe thread."""
        ...

    @property
    def environ(self) -> Mapping[str, str]:
        """Environment variables, for keys named in the plan."""
        ...

    def channel(self, protocol: Protocol, family: Family) -> Channel:
        """The one channel of a protocol and family. Raises NoRightsError."""
        ...
