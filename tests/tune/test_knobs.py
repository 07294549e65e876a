import numpy as np

from rag_core.eval_sets.reading import load_set
from rag_core.spec import parse_pipeline
from rag_core.tune.knobs import knob, knobs
from tests import planted

CUT = parse_pipeline(["AdaptiveGap"])


def threshold(name):
    return knob(load_set(name).cases, CUT, "AdaptiveGap", "gap_threshold", 0.05, 0.15)


def test_gap_thresholds_from_005_to_015_change_one_of_the_seven_short_lists_and_no_recorded_one():
    short, recorded = threshold("adaptive-short"), threshold("recorded-combat")
    assert (short.changed, len(short.kept_sets)) == (1, 7)
    assert (recorded.changed, len(recorded.kept_sets)) == (0, 3)
    assert recorded.sentence() == "gap_threshold 0.05 to 0.15 changes nothing on any of 3 queries"
    assert short.share == 1 / 7


def test_change_points_find_what_a_fine_grid_finds():
    cases = planted.planted_gap(2, 12, noise=0.2)
    for setting, low, high in [("gap_threshold", 0.0, 0.2), ("distance_offset", 0.0, 0.7), ("max_results", 1, 15)]:
        pipeline = parse_pipeline([{"AdaptiveGap": {"min_results": 1, "gap_threshold": 0.15}}])
        found = knob(cases, pipeline, "AdaptiveGap", setting, low, high)
        for case in cases:
            values = np.linspace(low, high, 400) if setting != "max_results" else range(1, 16)
            lengths = {
                len(
                    parse_pipeline([{"AdaptiveGap": {"min_results": 1, "gap_threshold": 0.15, setting: value}}])(
                        case.candidates
                    ).hits
                )
                for value in values
            }
            assert found.kept_sets[case.query.id] >= len(lengths)


def test_every_knob_of_the_stages_is_looked_at():
    pipeline = parse_pipeline([{"MinSimilarity": {"min_relevance": 0.3}}, {"TopK": {"k": 5}}])
    found = knobs(planted.planted_gap(1, 5), pipeline)
    assert [(one.stage, one.setting) for one in found] == [("MinSimilarity", "min_relevance"), ("TopK", "k")]
    assert found[1].changed == 5


def test_a_knob_is_turned_behind_what_stands_in_front():
    cases = planted.planted_gap(1, 5)
    pipeline = parse_pipeline([{"TopK": {"k": 1}}, "AdaptiveGap"])
    assert knob(cases, pipeline, "AdaptiveGap", "distance_offset", 0, 1).changed == 0
