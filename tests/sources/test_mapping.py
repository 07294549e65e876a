"""Logs of other tools become lists by a preset that is proposed, or by paths; what is not read is counted and said.

The LangSmith and OpenInference records have the form that langchain-core 1.7 (langsmith 0.15) and
openinference-instrumentation-langchain 0.1.80 wrote, the Ragas ones that of ragas 0.4.3; those of Langfuse (public API,
observations), Phoenix (spans as a table) and promptfoo (EvaluateResult, version 3 of its summary) are written after
their published schemas.
"""

import csv
import io
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.cli import main
from rag_core.errors import InputError
from rag_core.eval_sets.facts import chunk_texts
from rag_core.eval_sets.reading import EvalSet
from rag_core.project.intake import begin_project, take_lists
from rag_core.project.project import open_project
from rag_core.sources.mapping import likely_id, likely_paths, look_up, paths_of, presets, read_log
from rag_core.store.matching import FragmentIndex
from rag_core.types import Candidates, Case, Chunk, Hit, Query

QUESTIONS = [f"what is number {n}?" for n in range(6)]
TEXTS = ["wolves hunt in packs at dusk", "bears sleep through the winter", "owls see well in the dark"]
ROWS = [(f"c{n}", text, 1 / (n + 1)) for n, text in enumerate(TEXTS)]


def documents():
    return [
        {"id": one, "metadata": {"relevance_score": score}, "page_content": text, "type": "Document"}
        for one, text, score in ROWS
    ]


def langsmith(query):
    inner = {"name": "R", "run_type": "retriever", "inputs": {"query": query}, "outputs": {"documents": documents()}}
    outer = {"name": "chain", "run_type": "chain", "inputs": {"input": query}, "outputs": {"output": "x"}}
    return {**outer, "child_runs": [inner]}


def openinference(query):
    flat = {}
    for n, (_, text, score) in enumerate(ROWS):
        flat[f"retrieval.documents.{n}.document.content"] = text
        flat[f"retrieval.documents.{n}.document.metadata"] = json.dumps({"relevance_score": score})
    attributes = {"input.value": query, "openinference.span.kind": "RETRIEVER", **flat}
    return {"name": "R", "context": {"span_id": "0x1"}, "attributes": attributes}


def phoenix(query):
    hits = [{"document.content": text, "document.id": one, "document.score": score} for one, text, score in ROWS]
    start = {"name": "R", "span_kind": "RETRIEVER", "attributes.input.value": query}
    return {**start, "attributes.retrieval.documents": hits}


def langfuse(query):
    return {"id": "o", "traceId": "t", "type": "RETRIEVER", "input": query, "output": json.dumps(documents())}


def ragas(query):
    references = ["Bears SLEEP through the winter.", "nobody has ever said this here"]
    return {"user_input": query, "retrieved_contexts": TEXTS, "reference_contexts": references, "response": "r"}


def promptfoo(query):
    found = [{"id": one, "text": text, "score": score} for one, text, score in ROWS]
    answer = {"output": {"answer": "r", "documents": found}, "cached": False}
    case = {"vars": {"query": query}, "assert": [{"type": "context-recall", "value": "bears sleep"}]}
    return {"promptIdx": 0, "testIdx": 0, "testCase": case, "vars": case["vars"], "response": answer, "score": 1}


WRITERS = {
    "promptfoo": promptfoo,
    "langsmith": langsmith,
    "openinference": openinference,
    "phoenix": phoenix,
    "langfuse": langfuse,
    "ragas": ragas,
}


