"""Stage and Pipeline: one signature, `Candidates → Candidates`, and `>>` for "then".

A stage is a frozen dataclass whose fields are its settings, made with `setting(...)`; ranges and choices are checked
when it is built. A filter says per hit a reason or nothing and this base moves the hits: no stage can lose a chunk in
silence. A stage answers for itself: whoever needs its title, what it needs, whether it is a cut or what its step says
asks its class, and knows no stage by name. What the stages decide is in filters/ and retrieve/; reading specs from
files is in spec.py.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from time import perf_counter
from typing import Any, ClassVar, Self

from rag_core.errors import SpecError
from rag_core.types import EMPTY, Candidates, Counterfactual, Drop, Hit, Notice, Reason, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a stage says of one of its settings."""

    name: str = ""
    kind: str = ""  # as annotated, without "| None": bool, int, float, str, Mapping[str, Any], a stage …
    default: Any = None
    help: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    optional: bool = False  # whether None is a value: "not set"
    priority: int = 0  # 1 is what a person turns first; 0: rarely touched, folded away
    unit: str = ""  # of a number: "distance", "chunks", "ms" …
    step: float | None = None  # how far one click moves a number
    usual: tuple[float, float] | None = None  # the range a person turns it through at first
    grid: tuple[float, float, int] | None = None  # low, high and how many values a sweep tries unless it is told others
    cheap: bool | None = None  # whether the captured list is enough after a change; None: as the stage's class says
    nested: type[Stage] | None = None  # the class of a setting that is a stage itself

    @property
    def numeric(self) -> bool:
        """Whether it is a number, so that it can be dragged and swept."""
        return self.kind in ("int", "float")

    @property
    def range(self) -> str:
        """The values that it takes, in words: its choices, or a closed range."""
        if self.choices:
            return ", ".join(self.choices)
        if self.low is None and self.high is None:
            return "any"
        return f"at least {self.low}" if self.high is None else f"{self.low} to {self.high}"


def setting(default: Any = MISSING, help: str = "", *, factory: Any = MISSING, **said: Any) -> Any:
    """A stage setting: a dataclass field that carries its meaning, its closed range or its choices (see Setting)."""
    metadata = {"setting": Setting(help=help, **said)}
    if factory is not MISSING:
        return field(default_factory=factory, metadata=metadata)
    return field(default=default, metadata=metadata)


def resource(*, needed: bool = True) -> Any:
    """A field for a handle (index, look-up, client) that `spec.build` injects; no part of equality or of the spec.

    `needed` is False for what a caller may hand in and nobody has to provide: verdicts of an earlier asking.
    """
    return field(default=None, compare=False, repr=False, metadata={"needed": needed})


def _is_huge(value: Any) -> bool:
    """Whether it is a whole number that no float can hold; Python does not even write the longest of them out."""
    return isinstance(value, int) and value.bit_length() > 1000


def _check(stage: str, row: Setting, value: Any) -> Any:
    """The value as the setting's type, or a SpecError that names stage, setting, value and range."""

    def refuse(expected: str) -> SpecError:
        shown = f"a number of {value.bit_length()} bits" if _is_huge(value) else repr(value)
        return SpecError(f"{stage}.{row.name} is {shown[:200]}, expected {expected}")

    if value is None and row.optional:
        return None
    if row.choices and value not in row.choices:
        raise refuse(f"one of {row.range}")
    if row.choices:
        return value
    if row.kind == "bool" and not isinstance(value, bool):
        raise refuse("true or false")
    if row.kind == "str" and not isinstance(value, str):
        raise refuse("text")
    if not row.numeric:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or _is_huge(value) or not math.isfinite(value):
        raise refuse("a whole number" if row.kind == "int" else "a number")
    if row.kind == "int" and value != int(value):
        raise refuse("a whole number")
    if (row.low is not None and value < row.low) or (row.high is not None and value > row.high):
        raise refuse(row.range)
    return int(value) if row.kind == "int" else float(value)


