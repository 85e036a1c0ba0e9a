"""A host, an address or a URL as people write it: understood, or refused with the right form named.

Nothing is looked up. Names come out in lower case, IDNA-encoded (UTS 46) and without the last dot, addresses in their
short form without brackets. A password is refused without being repeated.
"""

import re
import unicodedata
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import quote, unquote

from msgspec import Struct

from hopscope.errors import UsageError
from hopscope.targets.wording import did_you_mean, secret_query, shown

SCHEME_PORTS = {"http": 80, "https": 443}
LAST_PORT = 65535
NAME_CHARACTERS = 253  # RFC 1035 section 2.3.4, less the root's own octet and length
URL_CHARACTERS = 8192
URL_MARKS = "%/:?#[]@!$&'()*+,;=-._~"  # RFC 3986 section 2

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
_ZONE = re.compile(r"[A-Za-z0-9._~-]{1,32}")
_FORMS = "write a name (gpu1.example.net), an address (192.0.2.1, 2001:db8::1) or a URL (https://gpu1.example.net/v1)"


class HostSpec(Struct, frozen=True, kw_only=True):
    """What a host argument says. `scheme` and `url` are set for a URL only; `port` is then never None."""

    host: str
    port: int | None = None
    scheme: str | None = None
    url: str | None = None


def host(text: str) -> HostSpec:
    """Understand a name, an address, either with a port, or a whole URL. Raises UsageError with the right form."""
    plain = text.strip()
    if not plain:
        raise UsageError("a host is missing: the text is empty", _FORMS)
    if len(plain) > URL_CHARACTERS:
        raise UsageError(f"a host is longer than {URL_CHARACTERS} characters", _FORMS)
    if secret_query(unquote(plain)):
        raise UsageError(
            "a URL holds a key or token after the ? (not repeated here)",
            "leave it out: name a variable instead, by api_key_env or by headers_env (-H 'Name: env:VAR')",
        )
    if "://" in plain:
        return _url(plain)
    _refuse_extras(plain)
    name, port = _authority(plain)
    return HostSpec(host=name, port=port)


def _url(text: str) -> HostSpec:
    scheme, _, rest = text.partition("://")
    authority, tail = _cut(rest)
    if "@" in authority:
        raise UsageError(
            "a URL holds a user name or password before the @ (not repeated here)",
            "leave it out: name a variable instead, by api_key_env or by headers_env (-H 'Name: env:VAR')",
        )
    if scheme.lower() not in SCHEME_PORTS:
        hint = did_you_mean(scheme, SCHEME_PORTS)
        raise UsageError(f'"{shown(text)}" has the scheme "{shown(scheme)}"{hint}', "use http:// or https://")
    if not all(character.isprintable() and character not in ' \\"<>^`{|}' for character in tail):
        raise UsageError(f'"{shown(text)}" has a character that no URL may hold', "write it as %XX (a space is %20)")
    if not authority or (authority.count(":") > 1 and not authority.startswith("[")):
        raise UsageError(
            f'"{shown(text)}" names no host'
            if not authority
            else f'"{shown(text)}" has an IPv6 address without brackets',
            "write https://gpu1.example.net/v1, or https://[2001:db8::1]:8443/v1 with an IPv6 address",
        )
    name, port = _authority(authority)
    scheme = scheme.lower()
    return HostSpec(
        host=name,
        port=port or SCHEME_PORTS[scheme],
        scheme=scheme,
        url=f"{scheme}://{_in_url(name)}{'' if port is None else f':{port}'}{quote(tail, safe=URL_MARKS)}",
    )


def _cut(rest: str) -> tuple[str, str]:
    start = min((at for mark in "/?#" if (at := rest.find(mark)) >= 0), default=len(rest))
    return rest[:start], rest[start:].partition("#")[0]  # a fragment is never sent


def _in_url(name: str) -> str:
    if ":" not in name:
        return name
    address, percent, zone = name.partition("%")
    return f"[{address}{'%25' if percent else ''}{zone}]"  # RFC 6874 section 2


