"""Word search: BM25 by hand, the tokens of rules, order and ties, and the file beside the collection."""

import math

import numpy as np
import pytest
from fakes import HashEmbedder
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_core.errors import InputError
from rag_core.index import lexical
from rag_core.index.collection import open_collection
from rag_core.index.handles import ingest_embedder, open_index
from rag_core.index.ingest import ingest_chunks
from rag_core.index.lexical import K1, B, LexicalReader, count_words, kept_counts, weighed
from rag_core.index.search import CollectionIndex
from rag_core.retrieve.dense import Dense
from rag_core.retrieve.hybrid import Hybrid
from rag_core.retrieve.lexical import Lexical
from rag_core.text import analysed, words
from rag_core.types import Candidates, Chunk, Metric, Order, Query

TABLES = [f"A cleric of level 7 hits armor class {number} on {16 - number}" for number in range(-3, 11)]


def reader_of(texts, query, allowed=None):
    chunks = [Chunk(f"c{number}", text=text) for number, text in enumerate(texts)]
    rows = {chunk.id: row for row, chunk in enumerate(chunks)}
    return LexicalReader(chunks, rows, weighed(count_words(texts)).scores(query), allowed, "f")


def test_scores_equal_the_formula_by_hand():
    texts = ["red red cap", "red hat", "a long coat of blue wool"]
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))  # "red" is in two of three
    mean = (3 + 2 + 6) / 3
    expected = [idf * tf / (tf + K1 * (1 - B + B * length / mean)) for tf, length in ((2, 3), (1, 2))]
    assert weighed(count_words(texts)).scores("RED") == pytest.approx([*expected, 0], rel=1e-6)


WORDS = st.sampled_from(["wizard", "wizards", "the", "of", "burn", "burning", "AC", "6", "10-13", "it's"])


@settings(deadline=None)
@given(
    st.lists(st.lists(WORDS, max_size=9).map(" ".join), min_size=1, max_size=12),
    st.lists(WORDS, max_size=6).map(" ".join),
    st.sampled_from(["plain", "english", "german"]),
    st.floats(0, 3),
    st.floats(0, 1),
)
def test_any_analyzer_and_weights_score_as_the_formula_over_its_terms(texts, query, analyzer, k1, b):
    terms = [[term for term in analysed(words(text), analyzer) if term] for text in texts]
    mean = sum(map(len, terms)) / len(terms) or 1.0
    expected = [0.0] * len(texts)
    for wanted in analysed(words(query), analyzer):
        holding = sum(wanted in some for some in terms)
        idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
        for row, some in enumerate(terms):
            if wanted and wanted in some:
                tf = some.count(wanted)
                expected[row] += idf * tf / (tf + k1 * (1 - b + b * len(some) / mean))
    found = weighed(count_words(texts), analyzer, k1, b).scores(query)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)


@settings(deadline=None)
@given(st.lists(st.text(), max_size=9))
def test_words_are_counted_as_they_are_read(texts):
    counted = count_words(texts)
    for row, text in enumerate(texts):
        for word, number in counted.vocabulary.items():
            some = slice(*counted.starts[number : number + 2])
            assert counted.counts[some][counted.rows[some] == row].sum() == words(text).count(word)
    assert set(counted.vocabulary) == {word for text in texts for word in words(text)}


@settings(deadline=None)
@given(st.lists(st.lists(WORDS, max_size=5).map(" ".join), max_size=9))
def test_counting_by_blocks_of_texts_counts_the_same(texts):
    whole = count_words(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexical, "TOGETHER", 2)
        parts = count_words(texts)
    assert parts.vocabulary == whole.vocabulary
    for name in ("starts", "rows", "counts"):
        assert getattr(parts, name).tolist() == getattr(whole, name).tolist()
    assert parts.rows.dtype == parts.counts.dtype == np.int32


def test_armor_class_6_is_found_by_its_number():
    (best, *_) = reader_of(TABLES, "armor class 6").read(0, 3)
    assert best.chunk.text.startswith("A cleric of level 7 hits armor class 6 ")


