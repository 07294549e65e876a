"""What there is to gain on a project's dev questions: a perfect cut, a perfect filter, and what the search lost.

Computed on the lists that reach the pipeline's last cut, with the best fixed k of the same lists beside them. The
ceilings are oracles that know the labels: they say where work would pay, not what will be gained. With them what each
score knows (AUC).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from rag_core.errors import InputError
from rag_core.measure.experiment import run_case
from rag_core.measure.scores import score
from rag_core.project.session import Session, must_search
from rag_core.stage import Pipeline
from rag_core.tune.headroom import (
    QueryHeadroom,
    Signal,
    distinct,
    gap_signal,
    headroom,
    score_signals,
    top_distance_signal,
)
from rag_core.tune.plane import fixed_k
from rag_core.tune.steps import Knob, cheap_knobs, step_function
from rag_core.tune.tune import values_of

LITTLE = 0.02
"""A mean F₁ that less than this is missing to: little is left to gain."""


@dataclass(frozen=True)
class Ceilings:
    """The ceilings of the labelled dev questions behind the stages before a pipeline's last cut."""

    front: Pipeline
    asked: int  # dev questions, labelled or not
    rows: tuple[QueryHeadroom, ...]
    now: tuple[float, ...]  # F₁ of the best fixed k, in the order of `rows`
    fixed_k: int
    texts: Mapping[str, str]  # question by id
    signals: tuple[Signal, ...]

    @property
    def means(self) -> dict[str, float]:
        """Macro means: best fixed k, best cut, perfect filter, and the share of the relevant that search lost."""
        return {
            "fixed": fmean(self.now),
            "best_cut": fmean(row.best_cut for row in self.rows),
            "perfect_filter": fmean(row.perfect_filter for row in self.rows),
            "lost_in_search": fmean(row.lost_in_retrieval for row in self.rows),
        }

    @property
    def verdict(self) -> str:
        """Whether search or filtering is the problem, in plain words."""
        means = self.means
        filtering, search = means["perfect_filter"] - means["fixed"], 1 - means["perfect_filter"]
        if max(filtering, search) < LITTLE:
            return f"Little is left to gain: fixed k = {self.fixed_k} is nearly perfect on these lists."
        if search >= filtering:
            return (
                f"Limited by search: {search:.3f} of F₁ is lost because relevant chunks are not in the lists, "
                f"{filtering:.3f} could be gained by filtering."
            )
        return (
            f"Limited by filtering: a perfect filter of these lists would bring {filtering:.3f} of F₁, "
            f"{means['best_cut'] - means['fixed']:.3f} of it by ending each list at its best place; "
            f"search lost {search:.3f}."
        )

    def limited_by(self, place: int) -> str:
        """The same for one question, in a word."""
        search, filtering = 1 - self.rows[place].perfect_filter, self.rows[place].perfect_filter - self.now[place]
        if max(search, filtering) < LITTLE:
            return "nothing to gain"
        return "search" if search >= filtering else "filter"

    def to_text(self) -> str:
        """Verdict, means and what the scores know."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        means = self.means
        yield f"{self.verdict} Over {len(self.rows)} labelled of {self.asked} dev questions."
        yield f"  best fixed k = {self.fixed_k}: F₁ {means['fixed']:.3f}"
        yield f"  best cut of each list: F₁ {means['best_cut']:.3f}"
        yield f"  perfect filter: F₁ {means['perfect_filter']:.3f}"
        yield f"  lost in search: {means['lost_in_search']:.1%} of the relevant chunks"
        yield from (f"  {signal.sentence()}" for signal in self.signals)

    def to_json(self) -> dict[str, Any]:
        """The same as plain values, with every question."""
        return {
            "questions": self.asked,
            "questions_scored": len(self.rows),
            "fixed_k": self.fixed_k,
            **self.means,
            "verdict": self.verdict,
            "signals": [
                {"name": one.name, "questions": one.queries, "auc": one.auc, "low": one.low, "high": one.high}
                for one in self.signals
            ],
            "by_question": [
                {
                    "question": row.query_id,
                    "limited_by": self.limited_by(place),
                    "fixed": self.now[place],
                    "best_cut": row.best_cut,
                    "at_length": row.best_length,
                    "perfect_filter": row.perfect_filter,
                    "lost_in_search": row.lost_in_retrieval,
                }
                for place, row in enumerate(self.rows)
            ],
        }


def ceilings(session: Session, pipeline: Pipeline) -> Ceilings:
    """The ceilings of a pipeline on the project's dev questions, remembered; InputError where none is labelled.

    Only the stages before its last cut matter, so that moving that cut computes nothing anew.
    """
    cuts = [place for place, stage in enumerate(pipeline.stages) if stage.is_cut]
    front = Pipeline(pipeline.stages[: cuts[-1]] if cuts else pipeline.stages)
    made: Ceilings = session.remembered("ceilings", front, lambda: _ceilings(session, front))
    return made


def moving_knobs(session: Session, pipeline: Pipeline) -> list[tuple[Knob, int]]:
    """Every number of a pipeline that needs no search and no model, and on how many dev questions turning it matters.

    One that moves nothing there cannot be tuned there, whatever a sweep's best row says.
    """
    pipeline = session.whole(pipeline)
    if not session.dev or (session.live and must_search(pipeline)):
        return []
    captures, ready = session.captures(pipeline, session.dev), session.ready(pipeline)
    knobs = []
    for knob in cheap_knobs(captures, ready, searched=session.live):
        with suppress(InputError):  # a stage refuses these lists at every position
            moved = step_function(captures, ready, knob.stage, knob.setting, knob.positions).moved
            knobs.append((knob, moved))
    return knobs


def _ceilings(session: Session, front: Pipeline) -> Ceilings:
    least, dev = session.min_grade, session.dev
    cases = [case for case in dev if score([], case.grades, case.relevant_total, least, ()).scored]
    if not cases:
        raise InputError(f"none of {len(dev)} dev questions has a relevant label, expected at least one")
    ready = session.ready(front)
    # what comes to the cut, once for every figure below
    starts = [distinct(run_case(case, ready, least, ()).result) for case in session.starts(front, cases)]
    reaching = [replace(case, candidates=start) for case, start in zip(cases, starts, strict=True)]
    fixed, k, _ = fixed_k(reaching, (), "SetF", None, least)
    now = [value or 0.0 for value in values_of(reaching, fixed, "SetF", least)]
    signals = score_signals(starts, cases, least)
    with suppress(InputError):  # lists without distances have no gaps
        signals += [gap_signal(starts, cases, min_grade=least), top_distance_signal(starts, cases, least)]
    return Ceilings(
        front,
        len(dev),
        tuple(headroom(starts, cases, least)),
        tuple(now),
        k,
        {case.query.id: case.query.text for case in cases},
        tuple(signals),
    )
