"""`make matrix`: the planted truth of the demo found again over many seeds; the table is committed.

Sharded (`--only 3,4`), several labs at once, and resumable: each seed's outcome is kept in a file until all are there.
A seed that came to another commit than the present one is played again.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parent
TABLE = HERE / "MATRIX.md"
KEPT = HERE / ".matrix"
SEEDS = range(1, 21)
AT_ONCE = 2
PLANTED = "(5, 6], (5, 6], (6, 7]"


def commit() -> str:
    """The commit that is measured."""
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True, cwd=HERE)
    return done.stdout.strip()


def play(seed: int, at: str) -> dict[str, str | int]:
    """One demo; its outcome as a row."""
    kept = KEPT / f"{seed}.json"
    if kept.exists() and (row := json.loads(kept.read_text()))["commit"] == at:
        return {str(key): value for key, value in row.items()}
    with tempfile.TemporaryDirectory() as folder:
        argv = [sys.executable, "-m", "hopscope", "demo", "--seed", str(seed), "--out", f"{folder}/run"]
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
        wrong = [line for line in done.stderr.splitlines() if line.startswith("not as planted")]
        row = {"seed": seed, "commit": at, "code": done.returncode, "segment": segment(Path(folder) / "run")}
        row["wrong"] = "; ".join(wrong) or ("" if done.returncode == 0 else done.stderr[-200:])
    KEPT.mkdir(exist_ok=True)
    kept.write_text(json.dumps(row))
    return row


def segment(run: Path) -> str:
    """The lossy segment a report names."""
    try:
        findings = json.loads((run / "report.json").read_text())["verdict"]["findings"]
    except OSError:
        return "no report"
    named = [one["segment"] for one in findings if one["kind"] == "lossy-from" and one["segment"]]
    return ", ".join(f"({one['from']['ttl']}, {one['to']['ttl']}]" for one in named) or "none"


def main() -> int:
    """Play the seeds, write the table when all are there, say how many went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="seeds, as 1,2,5")
    only = parser.parse_args().only
    seeds = [int(one) for one in only.split(",")] if only else list(SEEDS)
    at = commit()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        rows = list(pool.map(lambda seed: play(seed, at), seeds))
    right = sum(row["code"] == 0 for row in rows)
    lines = [f"| seed | lossy segment from three places (planted: {PLANTED}) | verdict |", "|---|---|---|"]
    lines += [f"| {row['seed']} | {row['segment']} | {row['wrong'] or 'as planted'} |" for row in rows]
    head = f"Played {datetime.now(UTC):%Y-%m-%d} at commit {at}: {right} of {len(rows)} verdicts as planted."
    text = "\n".join(["# The demo over twenty seeds", "", head, "", *lines, ""])
    print(text)
    if not only:
        TABLE.write_text(text, encoding="utf-8")
    return 0 if right == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
