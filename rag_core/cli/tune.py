"""`tune`: choose a setting on dev queries, report it on held-out ones. By default the plane; other methods by name."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.options import Commands, Engine, MinGrade
from rag_core.cli.output import ProgressBar
from rag_core.cli.replay import lists_stand_on
from rag_core.cli.sessions import WorksOn, project_named, stands_on
from rag_core.engine import cluster, jobs
from rag_core.errors import InputError, SpecError
from rag_core.eval_sets.reading import labels_fingerprint
from rag_core.eval_sets.split import near_duplicates
from rag_core.export import export_spec
from rag_core.files import write_whole
from rag_core.filters.adaptive import ANY_SCALE, ANY_SCALE_GRID, AdaptiveGap
from rag_core.filters.learned import LearnedCut
from rag_core.measure.experiment import run_case
from rag_core.project.choosing import best_on_dev, search_on_dev
from rag_core.project.deeds import person_of_this_machine
from rag_core.project.ledger import Look, key_of, look, standing
from rag_core.project.project import BY_WORDS
from rag_core.project.session import front_of
from rag_core.records import load_lists
from rag_core.resources import with_handles
from rag_core.spec import dump_pipeline, fingerprint, make_stage, parse_pipeline, read_pipeline, stage_class
from rag_core.stage import ChosenOn, Pipeline
from rag_core.store.studies import shared_storage
from rag_core.tune import plane as planes
from rag_core.tune import search as searching
from rag_core.tune.grid import parse_grid
from rag_core.tune.learned import choose_trained
from rag_core.tune.plane import best_of_plane
from rag_core.tune.promise import promise, promise_json, realised, sentence, too_few
from rag_core.tune.tune import Choice, choose, cross_validate, dev_and_test, judge, judgement_json, parse_floor, scored

app = Commands()


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    """The rows as CSV with a header, numbers in full precision."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, text.getvalue())


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    """The rows as a Parquet file; a column of mixed kinds is written as text."""
    import pyarrow  # a quarter of a second that only this option waits for
    import pyarrow.parquet

    columns = {name: [row[name] for row in rows] for name in rows[0]}
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(columns), sink)
    write_whole(path, sink.getvalue().to_pybytes())


def sweep_text(document: dict[str, Any]) -> list[str]:
    """A sweep in a few lines: how much, the best row, the optimum."""
    left = f", {document['left_out']} impossible left out" if document["left_out"] else ""
    over = f"{document['queries_scored']} of {document['queries_total']} {'dev ' if document['split'] else ''}queries"
    lines = [
        f"{len(document['rows']):,} settings of {document['stage']}, means over {over}{left} · "
        f"relevant means grade ≥ {document['min_grade']}",
        f"best of the grid   {_shown(document['best'] or {})}",
    ]
    if document["optimum"] is not None:
        lines.append(f"optimum            {_shown(document['optimum'])}")
    return lines


def _shown(row: dict[str, Any]) -> str:
    return "  ".join(f"{name} {_value(value)}" for name, value in row.items() if value is not None)


def _value(value: Any) -> str:
    """One value as a person reads it; a model's parameters by what they weigh, or by the labels that taught them."""
    if isinstance(value, Mapping):
        weighed = value.get("features")
        return f"of {len(weighed)} features" if weighed else f"of {value.get('labels', 0):,} labels"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def tune_json(
    options: TuneOptions, choice: Any, found: Any, crossed: Any, dev: list[Any], test: list[Any]
) -> dict[str, Any]:
    """A choice and its judgement as one document."""
    fixed = dump_pipeline(options.marked(choice.baseline))
    return {
        "objective": found.objective,
        "chosen": choice.settings,
        "pipeline": dump_pipeline(options.marked(choice.pipeline)),
        "baseline": {"name": choice.baseline.label, "k": choice.baseline_k, "pipeline": fixed},
        "taken": fixed if choice.taken is choice.baseline else dump_pipeline(options.marked(choice.pipeline)),
        "out": str(options.out or ""),
        "dev": {"queries": len(dev), found.objective: choice.value, "baseline": choice.baseline_value},
        "folds": None if crossed is None else {**asdict(crossed), "gain": crossed.gain},
        "test": judgement_json(found),
        "queries": {"dev": [case.query.id for case in dev], "test": [case.query.id for case in test]},
        "seed": options.seed,
        "sentence": judgement_json(found)["sentence"],
        "constraint": options.constraint,
        "min_grade": options.min_grade,
    }


