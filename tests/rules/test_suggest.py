"""Families that crowd result lists, with hand-counted shares, and coverage."""

import pytest

from rag_core.rules.siblings import coverage, families_of, suggest
from rag_core.types import Candidates, Case, Chunk, Hit, Query, chunks_in

TABLES = [Chunk(f"t{n}", f"Attack matrix for thieves - armor class {n}") for n in range(5)]
SPELLS = [Chunk(f"s{n}", f"Spell list of tier {n}", query_must={"contain": f"tier {n}"}) for n in range(3)]
OTHERS = [Chunk("strength", "Strength"), Chunk("", "", "Notes on torches\nand more")]
CORPUS = [*TABLES, *SPELLS, *OTHERS]


def case(name, chunks, **grades):
    hits = tuple(Hit(chunk, rank, {"distance": rank / 10}) for rank, chunk in enumerate(chunks, 1))
    query = Query(name, name)
    return Case(query, grades, Candidates(query, hits, recorded=True))


def test_share_crowding_and_lists_are_counted_over_the_first_k_places():
    cases = [
        case("one", [TABLES[0], TABLES[1], OTHERS[0], TABLES[2]], t1=3),
        case("two", [OTHERS[0], TABLES[3], SPELLS[0], SPELLS[1]], s0=0),
    ]
    tables, spells = suggest(CORPUS, cases, k=3)
    assert (tables.template, tables.chunks) == ("combat-thieves", tuple(chunk.id for chunk in TABLES))
    assert tables.share == pytest.approx(3 / 6)  # ranks 1 and 2 of the first list, 2 of the second
    assert tables.crowding == pytest.approx(2 / 6)  # t1 is labelled relevant
    assert (tables.lists, tables.most, tables.with_rule) == (2, 2, 0)
    assert (spells.share, spells.crowding, spells.lists) == (1 / 6, 1 / 6, 1)
    assert (spells.with_rule, spells.template) == (3, "")


def test_without_lists_the_largest_family_comes_first():
    assert [len(crowd.chunks) for crowd in suggest(CORPUS)] == [5, 3]


def test_a_chunk_without_a_title_goes_by_its_first_line():
    chunks = [Chunk(f"n{n}", "", f"Price list of region {n}\nbread 1") for n in range(3)]
    (crowd,) = suggest(chunks)
    assert crowd.examples == ("Price list of region 0", "Price list of region 1", "Price list of region 2")


def test_the_corpus_of_captures_is_their_different_chunks():
    cases = [case("one", TABLES[:2]), case("two", TABLES[1:3]), Case(Query("live", "live"))]
    assert [chunk.id for chunk in chunks_in(cases).values()] == ["t0", "t1", "t2"]


def test_coverage_counts_rules_by_family():
    chunks = [*CORPUS, Chunk("bad", "Bad", query_must="{")]
    found = coverage(chunks, suggest(chunks))
    assert (found.chunks, found.with_rule, found.unreadable) == (11, 3, 1)
    assert [(size, ruled) for _, size, ruled in found.families] == [(5, 0), (3, 3)]


def test_families_that_are_at_hand_give_what_families_found_anew_give():
    cases, named = [case("one", [TABLES[0], OTHERS[0], SPELLS[1]], t0=1)], families_of(CORPUS)
    assert suggest(CORPUS, cases, named=named) == suggest(CORPUS, cases)
    assert suggest(CORPUS, cases, named={}) == ()
