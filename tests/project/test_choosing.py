"""The best cut on dev: never below the best fixed k there, whatever the lists and the policy."""

import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_core.errors import Cancelled, InputError
from rag_core.project.choosing import best_on_dev
from rag_core.project.project import open_project
from rag_core.project.session import Session
from rag_core.spec import make_stage, parse_pipeline


def project(folder, lists):
    """A project of recorded lists, all of them dev: (distance, grade or None) by question."""
    place = folder / "eval_sets" / "mine"
    place.mkdir(parents=True, exist_ok=True)
    (place / "meta.yaml").write_text("version: 1\nname: mine\n")
    rows = []
    for at, hits in enumerate(lists):
        ranked = sorted(hits)
        candidates = [{"id": f"{at}-{i}", "distance": d, "relevant": g} for i, (d, g) in enumerate(ranked)]
        head = {"version": 1, "id": f"q{at}", "query": f"question {at} {'abcdefghij'[at]}", "metric": "cosine"}
        rows.append(json.dumps({**head, "split": "dev", "candidates": candidates}))
    (place / "lists.jsonl").write_text("\n".join(rows))
    return Session(open_project("mine", folder))


hits = st.lists(
    st.tuples(st.integers(0, 900).map(lambda n: n / 1000), st.sampled_from([0, 0, 1, 2])), min_size=1, max_size=9
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(hits, min_size=2, max_size=6), st.sampled_from(["AdaptiveGap", "TopK", "MinSimilarity"]))
def test_what_is_recommended_is_never_below_the_best_fixed_k_on_dev(tmp_path_factory, lists, cut):
    session = project(tmp_path_factory.mktemp("project"), lists)
    pipeline = parse_pipeline([make_stage(cut)])
    if sum(any(grade for _, grade in one) for one in lists) < 2:
        with pytest.raises(InputError):
            best_on_dev(session, pipeline, 0, crossed=False)
        return
    best = best_on_dev(session, pipeline, 0, crossed=False)
    assert best.value >= best.fixed_value - 1e-9
    labelled = [case for case in session.cases if any(case.grades.values())]
    (tuned, fixed) = session.measure([best.pipeline, best.fixed], labelled)
    assert tuned.summary.means["SetF"] == pytest.approx(best.value)
    assert fixed.summary.means["SetF"] == pytest.approx(best.fixed_value)


def test_a_planted_cliff_is_found(tmp_path):
    lists = [
        [(0.1 + i / 100, 1) for i in range(n)] + [(0.6 + i / 100, 0) for i in range(5)] for n in (2, 3, 5, 4, 2, 3)
    ]
    best = best_on_dev(project(tmp_path, lists), parse_pipeline(["AdaptiveGap"]), 0)
    assert best.value == pytest.approx(1)
    assert best.fixed_value < 0.95
    assert not best.fixed_wins
    assert best.crossed.gain > 0


def test_where_the_fixed_k_is_best_it_is_what_is_taken(tmp_path):
    lists = [[(0.1 * i, int(i == 1)) for i in range(1, 8)] for _ in range(4)]
    best = best_on_dev(project(tmp_path, lists), parse_pipeline(["AdaptiveGap"]), 0)
    assert best.fixed_wins
    assert [stage.name for stage in best.pipeline.stages] == ["TopK"]
    assert "nothing beats" in best.to_text()


def test_a_learned_cut_is_trained_where_it_stands(tmp_path):
    lists = [
        [(0.1 + i / 100, 1) for i in range(n)] + [(0.6 + i / 100, 0) for i in range(5)] for n in (2, 3, 5, 4, 2, 3)
    ]
    best = best_on_dev(project(tmp_path, lists), parse_pipeline(["LearnedCut"]), 0)
    assert best.value > 0.9


def test_a_stage_that_is_no_cut_is_refused(tmp_path):
    with pytest.raises(InputError, match="no cut"):
        best_on_dev(project(tmp_path, [[(0.1, 1)]] * 2), parse_pipeline(["QueryMust"]), 0)


def test_it_can_be_stopped(tmp_path):
    def stop(done, total):
        raise Cancelled("stopped")

    lists = [[(0.1 + i / 100, int(i < 2)) for i in range(6)] for _ in range(5)]
    with pytest.raises(Cancelled):
        best_on_dev(project(tmp_path, lists), parse_pipeline(["TopK"]), 0, progress=stop)


def test_a_cut_that_pays_only_on_the_questions_it_was_chosen_on_is_not_taken(tmp_path):
    dice = random.Random(5)
    lists = [
        [(dice.random(), int(at < 2)) for at in range(6)]
        for _ in range(9)  # distances say nothing of relevance
    ]
    session = project(tmp_path, lists)
    alone = best_on_dev(session, parse_pipeline(["AdaptiveGap"]), 0, crossed=False)
    best = best_on_dev(session, parse_pipeline(["AdaptiveGap"]), 0)
    assert not alone.fixed_wins
    assert best.crossed.gain <= best.crossed.error
    assert best.fixed_wins
    assert "on questions left out" in best.to_text()
