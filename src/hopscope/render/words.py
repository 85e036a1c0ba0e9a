"""How each number, status and finding is worded, once: no writer words anything by itself.

An unknown number is "unknown" (a dash in a table), never 0; "0 %" stands only where nothing was lost. Whatever comes
off the wire or out of a file is hostile until it went through `clean`.
"""

import math
import re

from hopscope.analysis.say import DIGITS, LEAST_RATIO, UNKNOWN, count, digits, ms, ratio
from hopscope.model.plan import Protocol
from hopscope.model.report import Client, Evidence, Finding, Owner, PathEnd, SegmentEnd, ServerTime
from hopscope.render import terms
from hopscope.render.terms import DASH

NAME_LENGTH = 120
SENTENCE_LENGTH = 1200
MAX_NAMES = 4  # of targets or vantages named in one line

DIRECTIONS = {
    "forward": "on the way to the target",
    "return": "on the way back from the target",
    "either": "on the way to, or back from, the target",
}

Fact = str | int | float | bool | None

_ODD = re.compile(r"[^\x20-\x7e]")


def clean(text: str, limit: int = NAME_LENGTH) -> str:
    """The text with everything that moves a cursor, breaks a line or turns its direction shown as an escape."""
    kept = text if len(text) <= limit else text[: limit - 1] + "…"
    return _ODD.sub(lambda found: shown(found[0]), kept)


def shown(char: str) -> str:
    r"""A printable character as it is, any other as its escape: \n, \x1b, \u202e."""
    return char if char.isprintable() else char.encode("unicode_escape", "backslashreplace").decode("ascii")


def sentence(text: str) -> str:
    """A sentence of the report, clean; it may quote names that are not ours."""
    return clean(text, SENTENCE_LENGTH)


def names(known: list[str], word: str = "") -> str:
    """A few names, clean already, and how many more there are."""
    if not known:
        return ""
    more = f" and {len(known) - MAX_NAMES} more" if len(known) > MAX_NAMES else ""
    return f"{word} {', '.join(known[:MAX_NAMES])}{more}".lstrip()


# ---- numbers --------------------------------------------------------------------------------------------------------


def cell_ms(value: float | None) -> str:
    """A duration for a column that says "ms" at its head: 0.045, 8.31, 1520."""
    return DASH if value is None or not math.isfinite(value) else digits(value, padded=True)


def cell_ratio(value: float | None) -> str:
    """A share in a table."""
    return DASH if value is None else ratio(value)


def ratio_interval(low: float | None, high: float | None) -> str:
    """The interval of a share: "0–7.1 %"; empty where there is none."""
    if low is None or high is None:
        return ""
    least = 0.0 if low < LEAST_RATIO else low
    return f"{ratio(least).removesuffix(' %')}–{ratio(high)}"


def interval(low: float | None, high: float | None) -> str:
    """The interval of a duration, in the unit of its column: "8.20–8.44"; empty where there is none."""
    return "" if low is None or high is None else f"{cell_ms(low)}–{cell_ms(high)}"


def evidence(facts: Evidence) -> str:
    """The numbers of a finding, each with its name and unit."""
    return " · ".join(f"{_fact_name(key)} {_fact(key, value)}" for key, value in facts.items())


def _fact_name(key: str) -> str:
    return clean(re.sub(r"_(ms|bytes|at)$", "", key).replace("_", " "))


def _fact(key: str, value: Fact) -> str:
    match value:
        case None:
            return UNKNOWN
        case bool():
            return "yes" if value else "no"
        case str():
            return clean(value)
        case int() | float() if key.endswith("_ms"):
            return ms(value)
        case int():
            return f"{value} bytes" if key.endswith("_bytes") else str(value)
        case float() if re.search(r"(^|_)(loss|ratio|share|low|high)(_|$)", key) and 0 <= value <= 1:
            return ratio(value)
        case float():
            return f"{value:.{DIGITS}g}"


# ---- where, whose, how sure ------------------------------------------------------------------------------------------


def protocol(name: Protocol, port: int | None) -> str:
    """What was sent: ICMP, TCP 443."""
    return name.upper() if port is None else f"{name.upper()} {port}"


def autonomous_systems(asns: tuple[int, ...]) -> str:
    """AS64500 and AS64501."""
    return " and ".join(f"AS{asn}" for asn in asns)


def place(finding: Finding) -> str | None:
    """Where it begins, as far as is known; `None` where a finding has no place on the path."""
    segment = finding.segment
    if segment is None:
        return "seen end to end, the hop is unknown" if finding.kind in {"lossy-from", "varying-from"} else None
    flow = "" if segment.flow is None else f" (flow {segment.flow})"
    return f"between {_end(segment.from_)} and {_end(segment.to)}, {DIRECTIONS[finding.direction]}{flow}"


def owner(owner: Owner) -> str:
    """Whose it is: "a transit network: Example Transit (AS64500)"."""
    role = terms.ROLES[owner.role]
    systems = autonomous_systems(owner.asns)
    if owner.role == "border" and len(owner.asns) > 1:
        role, systems = f"the border of {systems}", ""
    name = clean(owner.name) if owner.name else ""
    who = f"{name} ({systems})" if name and systems else name or systems
    return f"{role}: {who}" if who else role


def sureness(finding: Finding) -> str:
    """How sure it is, and what would change that."""
    word = terms.CONFIDENCES[finding.confidence]
    return f"{word}. This would change it: {sentence(finding.changes_mind)}" if finding.changes_mind else word


def path_end(end: PathEnd | None) -> str:
    """How the path ended."""
    if end is None:
        return "how it ended is unknown"
    code = "" if end.code is None or end.how not in {"unreachable", "nat"} else f" (code {end.code})"
    by = "" if end.address is None else f" by {clean(end.address)}"
    at = "" if end.ttl is None else f" at hop {end.ttl}"
    told = by if end.how in {"unreachable", "nat"} else ""
    return f"{terms.PATH_ENDS[end.how]}{code}{told}{at}"


def bracket(server: ServerTime | None) -> str:
    """The bracket of server time: "88.1–92.4"; "unknown" at an end that is not known."""
    if server is None or (server.lower_ms is None and server.upper_ms is None):
        return ""
    return f"{cell_ms(server.lower_ms)}–{cell_ms(server.upper_ms)}"


def client(client: Client) -> str:
    """What was wrong with the measuring side."""
    parts = [
        f"probes left up to {ms(client.late_p99_ms)} late (p99)" if client.late_p99_ms is not None else "",
        f"{count(client.drops, 'packet')} dropped by its own socket" if client.drops else "",
        f"its clock stepped by {ms(client.clock_step_ms)}" if client.clock_step_ms else "",
    ]
    return ", ".join(part for part in parts if part) or "the reason was not recorded"


def _end(end: SegmentEnd) -> str:
    if not end.ttl:
        return "this host"
    about = [clean(end.address) if end.address else "", f"AS{end.asn}" if end.asn is not None else ""]
    known = ", ".join(part for part in about if part)
    return f"hop {end.ttl} ({known or 'no address'})"
