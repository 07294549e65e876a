"""`compare` and `attribute`: pipelines side by side, and where each of them loses what is relevant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.evaluating import narrowed, opened
from rag_core.cli.grouping import grouped
from rag_core.cli.live import SourceName
from rag_core.cli.options import Collection, EvalSetName, Json, Lists, MinGrade, Split, Workspace
from rag_core.cli.output import emit
from rag_core.cli.replay import Pipelines, chosen, laid_over, measures_of, shown
from rag_core.errors import InputError
from rag_core.workspace import resolve_workspace


@dataclass(frozen=True)
class Measured:
    """What pipelines are measured on: recorded lists or an eval set, all of it or a part."""

    lists: Path | None = Lists
    eval_set: str | None = EvalSetName
    collection: str | None = Collection
    source: str | None = SourceName
    split: str | None = Split
    tag: str | None = typer.Option(None, "--tag", help="Only the queries with this tag.")
    min_grade: int | None = MinGrade
    workspace: Path | None = Workspace

    @contextmanager
    def opened(self, specs: list[str]) -> Iterator[tuple[list[Any], list[Any], int]]:
        """(cases, pipelines ready to run, the grade from which a chunk is relevant)."""
        if (self.lists is None) == (self.eval_set is None):
            raise InputError("expected either --lists FILE or --eval-set NAME")
        pipelines = [laid_over(spec) for spec in specs]
        if self.lists is not None:
            from rag_core.records import load_lists

            cases = [case for case in load_lists(self.lists) if self.tag is None or self.tag in case.query.tags]
            if not cases:
                raise InputError(f"{self.lists} has no query with tag {self.tag!r}, expected one that it has")
            yield cases, pipelines, self.min_grade or 1
            return
        folder = resolve_workspace(self.workspace)
        with opened(str(self.eval_set), self.collection, self.source, folder) as whole:
            one = narrowed(whole, self.split, self.tag, None, None)
            yield one.cases, one.runnable(pipelines), self.min_grade or one.eval_set.min_grade


@grouped
def compare(
    measured: Measured,
    pipeline: list[str] = Pipelines,
    query: str | None = typer.Option(None, "-t", help="The query with this id side by side, with every reason."),
    measure: str = typer.Option("SetF", "--measure", "-m", help="The measure of differences, contrasts and slices."),
    order: str = typer.Option("regressions", "--order", help="Of contrasts: regressions, difference or improvements."),
    most: int = typer.Option(20, "-n", min=1, help="How many contrast queries."),
    seed: int = typer.Option(0, help="Seed of intervals and permutation tests."),
    json: bool = Json,
) -> None:
    """Pipelines side by side, the first as baseline: table, the queries that differ most, slices, reasons."""
    from rag_core.evaluate.compare_report import compare_json, side_by_side_json
    from rag_core.evaluate.experiment import run_all
    from rag_core.evaluate.tally import measure_all

    if len(pipeline or ()) < 2:
        raise InputError(f"compare got {len(pipeline or ())} pipelines, expected at least two --pipeline")
    with measured.opened(pipeline) as (cases, pipelines, least):
        tallies = measure_all(cases, pipelines, least, measures_of([measure]))
        facts = compare_json(tallies, measure, seed, order, most)
        if query is not None:
            reports = run_all(chosen(cases, [query], None), pipelines, least)
            names = [report.name for report in reports]
            facts["query"] = side_by_side_json([report.outcomes[0] for report in reports], names, least)
    if json:
        emit(facts)
        return
    typer.echo("\n".join(_lines(facts, measure)))


def _lines(facts: dict[str, Any], measure: str) -> Iterator[str]:
    """The comparison as text."""
    for row in facts["table"]:
        cell = row["measures"][measure]
        interval = "" if cell["low"] is None else f" [{shown(cell['low'])}, {shown(cell['high'])}]"
        yield f"{row['name']}: {measure} {shown(cell['mean'])}{interval}, {row['kept_mean']:.1f} kept a query"
    yield from facts["sentences"]
    for name, found in facts["contrasts"].items():
        yield f"{name} against {facts['baseline']}:"
        for one in found:
            yield f"  {one['difference']:+.3f}  {one['query_id']}  {one['baseline']:.3f} → {one['other']:.3f}"
    for against in facts.get("query", {}).get("against", ()):
        yield f"{against['name']}: Jaccard {against['jaccard']:.3f}, rank-biased overlap {against['rbo']:.3f}"
        for one in against["differences"]:
            yield f"  only {one['kept_by']}: {one['chunk_id']}  {one['missing_from']} {one['stage']}: {one['reason']}"


@grouped
def attribute(
    measured: Measured,
    pipeline: list[str] = Pipelines,
    json: bool = Json,
) -> None:
    """Where relevant chunks are lost, stage by stage, what each stage is good for, and whether order matters."""
    from rag_core.evaluate.attribution import attribute as attributed
    from rag_core.evaluate.compare_report import attribution_json
    from rag_core.evaluate.experiment import unique_names

    with measured.opened(pipeline or ["fixed-15"]) as (cases, pipelines, least):
        found = [
            attribution_json(name, attributed(cases, one, least))
            for name, one in zip(unique_names(pipelines), pipelines, strict=True)
        ]
    if json:
        emit({"pipelines": found})
        return
    for one in found:
        typer.echo("\n".join(_attribution_lines(one)))


def _attribution_lines(one: dict[str, Any]) -> Iterator[str]:
    yield f"{one['name']}: {one['verdict']}"
    yield "  " + " · ".join(f"{step['step']} {step['chunks']}" for step in one["waterfall"])
    for stage in one["stages"]:
        dropped, gain = stage["dropped"], stage["gain"]
        without = stage["not_tried"] or f"without it SetF {one['SetF'] - gain:.3f} ({_signed(-gain)})"
        yield (
            f"  {stage['stage']}: drops {dropped['relevant']} relevant, {dropped['irrelevant']} irrelevant, "
            f"{dropped['unjudged']} unjudged; {without}"
        )
    for swap in one["swaps"]:
        changed = f"{swap['queries_changed']} queries change, {_signed(-swap['gain'])}"
        yield f"  {swap['second']} before {swap['first']}: {changed}"


def _signed(value: float) -> str:
    """A difference with its sign; no minus before a zero."""
    return f"{value + 0.0:+.3f}"