def tune_text(document: dict[str, Any]) -> Iterator[str]:
    """The choice in a few lines."""
    dev, name = document["dev"], document["objective"]
    yield f"chosen on {dev['queries']} dev queries: {_shown(document['chosen'])}"
    yield f"  dev {name} {dev[name]:.3f}, {document['baseline']['name']} {dev['baseline']:.3f}"
    if document["folds"] is not None:
        crossed = document["folds"]
        yield (
            f"  {crossed['folds']} folds over dev: {crossed['value']:.3f}, "
            f"best fixed k {crossed['baseline_value']:.3f} ({crossed['gain']:+.3f})"
        )
    yield document["sentence"]
    if document["taken"] != document["pipeline"]:
        name = document["baseline"]["name"]
        yield f"taken: {name}, than which the choice is no better on dev" + _to(document["out"])
    elif document["out"]:
        yield f"taken: the choice{_to(document['out'])}"


def _to(file: str) -> str:
    return f" → {file}" if file else ""


def promise_document(
    made: Any, held_out: Any, looks: int, dev: list[Any], test: list[Any], options: Any
) -> dict[str, Any]:
    """A promised recall with what became of it on the held-out queries; `test` is null where nothing was promised."""
    return {
        **promise_json(made),
        "pipeline": None if made.pipeline is None else dump_pipeline(options.marked(made.pipeline)),
        "test": None if held_out is None else {**asdict(held_out), "looks": looks},
        "queries": {"dev": [case.query.id for case in dev], "test": [case.query.id for case in test]},
        "min_grade": options.min_grade,
        "seed": options.seed,
        "sentence": sentence(made, held_out, looks),
    }


def search_json(search: Any, study: str | None) -> dict[str, Any]:
    """What a search found: the baseline first, then the rows that no other beats."""
    return {
        "objectives": list(search.objectives),
        "study": study,
        "trials": len(search.rows),
        "feasible": sum(row.feasible for row in search.rows),
        "table": [{"name": row.name, **row.settings, **row.values, "feasible": row.feasible} for row in search.table],
    }


def search_text(search: Any) -> Iterator[str]:
    """The table of a search, a line a row."""
    yield f"{len(search.rows)} trials, {len(search.front)} that no other beats"
    for row in search.table:
        settings = "" if row is search.baseline else f"   {_shown(row.settings)}"
        yield f"  {row.name:<24} {_shown(row.values)}{settings}"


FILE_HELP = "Recorded lists, JSONL, one query a line (docs/formats.md)."
FRONT_HELP = (
    "The stages in front; a spec that holds the stage is swept in place, with its own settings. Default: unfiltered; "
    "a search by words where nothing is embedded."
)
WORDS_FRONT = '{"stages": [{"Lexical": {}}]}'

File = typer.Argument(None, help=FILE_HELP)
StageName = typer.Option("", "--stage", help="The stage whose settings the grid names; default: AdaptiveGap.")
Grid = typer.Option(None, "--grid", help="'name=low:high:count,name=a|b|c'; also Stage.setting and Stage=on|off.")
Front = typer.Option(None, "--pipeline", "-p", help=FRONT_HELP)
Depth = typer.Option(200, "--depth", min=1, max=10000, help="How many candidates per query, for a set without lists.")