def test_a_sign_tells_two_numbers_apart():
    (best, *_) = reader_of(TABLES, "what about armor class -3?").read(0, 1)
    assert "class -3 " in best.chunk.text


def test_the_list_ends_where_no_word_is_shared_and_equal_scores_stand_by_id():
    reader = reader_of(["cap", "hat", "cap", "cap"], "a cap please")
    assert [hit.chunk.id for hit in reader.read(0, 9)] == ["c0", "c2", "c3"]
    assert reader.matching == 3


def test_a_query_of_unknown_words_finds_nothing():
    assert reader_of(["cap"], "zebra").read(0, 5) == ()


@pytest.mark.parametrize("texts", [[], [""], ["...", "- / -"]])
def test_texts_without_words_are_an_index_all_the_same(texts):
    assert weighed(count_words(texts)).scores("cap").tolist() == [0.0] * len(texts)


def test_conditions_keep_their_chunks_out():
    reader = reader_of(["cap", "cap", "cap"], "cap", np.array([True, False, True]))
    assert [hit.chunk.id for hit in reader.read(0, 9)] == ["c0", "c2"]


def test_reading_without_some_skips_them_and_keeps_the_ranks():
    reader = reader_of(["cap"] * 4, "cap")
    assert [(hit.chunk.id, hit.rank) for hit in reader.read_excluding(["c0", "c2", "other"], 2)] == [
        ("c1", 2),
        ("c3", 4),
    ]


@settings(deadline=None)
@given(st.lists(st.text("abcd ", max_size=9), max_size=30), st.text("abcde ", max_size=12))
def test_common_and_rare_words_add_up_to_the_same_numbers_in_the_order_of_the_query(texts, query):
    index = weighed(count_words(texts))
    for _ in range(2):  # the second time, common words are at hand
        expected = np.zeros(len(texts), dtype=np.float32)
        for word in query.split():
            number = index.terms.get(word)
            for place in range(*index.starts[number : number + 2]) if number is not None else ():
                expected[index.rows[place]] += index.data[place]
        assert index.scores(query).tobytes() == expected.tobytes()


@settings(deadline=None)
@given(st.lists(st.text("ab ", max_size=6), max_size=8), st.text("ab ", max_size=6), st.integers(1, 9))
def test_however_it_is_read_the_ranking_is_that_of_all_scores(texts, query, step):
    scores = weighed(count_words(texts)).scores(query)
    expected = [row for row in sorted(range(len(texts)), key=lambda row: (-scores[row], row)) if scores[row] > 0]
    reader, found = reader_of(texts, query), []
    while batch := reader.read(len(found), len(found) + step):
        found += batch
    assert [int(hit.chunk.id[1:]) for hit in found] == expected
    assert [hit.rank for hit in found] == list(range(1, len(found) + 1))


def test_the_index_is_kept_beside_the_collection_and_read_back_equal(tmp_path):
    built = kept_counts(TABLES, "one", tmp_path)
    read = kept_counts(TABLES, "one", tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    assert read.vocabulary == built.vocabulary
    assert weighed(read).scores("armor class 6").tolist() == weighed(built).scores("armor class 6").tolist()


def test_another_state_of_the_texts_takes_the_place_of_the_old_one(tmp_path):
    kept_counts(TABLES, "one", tmp_path)
    (first,) = tmp_path.iterdir()
    kept_counts(["cap"], "two", tmp_path)
    (second,) = tmp_path.iterdir()
    assert first.name != second.name


@pytest.mark.parametrize("damage", [b"", b"no archive at all", None])
def test_a_damaged_file_is_built_anew(tmp_path, damage):
    kept_counts(TABLES, "one", tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-200] if damage is None else damage)
    again = kept_counts(TABLES, "one", tmp_path)
    assert weighed(again).scores("cleric").all()
    assert kept_counts(TABLES, "one", tmp_path).vocabulary == again.vocabulary


def test_a_file_of_other_texts_is_not_believed(tmp_path):
    kept_counts(TABLES, "one", tmp_path)
    assert kept_counts(["cap"], "one", tmp_path).texts == 1


