"""Query rewriting: capitals of headers on one side, official terms on the other, and what was asked stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import InputError, SpecError
from rag_core.eval_sets.reading import SHIPPED
from rag_core.retrieve.rewrite import ExpandSynonyms, NormaliseKeywords, rewritten
from rag_core.retrieve.word_lists import (
    Keywords,
    Synonyms,
    read_keywords,
    read_synonyms,
)
from rag_core.spec import parse_pipeline
from rag_core.types import Candidates, Query

HEADERS = ("Accurate x", "Lethal 5+", "KOMMANDOS - 'Ere We Go", "Minimum move stat", "Move", "T'au Sept", 'Blast 2"')
KEYWORDS = Keywords(HEADERS)
SPEC = Synonyms(  # the lists of the specification, as they stood in the original: without "die"
    {
        "regain wounds": ("heal", "healing", "restore health", "recover hp"),
        "incapacitated": ("died", "killed", "destroyed", "eliminated"),
        "control range": ("melee range", "base contact", "engaged"),
    }
)


def normalised(text):
    return KEYWORDS.normalised(text)[0]


def expanded(text, synonyms=SPEC):
    return ExpandSynonyms(synonyms)(Candidates(Query("q", text))).query.lexical_text


@pytest.mark.parametrize("asked", ["accurate 1", "ACCURATE 1", "Accurate 1", "aCCurate 1"])
def test_a_keyword_in_any_case_takes_the_headers_capitals_with_any_number(asked):
    assert normalised(asked) == "Accurate 1"


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("what does lethal 4+ do?", "what does Lethal 4+ do?"),
        ("is LETHAL good", "is Lethal good"),
        ('a blast 3" gun', 'a Blast 3" gun'),
        ("can kommandos use ere we go", "can KOMMANDOS use Ere We Go"),
        ("kommandos - 'ere we go", "KOMMANDOS - 'Ere We Go"),
        ("MINIMUM MOVE STAT of a t'au sept", "Minimum move stat of a T'au Sept"),
        ("inaccurate movement", "inaccurate movement"),
    ],
)
def test_capitals_of_whole_words_change_and_nothing_else(asked, text):
    assert normalised(asked) == text


def test_of_overlapping_keywords_the_longest_counts():
    assert KEYWORDS.normalised("minimum MOVE stat, move")[1] == ("Minimum move stat", "Move")


def test_a_keyword_does_not_reach_over_the_end_of_a_sentence():
    assert normalised("the minimum. move stat") == "the minimum. Move stat"


def test_short_sides_of_a_header_are_no_keywords():
    assert Keywords(("ORK - Waaagh", "Hot x")).normalised("an ork, hot")[1] == ()


@given(st.text("aAcCuratex1 .", max_size=30))
def test_normalising_changes_capitals_only_and_twice_is_once(text):
    once = normalised(text)
    assert once.casefold() == text.casefold()
    assert normalised(once) == once


def test_normalising_is_for_the_embedding_side_only():
    query = NormaliseKeywords(KEYWORDS)(Candidates(Query("q", "accurate 1"))).query
    assert (query.text, query.dense_text, query.lexical_text) == ("accurate 1", "Accurate 1", None)


def test_expansion_is_for_the_word_side_only_and_keeps_what_was_asked():
    query = ExpandSynonyms(SPEC)(Candidates(Query("q", "Can I heal my operative?"))).query
    assert (query.text, query.dense_text) == ("Can I heal my operative?", None)
    assert query.lexical_text == "Can I heal my operative? regain wounds"


@pytest.mark.parametrize(
    ("asked", "added"),
    [
        ("melee range", "control range"),
        ("may I RESTORE HEALTH", "regain wounds"),
        ("died in base contact", "incapacitated control range"),
        ("health", ""),
        ("killers heals", ""),
        ("restore. Health", ""),
        ("heal to regain wounds", ""),
        ("heal, healing", "regain wounds"),
    ],
)
def test_whole_words_stand_for_terms_in_the_order_of_the_question_each_once(asked, added):
    assert expanded(asked) == f"{asked} {added}".strip()


def test_does_the_model_die_expands_only_once_die_is_in_a_list():
    """The original's own example expands to a term whose words lack "die"."""
    assert expanded("Does the model die?") == "Does the model die?"
    assert "die" in read_synonyms(SHIPPED / "skirmish-rules" / "synonyms.yaml").terms["incapacitated"]
    ours = read_synonyms(SHIPPED / "skirmish-rules" / "synonyms.yaml")
    assert expanded("Does the model die?", ours) == "Does the model die? incapacitated"


