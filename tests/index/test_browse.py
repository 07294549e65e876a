"""Looking into a collection: pages, filters, one chunk, and the numbers of all."""

import pytest
from fakes import HashEmbedder

from rag_core.errors import InputError, StoreError
from rag_core.index.browse import Wanted, chunk_of, overview, overview_of, page_among, page_of
from rag_core.index.ingest import ingest, ingest_chunks
from rag_core.types import Chunk

RULE = {"contain_one_of": [["ork"]]}
CHUNKS = [
    Chunk("a", "Alpha", "one two three", "spell", query_must=RULE),
    Chunk("b", "Beta", "ÄRGER 100%_\\ done", "spell"),
    Chunk("c", "Gamma", "same words", "rule"),
    Chunk("d", "Gamma", "same words", ""),
    Chunk("e", "Long", " ".join(["word"] * 60), ""),
]


@pytest.fixture
def workspace(tmp_path):
    ingest_chunks(CHUNKS, "shelf", tmp_path, HashEmbedder())
    return tmp_path


def found(workspace, start=0, count=50, **wanted):
    total, lines = page_of(workspace, "shelf", Wanted(**wanted), start, count)
    return total, [line.id for line in lines]


def test_pages_follow_the_ids_and_say_how_many_there_are(workspace):
    assert found(workspace, 0, 2) == (5, ["a", "b"])
    assert found(workspace, 4, 2) == (5, ["e"])
    assert found(workspace, 9, 2) == (5, [])


def test_a_line_has_facts_but_no_text(workspace):
    _, (line,) = page_of(workspace, "shelf", Wanted("alpha"), 0, 5)
    assert (line.title, line.type, line.tokens, line.characters, line.has_rule) == ("Alpha", "spell", 4, 13, 1)
    assert not hasattr(line, "text")


@pytest.mark.parametrize(
    ("text", "ids"),
    [("TWO", ["a"]), ("ärger", ["b"]), ("100%", ["b"]), ("%_\\", ["b"]), ("%", ["b"]), ("'; DROP TABLE chunk", [])],
)
def test_what_is_typed_is_looked_for_as_it_stands_in_any_case(workspace, text, ids):
    assert found(workspace, text=text) == (len(ids), ids)


def test_type_and_text_narrow_together_and_the_empty_type_is_one(workspace):
    assert found(workspace, type="spell") == (2, ["a", "b"])
    assert found(workspace, type="") == (2, ["d", "e"])
    assert found(workspace, type="", text="same") == (1, ["d"])


def test_a_document_narrows_to_its_chunks(tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.md").write_text(f"## {name}\ntext")
    ingest([tmp_path], "shelf", tmp_path / "w", HashEmbedder())
    document = str((tmp_path / "two.md").resolve())
    assert list(overview(tmp_path / "w", "shelf").documents.values()) == [1, 1]
    total, (line,) = page_of(tmp_path / "w", "shelf", Wanted(document=document), 0, 5)
    assert (total, line.title) == (1, "two")


def test_one_chunk_comes_whole(workspace):
    row = chunk_of(workspace, "shelf", "a")
    assert (row.chunk.text, row.chunk.query_must) == ("one two three", RULE)
    with pytest.raises(InputError, match="has no chunk 'z'"):
        chunk_of(workspace, "shelf", "z")


def test_the_overview_counts_by_type_with_rules(workspace):
    groups = {group.type: (group.chunks, group.with_rule) for group in overview(workspace, "shelf").groups}
    assert groups == {"spell": (2, 1), "": (2, 0), "rule": (1, 0)}


def test_lengths_are_tokens_of_title_and_text(workspace):
    seen = overview(workspace, "shelf")
    assert (seen.shortest, seen.median, seen.longest) == (3, 4, 61)
    assert (seen.window, seen.too_long) == (50, 1)
    assert (seen.bin_width, sum(count for _, count in seen.lengths)) == (3, 5)
    assert dict(seen.lengths) == {3: 4, 60: 1}


def test_chunks_with_the_same_title_and_text_are_duplicates(workspace):
    seen = overview(workspace, "shelf")
    assert (seen.duplicated, seen.duplicates) == (1, (("c", "d"),))


def test_a_collection_that_is_not_there_is_a_store_error(tmp_path):
    with pytest.raises(StoreError, match="shelf is not there"):
        overview(tmp_path, "shelf")


@pytest.mark.parametrize(
    "wanted", [Wanted(), Wanted("SAME"), Wanted(type="spell"), Wanted("ärger", "spell"), Wanted(order="title"),
               Wanted(order="rules"), Wanted("no such text")],
)  # fmt: skip
def test_chunks_in_memory_are_paged_as_those_of_a_file(workspace, wanted):
    for start, count in ((0, 50), (1, 2), (9, 2)):
        total, lines = page_of(workspace, "shelf", wanted, start, count)
        same, others = page_among(CHUNKS, wanted, start, count)
        assert (same, [one.id for one in others]) == (total, [one.id for one in lines])
        facts = [[(one.title, one.type, one.has_rule, one.begins) for one in some] for some in (lines, others)]
        assert facts[0] == facts[1]


def test_a_list_is_ordered_by_length_on_request(workspace):
    assert found(workspace, order="longest")[1][0] == "e"
    assert found(workspace, order="shortest")[1][-1] == "e"
    assert [one.id for one in page_among(CHUNKS, Wanted(order="longest"), 0, 1)[1]] == ["e"]


def test_the_numbers_of_chunks_in_memory_are_those_of_a_file_but_for_lengths(workspace):
    kept, memory = overview(workspace, "shelf"), overview_of(CHUNKS)
    assert (memory.chunks, memory.duplicates, memory.duplicated) == (kept.chunks, kept.duplicates, kept.duplicated)
    assert {(one.type, one.chunks, one.rules) for one in memory.groups} == {
        (one.type, one.chunks, one.rules) for one in kept.groups
    }
    assert sum(count for _, count in memory.lengths) == memory.chunks
    assert (memory.longest, memory.unit, overview_of([]).chunks) == (
        max(len(one.text) for one in CHUNKS),
        "characters",
        0,
    )
