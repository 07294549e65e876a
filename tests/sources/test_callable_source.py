"""Functions as sources: their answers are checked, read deeper on demand, and go through pipelines like any list."""

import json
import re
import sys
import types
from pathlib import Path

import pytest

from rag_core.cli import main
from rag_core.errors import InputError, RecordError, StoreError
from rag_core.filters.cutoff import TopK
from rag_core.retrieve.dense import Dense
from rag_core.retrieve.requery import Requery
from rag_core.sources.callable_source import CallableIndex, load_callable
from rag_core.types import Candidates, Metric, Query

DOCS = Path(__file__).parents[2] / "docs" / "sources.md"


def numbered(text, depth):
    rows = [{"id": f"c{n:03}", "title": f"T{n}", "distance": n / 100, "half": n % 2} for n in range(50)]
    return {"metric": "cosine", "candidates": rows[:depth]}


class FakeTable:
    """A vector database in memory, for the example of the documentation."""

    rows = tuple({"key": f"r{n}", "heading": f"Rule {n}", "body": "text", "distance": n / 10} for n in range(5))

    def nearest(self, text, limit):
        return self.rows[:limit]


def index(function):
    return CallableIndex(function, "tests:function")


def ids(hits):
    return [hit.chunk.id for hit in hits]


def test_a_pipeline_runs_on_a_function_as_on_an_index():
    found = (Dense(depth=20, index=index(numbered)) >> TopK(k=3))(Candidates(Query("q", "anything")))
    assert ids(found.hits) == ["c000", "c001", "c002"]
    assert len(found.drops) == 17
    assert found.metric is Metric.COSINE


def test_refill_reads_further_down_the_function():
    rules = [{"id": "a", "distance": 0.1, "query_must": {"contain_one_of": [["never"]]}}]
    rules += [{"id": f"b{n}", "distance": 0.2 + n} for n in range(5)]
    pipeline = Dense(depth=2, index=index(lambda text, depth: rules[:depth])) >> Requery(k=2)
    assert ids(pipeline(Candidates(Query("q", "word"))).hits) == ["b0", "b1"]


def test_reading_on_asks_deeper_and_what_was_read_keeps_its_place():
    reader = index(numbered).reader("q")
    first = reader.read(0, 10)
    assert reader.read(0, 30)[:10] == first
    assert ids(reader.read(45, 60)) == ["c045", "c046", "c047", "c048", "c049"]
    assert ids(reader.read_excluding(["c000", "c002"], 3)) == ["c001", "c003", "c004"]


def test_conditions_are_applied_to_the_answer_and_filled_from_further_down():
    hits = index(numbered).reader("q", where={"half": 1}).read(0, 12)
    assert ids(hits) == [f"c{n:03}" for n in range(1, 25, 2)]
    assert [hit.rank for hit in hits] == list(range(1, 13))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([{"id": "a"}], "has no score"),
        ([{"distance": 0.1}], "candidate 1 has no id"),
        ([{"id": "a", "distance": 0.1}, {"id": "a", "distance": 0.2}], "id 'a' again"),
        ([{"id": "a", "distance": 0.2}, {"id": "b", "distance": 0.1}], "expected ascending distances"),
        ([{"id": "a", "distance": float("nan")}], "expected a finite number"),
        ([{"id": "a", "distance": "0.1"}], "expected a finite number"),
        ("text", "expected a list"),
        (None, "expected a list"),
        ([3], "expected an object"),
        ({"candidates": [], "metrics": "l2"}, "has the key 'metrics'"),
        ({"candidates": [], "metric": "manhattan"}, "expected one of cosine"),
    ],
)
def test_an_answer_that_is_no_list_of_chunks_is_refused_in_one_sentence(answer, said):
    with pytest.raises(RecordError, match=said):
        index(lambda text, depth: answer).reader("q").read(0, 5)


def test_more_than_was_asked_for_is_cut():
    assert len(index(lambda text, depth: numbered(text, 50)).ask("q", 4)) == 4


def test_an_exception_of_the_function_names_the_source_and_never_its_words():
    def broken(text, depth):
        raise ValueError("password hunter2")

    with pytest.raises(StoreError, match=r"source tests:function failed \(ValueError\)") as caught:
        index(broken).reader("q").read(0, 5)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "named",
    [
        "",
        "module",
        "module:",
        ":function",
        "a b:c",
        "os; import sys:x",
        "../x:y",
        {"callables": "a:b"},
        {"callable": 3},
    ],
)
def test_what_is_no_module_and_function_is_refused(named):
    with pytest.raises(InputError, match=r"expected"):
        load_callable(named)


