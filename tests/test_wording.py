"""Which word lists a collection's questions get: the workspace's own, the eval set's, the headers'."""

import json

import pytest

from rag_core import workbench
from rag_core.cli import main
from rag_core.errors import InputError
from rag_core.eval_sets.reading import load_set
from rag_core.index.collection import keywords_of
from rag_core.spec import parse_pipeline, read_pipeline
from rag_core.types import Candidates, Query
from rag_core.wording import own_file, save_list, word_file, word_resources

BOTH = parse_pipeline(["NormaliseKeywords", "ExpandSynonyms", "Hybrid"])


def asked(text, pipeline, index):
    return workbench.live(pipeline, index)(Candidates(Query("query", text)))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    workspace = tmp_path_factory.mktemp("workspace")
    docs = workspace / "docs"
    docs.mkdir()
    (docs / "wear.md").write_text("# Wear\n\n## Bowler x\nA hard round hat.\n\n## HATS - Beret\nA soft flat cap.\n")
    arguments = ["ingest", docs, "--collection", "wear", "--workspace", workspace, "--json"]
    assert main([*map(str, arguments)]) == 0
    return workspace


@pytest.fixture
def index(home):
    return workbench.opened(home, "wear")


def test_an_ingest_takes_keywords_from_headers_whether_or_not_anyone_asks(home):
    assert keywords_of(home, "wear") == ("Bowler x", "HATS - Beret")


def test_a_live_question_is_normalised_to_the_headers(index):
    found = asked("a bowler 3 or a BERET", BOTH, index)
    assert found.query.dense_text == "a Bowler 3 or a Beret"


def test_a_pipeline_without_rewrites_gets_no_lists(index):
    assert word_resources(parse_pipeline(["Dense"]), index) == {}


def test_the_collections_own_list_counts_before_the_general_one(home, index):
    (home / "synonyms.yaml").write_text("bowler: [melon]\n")
    assert asked("a melon", BOTH, index).query.lexical_text == "a melon bowler"
    save_list(home, "wear", "synonyms", "beret: [melon]\n")
    assert asked("a melon", BOTH, index).query.lexical_text == "a melon beret"
    own_file(home, "wear", "synonyms").unlink()
    (home / "synonyms.yaml").unlink()


def test_a_changed_file_counts_at_the_next_question_and_the_old_text_is_kept(home, index):
    path = save_list(home, "wear", "synonyms", "bowler: [melon]\n")
    assert asked("a lid", BOTH, index).query.lexical_text == "a lid"
    save_list(home, "wear", "synonyms", "bowler: [melon, lid]\n")
    assert asked("a lid", BOTH, index).query.lexical_text == "a lid bowler"
    assert path.with_suffix(".before").read_text() == "bowler: [melon]\n"
    path.unlink()


def test_a_malformed_list_is_not_saved(home):
    with pytest.raises(InputError, match="the synonyms list"):
        save_list(home, "wear", "synonyms", "- no mapping")
    assert not own_file(home, "wear", "synonyms").exists()


def test_an_unknown_kind_of_list_is_refused(home):
    with pytest.raises(InputError, match="expected keywords or synonyms"):
        own_file(home, "wear", "stop words")


def test_an_eval_sets_lists_are_its_collections_and_count_where_it_is_named(home):
    assert word_file(home, "skirmish-rules", "synonyms").parent.name == "skirmish-rules"
    assert word_file(home, "wear", "synonyms") is None
    assert word_file(home, "wear", "synonyms", "skirmish-rules").parent.name == "skirmish-rules"


def test_a_capture_depends_on_the_word_lists(home, index):
    before = workbench.capture_fingerprint(index, 5, [], BOTH)
    assert before == workbench.capture_fingerprint(index, 5, [], BOTH)
    path = save_list(home, "wear", "synonyms", "bowler: [melon]\n")
    assert workbench.capture_fingerprint(index, 5, [], BOTH) != before
    path.unlink()


def test_the_skirmish_rules_answer_in_players_words_and_in_any_case(tmp_path):
    eval_set = load_set("skirmish-rules")
    workbench.bring_up_to_date(eval_set, tmp_path)
    index = workbench.opened(tmp_path, "skirmish-rules")
    hybrid = read_pipeline("hybrid")

    def titles(text):
        return [hit.chunk.title for hit in asked(text, hybrid, index).hits]

    assert "Regain wounds" in titles("Can I heal my operative?")[:5]
    assert titles("accurate 1") == titles("ACCURATE 1")
    assert "Accurate x" in titles("accurate 1")[:5]


def test_the_command_line_evaluates_with_and_without_rewriting(tmp_path, capsysbinary):
    with_words = '{"name": "with", "stages": ["NormaliseKeywords", "ExpandSynonyms", "Lexical", {"TopK": {"k": 10}}]}'
    without = '{"name": "without", "stages": ["Lexical", {"TopK": {"k": 10}}]}'
    arguments = ["evaluate", "--eval-set", "skirmish-rules", "-p", without, "-p", with_words, "--tag", "informal"]
    assert main([*arguments, "-m", "R@10", "--workspace", str(tmp_path), "--json"]) == 0
    plain, rewritten = json.loads(capsysbinary.readouterr().out)["pipelines"]
    assert rewritten["means"]["R@10"] > plain["means"]["R@10"]
    steps = rewritten["queries"][0]["stages"]
    assert [step["stage"] for step in steps[:2]] == ["NormaliseKeywords", "ExpandSynonyms"]
    assert steps[1]["lexical_query"].endswith("regain wounds")


def test_players_words_find_the_rule_by_bm25_alone_only_once_they_are_expanded(tmp_path):
    workbench.bring_up_to_date(load_set("skirmish-rules"), tmp_path)
    index = workbench.opened(tmp_path, "skirmish-rules")

    def first(stages):
        hits = asked("Can I heal my operative?", parse_pipeline(stages), index).hits
        return [hit.chunk.title for hit in hits[:5]]

    assert "Regain wounds" not in first(["Lexical"])
    assert "Regain wounds" in first(["ExpandSynonyms", "Lexical"])


def test_a_keyword_in_any_case_embeds_as_one_text_and_gives_one_dense_list(tmp_path):
    workbench.bring_up_to_date(load_set("skirmish-rules"), tmp_path)
    index = workbench.opened(tmp_path, "skirmish-rules")
    dense = parse_pipeline(["NormaliseKeywords", "Dense"])
    low, high = (asked(text, dense, index) for text in ("accurate 1", "ACCURATE 1"))
    assert low.query.dense_text == high.query.dense_text == "Accurate 1"
    assert [(hit.chunk.id, hit.distance) for hit in low.hits] == [(hit.chunk.id, hit.distance) for hit in high.hits]
