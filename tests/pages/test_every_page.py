"""Every page: each number says what it means, an eval set that cannot be read is one sentence and no page fails."""

import ast
import json
from pathlib import Path

import pytest

from pages.components.glossary import HIGHER, LOWER, TERMS, told
from tests.pages.walking import go, sane

PAGES = Path(__file__).parents[2] / "pages"
NAMES = sorted(path.stem for path in PAGES.glob("[a-z]*.py") if path.stem not in ("rail", "state", "forms"))
WITH_SETS = ("tune", "headroom")
"""Pages that can look at recorded lists at once."""
MEASURED = {
    "headroom": ("headroom.queries", "all queries"),
}
"""Page → the view whose table holds measures."""


def calls_of_metric():
    for path in PAGES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "metric":
                yield f"{path.name}:{node.lineno}", {word.arg for word in node.keywords}


def test_every_figure_says_what_it_means():
    found = list(calls_of_metric())
    assert len(found) > 20
    assert [place for place, words in found if "help" not in words] == []


@pytest.mark.parametrize("page", MEASURED)
def test_every_column_with_a_measure_says_what_it_means(open_app, page):
    app = go(open_app(), page, set="recorded-combat")
    key, view = MEASURED[page]
    sane(app.segmented_control(key=key).set_value(view).run(timeout=120))
    silent, measures = [], 0
    for frame in app.dataframe:
        config = json.loads(frame.proto.columns or "{}")
        for name in filter(told, frame.value.columns):
            measures += 1
            silent += [] if config.get(name, {}).get("help") else [name]
    assert measures
    assert silent == []


def test_a_measure_under_any_of_its_names_has_its_definition_and_direction():
    assert told("SetF now") == told("SetF") == TERMS["SetF"]
    assert told("nDCG@5") == told("nDCG@15")
    assert told("title") == ""
    for name in ("SetP", "SetR", "SetF", "RR", "AP", "P@3", "R@3", "nDCG@3", "kappa", "alpha", "AUC"):
        assert told(name).endswith((HIGHER, LOWER))


@pytest.mark.parametrize("page", NAMES)
def test_every_page_has_help_behind_its_question_mark(page):
    text = (PAGES / f"{page}.py").read_text(encoding="utf-8")
    assert 'HELP = """' in text
    assert "HELP)" in text.partition("header.show(")[2].partition("\n")[0]


@pytest.fixture
def broken(workspace):
    folder = workspace / "eval_sets" / "broken"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: broken\ntitle: Broken\n")
    (folder / "lists.jsonl").write_text('{"id": 1, "que')


@pytest.mark.parametrize("page", WITH_SETS)
def test_an_eval_set_that_cannot_be_read_is_a_sentence_and_another_can_be_chosen(broken, open_app, words, page):
    app = go(open_app(), page, set="broken")
    assert "line 1 is not valid JSON" in words(app)
    other = next(one for one in app.selectbox if one.label == "Eval set")
    app = sane(other.set_value("recorded-combat").run(timeout=120))
    assert "not valid JSON" not in words(app)
