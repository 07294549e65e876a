"""`llm-filter` on the command line: connection, comparison, simulated judges."""

import json

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from rag_core.cli import main
from rag_core.llm import accepted

CHAT = "/v1/chat/completions"
LABELS = {"a": 1, "b": 0, "c": 1, "d": 0, "e": 0, "f": None}


@pytest.fixture(autouse=True)
def environment(tmp_path, monkeypatch):
    accepted.forget()
    monkeypatch.setenv("WINNOW_WORKSPACE", str(tmp_path / "workspace"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "WINNOW_PRICE_IN", "WINNOW_PRICE_OUT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def lists(tmp_path):
    rows = []
    for number in range(4):
        candidates = [
            {"id": f"q{number}{name}", "title": name, "text": f"Text {name}", "distance": 0.1 * at, "relevant": grade}
            for at, (name, grade) in enumerate(LABELS.items(), 1)
        ]
        rows.append(json.dumps({"id": f"q{number}", "query": f"question {number}", "candidates": candidates}))
    path = tmp_path / "lists.jsonl"
    path.write_text("\n".join(rows))
    return str(path)


@pytest.fixture
def asked(capsysbinary):
    def run(*arguments, code=0):
        assert main(["llm-filter", *arguments, "--json"]) == code
        return json.loads(capsysbinary.readouterr().out)

    return run


@pytest.fixture
def refused(capsys):
    def run(*arguments):
        code = main(["llm-filter", *arguments])
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        return code, err

    return run


@pytest.fixture
def endpoint(monkeypatch):
    """A server that keeps the first candidate of every prompt."""
    with HTTPServer(threaded=True) as server:

        def handler(request):
            count = request.get_json()["messages"][-1]["content"].count(" end of ")
            text = "\n".join(f"{number} -> {'KEEP' if number == 1 else 'DISCARD'}" for number in range(1, count + 1))
            usage = {"prompt_tokens": 100, "completion_tokens": 10}
            body = {"choices": [{"finish_reason": "stop", "message": {"content": text or "yes"}}], "usage": usage}
            return Response(json.dumps(body), content_type="application/json")

        server.expect_request(CHAT).respond_with_handler(handler)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url_for("/v1"))
        monkeypatch.setenv("OPENAI_MODEL", "small")
        yield server


def test_without_an_endpoint_the_connection_says_what_to_set(refused):
    code, message = refused("test-connection")
    assert code == 3
    assert "set OPENAI_API_KEY" in message


def test_a_working_connection_is_shown(asked, endpoint):
    found = asked("test-connection")
    assert (found["model"], found["prompt_tokens"]) == ("small", 100)


def test_a_perfect_simulated_judge_keeps_the_relevant_and_says_that_it_is_simulated(asked, lists):
    document = asked("variants", "--lists", lists, "--simulated", "0", "--variant", "terse", "--set", "max_chunks=6")
    assert document["judge"].startswith("simulated judge")
    assert document["baseline"]["name"] == "rerank off"
    (row,) = document["variants"]
    assert (row["SetP"], row["SetR"], row["SetF"]) == (1.0, 1.0, 1.0)
    assert document["baseline"]["SetP"] == pytest.approx(2 / 6)
    assert (row["irrelevant_removed"], row["agreement"], row["kappa"]) == (1.0, 1.0, 1.0)
    assert (row["false_drops"], row["fallback_rate"], row["cost"]) == (0, 0.0, None)
    assert row["actions"]["KEEP"] == {"count": 8, "relevant": 1.0, "of_relevant": 1.0}
    assert document["comparison"][0]["delta"] > 0


def test_a_judge_that_is_always_wrong_is_shown_with_what_it_threw_away(asked, lists):
    document = asked("variants", "--lists", lists, "--simulated", "1", "--variant", "terse")
    (row,) = document["variants"]
    assert (row["SetF"], row["agreement"], row["false_drops"]) == (0.0, 0.0, 8)
    dropped = row["false_drops_listed"][0]
    assert (dropped["query"], dropped["id"], dropped["text"], dropped["grade"]) == ("q0", "q0a", "Text a", 1)


def test_the_table_gives_long_names_whole_in_even_columns_and_tests_each_against_no_model(capsys, lists):
    assert main(["llm-filter", "variants", "--lists", lists, "--simulated", "0", "--variant", "terse"]) == 0
    _, heading, baseline, variant, difference = capsys.readouterr().out.splitlines()
    assert variant.startswith("  terse · simulated judge, error rate 0, seed 0  1.000")
    assert len(heading) == len(baseline) == len(variant)
    assert difference.startswith("terse · simulated judge, error rate 0, seed 0 − rerank off: SetF +0.")


def test_a_preview_asks_nothing(asked, lists, endpoint):
    document = asked("variants", "--lists", lists, "--variant", "terse", "--preview")
    assert document["preview"]["calls"] == 4
    assert "variants" not in document
    assert not endpoint.log


def test_an_endpoint_is_asked_once_and_a_second_comparison_costs_nothing(asked, lists, endpoint, monkeypatch):
    monkeypatch.setenv("WINNOW_PRICE_IN", "1000")
    monkeypatch.setenv("WINNOW_PRICE_OUT", "1000")
    arguments = ("variants", "--lists", lists, "--variant", "terse", "--variant", "lines")
    first = asked(*arguments)
    assert len(endpoint.log) == 8
    assert first["run"]["spent"] == pytest.approx(8 * 0.11)
    assert first["variants"][0]["cost"] == pytest.approx(4 * 0.11)
    again = asked(*arguments)
    assert len(endpoint.log) == 8
    assert again["preview"]["calls"] == 0
    assert again["variants"] == first["variants"]


def test_stored_answers_are_forgotten_on_request_and_asked_again(asked, lists, endpoint, capsysbinary):
    arguments = ("variants", "--lists", lists, "--variant", "terse")
    asked(*arguments)
    for options, forgotten, stored in (((), 0, 4), (("--answers",), 4, 0)):
        assert main(["cache", "clear", *options, "--json"]) == 0
        assert json.loads(capsysbinary.readouterr().out)["answers"] == forgotten
        assert asked(*arguments, "--preview")["preview"]["stored"] == stored


def test_a_budget_stops_the_run_and_what_was_not_asked_is_a_fallback(asked, lists, endpoint):
    document = asked("variants", "--lists", lists, "--variant", "terse", "--max-calls", "1")
    assert len(endpoint.log) == 1
    assert "limit of 1 calls" in document["run"]["stopped"]
    assert document["variants"][0]["fallback_rate"] == 0.75


def test_a_budget_without_prices_is_refused(refused, lists, endpoint):
    code, message = refused("variants", "--lists", lists, "--variant", "terse", "--budget", "1")
    assert code == 2
    assert "price is not known" in message


def test_simulated_judges_show_where_they_stop_being_better(asked, lists):
    document = asked(
        "simulate", "--lists", lists, "--seeds", "2", "--error-rate", "0", "--error-rate", "1",
        "--price-in", "1", "--price-out", "1", "-p", '[{"TopK": {"k": 3}}]',
    )  # fmt: skip
    assert [row["f1"] for row in document["rows"]] == [1.0, 1.0, 0.0, 0.0]
    assert document["best_free"] == "TopK(3)"
    assert document["free"][1]["SetF"] == pytest.approx(0.8)
    assert document["break_even_error_rate"] == pytest.approx(0.2)  # on the line from 1 at rate 0 to 0 at rate 1
    # one that drops falls nearly on that line, by rates between; one that keeps falls to the whole list alone
    assert document["break_even_by"]["dropping"] == pytest.approx(0.2, abs=0.05)
    assert document["break_even_by"]["keeping"] is None or document["break_even_by"]["keeping"] > 0.2
    assert document["rows"][0]["cost"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("variants",), "nothing to work on is named"),
        (("variants", "--lists", "nowhere.jsonl", "--simulated", "0.1"), "not there"),
        (("variants", "--lists", "LISTS", "--simulated", "2"), "error rate is 2"),
        (("variants", "--lists", "LISTS", "--simulated", "0", "--variant", "nope"), "expected one of lines"),
        (("variants", "--lists", "LISTS", "--simulated", "0", "--set", "max_chunks"), "expected name=value"),
        (("variants", "--lists", "LISTS", "--simulated", "0", "--set", "depth=3"), "unknown setting 'depth'"),
        (("simulate", "--lists", "LISTS", "--price-in", "1"), "expected both"),
    ],
)
def test_wrong_usage_is_one_sentence(refused, lists, arguments, message):
    code, said = refused(*(lists if word == "LISTS" else word for word in arguments))
    assert code == 2
    assert message in said


