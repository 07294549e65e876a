"""`compare` and `attribute`: pipelines side by side, and where each of them loses what is relevant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.grouping import grouped
from rag_core.cli.options import Json, Lists, MinGrade, Split
from rag_core.cli.output import emit
from rag_core.cli.progress import ProgressBar
from rag_core.cli.replay import Pipelines, chosen, laid_over, measures_of, shown
from rag_core.cli.sessions import WorksOn, lists_stand_on, look_at, narrowed, stands_on
from rag_core.errors import InputError


@dataclass(frozen=True)
class ComparePart:
    """Recorded lists in place of a project, and which of the questions."""

    lists: Path | None = Lists
    split: str | None = Split
    tag: str | None = typer.Option(None, "--tag", help="Only the queries with this tag.")
    min_grade: int | None = MinGrade

    def starts(self, works_on: WorksOn, specs: list[str]) -> tuple[Any, list[Any], list[Any], int, dict[str, Any]]:
        """(session, cases, pipelines, the grade from which a chunk is relevant, what the figures stand on).

        The session is None for a file of lists.
        """
        if self.lists is not None:
            from rag_core.records import load_lists

            works_on.refuse_beside(self.lists)
            pipelines = [laid_over(spec) for spec in specs]
            cases = [case for case in load_lists(self.lists) if self.tag is None or self.tag in case.query.tags]
            if not cases:
                raise InputError(f"{self.lists} has no query with tag {self.tag!r}, expected one that it has")
            return None, cases, pipelines, self.min_grade or 1, lists_stand_on(cases, pipelines)
        session = works_on.session(self.min_grade)
        cases = narrowed(session, self.split, self.tag)
        pipelines = [session.ready(laid_over(spec, session=session)) for spec in specs]
        facts = stands_on(session, pipelines, cases) | {"looks": look_at(session, pipelines, cases)}
        return session, cases, pipelines, session.min_grade, facts


@grouped
def compare(
    works_on: WorksOn,
    part: ComparePart,
    pipeline: list[str] = Pipelines,
    query: str | None = typer.Option(None, "-t", help="The query with this id side by side, with every reason."),
    measure: str = typer.Option("SetF", "--measure", "-m", help="The measure of differences, contrasts and slices."),
    order: str = typer.Option("regressions", "--order", help="Of contrasts: regressions, difference or improvements."),
    most: int = typer.Option(20, "-n", min=1, help="How many contrast queries."),
    seed: int = typer.Option(0, help="Seed of intervals and permutation tests."),
    json: bool = Json,
) -> None:
    """Pipelines side by side, the first as baseline: table, the queries that differ most, slices, reasons."""
    from rag_core.compare.compare import compare_json, side_by_side_json
    from rag_core.measure.experiment import run_all
    from rag_core.measure.tally import measure_all

    if len(pipeline or ()) < 2:
        raise InputError(f"compare got {len(pipeline or ())} pipelines, expected at least two --pipeline")
    session, cases, pipelines, least, stood = part.starts(works_on, pipeline)
    if session is None:
        tallies = measure_all(cases, pipelines, least, measures_of([measure]))
    else:
        tallies = session.measure(pipelines, cases, ProgressBar("measured"), measures_of([measure]))
    facts = compare_json(tallies, measure, seed, order, most)
    if query is not None:
        wanted = chosen(cases, [query], None)
        reports = run_all(wanted, pipelines, least) if session is None else session.reports(pipelines, wanted)
        names = [report.name for report in reports]
        facts["query"] = side_by_side_json([report.outcomes[0] for report in reports], names, least)
    facts |= stood
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
    works_on: WorksOn,
    part: ComparePart,
    pipeline: list[str] = Pipelines,
    json: bool = Json,
) -> None:
    """Where relevant chunks are lost, stage by stage, what each stage is good for, and whether order matters."""
    from rag_core.compare.attribution import attribute as attributed
    from rag_core.compare.compare import attribution_json
    from rag_core.measure.experiment import unique_names

    session, cases, pipelines, least, stood = part.starts(works_on, pipeline or ["fixed-15"])
    found = [
        attribution_json(name, attributed(cases if session is None else session.starts(one, cases), one, least))
        for name, one in zip(unique_names(pipelines), pipelines, strict=True)
    ]
    if json:
        emit({"pipelines": found} | stood)
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
