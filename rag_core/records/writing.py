"""Cases → recorded result lists, and the rules of templates laid over cases."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from rag_core.records.schema import VERSION
from rag_core.rules.templates import TemplateFamily, propose
from rag_core.types import RANKS, Candidates, Case, Hit, Metric, Order


def with_rules(cases: Iterable[Case], families: Sequence[TemplateFamily]) -> list[Case]:
    """The cases with the templates' rules on every candidate that carries none and whose title a family matches."""
    return [replace(case, candidates=_ruled(case.candidates, families)) for case in cases]


def _ruled(candidates: Candidates | None, families: Sequence[TemplateFamily]) -> Candidates | None:
    if candidates is None:
        return None
    hits = []
    for hit in candidates.hits:
        proposal = propose(hit.chunk.title, families) if hit.chunk.query_must is None else None
        if proposal is not None:
            hit = replace(hit, chunk=replace(hit.chunk, query_must=proposal.rule.as_mapping()))
        hits.append(hit)
    return replace(candidates, hits=tuple(hits))


def dump_lists(cases: Iterable[Case]) -> Iterator[str]:
    """The cases as JSONL lines without newline; `load_lists` gives the same cases back."""
    for case in cases:
        yield json.dumps(dump_case(case), ensure_ascii=False)


def dump_case(case: Case) -> dict[str, Any]:
    """One case as the plain values of its line."""
    candidates = case.candidates or Candidates(case.query)
    record: dict[str, Any] = {"version": VERSION, "id": case.query.id, "query": case.query.text}
    if candidates.metric is not Metric.UNKNOWN:
        record["metric"] = str(candidates.metric)
    if candidates.order is not Order.DISTANCE:
        record["order"] = str(candidates.order)
    if case.relevant_total is not None:
        record["relevant_total"] = case.relevant_total
    if case.query.tags:
        record["tags"] = list(case.query.tags)
    listed = {hit.chunk.id for hit in candidates.hits}
    elsewhere = {chunk: grade for chunk, grade in case.grades.items() if chunk not in listed}
    if elsewhere:
        record["labels"] = elsewhere
    record.update(case.query.metadata)
    record["candidates"] = [_dump_hit(hit, case.grades.get(hit.chunk.id)) for hit in candidates.hits]
    return record


def _dump_hit(hit: Hit, grade: int | None) -> dict[str, Any]:
    chunk = hit.chunk
    entry: dict[str, Any] = {"id": chunk.id, "title": chunk.title, **hit.scores}
    if grade is not None:
        entry["relevant"] = grade
    if RANKS in hit.notes:
        entry[RANKS] = dict(hit.notes[RANKS])
    optional = {"text": chunk.text, "type": chunk.type, "query_must": chunk.query_must, "ref_ids": list(chunk.ref_ids)}
    entry.update({key: value for key, value in optional.items() if value})
    entry.update(chunk.metadata)
    return entry
