"""TLS as this house wants it: who is trusted, what a server showed, and in plain words why a handshake failed.

Nothing here touches a socket; `dial.py` moves the bytes. Verification is always OpenSSL's: a name or a date is read
here only to be told, never to decide. Kept apart so that `dial.py` holds nothing but connections.
"""

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime

from hopscope.model.limits import SECOND
from hopscope.model.record import Certificate

NAMES_SHOWN = 3
NAMES_KEPT = 100
TEXT_LIMIT = 300
ANY_DATE = "Jan  1 00:00:00 2030 GMT"
"""Read once beforehand: Python loads its reader of dates on first use, 4 ms that belong in no measured time."""

# x509_vfy.h
NO_CHECK_TIME = 0x20_0000
NOT_YET_VALID, EXPIRED = 9, 10
SELF_SIGNED, SELF_SIGNED_IN_CHAIN = 18, 19
NO_ISSUER, NO_LEAF_SIGNATURE = 20, 21
WRONG_NAME, WRONG_ADDRESS = 62, 64
FACTS_WANTED = {NOT_YET_VALID, EXPIRED, WRONG_NAME, WRONG_ADDRESS}
"""Failures of a chain that is otherwise trusted, so that a second look can read it."""

# Reasons in OpenSSL's ssl.h and what they mean to somebody who wants to reach a server
REASONS = {
    "UNSUPPORTED_PROTOCOL": "no TLS version in common: the server offers none from 1.2 up",
    "TLSV1_ALERT_PROTOCOL_VERSION": "no TLS version in common",
    "WRONG_SSL_VERSION": "no TLS version in common",
    "NO_PROTOCOLS_AVAILABLE": "no TLS version in common",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "the server refused the handshake: no cipher in common, or it wants a client "
    "certificate",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the server wants a client certificate",
    "TLSV1_UNRECOGNIZED_NAME": "the server does not know this name (SNI)",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the server wants a client certificate",
    "TLSV1_ALERT_INTERNAL_ERROR": "the server failed inside (alert internal_error)",
    "TLSV1_ALERT_ACCESS_DENIED": "the server denied access (alert access_denied)",
    "TLSV1_ALERT_NO_APPLICATION_PROTOCOL": "no application protocol in common (ALPN)",
    "WRONG_VERSION_NUMBER": "what came back is not TLS",
}

SHORT = {
    "commonName": "CN",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Whose certificates count: the system's authorities, or only those in `ca_pem`; nobody's check if `insecure`."""

    ca_pem: str | None = None
    insecure: bool = False

    def context(self) -> ssl.SSLContext:
        """A client context, TLS 1.2 or newer, that verifies chain and name (RFC 9110 §4.3.4).

        Raises ssl.SSLError when `ca_pem` holds no certificate.
        """
        ssl.cert_time_to_seconds(ANY_DATE)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self.ca_pem is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(cadata=self.ca_pem)
        return context

    def lenient(self) -> ssl.SSLContext:
        """For a second look at a certificate refused for its name or dates: the chain must hold, these need not.

        Nothing may be sent over it.
        """
        context = self.context()
        context.check_hostname = False
        context.verify_flags = ssl.VerifyFlags(context.verify_flags | NO_CHECK_TIME)
        return context


def certificate(tls: ssl.SSLObject, *, verified: bool | None, why: str | None = None) -> Certificate:
    """What the server showed in a completed handshake; `not_after` is UTC in ns (RFC 5280 §4.1.2.5).

    Python decodes only what OpenSSL accepted, so after a handshake that checks nothing most fields stay unknown.
    """
    cipher = tls.cipher()
    shown = tls.getpeercert() or {}
    not_after = shown.get("notAfter")
    return Certificate(
        version=tls.version(),
        cipher=cipher[0] if cipher else None,
        alpn=tls.selected_alpn_protocol(),
        resumed=tls.session_reused,
        not_after=ssl.cert_time_to_seconds(not_after) * SECOND if isinstance(not_after, str) else None,
        subject=_distinguished(shown.get("subject")),
        names=_names(shown.get("subjectAltName")),
        issuer=_distinguished(shown.get("issuer")),
        verified=verified,
        why=why,
    )


def why(error: ssl.SSLError, server_name: str, shown: Certificate | None) -> str:
    """Why a handshake failed, in words; `shown` is what a second look found, if there was one."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _why_unverified(error, server_name, shown)
    reason = error.reason or "no reason given"
    return REASONS.get(reason, f"TLS failed: {reason.lower().replace('_', ' ')}")


def _why_unverified(error: ssl.SSLCertVerificationError, server_name: str, shown: Certificate | None) -> str:
    match error.verify_code:
        case code if code == EXPIRED:
            return f"certificate expired{_day(shown)}"
        case code if code == NOT_YET_VALID:
            return "certificate is not valid yet: wrong clock here, or there"
        case code if code == SELF_SIGNED:
            return "self-signed certificate"
        case code if code == SELF_SIGNED_IN_CHAIN:
            return "certificate from an authority that is not trusted here (self-signed certificate in its chain)"
        case code if code in (NO_ISSUER, NO_LEAF_SIGNATURE):
            return "certificate from an unknown authority (or the server leaves out an intermediate certificate)"
        case code if code in (WRONG_NAME, WRONG_ADDRESS):
            return f"certificate is not for {server_name}{_for_whom(shown)}"
        case _:
            return f"certificate not accepted: {error.verify_message}"


def _day(shown: Certificate | None) -> str:
    if shown is None or shown.not_after is None:
        return ""
    return f" on {datetime.fromtimestamp(shown.not_after // SECOND, UTC):%Y-%m-%d}"


def _for_whom(shown: Certificate | None) -> str:
    names = shown.names if shown else ()
    if not names:
        return ""
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f" but for {', '.join(names[:NAMES_SHOWN])}{more}"


def plain(text: str) -> str:
    """Text that came off the wire, fit to be shown: nothing that steers a terminal, at most 300 characters."""
    text = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text[:TEXT_LIMIT])
    return text if len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 1] + "…"


def _distinguished(name: object) -> str | None:
    """`CN=…, O=…` from Python's nested tuples, most specific first as people write it."""
    if not isinstance(name, tuple):
        return None
    parts = [f"{SHORT.get(key, key)}={value}" for relative in name for key, value in relative]
    return plain(", ".join(reversed(parts))) or None


def _names(alternatives: object) -> tuple[str, ...]:
    """DNS names and addresses of subjectAltName (RFC 5280 §4.2.1.6)."""
    if not isinstance(alternatives, tuple):
        return ()
    return tuple(plain(value) for kind, value in alternatives[:NAMES_KEPT] if kind in ("DNS", "IP Address"))
