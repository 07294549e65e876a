import getpass
import json
import os
import subprocess
import sys

import pytest

from rag_core.cli import main
from rag_core.project.deeds import log
from rag_core.store.database import FILE, open_store
from rag_core.store.labels import LabelStore

QRELS = "q1 0 c1 3\nq1 0 c%202 0\nq2 0 c1 -1\n"


@pytest.fixture
def workspace(tmp_path):
    return tmp_path / "workspace"


@pytest.fixture
def qrels(tmp_path):
    path = tmp_path / "demo.qrels"
    path.write_text(QRELS)
    return path


@pytest.fixture
def run(capfdbinary, workspace):
    """Run `labels …` in the workspace: (exit code, stdout, stderr)."""

    def run(*arguments):
        code = main(["labels", *map(str, arguments), "--workspace", str(workspace)])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


@pytest.fixture
def imported(run, qrels):
    _, out, _ = run("import", qrels, "--eval-set", "recorded-combat", "--annotator", "ann", "--json")
    return json.loads(out)


def current(workspace):
    with open_store(workspace, create=False) as store:
        return LabelStore(store).current("recorded-combat")


def test_import_says_what_it_did(imported, workspace):
    assert (imported["new"], imported["equal"], imported["conflicting"], imported["written"]) == (3, 0, 0, 3)
    assert imported["version"] == 1
    assert current(workspace) == {"q1": {"c1": 3, "c 2": 0}}


def test_a_dry_run_counts_and_makes_nothing(run, qrels, workspace):
    code, out, _ = run("import", qrels, "--eval-set", "recorded-combat", "--dry-run", "--json")
    document = json.loads(out)
    assert (code, document["new"], document["written"], document["batch"]) == (0, 3, 0, "")
    assert not workspace.exists()


@pytest.mark.parametrize("dry_run", [True, False])
def test_labels_of_a_set_that_is_not_there_are_refused_and_what_is_there_named(run, qrels, workspace, dry_run):
    code, out, err = run("import", qrels, "--eval-set", "recorded-comabt", *["--dry-run"] * dry_run)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "recorded-comabt" in err
    assert "recorded-combat" in err
    assert not workspace.exists()


def test_the_demo_is_labelled_under_its_sets_name(run, qrels, workspace):
    assert run("import", qrels, "--eval-set", "demo", "--annotator", "ann")[0] == 0
    with open_store(workspace) as store:
        assert LabelStore(store).eval_sets() == ["rulebook"]


def test_every_row_says_who_brought_it_in_and_the_log_names_the_batch(run, imported, workspace):
    with open_store(workspace) as store:
        authors = {(event.author, event.actor) for event in LabelStore(store).history("recorded-combat")}
    assert authors == {(getpass.getuser(), "import")}
    run("undo", imported["batch"])
    first, second = log(workspace)
    assert (first["deed"], first["about"], first["whose"]) == ("import labels for others", "recorded-combat", "ann")
    assert imported["batch"] in first["result"]
    assert (second["deed"], second["about"]) == ("undo import", imported["batch"])


def test_conflicts_are_listed_and_left_until_overwrite_is_said(run, imported, qrels, workspace):
    qrels.write_text("q1 0 c1 1\n")
    arguments = ("import", qrels, "--eval-set", "recorded-combat", "--annotator", "ann")
    document = json.loads(run(*arguments, "--json")[1])
    assert document["conflicts"] == [
        {"line": 1, "query_id": "q1", "chunk_id": "c1", "annotator": "ann", "grade": 1, "stored_grade": 3}
    ]
    assert current(workspace)["q1"]["c1"] == 3
    run(*arguments, "--overwrite")
    assert current(workspace)["q1"]["c1"] == 1


def test_undo_takes_the_batch_back(run, imported, workspace):
    assert run("undo", imported["batch"])[:2] == (0, "3 labels taken back\n")
    assert current(workspace) == {}


def test_an_unknown_batch_is_wrong_usage(run, imported):
    code, out, err = run("undo", "import-of-nobody")
    assert (code, out) == (2, "")
    assert "import-of-nobody" in err


@pytest.mark.parametrize("name", ["jsonl", "csv", "trec", "beir"])
def test_what_is_exported_is_equal_when_imported(run, imported, tmp_path, name):
    file = tmp_path / "out"
    assert run("export", "--eval-set", "recorded-combat", "--format", name, "--out", file)[0] == 0
    out = run("import", file, "--eval-set", "recorded-combat", "--format", name, "--annotator", "ann", "--json")[1]
    document = json.loads(out)
    assert (document["new"], document["conflicting"]) == (0, 0)
    assert document["equal"] == (3 if name in ("jsonl", "csv") else 2)


def test_without_out_stdout_holds_the_labels_alone(run, imported):
    code, out, err = run("export", "--eval-set", "recorded-combat", "--format", "trec")
    assert (code, out) == (0, "q1 0 c1 3\nq1 0 c%202 0\n")
    assert err == "2 labels, 1 unsure left out\n"


def test_the_ending_of_out_chooses_the_format(run, imported, tmp_path):
    run("export", "--eval-set", "recorded-combat", "--out", tmp_path / "out.tsv")
    assert (tmp_path / "out.tsv").read_text().startswith("query-id\tcorpus-id\tscore\n")


def test_one_annotators_labels(run, imported):
    assert run("export", "--eval-set", "recorded-combat", "--annotator", "bob")[1] == ""


