"""What the chart component sends and believes: all its scripts, and only answers of the right shape."""

import subprocess
import sys
from pathlib import Path

import pytest

from pages.components import cut_chart
from pages.components.cut_chart import ChartEvent

ROOT = Path(__file__).resolve().parents[3]


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


def test_the_first_chart_is_sent_before_pandas_is_imported():
    page = """
import sys
import streamlit as st
from pages.components import cut_chart
before = "pandas" in sys.modules
point = cut_chart.Point("a", 1, "A", 0.1, "relevant", 2, True, "kept", "")
data = cut_chart.ChartData((point,), ("a",), 1, "distance", "d", "d", (0.0, 1.0), 1.0, {}, {})
cut_chart.show(data, "chart")
st.text(f"{before} {'pandas' in sys.modules}")
"""
    code = (
        f"from streamlit.testing.v1 import AppTest\nprint(AppTest.from_string({page!r}).run(timeout=60).text[0].value)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"]
