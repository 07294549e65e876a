"""A search in another process: five shapes of answers, prints, crashes, hangs; whatever happens, the next one works."""

import sys

import pytest

from rag_core.cli import main
from rag_core.errors import InputError, RecordError, StoreError
from rag_core.sources.callable_source import CallOptions, load_callable

MODULE = """
import os, sys, time
print("noise where the protocol was")
ROWS = [("a", "wolf hunts", 0.9), ("b", "bear sleeps", 0.5), ("c", "owl sees", 0.1)]

class Document:
    def __init__(self, one, text):
        self.id, self.page_content, self.metadata = one, text, {"title": text.upper(), "score": 7}

def mappings(text, depth): return [{"chunk_id": one, "content": said, "score": score} for one, said, score in ROWS]
def pairs(text, k=10): return [(one, score) for one, _, score in ROWS[:k]]
def triples(text): return (list(row) for row in ROWS)
def documents(text, *, top_k): return [(Document(one, said), score) for one, said, score in ROWS[:top_k]]
def columns(text, n_results):
    return {"ids": [["a", "b", "c"]], "documents": [[said for _, said, _ in ROWS]], "distances": [[0.1, 0.5, 0.9]],
            "metadatas": [[{"title": "T"}, None, None]]}
async def later(text, limit): return mappings(text, limit)
def bare(text, depth): return [Document(one, said) for one, said, _ in ROWS]
def turning(text, depth): return [("a", 1.0), ("b", 2.0)] if "up" in text else [("a", 2.0), ("b", 1.0)]
def far(text, depth): return {"metric": "cosine", "candidates": [{"id": "a", "distance": 3.5}]}
def bad(text, depth):
    print("chatter " * 1000)
    if text == "die": os._exit(7)
    if text == "hang": time.sleep(600)
    if text == "raise": raise KeyError("gone")
    if text == "leave": sys.exit(3)
    if text == "read": return input()
    return mappings(text, depth)
def environment(text, depth): return [{"id": name, "score": 1} for name in sorted(os.environ)]
"""


@pytest.fixture
def theirs(tmp_path):
    (tmp_path / "their_rag.py").write_text(MODULE, encoding="utf-8")
    return lambda name, **more: load_callable(
        f"their_rag:{name}", CallOptions(**{"python": sys.executable, "folder": str(tmp_path), "seconds": 20, **more})
    )


@pytest.mark.parametrize("name", ["mappings", "pairs", "triples", "documents", "columns", "later"])
def test_every_shape_gives_ids_and_scores_in_their_direction(theirs, name):
    hits = theirs(name).ask("who hunts?", 3)
    assert [hit.chunk.id for hit in hits] == ["a", "b", "c"]
    kind, values = ("distance", [0.1, 0.5, 0.9]) if name == "columns" else ("score", [0.9, 0.5, 0.1])
    assert [dict(hit.scores) for hit in hits] == [{kind: value} for value in values]
    assert hits[0].chunk.text == ("" if name == "pairs" else "wolf hunts")


def test_what_has_no_score_gets_its_places_and_metadata_is_no_score(theirs):
    assert [hit.scores for hit in theirs("bare").ask("q", 3)] == [{"score": 1.0}, {"score": 1 / 2}, {"score": 1 / 3}]


def test_what_is_named_stands_above_what_is_seen(theirs):
    index = theirs("pairs", score="similarity", metric="cosine")
    assert index.ask("q", 1)[0].scores == {"similarity": 0.9, "distance": pytest.approx(0.1)}


def test_numbers_that_are_not_what_they_are_called_are_refused(theirs):
    with pytest.raises(RecordError, match="no cosine distance"):
        theirs("far").ask("q", 1)
    turning = theirs("turning")
    turning.ask("down", 2)
    with pytest.raises(RecordError, match="--score"):
        turning.ask("up", 2)


def test_whatever_one_question_does_the_next_one_is_answered(theirs):
    index = theirs("bad", seconds=3)
    for text, said in (("die", "code 7"), ("raise", "KeyError: 'gone'"), ("leave", "SystemExit"), ("read", "EOFError")):
        with pytest.raises(StoreError, match=said):
            index.ask(text, 3)
        assert len(index.ask("fine", 3)) == 3
    with pytest.raises(StoreError, match="no answer in 3 s"):
        index.ask("hang", 3)
    assert len(index.ask("fine", 3)) == 3


def test_our_keys_stay_here_unless_they_are_named(theirs, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("WINNOW_DATABASE_URL", "postgresql://u:p@127.0.0.1/d")
    monkeypatch.setenv("THEIR_OWN", "1")
    names = {hit.chunk.id for hit in theirs("environment").ask("q", 999)}
    assert "THEIR_OWN" in names
    assert not {"OPENAI_API_KEY", "WINNOW_DATABASE_URL"} & names
    handed = {hit.chunk.id for hit in theirs("environment", variables=("OPENAI_API_KEY",)).ask("q", 999)}
    assert "OPENAI_API_KEY" in handed


def test_what_is_not_there_is_one_sentence(theirs):
    for name, more, said in (
        ("nothing", {}, "has no function nothing"),
        ("pairs", {"python": "/nowhere/python"}, "does not start"),
        ("pairs", {"score": "closeness"}, "expected one of distance"),
    ):
        with pytest.raises(InputError, match=said):
            theirs(name, **more)


def test_a_project_remembers_how_its_function_is_called(theirs, tmp_path, monkeypatch, capsys):
    theirs("pairs")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "questions.txt").write_text("who hunts?\nwho sleeps?\n", encoding="utf-8")
    place = ["--workspace", str(tmp_path / "ws")]
    made = ["init", "mine", "--from", "their_rag:pairs", "--questions", "questions.txt", "--python", sys.executable]
    assert main([*made, "--score", "similarity", "--metric", "cosine", *place]) == 0
    assert "similarity (cosine)" in capsys.readouterr().out
    monkeypatch.chdir("/")
    assert main(["query", "who hunts?", "--project", "mine", "-p", '["TopK"]', *place]) == 0
    assert "0.1000" in capsys.readouterr().out
