"""Findings about the way: lossy, limited, longer. Rules 4.1-4.4 of the method."""

from collections.abc import Iterator

from hopscope.analysis import reach
from hopscope.analysis.binomial import at_least
from hopscope.analysis.case import Case, PathCase
from hopscope.analysis.distance import explained_ms, place_of
from hopscope.analysis.path import TOLERATED_LOSS, Count, Limited, Step, count, excuses, shows_loss
from hopscope.analysis.results import slow_evidence
from hopscope.analysis.rules.find import EITHER_WAY, OPERATOR, end_of, finding, owner_of, segment_between
from hopscope.analysis.say import hop, ms, ns, rate, share
from hopscope.model.limits import MS, SECOND
from hopscope.model.plan import Protocol
from hopscope.model.report import Confidence, Evidence, Finding, Segment


def lossy_from(case: Case) -> Iterator[Finding]:
    """Loss that the end sees, and where it begins."""
    located = False
    for path in sorted(case.paths, key=_varies):
        if path.view.varies and (located or case.end_series is not None):
            continue
        if path.along.excused is not None:
            yield _limited_target(case, path.view.who.protocol, path.along.end, path.along.excused)
            located = True
        elif path.along.decided:
            yield from _located(case, path)
            located = True
        elif path.along.lossy:
            yield _unlocated(case, path.along.end, path)
            located = True
    view = case.end_series
    if located or view is None:
        return
    seen, other = count(view.counted), case.other_than(view.who.protocol)
    if shows_loss(seen):
        limits = excuses(other, seen)
        yield _limited_target(case, view.who.protocol, seen, other) if limits else _unlocated(case, seen, None)


def _varies(path: PathCase) -> bool:
    """Paths that can name a segment come first."""
    return path.view.varies


def accept_limited(case: Case) -> Iterator[Finding]:
    """SYNs unanswered while echoes are not: a full accept queue, the operator's and never the path's (method 2.9)."""
    for view in case.of("tcp"):
        seen, other = count(view.counted), case.other_than("tcp")
        if reach.answers(view) and shows_loss(seen) and excuses(other, seen):
            yield finding(
                case,
                "accept-limited",
                "warning",
                confidence="likely",
                why=f"port {view.who.port} of {case.address} leaves {share(seen.lost, seen.sent)} of the connections "
                f"unanswered, while another protocol loses {share(other.lost, other.sent)}: its accept queue is full, "
                "or something limits new connections",
                next_step="look at the server's backlog and its firewall's limit on new connections",
                changes_mind="the same loss by another protocol at the same time",
                evidence={"lost": seen.lost, "sent": seen.sent, "other_lost": other.lost, "other_sent": other.sent},
                owner=OPERATOR,
                where=str(view.who.port),
            )


def _located(case: Case, path: PathCase) -> Iterator[Finding]:
    """Loss with a segment. Where it begins at the target itself, another protocol must show it too."""
    along = path.along
    first = along.first_lossy
    if first is None:
        return
    segment = segment_between(case, along.last_clean, first, path.view.flow)
    confidence: Confidence = "shown"
    doubt = ""
    if first.end and along.last_clean is not None and not shows_loss(case.other_than(path.view.who.protocol)):
        confidence = "undecided"
        doubt = f"; only {path.view.who.protocol} shows it, so the target may merely limit its answers"
    where = f"between {hop(segment.from_.ttl, segment.from_.address)} and {hop(segment.to.ttl, segment.to.address)}"
    yield finding(
        case,
        "lossy-from",
        "warning",
        confidence=confidence,
        why=f"{share(along.end.lost, along.end.sent)} of the packets are lost from {hop(first.ttl, first.address)} "
        f"on: it begins {where}, {EITHER_WAY} there{doubt}",
        next_step=_lossy_step(segment),
        changes_mind="a clean series, or a clean hop beyond this segment",
        evidence=_lossy_evidence(path),
        segment=segment,
        owner=owner_of(case, segment),
        where=str(first.ttl),
    )


def _lossy_step(segment: Segment) -> str:
    """Who should be told what."""
    if segment.to.ttl <= 1:
        return "look at this machine's cable, Wi-Fi or virtual switch first"
    owner = segment.to.address or f"hop {segment.to.ttl}"
    return f"send this report to whoever runs {owner}: the loss is between these two hops, the hops before are clean"


def _lossy_evidence(path: PathCase) -> Evidence:
    """Counts on both sides of the split."""
    along = path.along
    far = [witness for witness in along.witnesses if along.first_lossy and witness.ttl >= along.first_lossy.ttl]
    near = [witness for witness in along.witnesses if witness not in far]
    return {
        "end_lost": along.end.lost,
        "end_sent": along.end.sent,
        "near_lost": sum(witness.count.lost for witness in near),
        "near_sent": sum(witness.count.sent for witness in near),
        "far_lost": sum(witness.count.lost for witness in far),
        "far_sent": sum(witness.count.sent for witness in far),
        "p": along.p,
        "test": "one-sided Fisher" if near else "binomial against 1 %",
    }


