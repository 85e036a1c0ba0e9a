"""A vantage behind SSH: its settings, and the agent that is started there."""

import shlex
from collections.abc import Mapping

from hopscope.errors import UsageError
from hopscope.model.plan import Vantage
from hopscope.net.far import Far
from hopscope.vantages.pipe import PipePlace, agent_command

HOME = "~/"


def open_ssh(vantage: Vantage, environ: Mapping[str, str]) -> PipePlace:
    """The place at the other end of an SSH connection. Raises UsageError."""
    host, port = vantage.settings.get("host"), vantage.settings.get("port")
    if not isinstance(host, str) or not host:
        message = f'vantage "{vantage.name}" has no host'
        raise UsageError(message, 'write host = "vps.example.net"')
    first, *rest = agent_command(vantage)
    command = shlex.join([f"./{first.removeprefix(HOME)}" if first.startswith(HOME) else first, *rest])

    async def dial() -> Far:
        from hopscope.net.ssh import Door, start

        door = Door(
            host=host,
            port=port if isinstance(port, int) else None,
            user=_text(vantage, "user"),
            key_file=_text(vantage, "key_file"),
            known_hosts=_text(vantage, "known_hosts"),
            pin=_text(vantage, "pin"),
            jump=_text(vantage, "jump"),
        )
        return await start(door, command)

    return PipePlace(vantage, environ, dial)


def _text(vantage: Vantage, key: str) -> str | None:
    value = vantage.settings.get(key)
    return value if isinstance(value, str) else None
