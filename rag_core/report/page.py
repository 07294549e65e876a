"""The report as one HTML text. Everything is escaped by the template engine; nothing in it is fetched or run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_core.compare.compare import Estimate, compared_words, estimate
from rag_core.compare.run_file import Run, RunPipeline
from rag_core.files import read_text
from rag_core.measure.significance import TIE, Comparison, compare, corrected, shown_p

MEASURES = ("SetP", "SetR", "SetF", "nDCG@15")
MOST_QUERIES = 40  # of the contrasts, told in full; the rest are in the run file
MOST_CHUNKS = 20  # kept chunks listed of a query and pipeline

WIDTH = 640.0
LEFT, RIGHT = 180.0, 60.0
ROW = 28.0
STRIP = 120.0


@dataclass(frozen=True)
class Bar:
    """One bar of a strip or a waterfall; `good` says which way it points or what it is."""

    x: float
    y: float
    width: float
    height: float
    good: bool


def scale(value: float) -> float:
    """A measure of 0 to 1 as an x position."""
    return LEFT + value * (WIDTH - LEFT - RIGHT)


def strip(differences: Sequence[float], most: int = 400) -> list[Bar]:
    """Sorted per-query differences (−1 to 1) as bars up and down from the middle; at most so many, evenly chosen."""
    count = len(differences)
    chosen = differences if count <= most else [differences[at * count // most] for at in range(most)]
    width = WIDTH / max(1, len(chosen))
    middle = STRIP / 2
    return [
        Bar(at * width, middle - max(0.0, one) * middle, max(0.5, width - 1), max(0.5, abs(one) * middle), one >= 0)
        for at, one in enumerate(chosen)
    ]


def fall(steps: Sequence[tuple[str, int]]) -> list[Bar]:
    """A waterfall: the whole, what each step takes off it, and what is left."""
    whole = max(1, steps[0][1])
    bars, left = [], float(steps[0][1])
    for at, (_, count) in enumerate(steps):
        total = at in (0, len(steps) - 1)
        start = 0.0 if total else left - count
        bars.append(Bar(scale(start / whole), ROW * at + 4, scale(count / whole) - LEFT, ROW - 8, total))
        left = float(count) if at == 0 else left if total else left - count
    return bars


@dataclass(frozen=True)
class ReportRow:
    """One pipeline of the table of means."""

    name: str
    estimates: dict[str, Estimate]
    against: Comparison | None
    means: Any
    tokens: int
    unjudged: float | None


@dataclass(frozen=True)
class ReportSide:
    """One pipeline on one query."""

    name: str
    value: float | None
    kept: tuple[tuple[str, str, str], ...]  # (id, title, label in words)
    more: int  # kept chunks that are not listed
    lost: tuple[tuple[str, str, str, str], ...]  # (id, title, label, "stage: reason")


@dataclass(frozen=True)
class Told:
    """One query, told in full."""

    id: str
    query: str
    spread: float
    sides: tuple[ReportSide, ...]


def _row(pipeline: RunPipeline, measures: Sequence[str], against: Comparison | None) -> ReportRow:
    economies = [query.get("economy") or {} for query in pipeline.queries]
    tokens = sum(part.get(name, 0) for part in economies for name in ("relevant", "irrelevant", "unjudged"))
    judged = pipeline.means.get("judged")
    estimates = {name: estimate(pipeline.values(name)) for name in measures}
    return ReportRow(pipeline.name, estimates, against, pipeline.means, tokens, None if judged is None else 1 - judged)


def _differences(base: RunPipeline, other: RunPipeline) -> tuple[float, ...]:
    """Per-query differences in SetF, the worst first."""
    pairs = zip(base.values("SetF"), other.values("SetF"), strict=True)
    found = (after - before for before, after in pairs if before is not None and after is not None)
    return tuple(sorted(0.0 if abs(one) <= TIE else one for one in found))


def losses(pipeline: RunPipeline) -> list[tuple[str, int]]:
    """Over its scored queries (what, count): all relevant chunks, lost in retrieval, lost at each stage, kept."""
    scored = [query for query in pipeline.queries if query.get("scored")]
    relevant = sum(query.get("relevant_total", 0) for query in scored)
    retrieved = sum(query.get("retrieved", 0) for query in scored)
    lost: dict[str, int] = {}
    for query in scored:
        for stage, counts in query.get("dropped", {}).items():
            lost[f"lost at {stage}"] = lost.get(f"lost at {stage}", 0) + counts[0]
    kept = retrieved - sum(lost.values())
    return [("relevant", relevant), ("lost in retrieval", relevant - retrieved), *lost.items(), ("kept", kept)]


def contrasts(run: Run) -> list[Told]:
    """Every query, those first on which the pipelines differ most."""
    found = []
    for at, query in enumerate(run.document["queries"]):
        values = [one.queries[at]["values"].get("SetF") for one in run.pipelines]
        known = [value for value in values if value is not None]
        spread = max(known) - min(known) if known else 0.0
        sides = tuple(_side(run, one, at) for one in run.pipelines)
        found.append(Told(query["id"], query["query"], spread, sides))
    return sorted(found, key=lambda one: -one.spread)


def _side(run: Run, pipeline: RunPipeline, at: int) -> ReportSide:
    query = pipeline.queries[at]
    titles, grades = run.document["chunks"], run.document["labels"].get(query["id"], {})
    least = run.document["min_grade"]
    kept = tuple((chunk, titles.get(chunk, ""), label_words(grades.get(chunk), least)) for chunk in query["kept"])
    lost = tuple(
        (
            reason["id"],
            titles.get(reason["id"], ""),
            label_words(grades.get(reason["id"]), least),
            f"{reason['stage']}: {reason['reason']}",
        )
        for reason in query.get("reasons", ())
    )
    value = query["values"].get("SetF")
    return ReportSide(pipeline.name, value, kept[:MOST_CHUNKS], max(0, len(kept) - MOST_CHUNKS), lost[:MOST_CHUNKS])


def label_words(grade: int | None, least: int) -> str:
    """A label in a word: shape and word, never colour alone."""
    return "? unjudged" if grade is None else "● relevant" if grade >= least else "○ irrelevant"


TEMPLATE = Path(__file__).with_name("page.html")


def report_html(run: Run, notes: Sequence[tuple[str, str, str]] = ()) -> str:
    """The report of a run, with (at, author, note) for each note on it: one self-contained page without scripts.

    The first pipeline is the baseline.
    """
    from jinja2 import Environment, StrictUndefined

    base, *others = run.pipelines
    measures = [name for name in MEASURES if any(name in query["values"] for query in base.queries)]
    against = base.values("SetF")
    compared = corrected(
        [compare(against, one.values("SetF"), names=(base.name, one.name), measure="SetF") for one in others]
    )
    told, steps = contrasts(run), [losses(one) for one in run.pipelines]

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["figure"] = figure
    environment.filters["chance"] = shown_p
    environment.filters["signed"] = lambda value: "-" if value is None else f"{value:+.3f}"
    environment.filters["spec"] = lambda spec: json.dumps(list(spec), indent=2, ensure_ascii=False)
    return environment.from_string(read_text(TEMPLATE)).render(
        run=run,
        document=run.document,
        notes=notes,
        measures=measures,
        rows=[_row(one, measures, found) for one, found in zip(run.pipelines, [None, *compared], strict=True)],
        sentences=[sentence for found in compared for sentence in compared_words(found)],
        strips=[(found, strip(_differences(base, one))) for one, found in zip(others, compared, strict=True)],
        falls=[(one.name, each, fall(each)) for one, each in zip(run.pipelines, steps, strict=True)],
        queries=told[:MOST_QUERIES],
        left_out=max(0, len(told) - MOST_QUERIES),
        size={"WIDTH": WIDTH, "LEFT": LEFT, "RIGHT": RIGHT, "ROW": ROW, "STRIP": STRIP, "scale": scale},
    )


def figure(value: float | None) -> str:
    """A measure with three digits, a dash where there is none."""
    return "-" if value is None else f"{value:.3f}"
