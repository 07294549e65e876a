"""`labels judge` and `judge-agreement`: asking, resuming, what is kept, and when a model's labels may count."""

import json
import re
from collections import Counter

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from rag_core.cli import main
from rag_core.errors import InputError
from rag_core.eval_sets.reading import load_set
from rag_core.project.labels import with_judge_labels
from rag_core.store.database import open_store
from rag_core.store.labels import LabelStore


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "workspace" / "eval_sets" / "mine"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: mine\n")
    rows = []
    for q in range(20):
        hits = [
            {"id": f"c{q}-{n}", "distance": n / 10, "text": f"text {q} {n}", "relevant": (q + n) % 4 if n < 6 else None}
            for n in range(10)
        ]
        rows.append(json.dumps({"id": f"q{q}", "query": f"topic{q} matter{q}?", "candidates": hits}))
    (folder / "lists.jsonl").write_text("\n".join(rows))
    return tmp_path / "workspace"


@pytest.fixture
def grader(workspace, monkeypatch):
    """A server that grades as the labels do, 0 without one; `wrong`: on which (question, chunk, time asked) it errs."""
    with HTTPServer(threaded=True) as server:
        server.wrong, times = (lambda q, n, time: False), Counter()

        def handler(request):
            q, n = map(int, re.findall(r"text (\d+) (\d+)", request.get_json()["messages"][-1]["content"])[-1])
            times[q, n] += 1
            grade = (q + n) % 4 if n < 6 else 0
            said = {"reason": "as labelled", "grade": (grade + 2) % 4 if server.wrong(q, n, times[q, n]) else grade}
            body = {"choices": [{"finish_reason": "stop", "message": {"content": json.dumps(said)}}]}
            return Response(json.dumps(body), content_type="application/json")

        server.expect_request("/v1/chat/completions").respond_with_handler(handler)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url_for("/v1"))
        monkeypatch.setenv("OPENAI_MODEL", "small")
        yield server


@pytest.fixture
def run(capfdbinary, workspace):
    def run(*arguments):
        code = main(["labels", *map(str, arguments), "--eval-set", "mine", "--workspace", str(workspace)])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


def document(answer):
    code, out, err = answer
    assert code == 0, err
    return json.loads(out)


def test_a_preview_asks_and_stores_nothing(run, workspace, grader):
    found = document(run("judge", "--preview", "--json"))
    assert (found["pairs"], found["preview"]["calls"]) == (200, 200)
    assert not grader.log
    assert not (workspace / "winnow.db").exists()


def test_labels_are_stored_under_a_models_name_and_do_not_count(run, workspace, grader):
    found = document(run("judge", "--only", "labelled", "--json"))
    assert (found["pairs"], found["written"]) == (120, 120)
    assert found["annotator"] == "model:small"
    with open_store(workspace) as store:
        assert LabelStore(store).labels("mine") == []
        assert len(LabelStore(store).labels("mine", found["annotator"])) == 120
    assert document(run("judge", "--only", "labelled", "--json"))["written"] == 0


def test_open_pairs_are_those_without_a_persons_label(run, grader):
    assert document(run("judge", "--only", "open", "--preview", "--json"))["pairs"] == 80


def test_a_limit_stops_the_run_and_what_was_answered_is_kept(run, grader):
    found = document(run("judge", "--max-calls", "30", "--json"))
    assert "30 calls" in found["run"]["stopped"]
    assert found["written"] == 30
    assert found["without_grade"] == {"was not asked": 170}


def test_agreement_names_kappa_interval_confusion_and_flips(run, grader):
    grader.wrong = lambda q, n, time: (7 * q + n) % 10 == 0 or (q + n) % 5 == time
    run("judge", "--repeats", "3", "--only", "labelled")
    (found,) = document(run("judge-agreement", "--json"))["judges"]
    assert (found["items"], found["queries"], found["runs"]) == (120, 20, 3)
    assert found["low"] < found["kappa"] < found["high"]
    assert 0.2 < found["flip_rate"] < 0.7
    assert sum(map(sum, found["confusion"])) == 120
    code, words, _ = run("judge-agreement")
    assert code == 0
    assert "agrees with people by kappa" in words
    assert "flip over 3 runs" in words


