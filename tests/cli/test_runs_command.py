import json

import pytest

from rag_core.cli import main
from rag_core.compare.run_file import load_run
from rag_core.eval_sets.reading import SHIPPED

COMBAT = str(SHIPPED / "recorded-combat" / "lists.jsonl")


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("WINNOW_WORKSPACE", str(tmp_path / "ws"))
    return tmp_path


@pytest.fixture
def said(capsysbinary):
    def run(*arguments, code=0):
        assert main(list(arguments)) == code
        out = capsysbinary.readouterr().out
        return json.loads(out) if "--json" in arguments and not code else out.decode()

    return run


def saved(said, *pipelines):
    given = [part for one in pipelines for part in ("--pipeline", one)]
    said("evaluate", "--eval-set", "recorded-combat", *given, "--save-run")
    return said("runs", "list", "--json")["runs"][0]["id"]


def test_evaluate_keeps_a_run_that_is_listed_and_shown(workspace, said):
    run = saved(said, "unfiltered", "query-must")
    (listed,) = said("runs", "list", "--json")["runs"]
    assert (listed["id"], listed["eval_set"]) == (run, "recorded-combat")
    shown = said("runs", "show", run[:6], "--json")
    assert shown["intact"]
    assert [one["name"] for one in shown["run"]["pipelines"]] == ["unfiltered", "query-must"]
    assert "query-must: SetP 0.733" in said("runs", "show", run)


def test_replay_writes_a_run_file_and_prints_its_answer_alone(workspace, said):
    path = workspace / "run.json"
    found = said("replay", COMBAT, "--pipeline", "query-must", "--run-out", str(path), "--json")
    run = load_run(path)
    assert run.document["eval_set"] == "recorded-combat"
    assert run.pipelines[0].means["SetF"] == found["pipelines"][0]["means"]["SetF"]
    assert not (workspace / "ws").exists()


def test_notes_are_added_and_shown(workspace, said):
    run = saved(said, "query-must")
    said("runs", "note", run, "looks good", "--author", "ann")
    assert said("runs", "show", run, "--json")["notes"][0]["note"] == "looks good"
    assert "ann: looks good" in said("runs", "show", run)


def test_a_run_travels_by_export_and_import(workspace, said, monkeypatch):
    run = saved(said, "query-must")
    path = workspace / "out.json"
    said("runs", "export", run, "--out", str(path))
    monkeypatch.setenv("WINNOW_WORKSPACE", str(workspace / "other"))
    assert said("runs", "import", str(path), "--json")["run"] == run
    assert said("runs", "list", "--json")["runs"][0]["id"] == run


def test_a_file_that_was_changed_is_not_imported(workspace, said):
    path = workspace / "run.json"
    said("replay", COMBAT, "--run-out", str(path))
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    said("runs", "import", str(path), code=2)


def test_two_runs_are_compared(workspace, said):
    first, second = saved(said, "unfiltered"), saved(said, "query-must")
    found = said("runs", "compare", first, second, "--json")
    assert found["comparable"]
    assert (found["comparison"]["queries"], found["comparison"]["wins"]) == (3, 3)


def test_a_run_on_earlier_labels_is_measured_on_the_later_ones(workspace, said):
    qrels = workspace / "qrels.tsv"
    qrels.write_text("query-id\tcorpus-id\tscore\ncombat-1\tcombat-1-01\t1\n")
    for name, more in (("a.json", ()), ("b.json", ("--qrels", str(qrels)))):
        said("replay", COMBAT, "--run-out", str(workspace / name), *more)
    found = said("runs", "compare", str(workspace / "a.json"), str(workspace / "b.json"), "--json")
    assert found["comparable"]
    assert found["comparison"]["delta"] == 0  # the same pipeline on the same lists
    assert any("recomputed" in one for one in found["besides"])


def test_delete_takes_a_run_out(workspace, said):
    run = saved(said, "query-must")
    assert said("runs", "delete", run, "--json")["deleted"] == run
    assert said("runs", "list", "--json")["runs"] == []


def test_an_unknown_run_is_one_sentence(workspace, capsys):
    saved_code = main(["evaluate", "--eval-set", "recorded-combat", "--save-run"])
    assert saved_code == 0
    capsys.readouterr()
    assert main(["runs", "show", "zzz"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "is not among the stored runs" in err


def test_without_runs_the_list_says_how_to_make_one(workspace, said):
    assert "no run yet" in said("runs", "list")
