"""The selector of projects has the titles as their files have them."""

import shutil

from rag_core.eval_sets.reading import SHIPPED
from tests.pages.walking import sane


def test_a_title_changed_in_its_file_is_shown_and_a_set_that_cannot_be_read_leaves_the_others(open_app, workspace):
    mine = workspace / "eval_sets" / "mine"
    shutil.copytree(SHIPPED / "adaptive-short", mine)
    meta = (mine / "meta.yaml").read_text()
    (mine / "meta.yaml").write_text(meta.replace("title: ", "title: Mine, "))
    app = open_app(project="rulebook")

    def titles():
        shown = next(box for box in app.selectbox if box.label == "Project")
        return [title for title in shown.options if "short lists" in title]

    assert set(titles()) == {"Seven short lists for the adaptive cut", "Mine, Seven short lists for the adaptive cut"}
    (mine / "meta.yaml").write_text(meta.replace("title: ", "title: Ours, "))
    sane(app.run(timeout=120))
    assert set(titles()) == {"Seven short lists for the adaptive cut", "Ours, Seven short lists for the adaptive cut"}
    (mine / "meta.yaml").write_text("title: [")
    sane(app.run(timeout=120))
    assert titles() == ["Seven short lists for the adaptive cut"]