def test_a_folder_that_cannot_be_written_is_no_obstacle(tmp_path):
    assert kept_counts(["cap"], "one", tmp_path / "not there").vocabulary == {"cap": 0}


def chunks(*texts):
    return [Chunk(f"c{number}", title="Wear", text=text) for number, text in enumerate(texts)]


def test_a_collection_is_searched_by_words_and_follows_its_changes(tmp_path):
    ingest_chunks(chunks("red cap", "blue hat"), "wear", tmp_path, HashEmbedder())
    index = CollectionIndex(open_collection(tmp_path, "wear"), HashEmbedder(), tmp_path / "collections" / "wear")
    assert [hit.chunk.id for hit in index.lexical_reader("HAT").read(0, 5)] == ["c1"]
    ingest_chunks(chunks("red hat", "blue hat"), "wear", tmp_path, HashEmbedder())
    index = open_index(tmp_path, "wear", HashEmbedder())
    assert [hit.chunk.id for hit in index.lexical_reader("HAT").read(0, 5)] == ["c0", "c1"]


def test_titles_are_searched_too_and_files_and_metadata_are_conditions(tmp_path):
    some = [
        Chunk("a", title="Cap", text="red", metadata={"source": "x.md"}),
        Chunk("b", title="Cap", metadata={"source": "y.md"}),
    ]
    ingest_chunks(some, "wear", tmp_path, HashEmbedder())
    index = open_index(tmp_path, "wear", HashEmbedder())
    assert len(index.lexical_reader("cap").read(0, 5)) == 2
    assert [hit.chunk.id for hit in index.lexical_reader("cap", {"source": "y.md"}).read(0, 5)] == ["b"]
    assert [hit.chunk.id for hit in index.lexical_reader("cap", None, "x.*").read(0, 5)] == ["a"]


def test_distances_come_from_the_stored_vectors(tmp_path):
    ingest_chunks(chunks("red cap", "blue hat"), "wear", tmp_path, HashEmbedder())
    index = open_index(tmp_path, "wear", HashEmbedder())
    nearest = {hit.chunk.id: hit.distance for hit in index.reader("q").read(0, 2)}
    assert index.distances_of("q", ["c1", "c0", "gone"]) == {"c1": nearest["c1"], "c0": nearest["c0"]}


def test_a_collection_of_words_alone_is_searched_by_words_and_embedded_later(tmp_path):
    report = ingest_chunks(chunks("red cap", "blue hat"), "wear", tmp_path, ingest_embedder(tmp_path, "wear", "none"))
    assert (report.model, report.chunks) == ("none", 2)
    index = open_index(tmp_path, "wear")
    found = Lexical(index=index)(Candidates(Query("q", "a hat")))
    assert [(hit.chunk.id, hit.distance) for hit in found.hits] == [("c1", None)]
    assert (found.metric, found.order, found.fallbacks) == (Metric.UNKNOWN, Order.DISTANCE, ())
    for source in (Dense(index=index), Hybrid(index=index)):
        with pytest.raises(InputError, match="collection wear holds words alone, expected a search by words"):
            source(Candidates(Query("q", "a hat")))
    assert ingest_embedder(tmp_path, "wear").name == "none"
    ingest_chunks(chunks("red cap", "blue hat", "boot"), "wear", tmp_path, HashEmbedder())
    assert len(open_index(tmp_path, "wear", HashEmbedder()).reader("q").read(0, 5)) == 3


def test_the_first_word_search_reads_what_the_ingest_counted(tmp_path, monkeypatch):
    ingest_chunks(chunks("red cap", "blue hat"), "wear", tmp_path, HashEmbedder())
    monkeypatch.setattr("rag_core.index.lexical.count_words", lambda *_: pytest.fail("counted again"))
    index = open_index(tmp_path, "wear", HashEmbedder())
    assert [hit.chunk.id for hit in index.lexical_reader("hats", analyzer="english").read(0, 5)] == ["c1"]
