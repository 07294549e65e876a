"""QueryMust: drop a chunk whose own rule the user's query does not satisfy. A chunk without a rule is never touched.

The rule is read and decided in rag_core/rules; refilling what was dropped is left to retrieve/requery.py. A rule that
cannot be read never drops its chunk: it passes with a notice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rag_core.rules import MODES, Rule, Verdict, decide, read_rule, reason_text, would_stay_text
from rag_core.stage import Filter, Judgement, setting
from rag_core.types import Candidates, Counterfactual, Drop, Hit, Notice, Reason


@dataclass(frozen=True)
class QueryMust(Filter):
    """Keep a chunk only if the original query says what the chunk's rule asks for."""

    mode: str = setting("token", "token: words and numbers in a row; substring: the literal text", choices=MODES)

    def judge(self, candidates: Candidates) -> Judgement:
        """Decide every rule against `query.text`; chunks without a rule and with an unreadable one pass."""
        reasons: list[Reason | None] = []
        notices: list[Notice] = []
        ruled = 0
        for hit in candidates.hits:
            rule = read_rule(hit.chunk.query_must)
            ruled += isinstance(rule, Rule)
            if isinstance(rule, str):
                notices.append(Notice(self.name, f"rule not read, chunk kept: {rule}", hit.chunk.id))
            reasons.append(self._reason(rule, candidates.query.text))
        return Judgement(reasons, {"with_rule": ruled, "unreadable": len(notices)}, tuple(notices))

    def _reason(self, rule: Rule | str | None, query: str) -> Reason | None:
        if not isinstance(rule, Rule):
            return None
        verdict = decide(rule, query, self.mode)
        return None if verdict.satisfied else Reason(reason_text(verdict))

    def apply(self, candidates: Candidates) -> tuple[Candidates, Mapping[str, Any]]:
        """Judge, and note on every hit with a readable rule the verdict that decided it."""
        noted = tuple(self._noted(hit, candidates.query.text) for hit in candidates.hits)
        return super().apply(replace(candidates, hits=noted))

    def _noted(self, hit: Hit, query: str) -> Hit:
        verdict = self.verdict(hit, query)
        return hit if verdict is None else hit.noted(self.name, verdict)

    def verdict(self, hit: Hit, query: str) -> Verdict | None:
        """The verdict of the hit's rule on a query, or None where it has no readable rule."""
        rule = read_rule(hit.chunk.query_must)
        return decide(rule, query, self.mode) if isinstance(rule, Rule) else None

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


def _kept_by(stage: QueryMust, hit: Hit, query: str) -> bool:
    verdict = stage.verdict(hit, query)
    return verdict is None or verdict.satisfied
