"""The demo's rules held to its labels: what they do to result lists, and what they wrongly drop or keep. Real model."""

from statistics import fmean

import pytest

from rag_core import workbench
from rag_core.compare.why_not import why_not
from rag_core.eval_sets.reading import load_set
from rag_core.filters.query_must import QueryMust
from rag_core.measure.scores import score
from rag_core.retrieve.dense import Dense
from rag_core.retrieve.requery import Requery
from rag_core.rules.check import lint_rules
from rag_core.rules.match import decide
from rag_core.rules.rule import Rule, read_rule
from rag_core.rules.siblings import suggest
from rag_core.stage import Pipeline
from rag_core.types import Candidates, Query

TAGS = ("combat", "psionic", "encounter", "several-armor-classes", "several-classes", "no-armor-class")


@pytest.fixture(scope="module")
def rulebook():
    return load_set("rulebook")


@pytest.fixture(scope="module")
def index(rulebook, tmp_path_factory):
    workspace = tmp_path_factory.mktemp("workspace")
    workbench.bring_up_to_date(rulebook, workspace)
    return workbench.opened(workspace, "rulebook")


@pytest.fixture(scope="module")
def first_15(rulebook, index):
    return {case.query.id: Dense(depth=15, index=index)(Candidates(case.query)) for case in rulebook.cases}


def means(cases, first_15, stage):
    """(mean SetP, mean SetR) of a stage on the first 15 of each query."""
    scores = [score([hit.chunk.id for hit in stage(first_15[case.query.id]).hits], case.grades) for case in cases]
    return [fmean(one.values[name] for one in scores if one.scored) for name in ("SetP", "SetR")]


@pytest.mark.parametrize("tag", ["", *TAGS])
def test_rules_raise_precision_at_15_on_test_queries_and_lower_no_recall(rulebook, first_15, tag):
    cases = [case for case in rulebook.split("test").cases if not tag or tag in case.query.tags]
    without, with_rules = means(cases, first_15, Pipeline()), means(cases, first_15, QueryMust())
    refilled = means(cases, first_15, Requery(k=15, strategy="prefilter"))
    assert with_rules[0] > without[0]
    assert with_rules[1] == without[1]
    assert refilled[0] >= without[0]
    assert refilled[1] >= without[1]


def test_no_rule_drops_a_chunk_that_is_labelled_relevant_and_lint_finds_no_error(rulebook, index):
    found = lint_rules(index.snapshot.chunks, rulebook.cases)
    assert [finding for finding in found if finding.severity == "error"] == []


def test_the_chunks_wrongly_kept_on_test_queries_are_those_that_words_cannot_tell_apart(rulebook, index):
    rules = {chunk.id: rule for chunk in index.snapshot.chunks if isinstance(rule := read_rule(chunk.query_must), Rule)}
    kept = {
        (case.query.id, identity.removeprefix("tables/"))
        for case in rulebook.split("test").cases
        for identity, grade in case.grades.items()
        if grade == 0 and identity in rules and decide(rules[identity], case.query.text).satisfied
    }
    assert kept == {
        ("encounter-faerie-forest", "encounter-temperate-forest"),
        ("combat-3", "attack-cleric-ac9"),  # a known limit: rules see words, not who hits whom
        ("combat-3", "attack-fighter-ac3"),
        ("compare-monk-thief", "attack-cleric-ac5"),
        ("compare-monk-thief", "attack-thief-ac6"),
    }


def test_prefilter_fills_every_list_and_agrees_with_deepen_where_that_fills_it(rulebook, first_15):
    full = 0
    for case in rulebook.cases:
        before = first_15[case.query.id]
        deepen, prefilter = (Requery(k=15, strategy=name)(before) for name in ("deepen", "prefilter"))
        assert len(prefilter.hits) == 15
        ids = [hit.chunk.id for hit in deepen.hits]
        assert ids == [hit.chunk.id for hit in prefilter.hits][: len(ids)]
        full += len(ids) == 15
    assert 20 < full < len(rulebook.cases)


def test_the_families_that_crowd_the_lists_are_the_six_of_tables(index, rulebook):
    found = suggest(index.snapshot.chunks, rulebook.cases)
    assert sorted(len(crowd.chunks) for crowd in found) == [21, 21, 21, 21, 27, 27]


def test_why_not_the_strength_entry(index):
    query = Query("q", "What does a 7th level cleric with strength 17 need to roll to hit armor class 6?")
    plain = why_not(Pipeline((Dense(depth=15, index=index),)), Candidates(query), "Strength")
    assert (plain.outcome, plain.rank > 15, plain.then.outcome) == ("not brought", True, "kept")
    refilled = Pipeline((Dense(depth=15, index=index), Requery(k=15)))
    assert why_not(refilled, Candidates(query), "Strength").outcome == "kept"
    dropped = why_not(refilled, Candidates(query), "tables/attack-cleric-ac5")
    assert dropped.reason == "no word of: armor class 5 / ac 5 / a.c. 5"