def as_jsonl(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.mark.parametrize("tool", WRITERS)
def test_the_right_preset_is_proposed_and_every_question_is_read(tool):
    reading = read_log(as_jsonl(map(WRITERS[tool], QUESTIONS)), "log.jsonl")
    assert reading.preset == tool
    assert [case.query.text for case in reading.cases] == QUESTIONS
    for case in reading.cases:
        assert [hit.chunk.text for hit in case.candidates.hits] == TEXTS
        assert [hit.scores["score"] for hit in case.candidates.hits] == [1, 1 / 2, 1 / 3]
    assert reading.read == len(reading.cases) + sum(reading.skipped.values())
    wrapped = read_log(json.dumps({"data": [WRITERS[tool](query) for query in QUESTIONS]}).encode(), "log.json")
    assert wrapped.cases == reading.cases


def test_an_evaluation_of_promptfoo_is_read_where_its_context_is_a_list_and_else_skipped():
    plain = {"vars": {"question": "who hunts?", "context": TEXTS}, "response": {"output": "wolves do"}}
    joined = {"vars": {"question": "who sleeps?", "context": "\n".join(TEXTS)}, "response": {"output": "bears do"}}
    summary = {"version": 3, "prompts": [{"raw": "x"}], "results": [plain, joined], "stats": {"successes": 2}}
    read = read_log(json.dumps({"evalId": "e", "results": summary, "config": {"tests": []}}).encode(), "results.json")
    assert (read.preset, read.read, read.unscored) == ("promptfoo", 2, 1)
    assert [hit.chunk.text for hit in read.cases[0].candidates.hits] == TEXTS
    assert [reason.partition(" at ")[0] for reason in read.skipped] == ["no hit"]


def test_a_table_with_lists_printed_by_python_is_read():
    out = io.StringIO()
    writer = csv.DictWriter(out, list(ragas("x")))
    writer.writeheader()
    writer.writerows(map(ragas, QUESTIONS))
    read = read_log(out.getvalue().encode(), "log.csv")
    assert read.cases == read_log(as_jsonl(map(ragas, QUESTIONS)), "l.jsonl").cases


def test_references_meet_their_chunks_and_those_that_do_not_are_counted_and_named():
    reading = read_log(as_jsonl(map(ragas, QUESTIONS)), "log.jsonl")
    assert (reading.met, reading.lost, reading.unscored) == (6, 6, 6)
    assert reading.examples[0] == "nobody has ever said this here"
    case = reading.cases[0]
    assert case.grades[case.candidates.hits[1].chunk.id] == 2
    assert len(case.grades) == 2  # the lost one counts against recall


@pytest.mark.parametrize("own", [True, False])
def test_a_text_that_one_list_lost_comes_from_another_and_what_was_missing_is_counted(tmp_path, own):
    first = [{"id": "a", "text": "wolves hunt", "score": 0.9}, {"id": "b", "text": None, "score": 0.8}]
    second = [{"id": "a", "text": None, "score": 0.7}]
    rows = [{"query": "who hunts?", "candidates": first}, {"query": "who else?", "candidates": second}]
    if not own:
        second.append({"id": "a", "text": "wolves hunt", "score": 0.6})
    paths = None if own else {"query": "query", "hits": "candidates"}
    content = as_jsonl(rows)
    reading = read_log(content, "log.jsonl", "winnow", paths)
    assert (reading.textless, reading.filled, reading.repeated) == (2, 1, 0 if own else 1)
    assert "2 hits had no text, 1 of them have it from another list" in reading.to_text()
    take_lists(begin_project(tmp_path, "mine"), content, "log.jsonl", "winnow", paths)
    for known in (open_project("mine", tmp_path).eval_set.cases, reading.cases):
        assert [[hit.chunk.text for hit in case.candidates.hits] for case in known] == [
            ["wolves hunt", ""], ["wolves hunt"]
        ]  # fmt: skip


def test_chunks_of_lists_have_the_text_of_the_list_that_has_it():
    bare, whole = (Case(Query(n, n), {}, Candidates(Query(n, n), (Hit(Chunk("a", text=n), 1),))) for n in ("", "text"))
    for cases in ((bare, whole), (whole, bare)):
        assert chunk_texts(EvalSet("mine", "Mine", cases)) == {"a": "text"}


def test_every_hit_may_bring_its_grade_and_a_path_into_one_hit_is_refused():
    got = [
        {"pid": one, "body": text, "grade": grade} for (one, text, _), grade in zip(ROWS, (3, "0", "x"), strict=True)
    ]
    rows = as_jsonl([{"asked": "who?", "got": got}, {"asked": "and who?", "got": [{"pid": "c0", "body": "wolves"}]}])
    paths = {"query": "asked", "hits": "got", "id": "pid", "text": "body", "relevant": "grade"}
    reading = read_log(rows, "own.jsonl", paths=paths)
    assert [case.grades for case in reading.cases] == [{"c0": 3, "c1": 0}, {}]
    assert (reading.met, reading.lost) == (2, 1)
    with pytest.raises(InputError, match=r"got.0.grade, which leads into one hit alone"):
        read_log(rows, "own.jsonl", paths=paths | {"relevant": "got.0.grade"})
    inner = paths_of(rows, "own.jsonl")[1]["got"]
    assert likely_paths(("id", "relevant"), inner) == {"id": "pid", "relevant": "grade"}


def test_an_id_is_known_by_its_shape_and_what_its_lack_loses_is_said_in_front():
    hits = [{"body": None, "nr": "x1", "s": "0.5"}, {"body": "wolves", "nr": "x2", "s": "0.4"}]
    log = as_jsonl([{"query": query, "got": hits if n < 2 else hits[1:] * 2} for n, query in enumerate(QUESTIONS)])
    assert likely_id(as_jsonl([{"got": hits}]), "own.jsonl", "got", ["body", "s", "nr"]) == "nr"
    assert likely_id(log, "own.jsonl", "got", ["body", "s", "nr"]) == ""
    paths = {"query": "query", "hits": "got", "text": "body"}
    lost = read_log(log, "own.jsonl", paths=paths)
    assert lost.to_text().startswith("warning: 2 of 6 records are left out: say where id stands")
    assert read_log(log, "own.jsonl", paths=paths | {"id": "nr"}).warning == ""


def test_what_is_no_list_is_skipped_with_its_reason():
    rows = [openinference(QUESTIONS[0]), {**openinference("x"), "attributes": {"openinference.span.kind": "LLM"}}]
    reading = read_log(as_jsonl(rows), "spans.jsonl")
    assert dict(reading.skipped) == {"attributes.openinference.span.kind is not RETRIEVER": 1}
    with pytest.raises(InputError, match="expected --map"):
        read_log(as_jsonl([{"question": "q", "answer": "a"}]), "x.jsonl")


@pytest.mark.parametrize(("key", "path"), [("text", "boddy"), ("query", "qestion")])
def test_a_path_at_which_nothing_stands_is_refused_with_what_there_is(key, path):
    rows = [{"asked": "q", "got": [{"key": "a", "body": "b", "score": 1.0}]}]
    paths = {"query": "asked", "hits": "got", "id": "key", "text": "body", key: path}
    with pytest.raises(InputError, match=f"nothing at {path} for {key}, expected a path that leads to it from "):
        read_log(as_jsonl(rows), "own.jsonl", paths=paths)


def test_paths_stand_above_the_preset():
    got = [{"key": one, "body": text, "dist": score} for one, text, score in reversed(ROWS)]
    rows = [{"turn": {"asked": query}, "got": got} for query in QUESTIONS]
    paths = {"query": "turn.asked", "hits": "got", "id": "key", "text": "body", "distance": "dist"}
    reading = read_log(as_jsonl(rows), "own.jsonl", paths=paths)
    assert [hit.scores["distance"] for hit in reading.cases[0].candidates.hits] == [1 / 3, 1 / 2, 1]


def test_the_paths_of_a_log_that_nobody_knows_are_found_and_the_usual_ones_proposed():
    got = [{"key": one, "meta": {"content": text}, "dist": score} for one, text, score in ROWS]
    log = as_jsonl([{"turn": {"question": query}, "got": got, "gold": ["a"]} for query in QUESTIONS])
    plain, lists = paths_of(log, "own.jsonl")
    assert (plain, lists) == (["turn.question"], {"got": ["key", "meta.content", "dist"], "gold": []})
    assert likely_paths(("query", "query_id"), plain) == {"query": "turn.question"}
    assert likely_paths(("hits", "relevant"), list(lists)) == {"relevant": "gold"}
    assert likely_paths(("id", "text", "distance"), lists["got"]) == {
        "id": "key",
        "text": "meta.content",
        "distance": "dist",
    }
    paths = {"query": "turn.question", "hits": "got", "id": "key", "text": "meta.content", "distance": "dist"}
    assert len(read_log(log, "own.jsonl", paths=paths).cases) == len(QUESTIONS)


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["query", "input", "a.0.b", "hits", "candidates", "output"]), inner, max_size=3
        )
    ),
    max_leaves=12,
)
some_paths = st.sampled_from([path for one in presets().values() for path in one.values() if isinstance(path, str)])