def test_a_missing_module_or_function_is_said(monkeypatch):
    with pytest.raises(InputError, match="module nowhere_at_all cannot be imported"):
        load_callable("nowhere_at_all:search")
    with pytest.raises(InputError, match="module json has no function nothing"):
        load_callable("json:nothing")


def test_search_by_words_is_refused_for_a_function():
    with pytest.raises(InputError, match="searches by itself"):
        index(numbered).lexical_reader("q")


@pytest.fixture
def documented(monkeypatch, tmp_path):
    """The example of docs/sources.md as a module, over a fake database in memory."""
    (code,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.S)
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    fake = types.ModuleType("fake_vector_database")
    fake.connect = lambda name: FakeTable()
    monkeypatch.setitem(sys.modules, "fake_vector_database", fake)
    monkeypatch.delitem(sys.modules, "my_source", raising=False)
    (tmp_path / "my_source.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("my_source", None)


def test_the_documented_example_queries_captures_and_evaluates(documented, capsysbinary):
    own = documented / "set"
    own.mkdir()
    (own / "meta.yaml").write_text("version: 1\nname: rules\n")
    (own / "queries.jsonl").write_text('{"id": "q1", "query": "a rule"}\n')
    (own / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tr1\t2\n")
    common = ["--source", "my_source:search", "--workspace", str(documented / "ws"), "--json"]

    def run(*arguments):
        assert main([*arguments, *common]) == 0
        return json.loads(capsysbinary.readouterr()[0])

    (asked,) = run("query", "a rule", "-p", '[{"TopK": {"k": 2}}]')["pipelines"][0]["queries"]
    assert [hit["id"] for hit in asked["kept"]] == ["r0", "r1"]
    assert asked["metric"] == "cosine"
    out = documented / "lists.jsonl"
    assert run("capture", "--eval-set", str(own), "--depth", "4", "--out", str(out))["asked"] == 1
    (line,) = out.read_text().splitlines()
    assert [one["id"] for one in json.loads(line)["candidates"]] == ["r0", "r1", "r2", "r3"]
    measured = run("evaluate", "--eval-set", str(own), "-p", '[{"TopK": {"k": 2}}]')["pipelines"][0]["means"]
    assert (measured["SetP"], measured["SetR"]) == (0.5, 1.0)


def test_a_source_and_a_collection_together_or_neither_is_wrong_usage(capsys):
    assert main(["query", "a", "--json"]) == 2
    assert main(["query", "a", "--collection", "x", "--source", "a:b", "--json"]) == 2
    said = capsys.readouterr().err
    assert "nothing to work on is named" in said
    assert "got --collection and --source" in said


def test_an_interrupted_capture_of_a_source_resumes_with_what_is_missing(documented, capsysbinary, monkeypatch):
    own = documented / "set"
    own.mkdir()
    (own / "meta.yaml").write_text("version: 1\nname: rules\n")
    (own / "queries.jsonl").write_text("".join(f'{{"id": "q{n}", "query": "rule {n}"}}\n' for n in range(6)))
    asked, nearest = [], FakeTable.nearest

    def failing(table, text, limit):
        asked.append(text)
        if len(asked) == 4:
            raise ConnectionError("the line broke")
        return nearest(table, text, limit)

    monkeypatch.setattr(FakeTable, "nearest", failing)
    out = documented / "lists.jsonl"
    arguments = ["capture", "--eval-set", str(own), "--out", str(out), "--source", "my_source:search", "--json"]
    assert main([*arguments, "--workspace", str(documented / "ws")]) == 3
    assert b"my_source:search failed (ConnectionError)" in capsysbinary.readouterr()[1]
    assert not out.exists()
    assert main([*arguments, "--workspace", str(documented / "ws")]) == 0
    done = json.loads(capsysbinary.readouterr()[0])
    assert (done["asked"], done["queries"], done["depth"]) == (3, 6, 200)
    assert asked == ["rule 0", "rule 1", "rule 2", "rule 3", "rule 3", "rule 4", "rule 5"]
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == [f"q{n}" for n in range(6)]
