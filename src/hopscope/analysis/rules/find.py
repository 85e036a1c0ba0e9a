"""How a finding is put together, once: its name, its segment, and whose it is (method 4.7, 4.9)."""

from ipaddress import ip_address, ip_network

from hopscope.analysis.case import Case
from hopscope.analysis.path import Witness
from hopscope.model.report import Confidence, Evidence, Finding, FindingKind, Owner, Segment, SegmentEnd, Severity

SHARED_SPACE = ip_network("100.64.0.0/10")
"""RFC 6598: addresses of access providers."""
UNKNOWN = Owner(role="unknown")
OPERATOR = Owner(role="operator")
EITHER_WAY = "on the way to, or back from"


def finding(  # noqa: PLR0913 - a finding has this many parts
    case: Case,
    kind: FindingKind,
    severity: Severity,
    *,
    why: str,
    next_step: str,
    changes_mind: str,
    confidence: Confidence = "shown",
    evidence: Evidence | None = None,
    segment: Segment | None = None,
    owner: Owner = UNKNOWN,
    where: str = "",
) -> Finding:
    """A finding about a case; `where` tells two of one kind apart (a TTL, a port, a metric)."""
    parts = (kind, case.target.name, case.vantage, case.address or "", where)
    return Finding(
        id="/".join(part for part in parts if part),
        kind=kind,
        severity=severity,
        confidence=confidence,
        target=case.target.name,
        vantages=(case.vantage,),
        segment=segment,
        direction="either",
        owner=owner,
        why=why,
        evidence=evidence or {},
        changes_mind=changes_mind,
        next_step=next_step,
    )


def end_of(case: Case, ttl: int, address: str | None) -> SegmentEnd:
    """One end of a segment, with its AS where a database said it."""
    return SegmentEnd(ttl=ttl, address=address, asn=name_of(case, address)[0])


def segment_between(case: Case, before: Witness | None, after: Witness, flow: int) -> Segment:
    """The segment (before, after]; without a witness before, it starts at this host."""
    near = end_of(case, 0, None) if before is None else end_of(case, before.ttl, before.address)
    return Segment(from_=near, to=end_of(case, after.ttl, after.address), flow=flow)


def owner_of(case: Case, segment: Segment) -> Owner:
    """Whose a segment is, as far as addresses and databases tell (method 4.7)."""
    near, far = segment.from_, segment.to
    if far.ttl <= 1:
        return Owner(role="you", name="this host up to its gateway")
    if near.asn is not None and near.asn == far.asn:
        return Owner(role="transit", asns=(near.asn,), name=name_of(case, far.address)[1])
    if near.asn is not None and far.asn is not None:
        return Owner(role="border", asns=(near.asn, far.asn))
    if far.address == case.address:
        return Owner(role="provider", asns=() if far.asn is None else (far.asn,), name=name_of(case, far.address)[1])
    if far.address is not None and is_access(far.address):
        return Owner(role="access")
    return UNKNOWN


def name_of(case: Case, address: str | None) -> tuple[int | None, str | None]:
    """The AS of an address and its name, as far as a database said it."""
    names = case.named.get(address or "", [])
    asn = next((one.asn for one in names if one.asn is not None), None)
    return asn, next((one.as_name for one in names if one.as_name is not None), None)


def is_access(address: str) -> bool:
    """Whether an address is of the kind that access providers use inside."""
    try:
        return ip_address(address) in SHARED_SPACE
    except (ValueError, TypeError):
        return False
