"""Word search on public collections, against an independent run over the same tokens; skipped without the data."""

import re
from statistics import mean

import pytest

from benchmarks.parts import real_lists
from rag_core.index.lexical import LexicalReader, count_words, weighed
from rag_core.measure.measures import parse_measure
from rag_core.measure.scores import score
from rag_core.types import Chunk

pytestmark = pytest.mark.skipif(not real_lists.DATA.is_dir(), reason="needs the public collections (WINNOW_SHARED)")

MEASURES = [parse_measure(name) for name in ("SetP", "SetR", "SetF", "nDCG@10")]
REFERENCE = {  # bm25s, method lucene, k1 1.2, b 0.75, tokens [a-z0-9]+: P, R, F1 at k, then nDCG@10 and R@100
    "cranfield": (lambda: real_lists.cranfield(titles=True), 10, (0.2244, 0.3802, 0.2555, 0.3595, 0.6959)),
    "adi": (real_lists.adi, 10, (0.1914, 0.4582, 0.2435, 0.4051, None)),
    "dbpedia": (real_lists.dbpedia, 10, (0.3300, 0.2431, 0.2281, 0.3274, 0.8060)),
    "code-chunks": (real_lists.code_chunks, 10, (0.0722, 0.6623, 0.1286, 0.5084, 0.8910)),
    "hotpotqa": (real_lists.hotpotqa, 5, (0.3020, 0.7550, 0.4314, None, None)),
}


def ascii_words(text):
    return re.findall("[a-z0-9]+", text.lower())


@pytest.mark.parametrize("name", REFERENCE)
def test_bm25_measures_as_the_reference_does(name):
    make, k, expected = REFERENCE[name]
    corpus = make()
    rows = [measured(corpus, query, hits, k) for query, hits in rankings(corpus)]
    for got, wanted in zip(map(mean, zip(*rows, strict=True)), expected, strict=True):
        assert wanted is None or got == pytest.approx(wanted, abs=0.0002)


def rankings(corpus):
    """The first 100 of every query that has a relevant document."""
    chunks = [Chunk(one) for one in corpus.documents]
    rows = {chunk.id: row for row, chunk in enumerate(chunks)}
    index = weighed(count_words(list(corpus.documents.values()), ascii_words), tokens=ascii_words)
    for query, text in corpus.queries.items():
        if any(grade > 0 for grade in corpus.grades.get(query, {}).values()):
            reader = LexicalReader(chunks, rows, index.scores(text), None, "reference")
            yield query, [hit.chunk.id for hit in reader.read(0, 100)]


def measured(corpus, query, hits, k):
    grades = corpus.grades[query]
    relevant = {one for one, grade in grades.items() if grade > 0}
    at_k = score(hits[:k], grades, None, 1, MEASURES).values
    return [*(at_k[measure.name] for measure in MEASURES), len(relevant & set(hits)) / len(relevant)]
