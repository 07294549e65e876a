"""What the chart component sends and believes: all its scripts, and only answers of the right shape."""

import pytest

from pages.components import cut_chart
from pages.components.cut_chart import ChartEvent


def test_every_script_of_the_folder_is_part_of_the_component_and_the_rule_comes_first():
    assert set(cut_chart.SCRIPTS) == {path.name for path in cut_chart.FOLDER.glob("*.js")}
    assert cut_chart.SCRIPTS[0] == "cut.js"


@pytest.mark.parametrize(
    ("answer", "event"),
    [
        (None, ChartEvent()),
        ("words", ChartEvent()),
        ({"selected": "c1", "limits": None}, ChartEvent("c1")),
        ({"selected": 7, "limits": {"gap_threshold": 0.02}}, ChartEvent(None, {"gap_threshold": 0.02})),
        ({"limits": {"gap_threshold": "0.02", "distance_offset": True}}, ChartEvent()),
        ({"limits": [1, 2]}, ChartEvent()),
    ],
)
def test_an_answer_of_the_wrong_shape_is_as_if_nothing_had_happened(answer, event):
    assert cut_chart._event(answer) == event
