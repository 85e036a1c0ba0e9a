"""Complaints → the message of one error: a line for each, sorted by place, bounded, `FILE:LINE: key "…": …`."""

from hopscope.targets.nodes import UNKNOWN, Complaint
from hopscope.targets.nodes import listed as words
from hopscope.targets.syntax import Path
from hopscope.targets.wording import NO_SECRETS, near, shown

LISTED = 100
FEW = 13


def listed(complaints: list[Complaint], text: str, file: str) -> str:
    """One line for each complaint, each once, at most 100 of them; `text` is what the lines are counted in."""
    from hopscope.targets.positions import lines

    places = lines(text)
    placed = sorted(
        {(complaint.path, complaint.says): complaint for complaint in complaints}.values(),
        key=lambda complaint: _line(complaint.path, places),
    )
    rows = [_row(complaint, places, file) for complaint in placed[:LISTED]]
    if len(placed) > LISTED:
        rows.append(f"{shown(file)}: and {len(placed) - LISTED} more errors")
    return "\n".join(rows)


def _row(complaint: Complaint, places: dict[Path, int], file: str) -> str:
    key = ".".join(shown(step) for step in complaint.path if isinstance(step, str))
    where = f"{shown(file)}:{_line(complaint.path, places)}:" + (f' key "{key}":' if key else "")
    other = f" (line {_line(complaint.other, places)})" if complaint.other else ""
    return f"{where} {complaint.says}{other}{_hint(complaint)}"


def _hint(complaint: Complaint) -> str:
    close = near(complaint.word, complaint.among) if complaint.word else None
    if close is None:
        few = complaint.says == UNKNOWN and 0 < len(complaint.among) <= FEW
        return f"; known here: {words(complaint.among)}" if few else ""
    secret = close.endswith("_env") and not complaint.word.endswith("_env")
    return f'; did you mean "{shown(close)}"?{f" ({NO_SECRETS})" if secret else ""}'


def _line(path: Path, places: dict[Path, int]) -> int:
    while path and path not in places:
        path = path[:-1]
    return places.get(path, 1)
