"""Every cut beside the others on the same lists: chosen on one half of the questions, judged on the other half.

Run: python -m benchmarks.cuts [--short]

The demo and, where the shared data is (WINNOW_SHARED, else ../shared), ADI and code-chunks: nearest chunks, 200
deep, no rules. Every cut has its numbers, min_results and max_results chosen for SetF on one half and is judged on the
other, then the other way round, so that each question is judged once. Figures are the mean SetF and its difference from
the best fixed k of the same half with a 95 % interval. `--short` takes the demo and lists 50 deep.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from benchmarks.parts.real_lists import DATA, adi, captured, code_chunks
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cut import POLICIES
from rag_core.measure.significance import compare
from rag_core.project.choosing import best_of_family
from rag_core.project.project import open_project
from rag_core.project.session import Session
from rag_core.retrieve.dense import Dense
from rag_core.stage import Pipeline
from rag_core.tune.grid import Axis
from rag_core.tune.learned import train
from rag_core.tune.tune import Choice, Values, choose, cross_validate, dev_and_test, mean_of, values_of
from rag_core.types import Case

DEPTH, SHORT = 200, 50
FIXED = "best fixed k"
EVERYTHING = 1e6
ALL, DEFAULTS = "every policy", "defaults, not chosen"


def demo() -> list[Case]:
    """The demo's questions with the lists of its search."""
    with TemporaryDirectory() as folder:
        session = Session(open_project("demo", Path(folder)))
        session.refresh()
        cases = session.starts(Pipeline((Dense(depth=DEPTH),)), session.cases)
        session.close()
    return cases


SETS: dict[str, Callable[[], list[Case]]] = {
    "demo": demo,
    "ADI": lambda: captured(adi(), DEPTH),
    "code-chunks": lambda: captured(code_chunks(), DEPTH),
}


def bounded(dev: Sequence[Case], stage: AdaptiveGap, setting: str, depth: int) -> Choice:
    """The best minimum score or weak top of a stage on these questions: forty quantiles of what there is."""
    lists = [[hit.scores["distance"] for hit in case.candidates.hits[:depth]] for case in dev]
    values = [row[0] for row in lists if row] if setting == "weak_top" else [one for row in lists for one in row]
    points = np.unique(np.quantile(values, np.linspace(0, 1, 41)).round(6)).tolist()
    return choose(dev, Pipeline((stage,)), [Axis(setting, stage.name, setting, (*points, None))])


def chosen(dev: Sequence[Case], depth: int) -> dict[str, Pipeline]:
    """Every cut as it is chosen on these questions."""
    family = {
        policy: best_of_family(dev, Pipeline((AdaptiveGap(gap_policy=policy),)), 0, policies=(policy,))
        for policy in POLICIES
    }
    best = max(family.values(), key=lambda choice: choice.value)
    (cut,) = best.pipeline.stages
    crossed = cross_validate(dev, partial(best_of_family, pipeline=Pipeline((AdaptiveGap(),)), place=0))
    assert isinstance(cut, AdaptiveGap)
    whole = AdaptiveGap(0.2, EVERYTHING, 0, depth, "ratio", worst_score=1.0)
    return {
        FIXED: best.baseline,
        DEFAULTS: Pipeline((AdaptiveGap(),)),
        **{name: choice.pipeline for name, choice in family.items()},
        "minimum score": bounded(dev, whole, "worst_score", depth).pipeline,
        ALL: best.pipeline,
        f"{ALL} where folds over dev say it pays, else fixed k": best.taken
        if crossed.gain > crossed.error
        else best.baseline,
        f"{ALL}, weak top": bounded(dev, replace(cut, weak_top=1.0), "weak_top", depth).pipeline,
        "learned cut": Pipeline((train(dev, max_results=min(depth, 100)),)),
    }


def judged(cases: Sequence[Case], depth: int) -> tuple[dict[str, Values], list[str]]:
    """SetF of every question under every cut chosen on the other half, and the questions' families."""
    short = [
        replace(case, candidates=replace(case.candidates, hits=case.candidates.hits[:depth]))
        for case in cases
        if case.candidates is not None
    ]
    halves = dev_and_test(short, 0.5)
    values: dict[str, Values] = {}
    for dev, test in (halves, halves[::-1]):
        for name, pipeline in chosen(dev, depth).items():
            values.setdefault(name, []).extend(values_of(test, pipeline, "SetF"))
    return values, [case.query.family for half in halves[::-1] for case in half]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    names = [name for name in SETS if name == "demo" or (DATA.is_dir() and not options.short)]
    columns: dict[str, list[str]] = {}
    heads = []
    for name in names:
        start = perf_counter()
        values, families = judged(SETS[name](), SHORT if options.short else DEPTH)
        for row, found in values.items():
            cell = f"{mean_of(found):.3f}"
            if row != FIXED:
                against = compare(values[FIXED], found, measure="SetF", families=families)
                cell += f", {against.delta:+.3f} [{against.low:+.3f}, {against.high:+.3f}]"
            columns.setdefault(row, []).append(cell)
        heads.append(f"{name} ({len(families)} questions, {perf_counter() - start:.0f} s)")
    print(f"| cut | {' | '.join(heads)} |", "| --- " * (1 + len(heads)) + "|", sep="\n")
    for row, cells in columns.items():
        print(f"| {row} | {' | '.join(cells)} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
