"""The skirmish rules: what is built is up to date, the labels hold what the questions need, the word lists fit the text."""

import runpy
from collections import Counter
from pathlib import Path

import pytest

from rag_core.eval_sets.reading import load_set
from rag_core.files import parse_yaml, read_text

FOLDER = Path(__file__).parents[2] / "eval_sets" / "skirmish-rules"
SET = load_set("skirmish-rules")
TWO_HOP = [case for case in SET.cases if "two-hop" in case.query.tags]


@pytest.fixture(scope="module")
def build() -> dict:
    return runpy.run_path(str(FOLDER / "build.py"))


def read_list(name: str) -> dict:
    return parse_yaml(read_text(FOLDER / name), name)


def test_the_set_is_as_large_as_promised(build) -> None:
    assert len(build["chunks"]()) >= 200
    assert len(SET.cases) >= 40
    assert len(TWO_HOP) >= 10


def test_the_corpus_is_what_the_documents_give(build) -> None:
    assert read_text(FOLDER / "corpus.jsonl") == build["corpus"](build["chunks"]())


def test_the_labels_are_what_the_judgements_give(build) -> None:
    assert read_text(FOLDER / "qrels.tsv") == build["qrels"](build["chunks"](), read_list("judgements.yaml"))


def test_the_keywords_are_what_the_headers_give(build) -> None:
    assert read_text(FOLDER / "keywords.yaml") == build["keywords"](build["chunks"]())


def test_a_judgement_of_a_header_that_is_not_there_is_refused(build) -> None:
    with pytest.raises(SystemExit, match="Marzipan"):
        build["qrels"](build["chunks"](), {"q": {"Marzipan": 3}})


def test_keywords_hold_the_forms_that_questions_are_normalised_to() -> None:
    wanted = {"Accurate x", "Lethal x+", "KOMMANDOS - 'Ere We Go", "Counteract", "Movement: Minimum move stat"}
    assert wanted <= set(read_list("keywords.yaml")["keywords"])


def test_every_question_has_an_answer_of_the_highest_grade() -> None:
    assert [case.query.id for case in SET.cases if 3 not in case.grades.values()] == []


def test_a_two_hop_question_needs_two_headers_and_all_of_them_are_graded_highest(build) -> None:
    by_title = {chunk.title: chunk.id for chunk in build["chunks"]()}
    needs = {case.query.id: case.query.metadata["needs"] for case in TWO_HOP}
    assert min(map(len, needs.values())) >= 2
    answers = {case.query.id: {one for one, grade in case.grades.items() if grade == 3} for case in TWO_HOP}
    assert answers == {query: {by_title[title] for title in titles} for query, titles in needs.items()}


def test_the_same_keyword_in_other_capitals_has_the_same_labels() -> None:
    grades = {case.query.id: case.grades for case in SET.cases}
    pairs = [(case.query.id, case.query.metadata["same_as"]) for case in SET.cases if "same_as" in case.query.metadata]
    assert pairs
    assert all(grades[left] == grades[right] for left, right in pairs)


def test_a_players_word_stands_for_one_official_term() -> None:
    counts = Counter(word.casefold() for words in read_list("synonyms.yaml").values() for word in words)
    assert [word for word, count in counts.items() if count > 1] == []


def test_every_official_term_is_used_by_the_rules(build) -> None:
    text = " ".join(chunk.text for chunk in build["chunks"]()).casefold()
    assert [term for term in read_list("synonyms.yaml") if term.casefold() not in text] == []
