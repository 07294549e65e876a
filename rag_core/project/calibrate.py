"""What a pipeline would be with a project's own numbers: search, analyzer, floor of a judge, plurals, the cut.

Each proposal is one stage's settings, measured over the dev questions on top of the proposals before it (a cut is
chosen on the lists that the proposed search brings), and is taken or left. What a lever could reach at most is in
levers.py, how a cut is chosen in choosing.py, a floor in judged/floor.py. No model is asked. All of it is chosen on dev
and says nothing of other questions: the verdict does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any

from rag_core.errors import InputError, SurroundingsError
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cutoff import MinSimilarity
from rag_core.filters.learned_filter import LearnedFilter
from rag_core.filters.llm.stage import LLMFilter
from rag_core.filters.query_must import QueryMust
from rag_core.index.store import embedded_text
from rag_core.judged.floor import propose_floor
from rag_core.measure.measures import SET_MEASURES, parse_measure
from rag_core.measure.significance import MARGIN
from rag_core.project.asking import bench_of
from rag_core.project.choosing import Best, best_on_dev
from rag_core.project.project import COLLECTION
from rag_core.project.session import Session, front_of
from rag_core.retrieve.dense import CollectionSource, Dense
from rag_core.retrieve.hybrid import Hybrid
from rag_core.retrieve.lexical import Lexical, WordSource
from rag_core.retrieve.requery import Requery
from rag_core.spec import dump_pipeline
from rag_core.stage import ChosenOn, Pipeline, Stage
from rag_core.text import ANALYZERS, counted, stop_words, words
from rag_core.types import Case

SEARCH, ANALYZER, FLOOR, PLURALS, CUT = NAMES = ("search", "analyzer", "floor", "plurals", "cut")
SAMPLE = 500  # chunks that their language is read off
LANGUAGE_SHARE = 0.2  # of the words of a text are stop words of its language, and more
SAME = 1e-9
RANKS = (*SET_MEASURES, NDCG := parse_measure("nDCG@10"), R100 := parse_measure("R@100"))
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Calibrated:
    """One proposal: the stage at a place of the pipeline as it would be, and the figures on dev without and with it."""

    name: str  # one of NAMES
    place: int
    before: Stage
    after: Stage
    figures: tuple[dict[str, float | None], dict[str, float | None]]  # SetP, SetR, SetF: as it stands, and with it
    why: str

    @property
    def changes(self) -> dict[str, tuple[Any, Any]]:
        """Setting → (now, proposed), of those that differ; a stage of another kind differs in its name."""
        now, then = self.before.settings(), self.after.settings()
        if type(self.before) is not type(self.after):
            return {"stage": (_briefly(self.before), _briefly(self.after))}
        return {name: (now[name], then[name]) for name in now if now[name] != then[name]}

    @property
    def gain(self) -> float:
        """What it adds to mean SetF on dev."""
        before, after = (one["SetF"] or 0.0 for one in self.figures)
        return after - before

    def to_text(self) -> str:
        """What it sets, why, and what that changes, in two lines."""
        said = ", ".join(f"{name} {_value(now)} → {_value(then)}" for name, (now, then) in self.changes.items())
        moved = ", ".join(
            f"{name} {_shown(self.figures[0][name])} → {_shown(self.figures[1][name])}" for name in self.figures[0]
        )
        return f"{self.name}: {self.before.name} {said} ({self.why})\n  dev, which it was chosen on: {moved}"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "name": self.name,
            "stage": self.before.name,
            "place": self.place,
            "changes": {name: {"now": now, "proposed": then} for name, (now, then) in self.changes.items()},
            "before": self.figures[0],
            "after": self.figures[1],
            "why": self.why,
        }


@dataclass(frozen=True)
class Calibration:
    """Every proposal for a pipeline, what is proposed nothing for and why, and over how many dev questions."""

    pipeline: Pipeline
    questions: int
    proposals: tuple[Calibrated, ...]
    left: dict[str, str]  # name → why there is nothing to propose
    chosen_on: ChosenOn | None = None
    rival: Pipeline | None = None  # the best fixed k, where it beats the pipeline with every proposal by the margin
    beaten: str = ""  # and by how much

    def taken(self, names: Sequence[str]) -> Pipeline:
        """The pipeline with the named proposals; an InputError for a name that is not proposed."""
        unknown = next((name for name in names if name not in {one.name for one in self.proposals}), None)
        if unknown is not None:
            known = ", ".join(one.name for one in self.proposals) or "none"
            raise InputError(f"{unknown[:40]} is not proposed, expected one of {known}")
        stages = list(self.pipeline.stages)
        for one in self.proposals:
            if one.name in names:
                stages[one.place] = one.after
        return Pipeline(tuple(stages), "calibrated", self.chosen_on if names else self.pipeline.chosen_on)

    def to_text(self) -> str:
        """The proposals, then what is left as it is."""
        head = f"{counted(len(self.proposals), 'proposal', 'proposals')} over {self.questions} dev questions"
        rest = [f"{name}: as it is, {why}" for name, why in self.left.items()]
        return "\n".join([head, *(one.to_text() for one in self.proposals), *rest, *filter(None, [self.beaten])])

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "questions": self.questions,
            "proposals": [one.to_json() for one in self.proposals],
            "left": self.left,
            "rival": None if self.rival is None else dump_pipeline(self.rival),
            "beaten": self.beaten,
        }


def calibrate(session: Session, pipeline: Pipeline, progress: Progress | None = None) -> Calibration:
    """What the dev questions propose for a pipeline; an InputError where fewer than two of them are labelled."""
    pipeline, least = session.whole(pipeline), session.min_grade
    cases = [case for case in session.dev if case.has_relevant(least)]
    if len(cases) < 2:
        raise InputError(f"{len(cases)} dev questions have a relevant label, expected at least two to calibrate on")
    finders = {SEARCH: _search, ANALYZER: _analyzer, FLOOR: _floor, PLURALS: _plurals, CUT: _cut}
    proposals: list[Calibrated] = []
    left: dict[str, str] = {}
    now = pipeline
    for done, (name, find) in enumerate(finders.items(), 1):
        try:
            place, after, why = find(session, now, cases)
            both = (figures_of(session, now, cases), figures_of(session, _with(now, place, after), cases))
            proposal = Calibrated(name, place, now.stages[place], after, both, why)
            if name == ANALYZER and proposal.gain < -SAME:
                raise InputError(f"{proposal.why}, but mean SetF on dev falls by {-proposal.gain:.3f}")
            proposals.append(proposal)
            now = _with(now, place, after)
        except InputError as error:
            left[name] = str(error)
        if progress is not None:
            progress(done, len(finders))
    chosen_on = session.chosen_on("calibrate", cases)
    return Calibration(pipeline, len(cases), tuple(proposals), left, chosen_on, *_rival(session, now, cases))


def _rival(session: Session, pipeline: Pipeline, cases: Sequence[Case]) -> tuple[Pipeline | None, str]:
    """The best fixed k and what to say of it, where it is better on dev than a pipeline by more than the margin."""
    if any(stage.costly for stage in pipeline.stages):
        return None, ""
    fixed = session.baseline(pipeline)
    value, own = (figures_of(session, one, cases)["SetF"] or 0.0 for one in (fixed, pipeline))
    if value <= own + MARGIN:
        return None, ""
    return (
        fixed,
        f"The {fixed.label} has SetF {value:.3f} on these questions, this pipeline {own:.3f}: take that instead.",
    )


Found = tuple[int, Stage, str]
"""Place of a stage, the stage as it would be, and why."""


def figures_of(session: Session, pipeline: Pipeline, cases: Sequence[Case]) -> dict[str, float | None]:
    """SetP, SetR and SetF of what a pipeline does for nothing: up to the first stage that asks a model, of which a
    judge's floor alone is counted.
    """
    stages: list[Stage] = []
    for stage in pipeline.stages:
        if isinstance(stage, LLMFilter):
            stages.append(MinSimilarity(min_relevance=stage.min_relevance_threshold))
        if stage.costly:
            break
        stages.append(stage)
    (tally,) = session.measure([Pipeline(tuple(stages))], cases)
    return {measure.name: tally.summary.means.get(measure.name) for measure in SET_MEASURES}


def _with(pipeline: Pipeline, place: int, stage: Stage) -> Pipeline:
    """The pipeline with another stage at a place."""
    return Pipeline((*pipeline.stages[:place], stage, *pipeline.stages[place + 1 :]))


@dataclass(frozen=True)
class _Searched:
    """A search that was tried in place of the pipeline's: how its lists rank, and how much they reach."""

    stage: Stage
    values: list[float | None]  # nDCG@10 by question
    ranks: float
    reaches: float