def test_without_endpoint_and_without_a_simulated_judge_a_comparison_says_what_to_do(refused, lists):
    code, message = refused("variants", "--lists", lists, "--variant", "terse")
    assert code == 3
    assert "--simulated" in message


def test_replay_with_the_llm_filter_uses_the_environments_endpoint(capsysbinary, lists, endpoint):
    assert main(["replay", lists, "--pipeline", '["LLMFilter"]', "--json"]) == 0
    (pipeline,) = json.loads(capsysbinary.readouterr().out)["pipelines"]
    assert [hit["id"] for hit in pipeline["queries"][0]["kept"]] == ["q0a"]
    assert pipeline["means"]["queries_fallback"] == 0
    assert len(endpoint.log) == 4  # the report of what would have kept a chunk asked nothing more


def test_replay_without_an_endpoint_falls_back_and_counts_it(capsysbinary, lists):
    assert main(["replay", lists, "--pipeline", '["LLMFilter"]', "--json"]) == 0
    (pipeline,) = json.loads(capsysbinary.readouterr().out)["pipelines"]
    assert pipeline["means"]["queries_fallback"] == 4
    assert "no model endpoint is set" in pipeline["queries"][0]["fallbacks"][0]["reason"]
    assert len(pipeline["queries"][0]["kept"]) == 6


