"""All that the Bench's component draws, as frozen values, and `pack`, which makes one run of bytes of them.

    bytes 0-3   length of the header, little-endian
    header      JSON, padded with blanks to a multiple of 8
    arrays      one after the other, each at a multiple of 8, little-endian

The header is the `Payload` below, field by field under the same names. An array in it stands as `{"at": offset from the
first array, "type": "f8" | "f4" | "i4" | "u2" | "u1" | "bit", "shape": [..]}`, one of few distinct numbers as their
places (u2) in `"values"`, an array itself. Bits begin with the highest of a byte. A figure that is not defined is null.
What only the other zoom draws stays at home.

A `Knob` carries its step function: what every figure becomes at each of its positions while all else stands still. The
component looks up, it computes no measure and knows no rule. A knob whose steps are None is dear: the component asks
for them when it is grabbed.

Nothing here reads a session, a project or a store: values in, bytes out.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
TYPES = ("f8", "f4", "i4", "u2", "u1")


@dataclass(frozen=True, slots=True)
class BenchFigures:
    """Means over questions, or the figures of one question; None where they are not defined."""

    precision: float | None
    recall: float | None
    f: float | None
    kept: float | None


@dataclass(frozen=True, slots=True)
class BenchLine:
    """One of the two lines of figures: A beside B. `counts` are better, worse, same of A against B, by F₁."""

    label: str
    questions: int  # how many there are
    scored: int  # how many of them enter the means
    a: BenchFigures
    b: BenchFigures | None = None
    counts: tuple[int, int, int] | None = None
    note: str = ""  # what must be said beside the figures: "no label yet", "examples, no dev questions"


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """What moves with one knob, by position; the last axis of every array has one entry a position."""

    means: Array  # (4, n) Precision, Recall, F₁, kept of A over the questions
    one: Array  # (4, n) the same of the question in sight; NaN where undefined
    kept: Array | None  # (rows, n) which rows of A's list stay, by `Row.step`
    counts: Array | None = None  # (3, n) questions better, worse, same than B
    per_question: Array | None = None  # (questions, n) F₁, for the matrix of zoom All


@dataclass(frozen=True, slots=True, eq=False)
class BenchKnob:
    """A number of a stage that can be dragged. `positions` ascend and hold the current value."""

    setting: str
    title: str
    value: float
    positions: Array
    help: str = ""
    digits: int = 4  # 0 for whole numbers
    steps: Steps | None = None


@dataclass(frozen=True, slots=True, eq=False)
class BenchStage:
    """A stage of A as a person sees it, in the pipeline's order; its index is what events name."""

    name: str  # as in specs
    title: str
    meaning: str = ""
    did: str = ""  # what it did, for the question or in the mean: "−6"
    note: str = ""  # its settings in a few words: "hybrid, 200 candidates"
    simulated: bool = False  # whether a simulated judge stands in for a model: drawn hatched
    on: bool = True
    switchable: bool = True
    up: bool = True
    down: bool = True
    removable: bool = True
    drawer: bool = True
    knobs: tuple[BenchKnob, ...] = ()


@dataclass(frozen=True, slots=True)
class BenchSide:
    """What one pipeline did with a chunk. `place` is its 0-based place in that pipeline's list."""

    place: int
    rank: int | None
    score: float | None
    kept: bool
    verdict: str  # "kept", "dropped by Rules"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BenchRow:
    """A chunk of the question in sight. `head` is the part of its title that tells it from its neighbours."""

    id: str
    head: str
    rest: str = ""
    grade: int | None = None
    relevant: bool | None = None  # None: unjudged
    step: int | None = None  # its row in `Steps.kept`; None where A has no such candidate
    a: BenchSide | None = None
    b: BenchSide | None = None


@dataclass(frozen=True, slots=True)
class CutLine:
    """A dashed line of the chart that is a knob: it stands at `base + scale × value` of its panel."""

    stage: int  # as in `Payload.stages`, those that are off counted
    setting: str
    panel: str  # "score" or "gap"
    word: str
    base: float = 0.0
    scale: float = 1.0
    decides: bool = False  # whether this line ended the list