def _searched(session: Session, pipeline: Pipeline, place: int, stage: Stage, cases: Sequence[Case]) -> _Searched:
    (tally,) = session.measure([front_of(_with(pipeline, place, stage))], cases, measures=RANKS)
    means = tally.summary.means
    return _Searched(stage, tally.values(NDCG.name), means.get(NDCG.name) or 0.0, means.get(R100.name) or 0.0)


def _best_of(tried: Mapping[str, _Searched], now: str) -> tuple[str, str]:
    """The search that ranks best of those that find as much as the present one, and what to say of all."""
    # a chunk that shares only stop words with its question is found by plain words alone: no filter brings it back
    deep = [name for name, one in tried.items() if one.reaches >= tried[now].reaches - SAME]
    said = ", ".join(f"{name} {one.ranks:.3f}, R@100 {one.reaches:.3f}" for name, one in tried.items())
    return max(deep, key=lambda name: tried[name].ranks), f"nDCG@10: {said}"


def _search(session: Session, pipeline: Pipeline, cases: Sequence[Case]) -> Found:
    """Vectors alone, words alone or both: what ranks better by more than one standard error, and finds as much."""
    place, source = next(_stages(pipeline, CollectionSource), (None, None))
    if place is None or source is None or session.project.source.kind != COLLECTION:
        raise InputError("the pipeline searches no collection here")
    settings = source.settings()
    tried: dict[str, _Searched] = {}
    for kind in (type(source), *(one for one in (Dense, Lexical, Hybrid) if one is not type(source))):
        known = {name: value for name, value in settings.items() if name in {row.name for row in kind.declared()}}
        stage = source if kind is type(source) else kind(**known)
        with suppress(SurroundingsError):  # a collection without vectors, or without words
            tried[stage.title] = _searched(session, pipeline, place, stage, cases)
    now = source.title
    best, said = _best_of(tried, now)
    both = zip(tried[best].values, tried[now].values, strict=True)
    gains = [(one or 0.0) - (other or 0.0) for one, other in both]
    if best == now or fmean(gains) <= stdev(gains) / len(gains) ** 0.5:
        raise InputError(f"none ranks better by more than a standard error and finds as much ({said})")
    return place, tried[best].stage, said


