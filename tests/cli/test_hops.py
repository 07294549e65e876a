"""Hybrid search, rewriting and hops on the command line."""

import json

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from benchmarks.parts.hop_judge import SimulatedHopJudge, labelled_titles
from pages.bench import sight
from rag_core.cli import main
from rag_core.eval_sets.reading import load_set
from rag_core.llm import accepted
from rag_core.project.project import open_project
from rag_core.project.session import Session
from rag_core.spec import parse_pipeline
from rag_core.workbench import bring_up_to_date

HOPS = '["Hybrid", {"TopK": {"k": 10}}, {"MultiHop": {"max_hops": 2}}]'


@pytest.fixture(autouse=True)
def no_endpoint(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workspace")
    bring_up_to_date(load_set("skirmish-rules"), folder)
    return folder


@pytest.fixture
def run(workspace, capsysbinary):
    def called(*arguments, code=0):
        assert main([*arguments, "--workspace", str(workspace), "--json"]) == code
        out, err = capsysbinary.readouterr()
        return (json.loads(out) if out else None), err.decode()

    return called


def test_two_hop_questions_find_their_second_rule_where_the_judge_is_right(workspace):
    session = Session(open_project("skirmish-rules", workspace))
    cases = [case for case in session.cases if "two-hop" in case.query.tags]
    session.hop_judge = SimulatedHopJudge(labelled_titles(cases, session.source.chunks, session.min_grade))
    hopped, plain = (session.pipeline(spec) for spec in (HOPS, HOPS.replace("2}", "0}")))
    runs = [[session.run(pipeline, case) for case in cases] for pipeline in (hopped, plain)]
    after, before = (sum(one.scores.values["SetR"] for one in outcomes) for outcomes in runs)
    assert after > before
    found = [sum(one.case.grades.get(hit.chunk.id) == 3 for hit in one.result.hits) for one in runs[0]]
    assert found == [len(case.query.metadata["needs"]) for case in cases]
    step = runs[0][0].result.steps[-1]
    assert step.facts["hops"][0].keys() >= {"query", "hop", "can_answer", "reasoning", "missing_query", "ms", "tokens"}
    assert any(hit.origin == "hop 1" for hit in runs[0][0].result.hits)


def test_without_an_endpoint_the_first_retrieval_stands_and_that_is_counted(run):
    document, _ = run("query", "Can I heal my operative?", "--collection", "skirmish-rules", "-p", HOPS)
    (query,) = document["pipelines"][0]["queries"]
    assert len(query["kept"]) == 10
    assert "no model endpoint is set" in query["fallbacks"][0]["reason"]
    assert query["kept"][0]["ranks"].keys() <= {"dense", "lexical"}
    assert query["kept"][0].keys() >= {"distance", "bm25", "rrf"}


def test_max_hops_is_set_where_the_stage_is_and_else_adds_it_at_the_end(run):
    text = ("query", "heal", "--collection", "skirmish-rules")
    document, _ = run(*text, "-p", HOPS, "--max-hops", "0")
    assert document["pipelines"][0]["queries"][0]["fallbacks"] == []
    document, _ = run(*text, "-p", "fixed-15", "--max-hops", "2")
    *_, last = document["pipelines"][0]["spec"]
    assert last["MultiHop"]["max_hops"] == 2


@pytest.fixture
def endpoint(monkeypatch):
    """A model that misses the rule about cover until it is shown."""

    def respond(request):
        shown = request.get_json()["messages"][-1]["content"]
        there = "Cover\n" in shown
        said = {"can_answer": there, "reasoning": "as far as it goes", "missing_query": "" if there else "Cover"}
        choices = [{"finish_reason": "stop", "message": {"content": json.dumps(said)}}]
        return Response(json.dumps({"choices": choices}), content_type="application/json")

    accepted.forget()
    with HTTPServer(threaded=True) as server:
        server.expect_request("/v1/chat/completions").respond_with_handler(respond)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url_for("/v1"))
        monkeypatch.setenv("OPENAI_MODEL", "scripted")
        yield


def test_query_trace_and_bench_say_which_hop_brought_a_chunk(run, workspace, endpoint, capsysbinary):
    asked = ("query", "Can I heal my operative?", "--collection", "skirmish-rules", "-p", "fixed-15", "--max-hops", "2")
    document, _ = run(*asked)
    (query,) = document["pipelines"][0]["queries"]
    hopped = [hit["title"] for hit in query["kept"] if hit.get("origin") == "hop 1"]
    assert "Cover" in hopped
    assert main([*asked, "--workspace", str(workspace)]) == 0
    listed = [line for line in capsysbinary.readouterr().out.decode().splitlines() if line.endswith("(hop 1)")]
    assert len(listed) == len(hopped)
    _, trace = run(*asked, "--debug")
    assert len([line for line in trace.splitlines() if line.startswith("  kept ") and line.endswith("(hop 1)")]) == len(hopped)  # fmt: skip
    session = Session(open_project("skirmish-rules", workspace))
    pipeline = parse_pipeline(["Hybrid", {"TopK": {"k": 3}}, {"MultiHop": {"max_hops": 1}}])
    looked = sight.look(session, {"A": pipeline}, "?Can I heal my operative?")
    reasons = {entry.hit.chunk.title: entry.side("distance").reason for entry in sight.listed(looked.outcomes["A"]).values()}  # fmt: skip
    assert reasons["Cover"] == "hop 1"
    session.close()
