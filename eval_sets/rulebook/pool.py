"""The pool of chunks to judge: per query the dense top 30, the BM25 top 30 and what rules with refill would return.

Run from the project's root after build.py: `python eval_sets/rulebook/pool.py` prints what share of the pool qrels.tsv
judges and what it does not; with `--accept` it adds them to pool.json (query id → chunk ids), the record of what has
been looked at. Judging itself is done by hand, in judgements.yaml; build.py then writes the zeros.
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
from rag_core.rules.model import Rule
from rag_core.rules.parsing import read_rule

from rag_core.eval_sets.reading import read_qrels_tsv
from rag_core.files import write_whole
from rag_core.index.embed import BundledEmbedder
from rag_core.index.store import embedded_text
from rag_core.rules.match import decide
from rag_core.types import Chunk

DEPTH = 30
SEEN, KEPT = 45, 15  # what query_must with refill looks at and returns by default


def read_lines(name: str) -> list[dict[str, Any]]:
    """The objects of a JSONL file of this folder."""
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


def document(chunk: Mapping[str, Any]) -> str:
    """What of a chunk is searched, as a collection embeds it."""
    return embedded_text(Chunk(id=chunk["id"], title=chunk["title"], text=chunk["text"]))


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
    found, scores = index.retrieve(tokens, k=depth, show_progress=False)
    matching = zip(found, scores, strict=True)
    return [[int(one) for one, score in zip(*row, strict=True) if score > 0] for row in matching]


def refilled(ranked: Sequence[int], chunks: Sequence[Mapping[str, Any]], query: str) -> list[int]:
    """What query_must with refill would return from a ranking: the first 15 of 45 that their rules admit."""
    rules = (read_rule(chunks[one].get("query_must")) for one in ranked[:SEEN])
    admitted = (rule is None or (isinstance(rule, Rule) and decide(rule, query).satisfied) for rule in rules)
    return [one for one, kept in zip(ranked[:SEEN], admitted, strict=True) if kept][:KEPT]


def pool() -> dict[str, list[str]]:
    """Query id → ids of its pooled chunks: dense, BM25 and refilled dense results, none twice."""
    chunks, queries = read_lines("corpus.jsonl"), read_lines("queries.jsonl")
    documents, texts = [document(chunk) for chunk in chunks], [query["query"] for query in queries]
    found = {}
    for query, dense, lexical in zip(
        queries, dense_top(documents, texts, SEEN), lexical_top(documents, texts), strict=True
    ):
        refill = refilled(dense, chunks, query["query"])
        found[query["id"]] = [chunks[one]["id"] for one in dict.fromkeys([*dense[:DEPTH], *lexical, *refill])]
    return found


def unjudged(pooled: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The pooled chunks that qrels.tsv holds no grade for, by query; queries without any are left out."""
    grades = read_qrels_tsv(FOLDER / "qrels.tsv")
    open_pairs = {query: [one for one in ids if one not in grades.get(query, {})] for query, ids in pooled.items()}
    return {query: ids for query, ids in open_pairs.items() if ids}


def main(arguments: Sequence[str]) -> None:
    """Print the share judged and the pairs that are not; write pool.json when told to."""
    pooled = pool()
    missing = unjudged(pooled)
    total, without = sum(map(len, pooled.values())), sum(map(len, missing.values()))
    for query, ids in missing.items():
        sys.stdout.write(f"{query}: {' '.join(ids)}\n")
    sys.stdout.write(f"{total} pooled pairs, {1 - without / total:.4f} of them judged\n")
    if "--accept" in arguments:
        looked_at = json.loads((FOLDER / "pool.json").read_text(encoding="utf-8"))
        both = {query: sorted({*ids, *looked_at.get(query, ())}) for query, ids in pooled.items()}
        lines = (f" {json.dumps(query)}: {json.dumps(ids)}" for query, ids in both.items())
        write_whole(FOLDER / "pool.json", "{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
