"""80 labelled queries on the demo structure: precision and recall of the teams found. The test half was never tuned on."""

import json
from pathlib import Path

import pytest

from rag_core.entities import TeamFilter
from rag_core.entities.agreement import LabelledQuery, agreement, changes, read_labelled
from rag_core.errors import InputError, RecordError

QUERIES = Path(__file__).parents[2] / "eval_sets/skirmish-entities/queries.jsonl"
TWO = {"entities": {"Aaron": {"members": ["Zorg"]}, "Bertil": {"members": ["Quux"]}, "Cesar": {"members": ["Wibb"]}}}


@pytest.fixture(scope="module")
def labelled():
    return read_labelled(QUERIES)


def test_there_are_40_dev_and_40_test_queries_of_every_kind(labelled):
    halves = [[row for row in labelled if row.half == half] for half in ("dev", "test")]
    assert [len(half) for half in halves] == [40, 40]
    kinds = {"name", "plural", "typo", "other words", "alias", "member", "ability", "several", "none"}
    assert {row.kind for row in halves[0]} == {row.kind for row in halves[1]} == kinds


def test_every_label_is_a_team_of_the_demo(labelled, demo_filter):
    assert {team for row in labelled for team in row.teams} <= set(demo_filter.teams)


def test_precision_and_recall_on_the_test_half_are_at_least_95_percent(labelled, demo_filter):
    found = agreement(demo_filter, [row for row in labelled if row.half == "test"])
    assert found.precision >= 0.95
    assert found.recall >= 0.95


def test_the_documented_misses_are_all_there_are(labelled, demo_filter):
    misses = agreement(demo_filter, labelled).misses
    assert [miss.labelled.id for miss in misses] == ["e30", "e80"]


def test_each_strategy_alone_finds_part_of_the_teams_and_together_they_find_most(labelled, demo_filter):
    alone = {
        strategy.name: agreement(demo_filter, labelled, strategy.name).micro_recall
        for strategy in demo_filter.strategies
    }
    together = agreement(demo_filter, labelled).micro_recall
    assert set(alone) == {"operative", "ability", "alias", "team_name"}
    assert all(0 < recall < together for recall in alone.values())


def test_macro_is_the_mean_per_query_and_micro_counts_pairs():
    rows = [
        LabelledQuery("1", "aaron bertil", ("Aaron",)),  # found 2, right 1
        LabelledQuery("2", "cesar", ("Cesar",)),  # right
        LabelledQuery("3", "nothing", ("Bertil",)),  # found none
        LabelledQuery("4", "hello", ()),  # means none, found none
    ]
    found = agreement(TeamFilter(TWO), rows)
    assert found.precision == (1 / 2 + 1 + 0 + 1) / 4
    assert found.recall == (1 + 1 + 0 + 1) / 4
    assert (found.micro_precision, found.micro_recall) == (2 / 3, 2 / 3)
    assert [(m.labelled.id, m.extra, m.missing) for m in found.misses] == [
        ("1", ("Bertil",), ()),
        ("3", (), ("Bertil",)),
    ]


def test_shares_of_nothing_are_none():
    found = agreement(TeamFilter(TWO), [LabelledQuery("1", "hello", ())])
    assert (found.precision, found.recall, found.micro_precision, found.micro_recall) == (1, 1, None, None)


def test_no_labelled_queries_are_an_error():
    with pytest.raises(InputError, match="no labelled queries"):
        agreement(TeamFilter(TWO), [])


def test_adding_an_alias_shows_which_labelled_queries_change():
    before = TeamFilter(TWO)
    after = TeamFilter(before.structure.with_alias("gaffer", ("Cesar",)))
    rows = [LabelledQuery("1", "the gaffer", ("Cesar",)), LabelledQuery("2", "aaron", ("Aaron",))]
    assert [(c.labelled.id, c.came, c.went) for c in changes(before, after, rows)] == [("1", ("Cesar",), ())]


@pytest.mark.parametrize(
    "row", [[], {"teams": []}, {"query": 1, "teams": []}, {"query": "x"}, {"query": "x", "teams": [1]}]
)
def test_a_labelled_line_that_cannot_be_read_names_the_line(tmp_path, row):
    file = tmp_path / "q.jsonl"
    file.write_text('{"query": "fine", "teams": []}\n' + json.dumps(row) + "\n")
    with pytest.raises(RecordError, match="line 2"):
        read_labelled(file)


def test_words_of_names_the_longest_name_and_other_words_for_roles_are_understood_on_60_more_queries(demo_filter):
    found = agreement(demo_filter, read_labelled(QUERIES.with_name("own-words.jsonl")))
    assert found.queries == 60
    assert found.precision >= 0.95
    assert found.recall >= 0.95
