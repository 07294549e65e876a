"""Labels given in a workspace count wherever an eval set is measured: in commands as on pages."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_core.cli import main
from rag_core.eval_sets.reading import EvalSet, load_set
from rag_core.project.labels import GivenLabels, chunks_of
from rag_core.store.database import open_store
from rag_core.store.events import undo_of
from rag_core.store.labels import LabelStore
from rag_core.store.matching import Anything
from rag_core.types import Candidates, Case, Chunk, Hit, Query
from tests import small_rules
from tests.store.conftest import make_event


@pytest.fixture
def workspace(tmp_path):
    small_rules.build(tmp_path)
    return tmp_path


@pytest.fixture
def run(workspace, capsysbinary):
    def called(*arguments):
        assert main([*map(str, arguments), "--workspace", str(workspace), "--json"]) == 0
        return json.loads(capsysbinary.readouterr().out)

    return called


@pytest.fixture
def own(workspace, run):
    """An eval set of queries only, with a label for each that came from a file and knows chunks by id."""
    (workspace / "questions.csv").write_text(
        "id,query\nsix,What does a cleric need to hit armor class 6?\nhelp,How does a shield help?\n"
    )
    (workspace / "mine.csv").write_text("query_id,chunk_id,grade\nsix,cleric-6,3\nhelp,shields,3\n")
    run("eval-sets", "new", "own", workspace / "questions.csv")
    run("labels", "import", workspace / "mine.csv", "--eval-set", "own")
    return "own"


def scored(document):
    return document["pipelines"][0]["means"]["queries_scored"]


def test_a_set_without_a_label_given_stays_as_it_is(workspace):
    found = load_set("recorded-combat")
    assert GivenLabels(found, workspace).now() is found


SAID = st.lists(
    st.tuples(st.sampled_from(["label", "undo", "import", "take back", "look"]), st.integers(0, 3), st.integers(0, 3)),
    max_size=12,
)


@settings(deadline=None, max_examples=40)
@given(said=SAID, most=st.sampled_from([1, 2, 500]), listed=st.booleans())
def test_reading_only_what_changed_gives_what_reading_everything_gives(said, most, listed):
    """Whatever is said between two looks, by whom, and however many questions are read by their ids."""
    hits = tuple(Hit(Chunk(f"c{n}", "", f"text {n}"), {"distance": n / 10}) for n in range(2))
    cases = [
        Case(query := Query(f"q{n}", f"question {n}?"), {"c1": 1}, Candidates(query, hits) if listed else None)
        for n in range(4)
    ]
    own = EvalSet("demo", "demo", tuple(cases))
    with TemporaryDirectory() as place, open_store(Path(place)) as store:
        labels, told, batches = LabelStore(store), [], []
        held = GivenLabels(own, Path(place), None if listed else Anything())
        held.MOST = most
        for seq, (deed, query, chunk) in enumerate(said):
            about = {"query_id": f"q{query}", "chunk_id": f"c{chunk}", "annotator": f"p{seq % 2}"}
            if deed == "label":
                told.append(make_event(seq, seq % 4, **about))
                labels.append(told[-1:])
            elif deed == "import":
                batches.append(batch := f"b{seq}")
                labels.append([make_event(seq, n, session=f"s{n}", batch=batch, **about | {"query_id": f"q{n}"})
                               for n in range(4)])  # fmt: skip
            elif deed == "undo" and told:
                labels.append([undo_of(told.pop(), "tab-1", 100 + seq)])
            elif deed == "take back" and batches:
                labels.undo_batch(batches.pop())
            elif deed == "look":
                assert held.now() is held.now()
            whole = GivenLabels(own, Path(place), None if listed else chunks_of(object())).now()
            if seq % 3 == 0:
                assert [case.grades for case in held.now().cases] == [case.grades for case in whole.cases]
        whole = GivenLabels(own, Path(place), None if listed else chunks_of(object())).now()
        assert [case.grades for case in held.now().cases] == [case.grades for case in whole.cases]


def test_labels_from_a_file_count_in_evaluate(run, own):
    assert scored(run("evaluate", "--eval-set", own, "--collection", small_rules.NAME, "-p", "fixed-15")) == 2


def test_a_capture_keeps_them_with_its_lists(run, own, workspace):
    out = workspace / "lists.jsonl"
    run("capture", "--eval-set", own, "--collection", small_rules.NAME, "--depth", "8", "--out", out)
    assert scored(run("replay", out, "--pipeline", "unfiltered")) == 2


def test_they_count_in_compare_and_tune(run, own):
    there = ("--eval-set", own, "--collection", small_rules.NAME)
    compared = run("compare", *there, "-p", "unfiltered", "-p", "fixed-15", "-m", "SetR")
    assert [row["measures"]["SetR"]["mean"] for row in compared["table"]] == [1.0, 1.0]
    assert run("sweep", *there, "--stage", "TopK", "--grid", "k=8")["best"]["SetR"] == 1.0


def test_they_count_in_recorded_lists(run, workspace):
    before = run("evaluate", "--eval-set", "recorded-combat", "-p", "unfiltered")["pipelines"][0]["queries"][0]
    chunk = next(hit["id"] for hit in before["kept"] if hit["relevant"] == 0)
    (workspace / "mine.csv").write_text(f"query_id,chunk_id,grade\n{before['id']},{chunk},2\n")
    run("labels", "import", workspace / "mine.csv", "--eval-set", "recorded-combat")
    after = run("evaluate", "--eval-set", "recorded-combat", "-p", "unfiltered")["pipelines"][0]["queries"][0]
    assert after["relevant_total"] == before["relevant_total"] + 1


def test_a_labelled_chunk_that_a_questions_list_lacks_counts_as_not_found(run, workspace):
    """As it does where the labels stand in the file of lists itself."""
    folder = workspace / "eval_sets" / "logged"
    folder.mkdir()
    (folder / "meta.yaml").write_text("version: 1\nname: logged\n")
    lists = {"q1": ["a", "b"], "q2": ["c"], "q3": ["d"]}
    relevant = {"q1": ["a", "c"], "q2": ["nowhere"], "q3": ["d"]}

    def write(brought):
        rows = [
            {"id": one, "query": f"about {one}", "labels": {chunk: 2 for chunk in relevant[one]} if brought else {},
             "candidates": [{"id": chunk, "text": f"of {chunk}", "distance": 0.1 + at / 10} for at, chunk in enumerate(ids)]}
            for one, ids in lists.items()
        ]  # fmt: skip
        (folder / "lists.jsonl").write_text("\n".join(map(json.dumps, rows)))

    def recalls():
        (measured,) = run("evaluate", "--eval-set", "logged", "-p", "unfiltered")["pipelines"]
        return {row["id"]: row["SetR"] for row in measured["queries"]}

    write(brought=True)
    assert recalls() == {"q1": 0.5, "q2": 0.0, "q3": 1.0}
    write(brought=False)
    given = "".join(f"{one},{chunk},2\n" for one, chunks in relevant.items() for chunk in chunks)
    (workspace / "given.csv").write_text(f"query_id,chunk_id,grade\n{given}")
    document = run("labels", "import", workspace / "given.csv", "--eval-set", "logged")
    assert (document["unknown_queries"], document["unknown_chunks"]) == (0, 1)
    assert recalls() == {"q1": 0.5, "q2": 0.0, "q3": 1.0}


def test_an_import_says_what_the_projects_documents_lack(run, workspace, tmp_path, capsysbinary):
    (tmp_path / "documents.md").write_text("## One\n\nWords.\n\n## Two\n\nMore words.\n")
    (tmp_path / "questions.csv").write_text("id,query\nq1,what is one\n")
    run("init", "handbook", "--from", tmp_path / "documents.md", "--questions", tmp_path / "questions.csv")
    (tmp_path / "given.csv").write_text(
        "query_id,chunk_id,grade\nq1,documents.md#one,2\nq1,nope#x,3\nq9,documents.md#one,1\n"
    )
    document = run("labels", "import", tmp_path / "given.csv", "--project", "handbook")
    assert (document["unknown_queries"], document["unknown_chunks"]) == (1, 1)


def test_an_import_says_how_many_labels_meet_nothing(run, workspace, capsysbinary):
    (workspace / "mine.csv").write_text("query_id,chunk_id,grade\nsixx,cleric-6,3\nsix,clerik-6,3\nsix,cleric-6,3\n")
    there = ("labels", "import", workspace / "mine.csv", "--dry-run", "--eval-set")
    document = run(*there, "recorded-combat")
    assert (document["unknown_queries"], document["unknown_chunks"]) == (3, 0)
    lists = {"id": "six", "query": "?", "candidates": [{"id": "cleric-6", "title": "Six", "distance": 0.1}]}
    (workspace / "eval_sets/small/lists.jsonl").write_text(json.dumps(lists))
    document = run(*there, "small")
    assert (document["new"], document["unknown_queries"], document["unknown_chunks"]) == (3, 1, 1)
    assert main([*map(str, there), "small", "--workspace", str(workspace)]) == 0
    told = capsysbinary.readouterr().out
    assert b"1 of an unknown query: the eval set does not have it" in told
    assert b"1 of a chunk that no list holds: it counts as not found" in told
    assert main([*map(str, there), "smal", "--workspace", str(workspace)]) == 2
    assert b"'smal', expected one of rulebook, small" in capsysbinary.readouterr().err


def test_they_count_where_rules_are_checked(run, workspace):
    (workspace / "mine.csv").write_text("query_id,chunk_id,grade\nshield,strength,2\n")
    run("labels", "import", workspace / "mine.csv", "--eval-set", small_rules.NAME)
    from rag_core.cli.rules import RulesAbout

    found = RulesAbout(
        workspace, project=None, collection=small_rules.NAME, eval_set=small_rules.NAME, lists=None, min_grade=None
    ).read()
    assert {case.query.id: dict(case.grades) for case in found.cases}["shield"] == {"shields": 2, "strength": 2}
