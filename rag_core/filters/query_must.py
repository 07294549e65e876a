"""QueryMust: drop a chunk whose own rule the user's query does not satisfy. A chunk without a rule is never touched.

The rule is read and decided in rag_core/rules; refilling what was dropped is left to retrieve/requery.py. A rule that
cannot be read never drops its chunk: it passes with a notice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rag_core.rules.match import MODES, RuleVerdict, decide, reason_text, would_stay_text
from rag_core.rules.rule import Rule, read_rule
from rag_core.stage import Filter, Judgement, setting
from rag_core.text import counted
from rag_core.types import Candidates, Counterfactual, Drop, Hit, Notice, Reason, Step


@dataclass(frozen=True)
class QueryMust(Filter):
    """Keep a chunk only if the original query says what the chunk's rule asks for."""

    mode: str = setting(
        "token", "token: words and numbers in a row; substring: the literal text", choices=MODES, priority=1
    )
    plurals: bool = setting(True, "a word matches its regular singular and plural; off: as written (token mode)")

    title: ClassVar[str] = "rules"
    drawer: ClassVar[str] = "rules"

    @classmethod
    def said(cls, step: Step) -> str:
        """How many of the chunks have a rule, how many rules cannot be read, and how many chunks are left."""
        broken = step.facts.get("unreadable", 0)
        lost = f", {counted(broken, 'rule', 'rules')} not readable" if broken else ""
        return f"{step.facts.get('with_rule', 0)} of {step.entered} have a rule{lost}, {step.left} left"

    def judge(self, candidates: Candidates) -> Judgement:
        """Decide every rule against `query.text`; chunks without a rule and with an unreadable one pass."""
        return self._judgement(candidates.hits, self._decided(candidates))

    def apply(self, candidates: Candidates) -> tuple[Candidates, Mapping[str, Any]]:
        """Judge, and note on every hit with a readable rule the verdict that decided it; each rule is read once."""
        decided = self._decided(candidates)
        judged = self._judgement(candidates.hits, decided)
        kept: list[Hit] = []
        drops: list[Drop] = []
        for hit, answer, reason in zip(candidates.hits, decided, judged.reasons, strict=True):
            noted = hit.noted(self.name, answer) if isinstance(answer, RuleVerdict) else hit
            if reason is None:
                kept.append(noted)
            else:
                drops.append(Drop(noted, self.name, reason))
        after = replace(
            candidates,
            hits=tuple(kept),
            drops=(*candidates.drops, *drops),
            notices=(*candidates.notices, *judged.notices),
        )
        return after, judged.facts

    def _decided(self, candidates: Candidates) -> list[RuleVerdict | str | None]:
        """Per hit the verdict of its rule, what is wrong with the rule, or None where it has none."""
        query = candidates.query.text
        rules = (read_rule(hit.chunk.query_must) for hit in candidates.hits)
        return [decide(rule, query, self.mode, self.plurals) if isinstance(rule, Rule) else rule for rule in rules]

    def _judgement(self, hits: Sequence[Hit], decided: Sequence[RuleVerdict | str | None]) -> Judgement:
        notices = tuple(
            Notice(self.name, f"rule not read, chunk kept: {answer}", hit.chunk.id)
            for hit, answer in zip(hits, decided, strict=True)
            if isinstance(answer, str)
        )
        reasons = [_reason(answer) for answer in decided]
        ruled = sum(isinstance(answer, RuleVerdict) for answer in decided)
        return Judgement(reasons, {"with_rule": ruled, "unreadable": len(notices)}, notices)

    def verdict(self, hit: Hit, query: str) -> RuleVerdict | None:
        """The verdict of the hit's rule on a query, or None where it has no readable rule."""
        rule = read_rule(hit.chunk.query_must)
        return decide(rule, query, self.mode, self.plurals) if isinstance(rule, Rule) else None

    def would_keep(self, before: Candidates, drop: Drop) -> tuple[Counterfactual, ...]:
        """The words that would have kept the chunk, and the other mode where that would have."""
        verdict = self.verdict(drop.hit, before.query.text)
        if verdict is None or verdict.satisfied:
            return ()
        terms = tuple(term for part in verdict.missing for term in part.terms)
        found = [Counterfactual("query", terms, would_stay_text(verdict))]
        for mode in MODES:
            if mode == self.mode:
                continue
            kept = _kept_by(replace(self, mode=mode), drop.hit, before.query.text)
            text = f"mode {mode} would have kept it" if kept else f"mode {mode} would not have kept it either"
            found.append(Counterfactual("mode", mode if kept else None, text))
        return tuple(found)


def _reason(answer: RuleVerdict | str | None) -> Reason | None:
    """Why a decided hit is dropped, or None where it stays."""
    return Reason(reason_text(answer)) if isinstance(answer, RuleVerdict) and not answer.satisfied else None


def _kept_by(stage: QueryMust, hit: Hit, query: str) -> bool:
    verdict = stage.verdict(hit, query)
    return verdict is None or verdict.satisfied
