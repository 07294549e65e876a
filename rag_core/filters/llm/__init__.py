"""The LLM filter: its stage, and what pages and runs read of it."""

from rag_core.filters.llm.asking import Asking, CandidateVerdict, ask
from rag_core.filters.llm.decisions import ACTIONS, DISCARD, AnswerReading, Decision, read_decisions
from rag_core.filters.llm.prompts import Variant, parse_variant, read_variant, variant_names
from rag_core.filters.llm.reach import ChunkLookup, Reached, reach, reach_all
from rag_core.filters.llm.stage import NO_JUDGE, LLMFilter

__all__ = [
    "ACTIONS",
    "DISCARD",
    "NO_JUDGE",
    "Asking",
    "ChunkLookup",
    "Decision",
    "LLMFilter",
    "Reached",
    "AnswerReading",
    "Variant",
    "CandidateVerdict",
    "ask",
    "parse_variant",
    "reach",
    "reach_all",
    "read_decisions",
    "read_variant",
    "variant_names",
]
