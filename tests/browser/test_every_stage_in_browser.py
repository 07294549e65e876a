"""Every stage there is, on the Bench of a project made here, by a link: its row, its form, its line in the trace."""

import re

import pytest
from playwright.sync_api import expect

from pages import state
from rag_core.project import intake
from rag_core.project.project import add_questions, open_project
from rag_core.spec import STAGES, make_stage, parse_pipeline, stage_class
from rag_core.types import Query
from tests.browser.hands import settle
from tests.browser.test_stranger_in_browser import QUESTIONS, write_data
from tests.tune.test_steps import MODEL

KINDS = {name: stage_class(name).kind for name in STAGES}
SOURCES = [name for name, kind in KINDS.items() if kind == "source"]


@pytest.fixture(scope="module")
def own(app, app_workspace, tmp_path_factory):
    """The address of the app, which has a project of thirty sections, twelve questions and no label."""
    folder = tmp_path_factory.mktemp("every")
    write_data(folder / "espresso")
    project = intake.begin_project(app_workspace, "espresso")
    documents = intake.Documents((str(folder / "espresso" / "manual.md"),))
    intake.take_in(project, documents, lambda done, total: None)
    asked = [Query(f"c{at}", text) for at, text in enumerate(QUESTIONS)]
    add_questions(open_project("espresso", app_workspace), asked)
    return app


def made(name):
    return make_stage(name, {"parameters": MODEL} if name == "LearnedCut" else {})


def loads():
    """All stages, some at a time: a source each, and what may stand beside it."""
    rewrites = [name for name, kind in KINDS.items() if kind == "rewrite"]
    others = [name for name, kind in KINDS.items() if kind not in ("rewrite", "source")]
    for at, source in enumerate(SOURCES):
        yield [*(rewrites if at == 0 else ()), source, *others[at :: len(SOURCES)]]


@pytest.mark.slow  # tests/pages: test_bench_page.py draws every stage, test_forms.py its form
@pytest.mark.parametrize("names", loads(), ids=lambda names: next(name for name in names if name in SOURCES))
def test_a_stage_has_its_row_its_form_and_its_line_in_the_trace(page, own, names):
    entry = state.encode(parse_pipeline([made(name) for name in names]))
    page.goto(f"{own}/bench?project=espresso&q=c0&b=fixed-15&a={entry}")
    page.locator(".bench .stage").first.wait_for()
    settle(page)
    expect(page.locator(".bench .notice")).to_be_hidden()
    rows = page.locator(".bench .stage")
    assert [row.get_attribute("data-stage") for row in rows.all()] == names
    assert rows.locator(".stage-title").all_text_contents() == [stage_class(name).title for name in names]
    assert all(rows.locator(".did").all_inner_texts()), "what each stage did"

    page.get_by_role("button", name="Trace").or_(page.get_by_role("radio", name="Trace")).first.click()
    settle(page)
    trace = page.get_by_test_id("stText").first.inner_text()
    for name in names:
        assert name in trace or stage_class(name).title in trace, name

    for at, name in enumerate(names):
        rows.nth(at).get_by_role("button", name=re.compile("^Settings of")).click()
        sidebar = page.get_by_test_id("stSidebar")
        expect(sidebar.get_by_role("heading", name=stage_class(name).title, exact=False).first).to_be_visible()
        settle(page)
        if made(name).declared():
            assert sidebar.locator(f"[class*='st-key-drawer-{at}-{name}-']").count(), f"the form of {name}"
        assert page.get_by_test_id("stException").count() == 0


def test_every_stage_is_among_them():
    assert {name for names in loads() for name in names} == set(STAGES)
