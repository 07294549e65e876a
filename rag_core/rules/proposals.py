"""Proposed rules and the check that stands before storing: what passes, and why each other one does not.

Proposals come from templates, a language model, a file or a person; all pass the same check. Storing them is the
collection's (rag_core.index.rules); generating with a model is in generate.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rag_core.errors import RuleError
from rag_core.rules.alternatives import Words, template_alternatives, torn_apart
from rag_core.rules.explain import reason_text
from rag_core.rules.match import RuleVerdict, decide
from rag_core.rules.model import Rule
from rag_core.rules.parsing import parse_rule, read_rule
from rag_core.rules.siblings import sibling_families
from rag_core.rules.templates import TemplateFamily, propose
from rag_core.types import Case, Chunk


@dataclass(frozen=True, slots=True)
class Refusal:
    """A proposal that is not stored, and why: `kind` for machines, `reason` for people."""

    chunk_id: str
    kind: str  # unreadable | unknown-chunk | torn-group | siblings-alike | drops-relevant | answer
    reason: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What the check found: rules that may be stored, by chunk; refusals; and warnings about what passes."""

    accepted: Mapping[str, Rule]
    refused: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def remarks(self) -> list[str]:
        """Each refusal and warning as a line."""
        refused = [f"refused {refusal.chunk_id}: {refusal.reason}" for refusal in self.refused]
        return [*refused, *(f"warning: {text}" for text in self.warnings)]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        accepted = {identity: rule.as_mapping() for identity, rule in self.accepted.items()}
        refused = [asdict(refusal) for refusal in self.refused]
        return {"accepted": accepted, "refused": refused, "warnings": list(self.warnings)}


def template_proposals(chunks: Iterable[Chunk], families: Sequence[TemplateFamily] | None = None) -> dict[str, Any]:
    """Chunk id → the rule its title's template writes, for the chunks a template fits."""
    found = ((chunk.id, propose(chunk.title, families)) for chunk in chunks)
    return {identity: proposal.rule.as_mapping() for identity, proposal in found if proposal is not None}


def check_proposals(
    proposals: Mapping[str, Any],
    chunks: Sequence[Chunk],
    cases: Sequence[Case] = (),
    min_grade: int = 1,
    families: Sequence[TemplateFamily] | None = None,
) -> Checked:
    """Check proposed rules (chunk id → rule as in a file) against the corpus they are for and the labels there are.

    A rule passes if it parses, does not ask for alternatives together, is not the rule of a sibling under another
    title, and admits its chunk for every query the chunk is labelled relevant for.
    """
    by_id = {chunk.id: chunk for chunk in chunks}
    parsed, refused = _parsed(proposals, by_id)
    alternatives = template_alternatives(families)
    for identity, rule in list(parsed.items()):
        refusal = _torn(identity, rule, by_id[identity].title, alternatives) or _dropping(
            identity, rule, cases, min_grade
        )
        if refusal is not None:
            refused.append(refusal)
            del parsed[identity]
    alike, warnings = _alike(parsed, chunks, families)
    refused += alike
    for refusal in alike:
        del parsed[refusal.chunk_id]
    return Checked(parsed, tuple(refused), tuple(warnings))


def _parsed(proposals: Mapping[str, Any], by_id: Mapping[str, Chunk]) -> tuple[dict[str, Rule], list[Refusal]]:
    """The proposals that are rules of chunks there are."""
    parsed: dict[str, Rule] = {}
    refused: list[Refusal] = []
    for identity, raw in proposals.items():
        if identity not in by_id:
            refused.append(Refusal(identity, "unknown-chunk", "there is no chunk of that id"))
            continue
        try:
            parsed[identity] = raw if isinstance(raw, Rule) else parse_rule(raw, f"chunk {identity[:80]}")
        except RuleError as error:
            refused.append(Refusal(identity, "unreadable", str(error)))
    return parsed, refused


def _torn(identity: str, rule: Rule, title: str, alternatives: Iterable[Words]) -> Refusal | None:
    groups = torn_apart(rule, title, alternatives)
    if not groups:
        return None
    shown = " and ".join(" / ".join(group[:3]) for group in groups)
    return Refusal(identity, "torn-group", f"asks for {shown} together, expected them in one group")


def _dropping(identity: str, rule: Rule, cases: Iterable[Case], min_grade: int) -> Refusal | None:
    """A refusal where the rule drops its chunk from a query it is labelled relevant for."""
    lost = []
    for case in cases:
        if case.grades.get(identity, 0) >= min_grade:
            verdict = decide(rule, case.query.text)
            if not verdict.satisfied:
                lost.append(f"{case.query.id} ({reason_text(verdict)})")
    if not lost:
        return None
    more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
    return Refusal(
        identity, "drops-relevant", f"drops the chunk where it is labelled relevant: {'; '.join(lost[:3])}{more}"
    )


def _alike(
    parsed: Mapping[str, Rule], chunks: Sequence[Chunk], families: Sequence[TemplateFamily] | None
) -> tuple[list[Refusal], list[str]]:
    """Proposals whose rule a sibling has or is proposed too: refused, or a warning where their titles are equal."""
    titles = {chunk.id: chunk.title for chunk in chunks}
    standing = {chunk.id: rule for chunk in chunks if isinstance(rule := read_rule(chunk.query_must), Rule)}
    rules = {**standing, **parsed}
    refused: list[Refusal] = []
    warnings: list[str] = []
    for ids in sibling_families(titles, families).values():
        same: dict[Rule, list[str]] = defaultdict(list)
        for identity in ids:
            if identity in rules:
                same[rules[identity]].append(identity)
        for twins in same.values():
            proposed = [identity for identity in twins if identity in parsed]
            if len(twins) < 2 or not proposed:
                continue
            if len({titles[identity] for identity in twins}) == 1:
                warnings.append(f"{', '.join(twins[:5])} have one title and one rule: nothing tells them apart")
                continue
            for identity in proposed:
                other = next(one for one in twins if one != identity)
                reason = f"is the rule of its sibling {other} too: nothing would tell the two apart"
                refused.append(Refusal(identity, "siblings-alike", reason))
    return refused, warnings


@dataclass(frozen=True, slots=True)
class ProposalPreview:
    """A proposed rule beside one labelled query: the verdict and the chunk's grade there (None: no label)."""

    query_id: str
    verdict: RuleVerdict
    grade: int | None


def preview(
    identity: str, rule: Rule, cases: Iterable[Case], labelled_only: bool = False
) -> tuple[ProposalPreview, ...]:
    """The rule's verdict on every query, or only on those the chunk has a label for."""
    return tuple(
        ProposalPreview(case.query.id, decide(rule, case.query.text), case.grades.get(identity))
        for case in cases
        if not labelled_only or identity in case.grades
    )
