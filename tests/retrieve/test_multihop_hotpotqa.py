"""Hops on a public set of two-hop questions, with a judge that names the titles that are missing."""

from statistics import mean

import numpy as np
import pytest

from benchmarks.parts import real_lists
from benchmarks.parts.hop_judge import SimulatedHopJudge, labelled_titles
from rag_core.index.collection import Snapshot
from rag_core.index.embed import normalise
from rag_core.index.search import CollectionIndex
from rag_core.spec import parse_pipeline
from rag_core.types import Candidates, Case, Chunk, Query
from rag_core.workbench import live

pytestmark = pytest.mark.skipif(not real_lists.DATA.is_dir(), reason="needs the public collections (WINNOW_SHARED)")


class OneDirection:
    """Every text points the same way: only words rank here."""

    name, dimension, window, batch = "one direction", 2, 10, 1

    def embed(self, texts, progress=None):
        return np.array([[1, 0]] * len(texts), dtype=np.float32)

    def count_tokens(self, texts):
        return [1] * len(texts)


def test_recall_at_ten_chunks_rises_with_hops_and_every_named_title_is_found():
    corpus = real_lists.hotpotqa()
    chunks = tuple(Chunk(title, title=title, text=corpus.documents[title]) for title in sorted(corpus.documents))
    vectors = normalise(np.ones((len(chunks), 2)))
    index = CollectionIndex(Snapshot("hotpotqa", chunks, vectors, "one direction", 2, "f", "r"), OneDirection())
    cases = [Case(Query(at, text), corpus.grades[at]) for at, text in corpus.queries.items()]
    judge = SimulatedHopJudge(labelled_titles(cases, chunks))
    plain = live(parse_pipeline(["Lexical", {"TopK": {"k": 10}}]), index)
    hops = live(parse_pipeline(["Lexical", {"TopK": {"k": 5}}, {"MultiHop": {"max_hops": 2}}]), index, hop_judge=judge)

    def recall(pipeline):
        found = [{hit.chunk.id for hit in pipeline(Candidates(case.query)).hits} for case in cases]
        assert max(map(len, found)) <= 10
        return mean(len(ids & set(case.grades)) / 2 for ids, case in zip(found, cases, strict=True))

    before, after = recall(plain), recall(hops)
    assert (round(before, 3), after) == (0.895, 1.0)
