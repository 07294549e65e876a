"""`history`: live questions are kept with their settings, listed, shown and deleted."""

import json

import pytest

from rag_core.cli import main
from rag_core.store.history import HistoryEntry


@pytest.fixture
def run(tmp_path, capsysbinary):
    def called(*arguments, code=0):
        assert main([*map(str, arguments), "--workspace", str(tmp_path / "ws"), "--json"]) == code
        out, err = capsysbinary.readouterr()
        return json.loads(out) if code == 0 else err.decode()

    return called


@pytest.fixture
def asked(run, tmp_path):
    (tmp_path / "hats.md").write_text("## Bowler\nA hard round hat.\n\n## Beret\nA soft flat cap.\n")
    run("ingest", tmp_path / "hats.md", "--collection", "wear")
    run("query", "a soft cap", "--collection", "wear", "-p", '[{"TopK": {"k": 1}}]')
    run("query", "a hard hat", "--collection", "wear", "-p", '[{"TopK": {"k": 1}}]')
    return run


def test_questions_are_listed_newest_first_and_filtered(asked):
    found = asked("history", "list")
    assert [one["query"] for one in found["questions"]] == ["a hard hat", "a soft cap"]
    assert asked("history", "list", "--holds", "soft")["total"] == 1


def test_a_question_is_shown_with_its_settings_and_result(asked):
    number = asked("history", "list", "--holds", "soft")["questions"][0]["number"]
    one = asked("history", "show", number)
    assert one["pipeline"][-1] == {"TopK": {"k": 1}}
    assert [hit["title"] for hit in one["result"]["kept"]] == ["Beret"]
    assert one["result"]["dropped"] == {"TopK": 1}
    assert one["asked_by"] == "command line"


def test_in_words_a_question_has_its_settings_scores_hops_and_what_fell_back():
    hops = [{"hop": 1, "can_answer": False, "missing_query": "Climb", "reasoning": "no climbing"}, {"can_answer": True}]
    result = {
        "kept": [{"id": "a", "title": "A", "distance": 0.25}, {"id": "b", "origin": "hop 1"}],
        **{"dropped": {"TopK": 2}, "metric": "cosine", "fallbacks": [{"stage": "MultiHop", "reason": "timed out"}]},
    }
    told = (
        HistoryEntry("Who climbs?", "wear", [{"TopK": {"k": 1}}], result, hops, 12.0, asked_by="me", at="now")
        .to_text()
        .splitlines()
    )
    assert told == [
        *["Who climbs?", "now, wear, asked by me, 12 ms", 'settings: [{"TopK": {"k": 1}}]'],
        *["kept 2, cosine metric; distance:", "  0.2500   A", "  -        b  (hop 1)", "dropped by TopK: 2"],
        *["fell back: MultiHop: timed out", "hop 1: misses Climb (no climbing)", "hop : can answer ()"],
    ]


def test_deletion_names_what_goes(asked):
    numbers = [one["number"] for one in asked("history", "list")["questions"]]
    assert "expected numbers or --all" in asked("history", "delete", code=2)
    assert asked("history", "delete", numbers[0])["deleted"] == 1
    assert asked("history", "delete", "--all")["deleted"] == 1
    assert asked("history", "list")["total"] == 0


def test_an_empty_workspace_has_no_history_and_makes_no_store(run, tmp_path):
    assert run("history", "list") == {"version": 1, "total": 0, "questions": []}
    assert "it is empty" in run("history", "show", 1, code=2)
    assert not (tmp_path / "ws").exists()


def test_a_setting_of_no_days_keeps_nothing(run, tmp_path, monkeypatch):
    monkeypatch.setenv("WINNOW_HISTORY_DAYS", "0")
    (tmp_path / "hats.md").write_text("## Bowler\nA hat.\n")
    run("ingest", tmp_path / "hats.md", "--collection", "wear")
    run("query", "hat", "--collection", "wear")
    assert run("history", "list")["total"] == 0


def test_a_setting_that_is_no_number_is_wrong_usage(run, monkeypatch):
    monkeypatch.setenv("WINNOW_HISTORY_DAYS", "soon")
    assert "WINNOW_HISTORY_DAYS is 'soon'" in run("collections", code=2)
