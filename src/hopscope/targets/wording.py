"""How a wrong word is repeated to the one who wrote it: escaped, short, never a secret, with the nearest right word."""

import re
from collections.abc import Collection
from difflib import get_close_matches

SHOWN_CHARACTERS = 80
NEAR_CHARACTERS = 64
HUGE = 10**18
NO_SECRETS = "files never hold secrets, only the name of a variable"

# What people call a thing that has another name here; the first one that is known at that place is meant.
_SYNONYMS: dict[str, tuple[str, ...]] = {
    "address": ("host",),
    "api_base": ("url",),
    "base_url": ("url",),
    "endpoint": ("url",),
    "hostname": ("host",),
    "ip": ("host",),
    "jitter": ("pdv_p95",),
    "key": ("api_key_env", "key_env", "key_file"),
    "latency": ("rtt_p95",),
    "password": ("api_key_env", "token_env", "key_env", "key_file"),
    "secret": ("api_key_env", "token_env", "key_env"),
    "timeout": ("deadline",),
    "token": ("api_key_env", "token_env", "key_env"),
    "type": ("kind",),
}

_KEY_PREFIX = re.compile(
    r"(?:sk-|[spr]k_(?:live|test)_|gsk_|hf_|xai-|AIza|gh[opsu]_|github_pat_|glpat-|xox[abpr]-|AKIA|ASIA|eyJ|r8_|nvapi-|"
    r"pplx-|tgp_|fw_|csk-)[A-Za-z0-9_\-]{8,}"
)
_AUTHORIZATION = re.compile(r"\s*(?:bearer|basic|token)\s+\S{6,}", re.IGNORECASE)
_SECRET_QUERY = re.compile(
    r"[?&](?:api[-_]?key|key|access[-_]?token|token|secret|password|passwd|signature|sig)=[^&]", re.IGNORECASE
)
_PASSWORD = re.compile(r":(?!//)[^\s@]*@")
_SOLID = re.compile(r"(?=\D*\d)(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9]{24,}")


def shown(text: str) -> str:
    """The text on one line: control characters as escapes, cut after 80 characters."""
    cut = text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
    return "".join(_escaped(character) for character in cut)


def quoted(value: object) -> str:
    """A TOML value as words for "not …"; what looks like a secret is not repeated."""
    match value:
        case str() if looks_secret(value):
            return "what is there (not repeated: it looks like a secret)"
        case str():
            return f'"{shown(value)}"'
        case bool():
            return "true" if value else "false"
        case int() if abs(value) >= HUGE:  # TOML bounds no number, and Python prints none of 5000 digits
            return "a huge number"
        case dict():
            return "a table" if value else "an empty table"
        case list():
            return "a list" if value else "an empty list"
        case _:
            return shown(str(value))


def near(word: str, among: Collection[str]) -> str | None:
    """The known word that was probably meant, or None."""
    plain = word[:NEAR_CHARACTERS].lower().replace("-", "_")
    for synonym in _SYNONYMS.get(plain, ()):
        if synonym in among:
            return synonym
    folded = {known.lower().replace("-", "_"): known for known in among}
    for close in get_close_matches(plain, folded, n=1, cutoff=0.6):
        return folded[close]
    return None


def did_you_mean(word: str, among: Collection[str]) -> str:
    """`; did you mean "…"?`, or nothing when no known word is near."""
    close = near(word, among)
    return "" if close is None else f'; did you mean "{shown(close)}"?'


def looks_secret(text: str) -> bool:
    """Whether a person would call this text a key, token or password rather than a name."""
    return known_key(text) or secret_query(text) or bool(_SOLID.fullmatch(text) or _PASSWORD.search(text))


def known_key(text: str) -> bool:
    """Whether the text begins as the keys of known sellers do, or as an Authorization header."""
    return bool(_KEY_PREFIX.match(text) or _AUTHORIZATION.match(text))


def secret_query(text: str) -> bool:
    """Whether the text is a URL, whole or not, with a key or token among what stands after the question mark."""
    parts = re.split(r"[?&]", text)[1:]
    return bool(_SECRET_QUERY.search(text)) or any(known_key(part.rpartition("=")[2]) for part in parts)


def _escaped(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