def test_a_good_judge_may_count_and_figures_say_so(run, workspace, grader):
    run("judge")
    judge = "model:small"
    cases = list(load_set("mine", workspace).cases)
    laid, notice = with_judge_labels("mine", cases, judge, workspace, 1)
    assert notice.startswith("80 labels of these figures are a model's: model:small")
    for before, after in zip(cases, laid, strict=True):
        assert before.grades.items() <= after.grades.items()
        assert len(after.grades) == 10


def test_a_bad_judge_may_not(run, workspace, grader):
    grader.wrong = lambda q, n, time: (q + 3 * n) % 5 < 2
    run("judge")
    with pytest.raises(InputError, match=r"does not pass the bar of 0\.6"):
        with_judge_labels("mine", list(load_set("mine", workspace).cases), "model:small", workspace, 1)


def test_evaluate_says_when_a_models_labels_are_among_the_figures(run, workspace, capfdbinary, grader):
    run("judge")
    judge = "model:small"
    usual = ["evaluate", "--eval-set", "mine", "-p", "unfiltered", "--workspace", str(workspace)]
    assert main([*usual, "--json"]) == 0
    plain = json.loads(capfdbinary.readouterr().out)
    assert main([*usual, "--judge-labels", judge, "--json"]) == 0
    laid = json.loads(capfdbinary.readouterr().out)
    assert "notices" not in plain
    assert laid["notices"][0].startswith("80 labels of these figures are a model's")
    assert (plain["pipelines"][0]["means"]["judged"], laid["pipelines"][0]["means"]["judged"]) == (0.6, 1.0)
    assert main([*usual, "--judge-labels", judge]) == 0
    assert capfdbinary.readouterr().out.decode().startswith("note: 80 labels of these figures are a model's")


def test_without_an_endpoint_the_sentence_says_what_to_set(run):
    code, out, err = run("judge")
    assert (code, out) == (3, "")
    assert "OPENAI_BASE_URL" in err


def test_an_unknown_judge_is_one_sentence(run, grader):
    run("judge", "-n", "1")
    code, _, err = run("judge-agreement", "--judge", "model:nobody")
    assert code == 2
    assert "expected one of: model:small" in err


@pytest.fixture
def endpoint(workspace, monkeypatch):
    """A server that grades every passage 2, and answers nonsense for the chunks whose text ends in 9."""
    with HTTPServer(threaded=True) as server:

        def handler(request):
            asked = request.get_json()["messages"][-1]["content"]
            nonsense = any(line.startswith("| text") and line.endswith(" 9") for line in asked.split("\n"))
            text = "I would keep it" if nonsense else '{"reason": "part of it", "grade": 2}'
            usage = {"prompt_tokens": 100, "completion_tokens": 10}
            body = {"choices": [{"finish_reason": "stop", "message": {"content": text}}], "usage": usage}
            return Response(json.dumps(body), content_type="application/json")

        server.expect_request("/v1/chat/completions").respond_with_handler(handler)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url_for("/v1"))
        monkeypatch.setenv("OPENAI_MODEL", "small")
        monkeypatch.setenv("WINNOW_PRICE_IN", "1000")
        monkeypatch.setenv("WINNOW_PRICE_OUT", "1000")
        yield server


def test_an_endpoint_is_asked_within_the_budget_and_goes_on_where_it_stopped(run, workspace, endpoint):
    ahead = document(run("judge", "-n", "2", "--preview", "--json"))["preview"]
    budget = ahead["most"] / 20 + 1  # the largest price of a call, and about nine of 0.11
    first = document(run("judge", "-n", "2", "--budget", budget, "--json"))
    assert first["run"]["spent"] <= budget
    assert "budget" in first["run"]["stopped"]
    stopped_at = len(endpoint.log)
    assert 0 < stopped_at < 20
    assert first["written"] == first["grades"]["2"] <= stopped_at
    second = document(run("judge", "-n", "2", "--json"))
    assert len(endpoint.log) == 20
    assert second["preview"]["stored"] == stopped_at
    assert second["grades"] == {"0": 0, "1": 0, "2": 18, "3": 0}
    assert second["without_grade"] == {"the answer holds no grade of 0 to 3": 2}
    assert second["annotator"] == "model:small"
    with open_store(workspace) as store:
        assert len(LabelStore(store).labels("mine", "model:small")) == 18
    assert document(run("judge", "-n", "2", "--json"))["preview"]["calls"] == 0
