"""Compare through the page: recorded lists, two pipelines, the views, links, and labels that change the figures."""

import gc
import json
import re

import pytest
import streamlit as st

from pages.components import compare_run
from pages.components.compare_view import CompareView, from_address, read_entry, settled, title_of, to_address
from pages.components.listed import PAGE
from rag_core.errors import InputError
from rag_core.evaluate.experiment import Outcome
from rag_core.types import Drop

PAIR = '["unfiltered","query-must"]'


@pytest.fixture
def compare(open_app):
    """Compare, opened with a link."""

    def opened(**parameters):
        app = open_app()
        app.switch_page("pages/compare.py")
        for name, value in {"set": "recorded-combat", "pipelines": PAIR, **parameters}.items():
            app.query_params[name] = value
        return app.run(timeout=60)

    return opened


def table(app, *columns):
    """The one table with these columns."""
    return next(frame.value for frame in app.dataframe if set(columns) <= set(frame.value.columns))


def test_the_table_gives_means_with_counts_and_differences_to_the_baseline(compare, words):
    app = compare()
    assert not app.exception
    means = table(app, "SetF", "kept, mean")
    assert means["SetF"][1].startswith("0.834 [")
    assert "macro over 3 of 3 queries" in words(app)
    differences = table(app, "difference", "wins", "losses")
    assert set(differences["pipeline"]) == {"query-must"}
    assert differences["wins"][0] == 3
    assert "query-must is" in words(app)


def test_the_worst_regression_stands_first_and_opens_with_reasons(compare, words):
    app = compare(show="Queries", query="combat-1")
    assert not app.exception
    contrasts = table(app, "query", "difference")
    assert sorted(contrasts["difference"]) == list(contrasts["difference"])
    reasons = table(app, "missing from", "reason")
    assert len(reasons) == 13
    assert set(reasons["missing from"]) == {"query-must"}
    assert reasons["reason"][0].startswith("no word of: armor class")
    assert "Jaccard 0.13" in words(app)


def test_slices_heat_map_and_losses_can_be_shown(compare, words):
    assert "tag" in table(compare(show="Slices"), "tag", "pipeline").columns
    assert len(table(compare(show="Heat map"), "query", "query-must")) == 3
    app = compare(show="Where relevant chunks die")
    assert not app.exception
    assert table(app, "stage", "SetF it brings")["stage"][0] == "QueryMust"
    assert "limited" in words(app)


def test_what_explore_has_now_joins_the_comparison(compare):
    app = compare()
    next(button for button in app.button if button.label == "Add what Explore has now").click().run(timeout=60)
    assert not app.exception
    assert len(table(app, "SetF", "kept, mean")) == 3


def test_one_pipeline_is_not_enough_and_the_page_says_so(compare, words):
    assert "at least **2 pipelines**" in words(compare(pipelines='["unfiltered"]'))


def test_a_pipeline_that_asks_a_model_is_not_run_unasked(compare):
    inline = json.dumps(["unfiltered", '[{"LLMFilter":{}}]'])
    app = compare(pipelines=inline)
    assert any("asks a language model" in str(one.value) for one in (*app.error, *app.text, *app.markdown))


def test_a_run_that_was_measured_once_is_not_run_again(compare, monkeypatch):
    compare()
    monkeypatch.setattr(compare_run, "measure_all", lambda *_: pytest.fail("measured again"))
    assert not compare(show="Slices").exception


@pytest.fixture
def half_judged(workspace, jsonl):
    """An eval set of one's own in which the second chunk of each list has no label."""
    folder = workspace / "eval_sets" / "half"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: half\ntitle: Half judged\n", encoding="utf-8")
    chunks = [{"distance": 0.1, "relevant": 1}, {"distance": 0.2}, {"distance": 0.3, "relevant": 0}]
    listed = [
        {"id": f"q{n}", "query": f"question {n}", "candidates": [{**c, "id": f"{n}{i}"} for i, c in enumerate(chunks)]}
        for n in range(4)
    ]
    (folder / "lists.jsonl").write_bytes(jsonl(*listed))
    return "half"


def test_what_could_still_decide_goes_to_the_labelling_queue(compare, half_judged):
    inline = [json.dumps({"name": f"first {k}", "stages": [{"TopK": {"k": k}}]}) for k in (1, 2)]
    app = compare(set=half_judged, pipelines=json.dumps(inline))
    next(button for button in app.button if button.label == "Label these 4 to decide").click()
    with pytest.raises(KeyError):  # the queue took them: nothing is left waiting
        app.run(timeout=60).session_state["label.wanted"]
    assert not app.exception
    assert app.session_state["label.set"] == half_judged


HOSTILE = "![x](http://foreign.invalid/{}.png)"


@pytest.mark.parametrize("show", ["Table", "Queries", "Where relevant chunks die"])
def test_names_of_pipelines_that_a_link_brings_are_never_read_as_markup(compare, half_judged, show):
    inline = [json.dumps({"name": HOSTILE.format(k), "stages": [{"TopK": {"k": k}}]}) for k in (1, 2, 3)]
    app = compare(set=half_judged, pipelines=json.dumps(inline), show=show)
    assert not app.exception
    live = [one.value for kind in (app.markdown, app.caption, app.subheader) for one in kind]
    assert not [text for text in live if "![" in text or "//" in text]
    if show == "Table":
        said = "\n".join(one.value for one in app.text)
        assert f"50% of what {HOSTILE.format(2)} kept has no label" in said
        assert f"Open labels can still change which of {HOSTILE.format(1)} and {HOSTILE.format(2)} has" in said