def _refuse_extras(text: str) -> None:
    if "@" in text:
        raise UsageError("a host holds an @ (what stands before it is not repeated here)", "write only what follows it")
    if "/" in text or "?" in text or "#" in text:
        network = re.fullmatch(r"[0-9a-fA-F.:]+/[0-9]{1,3}", text)
        if network is not None:
            raise UsageError(f'"{shown(text)}" is a network, not a host', "name one address of it")
        bare = re.split(r"[/?#]", text, maxsplit=1)[0]
        if re.match(r"https?:", text, re.IGNORECASE):
            advice = "a URL begins with http:// or https://"
        elif re.fullmatch(r"[A-Za-z0-9_.-]+(?::[0-9]+)?", bare):
            advice = f'write "https://{shown(text)}" for the URL, or "{shown(bare)}" for the host'
        else:
            advice = _FORMS
        raise UsageError(f'"{shown(text)}" is neither a host nor a whole URL', advice)


def _authority(text: str) -> tuple[str, int | None]:
    if text.startswith("["):
        inside, bracket, after = text[1:].partition("]")
        if not bracket or (after and not after.startswith(":")):
            raise UsageError(f'"{shown(text)}" is not a host', "write [2001:db8::1]:443 for an IPv6 address and a port")
        inside = re.sub(r"%25(?=.)", "%", inside, count=1)  # RFC 6874 writes %25 before a zone
        return _ipv6(inside, text), _port(after[1:], text) if after else None
    if text.count(":") > 1:
        return _ipv6(text, text), None
    name, colon, port = text.partition(":")
    return _name_or_ipv4(name, text), _port(port, text) if colon else None


def _port(digits: str, text: str) -> int:
    if digits.isascii() and digits.isdigit() and len(digits) <= len(str(LAST_PORT)) and 1 <= int(digits) <= LAST_PORT:
        return int(digits)
    raise UsageError(f'"{shown(text)}" has no valid port after the colon', f"a port is a number from 1 to {LAST_PORT}")


def _ipv6(inside: str, text: str) -> str:
    address, percent, zone = inside.partition("%")
    try:
        short = str(IPv6Address(address))
    except AddressValueError:
        raise UsageError(
            f'"{shown(text)}" is not an IPv6 address',
            "write 2001:db8::1, fe80::1%eth0, or [2001:db8::1]:443 with a port",
        ) from None
    if not percent:
        return short
    if not _ZONE.fullmatch(zone):
        raise UsageError(f'"{shown(text)}" has no valid zone after the %', "a zone is an interface: fe80::1%eth0")
    return f"{short}%{zone}"


def _name_or_ipv4(name: str, text: str) -> str:
    plain = _ascii(name, text).lower()
    if plain.endswith(".") and plain != ".":
        plain = plain[:-1]
    labels = plain.split(".")
    if _NUMERIC.fullmatch(labels[-1]):
        try:
            return str(IPv4Address(plain))
        except AddressValueError:
            raise UsageError(
                f'"{shown(text)}" is not an IPv4 address',
                "write four numbers from 0 to 255 without leading zeros, such as 192.0.2.1",
            ) from None
    wrong = next((label for label in labels if not _LABEL.fullmatch(label)), None)
    if wrong is not None:
        raise UsageError(f'"{shown(text)}" is not a host: {_why(wrong)}', _FORMS)
    if len(plain) > NAME_CHARACTERS:
        raise UsageError(f'"{shown(text)}" is not a host: longer than {NAME_CHARACTERS} characters', _FORMS)
    return plain


def _ascii(name: str, text: str) -> str:
    if name.isascii():
        return name
    import idna  # only for names that need it: its tables cost 25 ms

    try:
        mapped = idna.uts46_remap(unicodedata.normalize("NFC", name), std3_rules=False, transitional=False)
        return ".".join(label if label.isascii() else idna.alabel(label).decode("ascii") for label in mapped.split("."))
    except (idna.IDNAError, UnicodeError):
        raise UsageError(
            f'"{shown(text)}" is not an internationalised name (IDNA 2008 does not allow one of its characters)',
            "write its ASCII form, which begins with xn--",
        ) from None


def _why(label: str) -> str:
    if not label:
        return "a part between dots is empty"
    if len(label) > 63:  # noqa: PLR2004 - RFC 1035 section 2.3.4
        return "a part between dots is longer than 63 characters"
    if label.startswith("-") or label.endswith("-"):
        return f'"{shown(label)}" begins or ends with a hyphen'
    odd = next((character for character in label if not re.fullmatch(r"[a-z0-9_-]", character)), "?")
    return "it holds a space" if odd == " " else f'it holds "{shown(odd)}"'
