"""Chunk-side rules: what a query must hold for a chunk to be returned, decided by words and numbers alone."""

from rag_core.rules.explain import chip_text, reason_text, would_stay_text
from rag_core.rules.match import MODES, RulePart, RuleVerdict, decide
from rag_core.rules.model import NumberIn, Rule
from rag_core.rules.parsing import parse_rule, read_rule

__all__ = [
    "MODES",
    "NumberIn",
    "RulePart",
    "Rule",
    "RuleVerdict",
    "chip_text",
    "decide",
    "parse_rule",
    "read_rule",
    "reason_text",
    "would_stay_text",
]
