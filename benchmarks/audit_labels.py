"""How many planted label errors the audit's list holds near its top, beside what the labels alone would find.

Run: python -m benchmarks.audit_labels [--seeds 20] [--depth 30] [--json]

Cranfield (225 questions; the 30 nearest abstracts of each by the bundled model and the relevant ones beyond, every one
labelled). 5 % of the labels of each grade are flipped, in one of two readings: of each true grade ("true", an annotator
who errs alike on both) or so that 5 % of each stored grade are wrong ("stored"). Beside the audit's share of the errors
in its first p % stand three lists that know the labels only: `random` order; `same mix`, as many of each grade as the
audit takes, at random within the grade; `one grade first`, the better of all relevant first and all irrelevant first.
"By label alone" is `same mix`: what the audit's choice of grades would find without its ranking inside them. Skips
where the data is not there (WINNOW_SHARED, else ../shared).
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import numpy as np

from benchmarks.parts.real_lists import DATA, cranfield, vectors
from rag_core.labelling.audit import LabelledPair, audit

TOPS = (0.05, 0.1, 0.15, 0.2, 0.3)
SHARE = 0.05


def cranfield_labels(depth: int) -> list[LabelledPair]:
    """Every label of the pools: judged relevant or, as in that collection, not."""
    corpus = cranfield()
    ids, texts = list(corpus.documents), list(corpus.documents.values())
    asked = [name for name in corpus.queries if corpus.grades.get(name)]
    near = vectors([corpus.queries[name] for name in asked]).astype(float) @ vectors(texts).astype(float).T
    labels = []
    for name, row in zip(asked, 1 - near, strict=True):
        order = np.argsort(row, kind="stable")
        relevant = {chunk for chunk, grade in corpus.grades[name].items() if grade}
        for rank, at in enumerate(order):
            if rank < depth or ids[at] in relevant:
                grade = int(ids[at] in relevant)
                labels.append(LabelledPair(name, ids[at], grade, texts[at], float(row[at]), corpus.queries[name]))
    return labels


def flipped(labels: list[LabelledPair], seed: int, reading: str) -> tuple[list[LabelledPair], set[int]]:
    """The labels with 5 % of each grade flipped, and the places of the wrong ones."""
    dice = random.Random(f"{reading} {seed}")
    sides = [[at for at, label in enumerate(labels) if label.grade == grade] for grade in (0, 1)]
    counts = [round(SHARE * len(side)) for side in sides]
    if reading == "stored":  # so many of each side that 5 % of what is stored as each grade are wrong
        sizes = np.linalg.solve([[1 - SHARE, SHARE], [SHARE, 1 - SHARE]], [len(side) for side in sides])
        counts = [round(SHARE * sizes[1]), round(SHARE * sizes[0])]
    wrong = {at for side, count in zip(sides, counts, strict=True) for at in dice.sample(side, count)}
    return [replace(one, grade=1 - one.grade) if at in wrong else one for at, one in enumerate(labels)], wrong


def curves(labels: list[LabelledPair], wrong: set[int], seed: int) -> dict[str, list[float]]:
    """The share of the errors in the first 5, 10, 15, 20 and 30 %, of the audit and of lists by label alone."""
    place = {(label.query_id, label.chunk_id): at for at, label in enumerate(labels)}
    ranked = [place[one.label.query_id, one.label.chunk_id] for one in audit(labels)]
    shuffled = list(range(len(labels)))
    random.Random(seed).shuffle(shuffled)
    by_grade = [sorted(shuffled, key=lambda at: sign * labels[at].grade) for sign in (1, -1)]
    found: dict[str, list[float]] = {"audit": [], "same mix": [], "one grade first": [], "random": []}
    for top in TOPS:
        count = round(top * len(labels))
        first = ranked[:count]
        mix = [
            sum(labels[at].grade == grade for at in first) * rate_of(labels, wrong, grade) / len(wrong)
            for grade in (0, 1)
        ]
        found["audit"].append(len(wrong & set(first)) / len(wrong))
        found["same mix"].append(sum(mix))
        found["one grade first"].append(max(len(wrong & set(order[:count])) / len(wrong) for order in by_grade))
        found["random"].append(len(wrong & set(shuffled[:count])) / len(wrong))
    return found


def rate_of(labels: list[LabelledPair], wrong: set[int], grade: int) -> float:
    """The share of errors among the labels stored as this grade: what checking them at random finds per label."""
    stored = [at for at, label in enumerate(labels) if label.grade == grade]
    return len(wrong & set(stored)) / len(stored)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--depth", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if not (DATA / "cranfield").is_dir():
        sys.exit(f"skipped: {DATA / 'cranfield'} is not there")
    truth = cranfield_labels(given.depth)
    document: dict[str, Any] = {"labels": len(truth), "relevant": sum(one.grade for one in truth), "tops": TOPS}
    for reading in ("true", "stored"):
        runs = [curves(*flipped(truth, seed, reading), seed) for seed in range(given.seeds)]
        document[reading] = {
            name: [[fmean(run[name][at] for run in runs), stdev(run[name][at] for run in runs)] for at in range(5)]
            for name in runs[0]
        }
        times = [run["audit"][2] / run["same mix"][2] for run in runs]
        document[f"{reading} times at 15 %"] = [fmean(times), min(times), max(times)]
        if not given.json:
            print(f"{len(truth):,} labels, {reading} flips, {given.seeds} seeds; share of errors in the first")
            print("                   " + "".join(f"{top:>14.0%}" for top in TOPS))
            for name, row in document[reading].items():
                print(f"  {name:<17}" + "".join(f"{mean:>8.3f} ±{sd:.3f}" for mean, sd in row))
            print(f"  audit / same mix at 15 %: {fmean(times):.2f} ({min(times):.2f} to {max(times):.2f})")
    if given.json:
        print(json.dumps(document))


if __name__ == "__main__":
    main()
