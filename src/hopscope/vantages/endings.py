"""Why a vantage is down, in one line, and what to do about it: every way an agent can end, wait or talk nonsense."""

from hopscope.errors import VantageDownError
from hopscope.net.far import Ending

INSTALL = (
    "install hopscope there, or say in the target file how it starts:"
    ' hopscope = "/path/to/hopscope" or "python3 -m hopscope"'
)
NOISE = "see that the command starts `hopscope agent` and nothing else that writes on standard output"
TOLD_OF_STRANGERS = 80
CODES: dict[int, tuple[str, str]] = {
    64: ("the hopscope there cannot be an agent", "upgrade hopscope there"),
    126: ("hopscope may not be run there", "make it executable for that user, or name another: hopscope = …"),
    127: ("hopscope is not installed there, or not on its PATH", INSTALL),
    137: ("the hopscope there was killed", "look for a limit of memory or time there"),
    255: ("the way there broke", "see that the same command works by hand"),
}


def ended(ending: Ending, *, banner: str = "", amid: bool = False) -> VantageDownError:
    """An agent that ended before its work did."""
    why, advice = _reason(ending)
    if amid:
        why = f"{why}, in the middle of a record"
    said = ending.said or banner
    return VantageDownError(f"{why}: {said}" if said else why, advice)


def _reason(ending: Ending) -> tuple[str, str]:
    if "No module named" in ending.said:
        return "hopscope is not installed for the Python there", INSTALL
    if "No such command" in ending.said:
        return "the hopscope there is of a version without `agent`", "upgrade hopscope there"
    match ending.code:
        case None:
            return "the connection ended", "run again; if it stays so, see what the other side logs"
        case 0:
            return "what was started there ended before the measuring did", NOISE
        case code if code in CODES:
            return CODES[code]
        case code if code < 0:
            return f"what was started there was killed by signal {-code}", "look for who ends it"
        case code:
            return f"what was started there ended with code {code}", "see that the same command works by hand"


def stranger(said: str) -> VantageDownError:
    """Something answers, and it is no agent."""
    return VantageDownError(f"what answers there is not hopscope: it said {said[:TOLD_OF_STRANGERS]}", NOISE)


def broken(what: str) -> VantageDownError:
    """An agent's line that no agent writes."""
    return VantageDownError(f"the hopscope there wrote {what}", "install the same version of hopscope on both sides")


def silent(limit_s: float) -> VantageDownError:
    """An agent that was one, and says nothing more."""
    return VantageDownError(
        f"nothing was heard from there for {limit_s:g} s", "see whether that machine is up; run again"
    )


def no_hello(limit_s: float, said: str, *, deadline_s: float | None = None) -> VantageDownError:
    """Something that was started and does not say who it is; `deadline_s` where that of the vantage ended it."""
    within = f"{round(limit_s, 1):g} s" if deadline_s is None else f"its deadline of {deadline_s:g} s"
    instead = f"; it said {said}" if said else ""
    return VantageDownError(f"no hopscope answered there within {within}{instead}", NOISE)


def too_late(limit_s: float) -> VantageDownError:
    """A vantage that came to its deadline."""
    return VantageDownError(f"not finished within its deadline of {limit_s:g} s", "raise `deadline` of the vantage")