_CUTS: set[str] = set()  # names of the cuts whose class exists: no other can have made a drop


def made_by_cut(drop: Drop) -> bool:
    """Whether a cut made this drop: the chunk fell to distance, rank or count."""
    return drop.stage in _CUTS


@dataclass(frozen=True)
class Stage(ABC):
    """One step of a pipeline. Subclasses give `apply`; calling a stage runs it and writes the step into the trace."""

    kind: ClassVar[str] = "stage"  # rewrite | source | filter | rank | expand
    costly: ClassVar[bool] = False  # whether running it may cost money: it asks a model
    title: ClassVar[str] = ""  # what a person reads wherever the stage stands
    meaning: ClassVar[str] = ""  # one sentence: the first line of the class's docstring
    is_cut: ClassVar[bool] = False  # whether it ends the list by distance, rank or count, not by what a chunk says
    cheap: ClassVar[bool] = False  # whether its settings change without a search or a model, unless one says otherwise
    score: ClassVar[str] = ""  # the score kind it decides by (types.SCORES), "" for none
    trained: ClassVar[bool] = False  # whether its settings come from training on labels, not from a grid
    drawer: ClassVar[str] = ""  # what else belongs to it on a page: search, words, rules, entities, judge
    lens: ClassVar[str] = ""  # the lens it is best seen through

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.meaning = (cls.__doc__ or "").strip().partition("\n")[0]
        if cls.is_cut:
            _CUTS.add(cls.__name__)

    def __post_init__(self) -> None:
        for row in self.declared():
            object.__setattr__(self, row.name, _check(self.name, row, getattr(self, row.name)))

    @property
    def name(self) -> str:
        """The stage's name in specs, traces and screens: its class name."""
        return type(self).__name__

    def settings(self) -> dict[str, Any]:
        """All settings with their values, defaults filled in."""
        return {f.name: getattr(self, f.name) for f in fields(self) if "setting" in f.metadata}

    @property
    def weighs(self) -> Mapping[str, float]:
        """What a trained stage weighs, by name; nothing where it is not trained."""
        return {}

    def carried_settings(self) -> dict[str, Any]:
        """The settings as an exported file needs them."""
        return self.settings()

    @classmethod
    @cache
    def declared(cls) -> tuple[Setting, ...]:
        """Its settings: those that matter first in front, then the rest, each in the order they are written."""
        rows = []
        for f in fields(cls):
            if said := f.metadata.get("setting"):
                default = f.default_factory() if callable(f.default_factory) else f.default
                cheap = cls.cheap if said.cheap is None else said.cheap
                kind = str(f.type).partition(" |")[0]
                rows.append(replace(said, name=f.name, kind=kind, default=default, cheap=cheap))
        return tuple(sorted(rows, key=lambda row: row.priority or math.inf))

    @classmethod
    def needs(cls) -> frozenset[str]:
        """The handles it waits for, by the names of its `resource()` fields: index, judge, entities, chunks …"""
        return frozenset(f.name for f in fields(cls) if f.metadata.get("needed"))

    @classmethod
    def said(cls, step: Step) -> str:
        """Its step in one line, from counts and facts; how long it took is for the reader of the step to add."""
        return f"{step.entered} in, {step.left} left"

    @classmethod
    def details(cls, step: Step) -> tuple[str, ...]:
        """What more its step says, line by line, for a reader of the whole trace."""
        return ()

    @classmethod
    def change(cls, step: Step) -> str:
        """What its step did to the list, in as few characters as will do: "−13", "+2"."""
        moved = step.left - step.entered
        return f"+{moved}" if moved > 0 else f"−{-moved}"

    def changed(self, **settings: Any) -> Self:
        """The stage with some settings changed; one whose default hangs on them follows, unless it was set."""
        return replace(self, **settings)

    @property
    def reach(self) -> int:
        """How many chunks it may read of its list; 0 where it takes the list as it comes."""
        return 0

    @abstractmethod
    def apply(self, candidates: Candidates) -> tuple[Candidates, Mapping[str, Any]]:
        """The list after this stage, and the facts for its step in the trace."""

    def would_keep(self, before: Candidates, drop: Drop) -> tuple[Counterfactual, ...]:
        """Per parameter, the nearest value with which this stage alone would have kept the dropped hit."""
        return ()

    def would_keep_each(self, before: Candidates, drops: Sequence[Drop]) -> list[tuple[Counterfactual, ...]]:
        """`would_keep` of every drop that this stage made of a list; a stage that needs the whole list looks once."""
        return [self.would_keep(before, drop) for drop in drops]

    def again(self, candidates: Candidates) -> Candidates:
        """The stage on a list it has run on before; one whose work costs does not do it twice."""
        return self(candidates)

    def settled(self, candidates: Candidates) -> Stage:
        """The stage with what it asked about this list in hand: other settings are then decided on the same answers."""
        return self

    def __call__(self, candidates: Candidates) -> Candidates:
        """Run the stage and write its step into the trace."""
        started = perf_counter()
        after, facts = self.apply(candidates)
        elapsed = (perf_counter() - started) * 1000
        step = Step(self.name, len(candidates.hits), len(after.hits), facts, elapsed)
        return replace(after, steps=(*after.steps, step))

    def __rshift__(self, other: Stage) -> Pipeline:
        return Pipeline((*flatten(self), *flatten(other)))


