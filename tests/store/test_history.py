"""The history of questions: what is kept of a run, filters, retention, and deletion that leaves no text in the file."""

from datetime import UTC, datetime, timedelta
from time import monotonic

import pytest
from sqlalchemy import select

from rag_core.errors import StoreError
from rag_core.store import history as history_module
from rag_core.store.database import open_store
from rag_core.store.history import EXPIRE_SECONDS, History, HistoryEntry, asked_of, expire, remember
from rag_core.store.schema import query_history
from rag_core.types import Candidates, Chunk, Drop, Fallback, Hit, Metric, Query, Reason, Step


def asked(query="Can I heal?", collection="rules", **fields):
    return HistoryEntry(query, collection, [{"TopK": {"k": 3}}], {"kept": [{"id": "c1"}]}, **fields)


@pytest.fixture
def history(tmp_path, database):
    with open_store(tmp_path) as store:
        yield History(store)


def test_what_was_appended_comes_back_newest_first(history):
    one, two = asked(), asked("Who dies?", hops=[{"hop": 1, "missing_query": "Climb"}], tokens=12, cost=0.5)
    numbers = [history.append(one), history.append(two)]
    found = history.find()
    assert [item.query for item in found] == ["Who dies?", "Can I heal?"]
    assert [item.number for item in found] == numbers[::-1]
    assert (found[0].hops, found[0].tokens, found[0].cost) == ([{"hop": 1, "missing_query": "Climb"}], 12, 0.5)
    assert history.get(numbers[0]).pipeline == [{"TopK": {"k": 3}}]


def test_words_narrow_and_a_limit_takes_the_newest(history):
    history.append(asked("100 % Heal", at="2026-01-01T00:00:00"))
    history.append(asked("1000 heal", "other", at="2026-01-02T00:00:00"))
    assert [one.query for one in history.find(holds="0 % HEAL")] == ["100 % Heal"]
    assert (history.count(), history.count(holds="%")) == (2, 1)
    assert [one.query for one in history.find(limit=1)] == ["1000 heal"]


@pytest.mark.parametrize("holds", ["Über", "Über d", "ÜBER DIE"])
def test_words_beyond_ascii_are_found_as_they_were_asked(history, holds):
    history.append(asked(holds))
    assert [one.query for one in history.find(holds=holds)] == [holds]


def test_signs_of_a_pattern_stand_for_themselves(history):
    for query in ("a_b", "a/b", "axb", r"a\b"):
        history.append(asked(query))
    assert {holds: [one.query for one in history.find(holds=holds)] for holds in ("_", "/", "\\")} == {
        "_": ["a_b"],
        "/": ["a/b"],
        "\\": [r"a\b"],
    }


def test_a_question_that_is_not_there_is_said(history):
    with pytest.raises(StoreError, match="has no question 7"):
        history.get(7)


def files_of(workspace):
    return b"".join(path.read_bytes() for path in workspace.glob("winnow.db*"))


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_deletion_leaves_no_text_in_any_file_of_the_store(tmp_path, history):
    for number in range(300):
        history.append(asked(f"canary question {number}", hops=[{"missing_query": f"canary title {number}"}] * 20))
    kept = history.append(asked("something that stays"))
    assert b"canary" in files_of(tmp_path)
    numbers = [one.number for one in history.find(holds="canary", limit=1000)]
    assert history.delete(numbers[:150]) == 150
    assert history.delete(numbers[150:]) == 150
    assert b"canary" not in files_of(tmp_path)
    assert [one.number for one in history.find()] == [kept]
    assert b"something that stays" in files_of(tmp_path)


def test_deleting_all_leaves_labels_alone_and_counts(history):
    history.append(asked())
    history.append(asked())
    assert history.delete() == 2
    assert history.delete() == 0
    assert history.count() == 0


