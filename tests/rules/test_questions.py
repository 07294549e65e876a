"""Questions made from slots: what they ask, which labels come along, and that they are no evidence for their own rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.rules.match import decide
from rag_core.rules.questions import ANSWERS, NOT, make_questions
from rag_core.rules.slots import check, propose, settled
from rag_core.types import Case, Chunk, Query


def chunks_of(titles, text="Weight: {} kg\nThe same text for every one of them."):
    return [Chunk(f"c{at:03}", title, text.format(at)) for at, title in enumerate(titles)]


DOSES = chunks_of([f"Coffee dose of the model E {number}" for number in range(10, 70, 10)])
TABLES = chunks_of(
    [f"Attack table for {who}, level {low}-{low + 1}" for who in ("clerics and monks", "thieves") for low in (1, 3, 5)]
)


def made_of(chunks, count=50):
    return make_questions(propose(chunks), chunks, count)


def test_a_question_names_one_member_asks_for_a_field_and_labels_its_siblings():
    made = made_of(DOSES)
    assert {one.title for one in made} == {chunk.title for chunk in DOSES}
    assert all("weight" in one.query.text.casefold() for one in made)
    for one in made:
        relevant = [chunk for chunk, grade in one.grades.items() if grade == ANSWERS]
        assert [chunk.title for chunk in DOSES if chunk.id in relevant] == [one.title]
        assert list(one.grades.values()).count(NOT) == 5


def test_one_item_of_a_list_and_one_number_of_a_range_are_asked_for():
    texts = " ; ".join(one.query.text for one in made_of(TABLES))
    assert " and " not in texts
    assert "-" not in texts
    assert "level 3" in texts


def test_a_sibling_that_the_question_may_mean_as_well_gets_no_label():
    chunks = chunks_of(["Potion of Strength", "Potion of Hill Giant Strength", "Potion of Speed", "Potion of Flying"])
    (giant,) = [one for one in made_of(chunks) if "Hill" in one.title]
    assert "c000" not in giant.grades
    assert giant.grades["c002"] == NOT


def test_titles_that_several_chunks_share_are_not_asked_for():
    chunks = [*DOSES, Chunk("twin", DOSES[0].title, "Weight: 99 kg")]
    assert DOSES[0].title not in {one.title for one in made_of(chunks)}


def test_made_questions_are_marked_and_of_the_same_chunks_the_same():
    made = made_of(DOSES)
    assert [one.query for one in made_of(list(reversed(DOSES)))] == [one.query for one in made]
    for one in made:
        assert (one.query.made_from, one.query.tags) == ("slots", ("generated",))
        assert one.query.metadata["family"]
    assert len(made_of(DOSES, 2)) == 2
    assert Query("q", "Who?").made_from == ""


def test_rules_from_slots_are_no_evidence_for_themselves():
    families = propose(DOSES)
    made = [Case(one.query, one.grades) for one in made_of(DOSES)]
    assert all(
        decide(families[0].rules[chunk], case.query.text).satisfied is (grade == ANSWERS)
        for case in made
        for chunk, grade in case.grades.items()
    )  # by construction: it would vouch for itself
    found = check(families[0], made)
    assert (found.relevant, found.irrelevant, found.right) == (0, 0, 0)
    words = propose(chunks_of([f"Encounters: {place}" for place in ("Plain", "Forest", "Swamp", "Hills", "Coast")]))
    asked = [Case(Query(f"q{at}", one.title), {one.chunk_id: 1}) for at, one in enumerate(words[0].members)]
    from_slots = [
        Case(Query(case.query.id, case.query.text, metadata={"made_from": "slots"}), case.grades) for case in asked
    ]
    assert settled(words[0], asked).policy == "strict"
    assert settled(words[0], from_slots).policy == "named"


WORDS = st.sampled_from(["amber", "bronze", "copper", "dark", "early", "fine", "grand", "high", "iron", "jade"])


@given(st.lists(st.tuples(WORDS, st.integers(1, 40)), min_size=4, max_size=14, unique=True))
def test_a_made_question_is_admitted_by_its_chunks_rule_and_every_label_is_of_its_family(pairs):
    chunks = chunks_of([f"Toll of the {word} gate, class {number}" for word, number in pairs])
    families = propose(chunks)
    rules = {chunk: rule for family in families for chunk, rule in family.rules.items()}
    members = [{one.chunk_id for one in family.members} for family in families]
    for one in make_questions(families, chunks, 100):
        relevant = [chunk for chunk, grade in one.grades.items() if grade == ANSWERS]
        assert len(relevant) == 1
        assert decide(rules[relevant[0]], one.query.text).satisfied
        assert any(set(one.grades) <= ids for ids in members)


@pytest.mark.parametrize("chunks", [[], chunks_of(["One", "Two things", "Something else"])])
def test_nothing_is_made_where_no_titles_are_alike(chunks):
    assert made_of(chunks) == []


def test_a_field_of_several_is_asked_for_in_the_plural():
    texts = "Moving parts: {0}\nGlass: {0}\nAll of it stands in a list."
    made = made_of(chunks_of([f"Mill wheel of the size {number}" for number in range(3, 9)], texts))
    asked = [one.query.text for one in made]
    assert any(text.startswith("What are the moving parts of") for text in asked)
    assert not any(text.startswith(("What is the moving", "What are the glass")) for text in asked)
