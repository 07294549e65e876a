"""The state of the app: address → state → address, and any pipeline as an entry of it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages import state
from rag_core.errors import InputError
from rag_core.spec import dump_pipeline, parse_pipeline, read_pipeline, shipped_names
from tests.any_pipeline import pipelines


@given(pipelines())
def test_any_pipeline_comes_back_from_its_entry(pipeline):
    assert dump_pipeline(state.decode(state.encode(pipeline))) == dump_pipeline(pipeline)


def test_a_default_that_depends_on_another_setting_comes_back():
    for threshold in (0.1, 0.25):
        pipeline = parse_pipeline([{"AdaptiveGap": {"gap_policy": "relative", "gap_threshold": threshold}}])
        assert dump_pipeline(state.decode(state.encode(pipeline))) == dump_pipeline(pipeline)


@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_pipeline_is_short_in_an_address(name):
    entry = state.encode(read_pipeline(name))
    assert len(entry) < 300
    assert dump_pipeline(state.decode(entry)) == dump_pipeline(read_pipeline(name))


@given(st.text(max_size=60))
def test_whatever_an_address_says_is_a_pipeline_or_one_sentence(text):
    with pytest.raises(InputError) as refused:
        state.decode("~" + text)
    assert "\n" not in str(refused.value)


def test_a_deflated_bomb_is_refused():
    import base64
    import zlib

    entry = "~" + base64.urlsafe_b64encode(zlib.compress(b"[" * 50_000_000, 9)).decode().rstrip("=")
    with pytest.raises(InputError):
        state.decode(entry)


def test_a_pipeline_too_long_for_an_address_is_kept_with_the_project(open_app, workspace):
    from rag_core.project.project import open_project
    from rag_core.project.session import Session

    session = Session(open_project("demo", workspace))
    where = {f"field{at}": f"{at * 7919 % 1000003:x}" for at in range(2000)}
    pipeline = parse_pipeline([{"Dense": {"where": where}}])
    entry = state.encode(pipeline, session)
    assert len(entry) < 30
    assert dump_pipeline(state.decode(entry, session)) == dump_pipeline(pipeline)


@pytest.mark.parametrize("wrong", [{"zoom": "near"}, {"lens": "eye"}, {"a": "~x"}, {"project": "../etc"}])
def test_an_address_that_cannot_be_followed_is_one_sentence(open_app, words, wrong):
    app = open_app(**wrong)
    assert not app.exception
    assert "could not be followed" in words(app)


def test_the_project_of_the_address_is_chosen(open_app):
    app = open_app(project="skirmish-rules")
    assert app.selectbox(key="rail.project").value == "skirmish-rules"
    assert json.loads(json.dumps(app.session_state[state.KEY].project)) == "skirmish-rules"
