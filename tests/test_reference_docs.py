"""docs/measures.md explains every measure the program has, and each worked number in it is what the code computes."""

import re
from pathlib import Path

import numpy as np
import pytest

from rag_core.compare import overlap
from rag_core.labelling import agreement
from rag_core.measure import significance
from rag_core.measure.economy import Economy
from rag_core.measure.measures import DEFAULT_MEASURES, FAMILIES, parse_measure
from rag_core.measure.scores import score, summarise
from rag_core.tune.headroom import auc
from rag_core.tune.tune import Choice, ChoiceJudgement

TEXT = (Path(__file__).parents[1] / "docs" / "measures.md").read_text(encoding="utf-8")
NUMBERS = TEXT.partition("A test recomputes")[2]
TOLD = dict(re.findall(r"^\| \*\*(.+?)\*\* \| (.+) \|$", TEXT, re.M))
"""Figure → its row: definition, denominator, trap, where it is shown."""
WORKED = {
    name: (given, value)
    for name, given, value in re.findall(r"^\| ([^*|]+?) \| ([^|]+) \| ([\d.]+) \|$", NUMBERS, re.M)
}
"""Figure → what it is computed from, and the value."""
ASKED = (
    "Fβ", "bounds", "judged share", "false-return rate", "empty", "fallback", "difference", "interval", "p", "families needed", "Holm",
    "minimum detectable effect", "optimism", "Jaccard", "noise share", "relevant per 1,000 tokens", "AUC",
    "kappa", "alpha",
)  # fmt: skip
"""The figures that pages and commands show beside the measures."""


def example():
    """The kept ids and the grades of the document's query."""
    rows = re.findall(r"^\| (\d|dropped) \| (c\d) \| (\d|unjudged) \|$", TEXT, re.M)
    kept = [chunk for rank, chunk, _ in rows if rank != "dropped"]
    return kept, {chunk: int(grade) for _, chunk, grade in rows if grade != "unjudged"}


def five_queries():
    """The document's query and the four beside it."""
    scored_empty, nothing_returned = score([], {"a": 1}), score([], {"a": 0})
    return summarise(
        [score(*example()), scored_empty, score(["a"], {"a": 0}), nothing_returned, score([], {}, fallback=True)]
    )


def decimals(given):
    return [float(number.replace("−", "-")) for number in re.findall(r"−?\d\.\d+", given)]


def listed(given):
    """The lists between backticks."""
    return [part.split() for part in re.findall(r"`(.+?)`", given)]


def differences(given):
    """The six differences at the end of a cell."""
    return np.array(decimals(given)[-6:])


def graded(given):
    return [[int(grade) for grade in row] for row in listed(given)]


def labels(given):
    return {f"annotator {at}": dict(enumerate(row)) for at, row in enumerate(graded(given))}


def economy(given):
    return Economy(*(int(tokens) for tokens in re.findall(r"(\d+) (?:tokens|irr|unj)", given)), relevant_chunks=1)


def optimism(given):
    dev, fixed, held_out, fixed_there = decimals(given)
    choice = Choice.__new__(Choice)
    for name, value in (("value", dev), ("baseline_value", fixed)):
        object.__setattr__(choice, name, value)
    return ChoiceJudgement(choice, "SetF", 10, held_out, None, fixed_there, None, None, None, 1).optimism


def greatest(name):
    return lambda given: score(*example()).high[name]


def compared(given):
    """Six questions with the differences of the cell."""
    return significance.compare([0.0] * 6, list(differences(given)))


COMPUTED = {
    "SetP, greatest": greatest("SetP"),
    "SetR, greatest": greatest("SetR"),
    "SetF, greatest": greatest("SetF"),
    "mean SetF": lambda given: five_queries().means["SetF"],
    "judged share": lambda given: five_queries().judged,
    "false-return rate": lambda given: five_queries().false_return_rate,
    "empty": lambda given: five_queries().queries_empty,
    "fallback": lambda given: five_queries().queries_fallback,
    "difference": lambda given: compared(given).delta,
    "interval, low": lambda given: compared(given).low,
    "interval, high": lambda given: compared(given).high,
    "p": lambda given: compared(given).p,
    "families needed": lambda given: compared(given).needed(),
    "Holm": lambda given: max(significance.holm(decimals(given)[:3])),
    "minimum detectable effect": lambda given: compared(given).detectable,
    "optimism": optimism,
    "Jaccard": lambda given: overlap.jaccard(*listed(given)),
    "noise share": lambda given: economy(given).noise,
    "relevant per 1,000 tokens": lambda given: economy(given).relevant_per_1000,
    "AUC": lambda given: auc(*(np.array([float(one) for one in part]) for part in listed(given))),
    "kappa": lambda given: agreement.cohen_kappa(*graded(given)),
    "kappa, linear weights": lambda given: agreement.cohen_kappa(*graded(given), agreement.LINEAR),
    "alpha": lambda given: agreement.krippendorff_alpha(labels(given)),
}
"""Figure → how it is computed from its cell; a name that is not here is a measure of the example."""


def computed(name, given):
    if name in COMPUTED:
        return COMPUTED[name](given)
    return score(*example(), measures=[parse_measure(name)]).values[name]


@pytest.mark.parametrize("name", WORKED)
def test_a_worked_number_is_what_the_code_computes(name):
    given, value = WORKED[name]
    assert f"{computed(name, given):.{len(value.partition('.')[2])}f}" == value


@pytest.mark.parametrize("name", FAMILIES)
def test_every_measure_is_told_in_the_words_of_the_program(name):
    assert TOLD[name].startswith(f"{FAMILIES[name].meaning} |")


@pytest.mark.parametrize("name", ASKED)
def test_every_other_figure_is_told(name):
    assert name in TOLD


def test_a_row_tells_definition_denominator_trap_and_place():
    for name, row in TOLD.items():
        cells = [cell.strip() for cell in row.split(" | ")]
        assert (len(cells), "" in cells) == (4, False), name


def test_every_usual_measure_and_every_figure_computed_here_has_a_worked_number():
    assert {measure.name for measure in DEFAULT_MEASURES} | set(COMPUTED) <= set(WORKED)


@pytest.mark.parametrize("name", TOLD)
def test_every_figure_has_a_worked_number(name):
    other = {"Fβ": "SetF2", "bounds": "SetP, greatest", "interval": "interval, low", "nDCG": "nDCG@15"}
    assert other.get(name, name.replace("@k", "@15")) in WORKED


def test_a_name_in_the_table_of_worked_numbers_stands_there_once():
    names = re.findall(r"^\| ([^*|]+?) \| [^|]+ \| [\d.]+ \|$", NUMBERS, re.M)
    assert len(names) == len(set(names))
