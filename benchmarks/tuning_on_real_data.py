"""What tuning is worth on real questions: best fixed k, the design's defaults, tuned cut, learned cut, oracle.

Run: python -m benchmarks.tuning_on_real_data [--seeds 5] [--json]

Cranfield, a cut of BEIR's DBpedia, questions on code, and the lists of another tool's run; the bundled model's vectors,
exact lists of 100. Per seed the queries are split in half: everything is chosen or trained on dev, and every figure is
the mean SetF over the held-out half. The interval is over the held-out queries of the first seed, p that
of the comparison with the best fixed k there, Holm corrected; `over seeds` is the mean difference over all
splits. Skips where the data is not there (WINNOW_SHARED, else ../shared).
"""

from __future__ import annotations

import argparse
import json
import sys
from statistics import fmean
from typing import Any

from benchmarks.parts.real_lists import DATA, every_set
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.measure.significance import against_first, mean_interval
from rag_core.spec import parse_pipeline
from rag_core.stage import Pipeline
from rag_core.tune.grid import parse_grid
from rag_core.tune.headroom import gap_signal, headroom, means, top_distance_signal
from rag_core.tune.learned import train
from rag_core.tune.tune import choose, dev_and_test, values_of
from rag_core.types import Case

POLICIES = ("largest", "first", "relative")
GRID = "gap_threshold=0:1:2,distance_offset=0:1:2,max_results=3|5|8|10|15|20|30|50|100,min_results=1|2|3"
SHARE = 0.5


def tuned(dev: list[Case]) -> tuple[Pipeline, str]:
    """The best of all policies, limits and the continuous plane on the dev queries, and what it is."""
    found = []
    for policy in POLICIES:
        offset = "relative_offset" if policy == "relative" else "distance_offset"
        axes = parse_grid(GRID.replace("distance_offset", offset) + f",gap_policy={policy}", "AdaptiveGap")
        found.append(choose(dev, parse_pipeline(["AdaptiveGap"]), axes))
    best = max(found, key=lambda choice: choice.value)
    return best.pipeline, " ".join(f"{name}={value}" for name, value in best.settings.items())


def oracle(cases: list[Case]) -> list[float | None]:
    found = headroom([case.candidates for case in cases], cases)
    return [one.best_cut for one in found]


def one_split(cases: list[Case], seed: int) -> tuple[dict[str, list[float | None]], dict[str, str], list[float]]:
    """Held-out SetF per query of every contender, what each is, and what dev promised for k and for the tuned cut."""
    dev, test = dev_and_test(cases, SHARE, seed)
    plane = parse_grid("gap_threshold=0:1:2,distance_offset=0:1:2", "AdaptiveGap")
    simple = choose(dev, parse_pipeline(["AdaptiveGap"]), plane)
    full, what = tuned(dev)
    contenders = {
        "best fixed k": (simple.baseline, simple.baseline.label),
        "defaults": (Pipeline((AdaptiveGap(),)), "gap 0.1, offset 0.4, 2 to 15"),
        "tuned plane": (simple.pipeline, " ".join(f"{name}={value}" for name, value in simple.settings.items())),
        "tuned adaptive": (full, what),
        "learned cut": (Pipeline((train(dev, max_results=100),)), "logistic regression, 10 features"),
    }
    values = {name: values_of(test, pipeline, "SetF") for name, (pipeline, _) in contenders.items()}
    values["oracle"] = oracle(test)
    promised = [simple.baseline_value, fmean(one for one in values_of(dev, full, "SetF") if one is not None)]
    return (
        values,
        {name: text for name, (_, text) in contenders.items()} | {"oracle": "best cut of each list"},
        promised,
    )


def trial(name: str, cases: list[Case], seeds: int) -> dict[str, Any]:
    splits = [one_split(cases, seed) for seed in range(seeds)]
    values, what, promised = splits[0]
    compared = {one.b: one for one in against_first(values, "SetF")}
    gains = {key: fmean(fmean(split[0][key]) - fmean(split[0]["best fixed k"]) for split in splits) for key in values}
    starts = [case.candidates for case in cases]
    rows = [_row(key, values[key], what[key], compared.get(key), gains[key]) for key in values]
    held_out = fmean(values["tuned adaptive"])
    return {
        "set": name,
        "queries": len(cases),
        "held_out": len(values["oracle"]),
        "rows": rows,
        "optimism": promised[1] - held_out,
        "headroom": means(headroom(starts, cases)),
        "signals": [gap_signal(starts, cases).sentence(), top_distance_signal(starts, cases).sentence()],
    }


def _row(name: str, values: list[Any], what: str, compared: Any, gain: float) -> dict[str, Any]:
    low, high, _ = mean_interval(values)
    row = {"name": name, "SetF": fmean(values), "low": low, "high": high, "what": what, "gain_over_seeds": gain}
    if compared is not None:
        row |= {"delta": compared.delta, "p": compared.p_corrected, "detectable": compared.detectable}
    return row


def show(found: dict[str, Any]) -> None:
    print(f"\n{found['set']}: {found['queries']} queries, {found['held_out']} held out")
    for row in found["rows"]:
        against = (
            ""
            if "delta" not in row
            else f"  {row['delta']:+.3f} (p {row['p']:.3f}, over seeds {row['gain_over_seeds']:+.3f})"
        )
        print(
            f"  {row['name']:<15} {row['SetF']:.3f} [{row['low']:.3f}, {row['high']:.3f}]{against:<42}  {row['what']}"
        )
    head = found["headroom"]
    print(
        f"  optimism of the tuned cut {found['optimism']:+.3f}; best cut {head['best_cut']:.3f}, perfect filter "
        f"{head['perfect_filter']:.3f}, lost in retrieval {head['lost_in_retrieval']:.0%}"
    )
    print("  " + "\n  ".join(found["signals"]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not DATA.is_dir():
        print(f"skipped: {DATA.name} of the shared data is not there", file=sys.stderr)
        return 0
    found = [trial(name, cases, options.seeds) for name, cases in every_set()]
    if options.json:
        print(json.dumps(found))
    else:
        for one in found:
            show(one)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
