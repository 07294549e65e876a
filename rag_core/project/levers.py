"""Which lever pays: how far the best fixed k is from a perfect filter on this project, and which lever reaches how far.

Every figure but that of the rules there are is a bound, an oracle that knows the labels: what any cut, any rule on a
family, any judge could reach at most on these lists, and what is lost before a filter sees it. It says where work would
pay, not what will be gained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import Any

from rag_core.errors import InputError
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.learned_filter import LearnedFilter
from rag_core.filters.query_must import QueryMust
from rag_core.measure.experiment import start_of
from rag_core.project.choosing import best_of_family
from rag_core.project.reranking import stored_gains
from rag_core.project.session import Session, front_of
from rag_core.rules.siblings import families_of
from rag_core.stage import Pipeline
from rag_core.tune.headroom import distinct, headroom
from rag_core.tune.learned import FEWEST_LABELS, choose_trained
from rag_core.tune.plane import fixed_k
from rag_core.tune.tune import cross_validate, mean_of, values_of
from rag_core.types import Case

SEARCH, RULES, CUT, JUDGE, LEARNED, RERANK = "search", "rules", "cut", "judge", "learned filter", "rerank"
COSTS = {
    SEARCH: "embedding or indexing anew",
    RULES: "rules on chunks, none at query time",
    CUT: "none",
    JUDGE: "a model's answer for each question",
    RERANK: "a reranker's call for each question",
    LEARNED: f"{FEWEST_LABELS} labels to train, milliseconds at query time",
}
"""What pulling a lever costs."""
FEWEST_QUESTIONS = 10
"""With fewer labelled dev questions nothing is said of what a lever does gain: folds of two tell nothing."""
LEAST = 0.02
"""A lever that can move mean F₁ by less than this does not pay."""


@dataclass(frozen=True, slots=True)
class Lever:
    """What a lever could add to the mean F₁ of the best fixed k at most (`bound`), or does add as it stands."""

    name: str
    gain: float
    bound: bool
    text: str


@dataclass(frozen=True, slots=True)
class Levers:
    """All levers of a project, the one that reaches farthest first, over so many dev questions."""

    questions: int
    fixed_k: int
    fixed: float  # mean F₁ of the best fixed k
    perfect: float  # mean F₁ of a perfect filter over the same lists
    levers: tuple[Lever, ...]

    @property
    def best(self) -> Lever | None:
        """The lever that pays most, None where none does."""
        paying = [lever for lever in self.levers if lever.gain >= LEAST and lever.name != JUDGE]
        judge = next((lever for lever in self.levers if lever.name == JUDGE and lever.gain >= LEAST), None)
        return max(paying, key=lambda lever: lever.gain, default=judge)

    def to_text(self) -> str:
        """The finding in a few sentences."""
        if not self.questions:
            return "No dev question has a relevant label yet, so nothing can be said of what pays."
        head = (
            f"Best fixed k = {self.fixed_k}: F₁ {self.fixed:.3f} over {self.questions} dev questions; "
            f"a perfect filter of the same lists {self.perfect:.3f}."
        )
        if self.best is None:
            return f"{head} No lever pays: none can add {LEAST:.2f}."
        return " ".join([head, *(lever.text for lever in self.levers)])

    def to_json(self) -> dict[str, Any]:
        """The finding as plain values."""
        rows = [{"lever": one.name, "gain": one.gain, "bound": one.bound, "text": one.text} for one in self.levers]
        best = self.best
        return {
            "questions": self.questions,
            "fixed_k": self.fixed_k,
            "fixed": self.fixed,
            "perfect": self.perfect,
            "levers": [{**row, "cost": COSTS[str(row["lever"])]} for row in rows],
            "pays": best.name if best else None,
        }


def levers(session: Session, pipeline: Pipeline) -> Levers:
    """The levers behind the search of a pipeline, on the project's dev questions."""
    front = front_of(pipeline)
    found: Levers = session.remembered("levers", front, lambda: _levers(session, front))
    return found


