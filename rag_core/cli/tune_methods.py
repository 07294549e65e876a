"""The methods of `tune`: plane, best cut, promised recall, learned cut, search. Each gives a document and its text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rag_core.cli.progress import ProgressBar
from rag_core.cli.tuning import swept_pipeline, with_stage
from rag_core.cli.tuning_output import promise_document, search_json, search_text, tune_json, tune_text, write_pipeline
from rag_core.errors import InputError

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

    @property
    def floor(self) -> tuple[str, float] | None:
        """The constraint as the library takes it."""
        from rag_core.tune.tune import parse_floor

        return parse_floor(self.constraint) if self.constraint else None

    def split(self) -> tuple[list[Any], list[Any]]:
        """The queries to choose on and the held-out ones."""
        from rag_core.tune.tune import dev_and_test, scored

        if self.session is not None and self.holdout is None:
            usable, split = scored(self.cases, self.min_grade), self.session.split
            sides = split.cases(usable, "dev"), split.cases(usable, "held_out")
            if all(sides):
                return sides
        return dev_and_test(self.cases, self.holdout, self.seed, self.min_grade)

    def look(self, test: list[Any], pipeline: Any) -> int:
        """Write down a look at the held-out queries; how many there were."""
        from rag_core.cli.sessions import look_at
        from rag_core.project.looks import held_out_key, look
        from rag_core.spec import fingerprint

        if self.session is not None and self.holdout is None:
            return look_at(self.session, [pipeline], test)
        return look(self.workspace, held_out_key(test), fingerprint(pipeline))

    def write(self, pipeline: Any) -> None:
        """The chosen pipeline to the file of --out, where one was named."""
        if self.out is not None:
            write_pipeline(self.out, pipeline)


def plane(asked: TuneOptions) -> Answer:
    """The best point of a plane or grid; of a stage that is trained, what training gives."""
    check_objective(asked.objective)
    given, chooser = _chooser(asked)
    dev, test = asked.split()
    choice = chooser(dev)
    crossed = _crossed(dev, chooser, asked)
    found = _judged(asked, test, choice, asked.objective, given)
    asked.write(choice.pipeline)
    document = tune_json(choice, found, crossed, dev, test, asked.seed)
    document |= {"constraint": asked.constraint, "min_grade": asked.min_grade}
    return document, list(tune_text(document))


def learned(asked: TuneOptions) -> Answer:
    """LearnedCut trained on the dev queries; its parameters are plain numbers of the pipeline."""
    from rag_core.filters.learned import LearnedCut

    return plane(replace(asked, stage=LearnedCut.__name__))


def best(asked: TuneOptions) -> Answer:
    """The best of the last cut's whole family, or the best fixed k: what the cut's drawer on the Bench finds."""
    from rag_core.project.choosing import best_on_dev
    from rag_core.tune.tune import Choice

    session = asked.session
    if session is None or asked.holdout is not None or asked.grid is not None:
        raise InputError("best got a FILE, a --holdout or a --grid, expected a project and its own split")
    pipeline = session.whole(session.pipeline(asked.pipeline))
    if not any(stage.is_cut for stage in pipeline.stages):
        pipeline = session.whole(with_stage(asked.pipeline, asked.stage, session))
    places = [at for at, stage in enumerate(pipeline.stages) if stage.is_cut]
    named = [at for at in places if pipeline.stages[at].name == asked.stage]
    plan: dict[str, Any] = {"objective": asked.objective, "floor": asked.floor, "crossed": asked.folds > 1}
    found = best_on_dev(session, pipeline, (named or places)[-1], **plan, progress=ProgressBar("chose"))
    ready, fixed = session.ready(found.pipeline), session.ready(found.fixed)
    choice = Choice(ready, found.settings, found.value, fixed, found.fixed_k, found.fixed_value)
    dev, test = asked.split()
    judged = _judged(asked, session.starts(pipeline, test), choice, asked.objective, session.ready(pipeline))
    asked.write(found.pipeline)
    document = tune_json(choice, judged, found.crossed, dev, test, asked.seed)
    document |= {"constraint": asked.constraint, "min_grade": asked.min_grade}
    return document, [found.to_text(), *tune_text(document)]


def _judged(asked: TuneOptions, test: list[Any], choice: Any, objective: str, given: Any) -> Any:
    """The choice on the held-out queries; the look is counted."""
    from rag_core.tune.judgement import judge

    seen = asked.look(test, choice.pipeline)
    return judge(test, choice, objective, given=given, looks=seen, min_grade=asked.min_grade, seed=asked.seed)


def _chooser(asked: TuneOptions) -> tuple[Any, Callable[[Sequence[Any]], Any]]:
    """The pipeline as it was given (None where it cannot run untrained), and how to choose one on some queries."""
    from rag_core.spec import stage_class
    from rag_core.tune.tune import choose

    if stage_class(asked.stage).trained:
        return None, _trainer(asked)
    swept, axes = swept_pipeline(asked.pipeline, asked.stage, asked.grid, session=asked.session)
    plan = partial(choose, objective=asked.objective, floor=asked.floor, min_grade=asked.min_grade)
    return swept, partial(plan, pipeline=swept, axes=axes)


def _trainer(asked: TuneOptions) -> Callable[[Sequence[Any]], Any]:
    from rag_core.tune.learned import choose_trained

    if asked.grid is not None or asked.constraint is not None:
        raise InputError(f"{asked.stage} is trained, not swept: it got a --grid or a --constraint, expected neither")
    pipeline = with_stage(asked.pipeline, asked.stage, asked.session)
    return partial(choose_trained, pipeline=pipeline, objective=asked.objective, min_grade=asked.min_grade)


def _crossed(dev: list[Any], chooser: Callable[[Sequence[Any]], Any], asked: TuneOptions) -> Any:
    """Folds over the dev queries, as many as asked or as there are; None for fewer than two."""
    from rag_core.eval_sets.split import near_duplicates
    from rag_core.tune.tune import cross_validate

    folds = min(asked.folds, len(near_duplicates([case.query for case in dev])))
    if folds < 2:
        return None
    return cross_validate(dev, chooser, asked.objective, folds=folds, min_grade=asked.min_grade, seed=asked.seed)


def check_objective(name: str) -> None:
    """Refuse an objective the sweep does not hold."""
    if name not in MEASURES:
        raise InputError(f"objective is {name[:80]!r}, expected one of {', '.join(MEASURES)}")


def conformal(asked: TuneOptions) -> Answer:
    """One knob set so that at most a share alpha is missed; calibrated on dev, held against the held-out queries."""
    from rag_core.spec import read_pipeline
    from rag_core.tune.promise import promise, realised, too_few

    if asked.grid is not None or asked.constraint is not None:
        raise InputError("conformal sets one knob: it got a --grid or a --constraint, expected --alpha and --knob")
    knob, alpha = asked.own.get("knob", "distance_offset"), asked.own.get("alpha", ALPHA)
    front = read_pipeline(asked.pipeline).stages
    dev, test = asked.split()
    made = promise(dev, front, knob, alpha, asked.min_grade)
    if made.pipeline is None:
        if asked.out is not None:
            raise InputError(f"there is no pipeline to write, {too_few(made)}")
        document = promise_document(made, None, 0, dev, test, asked)
        return document, [document["sentence"]]
    seen = asked.look(test, made.pipeline)
    held_out = realised(test, front, made, asked.min_grade, asked.seed)
    asked.write(made.pipeline)
    document = promise_document(made, held_out, seen, dev, test, asked)
    return document, [document["sentence"]]


def search(asked: TuneOptions) -> Answer:
    """A study of Optuna on the dev queries; the row best by the first objective is judged on the held-out ones."""
    from rag_core.project.choosing import search_on_dev
    from rag_core.resources import with_entities, with_judge
    from rag_core.store.studies import shared_storage
    from rag_core.tune import search as searching

    swept, axes = swept_pipeline(asked.pipeline, asked.stage, asked.grid, None, asked.session)
    dev, test = asked.split()
    study, sampler = asked.own.get("study"), asked.own.get("sampler", "tpe")
    plan: dict[str, Any] = {
        "objectives": [name.strip() for name in asked.objective.split(",")],
        "floor": asked.floor,
        "sampler": sampler,
        "trials": asked.own.get("trials", TRIALS),
        "storage": shared_storage(asked.workspace) if study else None,
        "name": study or "search",
        "seed": asked.seed,
        "progress": ProgressBar("trials"),
    }
    if asked.session is not None and asked.holdout is None:  # as the Bench does: a study of either goes on in the other
        sought = search_on_dev(asked.session, swept, axes, **plan)
        test = asked.session.starts(asked.session.whole(swept), test)
        found, swept, dev = sought.found, sought.ready, sought.cases
    else:
        swept = with_judge(with_entities(swept, asked.workspace), asked.workspace)
        found = searching.search(dev, swept, axes, **plan, min_grade=asked.min_grade)
    if found.best is None:
        raise InputError(f"none of {len(found.rows)} trials reaches {asked.constraint}, expected one that does")
    choice = searching.choice_of(found, found.best, dev, swept, axes, asked.min_grade)
    judged = _judged(asked, test, choice, searching.measure_of(found.objectives), None)
    asked.write(choice.pipeline)
    document = tune_json(choice, judged, None, dev, test, asked.seed)
    document |= {"constraint": asked.constraint, "min_grade": asked.min_grade}
    document |= {"search": search_json(found, sampler, study)}
    return document, [*search_text(found), *tune_text(document)]


METHODS: Mapping[str, Callable[[TuneOptions], Answer]] = {
    "plane": plane,
    "best": best,
    "conformal": conformal,
    "learned": learned,
    "search": search,
}
