"""The indexed strategies give what the plain scan gives: every match of every strategy, with item and score."""

import importlib.util
from functools import cache
from pathlib import Path

import pytest

from benchmarks.parts.plain_scan import PlainMatch, PlainScan
from rag_core.entities import EntitySettings, TeamFilter, load_structure

_spec = importlib.util.spec_from_file_location("random_structures", Path(__file__).with_name("random_structures.py"))
made = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(made)


@cache
def structure(name):
    if name == "srd":
        if not made.SRD.is_dir():
            pytest.skip(f"the SRD data is not at {made.SRD}; set WINNOW_SHARED")
        return made.srd_structure()
    return load_structure() if name == "demo" else made.random_structure(made.rng(5))


def indexed(team_filter, query):
    explained = team_filter.explain(query)
    return {PlainMatch(m.team, m.strategy, m.item, m.score) for m in (*explained.matches, *explained.inside)}


def assert_same(name, queries, seed, settings=None):
    held = structure(name)
    team_filter, plain, rng = TeamFilter(held, settings), PlainScan(held, settings), made.rng(seed)
    found = 0
    for _ in range(queries):
        query = made.random_query(rng, held)
        matches = indexed(team_filter, query)
        assert matches == plain.matches(query), query
        found += bool(matches)
    assert found > queries / 4  # else the comparison would say little


STRUCTURES = ("demo", "srd", "random")


@pytest.mark.parametrize("name", STRUCTURES)
def test_indexed_equals_plain_scan_on_random_queries(name):
    assert_same(name, 250, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", STRUCTURES)
def test_indexed_equals_plain_scan_on_5000_random_queries(name):
    assert_same(name, 5000, seed=2)


@pytest.mark.parametrize("threshold", [0, 55, 66.7, 100])
def test_indexed_equals_plain_scan_at_other_thresholds(threshold):
    assert_same("random", 60, seed=3, settings=EntitySettings(threshold=threshold))


def test_a_filter_with_a_moved_threshold_equals_one_built_with_it(demo, demo_filter):
    built, moved, rng = TeamFilter(demo, EntitySettings(threshold=70)), demo_filter.at(70), made.rng(4)
    for _ in range(200):
        query = made.random_query(rng, demo)
        assert moved.explain(query) == built.explain(query)