@app.command(journal=True)
def sweep(
    works_on: WorksOn,
    file: Path | None = File,
    stage: str = StageName,
    grid: str | None = Grid,
    pipeline: str | None = Front,
    depth: int = Depth,
    min_grade: int | None = MinGrade,
    csv: Path | None = typer.Option(None, "--csv", help="Write the rows to this CSV file."),
    parquet: Path | None = typer.Option(None, "--parquet", help="Write the rows to this Parquet file."),
    engine: str | None = Engine,
) -> None:
    """Every setting of a grid at once: mean SetP, SetR, SetF and how much is kept; the best row, the optimum."""
    stage = stage or AdaptiveGap.__name__
    session, cases, grade, front = read_cases(works_on, file, depth, min_grade, pipeline, dev=True)
    swept, axes = swept_pipeline(front, stage, grid, session=session)
    if engine is None:
        table = planes.sweep(cases, swept, axes, min_grade=grade, progress=ProgressBar("swept"))
    else:
        with cluster.opened(engine) as workers:
            table = jobs.sweep(workers, cases, swept, axes, works_on.folder, grade, ProgressBar("parts"))
    rows = list(table.rows())
    if csv is not None:
        write_csv(csv, rows)
    if parquet is not None:
        write_parquet(parquet, rows)
    values = table.best_at()
    document = {
        "grid": {axis.name: axis.values for axis in axes},
        "rows": rows,
        "best": None if values is None else table.row_at(values),
        "optimum": optimum_json(cases, swept, axes, grade),
        "stage": stage,
        "min_grade": grade,
        "queries_total": len(cases),
        "queries_scored": sum(case.has_relevant(grade) for case in cases),
        "left_out": table.means[0].size - len(rows),
        "settings_run_plainly": table.plainly,
        **figures_stand_on(session, cases, [swept]),
    }
    works_on.say(document, "\n".join(sweep_text(document)))


def read_cases(
    works_on: WorksOn,
    file: Path | None,
    depth: int,
    min_grade: int | None,
    pipeline: str | None = None,
    dev: bool = False,
) -> tuple[Any, list[Any], int, str]:
    """The session (None for a file), the lists with their labels, the grade from which a chunk is relevant, the front.

    Of a project that searches, one deep list a question by the pipeline's own source. `dev`: of a project only those
    questions that something may be chosen on.
    """
    if file is not None:
        works_on.refuse_beside(file)
        return None, load_lists(file), min_grade or 1, pipeline or "unfiltered"
    named = (works_on.project, works_on.eval_set, works_on.collection, works_on.source)
    if named == (None, None, None, None) and project_named(None) is None:
        raise InputError("sweep and tune got neither a FILE nor an --eval-set nor a --project, expected one of them")

    session = works_on.session(min_grade)
    if pipeline is None:
        pipeline = WORDS_FRONT if session.project.pipelines["A"] == BY_WORDS else "unfiltered"
    *rewrites, source = front_of(session.pipeline(pipeline)).stages
    deep = make_stage(source.name, {**source.settings(), "depth": depth})
    questions = (session.dev or session.cases) if dev else session.cases
    cases = session.capture(Pipeline((*rewrites, deep)), questions, ProgressBar("captured"))
    return session, cases, session.min_grade, pipeline


def figures_stand_on(session: Any, cases: list[Any], pipelines: list[Any]) -> dict[str, Any]:
    """Fingerprints and split, of a project or of a file."""
    return lists_stand_on(cases, pipelines) if session is None else stands_on(session, pipelines, cases)


def swept_pipeline(
    source: str, stage: str, grid: str | None, most: int | None = 2_000_000, session: Any = None
) -> tuple[Any, tuple[Any, ...]]:
    """The pipeline with the stage in it, behind what the spec holds unless it holds it already, and the grid's axes."""
    rows = stage_class(stage).declared()
    text = grid or ",".join(f"{row.name}={row.grid[0]}:{row.grid[1]}:{row.grid[2]}" for row in rows if row.grid)
    if not text:
        raise InputError(f"there is no default grid for {stage}, expected --grid 'name=a|b|c'")
    return with_stage(source, stage, session), parse_grid(text, stage, most)