def _levers(session: Session, front: Pipeline) -> Levers:
    least = session.project.min_grade
    cases = session.capture(front, session.dev)
    scored = [case for case in cases if case.has_relevant(least)]
    if len(scored) < 2:
        return Levers(0, 0, 0.0, 0.0, ())
    fixed = fixed_k(scored, (), "SetF", None, least)
    rows = headroom([start_of(case) for case in scored], scored, least)
    best_cut, perfect = fmean(row.best_cut for row in rows), fmean(row.perfect_filter for row in rows)
    value = fixed[2]
    rules = QueryMust()
    ruled = _best_fixed([replace(case, candidates=rules(distinct(start_of(case)))) for case in scored], least)
    family = _best_fixed(_without_families(scored, session, least), least)
    found = [
        Lever(SEARCH, 1 - perfect, True, f"Search: {1 - perfect:.3f} is lost before any filter sees it."),
        Lever(CUT, best_cut - value, True, f"Cut: at most {best_cut - value:+.3f}, each list ended at its best place."),
        Lever(JUDGE, perfect - value, True, f"Judge: at most {perfect - value:+.3f}, a judge that never errs."),
    ]
    if ruled - value >= LEAST:
        found.append(Lever(RULES, ruled - value, False, f"Rules: {ruled - value:+.3f} with those there are."))
    else:
        text = f"Rules: at most {family - value:+.3f}, if every family kept only what is relevant."
        found.append(Lever(RULES, family - value, True, text))
    found.sort(key=lambda lever: -lever.gain)
    return Levers(len(scored), fixed[1], value, perfect, tuple(found))


def crossed_levers(session: Session, pipeline: Pipeline) -> Levers:
    """The levers, and what a tuned cut and the learned filter do gain: fold by fold on questions left out of both.

    Below FEWEST_LABELS the filter stands with its shipped prior, which has learned from none of these questions.
    """
    front, least = front_of(pipeline), session.min_grade
    bounds = levers(session, pipeline)
    cases = [case for case in session.capture(front, session.dev) if case.has_relevant(least)]
    if not bounds.questions or len(cases) < FEWEST_QUESTIONS:
        return bounds
    cut = partial(best_of_family, pipeline=Pipeline((AdaptiveGap(),)), place=0, min_grade=least)
    gained = cross_validate(cases, cut, min_grade=least).gain
    gains = [
        Lever(CUT, gained, False, f"Cut: {gained:+.3f}, every setting of it, on questions left out of the choice.")
    ]
    alone = Pipeline((LearnedFilter(),))
    try:
        gained = cross_validate(cases, partial(choose_trained, pipeline=alone, min_grade=least), min_grade=least).gain
        how = "trained, on questions left out of the training"
    except InputError:  # too few labels
        gained = mean_of(values_of(cases, alone, "SetF", least)) - bounds.fixed
        how = "with its shipped prior, no label"
    gains.append(Lever(LEARNED, gained, False, f"Learned filter: {gained:+.3f}, {how}."))
    for reranked in stored_gains(session, front):
        if reranked.best is not None:
            by = f"best fixed k over the first {reranked.best.depth} by {reranked.reranker}"
            gains.append(Lever(RERANK, reranked.gain, False, f"Rerank: {reranked.gain:+.3f}, {by}."))
    rows = [*gains, *(lever for lever in bounds.levers if lever.name != CUT)]
    return replace(bounds, levers=tuple(sorted(rows, key=lambda lever: -lever.gain)))


def _best_fixed(cases: Sequence[Case], least: int) -> float:
    try:
        return fixed_k(cases, (), "SetF", None, least)[2]
    except InputError:
        return 0.0


def _without_families(cases: Sequence[Case], session: Session, least: int) -> list[Case]:
    """The lists without the irrelevant chunks of families: what rules on them could take out at most."""
    member = {id_ for ids in families_of(session.source.chunks).values() for id_ in ids}
    kept = []
    for case in cases:
        start = distinct(start_of(case))
        hits = tuple(
            hit for hit in start.hits if hit.chunk.id not in member or case.grades.get(hit.chunk.id, 0) >= least
        )
        kept.append(replace(case, candidates=replace(start, hits=hits)))
    return kept
