"""The demo rulebook's queries, labels and rules agree with one another."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from rag_core.eval_sets.reading import read_set
from rag_core.rules.match import decide
from rag_core.rules.rule import parse_rule

FOLDER = Path(__file__).parents[2] / "eval_sets" / "rulebook"
CHUNKS = {c["id"]: c for c in map(json.loads, (FOLDER / "corpus.jsonl").read_text(encoding="utf-8").splitlines())}
RULES = {one: parse_rule(chunk["query_must"], one) for one, chunk in CHUNKS.items() if "query_must" in chunk}
REBUILD = """
import sys
sys.path.insert(0, sys.argv[1])
import build
chunks = build.corpus()
files = {"corpus.jsonl": build.json_lines(chunks), "qrels.tsv": build.qrels(chunks)}
same = all((build.FOLDER / name).read_text(encoding="utf-8") == text for name, text in files.items())
sys.stdout.write("same" if same else "other")
"""
CASES = {case.query.id: case for case in read_set(FOLDER).cases}


def admits(chunk: str, query: str) -> bool:
    """Whether the chunk may be returned for the query: it has no rule, or the rule is satisfied."""
    return chunk not in RULES or decide(RULES[chunk], query).satisfied


def test_only_tables_carry_rules_and_all_of_them_do():
    assert set(RULES) == {one for one, chunk in CHUNKS.items() if chunk["type"] == "table"}


def test_no_two_tables_have_the_same_rule():
    repeated = [rule for rule, count in Counter(rule.as_json() for rule in RULES.values()).items() if count > 1]
    assert repeated == []


def test_every_relevant_chunk_passes_its_rule():
    dropped = [
        (case.query.id, chunk)
        for case in CASES.values()
        for chunk, grade in case.grades.items()
        if grade > 0 and not admits(chunk, case.query.text)
    ]
    assert dropped == []


def test_labels_name_chunks_that_exist():
    assert {chunk for case in CASES.values() for chunk in case.grades} <= set(CHUNKS)


def test_everything_pooled_is_judged():
    pool = json.loads((FOLDER / "pool.json").read_text(encoding="utf-8"))
    assert set(pool) == set(CASES)
    assert min(map(len, pool.values())) >= 30
    assert [(one, chunk) for one in pool for chunk in pool[one] if chunk not in CASES[one].grades] == []


def test_the_corpus_and_the_labels_are_what_the_build_writes():
    found = subprocess.run([sys.executable, "-c", REBUILD, str(FOLDER)], capture_output=True, text=True, check=True)
    assert found.stdout == "same"


def test_every_query_has_labels_and_two_have_nothing_relevant():
    without = [case.query.id for case in CASES.values() if not any(case.grades.values())]
    assert sorted(without) == ["nothing-lightsaber", "nothing-warp"]
    assert all(case.grades for case in CASES.values())


def test_there_are_enough_queries_of_each_kind_in_both_halves():
    tags = Counter(tag for case in CASES.values() for tag in case.query.tags)
    assert len(CASES) >= 64
    assert tags["parametric"] >= 32
    assert (
        min(tags[one] for one in ("comparison", "spell", "monster", "rule", "no-armor-class", "several-classes")) >= 3
    )
    for tag in ("parametric", "combat", "psionic", "encounter", "comparison", "spell", "monster", "rule", "nothing"):
        halves = Counter(case.query.metadata["split"] for case in CASES.values() if tag in case.query.tags)
        assert abs(halves["dev"] - halves["test"]) <= 2, tag


@pytest.mark.parametrize(
    ("chunk", "inside"),
    [
        ("tables/attack-cleric-ac6", True),
        ("tables/attack-cleric-ac5", False),
        ("rules/strength", True),
        ("tables/attack-fighter-ac6", False),
    ],
)
def test_the_four_verdicts_of_the_strength_query(chunk, inside):
    query = "What does a 7th level cleric with strength 17 need to roll to hit armor class 6?"
    assert CASES["combat-strength"].query.text == query
    assert admits(chunk, query) is inside


def test_the_known_limit_of_a_fighter_against_a_druid_is_there():
    query = CASES["combat-3"].query.text
    admitted = {one for one in RULES if admits(one, query)}
    assert admitted == {f"tables/attack-{group}-ac{ac}" for group in ("fighter", "cleric") for ac in (3, 9)}
