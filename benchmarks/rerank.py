"""What a reranker gains at which depth on five labelled corpora, and that a second run asks nothing.

    python -m benchmarks.rerank [--corpora 5] [--json]

The reranker is scripted: a server on loopback, Cohere-shaped, that scores by BM25 over the texts it is sent. It stands
for no product; what is measured is the way there: a call for each question, scores stored, SetF of the best fixed k and
nDCG@10 by depth, over the dev questions. Corpora come from the folder WINNOW_SHARED (parts/real_lists.py). Exit code 1
where the second run asked anything.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from time import perf_counter
from typing import Any

from benchmarks.parts.real_lists import LABELLED, Corpus, captured
from rag_core.files import write_whole
from rag_core.llm.run import answer_all
from rag_core.project.project import open_project
from rag_core.project.reranking import calls_for, gains_of
from rag_core.project.session import Session
from rag_core.records import dump_lists
from rag_core.stage import Pipeline
from rag_core.text import words


@lru_cache(maxsize=20_000)
def bag_of(text: str) -> Counter[str]:
    """How often each word stands in a text; a text comes for many questions."""
    return Counter(words(text))


def bm25(query: str, texts: list[str]) -> list[float]:
    """Each text's BM25 score (k1 1.2, b 0.75), the texts being the collection."""
    bags = [bag_of(text) for text in texts]
    mean = sum(bag.total() for bag in bags) / len(bags) or 1.0
    scores = [0.0] * len(texts)
    for word in words(query):
        holding = sum(word in bag for bag in bags)
        rarity = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
        for at, bag in enumerate(bags):
            scores[at] += rarity * bag[word] * 2.2 / (bag[word] + 1.2 * (0.25 + 0.75 * bag.total() / mean))
    return scores


class Scripted(BaseHTTPRequestHandler):
    """POST /v1/rerank; nothing is logged."""

    def do_POST(self) -> None:
        """Scores of the documents."""
        sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
        scores = bm25(sent["query"], sent["documents"])
        made = {"results": [{"index": at, "relevance_score": score} for at, score in enumerate(scores)]}
        body = json.dumps(made).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Keep quiet."""


def measured(corpus: Corpus, port: int) -> dict[str, Any]:
    """One corpus as a project of recorded lists: calls of two runs, and the gain by depth."""
    with TemporaryDirectory() as place:
        folder = Path(place) / "eval_sets" / "set"
        folder.mkdir(parents=True)
        (folder / "meta.yaml").write_text("version: 1\nname: set\n")
        write_whole(folder / "lists.jsonl", "\n".join(dump_lists(captured(corpus))) + "\n")
        endpoint = {"name": "scripted", "base_url": f"http://127.0.0.1:{port}/v1", "model": "bm25"}
        (Path(place) / "endpoints.yaml").write_text(json.dumps([endpoint]))
        session = Session(open_project("set", Path(place)))
        runs = []
        for _ in range(2):
            began = perf_counter()
            ran = answer_all(calls_for(session, Pipeline(), "scripted", 100, session.cases))
            runs.append({"calls": ran.asked, "failed": ran.failed, "seconds": perf_counter() - began})
        return {"corpus": corpus.name, "runs": runs, **gains_of(session, Pipeline(), "scripted").to_json()}


def main() -> int:
    """Measure, print, and fail where a second run asked."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--corpora", type=int, default=5)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    Thread(target=server.serve_forever, daemon=True).start()
    rows = []
    for read in LABELLED[: given.corpora]:
        row = measured(read(), server.server_port)
        rows.append(row)
        first, second = row["runs"]
        said = f"{first['calls']} calls in {first['seconds']:.1f} s, again {second['calls']} in {second['seconds']:.1f}"
        lines = [f"{row['corpus']}: {row['questions']} dev questions, {said}"]
        for one in row["rows"]:
            line = f"  depth {one['depth']:>3}  SetF {one['SetF']:.3f} (k {one['fixed_k']})  nDCG@10 {one['ndcg']:.3f}"
            lines.append(f"{line}  lacking {one['lacking']}")
        sys.stdout.write(json.dumps(row) + "\n" if given.json else "\n".join(lines) + "\n")
        sys.stdout.flush()
    server.shutdown()
    return int(any(row["runs"][1]["calls"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
