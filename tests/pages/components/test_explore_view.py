"""A view goes into the address and comes back the same; the compact spec leaves defaults out."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pages.components.view import (
    LONGEST_ADDRESS,
    View,
    compact,
    from_address,
    front_of,
    pipeline_of,
    stages,
    to_address,
)
from pages.components.where import read_where, write_where
from rag_core.errors import InputError

amounts = st.floats(0, 1000, allow_nan=False)


@st.composite
def views(draw):
    policy = draw(st.sampled_from(["largest", "first", "relative"]))
    low = draw(st.integers(0, 50))
    return View(
        eval_set=draw(st.sampled_from(["recorded-combat", "adaptive-short", "own"])),
        query_id=draw(st.text(max_size=20)),
        rules_on=True,
        mode=draw(st.sampled_from(["token", "substring"])),
        adaptive_on=True,
        gap_threshold=draw(amounts),
        distance_offset=draw(amounts),
        min_results=low,
        max_results=draw(st.integers(max(low, 1), 1000)),
        gap_policy=policy,
        relative_offset=draw(st.none() | amounts) if policy == "relative" else None,
        top_on=True,
        k=draw(st.integers(1, 1000)),
    )


@given(views())
def test_a_view_survives_its_address(view):
    assert from_address(to_address(view)) == view


@given(views(), st.booleans(), st.booleans(), st.booleans())
def test_the_address_runs_the_same_pipeline(view, rules, adaptive, top):
    view = view.changed(rules_on=rules, adaptive_on=adaptive, top_on=top)
    assert pipeline_of(from_address(to_address(view))) == pipeline_of(view)


def test_settings_at_their_default_are_left_out():
    assert compact(View()) == "[]"
    assert compact(View(rules_on=True, adaptive_on=True, top_on=True)) == '["QueryMust","AdaptiveGap","TopK"]'
    assert compact(View(adaptive_on=True, gap_threshold=0.02)) == '[{"AdaptiveGap":{"gap_threshold":0.02}}]'


def test_the_default_threshold_of_the_relative_policy_is_its_own():
    view = View(adaptive_on=True).changed(gap_policy="relative")
    assert view.gap_threshold == 0.25
    assert compact(view) == '[{"AdaptiveGap":{"gap_policy":"relative"}}]'
    assert compact(view.changed(gap_threshold=0.1)) == '[{"AdaptiveGap":{"gap_threshold":0.1,"gap_policy":"relative"}}]'


def test_leaving_the_relative_policy_drops_the_relative_offset():
    view = View(gap_policy="relative", gap_threshold=0.5, relative_offset=0.5)
    assert view.changed(gap_policy="first").relative_offset is None
    assert view.changed(gap_policy="first").gap_threshold == 0.1


def test_an_empty_address_is_the_first_view():
    assert from_address({}) == View()


@given(st.dictionaries(st.sampled_from(["set", "query", "pipeline", "other"]), st.text(max_size=60), max_size=4))
def test_any_address_is_a_view_or_an_input_error(parameters):
    with suppress(InputError):
        assert isinstance(from_address(parameters), View)


@pytest.mark.parametrize(
    "pipeline",
    ['["MinSimilarity"]', '["QueryMust","Requery"]', '["TopK","Requery"]'],
)
def test_stages_the_page_does_not_have_in_this_order_are_refused(pipeline):
    with pytest.raises(InputError, match=r"at most one each of .*, QueryMust, Requery, AdaptiveGap, LLMFilter, TopK"):
        from_address({"pipeline": pipeline})


conditions = st.lists(
    st.tuples(st.sampled_from(["type", "level", "a title"]), st.text(st.characters(codec="utf-8"), min_size=1)),
    max_size=4,
)


@settings(deadline=None)  # long values take a while, and no time is promised
@given(views(), st.booleans(), st.sampled_from(["deepen", "exclude", "prefilter"]), conditions, st.integers(1, 10000))
def test_a_live_view_survives_its_address(view, approximate, strategy, pairs, depth):
    where = {}
    for field, value in pairs:
        where.setdefault(field, []).append(value)
    live = view.changed(
        collection="rulebook", approximate=approximate, depth=depth, where=write_where(where), file_filter="re:^a",
        refill_on=True, refill_k=7, max_iterations=9, strategy=strategy,
    )  # fmt: skip
    if sum(map(len, to_address(live).values())) <= LONGEST_ADDRESS:
        assert from_address(to_address(live)) == live
        assert stages(live)[0]["Dense"]["where"] == (read_where(live.where) or None)


def test_a_question_of_ones_own_stands_in_the_address_in_place_of_a_query():
    view = View(eval_set="rulebook", collection="rulebook", question="What is AC 6?")
    assert to_address(view) == {
        "set": "rulebook", "collection": "rulebook", "question": "What is AC 6?", "pipeline": '[{"Dense":{"depth":15}}]',
    }  # fmt: skip
    assert from_address(to_address(view)) == view


def test_a_recorded_view_names_no_source():
    assert stages(View()) == []


def test_refill_stands_in_place_of_query_must_and_only_while_it_is_on():
    assert [*stages(View(rules_on=True, refill_on=True))[0]] == ["Requery"]
    assert stages(View(refill_on=True)) == []


def test_a_link_with_a_question_that_cannot_be_asked_is_refused():
    with pytest.raises(InputError, match="control character"):
        from_address({"question": "a\x00b"})


SEARCHES = st.builds(
    View,
    collection=st.just("rulebook"),
    depth=st.integers(1, 500),
    where=st.sampled_from(["", "type=spell"]),
    engine=st.sampled_from(["vector", "BM25", "hybrid"]),
    normalise=st.booleans(),
    synonyms=st.booleans(),
    max_hops=st.integers(0, 5),
)


@settings(deadline=None)
@given(SEARCHES, st.floats(0, 1000), st.floats(0.1, 100), st.floats(0, 100))
def test_how_it_is_searched_survives_the_address(view, k, dense, lexical):
    if view.engine == "hybrid":
        view = view.changed(rrf_k=k, dense_weight=dense, lexical_weight=lexical)
    assert from_address(to_address(view)) == view
    assert [stage.kind for stage in front_of(view, 7).stages][-1] == "source"
    assert front_of(view, 7).stages[-1].depth == 7


def test_what_brings_the_list_is_no_filter_and_hops_come_last():
    view = View(collection="c", engine="hybrid", normalise=True, synonyms=True, max_hops=2, top_on=True)
    assert [stage.name for stage in front_of(view, 15).stages] == ["NormaliseKeywords", "ExpandSynonyms", "Hybrid"]
    assert [stage.name for stage in pipeline_of(view).stages] == ["TopK", "MultiHop"]
    assert (
        compact(view)
        == '["NormaliseKeywords","ExpandSynonyms",{"Hybrid":{"depth":15}},"TopK",{"MultiHop":{"max_hops":2}}]'
    )


def test_recorded_lists_are_neither_searched_nor_rewritten_nor_hopped():
    assert stages(View(engine="hybrid", normalise=True, synonyms=True, max_hops=2)) == []


def test_a_setting_the_page_has_no_control_for_is_refused():
    with pytest.raises(InputError, match=r"MultiHop\.hop_chunk_limit is set"):
        from_address({"collection": "c", "pipeline": '["Dense",{"MultiHop":{"max_hops":1,"hop_chunk_limit":9}}]'})
