"""`eval-sets`: every action of the page as a command, with JSON, one sentence for what is wrong, and exit codes."""

import json

import pytest

from rag_core.cli import main
from rag_core.store.database import open_store
from rag_core.store.events import Event
from rag_core.store.labels import LabelStore


@pytest.fixture
def workspace(tmp_path):
    return tmp_path / "workspace"


@pytest.fixture
def run(capfdbinary, workspace):
    def run(*arguments):
        code = main(["eval-sets", *map(str, arguments), "--workspace", str(workspace)])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


@pytest.fixture
def asked(run, tmp_path):
    """A set `mine` of six queries."""
    path = tmp_path / "asked.csv"
    rows = [f"a{n},topic{n} thing{n} matter{n}?,{'even' if n % 2 == 0 else ''}" for n in range(6)]
    path.write_text("\n".join(["id,query,tags", *rows]))
    assert run("new", "mine", path)[0] == 0


def document(answer):
    code, out, err = answer
    assert (code, err) == (0, "")
    return json.loads(out)


def test_new_tag_show_and_list(run, asked):
    assert document(run("tag", "mine", "--add", "far", "-t", "a1", "--json"))["changed"] == 1
    shown = document(run("show", "mine", "--json"))
    assert (shown["version"], shown["queries"], shown["tags"]) == (1, 6, {"even": 3, "far": 1})
    listed = document(run("list", "--json"))["eval_sets"]
    assert [one["name"] for one in listed if one["own"]] == ["mine"]
    assert next(one for one in listed if one["name"] == "rulebook")["labels"] > 0


def test_new_reads_stdin_and_a_dry_run_makes_nothing(run, workspace, monkeypatch):
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("What is far?\nWhat is far?\n"))
    made = document(run("new", "mine", "-", "--dry-run", "--json"))
    assert (made["queries"], made["repeated"], made["dry_run"]) == (2, 1, True)
    assert not workspace.exists()


def test_a_copy_takes_stored_labels_along_unless_told_not_to(run, asked, workspace):
    event = {"session": "s", "eval_set": "mine", "query_id": "a1", "chunk_id": "c", "annotator": "ann"}
    with open_store(workspace) as store:
        LabelStore(store).append([Event(**event, seq=0, grade=2, note="why")])
    assert document(run("copy", "mine", "second", "--json"))["labels_copied"] == 1
    assert document(run("copy", "mine", "third", "--no-labels", "--json"))["labels_copied"] == 0
    with open_store(workspace) as store:
        (copied,) = LabelStore(store).labels("second")
        assert (copied.annotator, copied.grade, copied.note) == ("ann", 2, "why")
        assert LabelStore(store).labels("third") == []


def test_guidelines_go_in_and_come_out(run, asked, tmp_path):
    rules = tmp_path / "rules.md"
    rules.write_text("# How to judge\n")
    assert run("guidelines", "mine", "--set", rules)[:2] == (0, "# How to judge\n")
    assert document(run("guidelines", "mine", "--json"))["guidelines"] == "# How to judge\n"


def test_delete_needs_to_be_meant(run, asked, workspace):
    code, out, err = run("delete", "mine")
    assert (code, out) == (2, "")
    assert "expected --yes" in err
    assert document(run("delete", "mine", "--yes", "--json"))["deleted"] is True
    assert not (workspace / "eval_sets" / "mine").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "nothing"),
        ("tag", "mine"),
        ("tag", "rulebook", "--add", "x"),
        ("new", "mine", "/nowhere.csv"),
        ("copy", "mine", "../out"),
        ("guidelines", "nothing"),
    ],
)
def test_wrong_usage_is_one_sentence(run, asked, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("winnow: ")
    assert err.count("\n") == 1


def test_labels_given_in_the_workspace_are_counted(run, asked, workspace, tmp_path, capfdbinary):
    (tmp_path / "a.qrels").write_text("a1 0 c1 2\na1 0 c2 0\na3 0 c1 1\na3 0 c9 -1\n")
    command = ["labels", "import", str(tmp_path / "a.qrels"), "--eval-set", "mine", "--workspace", str(workspace)]
    assert main(command) == 0
    capfdbinary.readouterr()
    shown = document(run("show", "mine", "--json"))
    assert (shown["judged"], shown["labels"]) == (2, 3)  # the unsure one judges nothing
    assert [row["labels"] for row in shown["rows"]] == [0, 2, 0, 1, 0, 0]
    listed = next(one for one in document(run("list", "--json"))["eval_sets"] if one["name"] == "mine")
    assert (listed["judged"], listed["labels"]) == (2, 3)


def test_a_file_that_is_no_list_by_its_ending_is_refused(run, tmp_path):
    (tmp_path / "asked.yaml").write_text("title: mine\nquestions:\n  - what is this?\n  - and that?\n")
    code, out, err = run("new", "mine", tmp_path / "asked.yaml")
    assert (code, out) == (2, "")
    assert "asked.yaml" in err
    assert "JSONL" in err


def test_a_line_that_cannot_be_asked_is_named_and_left_out_where_that_is_wanted(run, tmp_path):
    (tmp_path / "asked.jsonl").write_text(
        "".join(json.dumps({"query": text}) + "\n" for text in ["first", "x" * 3000, " ", "last"])
    )
    code, out, err = run("new", "mine", tmp_path / "asked.jsonl")
    assert (code, out, "asked.jsonl line 2" in err) == (2, "", True)
    code, out, err = run("new", "mine", tmp_path / "asked.jsonl", "--skip-bad", "--json")
    assert (code, json.loads(out)["queries"], len(json.loads(out)["skipped"])) == (0, 2, 2)
    assert "line 2" in err
    assert "line 3" in err
