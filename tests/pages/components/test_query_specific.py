"""query_specific in Explore's link, its chart and its pipeline."""

import json

import pytest

from pages.components.view import View, from_address, pipeline_of, to_address

SPECIFIC, BROAD = "What is a beholder?", "Tell me about monsters"


def test_a_link_keeps_it():
    view = View(query_id="q", adaptive_on=True, query_specific=True)
    address = to_address(view)
    assert json.loads(address["pipeline"]) == [{"AdaptiveGap": {"query_specific": True}}]
    assert from_address(address) == view


def test_a_view_without_it_has_the_link_it_had():
    assert json.loads(to_address(View(adaptive_on=True))["pipeline"]) == ["AdaptiveGap"]


def test_the_pipeline_has_it_and_the_threshold_that_is_set():
    stage = pipeline_of(View(adaptive_on=True, query_specific=True)).stages[0]
    assert (stage.query_specific, stage.gap_threshold) == (True, 0.1)


def test_the_chart_cuts_by_the_threshold_of_the_question():
    view = View(query_specific=True)
    assert view.adaptive_for(SPECIFIC)["gap_threshold"] == pytest.approx(0.05)
    assert view.adaptive_for(BROAD)["gap_threshold"] == pytest.approx(0.15)
    assert View().adaptive_for(BROAD)["gap_threshold"] == 0.1