def _limited_target(case: Case, protocol: Protocol, end: Count, other: Count) -> Finding:
    """The target limits its answers to one protocol; another sees no loss."""
    return finding(
        case,
        "replies-limited",
        "info",
        why=f"{case.address} leaves {share(end.lost, end.sent)} of {protocol} probes unanswered, "
        f"while another protocol loses {share(other.lost, other.sent)}: it limits its answers",
        next_step="none needed; judge by the other protocol",
        changes_mind="loss by another protocol at the same time",
        evidence={"lost": end.lost, "sent": end.sent, "other_lost": other.lost, "other_sent": other.sent},
        owner=OPERATOR,
        where="target",
    )


def _unlocated(case: Case, end: Count, path: PathCase | None) -> Finding:
    """Loss that only the end shows so far."""
    traced = path is not None or bool(case.paths)
    tail = "where it begins is undecided: not enough data yet" if traced else "no path was traced"
    return finding(
        case,
        "lossy-from",
        "warning",
        why=f"{share(end.lost, end.sent)} of the packets to {case.address} are lost, {EITHER_WAY} there; {tail}",
        next_step=f"hopscope trace {case.address} -c 200"
        if not traced
        else "run again with more rounds (rounds = 300, or --patient)",
        changes_mind="a clean series",
        evidence={
            "end_lost": end.lost,
            "end_sent": end.sent,
            "p": at_least(end.lost, end.sent, TOLERATED_LOSS),
            "test": "binomial against 1 %",
        },
        where="end",
    )


def replies_limited(case: Case) -> Iterator[Finding]:
    """Hops whose own loss is not carried beyond (method 4.3)."""
    for path in case.paths:
        for limited in path.along.limited:
            yield _limited(case, path, limited)


def _limited(case: Case, path: PathCase, limited: Limited) -> Finding:
    """One limited hop, with both rates where it was asked slowly too."""
    view = path.view
    slow = ""
    if limited.slow is not None:
        slow_rate = rate(view.slow_interval_ns.get(limited.ttl))
        slow = (
            f"; asked {slow_rate} it loses {share(limited.slow.lost, limited.slow.sent)}"
            f"{'' if limited.cleared else ', still more than those beyond'}"
        )
    evidence: Evidence = {
        "lost": limited.count.lost,
        "sent": limited.count.sent,
        "beyond_lost": limited.beyond.lost,
        "beyond_sent": limited.beyond.sent,
        "p": limited.p,
        "asked_per_s": SECOND / view.interval_ns,
    }
    return finding(
        case,
        "replies-limited",
        "info",
        why=f"{hop(limited.ttl, limited.address)} leaves {share(limited.count.lost, limited.count.sent)} of the probes "
        f"sent at {rate(view.interval_ns)} unanswered, but those beyond lose only "
        f"{share(limited.beyond.lost, limited.beyond.sent)}: it limits its own replies and forwards well{slow}",
        next_step="none: ignore this hop's loss",
        changes_mind="the same loss at the hops beyond it",
        evidence=evidence | slow_evidence(limited.slow, view.slow_interval_ns.get(limited.ttl)),
        where=str(limited.ttl),
    )


def slow_from(case: Case) -> Iterator[Finding]:
    """Where the way gets longer for good (method 4.4): explained or unknown places make it information."""
    for path in case.paths:
        if path.steps:
            yield _longest_step(case, path)


def _longest_step(case: Case, path: PathCase) -> Finding:
    """The largest step of a path; the others are labels of their hops."""
    step = max(path.steps, key=_size)
    segment = Segment(
        from_=end_of(case, step.before_ttl, step.before_address),
        to=end_of(case, step.ttl, step.address),
        flow=path.view.flow,
    )
    explained = _explained_ms(case, step)
    unexplained = explained is not None and step.step_ns > explained * MS
    if explained is None:
        reason = "where these hops stand is unknown, so distance may explain it"
    elif unexplained:
        reason = f"distance explains no more than {ms(explained)} of it"
    else:
        reason = f"distance explains it: up to {ms(explained)}"
    return finding(
        case,
        "slow-from",
        "warning" if unexplained else "info",
        confidence="likely" if explained is None else "shown",
        why=f"{ns(step.step_ns)} of the round trip are added between {hop(step.before_ttl, step.before_address)} and "
        f"{hop(step.ttl, step.address)}, and every hop beyond keeps them; {reason}",
        next_step="ask the owner of these hops for a shorter way" if unexplained else "none: distance cannot be moved",
        changes_mind="other places of these hops, or an earlier measurement that was shorter",
        evidence={"step_ms": step.step_ns / MS, "needed_ms": step.needed_ns / MS, "explained_ms": explained},
        segment=segment,
        owner=owner_of(case, segment),
        where=str(step.ttl),
    )


def _explained_ms(case: Case, step: Step) -> float | None:
    """What distance explains of a step, where both places are known (method 4.4)."""
    near = place_of(case.named.get(step.before_address or "", []))
    far = place_of(case.named.get(step.address or "", []))
    return None if near is None or far is None else explained_ms(near, far)


def _size(step: Step) -> int:
    return step.step_ns
