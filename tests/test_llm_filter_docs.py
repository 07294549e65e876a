"""docs/llm-filter.md says what the program computes, and what it reads otherwise than the design did."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from rag_core.filters.cutoff import TopK
from rag_core.filters.llm.decisions import read_decisions
from rag_core.judged import entrants
from rag_core.judged.trials import compare
from rag_core.measure.experiment import kept_ids, run
from rag_core.project.asking import nearest
from rag_core.project.project import open_project
from rag_core.project.session import Session
from rag_core.retrieve.expand import ExpandReferences
from rag_core.stage import Pipeline

TEXT = (Path(__file__).parents[1] / "docs" / "llm-filter.md").read_text(encoding="utf-8")
STORY = "auth-display"


def figures(row):
    """The numbers of a table's row, by the words it begins with."""
    cells = re.search(rf"^\| {re.escape(row)} \|(.+)\|$", TEXT, re.M)[1]
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", cells)]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    session = Session(open_project("api-docs", tmp_path_factory.mktemp("workspace")))
    return nearest(session, 60, session.cases)


def judged(bench, error_rate, depth):
    judge = entrants.simulated_judge(bench, error_rate, depth)
    rivals = entrants.entrants_of(entrants.stages_of(["terse"], {}), [judge])
    entrants.answer_simulated(bench, rivals)
    return compare(bench, rivals)


def test_the_story_is_told_with_our_figures(bench):
    story = replace(bench, cases=tuple(case for case in bench.cases if case.query.id == STORY))
    unjudged = run(story.cases, Pipeline((TopK(25), ExpandReferences(chunks=bench.chunks))), bench.min_grade)
    kept = len(kept_ids(unjudged.outcomes[0].result))
    relevant = round(100 * unjudged.summary.means["SetP"])
    assert figures("the 25 nearest with their references, unjudged") == [kept, relevant]
    for depth, row in ((0, "40 judged, relevant ones found"), (1, "these with their references")):
        (found,) = judged(story, 0.0, depth).variants
        assert figures(row)[-2:] == [found["kept_mean"], round(100 * found["SetP"])]


def test_the_targets_are_what_a_judge_of_that_accuracy_reaches(bench):
    found = judged(bench, 0.1, 0)
    (row,) = found.variants
    measures = [round(row[name], 3) for name in ("SetP", "SetR", "SetF")]
    shares = [round(100 * row[name]) for name in ("irrelevant_removed", "agreement")]
    assert figures("oversampling 1.6")[:5] == [*measures, *shares]
    assert figures("no model, the 25 nearest")[-3:] == [
        round(found.baseline[name], 3) for name in ("SetP", "SetR", "SetF")
    ]


def test_departures_are_as_said():
    def action(answer):
        return read_decisions(answer, ["a", "b"]).decisions[1].action

    assert action("1 -> MAYBE") == "KEEP"
    assert action("1 -> EXPAND_2") == "EXPAND_1"
    assert action("1 -> EXPAND_0") == "KEEP"
    assert action("1 -> DISCARD\n1 -> KEEP") == "DISCARD"
    assert read_decisions("nothing to see", ["a", "b"]).decisions == {}