def test_the_trace_shows_each_sides_query_and_what_became_of_which_word():
    after = parse_pipeline(["NormaliseKeywords", "ExpandSynonyms"])
    after = ExpandSynonyms(SPEC)(NormaliseKeywords(KEYWORDS)(Candidates(Query("q", "heal a lethal 5+ wound"))))
    first, second = (step.facts for step in after.steps)
    assert (first["dense_query"], first["found"]) == ("heal a Lethal 5+ wound", "Lethal 5")
    assert second["lexical_query"] == "heal a lethal 5+ wound regain wounds"
    assert second["added"] == "heal → regain wounds"


def test_without_lists_the_question_stays_as_it_is():
    after = ExpandSynonyms()(NormaliseKeywords()(Candidates(Query("q", "accurate 1 heal"))))
    assert (after.query.dense_text, after.query.lexical_text) == ("accurate 1 heal", "accurate 1 heal")
    assert [step.facts["known"] for step in after.steps] == [0, 0]


def test_a_recorded_list_is_left_alone_and_says_so():
    recorded = Candidates(Query("q", "heal"), recorded=True)
    after = ExpandSynonyms(SPEC)(NormaliseKeywords(KEYWORDS)(recorded))
    assert after.query == recorded.query
    assert all("recorded list" in step.facts["skipped"] for step in after.steps)


@pytest.mark.parametrize("name", ["NormaliseKeywords", "ExpandSynonyms"])
def test_a_rewrite_stands_before_the_source(name):
    assert [stage.name for stage in parse_pipeline([name, "Hybrid"]).stages] == [name, "Hybrid"]
    with pytest.raises(SpecError, match="expected it before the source"):
        parse_pipeline(["Hybrid", name])


def test_both_files_are_read_as_people_write_them(tmp_path):
    (tmp_path / "s.yaml").write_text("regain wounds: [heal, restore health]\n\"no\": ['5+', 'say \"no\"']\n")
    (tmp_path / "k.yaml").write_text("keywords:\n  - Accurate x\n  - 'Heal: quickly'\n")
    terms = {"regain wounds": ("heal", "restore health"), "no": ("5+", 'say "no"')}
    assert read_synonyms(tmp_path / "s.yaml").terms == terms
    assert read_keywords(tmp_path / "k.yaml").names == ("Accurate x", "Heal: quickly")


def test_json_and_bare_lists_are_read_too(tmp_path):
    (tmp_path / "s.json").write_text('{"regain wounds": ["heal"]}')
    (tmp_path / "k.json").write_text('["Accurate x"]')
    (tmp_path / "empty.yaml").write_text("")
    assert read_synonyms(tmp_path / "s.json").terms == {"regain wounds": ("heal",)}
    assert read_keywords(tmp_path / "k.json").names == ("Accurate x",)
    assert read_synonyms(tmp_path / "empty.yaml").terms == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- heal", "is no mapping"),
        ("regain wounds: heal", "expected a list"),
        ("regain wounds: [{a: b}]", "expected a text with a word"),
        ("regain wounds: ['---']", "expected a text with a word"),
        ("regain wounds: [true]", "expected a text with a word"),
        ("'': [heal]", "expected a text with a word"),
        ("a: &x [heal]\nb: *x", "YAML alias"),
        (f"a: [{'w' * 201}]", "at most 200 characters"),
        ("a: [x]\na: [y]", "not valid YAML"),
        ("# " + "x" * 200_000, "expected at most 200,000"),
    ],
)
def test_a_malformed_list_is_refused_in_a_sentence(tmp_path, text, message):
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(InputError, match=message):
        read_synonyms(tmp_path / "s.yaml")


def test_a_question_is_rewritten_for_both_sides_at_once_with_nothing_searched():
    found = rewritten("heal with ACCURATE 1", KEYWORDS, SPEC)
    assert found.asked == "heal with ACCURATE 1"
    assert (found.dense_text, found.lexical_text) == ("heal with Accurate 1", "heal with ACCURATE 1 regain wounds")
    assert (found.found, found.added) == (("Accurate 1",), (("regain wounds", "heal"),))


@pytest.mark.parametrize("text", ["", " ", "x" * 2001, "a\x00b"])
def test_what_is_no_question_is_not_rewritten(text):
    with pytest.raises(InputError):
        rewritten(text, KEYWORDS, SPEC)


def test_names_with_inner_or_leading_apostrophes_keep_them():
    """The original removes apostrophes, which breaks such names."""
    assert normalised("do kommandos with 'ERE WE GO hit t'au sept?") == "do KOMMANDOS with 'Ere We Go hit T'au Sept?"
