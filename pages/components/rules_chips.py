"""A rule in the two forms a person reads: chips of its conditions, and JSON to edit."""

from __future__ import annotations

import json

from pages.components.inert_text import Run
from rag_core.rules.explain import chip_text
from rag_core.rules.match import Part, Verdict
from rag_core.rules.model import Rule

KEYS = {
    "contain_one_of": "one of",
    "contain_all_of": "all of",
    "contain": "contains",
    "number_in": "number",
    "when_named": "one of",
}


def chips(verdict: Verdict, plain: bool = False) -> tuple[Run, ...]:
    """A chip per condition: held or missing with the words that matched, or neither where no query is asked."""
    return tuple(
        Run(_chip(part), "plain" if plain else "held" if part.satisfied else "missing") for part in verdict.parts
    )


def _chip(part: Part) -> str:
    """One condition as words: its kind, its terms and the term that matched."""
    matched = f" → {part.term}" if part.term and len(part.terms) > 1 else ""
    return f"{KEYS.get(part.key, part.key)}: {chip_text(part)}{matched}"


def rule_text(rule: Rule) -> str:
    """The rule as indented JSON, short lists on one line: what the text area holds."""
    parts = []
    for key, value in rule.as_mapping().items():
        if isinstance(value, list):
            rows = ",\n".join(f"    {json.dumps(one, ensure_ascii=False)}" for one in value)
            parts.append(f"  {json.dumps(key)}: [\n{rows}\n  ]")
        else:
            parts.append(f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(parts) + "\n}"
