"""`labels judge` and `labels judge-agreement`: a model proposes labels, and whether they may count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rag_core.cli.grouping import grouped
from rag_core.cli.label_store import EvalSet, opened, say
from rag_core.cli.llm_filter_options import Endpoint, Simulated, Spending, stop_if
from rag_core.cli.options import Json, MinGrade, Split, Workspace
from rag_core.errors import InputError
from rag_core.workspace import resolve_workspace

if TYPE_CHECKING:
    from rag_core.judged.bench import Bench
    from rag_core.judged.grading import GradeProposal
    from rag_core.labelling.judge_agreement import JudgeAgreement
    from rag_core.store.events import Signature
    from rag_core.store.labels import LabelStore

ONLY = ("labelled", "open", "all")


@grouped
def judge_labels(
    spending: Spending,
    eval_set: str = EvalSet,
    collection: str | None = typer.Option(None, "--collection", help="Search this collection."),
    depth: int = typer.Option(10, "--depth", min=1, max=1000, help="Candidates per query."),
    only: str = typer.Option("all", "--only", help="labelled (to measure agreement), open (to propose) or all."),
    split: str | None = Split,
    first: int | None = typer.Option(None, "-n", min=1, help="Only the first N queries."),
    endpoint: str = Endpoint,
    model: str = typer.Option("", "--model", help="Another model of the endpoint."),
    simulated: float | None = Simulated,
    flips: float = typer.Option(0.0, "--simulated-flips", help="How unsteady the simulated judge is."),
    repeats: int = typer.Option(1, "--repeats", min=1, max=20, help="How often to ask; the first run is the label."),
    prompt: Path | None = typer.Option(None, "--prompt", help="A Jinja2 file with blocks system and user."),
    seed: int = typer.Option(0, "--seed", help="Seed of the simulated judge."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Have a model grade chunks 0 to 3 with a reason; its labels count nowhere until they are asked for by name.

    Answers are stored: a stopped run goes on where it was. Ask with --only labelled first, then see judge-agreement.
    Example: python -m rag_core labels judge --eval-set recorded-combat --simulated 0.1 --repeats 2
    """
    from rag_core.eval_sets.reading import folders
    from rag_core.eval_sets.writing import guidelines
    from rag_core.judged import entrants, grading
    from rag_core.judged.bench import open_bench
    from rag_core.labelling.grading import wording
    from rag_core.llm import RunLimits
    from rag_core.project import deeds

    folder = resolve_workspace(workspace)
    bench = open_bench(eval_set, None, collection, folder, split, first, None, depth)
    with opened(workspace, create=not spending.preview, stand_in=spending.preview) as labels:
        pairs = grading.pairs_of(bench, depth, _wanted(only, bench, labels))
        place = folders(folder).get(eval_set, Path(eval_set))
        prompts = grading.prompts_of(pairs, wording(prompt), guidelines(place))
        judge = (
            entrants.endpoint_judge(folder, endpoint, model, spending.rate)
            if simulated is None
            else grading.simulated_grader(bench, simulated, flips, seed)
        )
        facts: dict[str, Any] = {"judge": judge.name, "eval_set": bench.name, "pairs": len(pairs)}
        facts["preview"] = grading.preview(prompts, judge, repeats)
        if spending.preview:
            say(facts, json, _ahead(facts))
            return
        from rag_core.cli.progress import AskingBar

        limits = RunLimits(per_second=spending.rate, budget=spending.budget, max_calls=spending.max_calls)
        with deeds.command(deeds.JUDGE_LABELS, bench.name, folder, judge.name) as performed:
            ran = grading.grade_all(prompts, judge, limits, repeats, AskingBar())
            found = grading.proposals(pairs, prompts, judge, repeats)
            stored = _stored(labels, bench.name, judge.model, found, repeats, performed.signature)
            performed.result = f"{stored['written']} labels"
        facts |= {"run": ran.to_json(), **stored}
    say(facts, json, f"{_ahead(facts)}\n{_done(facts)}")
    stop_if(ran.cancelled)


def _wanted(only: str, bench: Bench, labels: LabelStore) -> Callable[[Any, Any], bool]:
    """Which pairs to ask about: those a person labelled, in the set's files or the store, the others, or all."""
    from rag_core.store.keys import chunk_key, text_hash

    if only not in ONLY:
        raise InputError(f"--only is {only[:40]!r}, expected one of {', '.join(ONLY)}")
    said = {(event.query_id, event.chunk_key) for event in labels.labels(bench.name)}

    def wanted(query: Any, chunk: Any) -> bool:
        there = chunk.id in bench.labels.get(query.id, {})
        there = there or (query.id, chunk_key(chunk.id, text_hash(chunk.text))) in said
        return only == "all" or there == (only == "labelled")

    return wanted


