"""The steps that bring an older store to this version's, counted by its `user_version`. No library takes them.

The rule: a step that was once released is never changed, only followed by another.
"""

from typing import Final

APPLICATION_ID: Final = 0x686F7073
"""'hops': how a store of ours is told from any other database."""

_FIRST = """
CREATE TABLE run (
    id TEXT NOT NULL, config TEXT NOT NULL, slot_at INTEGER NOT NULL, started_at INTEGER NOT NULL,
    finished_at INTEGER NOT NULL, tool_version TEXT NOT NULL, status TEXT NOT NULL, outcome TEXT NOT NULL,
    partial INTEGER NOT NULL, summary TEXT NOT NULL,
    PRIMARY KEY (id)
) STRICT;
CREATE INDEX run_slot_at ON run (slot_at);
CREATE TABLE result (
    run TEXT NOT NULL, number INTEGER NOT NULL, target TEXT NOT NULL, vantage TEXT NOT NULL, kind TEXT NOT NULL,
    address TEXT, protocol TEXT NOT NULL, port INTEGER, outcome TEXT NOT NULL, sent INTEGER NOT NULL,
    lost INTEGER NOT NULL, min_ms REAL, p50_ms REAL, p95_ms REAL, pdv_p95_ms REAL, server_p50_ms REAL,
    ttfb_p50_ms REAL, path_hash TEXT,
    PRIMARY KEY (run, number), FOREIGN KEY(run) REFERENCES run (id) ON DELETE CASCADE
) STRICT;
CREATE TABLE alarm (
    config TEXT NOT NULL, target TEXT NOT NULL, metric TEXT NOT NULL, state TEXT NOT NULL, since INTEGER NOT NULL,
    recent TEXT NOT NULL, flaps INTEGER NOT NULL, told INTEGER NOT NULL,
    PRIMARY KEY (config, target, metric)
) STRICT;
CREATE TABLE event (
    id INTEGER NOT NULL, at INTEGER NOT NULL, run TEXT NOT NULL, target TEXT NOT NULL, metric TEXT NOT NULL,
    kind TEXT NOT NULL, message TEXT NOT NULL, told INTEGER NOT NULL,
    PRIMARY KEY (id), FOREIGN KEY(run) REFERENCES run (id) ON DELETE CASCADE
) STRICT;
CREATE INDEX event_at ON event (at)
"""

STEPS: Final[tuple[tuple[str, ...], ...]] = (tuple(_FIRST.split(";")),)
VERSION: Final = len(STEPS)