def test_a_variable_out_of_range_is_named_at_the_start_of_any_command(capsys, monkeypatch):
    monkeypatch.setenv("CHUNK_FILTERING_LLM_TIMEOUT_MS", "0")
    assert main(["stages"]) == 2
    assert "CHUNK_FILTERING_LLM_TIMEOUT_MS is '0', expected" in capsys.readouterr().err


@pytest.fixture
def project(tmp_path):
    """A project of its own: 30 labelled questions of six candidates each, two of them relevant."""
    folder = tmp_path / "workspace" / "eval_sets" / "own"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: own\ntitle: Own\n")
    rows = []
    for number in range(30):
        candidates = [
            {"id": f"q{number}{name}", "title": name, "text": f"Text {name}", "distance": 0.1 * at, "relevant": grade}
            for at, (name, grade) in enumerate(LABELS.items(), 1)
        ]
        query = f"word{number} thing{number}"
        rows.append(json.dumps({"id": f"q{number}", "query": query, "metric": "cosine", "candidates": candidates}))
    (folder / "lists.jsonl").write_text("\n".join(rows))
    return "own"


def test_a_study_says_what_a_model_removes_loses_and_costs_and_is_replayed_from_what_is_stored(
    asked, project, endpoint, tmp_path, monkeypatch, capsysbinary
):
    monkeypatch.setenv("WINNOW_PRICE_IN", "1000")
    monkeypatch.setenv("WINNOW_PRICE_OUT", "1000")
    arguments = ("study", "--project", project, "--model", "small", "--runs", "2", "--set", "timeout_ms=60000")
    assert main(["llm-filter", *arguments, "--replay"]) == 2
    assert b"are not stored" in capsysbinary.readouterr().err
    ahead = asked(*arguments, "--preview")["preview"]
    assert ahead["most"] > ahead["cost"] > 0
    assert not endpoint.log
    first = asked(*arguments)
    (study,) = first["studies"]
    dev = study["questions"]
    assert len(endpoint.log) == ahead["calls"] == 4 * dev  # two runs, two orders
    # of six candidates the model keeps the first: all four irrelevant ones go, one of two relevant ones with them
    assert study["irrelevant_removed"]["value"] == 1.0
    assert study["relevant_kept"]["value"] == 0.5
    assert {cause: share["value"] for cause, share in study["relevant_lost"].items()} == {
        "floor": 0.0, "oversample": 0.0, "model": 0.5, "cap": 0.0, "failure": 0.0,
    }  # fmt: skip
    assert study["cost_per_question"] == pytest.approx(0.11)
    assert study["produced_by"] == "small at environment"
    assert study["asked_at"].startswith(endpoint.url_for("/v1"))
    assert study["relevant_kept"]["low"] < 0.5 < study["relevant_kept"]["high"]
    assert json.loads(next((tmp_path / "workspace" / "studies").iterdir()).read_text())["project"] == "own"
    (again,) = asked(*arguments, "--replay")["studies"]
    assert len(endpoint.log) == 4 * dev
    same = ("irrelevant_removed", "relevant_kept", "relevant_lost", "gain", "removed_by_run", "cost_per_question")
    assert {name: again[name] for name in same} == {name: study[name] for name in same}


def test_a_floor_is_proposed_for_a_project_and_stands_beside_one_source_of_questions(
    asked, project, capsysbinary, lists
):
    found = asked("floor", "--project", project)
    assert found["proposed"]["relevant_kept"] >= 0.98
    assert found["proposed"]["floor"] == pytest.approx(0.7)  # the second relevant chunk of each list
    assert (found["present"]["floor"], found["present"]["relevant_lost"]) == (0.3, 0)
    assert main(["llm-filter", "floor", "--project", project, "--lists", lists]) == 2
    assert b"expected one of them" in capsysbinary.readouterr().err