@dataclass(frozen=True, slots=True)
class Curve:
    """The chart beside the rows. `reaching` are the rows (by index) that come to the cut, in its order."""

    score_name: str  # "cosine distance"
    reaching: tuple[int, ...] = ()
    lines: tuple[CutLine, ...] = ()
    cut_stage: int | None = None
    cut_after: int | None = None  # the row after which the list ends; None where nothing is cut
    cut_word: str = ""  # "gap .0871 ≥ .0800"
    skips_first_gap: bool = False


@dataclass(frozen=True, slots=True)
class Loss:
    """Relevant chunks on their way through A: how many came to a stage and how many it took, irrelevant ones beside."""

    title: str
    entered: float
    lost: float
    dropped: float  # irrelevant or unjudged ones it took
    stage: int | None = None  # whose drawer helps; None for the search itself


@dataclass(frozen=True, slots=True, eq=False)
class Pipe:
    """A pipeline of the comparison as the matrix knows it; the arrays have one entry a question, NaN where unscored."""

    key: str  # A, B or C
    name: str
    kept: str = ""  # "keeps 2 of 15", in the head of its column at zoom One
    f: Array | None = None
    precision: Array | None = None
    recall: Array | None = None
    count: Array | None = None  # chunks kept


@dataclass(frozen=True, slots=True)
class BenchQuestion:
    """A row of the matrix."""

    id: str
    text: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InSight:
    """The question in sight and its neighbours, by id; '' where there is none."""

    id: str
    text: str
    number: int  # 1-based
    count: int
    previous: str = ""
    next: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Payload:
    """Everything in sight. `version` grows by one with every change; events say which one they saw."""

    version: int
    pipelines: tuple[Pipe, ...]
    stages: tuple[BenchStage, ...]
    all: BenchLine
    one: BenchLine | None = None
    question: InSight | None = None
    zoom: str = "one"  # all | one
    lens: str = "threshold"  # threshold | differences | losses
    rows: tuple[BenchRow, ...] = ()
    curve: Curve | None = None
    questions: tuple[BenchQuestion, ...] = ()
    losses: tuple[Loss, ...] = ()
    filter: str = ""  # better | worse | same: which rows of the matrix are in sight
    selected: str = ""  # chunk id
    notice: str = ""  # one sentence: why a change was refused
    below: int = 132  # pixels of the window that the page needs under the component: the lever and the verdict
    acks: Mapping[str, int] = field(default_factory=dict)  # per browser tab, the last event that was taken in
    grabbed: tuple[int, str] | None = None  # the knob in the hand: stage, setting


