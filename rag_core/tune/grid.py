"""Grids of settings: the grammar of `--grid` and what it names, `Axis` by `Axis`.

    distance_offset=0.05:0.6:40   40 values from 0.05 to 0.6, both ends in it
    gap_policy=largest|first      a choice; a single value is a choice of one
    TopK.k=1:15:15                a setting of another stage of the pipeline
    QueryMust=on|off              the stage itself, in the pipeline or left out
    Hybrid.weights=0:1:11         the dense ranking's share of the fusion; also 2/1|1/1, weights as they stand

Axes are separated by commas and vary in product order, the last fastest. Running a grid is the business of plane.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from rag_core.errors import InputError, SpecError
from rag_core.spec import setting_fields, stage_class
from rag_core.stage import Pipeline, Stage

MOST_SETTINGS = 2_000_000
SWITCH = ""
"""The setting of an axis that turns its stage on or off."""

_WORDS: Mapping[str, Any] = {"none": None, "true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Axis:
    """One setting of one stage with the values it takes, in order. `name` is the column's name, as it was typed."""

    name: str
    stage: str
    setting: str
    values: tuple[Any, ...]


def parse_grid(text: str, stage: str, most: int | None = MOST_SETTINGS) -> tuple[Axis, ...]:
    """The axes of a grid; a bare setting belongs to `stage`.

    InputError (SpecError where a stage refuses a value) that names the part: unknown settings, bad ranges, a setting
    given twice, more settings than `most` (None: a search tries only some of them).
    """
    axes = tuple(_axis(part.strip(), stage) for part in text.split(","))
    twice = [key for key, times in Counter((axis.stage, axis.setting) for axis in axes).items() if times > 1]
    if twice:
        raise InputError(f"the grid names {twice[0][0]}.{twice[0][1]} more than once, expected every setting once")
    count = prod(len(axis.values) for axis in axes)
    if most is not None and count > most:
        raise InputError(f"the grid has {count:,} settings, expected at most {most:,}")
    return axes


def _axis(part: str, stage: str) -> Axis:
    name, equals, given = (piece.strip() for piece in part.partition("="))
    if not equals or not name or not given:
        raise InputError(f"the grid has {part[:80]!r}, expected name=low:high:count or name=a|b|c")
    owner, dot, setting = name.partition(".")
    if not dot:
        owner, setting = (name, SWITCH) if name[:1].isupper() else (stage, name)
    if setting == SWITCH:
        stage_class(owner)
        return Axis(name, owner, SWITCH, _switch(part, given))
    known = setting_fields(stage_class(owner))
    if setting not in known:
        names = ", ".join(known) or "none"
        raise SpecError(f"the grid names unknown setting {setting[:80]!r} of {owner}, expected one of {names}")
    kind = known[setting].kind
    return Axis(name, owner, setting, tuple(_typed(value, kind, part) for value in _values(part, given)))


def _switch(part: str, given: str) -> tuple[bool, ...]:
    words = [word.strip() for word in given.split("|")]
    if not set(words) <= {"on", "off"}:
        raise InputError(f"the grid has {part[:80]!r}, expected on, off or on|off after the name of a stage")
    return tuple(word == "on" for word in words)


def _values(part: str, given: str) -> list[Any]:
    """The values of one axis: a range of numbers, or a choice."""
    if ":" not in given:
        return [_value(word.strip()) for word in given.split("|")]
    pieces = [_value(piece.strip()) for piece in given.split(":")]
    if len(pieces) != 3 or not all(isinstance(piece, int | float) for piece in pieces):
        raise InputError(f"the grid has {part[:80]!r}, expected low:high:count in numbers")
    low, high, count = pieces
    if count != int(count) or not 1 <= count <= MOST_SETTINGS or (count == 1 and low != high):
        raise InputError(f"the grid has {part[:80]!r}, expected a whole number of at least 2 values")
    import numpy as np

    # rounded far below what a distance can tell, so that a row reads 0.02 and not 0.019999999999999997
    return [round(float(value), 12) for value in np.linspace(low, high, int(count))]


def _value(word: str) -> Any:
    if word.lower() in _WORDS:
        return _WORDS[word.lower()]
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def _typed(value: Any, kind: str, part: str) -> Any:
    """Whole numbers where the setting wants them, and two weights; a range that falls between is an error."""
    if kind.startswith("tuple"):
        return _weights(value, part)
    if kind != "int" or not isinstance(value, float):
        return value
    if abs(value - round(value)) > 1e-9:
        raise InputError(f"the grid has {part[:80]!r}, which gives {value:.4g}, expected whole numbers")
    return round(value)


def _weights(value: Any, part: str) -> tuple[float, float]:
    """Two weights: `2/1`, or one number as the share of the first."""
    first, slash, second = str(value).partition("/")
    try:
        found = (float(first), float(second)) if slash else (float(first), round(1 - float(first), 12))
    except ValueError:
        found = (-1.0, -1.0)
    if min(found) < 0:
        raise InputError(f"the grid has {part[:80]!r}, expected weights such as 2/1, or the first's share from 0 to 1")
    return found


def pipeline_at(pipeline: Pipeline, settings: Sequence[tuple[Axis, Any]]) -> Pipeline:
    """The pipeline with the settings laid over the stages they name, in place; a SpecError where it lacks one."""
    changes: dict[str, dict[str, Any]] = {}
    for axis, value in settings:
        if axis.stage not in [stage.name for stage in pipeline.stages]:
            held = ", ".join(stage.name for stage in pipeline.stages) or "none"
            raise SpecError(f"the grid names {axis.stage}, which the pipeline does not hold, it has {held}")
        changes.setdefault(axis.stage, {})[axis.setting] = value
    stages = (_changed(stage, changes.get(stage.name, {})) for stage in pipeline.stages)
    return replace(pipeline, stages=tuple(stage for stage in stages if stage is not None))


def _changed(stage: Stage, changes: Mapping[str, Any]) -> Stage | None:
    """The stage with its changes; None where it is turned off."""
    if changes.get(SWITCH) is False:
        return None
    given = {name: value for name, value in changes.items() if name != SWITCH}
    if not given:
        return stage
    return stage.changed(**given)
