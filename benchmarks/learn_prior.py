"""Learn the prior of LearnedFilter from public labelled sets, and write its weights: rag_core/filters/prior.json.

Run: python -m benchmarks.learn_prior [--out FILE]

Every set weighs the same, whatever its size, and so does every question within it; lists are 200 deep and the first
100 are looked at. Only means, scales and weights of the signals enter the file, never a text. Skips where the data is
not there (WINNOW_SHARED, else ../shared). What the prior is worth on a set that it has not seen: filters_that_pay.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.parts.real_lists import DATA, LABELLED, captured
from rag_core.filters.chances import SIGNALS
from rag_core.filters.learned_filter import PRIOR, LearnedFilter
from rag_core.stage import Pipeline
from rag_core.tune.learned import STRENGTH, moved, taught
from rag_core.types import Case

DEPTH = 200
SHARE = 100.0  # what all questions of a set weigh together, in labelled lists


Taught = tuple[np.ndarray, np.ndarray, np.ndarray]


def lessons(cases: Sequence[Case]) -> Taught:
    """Signals, labels and weights of one set: every question weighs the same, all of them SHARE."""
    parts = [taught([case], Pipeline(), LearnedFilter().max_results, 1) for case in cases]
    rows, flags = (np.concatenate([part[at] for part in parts]) for at in (0, 1))
    return rows, flags, np.repeat(SHARE / len(cases), len(rows))


def learned(sets: Sequence[Taught]) -> dict[str, Any]:
    """The model of these sets: signals in units of their spread, pulled towards no effect."""
    rows, flags, weights = (np.concatenate([one[at] for one in sets]) for at in range(3))
    spread = rows.std(axis=0)
    scales = zip(SIGNALS, rows.mean(axis=0), np.where(spread > 1e-9, spread, 1.0), strict=True)
    start = {"labels": 0, "intercept": 0.0, "signals": {name: [mean, scale, 0.0] for name, mean, scale in scales}}
    return moved(start, rows, flags, weights, STRENGTH)


def text_of(model: Mapping[str, Any]) -> str:
    """The model as JSON, a signal a line."""
    rows = ",\n".join(f"    {json.dumps(name)}: {json.dumps(row)}" for name, row in model["signals"].items())
    return f'{{\n  "labels": 0,\n  "intercept": {model["intercept"]},\n  "signals": {{\n{rows}\n  }}\n}}\n'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=PRIOR)
    options = parser.parse_args()
    if not DATA.is_dir():
        print(f"skipped: {DATA.name} of the shared data is not there", file=sys.stderr)
        return 0
    sets = []
    for make in LABELLED:
        corpus = make()
        sets.append(lessons(captured(corpus, DEPTH)))
        print(f"{corpus.name}: {len(sets[-1][1]):,} chunks, {sets[-1][1].mean():.3f} relevant", file=sys.stderr)
    options.out.write_text(text_of(learned(sets)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