def test_what_is_older_than_the_setting_goes_for_good(tmp_path, history):
    old = (datetime.now(UTC) - timedelta(days=8)).isoformat(timespec="milliseconds")
    history.append(asked("canary of last week", at=old))
    history.append(asked("of today"))
    assert history.count() == 2  # who asks does not wait for it
    history.prune(7, datetime.now(UTC))
    assert [one.query for one in history.find()] == ["of today"]
    assert b"canary" not in files_of(tmp_path)


def test_what_is_too_old_goes_once_an_hour_in_a_process(tmp_path, history, monkeypatch):
    monkeypatch.setenv("WINNOW_HISTORY_DAYS", "7")
    old = (datetime.now(UTC) - timedelta(days=8)).isoformat(timespec="milliseconds")
    workspace = history.store.workspace
    monkeypatch.delitem(history_module._expired, workspace, raising=False)
    for left in (0, 1):
        history.append(asked("of last week", at=old))
        assert expire(workspace) == ""
        assert history.count() == left
    monkeypatch.setitem(history_module._expired, workspace, monotonic() - EXPIRE_SECONDS - 1)
    assert expire(workspace) == ""
    assert history.count() == 0


def test_a_store_that_cannot_be_read_keeps_nobody_from_going_on(tmp_path):
    (tmp_path / "winnow.db").write_bytes(b"this is no database" * 100)
    assert "winnow.db" in expire(tmp_path)


def test_more_old_questions_than_a_statement_has_variables_go_at_once(history, database):
    many = 70_000 if database == "postgresql" else 260_000  # more than 2^16 there, than 250,000 in SQLite
    values = {name: "[]" for name in ("pipeline", "result", "hops")} | {"milliseconds": 0.0, "asked_by": ""}
    row = {"at": "2020-01-01T00:00:00.000+00:00", "collection": "rules", "query": "old", **values}
    columns = [query_history.c[name] for name in row]
    with history.store.writing() as connection:
        connection.execute(query_history.insert(), [row])
        for _ in range(many.bit_length()):
            connection.execute(query_history.insert().from_select(columns, select(*columns)))
    history.append(asked("of today"))
    history.prune(7, datetime.now(UTC))
    assert [one.query for one in history.find()] == ["of today"]


def test_nothing_is_kept_where_the_setting_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("WINNOW_HISTORY_DAYS", "0")
    assert remember(tmp_path, asked()) == ""
    assert not list(tmp_path.iterdir())


def test_a_store_that_cannot_be_written_is_a_sentence_and_no_error(tmp_path):
    (tmp_path / "winnow.db").write_bytes(b"this is no database" * 100)
    assert "winnow.db" in remember(tmp_path, asked())


def test_a_run_is_kept_without_text_and_with_its_hops_and_tokens():
    hit = Hit(Chunk("c1", "Title", "secret text"), 1, {"distance": 0.25})
    gone = Hit(Chunk("c2", "Other", "secret text"), 2, {"distance": 0.5})
    found = Candidates(
        Query("q", "Can I heal?"),
        (hit, Hit(Chunk("c3", "Third", "secret text"), 3, {}, "hop 1")),
        (Drop(gone, "TopK", Reason("rank 2")),),
        fallbacks=(Fallback("LLMFilter", "no endpoint"),),
        steps=(
            Step("MultiHop", 1, 2, {"hops": [{"hop": 1, "can_answer": True}, "odd"], "tokens": 30}, 12.5),
            Step("Odd", 2, 1, {"hops": 3, "tokens": "many"}, 7.5),
        ),
        metric=Metric.COSINE,
    )
    kept = asked_of(found, [{"TopK": {}}], "rules", "me")
    assert kept.result == {
        "kept": [{"id": "c1", "title": "Title", "distance": 0.25}, {"id": "c3", "title": "Third", "origin": "hop 1"}],
        "dropped": {"TopK": 1},
        "metric": "cosine",
        "fallbacks": [{"stage": "LLMFilter", "reason": "no endpoint"}],
    }
    assert (kept.hops, kept.tokens, kept.cost, kept.milliseconds) == ([{"hop": 1, "can_answer": True}], 30, None, 20.0)
    assert "secret" not in repr(kept)
