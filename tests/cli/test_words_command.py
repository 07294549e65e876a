"""`collections words`: lists are shown, set and tried on a question."""

import json

import pytest

from rag_core.cli import main
from rag_core.eval_sets.reading import load_set
from rag_core.workbench import bring_up_to_date

NAME = "skirmish-rules"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    workspace = tmp_path_factory.mktemp("workspace")
    bring_up_to_date(load_set(NAME), workspace)
    return workspace


@pytest.fixture
def run(home, capsysbinary):
    def called(*arguments, code=0, collection=NAME):
        given = ["collections", "words", *map(str, arguments), "--collection", collection, "--workspace", str(home)]
        assert main([*given, "--json"]) == code
        out, err = capsysbinary.readouterr()
        return json.loads(out) if code == 0 else err.decode()

    return called


@pytest.fixture
def own(home):
    """Whatever a test makes the collection's own list is gone after it."""
    yield home / "words" / NAME
    for path in (home / "words").rglob("*.*"):
        path.unlink()


def test_lists_are_shown_with_where_they_come_from(run):
    found = run("show")
    assert [(one["kind"], one["origin"]) for one in found["lists"]] == [
        ("keywords", f"eval set {NAME}"),
        ("synonyms", f"eval set {NAME}"),
    ]
    assert "Accurate x" in found["from_headers"]
    assert "die" in found["synonyms"]["incapacitated"]


def test_a_question_is_tried_on_both_sides(run):
    found = run("try", "Can I heal with accurate 1?")
    assert found["dense_text"] == "Can I heal with Accurate 1?"
    assert found["lexical_text"] == "Can I heal with accurate 1? regain wounds"
    assert found["found"] == ["Accurate 1"]
    assert found["added"] == [{"term": "regain wounds", "word": "heal"}]


def test_a_set_list_counts_at_once_and_is_the_collections_own(run, own, tmp_path):
    (tmp_path / "s.yaml").write_text("fall back: [skedaddle]\n")
    assert run("set", "synonyms", tmp_path / "s.yaml")["entries"] == 1
    assert run("try", "may I skedaddle")["lexical_text"] == "may I skedaddle fall back"
    assert run("show")["lists"][1]["origin"] == "collection"
    assert (own / "synonyms.yaml").read_text() == "fall back: [skedaddle]\n"


def test_own_keywords_are_added_to_those_of_the_headers(run, own, tmp_path):
    (tmp_path / "k.json").write_text('["Zorgon Blaster"]')
    run("set", "keywords", tmp_path / "k.json")
    assert run("try", "ZORGON BLASTER, accurate 1")["dense_text"] == "Zorgon Blaster, Accurate 1"


def test_a_malformed_list_is_one_sentence_and_changes_nothing(run, own, tmp_path):
    (tmp_path / "s.yaml").write_text("fall back: skedaddle\n")
    said = run("set", "synonyms", tmp_path / "s.yaml", code=2)
    assert "expected a list" in said
    assert said.count("\n") == 1
    assert run("show")["lists"][1]["origin"] == f"eval set {NAME}"


def test_a_list_broken_by_hand_is_shown_with_its_problem(run, own):
    own.mkdir(parents=True, exist_ok=True)
    (own / "synonyms.yaml").write_text("- no mapping")
    found = run("show")
    assert "is no mapping" in found["lists"][1]["problem"]
    assert found["synonyms"] is None
    assert "is no mapping" in run("try", "heal", code=2)


@pytest.mark.parametrize(
    ("arguments", "collection", "said"),
    [
        (["show"], "nowhere", "there is no collection 'nowhere', expected one of skirmish-rules"),
        (["show"], "../x", "the collection's name is"),
        (["set", "stop-words", "/dev/null"], NAME, "expected keywords or synonyms"),
        (["try", " "], NAME, "question"),
    ],
)
def test_bad_input_is_one_sentence(run, arguments, collection, said):
    code = 3 if collection == "nowhere" else 2
    answer = run(*arguments, code=code, collection=collection)
    assert said in answer
    assert answer.count("\n") == 1
