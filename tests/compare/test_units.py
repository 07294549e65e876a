import pytest

from rag_core.compare.compare import query_units, shared_run, unit_scores, units_of
from rag_core.filters.cutoff import TopK
from rag_core.measure.experiment import run_all
from rag_core.stage import Pipeline
from rag_core.types import Candidates, Case, Chunk, Hit, Query

LINE = "the knight may charge once per battle if the way before him is clear and his horse is not tired"
WORDS = LINE.split()


def window(start, stop):
    return " ".join(WORDS[start:stop])


def units(*texts):
    found = units_of(Chunk(f"c{at}", text=text) for at, text in enumerate(texts))
    return [found.get(f"c{at}") for at in range(len(texts))]


def test_the_same_text_is_one_unit():
    assert units(LINE, "wolves hunt in packs", LINE + ".") == ["c0", "c1", "c0"]


def test_windows_that_share_half_are_one_unit():
    assert units(window(0, 16), window(8, 20)) == ["c0", "c0"]  # 8 of the 12 words of the second


def test_windows_that_share_less_are_two():
    assert units(window(0, 12), window(9, 20)) == ["c0", "c1"]


def test_a_chain_of_windows_is_not_one_unit():
    words = [f"word{chr(97 + at // 26)}{chr(97 + at % 26)}" for at in range(60)]
    texts = [" ".join(words[start : start + 20]) for start in (0, 10, 20, 30, 40)]
    assert units(*texts) == ["c0", "c0", "c2", "c2", "c4"]


def test_a_part_that_stands_whole_in_another_belongs_to_it():
    assert units(LINE, window(4, 13)) == ["c0", "c0"]


def test_tables_that_differ_in_one_number_are_two():
    table = "fighters of level {} hit armor class four on a roll of twelve or more with a sword in hand"
    assert units(table.format(3), table.format(4)) == ["c0", "c1"]


def test_chunks_without_text_stay_alone():
    assert units("", "", LINE) == [None, None, "c2"]


def test_shared_run_by_hand():
    assert shared_run(WORDS[:10], WORDS[2:14]) == pytest.approx(0.8)
    assert shared_run(WORDS[:4], WORDS[:4]) == 0  # a heading makes no unit


def outcome_of(texts, grades, k, total=None):
    query = Query("q", "x")
    hits = tuple(Hit(Chunk(f"c{at}", text=text), at + 1, {"distance": at / 10}) for at, text in enumerate(texts))
    case = Case(query, grades, Candidates(query, hits, recorded=True), total)
    return [report.outcomes[0] for report in run_all([case], [Pipeline((TopK(k),)), Pipeline(())])]


def test_three_copies_are_no_threefold_success():
    kept, everything = outcome_of(
        [LINE, LINE, LINE, "wolves hunt in packs of nine"], {"c0": 1, "c1": 1, "c2": 1, "c3": 1}, 3
    )
    found = query_units([kept, everything])
    assert kept.scores.values["SetR"] == pytest.approx(3 / 4)
    by_unit = unit_scores(kept, found)
    assert (by_unit.values["SetR"], by_unit.values["SetP"], by_unit.kept) == (0.5, 1, 1)


def test_a_unit_is_as_good_as_its_best_chunk_and_judged_where_one_is():
    kept, everything = outcome_of([LINE, LINE], {"c1": 2}, 1)
    by_unit = unit_scores(kept, query_units([kept, everything]))
    assert (by_unit.values["SetF"], by_unit.judged) == (1, 1)


def test_relevant_chunks_that_are_known_only_by_count_are_units_of_their_own():
    kept, everything = outcome_of([LINE, LINE], {"c0": 1, "c1": 1}, 2, total=5)
    assert unit_scores(kept, query_units([kept, everything])).relevant_total == 4


def test_without_repetitions_both_views_agree():
    kept, everything = outcome_of([LINE, "wolves hunt in packs", "a mule carries much"], {"c0": 1, "c2": 1}, 2)
    assert unit_scores(kept, query_units([kept, everything])) == kept.scores
