import pytest

from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.query_form import query_form
from rag_core.types import Candidates, Chunk, Hit, Metric, Query


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("What is a beholder?", "specific"),
        ("WHAT'S a beholder", "specific"),
        ("Tell me about the 7th level cleric", "specific"),  # a number decides before an opening
        ("which spell says “begone”", "specific"),
        ("Tell me about monsters", "broad"),
        ("What are the undead?", "broad"),
        ("listening at doors", "other"),  # not "list"
        ("owlbear", "other"),
        ("", "other"),
    ],
)
def test_the_form_of_a_question(text, form):
    assert query_form(text) == form


def cut_for(text, stage):
    hits = tuple(
        Hit(Chunk(f"c{at}"), at + 1, {"distance": one}) for at, one in enumerate([0.2, 0.22, 0.29, 0.31, 0.43])
    )
    return stage(Candidates(Query("q", text), hits, metric=Metric.COSINE))


@pytest.mark.parametrize(
    ("text", "threshold", "kept"),
    [("What is a beholder?", 0.05, 4), ("Tell me about monsters", 0.15, 5), ("owlbear", 0.1, 4)],
)
def test_a_specific_question_halves_the_threshold_and_a_broad_one_raises_it(text, threshold, kept):
    found = cut_for(text, AdaptiveGap(query_specific=True))
    facts = found.steps[0].facts
    assert facts["cut"].gap_threshold == pytest.approx(threshold)
    assert facts["form"] == query_form(text)
    assert len(found.hits) == kept


def test_without_the_setting_the_form_changes_nothing():
    assert cut_for("What is a beholder?", AdaptiveGap()).steps[0].facts["cut"].gap_threshold == pytest.approx(0.1)


def test_what_would_have_kept_a_chunk_is_true_at_the_questions_own_threshold():
    stage = AdaptiveGap(query_specific=True)
    hits = tuple(Hit(Chunk(f"c{at}"), at + 1, {"distance": one}) for at, one in enumerate([0.2, 0.22, 0.3, 0.31]))
    before = Candidates(Query("q", "What is a beholder?"), hits, metric=Metric.COSINE)
    drop = stage(before).drops[0]
    found = {one.parameter: one.value for one in stage.would_keep(before, drop)}
    assert found["query_specific"] is False
    for name, value in found.items():
        if value is not None:
            changed = AdaptiveGap(**{**stage.settings(), name: value})
            assert drop.hit.key in [hit.key for hit in changed(before).hits], name