def test_every_pair_has_its_sentences_and_equal_ones_claim_no_power(compare):
    app = compare(pipelines='["unfiltered","query-must","adaptive-default"]')
    said = "\n".join(one.value for one in app.text)
    assert re.search(r"true difference of [\d.]+ in SetF between query-must and unfiltered would be found", said)
    assert "adaptive-default and unfiltered have the same SetF on all 3 queries." in said
    assert "show the same difference" not in said


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"pipelines": "[1]"}, "no list of at most 5 names"),
        ({"pipelines": '["../../secret"]'}, "is no name"),
        ({"pipelines": json.dumps(["a"] * 6)}, "no list of at most 5 names"),
        ({"pipelines": "x" * 9000}, "holds more than 8000 characters"),
        ({"baseline": "-1"}, "expected a place from 0"),
        ({"show": "Everything"}, "expected one of Table"),
        ({"measure": "SetQ"}, "expected one of SetF"),
    ],
)
def test_a_link_that_cannot_be_shown_is_refused_in_a_sentence(parameters, said):
    with pytest.raises(InputError, match=said):
        from_address(parameters)


def test_a_view_and_its_link_are_the_same():
    inline = '{"name":"from-explore","stages":[{"TopK":{"k":3}}]}'
    view = CompareView("rulebook", ("fixed-15", inline), 1, 0, "SetR", "Queries", "difference", "q 1", "c#2")
    assert from_address(to_address(view)) == view
    assert title_of(inline) == "from-explore"
    assert read_entry(inline).stages[0].k == 3


def test_baseline_and_other_stay_apart():
    view = settled(CompareView(pipelines=("a", "b", "c"), baseline=2, other=2))
    assert (view.baseline, view.other) == (2, 0)
    assert settled(CompareView(pipelines=("a", "b"), baseline=7, other=9)) == CompareView(pipelines=("a", "b"))


def own_set(workspace, jsonl, name, queries, tags=1):
    """An eval set of one's own: lists of three chunks, the first and, in every second query, the last relevant."""
    folder = workspace / "eval_sets" / name
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text(f"version: 1\nname: {name}\ntitle: {name}\n", encoding="utf-8")
    listed = [
        {
            "id": f"q{n}",
            "query": f"question {n}",
            "tags": [f"t{n % tags}"],
            "candidates": [
                {"id": f"{n}.{at}", "distance": at / 10, "relevant": int(at == 0 or (at == 2 and n % 2))}
                for at in range(3)
            ],
        }
        for n in range(queries)
    ]
    (folder / "lists.jsonl").write_bytes(jsonl(*listed))
    return name


def tops(*sizes):
    """Pipelines that keep the first so many, as a link names them."""
    return json.dumps([json.dumps({"name": f"first {k}", "stages": [{"TopK": {"k": k}}]}) for k in sizes])


@pytest.fixture
def many(workspace, jsonl):
    return own_set(workspace, jsonl, "many", 2 * PAGE + 50)


@pytest.mark.parametrize("shown", ["Queries", "Heat map"])
def test_many_queries_are_drawn_page_by_page(compare, many, shown):
    app = compare(set=many, pipelines=tops(1, 3), show=shown)
    assert not app.exception
    pages = []
    for page in (1, 2, 3):
        app.get("pagination")[0].set_value(page).run(timeout=60) if page > 1 else None
        pages.append(list(table(app, "query", "first 1", "first 3")["query"]))
        assert not app.exception
    assert [len(page) for page in pages] == [PAGE, PAGE, 50]
    assert len({query for page in pages for query in page}) == 2 * PAGE + 50


def test_a_link_to_a_query_on_a_later_page_opens_that_page(compare, many):
    last = compare_run_order(compare, many)[-1]
    app = compare(set=many, pipelines=tops(1, 3), show="Queries", query=last)
    assert last in list(table(app, "query", "first 1", "first 3")["query"])


def compare_run_order(compare, many):
    """The queries in the order of the page, the last page of them."""
    app = compare(set=many, pipelines=tops(1, 3), show="Queries")
    app.get("pagination")[0].set_value(3).run(timeout=60)
    return list(table(app, "query", "first 1", "first 3")["query"])


def test_no_trace_is_held_once_a_comparison_is_measured(compare, many):
    assert not compare(set=many, pipelines=tops(1, 3)).exception
    gc.collect()
    held = [one for one in gc.get_objects() if isinstance(one, Outcome | Drop)]
    assert held == []


def test_cancel_stops_the_work_until_a_person_goes_on(compare, many, words, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(compare_run, "measure_all", lambda *_: st.stop())  # as a click ends the run that is under way
        app = compare(set=many, pipelines=tops(1, 2))
    app.button(key="under_way.cancel.queries through 2 pipelines").click().run(timeout=60)
    assert "Stopped." in words(app)
    assert not app.dataframe
    next(button for button in app.button if button.label == "Go on").click().run(timeout=60)
    assert len(table(app, "SetF", "kept, mean")) == 2


def test_what_is_measured_when_a_run_ends_early_is_not_measured_again(compare, many, monkeypatch):
    sizes, real = [], compare_run.measure_all

    def measured(cases, *others):
        sizes.append(len(cases))
        if len(sizes) == 3:
            st.stop()
        return real(cases, *others)

    monkeypatch.setattr(compare_run, "measure_all", measured)
    compare(set=many, pipelines=tops(1, 2))
    assert not compare(set=many, pipelines=tops(1, 2)).exception
    assert sizes == [100, 100, 100, 100, 100, 50]


def test_one_query_is_not_spoken_of_as_several(compare, workspace, jsonl, words):
    alone = own_set(workspace, jsonl, "alone", 1)
    for shown in ("Table", "Queries", "Slices", "Heat map", "Where relevant chunks die"):
        assert not re.search(r"\b1 (scored )?queries", words(compare(set=alone, pipelines=tops(1, 2), show=shown)))
