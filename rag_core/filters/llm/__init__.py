"""The LLM filter: its stage, and what pages and runs read of it."""

from rag_core.filters.llm.asking import Answer, Asked, Judge, Verdict, ask
from rag_core.filters.llm.decisions import ACTIONS, DISCARD, Decision, Reading, read_decisions
from rag_core.filters.llm.prompts import Prompt, estimate_tokens
from rag_core.filters.llm.reach import ChunkLookup, Reached, reach, reach_all
from rag_core.filters.llm.stage import NO_JUDGE, LLMFilter
from rag_core.filters.llm.wording import Variant, parse_variant, read_variant, variant_names

__all__ = [
    "ACTIONS",
    "DISCARD",
    "NO_JUDGE",
    "Answer",
    "Asked",
    "ChunkLookup",
    "Decision",
    "Judge",
    "LLMFilter",
    "Prompt",
    "Reached",
    "Reading",
    "Variant",
    "Verdict",
    "ask",
    "estimate_tokens",
    "parse_variant",
    "reach",
    "reach_all",
    "read_decisions",
    "read_variant",
    "variant_names",
]
