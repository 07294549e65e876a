"""Projects on the command line: made of what is there, named by option, variable or folder, looked at and reset."""

import json
import sys

import pytest

from rag_core.cli import main
from rag_core.eval_sets.reading import SHIPPED

LISTS = SHIPPED / "recorded-combat" / "lists.jsonl"


@pytest.fixture
def place(tmp_path, monkeypatch):
    docs = tmp_path / "docs"
    docs.mkdir()
    for what in ("Coffee dose", "Cleaning"):
        sections = [
            f"## {what} of the E {size}\n\n{what} needs {size} grams for the E {size}.\n" for size in (10, 20, 30)
        ]
        (docs / f"{what}.md").write_text(f"# {what}\n\n" + "\n".join(sections))
    (tmp_path / "questions.csv").write_text("id,query\nq1,How much coffee for the E 20?\nq2,How to clean the E 30?\n")
    monkeypatch.setenv("WINNOW_WORKSPACE", str(tmp_path / "ws"))
    monkeypatch.delenv("WINNOW_PROJECT", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def said(capsysbinary):
    def run(*arguments, code=0):
        capsysbinary.readouterr()
        assert main([*map(str, arguments), "--json"]) == code
        out, err = capsysbinary.readouterr()
        return json.loads(out) if code == 0 else err.decode()

    return run


def test_documents_questions_and_labels_become_a_project_and_its_figures_change_with_its_documents(place, said):
    made = said("init", "espresso", "--from", place / "docs", "--questions", place / "questions.csv")
    assert (made["source"], made["questions"]) == ({"kind": "collection", "name": "espresso"}, 2)
    first = said("query", "How much coffee for the E 20?", "--project", "espresso")["pipelines"][0]["queries"][0]
    chunk = first["kept"][0]["id"]
    (place / "labels.tsv").write_text(f"query-id\tcorpus-id\tscore\nq1\t{chunk}\t2\n")
    said("labels", "import", place / "labels.tsv", "--eval-set", "espresso", "--format", "beir")
    before = said("evaluate", "--project", "espresso", "-p", "fixed-15")
    assert before["pipelines"][0]["means"]["queries_scored"] == 1
    assert set(before["fingerprints"]) == {"source", "rules", "labels", "pipeline", "model"}
    document = place / "docs" / "Coffee dose.md"
    document.write_text(document.read_text().replace("needs 30 grams", "needs thirty grams"))
    assert said("ingest", place / "docs", "--collection", "espresso")["embedded"] == 1
    after = said("evaluate", "--project", "espresso", "-p", "fixed-15")
    assert after["fingerprints"]["source"] != before["fingerprints"]["source"]
    assert after["fingerprints"]["labels"] == before["fingerprints"]["labels"]


def test_init_says_how_many_labels_count(place, said):
    rows = [{"key": "one", "body": "A dose is ten grams."}, {"key": "two", "body": "Clean it daily."}]
    (place / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (place / "labels.csv").write_text("query_id,chunk_id,grade\nq1,one,3\nq2,gone,2\nq9,one,1\n")
    start = ("--from", place / "d.jsonl", "--questions", place / "questions.csv", "--labels", place / "labels.csv")
    made = said("init", "grams", *start, "--column", "text=body", "--column", "id=key")
    assert made["note"].startswith("1 of 3 labels count; 1 of an unknown query, 1 of an unknown chunk")
    assert said("project", "show", "grams")["labels"] == 1
    lost = said("init", "lost", *start, "--column", "text=body", "--column", "id=kee", code=2)
    assert "no record has kee, expected one of key, body" in lost


def test_where_nothing_is_embedded_a_project_searches_by_words(place, said):
    (place / "questions.csv").write_text("id,query\n" + "".join(f"q{n},coffee {n}?\n" for n in range(12)))
    (place / "labels.csv").write_text("query_id,chunk_id,grade\n" + "".join(f"q{n},one,3\n" for n in range(12)))
    (place / "d.jsonl").write_text('{"id": "one", "text": "coffee for the E 20"}\n{"id": "two", "text": "clean it"}')
    start = ("--questions", place / "questions.csv", "--labels", place / "labels.csv")
    made = said("init", "words", "--from", place / "d.jsonl", *start, "--model", "none")
    assert made["pipelines"]["A"] == "bm25"
    said(*made["next"].split()[1:])
    for command in ("advise", "calibrate", "sweep"):
        said(command, "--project", "words")
    again = said("init", "again", "--from", "collection:words", *start)
    assert again["pipelines"]["A"] == "bm25"


@pytest.mark.parametrize("way", ["option", "variable", "folder", "standing"])
def test_a_project_is_named_by_option_variable_or_folder(place, said, monkeypatch, way):
    said("init", "combat", "--from", LISTS)
    folder, option = place / "ws" / "eval_sets" / "combat", ()
    if way == "option":
        option = ("--project", "combat")
    elif way == "variable":
        monkeypatch.setenv("WINNOW_PROJECT", "combat")
    elif way == "folder":
        option = ("--project", folder)
    else:
        monkeypatch.chdir(folder)
    found = said("evaluate", "-p", "unfiltered", "-p", "query-must", *option)
    assert [round(one["means"]["SetF"], 3) for one in found["pipelines"]] == [0.524, 0.834]
    assert found["project"] == "combat"


def test_a_function_is_a_source_too(place, said, monkeypatch):
    (place / "finder_of_init.py").write_text(
        "def find(text, depth):\n    return [{'id': f'c{at}', 'distance': at / 10, 'text': text} for at in range(depth)][:9]\n"
    )
    monkeypatch.syspath_prepend(str(place))
    said("init", "theirs", "--from", "finder_of_init:find", "--questions", place / "questions.csv")
    found = said("evaluate", "--project", "theirs", "-p", '[{"TopK": {"k": 2}}]')
    assert [[one["id"] for one in query["kept"]] for query in found["pipelines"][0]["queries"]] == [["c0", "c1"]] * 2
    assert "finder_of_init" in sys.modules


def test_what_cannot_be_made_is_one_sentence_and_leaves_nothing_behind(place, said):
    for arguments, expected in (
        (("init", "a b", "--from", place / "docs"), "project's name"),
        (("init", "rulebook", "--from", place / "docs"), "already"),
        (("init", "x", "--from", place / "nowhere"), "nowhere"),
        (("init", "x", "--from", "chroma:store"), "chroma:DIR#COLLECTION"),
        (("init", "x", "--from", "collection:none"), "there is no collection"),
        (("init", "x", "--from", place / "docs", "--questions", place / "missing.csv"), "missing.csv"),
        (("init", "x", "--from", LISTS, "--questions", place / "questions.csv"), "its own questions"),
    ):
        sentence = said(*arguments, code=2)
        assert expected in sentence
        assert sentence.count("\n") == 1
    assert not (place / "ws" / "collections").is_dir() or not list((place / "ws" / "collections").iterdir())
    assert {one["name"] for one in said("projects")["projects"] if not one["shipped"]} == set()


def test_looks_are_counted_and_the_split_is_drawn_anew_visibly(place, said):
    said("init", "combat", "--from", LISTS)
    said("held-out", "reset", "combat", "--held-out", "0.9")
    shown = said("held-out", "show", "combat")
    assert sorted([*shown["dev"], *shown["held_out"], *shown["straddling"]]) == ["combat-1", "combat-2", "combat-3"]
    for _ in range(2):
        said("evaluate", "--project", "combat", "-p", "query-must")
    looks = said("held-out", "show", "combat")["looks"]
    assert len(looks) == (1 if shown["held_out"] else 0)
    said("held-out", "reset", "combat")
    assert [one["at"] for one in said("held-out", "show", "combat")["looks"]] == [one["at"] for one in looks]


def test_why_names_the_first_stage_that_loses_a_chunk_and_what_would_keep_it(place, said):
    found = said("why", "combat-1", "combat-1-01", "-p", "query-must", "--project", "recorded-combat")
    assert (found["outcome"], found["stage"], found["rank"]) == ("dropped", "QueryMust", 1)
    assert found["would_keep"]
    said("init", "espresso", "--from", place / "docs")
    own = said("why", "coffee", "Cleaning of the E 30", "-p", '[{"Dense": {"depth": 2}}]', "--project", "espresso")
    assert (own["outcome"], own["stage"], own["then"]["outcome"]) == ("not brought", "Dense", "kept")


def test_why_of_a_question_or_chunk_that_is_not_there_is_one_sentence(place, said):
    said("init", "espresso", "--from", place / "docs", "--questions", place / "questions.csv")
    there = ("--project", "espresso", "-p", "fixed-15")
    assert "has no question 'q77', expected one of its own" in said("why", "q77", "dose", *there, code=2)
    assert "no chunk has the id or a title with 'zzz', expected one of 6 chunks" in said(
        "why", "q1", "zzz", *there, code=2
    )


def test_questions_of_a_file_are_added_to_a_project(place, said):
    made = said("init", "espresso", "--from", place / "docs")
    assert made["next"] == "winnow questions add FILE --project espresso"
    added = said("questions", "add", place / "questions.csv", "--project", "espresso")
    assert (added["read"], added["added"]) == (2, 2)
    assert said("questions", "add", place / "questions.csv", "--project", "espresso")["added"] == 0
    assert "shipped one" in said("questions", "add", place / "questions.csv", "--project", "rulebook", code=2)


def test_a_shipped_project_goes_back_to_how_it_ships(place, said):
    assert said("project", "reset", "recorded-combat")["reset"] is False
    said("held-out", "reset", "recorded-combat")
    assert said("project", "reset", "recorded-combat")["reset"] is True
    said("init", "combat", "--from", LISTS)
    assert "your own" in said("project", "reset", "combat", code=2)


def test_labels_given_in_play_go_with_a_reset_and_come_back(place, said):
    (place / "mine.qrels").write_text("combat-1 0 combat-1-02 3\n")
    said("labels", "import", place / "mine.qrels", "--eval-set", "recorded-combat")
    given = said("labels", "stats", "--eval-set", "recorded-combat")["eval_sets"][0]["labels"]
    assert said("project", "reset", "recorded-combat")["labels"] == 0
    done = said("project", "reset", "recorded-combat", "--labels")
    assert (given, done["labels"]) == (1, 1)
    assert said("labels", "stats", "--eval-set", "recorded-combat")["eval_sets"][0]["labels"] == 0
    assert said("labels", "undo", done["batch"])["undone"] == 1
    assert said("labels", "stats", "--eval-set", "recorded-combat")["eval_sets"][0]["labels"] == 1
    told = [(one["deed"], one["outcome"]) for one in said("deeds")["deeds"]]
    assert ("reset labels", "done") in told


def test_recorded_lists_go_with_no_other_source(place, said):
    for command in (
        ("sweep", LISTS),
        ("tune", LISTS),
        ("compare", "--lists", LISTS, "-p", "fixed-15", "-p", "unfiltered"),
    ):
        assert "expected one of the two" in said(*command, "--collection", "rulebook", code=2)
    assert "holds recorded lists" in said("query", "anything", "--project", "recorded-combat", code=2)


def test_two_pipelines_and_nothing_scored_is_one_sentence(place, capsys):
    (place / "bare.jsonl").write_text('{"id": "q1", "query": "x", "candidates": [{"id": "a", "distance": 0.1}]}\n')
    for command in (["replay", "bare.jsonl"],):
        assert main([*command, "-p", "fixed-15", "-p", "query-must"]) == 0
        assert "nothing is compared" in capsys.readouterr().out


def test_rules_and_labels_of_a_project(place, said):
    said("init", "espresso", "--from", place / "docs")
    assert said("rules", "batches", "--project", "espresso")["batches"] == []
    found = said("rules", "suggest", "--project", "espresso")
    assert {len(one["chunks"]) for one in found["families"]} == {3}
    said("init", "combat", "--from", LISTS)
    (place / "labels.tsv").write_text("query-id\tcorpus-id\tscore\ncombat-1\tcombat-1-01\t2\n")
    said("labels", "import", place / "labels.tsv", "--project", "combat", "--format", "beir")
    exported = said("labels", "export", "--project", "combat", "--out", place / "out.jsonl")
    assert (exported["eval_set"], exported["labels"]) == ("combat", 1)
    assert "--project" in said("labels", "agreement", code=2)


def test_a_reset_forgets_pipelines_and_no_look(said):
    said("judge", "fixed-15", "query-must", "--project", "recorded-combat")
    seen = said("held-out", "show", "recorded-combat")["looks"]
    said("held-out", "reset", "recorded-combat")
    assert said("project", "reset", "recorded-combat")["reset"] is True
    again = said("held-out", "show", "recorded-combat")["looks"]
    assert seen
    assert [(one["pipeline"], one["at"]) for one in again] == [(one["pipeline"], one["at"]) for one in seen]


def test_questions_are_made_from_slots_with_their_labels_and_counted_as_generated(place, said):
    said("init", "espresso", "--from", place / "docs", "--questions", place / "questions.csv")
    tried = said("questions", "make", "--project", "espresso", "--dry-run")
    assert tried["added"] == 0
    assert len(tried["questions"]) >= 4
    assert said("questions", "make", "--project", "espresso")["added"] == len(tried["questions"])
    assert said("questions", "make", "--project", "espresso")["added"] == 0  # the same ones again
    after = said("evaluate", "--project", "espresso", "-p", "fixed-15")
    assert after["generated"] == len(tried["questions"])
    assert after["pipelines"][0]["means"]["queries_scored"] == len(tried["questions"])
    assert "shipped" in said("questions", "make", "--project", "demo", "-n", "3", code=2)