def test_stats_count(run, imported):
    (stats,) = json.loads(run("stats", "--json")[1])["eval_sets"]
    assert stats == {
        "eval_set": "recorded-combat",
        "labels": 3,
        "unsure": 1,
        "queries": 2,
        "grades": {"0": 1, "1": 0, "2": 0, "3": 1},
        "annotators": {"ann": 3},
        "events": 3,
        "undone": 0,
    }


def test_agreement_gives_the_figures_and_the_chunks_that_differ(run, imported, tmp_path):
    other = tmp_path / "bob.qrels"
    other.write_text("q1 0 c1 3\nq1 0 c%202 2\n")
    run("import", other, "--eval-set", "recorded-combat", "--annotator", "bob")
    document = json.loads(run("agreement", "--eval-set", "recorded-combat", "--json")[1])
    (pair,) = document["pairs"]
    assert (pair["first"], pair["second"], pair["items"], pair["observed"]) == ("ann", "bob", 2, 0.5)
    assert pair["kappa"] == pytest.approx((1 / 2 - 1 / 4) / (1 - 1 / 4))
    assert document["disagreements"] == [{"query_id": "q1", "chunk_id": "c 2", "grades": {"ann": 0, "bob": 2}}]


def test_a_decision_between_people_is_no_further_annotator(run, imported, tmp_path):
    decision = tmp_path / "decided.qrels"
    decision.write_text("q1 0 c1 0\n")
    run("import", decision, "--eval-set", "recorded-combat", "--annotator", "adjudicated")
    assert json.loads(run("agreement", "--eval-set", "recorded-combat", "--json")[1])["annotators"] == ["ann"]


def test_agreement_of_one_annotator_is_undefined_not_an_error(run, imported):
    said = run("agreement", "--eval-set", "recorded-combat")[1]
    assert said.startswith("Krippendorff too few")
    assert said.endswith("0 chunks labelled differently\n")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["export", "--eval-set", "other"], "expected one of: recorded-combat"),
        (["export", "--eval-set", "recorded-combat", "--format", "xml"], "jsonl, trec, beir, csv"),
        (["export", "--eval-set", "recorded-combat", "--json"], "--out"),
        (["stats", "--eval-set", "other"], "expected one of: recorded-combat"),
        (["import", "missing.qrels", "--eval-set", "recorded-combat"], "not there"),
        (["import", "missing.txt", "--eval-set", "recorded-combat"], "--format"),
        (["export"], "--eval-set"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_two(run, imported, arguments, word):
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert word in err


def test_a_bad_line_is_named_and_nothing_is_stored(run, qrels, workspace):
    qrels.write_text("q 0 c 1\nq 0 d 9\n")
    code, out, err = run("import", qrels, "--eval-set", "recorded-combat")
    assert (code, out) == (2, "")
    assert "demo.qrels, line 2: grade is 9" in err
    assert not (workspace / FILE).exists()


@pytest.mark.parametrize("arguments", [["export", "--eval-set", "recorded-combat"], ["stats"], ["undo", "x"]])
def test_no_store_is_exit_code_three_and_makes_none(run, workspace, arguments):
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert not workspace.exists()


def test_the_workspace_may_come_from_the_environment(qrels, tmp_path):
    environment = os.environ | {"WINNOW_WORKSPACE": str(tmp_path / "named")}
    command = [sys.executable, "-m", "rag_core", "labels", "import", str(qrels), "--eval-set", "recorded-combat"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("3 new, 0 equal, 0 conflicting; 3 written as batch import-")
    assert current(tmp_path / "named") == {"q1": {"c1": 3, "c 2": 0}}


def test_the_command_line_starts_without_the_database_layer():
    code = "import sys, rag_core.cli, rag_core.store; rag_core.cli.main(['--help']); sys.exit('sqlalchemy' in sys.modules or 'alembic' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize("name", ["a.qrels", "a.tsv", "a.csv", "a.jsonl"])
def test_grades_of_another_scale_are_taken_where_it_is_said_what_they_mean(tmp_path, capsysbinary, name):
    rows = [("c1", 4), ("c2", -2), ("c3", 2)]
    texts = {
        "a.qrels": "".join(f"q1 0 {chunk} {grade}\n" for chunk, grade in rows),
        "a.tsv": "query-id\tcorpus-id\tscore\n" + "".join(f"q1\t{chunk}\t{grade}\n" for chunk, grade in rows),
        "a.csv": "query_id,chunk_id,grade\n" + "".join(f"q1,{chunk},{grade}\n" for chunk, grade in rows),
        "a.jsonl": "".join(f'{{"query_id": "q1", "chunk_id": "{chunk}", "grade": {grade}}}\n' for chunk, grade in rows),
    }
    (tmp_path / name).write_text(texts[name])
    command = ["labels", "import", str(tmp_path / name), "--eval-set", "demo", "--workspace", str(tmp_path / "home")]
    assert main(command) == 2
    assert b"--grades 4=" in capsysbinary.readouterr().err
    assert main([*command, "--grades", "4=3"]) == 2
    assert b"--grades -2=" in capsysbinary.readouterr().err
    assert main([*command, "--grades", "4=3,-2=0", "--json"]) == 0
    capsysbinary.readouterr()
    out = ["labels", "export", "--eval-set", "rulebook", "--format", "trec", "--workspace", str(tmp_path / "home")]
    assert main(out) == 0
    assert capsysbinary.readouterr().out == b"q1 0 c1 3\nq1 0 c2 0\nq1 0 c3 2\n"
    assert main([*command, "--grades", "4:3"]) == 2
