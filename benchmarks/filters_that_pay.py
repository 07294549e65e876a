"""Do filters pay on data they were not made for? How much of the way from the best fixed k to a perfect filter they go.

Run: python -m benchmarks.filters_that_pay [--quick] [--seeds 3] [--json]

The labelled sets of the shared data, searched once 200 deep with the bundled model's vectors. Per seed the questions
are split in half: everything is chosen and learned on one half, and every figure is of the other. Contenders: the
adaptive cut tuned with every limit and policy (or the fixed k where that wins), the learned cut, a logistic regression
on distance alone, the learned filter trained, the same behind the rules that slots propose (of families that lose no
answer on the half that chooses), and with a prior learned on the other sets alone: without a label, and
moved by 25 to 400 labels, the first ten of a list each. `way` is (SetF − best fixed k) / (perfect filter − best fixed
k); pooled is the mean over sets, its interval a bootstrap over the questions of every set (first seed).
`--quick` takes two sets, one seed, 40 questions each. Skips where the data is not there (WINNOW_SHARED, else
../shared).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.learn_prior import DEPTH, Taught, learned, lessons
from benchmarks.parts.real_lists import DATA, LABELLED, captured
from benchmarks.parts.rulebooks import RULEBOOKS, rulebook
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.chances import SIGNALS
from rag_core.filters.learned_filter import LearnedFilter
from rag_core.filters.query_must import QueryMust
from rag_core.project.choosing import best_of_family
from rag_core.rules import slots
from rag_core.stage import Pipeline
from rag_core.tune.headroom import headroom
from rag_core.tune.learned import moved, taught, train
from rag_core.tune.plane import fixed_k
from rag_core.tune.tune import dev_and_test, values_of
from rag_core.types import Case, Chunk

LABELS = (0, 25, 50, 100, 200, 400)
A_QUESTION = 10  # the first so many of a list are what a person labels of it
SCORE_ALONE = SIGNALS.index("score behind the first")
Values = np.ndarray


def labelled(cases: Sequence[Case], labels: int, seed: int) -> list[Case]:
    """So many labels: the first ten of each list, of questions drawn at random; nothing else is known."""
    order = np.random.default_rng(seed).permutation(len(cases))
    drawn, left = [], labels
    for at in order:
        case, count = cases[at], min(A_QUESTION, left)
        if not count:
            break
        seen = [hit.chunk.id for hit in case.candidates.hits[:count]]
        drawn.append(replace(case, grades={id_: case.grades.get(id_, 0) for id_ in seen}))
        left -= len(seen)
    return drawn


def plain(prior: dict[str, Any], dev: Sequence[Case]) -> dict[str, Any]:
    """A logistic regression on the distance behind the first alone: every other weight stays 0."""
    rows, flags = taught(dev, Pipeline(), LearnedFilter().max_results, 1)
    alone = np.zeros_like(rows)
    alone[:, SCORE_ALONE] = rows[:, SCORE_ALONE]
    blank = {name: [0.0, scale, 0.0] for name, (_, scale, _) in prior["signals"].items()}
    return moved({**prior, "signals": blank}, alone, flags, strength=1e-6)


def with_rules(cases: Sequence[Case], rules: Mapping[str, Any]) -> list[Case]:
    """The lists with these rules on their chunks."""
    return [
        replace(case, candidates=replace(case.candidates, hits=tuple(
            replace(hit, chunk=replace(hit.chunk, query_must=rules.get(hit.chunk.id))) for hit in case.candidates.hits
        )))
        for case in cases
    ]  # fmt: skip


def rules_of(chunks: Sequence[Chunk], families: Sequence[slots.SlotFamily], dev: Sequence[Case]) -> dict[str, Any]:
    """The rules that one half of the questions does not contradict, by chunk."""
    settled = [slots.with_policy(one, "proposed", dev, 1) for one in families]
    safe = slots.safe(settled, [slots.check(one, dev, min_grade=1) for one in settled])
    return {chunk: rule.as_mapping() for chunk, rule in slots.rules_to_store(safe, chunks, False).items()}


def contenders(dev: Sequence[Case], prior: dict[str, Any], seed: int) -> dict[str, Pipeline]:
    """Every filter as it is chosen on one half of the questions."""

    def kept_by(model: dict[str, Any]) -> Pipeline:
        return Pipeline((LearnedFilter(model),))

    whole = moved(prior, *taught(dev, Pipeline(), LearnedFilter().max_results, 1))
    pipelines = {
        "tuned cut": best_of_family(dev, Pipeline((AdaptiveGap(),)), 0).taken,
        "learned cut": Pipeline((train(dev, max_results=100),)),
        "distance alone": kept_by(plain(prior, dev)),
        "learned filter": kept_by(whole),
    }
    for labels in LABELS:
        known = labelled(dev, labels, seed)
        model = moved(prior, *taught(known, Pipeline(), LearnedFilter().max_results, 1)) if known else prior
        pipelines[f"prior + {labels} labels"] = kept_by(model)
    return pipelines


def trial(cases: list[Case], chunks: Sequence[Chunk], others: Sequence[Taught], seeds: int) -> dict[str, Any]:
    """Held-out SetF per question of every contender, by seed, beside the best fixed k and the perfect filter."""
    prior, families = learned(others), slots.propose(chunks)
    by_seed = []
    for seed in range(seeds):
        dev, test = dev_and_test(cases, 0.5, seed)
        fixed, k, _ = fixed_k(dev, (), "SetF", None)
        values = {"best fixed k": values_of(test, fixed, "SetF")}
        for name, pipeline in contenders(dev, prior, seed).items():
            values[name] = values_of(test, pipeline, "SetF")
        rules = rules_of(chunks, families, dev)
        dev_ruled, test_ruled = with_rules(dev, rules), with_rules(test, rules)
        behind = best_of_family(dev_ruled, Pipeline((QueryMust(), LearnedFilter(prior))), 1)  # as the product chooses
        values["rules + learned"] = values_of(test_ruled, behind.pipeline, "SetF")
        values["perfect filter"] = [row.perfect_filter for row in headroom([c.candidates for c in test], test)]
        by_seed.append({name: np.array(row, dtype=float) for name, row in values.items()})
    return {"questions": len(cases), "k": k, "rules": len(rules), "by_seed": by_seed}


def way(values: dict[str, Values], name: str, drawn: np.ndarray | None = None) -> float:
    """How much of the way from the best fixed k to the perfect filter a contender goes."""
    rows = {key: row if drawn is None else row[drawn] for key, row in values.items()}
    fixed = rows["best fixed k"].mean()
    return float((rows[name].mean() - fixed) / max(rows["perfect filter"].mean() - fixed, 1e-9))


def pooled(
    trials: Sequence[dict[str, Any]], of: Callable[[dict[str, Values], str, Any], float], name: str
) -> dict[str, float]:
    """Mean over sets (over seeds), and the middle 95 % of it with the questions of every set drawn anew."""
    mean = float(np.mean([of(values, name, None) for one in trials for values in one["by_seed"]]))
    dice = np.random.default_rng(0)
    means = [
        np.mean([of(first, name, dice.integers(len(first[name]), size=len(first[name]))) for first in firsts])
        for firsts in [[one["by_seed"][0] for one in trials]]
        for _ in range(1000)
    ]
    centre = float(np.mean([of(one["by_seed"][0], name, None) for one in trials]))
    low, high = np.quantile(means, (0.025, 0.975)) + (mean - centre)
    return {"mean": mean, "low": float(low), "high": float(high)}


def gain(values: dict[str, Values], name: str, drawn: np.ndarray | None = None) -> float:
    """The mean difference to the best fixed k."""
    difference = values[name] - values["best fixed k"]
    return float((difference if drawn is None else difference[drawn]).mean())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not DATA.is_dir():
        print(f"skipped: {DATA.name} of the shared data is not there", file=sys.stderr)
        return 0
    makers = LABELLED[:2] if options.quick else (*LABELLED, *(partial(rulebook, name) for name in RULEBOOKS))
    sets, chunks = {}, {}
    for make in makers:
        corpus = make()
        cases = captured(corpus, DEPTH)
        sets[corpus.name] = cases[:40] if options.quick else cases
        chunks[corpus.name] = [Chunk(id_, corpus.titles.get(id_, ""), text) for id_, text in corpus.documents.items()]
    taught_by = {name: lessons(cases) for name, cases in sets.items() if name not in RULEBOOKS}
    trials = {}
    for name, cases in sets.items():
        others = [lesson for other, lesson in taught_by.items() if other != name]  # those of the shipped prior
        trials[name] = trial(cases, chunks[name], others, 1 if options.quick else options.seeds)
        print(f"{name} done", file=sys.stderr)
    names = list(next(iter(trials.values()))["by_seed"][0])
    document: dict[str, Any] = {"sets": {}, "pooled": {}}
    for name, one in trials.items():
        means = {key: float(np.mean([values[key].mean() for values in one["by_seed"]])) for key in names}
        ways = {key: float(np.mean([way(values, key) for values in one["by_seed"]])) for key in names}
        document["sets"][name] = {"questions": one["questions"], "rules": one["rules"], "SetF": means, "way": ways}
    for key in names[1:-1]:
        both = (("way", way), ("gain", gain))
        document["pooled"][key] = {what: pooled(list(trials.values()), of, key) for what, of in both}
    if options.json:
        print(json.dumps(document))
        return 0
    head = " ".join(f"{name[:9]:>9}" for name in document["sets"])
    print(f"{'way to a perfect filter, held out':<34} {head}   pooled [95 %]            gain in SetF")
    for key in names[1:-1]:
        row = " ".join(f"{one['way'][key]:>9.2f}" for one in document["sets"].values())
        share, gained = document["pooled"][key]["way"], document["pooled"][key]["gain"]
        print(
            f"{key:<34} {row}   {share['mean']:+.2f} [{share['low']:+.2f}, {share['high']:+.2f}]   "
            f"{gained['mean']:+.3f} [{gained['low']:+.3f}, {gained['high']:+.3f}]"
        )
    for key in (names[0], names[-1]):
        print(f"{key + ', SetF':<34} " + " ".join(f"{one['SetF'][key]:>9.3f}" for one in document["sets"].values()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