def pack(payload: Payload) -> bytes:
    """The payload as bytes, in the layout this module begins with. TypeError for an array of another type."""
    arrays: list[bytes] = []
    end = 0

    def put(array: Array, kind: str) -> dict[str, Any]:
        nonlocal end
        data = (np.packbits(array) if kind == "bit" else array.astype("<" + kind, copy=False)).tobytes()
        reference = {"at": end, "type": kind, "shape": list(array.shape)}
        arrays.append(data + bytes(-len(data) % 8))
        end += len(arrays[-1])
        return reference

    def plain(value: Any) -> Any:
        if value is None or type(value) in (str, int, bool):
            return value
        if isinstance(value, np.ndarray):
            kind = "bit" if value.dtype == bool else value.dtype.str[1:]
            if kind != "bit" and kind not in TYPES:
                raise TypeError(f"the payload has an array of {value.dtype}, expected one of {', '.join(TYPES)}, bool")
            if kind == "f8" and 1000 < value.size < 1_000_000:
                # F₁ of 41 questions at 160 positions: a quarter of the bytes, and the very same numbers
                values, places = np.unique(value, return_inverse=True)
                if len(values) < min(2**16, value.size // 4):
                    return {**put(places.reshape(value.shape), "u2"), "values": put(values, "f8")}
            return put(np.ascontiguousarray(value), kind)
        if is_dataclass(value):
            return {name: plain(getattr(value, name)) for name in _names(value.__class__)}
        if isinstance(value, Mapping):
            return {str(name): plain(inner) for name, inner in value.items()}
        if isinstance(value, tuple | list):
            return [plain(inner) for inner in value]
        if isinstance(value, float | np.floating):
            return float(value) if isfinite(value) else None
        return value.item() if isinstance(value, np.generic) else value

    header = json.dumps(plain(_of_zoom(payload)), ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    header += b" " * (-(4 + len(header)) % 8)
    return b"".join((struct.pack("<I", len(header)), header, *arrays))


@cache
def _names(cls: Any) -> tuple[str, ...]:
    return tuple(one.name for one in fields(cls))


MOST_CELLS = 20_000
"""More questions × positions than this travel for the knob in the hand alone; the browser asks when one is grabbed."""


def _of_zoom(payload: Payload) -> Payload:
    """What is drawn at the payload's zoom: chunks of one question, or a row a question."""
    every = payload.zoom == "all"

    def drawn(place: int, knob: BenchKnob) -> BenchKnob:
        if knob.steps is None:
            return knob
        cells = knob.steps.per_question
        if not every or (cells is not None and cells.size > MOST_CELLS and payload.grabbed != (place, knob.setting)):
            cells = None
        return replace(knob, steps=replace(knob.steps, kept=None if every else knob.steps.kept, per_question=cells))

    stages = tuple(
        replace(stage, knobs=tuple(drawn(place, knob) for knob in stage.knobs))
        for place, stage in enumerate(payload.stages)
    )
    if every:
        return replace(payload, stages=stages, rows=(), curve=None)
    bare = tuple(replace(pipe, f=None, precision=None, recall=None, count=None) for pipe in payload.pipelines)
    return replace(payload, stages=stages, pipelines=bare, questions=())


SAME = 1e-9
"""Two figures nearer than this are the same: far below a thousandth, far above what sums of floats leave."""


def count_changes(per_question: Array, baseline: Array) -> Array:
    """Questions better, worse and same than the baseline: (3, n) for (questions, n). Unscored ones count nowhere."""
    difference = per_question - (baseline if per_question.ndim == 1 else baseline[:, None])
    parts = (difference > SAME, difference < -SAME, np.abs(difference) <= SAME)
    return np.stack([part.sum(axis=0) for part in parts]).astype(np.int32)


_BREAK = re.compile(r"\s+[-–—|·>/]\s+|[:;]\s+|\.\s+|\s*›\s*")
"""Where a title has a joint: a dash, colon or arrow between its parts."""


_FITS = 40
"""Letters of a title that a row shows whole."""


def split_titles(titles: Sequence[str]) -> list[tuple[str, str]]:
    """(head, rest) of each title: the head is what tells it from the others, and stands first on the screen.

    Titles of a family begin alike ("Attack matrix - Armor 7", "Attack matrix - Armor 6"). The longest beginning that a
    title shares with another one goes to the rest, back to the last joint, or else the last three words before the
    difference stay with the head. The letters of head and rest are those of the title.
    """
    order = sorted(set(titles))
    shared = dict.fromkeys(order, 0)
    for before, after in pairwise(order):  # the nearest beginnings are neighbours when sorted
        same = next(
            (i for i, (x, y) in enumerate(zip(before, after, strict=False)) if x != y), min(len(before), len(after))
        )
        shared[before], shared[after] = max(shared[before], same), max(shared[after], same)
    return [_split(title, shared[title]) for title in titles]


def _split(title: str, same: int) -> tuple[str, str]:
    joints = [joint for joint in _BREAK.finditer(title) if joint.end() <= same and joint.end() < len(title)]
    if joints:
        return title[joints[-1].end() :], title[: joints[-1].start()]
    words = [word.start() for word in re.finditer(r"\S+", title)]
    before = [start for start in words if start <= same]
    if len(before) <= 5 or len(title) <= _FITS:
        return title, ""
    start = before[-4]
    return title[start:], title[:start].rstrip()
