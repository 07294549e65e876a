"""`evaluate`: measure pipelines on an eval set; and what a gate shares with it: opening the set and its index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.grouping import grouped
from rag_core.cli.live import Approximate, Engine, EvalSetName, SourceName
from rag_core.cli.live_index import opened_set
from rag_core.cli.options import Collection, Json, MinGrade, Split, Workspace
from rag_core.cli.replay import Short, chosen, laid_over, measures_of, show, show_traces
from rag_core.cli.run_saving import Keeping
from rag_core.cli.spread import evaluate_spread, place_of
from rag_core.errors import InputError
from rag_core.workspace import resolve_workspace


@dataclass(frozen=True)
class Opened:
    """An eval set that is ready to be run: its cases, and the index of a live one."""

    eval_set: Any
    cases: list[Any]
    index: Any = None

    def runnable(self, specs: list[Any], simulated_hops: bool = False) -> list[Any]:
        """The pipelines on the index, or as they are where the lists are recorded."""
        from rag_core import workbench

        if self.index is None:
            return specs
        judge = self.hop_judge() if simulated_hops else None
        return [workbench.live(spec, self.index, self.eval_set.name, judge) for spec in specs]

    def hop_judge(self) -> Any:
        """The simulated judge of hops, which knows the labelled titles."""
        from rag_core.llm.simulated_hops import SimulatedHopJudge, labelled_titles

        chunks = getattr(getattr(self.index, "snapshot", None), "chunks", ())
        return SimulatedHopJudge(labelled_titles(self.cases, chunks, self.eval_set.min_grade))

    def about(self, name: str, seed: int) -> Any:
        """What a run says of itself."""
        from rag_core.evaluate.snapshot import About

        if self.index is None:
            return About(name, self.eval_set.name, seed)
        snapshot = getattr(self.index, "snapshot", None)
        model = getattr(snapshot, "model", "")
        return About(
            name,
            self.eval_set.name,
            seed,
            corpus=str(self.index.fingerprint),
            rules=str(getattr(snapshot, "revision", "")),
            models={"embedding": model} if model else {},
        )


@contextmanager
def opened(
    eval_set: str, collection: str | None, source: str | None, folder: Path, approximate: bool = False
) -> Iterator[Opened]:
    """The eval set with the labels given here, and its index, which is closed in the end."""
    from rag_core.evaluate.sets import load_set
    from rag_core.given import with_given

    found, index = load_set(eval_set, folder), None
    if not found.recorded or collection is not None or source is not None:
        found, index = opened_set(eval_set, collection, folder, approximate, source)
    else:
        found = with_given(found, folder)
    try:
        yield Opened(found, list(found.cases), index)
    finally:
        getattr(index, "close", lambda: None)()


def narrowed(one: Opened, split: str | None, tag: str | None, names: list[str] | None, first: int | None) -> Opened:
    """Only the queries of a split, with a tag, of those ids, the first N; an InputError where none is left."""
    found = one.eval_set.split(split) if split else one.eval_set
    cases = chosen([case for case in found.cases if tag is None or tag in case.query.tags], names, first)
    if not cases:
        raise InputError(f"eval set {found.name} has no query with tag {tag!r}, expected one that it has")
    return Opened(found, cases, one.index)


JudgeLabels = typer.Option(
    None, "--judge-labels", help="A model's labels where people gave none; its agreement must pass the bar."
)


def judged(one: Opened, judge: str | None, folder: Path, min_grade: int | None) -> tuple[Opened, list[str]]:
    """The cases with a model's labels laid under people's where one is named, and what its figures must say."""
    if judge is None:
        return one, []
    from rag_core.cli.label_judge import with_judge_labels

    grade = min_grade or one.eval_set.min_grade
    cases, notice = with_judge_labels(one.eval_set.name, one.cases, judge, folder, grade)
    return Opened(one.eval_set, cases, one.index), [notice]


@grouped
def evaluate(
    short: Short,
    keeping: Keeping,
    eval_set: str = EvalSetName,
    pipeline: list[str] = typer.Option(None, "--pipeline", "-p", help="Spec file, inline JSON or a shipped name."),
    collection: str | None = Collection,
    source: str | None = SourceName,
    split: str | None = Split,
    tag: str | None = typer.Option(None, "--tag", help="Only the queries with this tag."),
    min_grade: int | None = MinGrade,
    measure: list[str] = typer.Option(None, "--measure", "-m", help="A measure, such as nDCG@10; may be repeated."),
    name: list[str] = typer.Option(None, "-t", help="Only the query with this id; may be repeated."),
    first: int | None = typer.Option(None, "-n", min=1, help="Only the first N queries."),
    seed: int = typer.Option(0, help="Seed of intervals and permutation tests."),
    approximate: bool = Approximate,
    simulated_hops: bool = typer.Option(
        False, "--simulated-hops", help="MultiHop asks a simulated judge that knows the labelled titles, no model."
    ),
    judge_labels: str | None = JudgeLabels,
    debug: bool = typer.Option(False, "--debug", help="The trace of every query as text, on stderr."),
    engine: str | None = Engine,
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Measure pipelines on an eval set: per query and mean, with intervals and a test of every pair."""
    from rag_core.evaluate.experiment import run_all
    from rag_core.evaluate.report import comparison_json

    folder = resolve_workspace(workspace)
    with opened(eval_set, collection, source, folder, approximate) as whole:
        one, notices = judged(narrowed(whole, split, tag, name, first), judge_labels, folder, min_grade)
        specs = one.runnable([laid_over(spec, short) for spec in pipeline or ["fixed-15"]], simulated_hops)
        if engine is not None:
            if debug or keeping.wanted or simulated_hops:
                raise InputError("--engine got --debug, --save-run, --run-out or --simulated-hops, expected it without")
            place = place_of(folder, eval_set, one.eval_set, one.index, source, approximate)
            grade = min_grade or one.eval_set.min_grade
            evaluate_spread(engine, place, one.cases, specs, grade, measures_of(measure), seed, json)
            return
        reports = run_all(one.cases, specs, min_grade or one.eval_set.min_grade, measures_of(measure))
        about = one.about(keeping.run_name, seed)
    if debug:
        show_traces(reports)
    keeping.keep(reports, about, workspace)
    show(reports, comparison_json(reports, seed, every_pair=True), json, notices)
