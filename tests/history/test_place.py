"""Where the store lies, and what is refused by name without repeating a URL."""

from pathlib import Path

import pytest

from hopscope.errors import UsageError
from hopscope.history.place import place


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///history.db", "history.db"),
        ("sqlite:////var/lib/hopscope/history.db", "/var/lib/hopscope/history.db"),
        ("sqlite+pysqlite:///a.db", "a.db"),
        ("history.sqlite", "history.sqlite"),
        ("/var/lib/x?y.sqlite", "/var/lib/x?y.sqlite"),
    ],
)
def test_a_url_or_a_path(url: str, path: str) -> None:
    assert place(url, {}) == Path(path)


def test_the_default_is_in_the_state_folder() -> None:
    home = Path.home() / ".local" / "state" / "hopscope" / "history.sqlite"
    assert place(None, {"XDG_STATE_HOME": "/srv/state"}) == Path("/srv/state/hopscope/history.sqlite")
    assert place(None, {}) == place(None, {"XDG_STATE_HOME": "relative"}) == home
    assert place("sqlite:///~/x.db", {}) == Path.home() / "x.db"


def test_a_variable() -> None:
    assert place(None, {"STORE": "sqlite:///x.db"}, url_env="STORE") == Path("x.db")
    assert place("sqlite:///y.db", {}, url_env="STORE") == Path("y.db")
    with pytest.raises(UsageError, match="STORE"):
        place(None, {}, url_env="STORE")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@db.example.net/hopscope",
        "postgresql+psycopg://me:hunter2@db.example.net/hopscope",
        "mysql://me:hunter2@db.example.net/x",
        "sqlite:///:memory:",
        "sqlite:///x.db?mode=memory",
        "sqlite://",
        "sqlite:///",
        "sqlite://host/x",
        "sqlite:///x\0y",
    ],
)
def test_what_is_no_store_of_this_version(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        place(url, {})
    assert "hunter2" not in f"{refused.value} {refused.value.advice}"
    assert ("PostgreSQL" in str(refused.value)) is url.startswith("postgresql")