def _analyzer(session: Session, pipeline: Pipeline, cases: Sequence[Case]) -> Found:
    """The analyzer whose lists rank best of those that find as much: plain, or the language of chunks or questions."""
    place, source = next(_stages(pipeline, WordSource), (None, None))
    if place is None or source is None:
        raise InputError("the pipeline searches no words")
    if not session.live:
        raise InputError("recorded lists are not searched again")
    language = language_of([embedded_text(chunk) for chunk in session.source.chunks])
    language = language or language_of([case.query.text for case in cases])  # of source code: that of who asks
    tried = {
        analyzer: _searched(session, pipeline, place, replace(source, analyzer=analyzer), cases)
        for analyzer in dict.fromkeys(("plain", source.analyzer, *([language] if language else [])))
    }
    name, said = _best_of(tried, source.analyzer)
    now, best = tried[source.analyzer], tried[name]
    if best.ranks <= now.ranks + SAME:
        raise InputError(f"none ranks better and finds as much ({said})")
    return place, best.stage, f"nDCG@10 of the search {now.ranks:.3f} → {best.ranks:.3f}"


def _floor(session: Session, pipeline: Pipeline, cases: Sequence[Case]) -> Found:
    """The highest floor of a judge that keeps nearly all relevant chunks that search found."""
    place, stage = next(_stages(pipeline, LLMFilter), (None, None))
    if place is None or stage is None:
        raise InputError("the pipeline asks no judge")
    if any(one.costly for one in pipeline.stages[:place]):
        raise InputError("a stage before the judge asks a model")
    made = propose_floor(bench_of(session, pipeline, place, cases), stage)
    if abs(made.proposed.floor - stage.min_relevance_threshold) < SAME:
        raise InputError(f"the floor of {stage.min_relevance_threshold:g} is the one that would be proposed")
    kept = f"{made.proposed.relevant_kept:.1%} of {made.relevant} relevant chunks"
    why = f"keeps {kept}, now {made.present.relevant_kept:.1%}"
    return place, replace(stage, min_relevance_threshold=made.proposed.floor), why


