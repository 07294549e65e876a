"""Another tool's own run as an oracle: its lists, labels and stated precision, recall and F1 per query."""

import os
from pathlib import Path

import pytest

from rag_core.errors import InputError
from rag_core.measure.scores import score

PLACE = Path(os.environ.get("WINNOW_SHARED", Path(__file__).parents[3] / "shared")) / "data" / "autorag-eli5"
pytestmark = pytest.mark.skipif(not PLACE.is_dir(), reason="the peer's run is not in the shared data folder")

STATED = {"SetP": "precision", "SetR": "recall", "SetF": "f1"}


@pytest.fixture(scope="module")
def rows():
    pandas = pytest.importorskip("pandas")
    return list(pandas.read_parquet(PLACE / "hybrid_best_0.parquet").itertuples())


def labels(row):
    return {chunk: 1 for group in row.retrieval_gt for chunk in group}


def test_its_fused_lists_have_the_figures_it_states(rows):
    for row in rows:
        ours = score(list(row.retrieved_ids), labels(row)).values
        for name, stated in STATED.items():
            assert ours[name] == pytest.approx(getattr(row, f"retrieval_{stated}"), abs=1e-12)
    assert len(rows) == 10


def test_the_mean_of_the_fused_run_is_that_of_its_summary(rows):
    import pandas

    summary = pandas.read_csv(PLACE / "hybrid_summary.csv").iloc[0]
    for name, stated in STATED.items():
        mean = sum(score(list(row.retrieved_ids), labels(row)).values[name] for row in rows) / len(rows)
        assert mean == pytest.approx(summary[f"retrieval_{stated}"], abs=1e-12)


@pytest.mark.parametrize("way", ["lexical", "semantic"])
def test_its_single_lists_repeat_chunks_which_it_counts_by_position_and_we_by_chunk(rows, way):
    import pandas

    summary = pandas.read_csv(PLACE / f"{way}_summary.csv").iloc[0]
    for row in rows:
        ids = list(getattr(row, f"retrieved_ids_{way}"))
        relevant = labels(row)
        distinct = list(dict.fromkeys(ids))
        by_position = len(set(ids) & set(relevant)) / len(ids)
        assert by_position == pytest.approx(summary.retrieval_precision, abs=1e-12)  # one of ten places
        ours = score(distinct, relevant).values
        assert ours["SetP"] == pytest.approx(len(set(ids) & set(relevant)) / len(distinct), abs=1e-12)
        assert ours["SetR"] == summary.retrieval_recall
        if len(distinct) < len(ids):
            with pytest.raises(InputError, match="more than once"):
                score(ids, relevant)
