"""The pool of chunks to judge: per query the dense top 30 and the BM25 top 30 of the demo rulebook.

Writes pool.json (query id → chunk ids, dense first) to the path given, or prints the share of the pool that qrels.tsv
judges. Run from the project's root: `python eval_sets/rulebook/pool.py /tmp/pool.json`. Judging itself is done by hand,
in judgements.yaml.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER.parents[1])]  # run as a script from anywhere

import bm25s  # noqa: E402
import numpy as np  # noqa: E402

from rag_core.evaluate.sets import read_qrels_tsv  # noqa: E402
from rag_core.index.embed import BundledEmbedder  # noqa: E402

DEPTH = 30


def read_lines(name: str) -> list[dict[str, Any]]:
    """The objects of a JSONL file of this folder."""
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


def document(chunk: Mapping[str, Any]) -> str:
    """What of a chunk is searched: its title and its text."""
    return f"{chunk['title']}\n{chunk['text']}"


def dense_top(documents: Sequence[str], queries: Sequence[str], depth: int = DEPTH) -> list[list[int]]:
    """Per query the positions of the nearest documents by cosine, with the bundled model."""
    embedder = BundledEmbedder()
    similarity = embedder.embed(queries) @ embedder.embed(documents).T
    return [[int(one) for one in np.argsort(-row, kind="stable")[:depth]] for row in similarity]


def lexical_top(documents: Sequence[str], queries: Sequence[str], depth: int = DEPTH) -> list[list[int]]:
    """Per query the positions of the best documents by BM25."""
    index = bm25s.BM25()
    index.index(bm25s.tokenize(list(documents), stopwords="en", show_progress=False), show_progress=False)
    tokens = bm25s.tokenize(list(queries), stopwords="en", show_progress=False)
    found, _ = index.retrieve(tokens, k=depth, show_progress=False)
    return [[int(one) for one in row] for row in found]


def pool() -> dict[str, list[str]]:
    """Query id → ids of its pooled chunks, dense results first, none twice."""
    chunks, queries = read_lines("corpus.jsonl"), read_lines("queries.jsonl")
    documents, texts = [document(chunk) for chunk in chunks], [query["query"] for query in queries]
    both = zip(queries, dense_top(documents, texts), lexical_top(documents, texts), strict=True)
    return {
        query["id"]: [chunks[one]["id"] for one in dict.fromkeys([*dense, *lexical])] for query, dense, lexical in both
    }


def share_judged(pooled: Mapping[str, Sequence[str]]) -> float:
    """The share of pooled (query, chunk) pairs that qrels.tsv holds a grade for."""
    grades = read_qrels_tsv(FOLDER / "qrels.tsv")
    pairs = [(query, chunk) for query, chunks in pooled.items() for chunk in chunks]
    return sum(chunk in grades.get(query, {}) for query, chunk in pairs) / len(pairs)


if __name__ == "__main__":
    pooled = pool()
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps(pooled, indent=1), encoding="utf-8")
    sys.stdout.write(f"{sum(map(len, pooled.values()))} pooled pairs, {share_judged(pooled):.4f} of them judged\n")
