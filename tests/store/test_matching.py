from hypothesis import given
from hypothesis import strategies as st

from rag_core.store.events import Event
from rag_core.store.keys import text_hash
from rag_core.store.matching import AtHand, grades_by_chunk, overlay

TEXTS = {"c1": "keen edge", "c2": "Keen  edge", "c3": ""}
HASHES = {chunk: text_hash(text) for chunk, text in TEXTS.items()}


def label(chunk, grade, annotator="ann", text=""):
    return Event(
        session="s", seq=0, eval_set="set", query_id="q", chunk_id=chunk, annotator=annotator, grade=grade,
        text_hash=text_hash(text),
    )  # fmt: skip


def laid(*labels):
    return overlay(labels, lambda query_id: AtHand(HASHES))


def test_a_label_that_knows_only_the_id_meets_a_chunk_whose_text_is_known():
    assert laid(label("c1", 3)) == {"q": {"c1": 3}}


def test_a_label_that_knows_the_text_meets_every_chunk_of_that_text_whatever_its_id():
    assert laid(label("elsewhere", 2, text="keen edge")) == {"q": {"c1": 2, "c2": 2}}


def test_a_label_of_a_text_that_has_changed_meets_nothing():
    assert laid(label("c1", 2, text="blunt edge")) == {}


def test_a_label_with_a_text_meets_a_chunk_without_one_by_id():
    assert laid(label("c3", 1, text="gone")) == {"q": {"c3": 1}}


def test_unsure_makes_a_chunk_unjudged_but_hides_no_other_persons_grade():
    assert laid(label("c1", None)) == {"q": {"c1": None}}
    assert laid(label("c1", 2), label("c1", None, "bob")) == {"q": {"c1": 2}}
    assert laid(label("c1", 2), label("c1", None)) == {"q": {"c1": None}}


def test_labels_of_queries_that_are_not_asked_say_nothing():
    assert overlay([label("c1", 3)], lambda query_id: None) == {}


LABELS = st.lists(
    st.builds(
        label, st.sampled_from([*TEXTS, "gone"]), st.sampled_from([None, 0, 1, 3]), st.sampled_from(["ann", "bob"]),
        st.sampled_from(["", "keen edge", "blunt edge"]),
    ),
    max_size=8,
)  # fmt: skip


@given(LABELS)
def test_the_overlay_without_unsure_is_what_the_store_counts(labels):
    sure = {chunk: grade for chunk, grade in laid(*labels).get("q", {}).items() if grade is not None}
    assert ({"q": sure} if sure else {}) == grades_by_chunk(labels, {}, HASHES)
