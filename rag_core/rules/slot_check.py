"""What proposed rules of families would drop on the questions and labels there are: rightly, wrongly, or nobody knows.

Wrong drops are counted, not equal verdicts: of many verdicts nearly all are easy. Finding families is in slots.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_core.errors import InputError
from rag_core.rules.explain import reason_text
from rag_core.rules.match import decide
from rag_core.rules.questions import evidence
from rag_core.rules.slots import POLICIES, SlotFamily
from rag_core.types import Case

ENOUGH = 5  # relevant chunks met before labels may make a slot of words strict


@dataclass(frozen=True, slots=True)
class WrongDrop:
    """A relevant chunk that its proposed rule would drop."""

    query_id: str
    chunk_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class SlotCheck:
    """One family on labelled questions. Pairs are (question, member with a rule) that have a label.

    `listed` counts members in the first k places of the questions' lists, and what of them the rules drop.
    """

    family: str
    policy: str
    relevant: int
    wrong: tuple[WrongDrop, ...]
    irrelevant: int
    right: int
    listed: int = 0
    listed_dropped: int = 0

    def to_json(self) -> dict[str, Any]:
        """The counts as plain data, with each wrong drop."""
        return {
            "family": self.family,
            "policy": self.policy,
            "relevant": self.relevant,
            "wrong_drops": len(self.wrong),
            "irrelevant": self.irrelevant,
            "right_drops": self.right,
            "listed": self.listed,
            "listed_dropped": self.listed_dropped,
            "wrong": [{"query": one.query_id, "chunk": one.chunk_id, "reason": one.reason} for one in self.wrong],
        }

    def to_text(self) -> str:
        """One line, and one for each of the first wrong drops."""
        lines = [
            f"  {len(self.wrong)} of {self.relevant} relevant would be dropped wrongly, "
            f"{self.right} of {self.irrelevant} irrelevant rightly"
        ]
        if self.listed:
            lines[0] += f"; {self.listed_dropped} of the {self.listed} places it takes in lists would be free"
        lines += [f"    {one.query_id} would lose {one.chunk_id}: {one.reason}" for one in self.wrong[:3]]
        return "\n".join(lines)


def check(family: SlotFamily, cases: Sequence[Case], k: int = 15, min_grade: int = 1) -> SlotCheck:
    """What the family's rules would do on labelled questions, and in the first k places of those with a list.

    Questions made from slots are left out: they are no evidence for rules from slots.
    """
    relevant = irrelevant = right = listed = listed_dropped = 0
    wrong: list[WrongDrop] = []
    for case in evidence(cases):
        for identity, grade in case.grades.items():
            if identity not in family.rules:
                continue
            verdict = decide(family.rules[identity], case.query.text)
            if grade < min_grade:
                irrelevant += 1
                right += not verdict.satisfied
                continue
            relevant += 1
            if not verdict.satisfied:
                wrong.append(WrongDrop(case.query.id, identity, reason_text(verdict)))
        hits = case.candidates.hits[:k] if case.candidates is not None else ()
        members = [hit.chunk.id for hit in hits if hit.chunk.id in family.rules]
        listed += len(members)
        listed_dropped += sum(not decide(family.rules[identity], case.query.text).satisfied for identity in members)
    return SlotCheck(family.name, family.policy, relevant, tuple(wrong), irrelevant, right, listed, listed_dropped)


def settled(family: SlotFamily, cases: Sequence[Case], min_grade: int = 1) -> SlotFamily:
    """The family with its words asked for strictly where labels vouch for that, else as it is.

    Labels vouch where at least ENOUGH relevant pairs meet the strict rules and none would be dropped; with so few, one
    wrong drop in two questions of another kind is not ruled out, so the choice is shown and can be taken back.
    """
    if family.policy == "strict":
        return family
    slots = tuple(replace(slot, policy="strict") if slot.kind in ("word", "list") else slot for slot in family.slots)
    strict = replace(family, slots=slots)
    found = check(strict, cases, min_grade=min_grade)
    return strict if found.relevant >= ENOUGH and not found.wrong else family


def with_policy(family: SlotFamily, policy: str, cases: Sequence[Case], min_grade: int = 1) -> SlotFamily:
    """The family with every rule of that policy; `proposed` leaves it, `labels` lets labels decide."""
    if policy == "proposed":
        return family
    if policy == "labels":
        return settled(family, cases, min_grade)
    if policy not in POLICIES:
        raise InputError(f"--policy is {policy[:80]!r}, expected proposed, {', '.join(POLICIES)} or labels")
    return family.with_policy(policy)
