"""What Tune's chart is sent: the front with the baseline and the choice, held-out points only after a look."""

import pytest

from pages.components.plane_chart import chart_data
from pages.components.tuning import Ask, study
from pages.components.tuning_choice import Seen
from pages.components.tuning_points import Point
from rag_core.tune.tune import values_of
from tests import planted


@pytest.fixture(scope="module")
def made():
    return study(planted.planted_gap(1, 30, noise=0.1), Ask(), 1)


def test_the_front_has_baseline_and_choice_as_the_plain_pipeline_gives_them(made):
    signs = chart_data(made, made.best, ("x", []))["front"]["signs"]
    assert [(one["kind"], one["heldOut"]) for one in signs] == [("baseline", False), ("chosen", False)]
    for sign, pipeline in zip(signs, (made.choice.baseline, made.choice.pipeline), strict=True):
        values = values_of(made.dev, pipeline, "SetR")
        assert sign["SetR"] == pytest.approx(sum(values) / len(values))


def test_no_point_of_the_front_is_beaten_and_every_fixed_k_is_there(made):
    front = chart_data(made, made.best, ("x", []))["front"]
    plane = [(recall, precision) for recall, precision, _ in front["plane"]]
    assert plane == sorted(plane)
    assert [precision for _, precision in plane] == sorted((one for _, one in plane), reverse=True)
    assert [words for *_, words in front["fixed"]][:2] == ["fixed k 1", "fixed k 2"]


def test_held_out_points_come_with_their_intervals(made):
    seen = Seen(None, ((Point("chosen setting", 0.5, 0.6, 0.55, 4, 9), (0.4, 0.6), None),))
    last = chart_data(made, made.best, ("x", []), seen)["front"]["signs"][-1]
    assert (last["heldOut"], last["kind"], last["precision"], last["recall"]) == (True, "chosen", (0.4, 0.6), None)
