"""More questions for a project: by a scripted model and from a log, marked, apart in the split and no evidence for it."""

import json
import re

import pytest
from werkzeug import Response

from rag_core.cli import main
from rag_core.errors import InputError
from rag_core.eval_sets.facts import made_counts, made_said
from rag_core.project.made import from_log, model_prompts
from rag_core.project.project import open_project
from rag_core.project.session import Session

NAMES = ("amber", "bronze", "copper", "dusk", "ember", "flint")
TEXT = "Whoever walks through the {} gate at night leaves a coin with the keeper, who writes the name down."


@pytest.fixture
def place(tmp_path, monkeypatch):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "gates.md").write_text("\n".join(f"## Toll of the {one} gate\n\n{TEXT.format(one)}\n" for one in NAMES))
    (tmp_path / "questions.csv").write_text(
        "id,query\nq1,What is left at the amber gate?\nq2,Who keeps the dusk gate?\nq3,When is the flint gate open?\n"
        "q4,Is there a toll at the ember gate?\n"
    )
    monkeypatch.setenv("WINNOW_WORKSPACE", str(tmp_path / "ws"))
    monkeypatch.setenv("OPENAI_MODEL", "scripted-questions")
    monkeypatch.chdir(tmp_path)
    main(["init", "gates", "--from", str(docs), "--questions", "questions.csv", "--json"])
    return tmp_path


@pytest.fixture
def said(place, capsysbinary):
    def run(*arguments, code=0):
        capsysbinary.readouterr()
        assert main([*map(str, arguments), "--json"]) == code
        out, err = capsysbinary.readouterr()
        return json.loads(out) if code == 0 else err.decode()

    return run


@pytest.fixture
def model(httpserver, monkeypatch):
    """A scripted model: of the copper gate a question that is there, of the flint gate no question, else a new one."""

    def answer(request):
        gate = re.search(r"ASKED Toll of the (\w+) gate", request.get_json()["messages"][1]["content"]).group(1)
        text = {"copper": "who keeps the DUSK gate?", "flint": "The flint gate."}
        question = text.get(gate, f"What does it cost to pass the {gate} gate after dark?")
        choice = {"message": {"content": json.dumps({"question": question})}, "finish_reason": "stop"}
        return Response(json.dumps({"choices": [choice], "model": "scripted"}), content_type="application/json")

    httpserver.expect_request("/v1/chat/completions").respond_with_handler(answer)
    monkeypatch.setenv("OPENAI_BASE_URL", httpserver.url_for("/v1"))
    return httpserver


def session(place):
    return Session(open_project("gates", place / "ws"))


def test_a_model_makes_questions_within_preview_and_budget_and_is_not_paid_twice(place, said, model):
    ask = ("questions", "make", "--from", "model", "--project", "gates")
    assert said(*ask, "--preview")["preview"]["calls"] == len(NAMES)
    assert len(model.log) == 0
    tried = said(*ask, "--dry-run")
    assert (tried["added"], len(tried["questions"])) == (0, 4)
    assert tried["reasons"] == {"it asks what another question asks": 1, "it is no question": 1}
    assert said(*ask)["added"] == 4
    assert said(*ask)["added"] == 0
    assert len(model.log) == len(NAMES)
    cases = session(place).cases
    assert made_counts(cases) == {"generated": 4, "from_log": 0}
    for case in cases:
        if case.query.made_from:
            ((chunk, grade),) = case.grades.items()
            gate = case.query.text.split()[-4]
            assert grade == 3
            assert gate in session(place).source.by_id[chunk].title
    assert "shipped" in said("questions", "make", "--from", "model", "--project", "demo", code=2)


def test_questions_of_near_duplicate_chunks_are_one_family_of_the_split(place, said, model):
    said("questions", "make", "--from", "model", "--project", "gates")
    opened = session(place)
    families = {opened.split.families[case.query.id] for case in opened.cases if case.query.made_from}
    assert len(families) == 1


def test_each_chunk_is_shown_beside_those_nearest_to_it(place):
    prompts = model_prompts(session(place), 2)
    assert [len(one.chunks) for one in prompts] == [4, 4]
    assert [len({chunk.id for chunk in one.chunks}) for one in prompts] == [4, 4]


def test_questions_by_a_model_judge_neither_rules_nor_models(place, said, model):
    said("questions", "make", "--from", "model", "--project", "gates")
    lines = (place / "ws" / "eval_sets" / "gates" / "queries.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    made = [{**row, "split": "test"} for row in rows if row.get("made_from")]
    (place / "ws" / "eval_sets" / "gates" / "queries.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in made))
    free = said("judge", "fixed-15", "unfiltered", "--project", "gates")
    assert (free["generated"], free["from_log"]) == (4, 0)
    for pipeline in ("query-must", json.dumps(["Dense", "LLMFilter"])):
        assert "neither rules nor models" in said("judge", pipeline, "fixed-15", "--project", "gates", code=2)


LOG = [
    "What is left at the amber gate?",  # the project has it
    "what is left at the AMBER gate",
    "Who writes down the names?",
    "who writes down the names",
    "Who writes the names down?",
    "Best recipe for lentil soup with cumin?",
    "Who guards copper?",
]


@pytest.fixture
def log(place):
    rows = [{"query": text, "retrieved": [{"id": "x", "text": "anything"}]} for text in LOG]
    (place / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return place / "log.jsonl"


def test_a_log_brings_its_questions_once_without_labels_the_unlike_ones_first(place, said, log):
    ask = ("questions", "make", "--from", "log", "--log", log, "--map", "query=query", "--map", "hits=retrieved")
    ask = (*ask, "--project", "gates")
    found = said(*ask, "--dry-run")
    texts = [one["query"] for one in found["questions"]]
    assert texts[0] == "Best recipe for lentil soup with cumin?"
    assert set(texts[1:]) == {"Who writes down the names?", "Who guards copper?"}
    assert (found["records"], found["different"], found["there"], found["near_the_same"]) == (7, 5, 1, 1)
    assert all(one["grades"] == {} for one in found["questions"])
    assert said(*ask, "-n", 1)["added"] == 1
    assert [one["query"] for one in said(*ask, "-n", 9)["questions"]] == texts[1:]  # the next ones
    cases = session(place).cases
    assert made_said(cases) == "3 from a log"
    assert {case.query.tags for case in cases if case.query.made_from} == {("from log",)}


def test_questions_that_name_other_numbers_are_others(place, log):
    rows = [{"query": f"What does gate {at} cost after dark?", "retrieved": [{"id": "x"}]} for at in (1, 2, 3)]
    content = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    found = from_log(session(place), content, "log.jsonl", 9, "auto", {"query": "query", "hits": "retrieved"})
    assert len(found.questions) == 3


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--from", "thin-air"), "expected one of slots, model, log"),
        (("--from", "log"), "--log and --from log go together"),
        (("--log", "log.jsonl"), "--log and --from log go together"),
    ],
)
def test_what_cannot_be_made_is_one_sentence(said, options, sentence):
    assert sentence in said("questions", "make", "--project", "gates", *options, code=2)


def test_lists_of_a_project_that_asks_no_collection_bring_no_chunks_to_ask_for(place):
    with pytest.raises(InputError, match="asks no collection"):
        model_prompts(Session(open_project("recorded-combat", place / "ws")), 3)
