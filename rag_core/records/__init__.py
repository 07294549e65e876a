"""Recorded result lists ⇄ cases: what some retriever returned is as good as a live list. See docs/formats.md."""

from rag_core.records.reading import load_lists, parse_json_line, read_case
from rag_core.records.schema import SCHEMA, VERSION
from rag_core.records.writing import dump_case, dump_lists, with_rules

__all__ = ["SCHEMA", "VERSION", "dump_case", "dump_lists", "load_lists", "parse_json_line", "read_case", "with_rules"]
