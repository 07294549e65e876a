"""Rebuild the API documentation set: corpus.jsonl from openapi/ and guides/, qrels.tsv from judgements and pool.

Run from the project's root: `python eval_sets/api-docs/build.py`. Needs neither network nor model. One chunk per
operation, schema and guide section. A guide's link is a reference to the chunk it names; naming none is an error.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parents[1]))  # run as a script from anywhere

from rag_core.corpus.load import load
from rag_core.corpus.openapi import read_openapi
from rag_core.files import parse_yaml, read_text, write_whole
from rag_core.types import Chunk

LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


def chunks() -> tuple[Chunk, ...]:
    """Every chunk: the guides' sections, then operations and schemas; SystemExit for references that lead nowhere."""
    api, warnings = read_openapi({path.name: read_text(path) for path in sorted((FOLDER / "openapi").glob("*.yaml"))})
    if warnings:
        raise SystemExit("\n".join(warnings))
    sections = [section(chunk) for chunk in load([FOLDER / "guides"], header_level=3).chunks]
    found = (*sections, *api)
    known = {chunk.id for chunk in found}
    broken = sorted({one for chunk in found for one in chunk.ref_ids} - known)
    if broken:
        raise SystemExit(f"links lead nowhere: {', '.join(broken)}")
    return found


def section(chunk: Chunk) -> Chunk:
    """A guide's section with its links as references, and in the text their words alone."""
    linked = tuple(dict.fromkeys(target for _, target in LINK.findall(chunk.text)))
    lines = [line for line in chunk.text.strip().splitlines() if not re.match(r"#{1,3} ", line)]
    text = LINK.sub(r"\1", "\n".join(lines).strip())
    return replace(chunk, text=text, type="guide", ref_ids=linked, metadata={"source": chunk.metadata["source"]})


def corpus(found: Sequence[Chunk]) -> str:
    """One JSON object a chunk."""
    return "".join(json.dumps(record(chunk), ensure_ascii=False) + "\n" for chunk in found)


def record(chunk: Chunk) -> dict[str, Any]:
    """A chunk as a line of corpus.jsonl; empty values are left out."""
    fields: dict[str, Any] = {"id": chunk.id, "title": chunk.title, "text": chunk.text, "type": chunk.type}
    fields |= {"ref_ids": list(chunk.ref_ids), **chunk.metadata}
    return {key: value for key, value in fields.items() if value not in ("", [])}


def qrels(found: Sequence[Chunk], judgements: Mapping[str, Any], pool: Mapping[str, Sequence[str]]) -> str:
    """The labels as BEIR lines, best grade first: judgements, and 0 for the rest of what was looked at."""
    known = {chunk.id for chunk in found}
    stray = {one for grades in judgements.values() for one in grades} - known
    if stray:
        raise SystemExit(f"judgements name chunks that are not there: {', '.join(sorted(stray))}")
    lines = ["query-id\tcorpus-id\tscore"]
    for query, positive in judgements.items():
        grades = {**dict.fromkeys((one for one in pool.get(query, ()) if one in known), 0), **positive}
        ordered = sorted(grades.items(), key=lambda item: (-item[1], item[0]))
        lines += [f"{query}\t{one}\t{grade}" for one, grade in ordered]
    return "\n".join(lines) + "\n"


def read_labels() -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Judgements and pool; SystemExit where judgements and queries do not name the same queries."""
    judgements = parse_yaml(read_text(FOLDER / "judgements.yaml"), "judgements.yaml")
    queries = {json.loads(line)["id"] for line in read_text(FOLDER / "queries.jsonl").splitlines()}
    if queries ^ set(judgements):
        raise SystemExit(f"queries and judgements differ in: {', '.join(sorted(queries ^ set(judgements)))}")
    return judgements, json.loads(read_text(FOLDER / "pool.json"))


if __name__ == "__main__":
    everything = chunks()
    write_whole(FOLDER / "corpus.jsonl", corpus(everything))
    write_whole(FOLDER / "qrels.tsv", qrels(everything, *read_labels()))
