"""Families of Data in Chromium: apply a family's rules, see what they change, edit one, undo."""

import json
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from rag_core.index.collection import open_collection

sys.path.insert(0, str(Path(__file__).parents[1]))  # the small collection that tests share

import small_rules


@pytest.fixture(scope="module")
def small_app(app, app_workspace):
    """(address, workspace) of the app, whose workspace holds the small collection."""
    workspace = app_workspace
    small_rules.build(workspace)
    path = workspace / "eval_sets" / small_rules.NAME / "queries.jsonl"
    rows = [{**json.loads(line), "split": "dev"} for line in path.read_text().splitlines()]
    path.write_text("\n".join(map(json.dumps, rows)))
    (path.parent / "project.yaml").write_text("version: 1\nsplit: {from: declared}\n")
    return app, workspace


def figure(page, label):
    return page.get_by_test_id("stMetric").filter(has=page.get_by_text(label, exact=True))


def view(page, name):
    page.get_by_test_id("stButtonGroup").get_by_text(name, exact=True).click()


@pytest.mark.slow  # tests/pages/test_data_families.py applies, edits and takes back without a browser
def test_rules_from_slots_are_applied_edited_and_taken_back(page, small_app):
    address, workspace = small_app
    page.goto(address)  # a fresh server knows its places once its first page was drawn
    page.get_by_role("combobox", name="Project").wait_for()
    page.goto(f"{address}/data?project={small_rules.NAME}&section=Families")
    expect(figure(page, "with a rule")).to_contain_text("0 (0%)")
    page.get_by_role("button", name="Apply 6 rules").click()
    expect(page.get_by_text("Batch 1 is stored: 6 chunks")).to_be_visible()
    expect(figure(page, "with a rule")).to_contain_text("6 (75%)")

    view(page, "Rules")
    view(page, "Edit one")
    question = page.get_by_role("textbox", name="Try a question")
    question.fill("What about a spear?")
    question.press("Enter")
    expect(page.get_by_text("On this question: dropped")).to_be_visible()
    rule = page.get_by_role("textbox", name="Its rule as JSON; empty: no rule")
    before = rule.input_value()
    rule.fill('{"contain": "spear"}')
    rule.press("Control+Enter")
    expect(page.get_by_text("On this question: kept")).to_be_visible()
    page.get_by_role("button", name="Reset").click()
    expect(rule).to_have_value(before)

    page.get_by_role("button", name="Undo batch 1").click()
    expect(page.get_by_text("Batch 1 is undone: 6 chunks are as before")).to_be_visible()
    expect(figure(page, "with a rule")).to_contain_text("0 (0%)")
    assert not any(chunk.query_must for chunk in open_collection(workspace, small_rules.NAME).chunks)
