"""QueryMust: drop a chunk whose own rule the user's query does not satisfy. A chunk without a rule is never touched.

The rule is read and decided in rag_core/rules; refilling what was dropped is left to retrieve/requery.py. A rule that
cannot be read never drops its chunk: it passes with a notice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

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
        """Decide every rule against `query.text`, each read once; without a readable one a chunk passes.

        A hit with a readable rule carries the verdict that decided it.
        """
        query, hits = candidates.query.text, candidates.hits
        rules = [read_rule(hit.chunk.query_must) for hit in hits]
        verdicts = [decide(one, query, self.mode, self.plurals) if isinstance(one, Rule) else None for one in rules]
        notices = tuple(
            Notice(self.name, f"rule not read, chunk kept: {problem}", hit.chunk.id)
            for hit, problem in zip(hits, rules, strict=True)
            if isinstance(problem, str)
        )
        reasons = [
            Reason(reason_text(answer)) if answer is not None and not answer.satisfied else None for answer in verdicts
        ]
        ruled = sum(verdict is not None for verdict in verdicts)
        return Judgement(reasons, {"with_rule": ruled, "unreadable": len(notices)}, notices, verdicts)

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
            other = replace(self, mode=mode).verdict(drop.hit, before.query.text)
            kept = other is None or other.satisfied
            text = f"mode {mode} would have kept it" if kept else f"mode {mode} would not have kept it either"
            found.append(Counterfactual("mode", mode if kept else None, text))
        return tuple(found)
