"""AdaptiveGap: cut a ranked list at its semantic cliff. The rule itself is in cut.py; this is the stage around it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

from rag_core.errors import InputError, SpecError
from rag_core.filters.cut import (
    DEFAULT_OFFSET,
    OF_SPAN,
    POLICIES,
    THRESHOLDS,
    UNIT,
    Cut,
    CutRule,
    Ranked,
    cut,
)
from rag_core.filters.query_form import query_form, threshold_factor
from rag_core.stage import Filter, Judgement, setting
from rag_core.types import SCORED, Candidates, Counterfactual, Drop, Hit, Metric, Order, Reason, Step, falling

MOST_RESULTS = 1000
ANY_SCALE: dict[str, Any] = {"gap_policy": "relative", "relative_offset": 0.5}
ANY_SCALE_GRID = "gap_threshold=0.02:0.6:30,relative_offset=0.05:1:20"
"""A cut by fractions of each list's span, which any score has, and the fractions that are tried."""
_MOVED = tuple(name for name in CutRule._fields if name != "relative_offset")


@dataclass(frozen=True)
class AdaptiveGap(Filter):
    """Cut the list at its largest gap in distance, else at an offset from the nearest chunk."""

    gap_threshold: float | None = setting(
        None,
        "smallest gap that may end the list; a fraction of the span under policy relative, knee and autocut",
        low=0,
        optional=True,
        priority=1,
        unit="distance",
        step=0.005,
        usual=(0.05, 0.15),
        grid=(0.01, 0.3, 60),
    )
    distance_offset: float = setting(
        DEFAULT_OFFSET,
        "without such a gap, keep all this near to the nearest; under policy ratio a fraction of the nearest's score",
        low=0,
        priority=2,
        unit="distance",
        step=0.01,
        usual=(0.2, 0.6),
        grid=(0.05, 0.6, 40),
    )
    min_results: int = setting(2, "never keep fewer", low=0, high=1000, priority=3, unit="chunks", step=1, usual=(1, 5))
    max_results: int = setting(
        15, "look at no more than this many", low=1, high=MOST_RESULTS, priority=4, unit="chunks", step=1, usual=(5, 15)
    )
    gap_policy: str = setting(
        "largest",
        "which eligible gap ends the list; knee and autocut: gaps above the mean one; ratio: none, the offset does",
        choices=POLICIES,
    )
    relative_offset: float | None = setting(
        None,
        "offset as a fraction of the span, instead of distance_offset",
        low=0,
        optional=True,
        unit="of the span",
        step=0.01,
    )
    query_specific: bool = setting(
        False, "half the gap_threshold for specific questions, 1.5 times for broad ones (filters/query_form.py)"
    )

    score_kind: str = setting(
        "auto",
        "what the thresholds were chosen for: a list by another score is refused; auto takes any, the distance where "
        "there is one, else the score that the list has",
        choices=("auto", "distance", *SCORED),
        cheap=False,  # it says what the list is, there is nothing to try
    )
    jumps: int = setting(1, "which of the jumps ends the list under policy autocut", low=1, high=1000, usual=(1, 3))
    worst_score: float | None = setting(
        None,
        "minimum score, or maximum distance where the list has distances: worse is not even looked at",
        optional=True,
        step=0.01,
    )
    weak_top: float | None = setting(
        None, "where even the best has a worse score, or greater distance, nothing is kept", optional=True, step=0.01
    )

    title: ClassVar[str] = "adaptive cut"
    is_cut: ClassVar[bool] = True
    score: ClassVar[str] = "distance"
    lens: ClassVar[str] = "threshold"

    def __post_init__(self) -> None:
        if self.gap_threshold is None:
            object.__setattr__(self, "gap_threshold", THRESHOLDS.get(self.gap_policy))
        super().__post_init__()
        if self.min_results > self.max_results:
            raise SpecError(f"{self.name}.min_results is {self.min_results}, expected at most {self.max_results}")

    def changed(self, **settings: Any) -> Self:
        """The stage with some settings changed; a default threshold becomes that of another policy."""
        if "gap_policy" in settings and self.gap_threshold == THRESHOLDS[self.gap_policy]:
            settings = {"gap_threshold": None, **settings}
        return super().changed(**settings)

    @classmethod
    def said(cls, step: Step) -> str:
        """Where the list was cut and why, or that no gap was large enough and how far the offset reaches."""
        made = step.facts.get("cut")
        if made is None or made.kind == "all":
            return super().said(step)
        if made.kind == "weak":
            return f"even the best is worse than weak_top: 0 of {step.entered} left"
        least = ", the least to keep" if made.raised else ""
        if made.gap_index is not None:
            where = f"gap {made.gap:.4f} ≥ {made.gap_threshold:.4f} after position {made.gap_index + 1}"
        else:
            where = f"no gap reaches {made.gap_threshold:.4f}, all up to distance {made.reach:.4f}"
        return f"{where}: {made.keep} of {step.entered} left{least}"

    @classmethod
    def details(cls, step: Step) -> tuple[str, ...]:
        """The cut with all it looked at: distances, gaps, the skipped first gap, the threshold and the chosen gap."""
        made, distances = step.facts.get("cut"), step.facts.get("distances", ())
        if made is None:
            return ()
        gaps = [after - before for before, after in pairwise(distances)]
        lines = [
            "distances " + " ".join(f"{distance:.4f}" for distance in distances),
            "gaps      " + " ".join(f"{gap:.4f}" for gap in gaps) + ("  (the first is skipped)" if gaps else ""),
            f"threshold {made.gap_threshold:.4f}",
        ]
        if made.gap_index is not None:
            return (*lines, f"chosen gap {made.gap:.4f} after position {made.gap_index + 1}, {made.keep} stay")
        reach = "" if made.reach is None else f" up to distance {made.reach:.4f}"
        return (*lines, f"no gap reaches the threshold: the offset keeps{reach}, {made.keep} stay")

    def arrange(self, hits: tuple[Hit, ...], candidates: Candidates) -> tuple[Hit, ...]:
        """By distance where the list is fused; hits the cut does not judge come after, in their order."""
        if candidates.order is Order.DISTANCE:
            return hits
        seen = zip(hits, falling(replace(candidates, hits=hits)).hits, strict=True)
        cuttable = [(_distance(one), hit.rank, hit) for hit, one in seen if _cuttable(one)]
        cuttable.sort(key=lambda row: row[:2])
        keys = {hit.key for _, _, hit in cuttable}
        return (*(hit for _, _, hit in cuttable), *(hit for hit in hits if hit.key not in keys))

    def for_query(self, text: str) -> AdaptiveGap:
        """The stage as it stands for one question: with `query_specific`, the threshold that its form asks for."""
        if not self.query_specific or self.gap_threshold is None:
            return self
        return replace(self, gap_threshold=self.gap_threshold * threshold_factor(text), query_specific=False)

    def rule(self, metric: Metric) -> CutRule:
        """The settings that the rule of cut.py takes for lists of a metric: scores as distances."""
        worst, weak = (None if one is None else as_distance(one, metric) for one in (self.worst_score, self.weak_top))
        rule = CutRule(**{name: getattr(self, name) for name in CutRule._fields})
        return rule._replace(worst_score=worst, weak_top=weak)

    def judge(self, candidates: Candidates) -> Judgement:
        """Drop what lies behind the cut; expansions, hops and hits without a distance pass and are counted."""
        candidates = falling(candidates)
        self._check_metric(candidates)
        if self.query_specific:
            judged_as = self.for_query(candidates.query.text).judge(candidates)
            return replace(judged_as, facts={**judged_as.facts, "form": query_form(candidates.query.text)})
        bare = next((hit for hit in candidates.hits if not hit.origin and hit.distance is None), None)
        if candidates.order is Order.DISTANCE and bare is not None:
            has = ", ".join(bare.scores) or "no score"
            raise InputError(f"AdaptiveGap needs a distance on every candidate, rank {bare.rank} has {has}")
        judged = [hit for hit in candidates.hits if _cuttable(hit)]
        made = cut([_distance(hit) for hit in judged], **self.rule(candidates.metric)._asdict())
        reasons: dict[tuple[str, str], Reason | None] = {
            hit.key: self._reason(position, hit, judged, made, candidates.metric)
            for position, hit in enumerate(judged, 1)
        }
        passed = len(candidates.hits) - len(judged)
        facts = {
            "cut": made,
            "distances": tuple(_distance(hit) for hit in judged[: made.looked]),
            "passed_without_distance": passed,
        }
        return Judgement([reasons.get(hit.key) for hit in candidates.hits], facts)

    def would_keep(self, before: Candidates, drop: Drop) -> tuple[Counterfactual, ...]:
        """Per parameter, the nearest value with which this stage would have kept the chunk."""
        return self.would_keep_each(before, (drop,))[0]

    def would_keep_each(self, before: Candidates, drops: Sequence[Drop]) -> list[tuple[Counterfactual, ...]]:
        """The same for many drops of one list, which is looked at once."""
        if self.query_specific:
            return self._would_keep_by_form(before, drops)
        before = falling(before)
        judged = [hit for hit in self.arrange(before.hits, before) if _cuttable(hit)]
        places = {hit.key: place for place, hit in enumerate(judged)}
        ranked = Ranked([_distance(hit) for hit in judged])
        columns = [self._nearest(name, ranked, before.metric) for name in _MOVED if getattr(self, name) is not None]
        return [tuple(column[places[drop.hit.key]] for column in columns) for drop in drops]

    def _nearest(self, name: str, ranked: Ranked, metric: Metric) -> list[Counterfactual]:
        """For every place of a list the nearest value of one setting that keeps the chunk there."""
        current, rule = getattr(self, name), self.rule(metric)
        found: list[Counterfactual] = []
        changes = dict.fromkeys(self._changes(name, ranked, metric))  # in their order, which a set would not keep
        for value in sorted(changes, key=lambda value: _farness(value, current)):
            moved: Any = as_distance(value, metric) if name in ("worst_score", "weak_top") else value
            keep = ranked.end(rule._replace(**{name: moved}))[0]
            if keep > len(found):
                nearest = Counterfactual(name, value, f"{name} {_shown(value)} would have kept it")
                found += [nearest] * (keep - len(found))
        none = Counterfactual(name, None, f"{name}: no value would have kept it")
        return found + [none] * (len(ranked.whole) - len(found))

    def _changes(self, name: str, ranked: Ranked, metric: Metric) -> Iterator[Any]:
        """The values of one setting at which chunks that are dropped can come to be kept."""
        whole, rule = ranked.whole, self.rule(metric)
        made = ranked.cut(rule)
        if name == "gap_policy":
            yield from (policy for policy in POLICIES if policy != self.gap_policy)
        elif name == "min_results":
            yield from range(made.keep + 1, made.looked + 1)
        elif name == "max_results":
            yield from range(max(1, self.min_results, made.keep + 1), min(len(whole), MOST_RESULTS) + 1)
        elif name == "jumps":
            yield from range(1, made.looked if self.gap_policy == "autocut" else 1)
        elif name in ("worst_score", "weak_top"):
            yield from (
                as_distance(round(unit * UNIT, 9), metric) for unit in whole[: len(whole) if name[0] == "w" else 1]
            )
        elif name == "distance_offset":
            if made.gap_index is None and self.relative_offset is None and made.looked:
                scale = abs(whole[0]) * UNIT if self.gap_policy == "ratio" else 1.0
                further = whole[made.keep : made.looked] if scale else []
                yield from (_up((unit - whole[0]) * UNIT / scale) for unit in further)
        elif made.looked > 2:
            # which gap ends the list changes at gaps that are larger than all before them, at no others
            span = (whole[made.looked - 1] - whole[0]) * UNIT or 1.0
            scale = span if self.gap_policy in OF_SPAN else 1
            gaps = set(ranked.largest[: made.looked - 2])
            if self.gap_policy in ("knee", "autocut"):
                at = ranked.jump(made.looked, rule)
                gaps = set() if at is None else {whole[at + 1] - whole[at]}
                # the largest threshold that this gap still reaches: a fraction rounded up asks for a unit more
                yield from (math.floor(round(gap * UNIT / scale * 1e9, 3)) * UNIT for gap in gaps)
            for gap in gaps:
                yield from (_up(gap * UNIT / scale), _up((gap + 1) * UNIT / scale))

    def _would_keep_by_form(self, before: Candidates, drops: Sequence[Drop]) -> list[tuple[Counterfactual, ...]]:
        """What would have kept each at this question's own threshold, and whether the set one would have."""
        kept = {hit.key for hit in replace(self, query_specific=False)(before).hits}
        made = []
        for drop, found in zip(drops, self.for_query(before.query.text).would_keep_each(before, drops), strict=True):
            there = drop.hit.key in kept
            text = f"query_specific false would {'' if there else 'not '}have kept it"
            others = [one for one in found if one.parameter != "gap_threshold"]  # its value is not the one that is set
            made.append((*others, Counterfactual("query_specific", False if there else None, text)))
        return made

    def _reason(self, position: int, hit: Hit, judged: Sequence[Hit], made: Cut, metric: Metric) -> Reason | None:
        """Why the hit at `position` (1-based) is dropped, or None where it is kept."""
        if position <= made.keep:
            return None
        distance = _distance(hit)
        if made.kind == "weak" or (position > made.looked and made.looked < self.max_results):
            name, what, worse = ("weak_top", "best ", judged[0]) if made.kind == "weak" else ("worst_score", "", hit)
            value, worst = as_distance(_distance(worse), metric), getattr(self, name)
            kind = "score" if metric in SCORED else "distance"
            return Reason(f"{what}{kind} {value:.4f} is worse than {name} {worst:.4f}", value, worst)
        if position > made.looked:
            return Reason(
                f"position {position}, only the first {self.max_results} are looked at", position, self.max_results
            )
        if made.gap is not None:
            rank = judged[made.keep - 1].rank
            text = f"distance {distance:.4f}, cut after rank {rank}: gap {made.gap:.4f} ≥ {made.gap_threshold:.4f}"
            return Reason(text, made.gap, made.gap_threshold)
        first = _distance(judged[0])
        reach = made.reach if made.reach is not None else first
        text = f"distance {distance:.4f} > {reach:.4f} (nearest {first:.4f} + offset {reach - first:.4f})"
        return Reason(text, distance, reach)

    def _check_metric(self, candidates: Candidates) -> None:
        """Refuse a list by another score than what the thresholds were chosen for; the defaults are for cosine."""
        kind = candidates.metric if candidates.metric in SCORED else "distance"
        if self.score_kind not in ("auto", kind):
            raise SpecError(
                f"AdaptiveGap has thresholds for {self.score_kind} on a list by {kind}, expected a list by "
                f"{self.score_kind}, or thresholds chosen on lists like this"
            )
        if candidates.metric in (Metric.COSINE, Metric.UNKNOWN):
            return
        gap_default = self.gap_policy in ("largest", "first") and self.gap_threshold == THRESHOLDS[self.gap_policy]
        in_units = self.relative_offset is None and self.gap_policy != "ratio"
        offset_default = in_units and self.distance_offset == DEFAULT_OFFSET
        if gap_default or offset_default:
            scale = "scores" if candidates.metric is Metric.SCORE else f"{candidates.metric} scores"
            raise SpecError(
                f"AdaptiveGap has its default thresholds, made for cosine distances, on a list of "
                f"{f'{candidates.metric} distances' if kind == 'distance' else scale}; expected gap_threshold and "
                f"distance_offset set for them, or gap_policy relative with relative_offset"
            )


def _cuttable(hit: Hit) -> bool:
    """Whether the cut judges this hit: it came from the source and has a distance."""
    return not hit.origin and hit.distance is not None


def _distance(hit: Hit) -> float:
    """The distance of a hit that is known to have one."""
    return hit.scores["distance"]


def as_distance(value: float, metric: Metric) -> float:
    """A score as the distance it counts as on lists of a metric, and back."""
    return -value if metric in SCORED else value


def _up(value: float) -> float:
    """The value rounded up to a whole unit, so that comparing it again holds."""
    return max(0.0, round(math.ceil(round(value * 1e9, 3)) * UNIT, 9))


def _farness(value: Any, current: Any) -> float:
    """How far a change point is from the current value; names count as equally far."""
    return abs(value - current) if isinstance(value, int | float) and isinstance(current, int | float) else 0.0


def _shown(value: Any) -> str:
    """A setting's value as a person reads it: four digits, more only where four would hide the step."""
    if not isinstance(value, float):
        return str(value)
    short = f"{value:.4f}"
    return short if abs(float(short) - value) < UNIT / 2 else f"{value:.9f}"