def _stored(
    labels: LabelStore, eval_set: str, model: str, found: list[GradeProposal], repeats: int, by: Signature
) -> dict[str, Any]:
    """Keep every run's grades as labels of the model; what was kept, and how many pairs got none."""
    from rag_core.store.model_labels import model_annotator, store_model_labels

    written = 0
    for run in range(1, repeats + 1):
        graded = ((one, one.runs[run - 1]) for one in found)
        said = (
            (one.query.id, one.query.text, one.chunk.id, one.chunk.text, grade.grade, grade.reason)
            for one, grade in graded
            if grade is not None
        )
        written += store_model_labels(labels, eval_set, model_annotator(model, run), said, by)
    failures: dict[str, int] = {}
    for one in found:
        if one.failure:
            failures[one.failure] = failures.get(one.failure, 0) + 1
    grades = [one.first.grade for one in found if one.first]
    counts = {str(grade): grades.count(grade) for grade in range(4)}
    return {"annotator": model_annotator(model), "written": written, "grades": counts, "without_grade": failures}


def _ahead(facts: Mapping[str, Any]) -> str:
    from rag_core.cli.llm_filter_run import ahead_line

    return f"{facts['judge']} on {facts['eval_set']}: {facts['pairs']} pairs, {ahead_line(facts['preview'])}"


def _done(facts: Mapping[str, Any]) -> str:
    grades = ", ".join(f"{count} of grade {grade}" for grade, count in facts["grades"].items())
    missing = "".join(f"; {count} {why}" for why, count in facts["without_grade"].items())
    stopped = f"; stopped: {facts['run']['stopped']}" if facts["run"]["stopped"] else ""
    return f"{grades}{missing}{stopped}; {facts['written']} labels written as {facts['annotator']}"


def judge_agreement(
    eval_set: str = EvalSet,
    judge: str | None = typer.Option(None, "--judge", help="One model; all that labelled the set without it."),
    against: str = typer.Option("", "--against", help="Only this person's labels; else all people's and the files'."),
    bar: float = typer.Option(0.6, "--bar", min=-1, max=1, help="What the whole interval of kappa must reach."),
    min_grade: int | None = MinGrade,
    seed: int = typer.Option(0, "--seed", help="Seed of the interval."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """How far models agree with people: kappa with its interval, confusion matrix, flips over runs, and the bar.

    Example: python -m rag_core labels judge-agreement --eval-set recorded-combat --json
    """
    from rag_core.store.model_labels import models

    with opened(workspace) as labels:
        names = models(labels, eval_set)
        if judge is not None and judge not in names:
            raise InputError(f"no labels of {judge[:80]!r}, expected one of: {', '.join(names) or 'none yet'}")
        found = [
            agreement_of(labels, eval_set, name, resolve_workspace(workspace), min_grade, bar, against, seed)
            for name in ([judge] if judge else names)
        ]
    rows = [{**asdict(one), "passes": one.passes} for one in found]
    words = [f"{one.words}; {_steady(one)}\n{_table(one)}" for one in found]
    say({"eval_set": eval_set, "judges": rows}, json, "\n".join(words) or "no model has labelled this eval set")


def agreement_of(
    labels: LabelStore,
    eval_set: str,
    judge: str,
    folder: Path,
    min_grade: int | None = None,
    bar: float = 0.6,
    against: str = "",
    seed: int = 0,
) -> JudgeAgreement:
    """A model's agreement with people on an eval set; labels of the set's own files are people's too."""
    from rag_core.eval_sets.reading import folders, load_set
    from rag_core.labelling.judge_agreement import judge_agreement as measured
    from rag_core.store.model_labels import peoples_grades, runs_of

    found = load_set(eval_set, folder) if eval_set in folders(folder) or "/" in eval_set else None
    files = {case.query.id: case.grades for case in found.cases} if found else {}
    people = peoples_grades(labels, eval_set, labels.labels(eval_set, judge), files, against)
    grade = min_grade or (found.min_grade if found else 1)
    return measured(judge, people, runs_of(labels, eval_set, judge), grade, bar, seed)


def _steady(one: JudgeAgreement) -> str:
    if one.flip_rate is None:
        return "asked once, so its steadiness is not known"
    return f"{one.flip_rate:.1%} of its grades flip over {one.runs} runs"


def _table(one: JudgeAgreement) -> str:
    rows = ["    people \\ model     0     1     2     3"]
    rows += [f"    {grade:>14}" + "".join(f"{count:>6}" for count in row) for grade, row in enumerate(one.confusion)]
    return "\n".join(rows)


def with_judge_labels(
    eval_set: str, cases: list[Any], judge: str, folder: Path, min_grade: int, bar: float = 0.6
) -> tuple[list[Any], str]:
    """The cases with a model's labels where no person's is, and the sentence that figures from them must carry.

    An InputError where the model's agreement with people does not pass the bar.
    """
    from rag_core.measure.experiment import with_labels

    with opened(folder) as labels:
        found = agreement_of(labels, eval_set, judge, folder, min_grade, bar)
        if not found.passes:
            raise InputError(f"{found.words}, expected one that passes before its labels count")
        graded = labels.current(eval_set, judge)
        people = labels.current(eval_set)
    overlay: dict[str, dict[str, int | None]] = {}
    for case in cases:
        taken = {**case.grades, **people.get(case.query.id, {})}
        overlay[case.query.id] = {
            chunk: grade for chunk, grade in graded.get(case.query.id, {}).items() if chunk not in taken
        }
    count = sum(map(len, overlay.values()))
    return with_labels(cases, overlay), f"{count} labels of these figures are a model's: {found.words}"
