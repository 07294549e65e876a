"""The pool of chunks to judge: per query the dense top 30 and the BM25 top 30; and what reference expansion adds.

Run from the project's root after build.py: `python eval_sets/api-docs/pool.py` prints what of the pool qrels.tsv does
not judge; with `--accept` it writes pool.json (query id → chunk ids), the record of what has been looked at. With
`--story` it prints, for the query of the set's story, hits and chunks with references at each depth, and how many are
relevant. Judging itself is done by hand, in judgements.yaml; build.py then writes the zeros.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER.parents[1])]  # run as a script from anywhere

import bm25s
import numpy as np

from rag_core.eval_sets.reading import read_qrels_tsv
from rag_core.files import write_whole
from rag_core.filters.llm.reach import reach
from rag_core.index.embed import BundledEmbedder
from rag_core.types import Chunk

DEPTH = 30
STORY, STORY_HITS, OVERSAMPLED = "auth-display", 25, 40


def read_lines(name: str) -> list[dict[str, Any]]:
    """The objects of a JSONL file of this folder."""
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


def document(chunk: Mapping[str, Any]) -> str:
    """What of a chunk is searched: its title and its text."""
    return f"{chunk['title']}\n{chunk['text']}"


def dense_top(documents: Sequence[str], queries: Sequence[str], depth: int) -> list[list[int]]:
    """Per query the positions of the nearest documents by cosine, with the bundled model."""
    embedder = BundledEmbedder()
    similarity = embedder.embed(queries) @ embedder.embed(documents).T
    return [[int(one) for one in np.argsort(-row, kind="stable")[:depth]] for row in similarity]


def lexical_top(documents: Sequence[str], queries: Sequence[str], depth: int) -> list[list[int]]:
    """Per query the positions of the best documents by BM25."""
    index = bm25s.BM25()
    index.index(bm25s.tokenize(list(documents), stopwords="en", show_progress=False), show_progress=False)
    tokens = bm25s.tokenize(list(queries), stopwords="en", show_progress=False)
    found, scores = index.retrieve(tokens, k=depth, show_progress=False)
    matching = zip(found, scores, strict=True)
    return [[int(one) for one, score in zip(*row, strict=True) if score > 0] for row in matching]


def pool() -> dict[str, list[str]]:
    """Query id → ids of its pooled chunks, none twice; the story's also with what its hits refer to."""
    chunks, queries = read_lines("corpus.jsonl"), read_lines("queries.jsonl")
    documents, texts = [document(chunk) for chunk in chunks], [query["query"] for query in queries]
    ranked = zip(queries, dense_top(documents, texts, DEPTH), lexical_top(documents, texts, DEPTH), strict=True)
    found = {}
    for query, dense, lexical in ranked:
        found[query["id"]] = [chunks[one]["id"] for one in dict.fromkeys([*dense, *lexical])]
    hits = story_hits(OVERSAMPLED)
    found[STORY] = list(dict.fromkeys([*found[STORY], *hits, *expanded(hits, 5)]))
    return found


def story_hits(depth: int) -> list[str]:
    """Ids of the nearest chunks to the story's query."""
    chunks = read_lines("corpus.jsonl")
    text = next(query["query"] for query in read_lines("queries.jsonl") if query["id"] == STORY)
    return [chunks[one]["id"] for one in dense_top([document(chunk) for chunk in chunks], [text], depth)[0]]


def expanded(hits: Sequence[str], depth: int) -> list[str]:
    """Ids of what the hits refer to, up to so many steps away."""
    lines = read_lines("corpus.jsonl")
    chunks = {line["id"]: Chunk(line["id"], ref_ids=tuple(line.get("ref_ids", ()))) for line in lines}
    return [one.chunk.id for one in reach([chunks[name] for name in hits], depth, len(chunks), chunks)[0]]


def story() -> str:
    """A line per depth: all hits with their references, and the hits a perfect judge keeps with theirs."""
    grades = read_qrels_tsv(FOLDER / "qrels.tsv")[STORY]
    hits = story_hits(OVERSAMPLED)
    kept = [one for one in hits if grades.get(one, 0) > 0]
    lines = [f"{sum(grade > 0 for grade in grades.values())} chunks are relevant in all"]
    lines += [share(f"{STORY_HITS} hits", hits[:STORY_HITS], depth, grades) for depth in (0, 1, 2, 3, 5)]
    lines += [share(f"{len(kept)} kept of {OVERSAMPLED}", kept, depth, grades) for depth in (0, 1, 2, 3, 5)]
    return "\n".join(lines) + "\n"


def share(name: str, hits: Sequence[str], depth: int, grades: Mapping[str, int]) -> str:
    """How many chunks some hits make with their references, how many are relevant and how many were judged at all."""
    found = [*hits, *expanded(hits, depth)]
    relevant = sum(grades.get(one, 0) > 0 for one in found)
    judged = sum(one in grades for one in found)
    part = f"{relevant} relevant ({relevant / len(found):.0%}), {judged} judged"
    return f"{name}, depth {depth}: {len(found)} chunks, {part}"


def unjudged(pooled: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The pooled chunks that qrels.tsv holds no grade for, by query; queries without any are left out."""
    grades = read_qrels_tsv(FOLDER / "qrels.tsv")
    open_pairs = {query: [one for one in ids if one not in grades.get(query, {})] for query, ids in pooled.items()}
    return {query: ids for query, ids in open_pairs.items() if ids}


def main(arguments: Sequence[str]) -> None:
    """Print the share judged and the pairs that are not, or the story's figures; write pool.json when told to."""
    if "--story" in arguments:
        sys.stdout.write(story())
        return
    pooled = pool()
    missing = unjudged(pooled)
    total, without = sum(map(len, pooled.values())), sum(map(len, missing.values()))
    for query, ids in missing.items():
        sys.stdout.write(f"{query}: {' '.join(ids)}\n")
    sys.stdout.write(f"{total} pooled pairs, {1 - without / total:.4f} of them judged\n")
    if "--accept" in arguments:
        lines = (f" {json.dumps(query)}: {json.dumps(sorted(ids))}" for query, ids in pooled.items())
        write_whole(FOLDER / "pool.json", "{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
