"""Where the store lies: an option, a target file, or the user's state folder; always a file of SQLite for now.

A URL is never repeated in a message: it may hold a password.
"""

from collections.abc import Mapping
from pathlib import Path

from hopscope.errors import UsageError

FORM = "write sqlite:///history.sqlite, or sqlite:////var/lib/hopscope/history.sqlite for a whole path"
NAME = Path("hopscope") / "history.sqlite"


def place(url: str | None, environ: Mapping[str, str], *, url_env: str | None = None) -> Path:
    """The file of the store: of `url`, else of the variable `url_env`, else the default. Raises UsageError."""
    if url is None and url_env is not None:
        url = environ.get(url_env)
        if not url:
            message = f"the variable {url_env}, which names the store, is not set"
            raise UsageError(message, f"export {url_env}, or give the store with --store")
    return default(environ) if url is None else _of(url)


def default(environ: Mapping[str, str]) -> Path:
    """`hopscope/history.sqlite` in the user's state folder (XDG: a relative XDG_STATE_HOME does not count)."""
    state = Path(environ.get("XDG_STATE_HOME", ""))
    return (state if state.is_absolute() else Path.home() / ".local" / "state") / NAME


def _of(url: str) -> Path:
    """The file that a URL or a bare path names."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        scheme, rest = "sqlite", f"/{url}"
    match scheme.split("+")[0]:
        case "postgresql" | "postgres":
            message = "a store in PostgreSQL is not part of this version"
            raise UsageError(message, "use SQLite: " + FORM)
        case "sqlite" if rest.startswith("/") and rest[1:] and "\0" not in rest:
            pass
        case _:
            raise UsageError("this is no store", FORM)
    if rest[1:] == ":memory:" or (mark and "?" in rest):
        raise UsageError("a store is a file, without parameters", FORM)
    return Path(rest[1:]).expanduser()