@given(json_values, some_paths)
def test_any_value_may_stand_at_a_path(value, path):
    look_up(value, path)
    try:
        said = str(read_log(json.dumps([value]).encode(), "x.json").records)
    except InputError as error:
        said = str(error)
    assert said
    assert "\n" not in said  # a number of records, or one sentence


def test_the_command_says_what_was_read_and_makes_a_project(tmp_path, capsysbinary):
    path = tmp_path / "log.jsonl"
    path.write_bytes(as_jsonl(map(ragas, QUESTIONS)))
    place = ["--workspace", str(tmp_path / "ws"), "--json"]
    assert main(["import", str(path), "--dry-run", *place]) == 0
    said = json.loads(capsysbinary.readouterr().out)
    assert (said["preset"], said["lists"], said["met"], said["lost"]) == ("ragas", 6, 6, 6)
    assert not (tmp_path / "ws" / "eval_sets").exists()
    assert main(["import", str(path), "--as", "support", *place]) == 0
    capsysbinary.readouterr()
    assert main(["evaluate", "--project", "support", "-p", '[{"TopK": {"k": 2}}]', *place]) == 0
    assert json.loads(capsysbinary.readouterr().out)["pipelines"][0]["means"]["SetR"] == 0.5


def test_pieces_of_chunks_meet_them_and_strangers_do_not():
    dice = random.Random(5)
    vocabulary = [f"{a}{b}" for a in "bcdfghjklmnp" for b in ("ab", "el", "ir", "on", "ut", "ax", "ez", "ip", "od")]
    chunks = {f"c{n}": " ".join(dice.choices(vocabulary, k=120)) for n in range(200)}
    index = FragmentIndex(chunks)
    for name, text in chunks.items():
        start = dice.randrange(90)
        assert list(index.meet(" ".join(text.split()[start : start + 25]).upper() + ".")) == [name]
        assert index.meet(" ".join(dice.choices(vocabulary, k=25))) == {}
