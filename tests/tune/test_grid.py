"""The grammar of grids."""

import numpy as np
import pytest

from rag_core.errors import InputError, SpecError
from rag_core.spec import parse_pipeline
from rag_core.tune.grid import parse_grid, pipeline_at


def test_a_range_has_both_ends_and_a_choice_its_words():
    gap, policy = parse_grid("gap_threshold=0.01:0.3:60, gap_policy=largest|first", "AdaptiveGap")
    assert gap.values == pytest.approx(np.linspace(0.01, 0.3, 60), abs=1e-12)
    assert (gap.values[0], gap.values[-1]) == (0.01, 0.3)
    assert (policy.name, policy.stage, policy.values) == ("gap_policy", "AdaptiveGap", ("largest", "first"))


def test_whole_number_settings_get_whole_numbers():
    (axis,) = parse_grid("k=1:15:15", "TopK")
    assert axis.values == tuple(range(1, 16))
    assert all(isinstance(value, int) for value in axis.values)


def test_another_stage_and_a_switch_are_named_with_a_capital():
    mode, switch = parse_grid("QueryMust.mode=token|substring,QueryMust=on|off", "AdaptiveGap")
    assert (mode.stage, mode.setting) == ("QueryMust", "mode")
    assert (switch.stage, switch.setting, switch.values) == ("QueryMust", "", (True, False))


def test_a_default_threshold_follows_a_policy_of_the_grid_and_a_set_one_stays():
    (axis,) = parse_grid("gap_policy=relative", "AdaptiveGap")
    default = pipeline_at(parse_pipeline(["AdaptiveGap"]), [(axis, "relative")])
    chosen = pipeline_at(parse_pipeline([{"AdaptiveGap": {"gap_threshold": 0.3}}]), [(axis, "relative")])
    assert [default.stages[0].gap_threshold, chosen.stages[0].gap_threshold] == [0.25, 0.3]


@pytest.mark.parametrize(
    ("grid", "says"),
    [
        ("gap_threshold", "low:high:count"),
        ("gap_threshold=0.1:0.2", "low:high:count"),
        ("gap_threshold=a:b:3", "low:high:count"),
        ("gap_threshold=0.1:0.2:1", "at least 2"),
        ("gap_threshold=0.1:0.2:2.5", "at least 2"),
        ("gap_width=0.1", "unknown setting 'gap_width' of AdaptiveGap, expected one of gap_threshold"),
        ("max_results=1:4:3", "whole numbers"),
        ("gap_threshold=0.1,gap_threshold=0.2", "more than once"),
        ("gap_threshold=0:1:2000,distance_offset=0:1:2000", "4,000,000 settings"),
        ("QueryMust=yes", "on, off"),
        ("Magic=on", "unknown stage"),
        ("", "low:high:count"),
    ],
)
def test_a_grid_that_cannot_be_read_is_refused_by_name(grid, says):
    with pytest.raises(InputError, match=says):
        parse_grid(grid, "AdaptiveGap")


def test_a_value_out_of_range_is_refused_by_the_stage():
    (axis,) = parse_grid("k=0", "TopK")
    with pytest.raises(SpecError, match=r"TopK\.k is 0"):
        pipeline_at(parse_pipeline(["TopK"]), [(axis, 0)])
