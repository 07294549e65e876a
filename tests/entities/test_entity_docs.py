"""What docs/entities.md shows is what happens."""

import re
from pathlib import Path

import pytest

from rag_core.cli.entities import entities
from rag_core.cli.options import Common
from rag_core.entities.agreement import agreement, read_labelled
from rag_core.entities.structure import structure_from_text

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/entities.md").read_text(encoding="utf-8")
LABELLED = read_labelled(ROOT / "eval_sets/skirmish-entities/queries.jsonl")


def block(language):
    return re.search(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)[1]


def test_the_shown_command_prints_what_is_shown(capsys):
    entities(
        Common(workspace=None, json=False),
        "Can kommando orks use ere we go?",
        structure=None,
        budget=None,
        threshold=80.0,
        lint=False,
        labelled=None,
    )
    assert capsys.readouterr().out == block("").split("\n", 1)[1]


def test_the_shown_python_gives_the_shown_teams():
    names = {}
    exec(block("python"), names)
    assert names["teams"] == ["Kommandos", "Wrecka Krew"]
    assert list(names["part"]) == names["teams"]
    assert names["why"]


def test_the_shown_structure_is_one():
    structure = structure_from_text(block("yaml"))
    assert structure.entities[0].members == ("Kommando", "Burna Boy")
    assert structure.synonyms["grenades"] == "Stikkbombs"


@pytest.mark.parametrize("half", ["dev", "test"])
@pytest.mark.parametrize("strategy", [None, "operative", "ability", "alias", "team_name"])
def test_the_shown_figures_are_measured(demo_filter, half, strategy):
    shown = re.search(
        rf"\| \**{half} half\** \|(.*)\|" if strategy is None else rf"\| {half}, {strategy} alone \|(.*)\|", TEXT
    )
    if shown is None:
        assert half == "dev"  # single strategies are shown for the test half
        return
    found = agreement(demo_filter, [row for row in LABELLED if row.half == half], strategy)
    measured = (found.precision, found.recall, found.micro_precision, found.micro_recall)
    assert [cell.strip(" *") for cell in shown[1].split("|")] == [f"{value:.3f}" for value in measured]


def test_the_listed_misses_are_those_that_are_found(demo_filter):
    for miss in agreement(demo_filter, LABELLED).misses:
        assert f"| {miss.labelled.query} | {miss.labelled.half} |" in TEXT