def with_stage(source: str, stage: str, session: Any = None) -> Any:
    """The pipeline of a spec, with the stage behind it unless it holds it already."""
    pipeline = read_pipeline(source) if session is None else session.pipeline(source)
    if stage in [held.name for held in pipeline.stages]:
        return pipeline
    return replace(pipeline, stages=(*pipeline.stages, make_stage(stage)))


def optimum_json(cases: list[Any], pipeline: Any, axes: tuple[Any, ...], min_grade: int) -> dict[str, Any] | None:
    """The best point of the continuous plane with the edges of its cell; None where nothing continuous varies."""
    best = best_of_plane(cases, pipeline, axes, min_grade=min_grade)
    if best is None:
        return None
    others, found = best
    fields = asdict(found)
    fields["gap_policy"] = fields.pop("policy")
    if found.relative_offset:
        fields["relative_offset"] = fields.pop("distance_offset")
        fields["relative_offset_below"] = fields.pop("distance_offset_below")
    else:
        del fields["relative_offset"]
    return {**others, **fields}


Answer = tuple[dict[str, Any], Sequence[str]]
MEASURES = ("SetF", "SetP", "SetR")
ALPHA, TRIALS = 0.1, 200


@dataclass(frozen=True)
class TuneOptions:
    """What `tune` was asked: the labelled queries and every option."""

    session: Any  # None for a file of lists
    cases: list[Any]
    min_grade: int
    workspace: Path
    pipeline: str
    stage: str
    grid: str | None
    objective: str
    constraint: str | None
    folds: int
    holdout: float | None
    own: Mapping[str, Any]  # options of one method, those that were given
    out: Path | None
    seed: int
    method: str

    @property
    def floor(self) -> tuple[str, float] | None:
        """The constraint as the library takes it."""
        return parse_floor(self.constraint) if self.constraint else None

    def split(self) -> tuple[list[Any], list[Any]]:
        """The queries to choose on and the held-out ones."""
        if self.session is not None and self.holdout is None:
            usable, split = scored(self.cases, self.min_grade), self.session.split
            sides = split.cases(usable, "dev"), split.cases(usable, "held_out")
            if all(sides):
                return sides
        return dev_and_test(self.drawn_from, self.holdout, self.seed, self.min_grade)

    @property
    def drawn_from(self) -> list[Any]:
        """What --holdout draws a share of: of a project its dev questions, for on the others nothing is chosen."""
        if self.session is None or self.holdout is None:
            return self.cases
        dev: list[Any] = self.session.split.cases(self.cases, "dev")
        return dev

    def look(self, test: list[Any], pipeline: Any, rival: Any = None) -> dict[str, Any]:
        """Write down a look at the held-out queries; how many there were, which pair this is, and if it is its first.

        Of a FILE, or with --holdout, the ledger is the workspace's own.
        """
        own = self.session is not None and self.holdout is None
        folder = self.session.project.state if own else self.workspace
        split = self.session.split.name if own else key_of(test)
        by = person_of_this_machine().name
        labels, against = labels_fingerprint(test), fingerprint(rival) if rival is not None else ""
        seen = Look(fingerprint(pipeline), labels, split, len(test), pipeline.label, by, "tune", rival=against)
        before = standing(folder, seen)
        return {"looks": look(folder, seen), "pair": before.pair, "first": before.repeats(seen)}

    @cached_property
    def chosen_on(self) -> ChosenOn:
        """What the pipelines carry that are chosen here."""
        dev, test = self.split()
        if self.session is not None and self.holdout is None:
            said: ChosenOn = self.session.chosen_on(self.method, dev)
            return said
        return ChosenOn(key_of(test), len(dev), key_of(dev), self.method, datetime.now(UTC).date().isoformat())

    def marked(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline with the questions it was chosen on."""
        return replace(pipeline, chosen_on=self.chosen_on)

    def write(self, pipeline: Pipeline) -> None:
        """The chosen pipeline to the file of --out, where one was named."""
        if self.out is not None:
            pipeline = self.marked(pipeline)
            write_whole(self.out, export_spec(pipeline, "json" if self.out.suffix == ".json" else "yaml"))


def plane(options: TuneOptions) -> Answer:
    """The best point of a plane or grid; of a stage that is trained, what training gives."""
    if options.objective not in MEASURES:
        raise InputError(f"objective is {options.objective[:80]!r}, expected one of {', '.join(MEASURES)}")
    given, chooser = _chooser(options)
    dev, test = options.split()
    choice = chooser(dev)
    crossed, folds = None, min(options.folds, len(near_duplicates([case.query for case in dev])))
    if folds > 1:
        crossed = cross_validate(
            dev, chooser, options.objective, folds=folds, min_grade=options.min_grade, seed=options.seed
        )
    found = _judged(options, test, choice, options.objective, given)
    options.write(choice.taken)
    document = tune_json(options, choice, found, crossed, dev, test)
    return document, list(tune_text(document))


def learned(options: TuneOptions) -> Answer:
    """A stage trained on the dev queries, LearnedCut unless another is named; plain numbers of the pipeline."""
    return plane(options if stage_class(options.stage).trained else replace(options, stage=LearnedCut.__name__))


def best(options: TuneOptions) -> Answer:
    """The best of the last cut's whole family, or the best fixed k: what the cut's drawer on the Bench finds."""
    session = options.session
    if session is None or options.holdout is not None or options.grid is not None:
        raise InputError("best got a FILE, a --holdout or a --grid, expected a project and its own split")
    pipeline = session.whole(session.pipeline(options.pipeline))
    if not any(stage.is_cut for stage in pipeline.stages):
        pipeline = session.whole(with_stage(options.pipeline, options.stage, session))
    if runs_as_given(session.ready(pipeline), session.starts(pipeline, session.dev[:1])) is None:
        pipeline = on_any_scale(pipeline)
    places = [at for at, stage in enumerate(pipeline.stages) if stage.is_cut]
    named = [at for at in places if pipeline.stages[at].name == options.stage]
    plan: dict[str, Any] = {"objective": options.objective, "floor": options.floor, "crossed": options.folds > 1}
    found = best_on_dev(session, pipeline, (named or places)[-1], **plan, progress=ProgressBar("chose"))
    ready, fixed = session.ready(found.pipeline), session.ready(found.fixed)
    choice = Choice(ready, found.settings, found.value, fixed, found.fixed_k, found.fixed_value)
    dev, test = options.split()
    judged = _judged(options, session.starts(pipeline, test), choice, options.objective, session.ready(pipeline))
    options.write(found.pipeline)
    document = tune_json(options, choice, judged, found.crossed, dev, test)
    return document, [found.to_text(), *tune_text(document)]


def _judged(options: TuneOptions, test: list[Any], choice: Any, objective: str, given: Any) -> Any:
    """The choice on the held-out queries; the look is counted."""
    seen = options.look(test, choice.pipeline, choice.baseline)
    return judge(test, choice, objective, given=given, min_grade=options.min_grade, **seen)


def _chooser(options: TuneOptions) -> tuple[Any, Callable[[Sequence[Any]], Any]]:
    """The pipeline as it was given (None where it cannot run untrained), and how to choose one on some queries."""
    if stage_class(options.stage).trained:
        if options.grid is not None or options.constraint is not None:
            raise InputError(
                f"{options.stage} is trained, not swept: it got a --grid or a --constraint, expected neither"
            )
        pipeline = with_stage(options.pipeline, options.stage, options.session)
        return None, partial(
            choose_trained, pipeline=pipeline, objective=options.objective, min_grade=options.min_grade
        )
    swept, axes = swept_pipeline(options.pipeline, options.stage, options.grid, session=options.session)
    swept, axes = for_scale(swept, axes, options)
    plan = partial(choose, objective=options.objective, floor=options.floor, min_grade=options.min_grade)
    return runs_as_given(swept, options.cases), partial(plan, pipeline=swept, axes=axes)


def for_scale(swept: Pipeline, axes: tuple[Any, ...], options: TuneOptions) -> tuple[Pipeline, tuple[Any, ...]]:
    """The same, where an adaptive cut that nobody gave numbers stands on lists that its own were not made for."""
    named = AdaptiveGap() in swept.stages and options.stage == AdaptiveGap.__name__
    if not named or options.grid is not None or runs_as_given(swept, options.cases) is not None:
        return swept, axes
    return on_any_scale(swept), parse_grid(ANY_SCALE_GRID, options.stage)


def on_any_scale(pipeline: Pipeline) -> Pipeline:
    """The pipeline with adaptive cuts that nobody gave numbers by fractions of a list's span, which any score has."""
    stages = tuple(AdaptiveGap(**ANY_SCALE) if stage == AdaptiveGap() else stage for stage in pipeline.stages)
    return replace(pipeline, stages=stages)


def runs_as_given(pipeline: Pipeline, cases: Sequence[Any]) -> Pipeline | None:
    """The pipeline; None where its own numbers are refused for the score of the lists."""
    try:
        for case in cases[:1]:
            run_case(case, pipeline, 1, ())
    except SpecError:
        return None
    return pipeline


def conformal(options: TuneOptions) -> Answer:
    """One knob set so that at most a share alpha is missed; calibrated on dev, held against the held-out queries."""
    if options.grid is not None or options.constraint is not None:
        raise InputError("conformal sets one knob: it got a --grid or a --constraint, expected --alpha and --knob")
    knob, alpha = options.own.get("knob", "distance_offset"), options.own.get("alpha", ALPHA)
    front = read_pipeline(options.pipeline).stages
    dev, test = options.split()
    made = promise(dev, front, knob, alpha, options.min_grade, options.own.get("sure", 0.0))
    if made.pipeline is None:
        if options.out is not None:
            raise InputError(f"there is no pipeline to write, {too_few(made)}")
        document = promise_document(made, None, 0, dev, test, options)
        return document, [document["sentence"]]
    seen = options.look(test, made.pipeline)["looks"]
    held_out = realised(test, front, made, options.min_grade)
    options.write(made.pipeline)
    document = promise_document(made, held_out, seen, dev, test, options)
    return document, [document["sentence"]]


def search(options: TuneOptions) -> Answer:
    """A study of Optuna on the dev queries; the row best by the first objective is judged on the held-out ones."""
    swept, axes = swept_pipeline(options.pipeline, options.stage, options.grid, None, options.session)
    dev, test = options.split()
    study = options.own.get("study")
    plan: dict[str, Any] = {
        "objectives": [name.strip() for name in options.objective.split(",")],
        "floor": options.floor,
        "trials": options.own.get("trials", TRIALS),
        "storage": shared_storage(options.workspace) if study else None,
        "name": study or "search",
        "seed": options.seed,
        "progress": ProgressBar("trials"),
    }
    # As the Bench does: a study of either goes on in the other.
    if options.session is not None and options.holdout is None:
        sought = search_on_dev(options.session, swept, axes, **plan)
        test = options.session.starts(options.session.whole(swept), test)
        found, swept, dev = sought.found, sought.ready, sought.cases
    else:
        swept = with_handles(swept, options.workspace)
        found = searching.search(dev, swept, axes, **plan, min_grade=options.min_grade)
    if found.best is None:
        raise InputError(f"none of {len(found.rows)} trials reaches {options.constraint}, expected one that does")
    choice = searching.choice_of(found, found.best, dev, swept, axes, options.min_grade)
    judged = _judged(options, test, choice, searching.measure_of(found.objectives), None)
    options.write(choice.pipeline)
    document = tune_json(options, choice, judged, None, dev, test)
    document |= {"search": search_json(found, study)}
    return document, [*search_text(found), *tune_text(document)]


METHODS: Mapping[str, Callable[[TuneOptions], Answer]] = {
    "plane": plane,
    "best": best,
    "conformal": conformal,
    "learned": learned,
    "search": search,
}


OWN = {
    "alpha": "conformal", "knob": "conformal", "sure": "conformal", "trials": "search", "study": "search",
}  # fmt: skip
"""Options that only one method reads."""

METHOD_HELP = (
    "plane: the best point of a grid or plane. best: all settings of the pipeline's last cut, or the best fixed k. "
    "conformal: a recall that is promised (--alpha, --knob). "
    "learned: a cut, or with --stage LearnedFilter a filter, trained from the labels. "
    "search: Optuna over any settings (--trials, --study)."
)
OBJECTIVE_HELP = (
    "SetF, SetP or SetR: the mean to make greatest; with --method search one to three of these, kept_mean, "
    "kept_tokens, latency_ms and cost, separated by commas."
)


@app.command(journal=True)
def tune(
    works_on: WorksOn,
    file: Path | None = File,
    method: str = typer.Option("plane", "--method", help=METHOD_HELP),
    stage: str = StageName,
    grid: str | None = Grid,
    objective: str = typer.Option("SetF", "--objective", help=OBJECTIVE_HELP),
    constraint: str | None = typer.Option(None, "--constraint", help="A mean to keep, such as 'SetR>=0.95'."),
    folds: int = typer.Option(5, "--folds", help="Folds over the dev queries; 0 for none."),
    holdout: float | None = typer.Option(
        None,
        "--holdout",
        help="Share of the queries held out; default: the project's split; of a FILE its own, or 0.3.",
    ),
    alpha: float | None = typer.Option(None, "--alpha", help="conformal: the share that may be missed, 0.1."),
    knob: str | None = typer.Option(None, "--knob", help="conformal: k, min_relevance or distance_offset."),
    sure: float | None = typer.Option(
        None, "--sure", help="conformal: with this chance, such as 0.9, in place of on average."
    ),
    trials: int | None = typer.Option(None, "--trials", help="search: finished trials the study shall hold, 200."),
    study: str | None = typer.Option(None, "--study", help="search: a study of the workspace to share or resume."),
    out: Path | None = typer.Option(None, "--out", help="Write the chosen pipeline to this file (YAML or JSON)."),
    pipeline: str | None = Front,
    depth: int = Depth,
    min_grade: int | None = MinGrade,
    seed: int = typer.Option(0, help="Seed of the split, intervals and tests."),
) -> None:
    """Choose a setting on the dev queries and judge it on the held-out ones against the best fixed k."""
    own = {"alpha": alpha, "knob": knob, "sure": sure, "trials": trials, "study": study}
    given = {name: value for name, value in own.items() if value is not None}
    run = METHODS[checked(method, given)]
    session, cases, grade, front = read_cases(works_on, file, depth, min_grade, pipeline)
    plan = (front, stage or AdaptiveGap.__name__, grid, objective, constraint, folds, holdout, given, out, seed)
    document, lines = run(TuneOptions(session, cases, grade, works_on.folder, *plan, method))
    made = [parse_pipeline(document["pipeline"])] if document["pipeline"] else []
    facts = figures_stand_on(session, cases, made) if works_on.json else {}
    works_on.say({"method": method, **document, **facts}, "\n".join(lines))


def checked(method: str, given: Mapping[str, object]) -> str:
    """The method's name; InputError for an unknown one or an option of another."""
    if method not in METHODS:
        raise InputError(f"method is {method[:80]!r}, expected one of {', '.join(METHODS)}")
    stray = next((name for name in given if OWN[name] != method), None)
    if stray is not None:
        raise InputError(f"--{stray} belongs to --method {OWN[stray]}, but the method is {method}")
    return method