LONGEST_NAME = 120


@dataclass(frozen=True, slots=True)
class ChosenOn:
    """On which questions a pipeline's settings were chosen: figures over those flatter it."""

    split: str  # what the ledger calls the split
    questions: int
    fingerprint: str = ""  # of the questions
    method: str = ""
    at: str = ""  # the day


@dataclass(frozen=True)
class Pipeline(Stage):
    """A tuple of stages, run in order; itself a stage. An empty pipeline returns the list as it came."""

    stages: tuple[Stage, ...] = ()
    label: str = field(default="", compare=False)
    chosen_on: ChosenOn | None = field(default=None, compare=False)

    kind: ClassVar[str] = "pipeline"

    @property
    def called(self) -> str:
        """Its label, else its stages with what differs from the defaults: `Dense > AdaptiveGap > TopK(5)`."""
        return self.label or " > ".join(_in_short(stage) for stage in self.stages)[:LONGEST_NAME] or "unfiltered"

    def apply(self, candidates: Candidates) -> tuple[Candidates, Mapping[str, Any]]:
        """Not used: a pipeline's steps are those of its stages."""
        return self(candidates), EMPTY

    def __call__(self, candidates: Candidates) -> Candidates:
        """Run the stages one after the other."""
        for stage in self.stages:
            candidates = stage(candidates)
        return candidates


def _in_short(stage: Stage) -> str:
    """The stage's name with the settings that are not at their defaults; where a cut ends the list is always told."""
    declared = [(row, getattr(stage, row.name)) for row in stage.declared()]
    plain = [(row, value) for row, value in declared if isinstance(value, str | int | float)]
    told = [f"{row.name}={value}" for row, value in plain if value != row.default]
    if len(plain) == 1 and (told or stage.is_cut):
        told = [str(plain[0][1])]  # what a lone setting means needs no name
    return f"{stage.name}({', '.join(told)})" if told else stage.name


def flatten(stage: Stage) -> tuple[Stage, ...]:
    """The stages of a pipeline, or the stage itself."""
    return stage.stages if isinstance(stage, Pipeline) else (stage,)


def needs_of(pipeline: Stage) -> frozenset[str]:
    """What the stages of a pipeline wait for together, by resource name."""
    return frozenset().union(*(stage.needs() for stage in flatten(pipeline)))


