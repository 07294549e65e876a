from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.coverage import Coverage, parts_of
from rag_core.filters.query_must import QueryMust
from rag_core.stage import Pipeline
from rag_core.types import Candidates, Chunk, Hit, Query

TEXTS = ["the owlbear hugs", "owlbear treasure", "a basilisk petrifies", "basilisk gaze petrifies its prey"]
DISTANCES = [0.2, 0.22, 0.5, 0.52]


def candidates(question, rules=(None,) * 4):
    hits = tuple(
        Hit(Chunk(f"c{at}", text=text, query_must=rule), at, {"distance": distance})
        for at, (text, distance, rule) in enumerate(zip(TEXTS, DISTANCES, rules, strict=True), 1)
    )
    return Candidates(Query("q", question), hits)


def kept(question, *stages, **more):
    return [hit.rank for hit in Pipeline(stages)(candidates(question, **more)).hits]


def test_a_question_is_split_at_its_joints():
    assert parts_of("What does an owlbear do, and how does a basilisk petrify?") == (
        {"owlbear"},
        {"basilisk", "petrify"},
    )
    assert len(parts_of("owlbear vs basilisk")) == 2
    assert parts_of("and?") == ()


def test_each_part_keeps_its_best_chunk():
    question = "owlbear and basilisk gaze"
    assert kept(question, AdaptiveGap()) == [1, 2]
    assert kept(question, AdaptiveGap(), Coverage()) == [1, 2, 4]  # rank 4 holds both words, rank 3 one


def test_the_nearest_of_equals_is_taken_back_and_says_from_where():
    after = Pipeline((AdaptiveGap(), Coverage()))(candidates("owlbear and basilisk"))
    assert [(hit.rank, hit.notes.get("Coverage")) for hit in after.hits][-1] == (3, "taken back from AdaptiveGap")
    assert after.steps[-1].facts == {"parts": 2, "covered": 1, "taken_back": 1}


def test_every_chunk_is_kept_or_dropped_once():
    after = Pipeline((AdaptiveGap(), Coverage()))(candidates("owlbear and basilisk"))
    assert sorted([*(hit.rank for hit in after.hits), *(drop.hit.rank for drop in after.drops)]) == [1, 2, 3, 4]


def test_a_question_of_one_part_changes_nothing():
    assert kept("basilisk gaze", AdaptiveGap(), Coverage()) == [1, 2]


def test_what_a_rule_dropped_stays_dropped():
    rules = (None, None, {"contain": "dragon"}, {"contain": "dragon"})
    assert kept("owlbear and basilisk", QueryMust(), AdaptiveGap(), Coverage(), rules=rules) == [1, 2]


def test_a_part_that_nothing_holds_takes_nothing_back():
    assert kept("owlbear and dragon", AdaptiveGap(), Coverage()) == [1, 2]
    assert kept("owlbear and basilisk lairs treasure maps", AdaptiveGap(), Coverage(share=0.9)) == [1, 2]
