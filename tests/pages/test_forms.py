"""One form for any stage: untouched it gives the stage back, touched a changed one, and what it refuses stays typed."""

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from rag_core.errors import WinnowError
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cutoff import TopK
from rag_core.filters.learned import FEATURES
from rag_core.retrieve.dense import Dense
from rag_core.retrieve.hybrid import Hybrid
from rag_core.retrieve.requery import Requery
from rag_core.spec import STAGES, stage_class

PARAMETERS = {"features": list(FEATURES), "intercept": 0.25} | {
    name: [0.1 + at for at in range(len(FEATURES))] for name in ("mean", "scale", "weights")
}
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
NUMBERS = {
    "int": lambda low, high: st.integers(0 if low is None else low, 10_000 if high is None else high),
    "float": lambda low, high: st.floats(0 if low is None else low, 1e6 if high is None else high),
}


def page():
    import streamlit as st

    from pages.forms import stage_form

    state = st.session_state
    state["left"] = stage_form(state["stage"], "form")
    if state["adopts"]:
        state["stage"] = state["left"]


def opened(stage, *, adopts=True):
    """The form of a stage on a page that takes what the form leaves."""
    app = AppTest.from_function(page)
    app.session_state["stage"], app.session_state["adopts"] = stage, adopts
    app.run()
    assert not app.exception
    return app


def left(app):
    return app.session_state["left"]


def values_of(row):
    """Random values of one setting, of every kind there is."""
    if row.nested is not None:
        return stages_of(row.nested)
    if row.numeric:
        found = NUMBERS[row.kind](row.low, row.high)
    elif row.kind == "bool":
        found = st.booleans()
    elif row.choices:
        found = st.sampled_from(row.choices)
    elif row.kind.startswith("tuple"):
        found = st.tuples(st.floats(0, 9), st.floats(0.001, 9))
    elif row.kind.startswith("Mapping"):
        where = st.dictionaries(TEXT, TEXT | st.lists(TEXT, max_size=3), max_size=3)
        found = st.just(PARAMETERS) if row.name == "parameters" else where
    else:
        found = st.sampled_from(["terse", "cautious"]) if row.name == "variant" else TEXT
    return st.none() | found if row.optional else found


@st.composite
def stages_of(draw, cls):
    made = {row.name: draw(values_of(row)) for row in cls.declared()}
    try:
        return cls(**made)
    except WinnowError:
        assume(False)


@pytest.mark.parametrize("name", sorted(STAGES))
@settings(max_examples=5, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data())
def test_untouched_a_form_gives_the_very_stage_back(name, data):
    stage = data.draw(stages_of(stage_class(name)))
    app = opened(stage)
    assert left(app) is stage
    assert left(app.run()) is stage
    helps = [box.help for kind in (app.number_input, app.slider, app.selectbox, app.toggle) for box in kind]
    assert all(helps)
    assert not app.main.markdown or not any("stays as it was" in one.value for one in app.markdown)


def test_what_matters_first_stands_on_top_and_the_rest_is_folded():
    app = opened(AdaptiveGap())
    folded = [box.label for box in app.expander[0].number_input]
    assert folded[0] == "relative offset (of the span)"
    assert [box.label for box in app.expander[0].selectbox] == ["gap policy", "score kind"]
    assert len(app.number_input) == 4 + len(folded)  # what matters first: gap, offset, least and most


def test_a_changed_box_changes_the_stage_and_nothing_else():
    app = opened(AdaptiveGap(distance_offset=1 / 3))
    app.number_input(key="form.gap_threshold.number").set_value(0.07).run()
    assert left(app) == AdaptiveGap(gap_threshold=0.07, distance_offset=1 / 3)


def test_what_cannot_be_taken_is_refused_in_one_sentence_and_stays_typed():
    app = opened(AdaptiveGap())
    box = app.number_input(key="form.min_results.number").set_value(40).run()
    assert left(app) == AdaptiveGap()
    assert "AdaptiveGap.min_results is 40" in app.text[0].value
    box = app.number_input(key="form.min_results.number")
    assert box.value == 40
    app.number_input(key="form.max_results.number").set_value(50).run()
    assert left(app) == AdaptiveGap(min_results=40, max_results=50)
    assert not app.text


@pytest.mark.parametrize("typed", ["a list", "[1, 2]", "type: rule: two", "{"])
def test_a_mapping_that_is_none_is_refused(typed):
    app = opened(Dense())
    app.text_area(key="form.where").set_value(typed).run()
    assert left(app) == Dense()
    assert len(app.text) == 1
    assert app.text_area(key="form.where").value == typed
    app.text_area(key="form.where").set_value("type: rule").run()
    assert left(app) == Dense(where={"type": "rule"})
    app.text_area(key="form.where").set_value("").run()
    assert left(app) == Dense()


def test_numbers_are_typed_in_a_row():
    app = opened(Hybrid())
    app.text_input(key="form.weights").set_value("2, 1").run()
    assert left(app) == Hybrid(weights=(2.0, 1.0))
    app.text_input(key="form.weights").set_value("two").run()
    assert left(app) == Hybrid(weights=(2.0, 1.0))
    assert "expected numbers" in app.text[0].value


def test_a_stage_within_a_stage_has_its_own_boxes():
    app = opened(Requery())
    app.selectbox(key="form.rules.mode").set_value("substring").run()
    assert left(app) == Requery(rules={"mode": "substring"})


def test_what_the_class_chose_follows_what_it_was_chosen_by():
    app = opened(AdaptiveGap())
    app.selectbox(key="form.gap_policy").set_value("relative").run()
    assert left(app) == AdaptiveGap(gap_policy="relative")
    assert app.run().number_input(key="form.gap_threshold.number").value == 0.25
    assert left(app) == AdaptiveGap(gap_policy="relative")


def test_a_stage_that_changed_elsewhere_is_shown_as_it_came():
    app = opened(TopK(k=9))
    app.number_input(key="form.k.number").set_value(3).run()
    assert left(app) == TopK(k=3)
    app.session_state["stage"] = TopK(k=9)
    app.run()
    assert left(app) == TopK(k=9)
    assert app.number_input(key="form.k.number").value == 9


def test_a_form_whose_stage_is_not_taken_up_shows_the_stage_again():
    app = opened(TopK(k=9), adopts=False)
    app.number_input(key="form.k.number").set_value(3).run()
    assert left(app) == TopK(k=3)
    assert app.run().number_input(key="form.k.number").value == 9
