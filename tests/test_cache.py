"""The result cache: what is kept and for how long, and that nothing that changes a result is answered from it."""

import threading
from functools import partial

import pytest

from rag_core import cache
from rag_core.cache import CacheCounts, ResultCache, clear_everywhere, key_of, noted_counts
from rag_core.cli import main
from rag_core.index.embed import BundledEmbedder
from rag_core.index.handles import open_index
from rag_core.index.ingest import ingest
from rag_core.index.rules import apply_rules
from rag_core.remember import remembered
from rag_core.retrieve.dense import Dense
from rag_core.retrieve.word_lists import Synonyms
from rag_core.rules.parsing import read_rule
from rag_core.spec import build, parse_pipeline
from rag_core.types import Candidates, Fallback, Query
from rag_core.workbench import live

QUERY = Query("q", "a hat")
RULED = [{"Dense": {"depth": 10}}, "QueryMust", {"TopK": {"k": 5}}]


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def answer(name):
    return lambda: Candidates(Query(name, name))


def test_the_thousandth_entry_stays_and_the_least_recently_used_goes():
    held = ResultCache(entries=2)
    for name in ("a", "b", "a", "c"):
        held.result("g", "s", name, answer(name))
    assert held.counts() == CacheCounts(1, 3, 2)
    held.result("g", "s", "a", answer("a"))
    assert held.counts().hits == 2
    assert ResultCache()._held.maxsize == 1000


def test_a_result_is_asked_anew_after_an_hour():
    clock = Clock()
    held = ResultCache(timer=clock)
    held.result("g", "s", "a", answer("old"))
    clock.now = 3599
    assert held.result("g", "s", "a", answer("new")).query.id == "old"
    clock.now = 3601
    assert held.result("g", "s", "a", answer("new")).query.id == "new"


def test_another_state_lets_the_old_results_go():
    held = ResultCache()
    held.result("g", "s1", "a", answer("a"))
    held.result("h", "s1", "b", answer("b"))
    held.result("g", "s2", "c", answer("c"))
    assert held.counts().entries == 2


def test_a_run_that_fell_back_is_not_kept():
    held = ResultCache()
    fell = Candidates(QUERY, fallbacks=(Fallback("LLMFilter", "no endpoint"),))
    held.result("g", "s", "a", lambda: fell)
    assert held.result("g", "s", "a", answer("again")).query.id == "again"


def test_many_threads_share_it_without_a_wrong_answer():
    held, wrong = ResultCache(entries=5), []

    def ask(seed):
        for step in range(300):
            name = str((seed * 7 + step) % 12)
            if held.result("g", "s", name, answer(name)).query.id != name:
                wrong.append(name)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    counts = held.counts()
    assert not wrong
    assert counts.hits + counts.misses == 2400


def test_the_hit_rate_is_a_share_and_nothing_before_the_first_question():
    assert CacheCounts().hit_rate is None
    assert CacheCounts(3, 1).hit_rate == 0.75


@pytest.fixture
def asked(tmp_path):
    """Ask the collection through a fresh shared cache; how often it was really searched, and what was kept."""
    cache.shared.cache_clear()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("## Hat\nA hat.\n## Boot\nA boot.\n")
    ingest([tmp_path / "docs"], "wear", tmp_path, BundledEmbedder())
    counts = []

    def called(spec=RULED, query=QUERY):
        index = open_index(tmp_path, "wear")
        pipeline = parse_pipeline(spec)

        def ask():
            counts.append(1)
            return live(pipeline, index)(Candidates(query))

        found = remembered(query, pipeline, index, tmp_path, ask)
        assert found == live(pipeline, index)(Candidates(query)), "the cache told something else than a search"
        return len(counts)

    return called


def test_the_same_question_is_searched_once(asked):
    assert (asked(), asked(), asked()) == (1, 1, 1)


def test_another_question_or_setting_is_searched(asked):
    asked()
    assert asked(query=Query("q", "a boot")) == 2
    assert asked([{"Dense": {"depth": 10}}, "QueryMust", {"TopK": {"k": 1}}]) == 3
    assert asked([{"Dense": {"depth": 1}}, "QueryMust", {"TopK": {"k": 5}}]) == 4


def test_other_word_lists_are_searched_anew(asked, tmp_path):
    index, found = open_index(tmp_path, "wear"), []
    spec = parse_pipeline(["ExpandSynonyms", {"Lexical": {"depth": 10}}])
    for term in ("boot", "hat"):
        pipeline = build(spec, {"index": index, "synonyms": Synonyms({term: ("shoe",)})})
        start = Candidates(Query("own-1", "a shoe"))
        found.append(remembered(start.query, pipeline, index, tmp_path, partial(pipeline, start)))
    assert [one.query.lexical_text for one in found] == ["a shoe boot", "a shoe hat"]


def test_a_changed_document_is_searched_anew(asked, tmp_path):
    asked()
    (tmp_path / "docs" / "a.md").write_text("## Hat\nA hat of felt.\n## Boot\nA boot.\n")
    ingest([tmp_path / "docs"], "wear", tmp_path, BundledEmbedder())
    assert asked() == 2
    ingest([tmp_path / "docs"], "wear", tmp_path, BundledEmbedder())
    assert asked() == 2  # nothing had changed


def test_an_edited_rule_is_searched_anew(asked, tmp_path):
    asked()
    apply_rules(tmp_path, "wear", {"a.md#boot": read_rule({"contain_one_of": [["boot"]]})}, "test")
    assert asked() == 2


@pytest.mark.parametrize("name", ["structure.yaml", "synonyms.yaml", "keywords.json", "collections/wear/words.yaml"])
def test_an_edited_file_that_stages_read_is_searched_anew(asked, tmp_path, name):
    path = tmp_path / name
    path.write_text("{}")
    asked()
    assert asked() == 1
    path.write_text('{"a": {}}')
    assert asked() == 2


def test_another_endpoint_is_searched_anew(asked, monkeypatch):
    asked()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert asked() == 2


def test_clearing_makes_every_process_ask_anew_and_the_command_says_so(asked, tmp_path, capsys):
    asked()
    assert main(["cache", "clear", "--workspace", str(tmp_path), "--json"]) == 0
    assert asked() == 2
    key = key_of(["x"], tmp_path, ())
    clear_everywhere(tmp_path)
    assert key_of(["x"], tmp_path, ()) != key


def test_a_remembered_list_reads_on_as_a_fresh_one_does(asked, tmp_path):
    index, stage = open_index(tmp_path, "wear"), Dense(depth=1)
    pipeline = live(parse_pipeline([stage]), index)
    first, again = (remembered(QUERY, pipeline, index, tmp_path, lambda: pipeline(Candidates(QUERY))) for _ in range(2))
    assert first.reader is not again.reader
    assert again.reader.read(0, 5) == first.reader.read(0, 5)
    assert again.reader.fingerprint == first.reader.fingerprint


def test_other_processes_read_the_counts_that_were_noted(asked, tmp_path):
    asked()
    assert noted_counts(tmp_path).misses == 1
    assert noted_counts(tmp_path / "elsewhere") == CacheCounts()
