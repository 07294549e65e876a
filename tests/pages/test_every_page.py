"""Every page: each number says what it means, questions that cannot be read are one sentence and no page fails."""

import ast
from pathlib import Path

from pages.components.glossary import HIGHER, LOWER, told
from tests.pages.walking import sane

PAGES = Path(__file__).parents[2] / "pages"


def calls_of_metric():
    for path in PAGES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "metric":
                yield f"{path.name}:{node.lineno}", {word.arg for word in node.keywords}


def test_every_figure_says_what_it_means():
    found = list(calls_of_metric())
    assert found
    assert [place for place, words in found if "help" not in words] == []


def test_a_measure_under_any_of_its_names_has_its_definition_and_direction():
    assert told("SetF now") == told("SetF") == f"F₁ of SetP and SetR, per query. {HIGHER}"
    assert told("nDCG@5") == told("nDCG@15")
    assert told("title") == ""
    for name in ("SetP", "SetR", "SetF", "RR", "AP", "P@3", "R@3", "nDCG@3", "kappa", "alpha", "AUC"):
        assert told(name).endswith((HIGHER, LOWER))


def test_questions_that_cannot_be_read_are_a_sentence_and_another_project_can_be_chosen(workspace, open_app, words):
    folder = workspace / "eval_sets" / "broken"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: broken\ntitle: Broken\n")
    (folder / "lists.jsonl").write_text('{"id": 1, "que')
    app = sane(open_app(project="broken"))
    assert "line 1 is not valid JSON" in words(app)
    other = next(one for one in app.selectbox if one.label == "Project")
    app = sane(other.set_value("recorded-combat").run(timeout=120))
    assert "not valid JSON" not in words(app)


def test_no_script_holds_a_bare_value_which_streamlit_would_print():
    found = []
    for path in PAGES.glob("*/page.py"):
        body = ast.parse(path.read_text(encoding="utf-8")).body[1:]  # the first is the docstring
        found += [
            f"{path.parent.name}:{one.lineno}"
            for one in body
            if isinstance(one, ast.Expr) and not isinstance(one.value, ast.Call)
        ]
    assert found == []
