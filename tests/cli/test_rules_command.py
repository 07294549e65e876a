"""`rules`: from suggestion to undo on a small collection, exit codes, and output that is JSON alone."""

import json

import pytest

from rag_core.cli import main
from rag_core.index.collection import open_collection
from rag_core.index.embed import BundledEmbedder
from rag_core.index.ingest import ingest_chunks
from rag_core.types import Chunk

TITLE = "Attack matrix for thieves and assassins - Opponent Armor Class {}"
THIEF = {"contain_one_of": [["thief"], ["ac 4"]]}
CHUNKS = [Chunk(f"ac{n}", TITLE.format(n), f"roll for {n}") for n in (4, 5, 6)]
CHUNKS += [Chunk("strength", "Strength"), Chunk("flat", "Rope", metadata={"query_must": ["rope", "ropes"]})]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rules")
    ingest_chunks(CHUNKS, "books", folder, BundledEmbedder())
    lines = [
        {"id": "q1", "query": "a thief, ac 5", "candidates": [{"id": "ac5", "distance": 0.1, "relevant": 1}]},
        {"id": "q2", "query": "a rogue, ac 6", "candidates": [{"id": "ac6", "distance": 0.1, "relevant": 1}]},
    ]
    (folder / "lists.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    return folder


@pytest.fixture
def workspace(filled, tmp_path):
    import shutil

    shutil.copytree(filled, tmp_path / "w")
    return tmp_path / "w"


def run(capfd, *arguments):
    code = main([str(argument) for argument in arguments])
    out, err = capfd.readouterr()
    return code, out, err


def answer(capfd, workspace, *arguments, code=0):
    found, out, err = run(capfd, "rules", *arguments, "--workspace", workspace, "--json")
    assert found == code, err
    return json.loads(out)


def rules_of(workspace, collection="books"):
    return {chunk.id: chunk.query_must for chunk in open_collection(workspace, collection).chunks}


def test_generate_apply_and_undo(capfd, workspace):
    file = workspace / "rules.yaml"
    made = answer(capfd, workspace, "generate", "--collection", "books", "--out", file)
    assert set(made["accepted"]) == {"ac4", "ac5", "ac6"}
    stored = answer(capfd, workspace, "apply", file, "--collection", "books")
    assert (stored["batch"], rules_of(workspace)["ac4"]) == (1, made["accepted"]["ac4"])
    assert [one["about"] for one in answer(capfd, workspace, "batches", "--collection", "books")["batches"]] == [
        "rules.yaml"
    ]
    assert answer(capfd, workspace, "undo", "--collection", "books")["restored"] == ["ac4", "ac5", "ac6"]
    assert set(rules_of(workspace).values()) == {None}


def test_a_rule_that_loses_a_labelled_answer_is_refused_and_the_others_are_stored(capfd, workspace):
    file, labels = workspace / "rules.yaml", ("--lists", workspace / "lists.jsonl")
    answer(capfd, workspace, "generate", "--collection", "books", "--out", file)
    stored = answer(capfd, workspace, "apply", file, "--collection", "books", *labels)
    assert [(one["chunk_id"], one["kind"]) for one in stored["refused"]] == [("ac6", "drops-relevant")]
    assert rules_of(workspace)["ac6"] is None
    assert rules_of(workspace)["ac5"] is not None


def test_a_dry_run_stores_nothing(capfd, workspace):
    file = workspace / "rules.yaml"
    answer(capfd, workspace, "generate", "--collection", "books", "--out", file)
    assert answer(capfd, workspace, "apply", file, "--collection", "books", "--dry-run")["batch"] is None
    assert set(rules_of(workspace).values()) == {None}


def test_where_no_rule_passes_the_exit_code_is_1_and_nothing_is_stored(capfd, workspace):
    file = workspace / "rules.json"
    file.write_text(json.dumps({"version": 1, "rules": {"ac4": {"contain_one_of": [[]]}, "zz": THIEF}}))
    found = answer(capfd, workspace, "apply", file, "--collection", "books", code=1)
    assert {one["chunk_id"]: one["kind"] for one in found["refused"]} == {"ac4": "unreadable", "zz": "unknown-chunk"}
    assert set(rules_of(workspace).values()) == {None}


def test_lint_ends_with_1_on_errors_and_with_0_without(capfd, workspace):
    assert answer(capfd, workspace, "lint", "--collection", "books")["counts"]["error"] == 0
    file = workspace / "rules.json"
    file.write_text(json.dumps({"version": 1, "rules": {"ac5": THIEF}}))
    answer(capfd, workspace, "apply", file, "--collection", "books")
    code, out, err = run(
        capfd, "rules", "lint", "--collection", "books", "--lists", workspace / "lists.jsonl", "--workspace", workspace
    )
    assert code == 1
    assert "error drops-relevant: ac5 drops a chunk labelled 1: no word of: ac 4 (query q1)" in out
    assert err.strip() == "winnow: the rules have 1 errors"


def test_suggest_names_the_family_its_template_and_the_coverage(capfd, workspace):
    found = answer(capfd, workspace, "suggest", "--collection", "books", "--lists", workspace / "lists.jsonl")
    (family,) = found["families"]
    assert (family["template"], family["chunks"], family["share"]) == ("combat-thieves", ["ac4", "ac5", "ac6"], 1.0)
    assert found["coverage"]["with_rule"] == 0


def test_generate_for_one_family_by_name_and_for_none(capfd, workspace):
    made = answer(capfd, workspace, "generate", "--collection", "books", "--family", "combat-thieves")
    assert len(made["accepted"]) == 3
    code, out, err = run(capfd, "rules", "generate", "--collection", "books", "--family", "x", "--workspace", workspace)
    assert (code, out) == (2, "")
    assert "there is no family 'x', expected one of attack matrix" in err


def test_flat_metadata_is_imported_and_exported(capfd, workspace):
    assert answer(capfd, workspace, "import", "--collection", "books")["imported"] == 1
    assert rules_of(workspace)["flat"] == {"contain_one_of": [["rope", "ropes"]]}
    assert answer(capfd, workspace, "import", "--collection", "books")["imported"] == 0
    file = workspace / "out.yaml"
    assert answer(capfd, workspace, "export", "--collection", "books", "--out", file)["rules"] == 1
    assert "[rope, ropes]" in file.read_text()


def test_without_chunks_the_message_says_how_to_name_some(capfd, workspace):
    code, out, err = run(capfd, "rules", "lint", "--workspace", workspace)
    assert (code, out) == (2, "")
    assert "expected --collection NAME" in err


def test_many_rules_that_cannot_be_read_for_one_reason_are_one_line(capfd, workspace):
    chunks = [Chunk(f"c{at}", "Rope", "rope", query_must={"contains": "rope"}) for at in range(69)]
    ingest_chunks(chunks, "broken", workspace, BundledEmbedder())
    code, out, _ = run(capfd, "rules", "import", "--collection", "broken", "--workspace", workspace)
    assert code == 0
    assert len(out.splitlines()) == 2
    assert "c0, c1, c10 and 66 more" in out
    code, out, _ = run(capfd, "collections", "--workspace", workspace)
    assert "broken: 69 chunks, 0 with rules and 69 with rules that cannot be read" in out


@pytest.fixture
def machines(workspace):
    chunks = [Chunk(f"e{n}", f"Dose of the model E {n}", f"{n} grams") for n in (10, 20, 30)]
    chunks += [Chunk(f"d{at}", f"Dragon, {name}", "It flies.") for at, name in enumerate(("Black", "Blue", "Red"))]
    ingest_chunks([*chunks, Chunk("other", "Warranty", "Two years.")], "machines", workspace, BundledEmbedder())
    lines = [
        {"id": "one", "query": "dose of the E 10", "labels": {"e10": 1, "e20": 0}, "candidates": []},
        {"id": "most", "query": "which takes most", "labels": {"e30": 1}, "candidates": []},
    ]
    (workspace / "doses.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    return workspace


def test_proposed_rules_are_shown_checked_stored_as_one_batch_and_taken_back_as_one(capfd, machines):
    labels = ("--collection", "machines", "--lists", machines / "doses.jsonl")
    shown = answer(capfd, machines, "propose", *labels, "--check")
    assert {one["name"]: one["policy"] for one in shown["families"]} == {
        "dose of the model e {number}": "strict",
        "dragon, {word}": "named",
    }
    checked = {one["family"]: one for one in shown["checks"]}["dose of the model e {number}"]
    assert (checked["relevant"], checked["wrong_drops"], checked["right_drops"]) == (2, 1, 1)
    assert shown["batch"] is None
    stored = answer(capfd, machines, "propose", *labels, "--check", "--apply")
    assert (stored["batch"], stored["stored"]) == (1, 3)  # a family that loses an answer waits
    rules = rules_of(machines, "machines")
    (dragons,) = [one["rules"] for one in stored["families"] if one["name"] == "dragon, {word}"]
    assert {chunk for chunk, rule in rules.items() if rule} == set(dragons)
    assert answer(capfd, machines, "propose", *labels, "--check", "--apply")["stored"] == 0
    assert len(answer(capfd, machines, "undo", "--collection", "machines")["restored"]) == 3
    assert set(rules_of(machines, "machines").values()) == {None}


def test_one_family_is_proposed_by_name_and_policy(capfd, machines):
    found = answer(capfd, machines, "propose", "--collection", "machines", "--family", "dose", "--policy", "named")
    assert [one["policy"] for one in found["families"]] == ["named"]
    code, out, err = run(
        capfd, "rules", "propose", "--collection", "machines", "--family", "ship", "--workspace", machines
    )
    assert (code, out) == (2, "")
    assert "there is no family 'ship', expected one of" in err
    code, out, _ = run(capfd, "rules", "propose", "--collection", "machines", "--workspace", machines)
    assert code == 0
    assert out.splitlines()[-1] == "2 families, 6 rules for 7 chunks"
