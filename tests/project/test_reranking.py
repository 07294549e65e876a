"""What a reranker gains at which depth, on the command line: a scripted server, asked once."""

import json

import pytest

from rag_core.cli import main
from rag_core.project.levers import RERANK, crossed_levers
from rag_core.project.project import open_project
from rag_core.project.reranking import gains_of
from rag_core.project.session import Session
from rag_core.stage import Pipeline
from tests.scripted_reranker import scripted_reranker

QUESTIONS = 12
COLOURS = ("red", "blue", "green")


@pytest.fixture
def project(tmp_path):
    """Recorded lists of 30 by distance; the one chunk that shares every word with its question stands at place 20."""
    folder = tmp_path / "eval_sets" / "mine"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: mine\n")
    lines = []
    for number in range(QUESTIONS):
        question = f"tower {number} of the {COLOURS[number % 3]} river"
        texts = [f"nothing {number} at place {place}" for place in range(30)]
        texts[19] = f"here is {question}"
        hits = [
            {"id": f"{number}-{at}", "text": text, "distance": at / 100, "relevant": int(at == 19)}
            for at, text in enumerate(texts)
        ]
        lines.append({"id": f"q{number}", "query": question, "metric": "cosine", "split": "dev", "candidates": hits})
    (folder / "lists.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


@pytest.fixture
def said(capsysbinary, project):
    def run(*arguments, code=0):
        capsysbinary.readouterr()
        assert main([*map(str, arguments), "--workspace", str(project), "--json"]) == code
        out, err = capsysbinary.readouterr()
        return json.loads(out) if code == 0 else err.decode()

    return run


def rows_of(found):
    return {row["depth"]: row for row in found["rows"]}


def test_scores_are_asked_for_once_and_the_depth_that_reaches_the_answer_pays(project, said):
    with scripted_reranker() as server:
        entry = {"name": "scripted", "base_url": server.url_for("/v1"), "model": "words"}
        (project / "endpoints.yaml").write_text(json.dumps([entry]))
        command = ("rerank", "--project", "mine", "--endpoint", "scripted")
        assert said(*command, "--preview")["preview"]["calls"] == QUESTIONS
        assert server.asked == []
        some = said(*command, "--max-calls", 5)
        assert (some["run"]["asked"], len(server.asked)) == (5, 5)
        assert rows_of(some)[25]["lacking"] == QUESTIONS - 5
        whole = said(*command)
        assert (whole["run"]["asked"], len(server.asked)) == (QUESTIONS - 5, QUESTIONS)
        again = said(*command)
        assert (again["run"]["asked"], len(server.asked)) == (0, QUESTIONS)
    rows = rows_of(again)
    assert [rows[depth]["SetF"] for depth in (10, 25, 50)] == [0.0, 1.0, 1.0]
    assert [rows[depth]["ndcg"] for depth in (0, 10, 25)] == [0.0, 0.0, 1.0]
    assert rows[0]["SetF"] == pytest.approx(2 / 21)  # the best fixed k is 20
    found = {
        lever.name: lever.gain for lever in crossed_levers(Session(open_project("mine", project)), Pipeline()).levers
    }
    assert found[RERANK] == pytest.approx(1 - 2 / 21)
    spec = [{"Rerank": {"endpoint": "scripted", "depth": 25}}, {"TopK": {"k": 1}}]
    figures = said("evaluate", "--project", "mine", "-p", json.dumps(spec))["pipelines"][0]
    assert figures["means"]["SetF"] == 1.0


def test_what_was_never_asked_falls_back_and_an_unknown_endpoint_is_refused(project, said):
    (project / "endpoints.yaml").write_text(
        json.dumps([{"name": "scripted", "base_url": "http://127.0.0.1:9/v1", "model": "words"}])
    )
    spec = json.dumps([{"Rerank": {"endpoint": "scripted"}}, {"TopK": {"k": 1}}])
    report = said("evaluate", "--project", "mine", "-p", spec)["pipelines"][0]
    assert report["queries"][0]["kept"][0]["id"] == "0-0"
    assert len(report["queries"][0]["fallbacks"]) == 1
    other = json.dumps([{"Rerank": {"endpoint": "elsewhere"}}])
    assert "there is no endpoint 'elsewhere'" in said("evaluate", "--project", "mine", "-p", other, code=2)


def test_scores_that_the_lists_carry_need_no_endpoint(project):
    path = project / "eval_sets" / "mine" / "lists.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        for hit in line["candidates"]:
            hit["scores"] = {"rerank": 1.0 - hit["relevant"] * 0.5, "jina": float(hit["relevant"])}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    session = Session(open_project("mine", project))
    assert gains_of(session, Pipeline(), recorded="jina").best.SetF == 1.0
    assert gains_of(session, Pipeline()).gain < 0  # a score that is wrong
