"""A sweep over the fusion of hybrid search, from captured ranks: the same as searching anew with every setting."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from rag_core.errors import InputError
from rag_core.measure.experiment import run
from rag_core.measure.measures import SET_MEASURES
from rag_core.records import dump_lists, load_lists
from rag_core.retrieve.capture import captured
from rag_core.spec import build, parse_pipeline
from rag_core.store.studies import file_storage
from rag_core.tune.grid import parse_grid, pipeline_at
from rag_core.tune.plane import sweep
from rag_core.tune.search import search
from rag_core.types import Candidates, Case, Query

_spec = importlib.util.spec_from_file_location(
    "hybrid_made", Path(__file__).parents[1] / "retrieve" / "test_lexical_and_hybrid.py"
)
made = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(made)

WORDS = ("cap", "hat", "boot", "glove", "ring")
GRID = "Hybrid.rrf_k=0|5|60|300,Hybrid.weights=0:1:5,TopK.k=1|3|8"
PIPELINE = parse_pipeline([{"Hybrid": {"depth": 12}}, {"TopK": {}}])


@pytest.fixture(scope="module")
def index():
    dice = np.random.default_rng(3)
    texts = [" ".join(dice.choice(WORDS, int(dice.integers(1, 6)))) for _ in range(30)]
    return made.index_of(texts, dice.uniform(0, 180, 30))


@pytest.fixture(scope="module")
def cases(index):
    dice = np.random.default_rng(4)
    source = build(parse_pipeline([{"Hybrid": {"depth": 12}}]), {"index": index})
    bare = [
        Case(Query(word, f"{word} {WORDS[at - 1]}"), {f"c{n}": 1 for n in dice.choice(30, 5, replace=False)}, None, 5)
        for at, word in enumerate(WORDS)
    ]
    return [captured(case, source) for case in bare]


def test_every_setting_is_what_the_live_search_gives(index, cases):
    axes = parse_grid(GRID, "TopK")
    table = sweep(cases, PIPELINE, axes)
    rows = list(table.rows())
    assert len(rows) == 4 * 5 * 3
    assert table.plainly == 0
    assert len({row["SetF"] for row in rows}) > 5
    for row in rows:
        pipeline = build(pipeline_at(PIPELINE, [(axis, row[axis.name]) for axis in axes]), {"index": index})
        live = run([Case(one.query, one.grades, None, 5) for one in cases], pipeline, 1, SET_MEASURES).summary
        assert row["SetF"] == pytest.approx(live.means["SetF"], abs=1e-12)


def test_a_list_fused_anew_is_the_live_list_with_ranks_and_scores(index, cases):
    stage = build(parse_pipeline([{"Hybrid": {"depth": 12, "rrf_k": 7, "weights": [2, 1]}}]), {"index": index})
    for case in load_lists("\n".join(dump_lists(cases)).encode(), "lists"):
        live, anew = stage(Candidates(case.query)), stage(case.candidates)
        assert [(hit.chunk.id, hit.rank) for hit in anew.hits] == [(hit.chunk.id, hit.rank) for hit in live.hits]
        assert [hit.scores["rrf"] for hit in anew.hits] == [hit.scores["rrf"] for hit in live.hits]


def test_a_recorded_list_without_ranks_is_left_as_it_is():
    planted = made.Candidates(Query("q", "x"), made.fetch(made.Lexical(), made.index_of()).hits, recorded=True)
    assert parse_pipeline([{"Hybrid": {"rrf_k": 1}}])(planted).hits == planted.hits


def test_weights_are_a_share_or_as_they_stand():
    axes = parse_grid("Hybrid.weights=0:1:3,Hybrid.rrf_k=1", "Hybrid")
    assert axes[0].values == ((0.0, 1.0), (0.5, 0.5), (1.0, 0.0))
    assert parse_grid("Hybrid.weights=2/1|1", "Hybrid")[0].values == ((2.0, 1.0), (1.0, 0.0))
    with pytest.raises(InputError, match="expected weights such as"):
        parse_grid("Hybrid.weights=a/b", "Hybrid")


@pytest.mark.slow
def test_a_search_over_weights_finds_no_more_than_the_sweep(cases, tmp_path):
    axes = parse_grid(GRID, "TopK")
    best = max(row["SetF"] for row in sweep(cases, PIPELINE, axes).rows())
    found = search(cases, PIPELINE, axes, trials=60, storage=file_storage(tmp_path / "studies.db"))
    assert len(found.rows) == 60
    assert found.best.values["SetF"] <= best + 1e-12
    assert found.best.settings["Hybrid.weights"] in axes[1].values
