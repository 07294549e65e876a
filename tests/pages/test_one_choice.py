"""What is chosen in a session: a working copy among pipelines, titles of eval sets as their files have them."""

import shutil

from pages.components.choice import added, working_copy
from rag_core.eval_sets.reading import SHIPPED
from tests.pages.walking import go, sane


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
    app = go(open_app(), "llm_filter")

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
