"""Labels from Ragas data sets: JSONL with `user_input` and `reference_contexts`, the texts an answer needs.

Ragas names nothing by id: queries and chunks are met by their texts. Each reference context is a label of grade 2; its
chunk is the one of the corpus with the same text, else those that hold it or a piece of it (matching.py), and the
text's own hash stands for a chunk that is not there. Written
by text as well: the relevant chunks of each query. Grades other than relevant or not have no place in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rag_core.errors import InputError
from rag_core.files import lines as numbered
from rag_core.files import parse_json
from rag_core.store.exchange.line import LabelLine, at_line, check_line
from rag_core.store.keys import text_hash
from rag_core.store.matching import FragmentIndex

GRADE = 2


def read_ragas(
    text: str, source: str, queries: Mapping[str, str], chunks: Mapping[str, str]
) -> tuple[list[LabelLine], int]:
    """The labels, and how many lines ask a question the eval set does not hold.

    `queries` is {query id: text}, `chunks` {chunk id: text}; both are met by folded text. A RecordError names the line.
    """
    query_ids = {text_hash(said): query_id for query_id, said in queries.items()}
    chunk_ids = {text_hash(said): chunk_id for chunk_id, said in chunks.items()}
    pieces = FragmentIndex(chunks)
    found: dict[tuple[str, str], LabelLine] = {}
    strangers = 0
    for number, line in numbered(text):
        with at_line(source, number):
            asked, contexts = _sample(line)
            query_id = query_ids.get(text_hash(asked))
            strangers += query_id is None
            for context in contexts if query_id is not None else ():
                digest = text_hash(context)
                met = {chunk_ids[digest]: digest} if digest in chunk_ids else {}
                met = met or {name: text_hash(chunks[name]) for name in pieces.meet(context)}
                for chunk_id, hashed in (met or {f"text-{digest[:16]}": digest}).items():
                    label = LabelLine(
                        query_id or "", chunk_id, GRADE, query_hash=text_hash(asked), text_hash=hashed, number=number
                    )
                    found.setdefault((label.query_id, hashed), check_line(label))
    return list(found.values()), strangers


def _sample(line: str) -> tuple[str, list[str]]:
    document: Any = parse_json(line, "the line")
    asked = document.get("user_input") if isinstance(document, Mapping) else None
    contexts = document.get("reference_contexts") if isinstance(document, Mapping) else None
    if not isinstance(asked, str) or not asked.strip():
        raise InputError("no user_input, expected the text of a question")
    if not isinstance(contexts, list) or not all(isinstance(one, str) and one.strip() for one in contexts):
        raise InputError("reference_contexts is no list of texts, expected one")
    return asked, contexts


def write_ragas(
    labels: Iterable[LabelLine], queries: Mapping[str, str], chunks: Mapping[str, str], min_grade: int = 1
) -> str:
    """One sample per query with its relevant chunks' texts; an InputError where a text is not known."""
    by_query: dict[str, list[str]] = {}
    for label in labels:
        relevant = label.grade is not None and label.grade >= min_grade
        if relevant and not (label.query_id in queries and chunks.get(label.chunk_id)):
            raise InputError(
                f"the text of query {label.query_id[:80]!r} or its chunk is not known, expected both texts"
            )
        if relevant:
            by_query.setdefault(label.query_id, []).append(chunks[label.chunk_id])
    samples = [{"user_input": queries[name], "reference_contexts": texts} for name, texts in by_query.items()]
    return "".join(json.dumps(sample, ensure_ascii=False) + "\n" for sample in samples)
