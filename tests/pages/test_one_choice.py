"""One eval set, one collection, one pipeline: chosen on any page, they are selected on every other that has them."""

import shutil

import pytest

from pages.components.choice import added, working_copy
from rag_core.eval_sets.reading import SHIPPED
from tests.pages.walking import go, sane

SET_PAGES = {
    "llm_filter": "tuning.set.widget",
    "tune": "tuning.set.widget",
    "headroom": "tuning.set.widget",
}
EVERY_RUN = ("tune",)


@pytest.mark.parametrize(
    "page", [page if page in EVERY_RUN else pytest.param(page, marks=pytest.mark.slow) for page in SET_PAGES]
)
def test_an_eval_set_chosen_on_a_page_is_selected_on_every_other(open_app, page):
    app = go(open_app(), page)
    wanted = "adaptive-short" if app.selectbox(key=SET_PAGES[page]).value != "adaptive-short" else "recorded-combat"
    sane(app.selectbox(key=SET_PAGES[page]).set_value(wanted).run(timeout=120))
    for other, key in SET_PAGES.items():
        app = go(app, other)
        assert (other, app.selectbox(key=key).value) == (other, wanted)


def test_the_parameter_of_a_link_wins_over_what_was_chosen(open_app):
    app = go(go(open_app(), "tune", set="adaptive-short"), "headroom", set="recorded-combat")
    assert app.selectbox(key="tuning.set.widget").value == "recorded-combat"
    assert go(app, "tune").selectbox(key="tuning.set.widget").value == "recorded-combat"


@pytest.mark.parametrize("page", ["tune"])
def test_an_eval_set_that_is_not_there_is_one_sentence(open_app, words, page):
    app = go(open_app(), page, set="nosuch")
    assert words(app).count("is not here") == 1
    assert "nosuch" in words(app)
    assert app.selectbox(key=SET_PAGES[page]).value not in ("", "nosuch", None)


def test_a_set_of_queries_only_is_said_where_lists_are_needed_and_stays_chosen(open_app, workspace, words):
    from rag_core.eval_sets.writing import new_set
    from rag_core.types import Query

    new_set(workspace, "bare", [Query("a1", "what is this?"), Query("a2", "what is that?")])
    app = go(open_app(), "tune", set="bare")
    assert "holds no result lists and no corpus, which this page needs" in words(go(app, "headroom"))


def test_one_more_pipeline_takes_the_place_of_an_older_working_copy_or_of_the_last():
    older, newer = working_copy('["QueryMust"]'), working_copy('["TopK"]')
    assert added(["a", older], newer, 5) == ("a", newer)
    assert added(["a", "b"], "c", 2) == ("a", "c")
    assert added(["a", "b"], "a", 2) == ("a", "b")


def test_a_title_changed_in_its_file_is_shown_and_a_set_that_cannot_be_read_leaves_the_others(open_app, workspace):
    mine = workspace / "eval_sets" / "mine"
    shutil.copytree(SHIPPED / "adaptive-short", mine)
    meta = (mine / "meta.yaml").read_text()
    (mine / "meta.yaml").write_text(meta.replace("title: ", "title: Mine, "))
    app = go(open_app(), "tune")

    def titles():
        shown = next(box for box in app.selectbox if box.label == "Eval set")
        return [title for title in shown.options if "short lists" in title]

    assert titles() == ["Seven short lists for the adaptive cut", "Mine, Seven short lists for the adaptive cut"]
    (mine / "meta.yaml").write_text(meta.replace("title: ", "title: Ours, "))
    sane(app.run(timeout=120))
    assert titles()[1:] == ["Ours, Seven short lists for the adaptive cut"]
    (mine / "meta.yaml").write_text("title: [")
    sane(app.run(timeout=120))
    assert titles() == ["Seven short lists for the adaptive cut"]