@dataclass(frozen=True)
class Judgement:
    """What a filter decided: per hit, in order, a reason to drop it or None; and facts about the whole.

    `notes`, where there are any, are what each hit carries on under the filter's name (None: nothing).
    """

    reasons: Sequence[Reason | None]
    facts: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    notices: tuple[Notice, ...] = ()
    notes: Sequence[Any] = ()


class Filter(Stage):
    """A stage that only drops. It gives `judge`; this base moves the hits, in order, and conserves every one."""

    kind: ClassVar[str] = "filter"
    cheap: ClassVar[bool] = True

    @abstractmethod
    def judge(self, candidates: Candidates) -> Judgement:
        """A reason or None for every hit, in the order of `candidates.hits`."""

    def arrange(self, hits: tuple[Hit, ...], candidates: Candidates) -> tuple[Hit, ...]:
        """The order in which the hits are judged and kept; the order they came in unless a filter re-orders."""
        return hits

    def apply(self, candidates: Candidates) -> tuple[Candidates, Mapping[str, Any]]:
        """Judge the hits and move those with a reason to the drops."""
        candidates = replace(candidates, hits=self.arrange(candidates.hits, candidates))
        judged = self.judge(candidates)
        name, hits = self.name, candidates.hits
        if judged.notes:
            noted = zip(hits, judged.notes, strict=True)
            hits = tuple(hit if note is None else hit.noted(name, note) for hit, note in noted)
        pairs = list(zip(hits, judged.reasons, strict=True))
        kept = tuple(hit for hit, reason in pairs if reason is None)
        drops = tuple(Drop(hit, name, reason) for hit, reason in pairs if reason is not None)
        after = replace(
            candidates,
            hits=kept,
            drops=candidates.drops + drops,
            notices=candidates.notices + judged.notices,
        )
        return after, judged.facts


class Source(Stage):
    """A stage that brings hits. On a recorded list it is skipped, and the trace says so."""

    kind: ClassVar[str] = "source"
    drawer: ClassVar[str] = "search"

    @classmethod
    def said(cls, step: Step) -> str:
        """Why nothing was fetched, where the list is recorded; sources say what they fetched."""
        return str(step.facts.get("skipped") or super().said(step))

    @abstractmethod
    def fetch(self, candidates: Candidates) -> tuple[Candidates, Mapping[str, Any]]:
        """The candidates with this source's hits and reader, and the facts for the step."""

    def apply(self, candidates: Candidates) -> tuple[Candidates, Mapping[str, Any]]:
        """Fetch, unless the list is recorded."""
        if candidates.recorded:
            return candidates, {"skipped": "recorded list: the source was not asked"}
        return self.fetch(candidates)


def counterfactuals(pipeline: Stage, candidates: Candidates) -> dict[tuple[str, str], tuple[Counterfactual, ...]]:
    """For every hit that `pipeline` drops: what would have kept it, by the stage that dropped it, keyed by Hit.key."""
    lists = [candidates]
    for stage in flatten(pipeline):
        lists.append(stage.again(lists[-1]))
    return counterfactuals_in(flatten(pipeline), lists)


def counterfactuals_in(
    stages: Sequence[Stage], lists: Sequence[Candidates]
) -> dict[tuple[str, str], tuple[Counterfactual, ...]]:
    """The same where the stages have run: `lists` is the list as it came and after each of them."""
    found: dict[tuple[str, str], tuple[Counterfactual, ...]] = {}
    for stage, before, after in zip(stages, lists, lists[1:], strict=False):
        if drops := after.drops[len(before.drops) :]:
            found |= zip((drop.hit.key for drop in drops), stage.would_keep_each(before, drops), strict=True)
    return found


def would_keep(stages: Sequence[Stage], lists: Sequence[Candidates], drop: Drop) -> tuple[Counterfactual, ...]:
    """What the stage that made one drop of these lists says would have kept the chunk."""
    for stage, before, after in zip(stages, lists, lists[1:], strict=False):
        if drop in after.drops[len(before.drops) :]:
            return stage.would_keep(before, drop)
    return ()
