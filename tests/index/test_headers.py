"""The header index: exact and misspelt titles, lists of titles with commas and apostrophes, and that a loop agrees."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rapidfuzz import fuzz

from benchmarks.parts import real_lists
from rag_core.index.headers import HeaderIndex, unquoted
from rag_core.text import fold
from rag_core.types import Chunk

TITLES = [
    "Movement: Minimum move stat",
    "Counteract",
    "'Ere We Go",
    "T'au",
    "Woodson, Arkansas",
    "Woodson",
    "Crosby, Stills, Nash & Young",
    "Light barricade",
    "Hot",
]


def index_of(*titles):
    return HeaderIndex(Chunk(f"c{at}", title=title) for at, title in enumerate(titles))


def listed(text, *titles):
    """(header or title, score) of each; a title that is no header has no score."""
    found = index_of(*(titles or TITLES)).titles_in(text)
    return [(match.header, round(match.score, 4)) if match else (title, None) for title, match in found]


def test_the_three_titles_of_the_specification():
    found = listed("'Movement: Minimum move stat', COUNTERACT, Cover rules")
    assert found == [("Movement: Minimum move stat", 0.99), ("Counteract", 0.99), ("Cover rules", None)]


def test_a_title_with_commas_is_one_title_before_commas_split():
    """The original split at every comma, so that such titles were never found."""
    assert listed("Hot, Crosby, Stills, Nash & Young, T'au") == [
        ("Hot", 0.99),
        ("Crosby, Stills, Nash & Young", 0.99),
        ("T'au", 0.99),
    ]
    assert listed("Woodson, Arkansas") == [("Woodson, Arkansas", 0.99)]


def test_two_titles_are_not_taken_for_one_long_misspelt_one():
    assert listed("Movement: Minimum move stat, Hot") == [("Movement: Minimum move stat", 0.99), ("Hot", 0.99)]
    assert listed("Movement: Minimum mov stat, Hot")[1] == ("Hot", 0.99)


@pytest.mark.parametrize(
    "text", ["'Ere We Go", "''Ere We Go'", '"\'Ere We Go"', "\u201c'Ere We Go\u201d", "`'Ere We Go`"]
)
def test_apostrophes_inside_a_name_survive_and_quotes_around_it_go(text):
    """The original took out every apostrophe, which broke such names."""
    assert listed(text) == [("'Ere We Go", 0.99)]
    assert listed(text.replace("'Ere We Go", "T'au")) == [("T'au", 0.99)]


@pytest.mark.parametrize(
    ("text", "bare"),
    [("'a'", "a"), ("'a", "'a"), ("a'", "a'"), ("''", "''"), ("\"a'", "\"a'"), (" 'a b' ", "a b"), ("T'au'", "T'au'")],
)
def test_only_matching_outer_quotes_are_stripped(text, bare):
    assert unquoted(text) == bare


def test_a_misspelt_title_is_found_at_85_and_not_below():
    assert fuzz.ratio("abcdefghij", "abcdefghix") == 90
    assert listed("ABCDEFGHIX", "abcdefghij") == [("abcdefghij", 0.89)]
    assert fuzz.ratio("abcdef", "abcdex") < 85
    assert listed("abcdex", "abcdef") == [("abcdex", None)]


def test_lines_bullets_and_quoted_pieces_are_titles_each_once():
    assert listed("- Hot\n2. counteract\n* HOT") == [("Hot", 0.99), ("Counteract", 0.99)]
    assert listed('"x, y", z') == [("x, y", None), ("z", None)]


@pytest.mark.parametrize("text", ["", " , ,", "\n", "''"])
def test_a_list_without_titles_is_empty_or_has_no_header(text):
    assert all(score is None for _, score in listed(text))


def test_a_long_list_is_cut_and_does_no_harm():
    assert len(listed(", ".join(f"no header {at}" for at in range(500)))) == 30


def test_every_chunk_of_a_header_comes_with_its_score():
    index = HeaderIndex([Chunk("a", title="Hot"), Chunk("b", title="HOT"), Chunk("c", metadata={"header": "Cold"})])
    (match, cold) = index.find(["hot", "cold"])
    assert [(hit.chunk.id, hit.scores["score"]) for hit in index.hits_of(match)] == [("a", 0.99), ("b", 0.99)]
    assert [hit.chunk.id for hit in index.hits_of(cold)] == ["c"]
    assert len(index) == 2


def test_without_headers_nothing_is_found():
    assert HeaderIndex([Chunk("a")]).titles_in("Hot") == [("Hot", None)]


WORDS = st.text("abc ,'", min_size=1, max_size=12)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(WORDS, max_size=8), st.lists(WORDS, max_size=6), st.sampled_from([60, 85, 100]))
def test_looking_up_many_at_once_equals_a_loop_over_pairs(headers, titles, threshold):
    def key(text):
        return " ".join(fold(text).split())

    known = list(dict.fromkeys(key(header) for header in headers if key(header.strip())))
    for title, match in zip(titles, index_of(*headers).find(titles, threshold), strict=True):
        ratios = [fuzz.ratio(key(title), header) for header in known]
        best = max(ratios, default=0)
        if best < threshold or not best:
            assert match is None
        else:
            assert (key(match.header), match.ratio) == (known[ratios.index(best)], pytest.approx(best))


@pytest.mark.skipif(not real_lists.DATA.is_dir(), reason="needs the public collections (WINNOW_SHARED)")
def test_every_title_of_a_public_collection_is_found_in_any_case_and_beside_another():
    titles = list(real_lists.hotpotqa().documents)
    index = index_of(*titles)
    assert sum("," in title for title in titles) > 20
    assert sum("'" in title for title in titles) > 20
    lost = []
    for first, second in zip(titles, titles[1:] + titles[:1], strict=True):
        found = [match.header for _, match in index.titles_in(f"'{first.upper()}', {second}") if match]
        if [fold(one) for one in found] != [fold(first), fold(second)]:
            lost.append((first, second, found))
    assert lost == []
