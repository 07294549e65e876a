"""The half scan gives the rows and distances of the full one, whatever the vectors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_core.index import scan
from rag_core.index.embed import normalise
from rag_core.index.scan import FullScan, HalfScan, scan_of


def made(kind, rows, dimension, rng):
    spread = rng.normal(size=(rows, dimension))
    if kind == "clustered":
        spread = (
            rng.normal(size=(max(1, rows // 20), dimension))[rng.integers(max(1, rows // 20), size=rows)] + spread / 3
        )
    if kind == "repeated":
        spread = np.repeat(spread[: rows // 4 + 1], 4, axis=0)[:rows]
    if kind == "flat":
        spread *= 0.5 ** np.arange(dimension)
    return normalise(spread)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["random", "clustered", "repeated", "flat"]),
    st.integers(1, 500),
    st.sampled_from([1, 2, 7, 64]),
    st.integers(1, 300),
    st.sampled_from([None, 0.0, 0.3, 0.9]),
    st.integers(0, 10**6),
)
def test_the_half_scan_is_the_full_scan(kind, rows, dimension, count, share, seed):
    rng = np.random.default_rng(seed)
    vectors = made(kind, rows, dimension, rng)
    query = normalise(vectors[:1] + rng.normal(size=(1, dimension)) * 0.2)[0]
    allowed = None if share is None else rng.random(rows) < share
    full, half = FullScan(vectors), HalfScan(vectors)
    expected = full.nearest(query, full.scores(query), count, allowed)
    found = half.nearest(query, half.scores(query), count, allowed)
    assert np.array_equal(found[0], expected[0])
    assert np.array_equal(found[1], expected[1])


def test_the_half_scan_reads_few_rows_whole_where_the_vectors_have_structure(monkeypatch):
    rng = np.random.default_rng(1)
    vectors = made("clustered", 5000, 128, rng)
    half, read = HalfScan(vectors), []
    monkeypatch.setattr(scan, "distances", lambda v, q, rows: read.append(len(rows)) or np.zeros(len(rows)))
    half.nearest(vectors[7], half.scores(vectors[7]), 5, None)
    assert 5 <= read[0] < 500


@pytest.mark.parametrize(("rows", "kind"), [(10, FullScan), (60, HalfScan)])
def test_the_size_chooses_the_scan(monkeypatch, rows, kind):
    monkeypatch.setattr(scan, "LARGE_ROWS", 50)
    assert isinstance(scan_of(np.ones((rows, 4), dtype=np.float32)), kind)
