"""Findings and failures → cards, the worst first: what, where, whose, how sure, what next; mere facts in a line each.

A fault seen from several places is one card that names them all, with the sentence and the numbers of each.
"""

from collections.abc import Iterator

from hopscope.analysis.alike import Alike, grouped, places
from hopscope.model.report import SURENESS, FailureReport, Finding, Report
from hopscope.render import terms, words
from hopscope.render.blocks import Block, Card, Field, Heading, Items, Tone
from hopscope.render.words import clean, sentence


def findings(report: Report) -> Iterator[Block]:
    """What is worth doing something about, then what is only worth knowing."""
    order = {severity: rank for rank, severity in enumerate(terms.WORST_FIRST)}
    groups = grouped(sorted(report.verdict.findings, key=lambda one: order[one.severity]))
    acute = [group for group in groups if group[0].severity != "info"]
    known = [group for group in groups if group[0].severity == "info"]
    if acute:
        yield Heading("What was found")
        yield from (_card(group) for group in acute)
    if known:
        yield Heading("Worth knowing, nothing to mend")
        yield Items(tuple(_line(group) for group in known))


def _card(group: Alike) -> Card:
    first = group[0]
    least_sure = max(group, key=lambda one: SURENESS.index(one.confidence))
    fields = list(_told(group, "What", [sentence(one.why) for one in group], "plain"))
    fields += _told(group, "Where", [words.place(one) or "" for one in group], "plain")
    fields.append(Field("Whose", words.owner(first.owner)))
    fields.append(Field("How sure", words.sureness(least_sure)))
    if first.next_step:
        fields.append(Field("Next step", sentence(first.next_step), "strong"))
    fields += _told(group, "Numbers", [words.evidence(one.evidence) for one in group], "quiet")
    about = [clean(first.target) if first.target else "", words.names([clean(name) for name in places(group)], "from")]
    return Card(
        tone=first.severity,
        badge=terms.SEVERITIES[first.severity],
        title=terms.FINDINGS[first.kind],
        about=" ".join(part for part in about if part),
        fields=tuple(fields),
    )


def _line(group: Alike) -> str:
    """A group in one line, with its first sentence."""
    first = group[0]
    seen_from = [clean(name) for name in places(group)]
    one_alone = len({one.why for one in group}) == 1
    told = words.names(seen_from if one_alone else seen_from[:1], "from")
    who = f"{clean(first.target)} {told}" if first.target else told
    others = "" if one_alone else f" (alike {words.names(seen_from[1:], 'from')})"
    return f"{who} – {terms.FINDINGS[first.kind]}: {sentence(first.why)}{others}"


def _told(group: Alike, name: str, texts: list[str], tone: Tone) -> Iterator[Field]:
    """What each place says, in a field of its own; once, where all say the same. Nothing where there is nothing."""
    different = list(dict.fromkeys(texts))
    if len(different) == 1:
        yield from (Field(name, text, tone) for text in different if text)
        return
    for title, one, text in zip([name] + [""] * len(texts), group, texts, strict=False):
        yield Field(title, f"{_from(one)}: {text or terms.UNKNOWN}", tone)


def _from(one: Finding) -> str:
    return words.names([clean(name) for name in one.vantages], "from")


def failure(told: FailureReport) -> Card:
    """Something that was not measured, and the remedy."""
    tone: Tone = "quiet" if told.kind == "skipped" else "unknown"
    fields = [Field("Why", sentence(told.why))]
    if told.advice:
        fields.append(Field("Remedy", sentence(told.advice), "strong"))
    about = [
        clean(told.target) if told.target else "",
        f"from {clean(told.vantage)}" if told.vantage else "",
    ]
    return Card(
        tone=tone,
        badge=told.kind,
        title=terms.FAILURES[told.kind],
        about=" ".join(part for part in about if part),
        fields=tuple(fields),
    )
