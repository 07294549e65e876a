"""The byte scan gives the rows and distances of the full one, whatever the vectors, and knows how far it is off."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.index import scan
from rag_core.index.embed import normalise
from rag_core.index.scan import ByteScan, FullScan, scan_of, similarities


def made(kind, rows, dimension, rng):
    spread = rng.normal(size=(rows, dimension))
    if kind == "clustered":
        spread = (
            rng.normal(size=(max(1, rows // 20), dimension))[rng.integers(max(1, rows // 20), size=rows)] + spread / 3
        )
    if kind == "repeated":
        spread = np.repeat(spread[: rows // 4 + 1], 4, axis=0)[:rows]
    if kind == "zero":
        spread *= 0
    if kind == "one dimension":
        spread[:, 1:] *= 1e-4
    if kind == "alike":
        spread = 1 + spread * 1e-4
    if kind == "flat":
        spread *= 0.5 ** np.arange(dimension)
    return normalise(spread)


@given(
    st.sampled_from(["random", "clustered", "repeated", "flat"]),
    st.integers(1, 500),
    st.sampled_from([1, 2, 7, 64]),
    st.integers(1, 300),
    st.sampled_from([None, 0.0, 0.3, 0.9]),
    st.integers(0, 10**6),
)
def test_the_byte_scan_is_the_full_scan(kind, rows, dimension, count, share, seed):
    rng = np.random.default_rng(seed)
    vectors = made(kind, rows, dimension, rng)
    query = normalise(vectors[:1] + rng.normal(size=(1, dimension)) * 0.2)[0]
    allowed = None if share is None else rng.random(rows) < share
    full, short = FullScan(vectors), ByteScan(vectors)
    expected = full.nearest(query, full.scores(query), count, allowed)
    found = short.nearest(query, short.scores(query), count, allowed)
    assert np.array_equal(found[0], expected[0])
    assert np.array_equal(found[1], expected[1])


@given(
    st.sampled_from(["random", "clustered", "repeated", "flat", "zero", "one dimension"]),
    st.integers(1, 200),
    st.sampled_from([1, 2, 64, 384]),
    st.integers(0, 10**6),
)
def test_a_score_is_off_by_no_more_than_the_margin(kind, rows, dimension, seed):
    rng = np.random.default_rng(seed)
    vectors = made(kind, rows, dimension, rng)
    query = normalise(rng.normal(size=(1, dimension)) ** 3)[0]
    short = ByteScan(vectors)
    off = np.abs(short.scores(query) - vectors.astype(np.float64) @ query.astype(np.float64))
    assert off.max() <= short.margin(query) < 0.2


def test_a_query_of_zeros_scores_zero():
    vectors = made("random", 30, 8, np.random.default_rng(2))
    assert not ByteScan(vectors).scores(np.zeros(8, dtype=np.float32)).any()


@pytest.mark.parametrize(("kind", "least", "most"), [("clustered", 5, 500), ("alike", 5000, 5000)])
def test_the_byte_scan_reads_few_rows_whole_and_all_where_its_bytes_tell_nothing(monkeypatch, kind, least, most):
    vectors = made(kind, 5000, 128, np.random.default_rng(1))
    short, read = ByteScan(vectors), []
    monkeypatch.setattr(scan, "similarities", lambda v, q: read.append(len(v)) or similarities(v, q))
    found = short.nearest(vectors[7], short.scores(vectors[7]), 5, None)
    assert least <= read[0] <= most
    full = FullScan(vectors)
    assert np.array_equal(found[0], full.nearest(vectors[7], full.scores(vectors[7]), 5, None)[0])


@pytest.mark.parametrize(("rows", "kind"), [(10, FullScan), (60, ByteScan)])
def test_the_size_chooses_the_scan(monkeypatch, rows, kind):
    monkeypatch.setattr(scan, "LARGE_ROWS", 50)
    assert isinstance(scan_of(np.ones((rows, 4), dtype=np.float32)), kind)


def test_a_processor_without_the_kernel_takes_the_plain_scan(monkeypatch):
    monkeypatch.setattr(scan, "LARGE_ROWS", 50)
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    assert isinstance(scan_of(np.ones((60, 4), dtype=np.float32)), FullScan)