def _plurals(session: Session, pipeline: Pipeline, cases: Sequence[Case]) -> Found:
    """Whether rules match singular and plural alike: whichever drops fewer relevant chunks, then more of the others."""
    place, stage = next(_stages(pipeline, QueryMust | Requery), (None, None))
    if place is None or stage is None:
        raise InputError("the pipeline asks no rules")
    rules = stage.rules if isinstance(stage, Requery) else stage
    turned = replace(rules, plurals=not rules.plurals)
    after = replace(stage, rules=turned) if isinstance(stage, Requery) else turned
    wrong: list[tuple[int, int]] = []
    for one in (rules, turned):
        (tally,) = session.measure([Pipeline((*pipeline.stages[:place], one))], cases)
        drops = [dropped for query in tally.queries for dropped in query.dropped.values()]
        wrong.append((sum(one.relevant for one in drops), -sum(one.irrelevant + one.unjudged for one in drops)))
    if wrong[1] >= wrong[0]:
        raise InputError(f"plurals {str(rules.plurals).lower()} loses no more than the other way round")
    why = f"relevant chunks dropped {wrong[0][0]} → {wrong[1][0]}, others {-wrong[0][1]} → {-wrong[1][1]}"
    return place, after, why


def _cut(session: Session, pipeline: Pipeline, cases: Sequence[Case]) -> Found:
    """The best setting of the last cut with min and max free, or the learned filter in its place where that gains more
    on questions left out, or the best fixed k where nothing beats it.
    """
    place = next((at for at in reversed(range(len(pipeline.stages))) if pipeline.stages[at].is_cut), None)
    if place is None:
        raise InputError(f"the pipeline has no cut; add {AdaptiveGap.__name__} and calibrate again")
    if any(one.costly for one in pipeline.stages[:place]):
        raise InputError("a stage before the cut asks a model; choose it in the cut's drawer")
    best, said = best_on_dev(session, pipeline, place), "the family"
    if not isinstance(pipeline.stages[place], LearnedFilter):
        learned = best_on_dev(session, _with(pipeline, place, LearnedFilter()), place)
        if _surely_gained(learned) > _surely_gained(best):
            best, said = learned, "the learned filter"
    after = best.pipeline.stages[place]
    if after == pipeline.stages[place]:
        raise InputError("its settings are the best on dev")
    folds = "" if best.crossed is None else f"; fold by fold {said} gains {best.crossed.gain:+.3f} over it"
    why = f"best fixed k = {best.fixed_k} has {best.fixed_value:.3f}{folds}"
    return place, after, why


def _surely_gained(best: Best) -> float:
    """What a choice that is taken gained over the best fixed k on questions left out of it, else nothing."""
    return best.crossed.gain if best.crossed is not None and not best.fixed_wins else 0.0


def language_of(texts: Sequence[str]) -> str:
    """The analyzer whose stop words are most of the texts' words; '' where no language's are a fifth."""
    some = texts[:: max(1, len(texts) // SAMPLE)]
    said = Counter(word for text in some for word in words(text))
    total = sum(said.values()) or 1
    shares = {name: sum(said[word] for word in stop_words(name)) / total for name in ANALYZERS if name != "plain"}
    best = max(shares, key=lambda name: shares[name])
    return best if shares[best] >= LANGUAGE_SHARE else ""


def _stages(pipeline: Pipeline, kind: Any) -> Iterator[tuple[int, Any]]:
    """(place, stage) of the stages of a kind."""
    return ((at, stage) for at, stage in enumerate(pipeline.stages) if isinstance(stage, kind))


def _briefly(stage: Stage) -> str:
    """A stage with the settings that are set."""
    settings = [f"{name} {_value(value)}" for name, value in stage.settings().items() if value not in (None, False)]
    return f"{stage.name} ({', '.join(settings)})"


def _value(value: Any) -> str:
    """A setting as it is read; of what was learned only how many labels taught it."""
    return f"learned from {value.get('labels', 0):,} labels" if isinstance(value, Mapping) else str(value)


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"
