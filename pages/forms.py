"""One form for any stage, made from its settings: what matters first on top, the rest folded away.

The form knows no stage: order, ranges, steps and help come from the stage's class (rag_core/stage.py). What cannot be
taken is refused in one sentence and stays in its box; the stage is then left as it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import streamlit as st

from pages.components import say
from rag_core.errors import InputError, WinnowError
from rag_core.files import parse_yaml
from rag_core.spec import dump_stages, fingerprint
from rag_core.stage import Setting, Stage

MOST_POSITIONS = 200  # a slider with more places than pixels to point at is a number box


def stage_form(stage: Stage, key: str) -> Stage:
    """The stage as the form leaves it; the very object that came where nothing was touched or nothing can be taken.

    A stage that changed elsewhere (undo, a link) is shown as it came, whatever the boxes held.
    """
    # Boxes keep their values between runs, so they are filled only when the stage is not the one this form gave last.
    mark = f"{key}.stage"
    fresh = st.session_state.get(mark) != fingerprint(stage)
    settings = stage.declared()
    if not settings:
        st.caption(f"{stage.title}: no settings")
        return stage

    values: dict[str, Any] = {}
    problems: list[str] = []

    def read(row: Setting) -> None:
        try:
            values[row.name] = _value(stage, row, f"{key}.{row.name}", fresh)
        except InputError as error:
            problems.append(str(error))

    first = [row for row in settings if row.priority]
    for row in first or settings:
        read(row)
    if first and len(first) < len(settings):
        with st.expander("more settings"):
            for row in settings[len(first) :]:
                read(row)

    changes = {name: value for name, value in values.items() if value != getattr(stage, name)}
    chosen = {name: None for name in _class_chosen(stage, settings) if name not in changes} if changes else {}
    changed = stage
    if changes and not problems:
        try:
            changed = replace(stage, **chosen, **changes)
        except WinnowError as error:
            problems.append(str(error))
    if problems:
        say.problem(f"{stage.title} stays as it was", problems[0])
    followed = any(getattr(changed, name) != getattr(stage, name) for name in chosen)
    st.session_state[mark] = "" if followed else fingerprint(changed)  # "": the boxes are filled anew on the next run
    return changed


def _class_chosen(stage: Stage, settings: tuple[Setting, ...]) -> list[str]:
    """Settings nobody set: their default is None, and the class fills in what they hold, by the other settings."""
    unset = [row.name for row in settings if row.default is None and getattr(stage, row.name) is not None]
    return [name for name in unset if getattr(replace(stage, **{name: None}), name) == getattr(stage, name)]


def _value(stage: Stage, row: Setting, key: str, fresh: bool) -> Any:
    """What the box of one setting holds; an InputError where that is no value of its type."""
    value = getattr(stage, row.name)
    label = row.name.replace("_", " ") + (f" ({row.unit})" if row.unit else "")
    if isinstance(value, Stage):
        with st.container(border=True):
            st.markdown(f"**{label}**: {row.help}")
            return stage_form(value, key)
    if row.numeric:
        return _number(row, label, value, key, fresh)
    if row.kind == "bool":
        _fill(key, value, fresh)
        return st.toggle(label, key=key, help=row.help)
    if row.choices:
        _fill(key, value, fresh)
        return st.selectbox(label, ([None] if row.optional else []) + [*row.choices], key=key, help=row.help)
    if row.kind == "str":
        _fill(key, value or "", fresh)
        text = st.text_input(label, key=key, help=row.help)
        return value if text == (value or "") else text or (None if row.optional else "")
    shown = _shown(stage, row)
    _fill(key, shown, fresh)
    if row.kind.startswith("tuple"):
        text = st.text_input(label, key=key, help=row.help)
        return value if text == shown else _numbers(row.name, text)
    text = st.text_area(label, key=key, help=f"{row.help}; YAML or JSON, empty: not set", height=68)
    return value if text == shown else _mapping(row.name, text)


def _fill(key: str, value: Any, fresh: bool) -> None:
    """Give a box its value before it is drawn, unless it already holds what was typed."""
    if fresh or key not in st.session_state:
        st.session_state[key] = value


def _number(row: Setting, label: str, value: Any, key: str, fresh: bool) -> Any:
    """A slider where the ends are known and near, else a number box; as exact as it was where it is not touched."""
    kind: Any = int if row.kind == "int" else float
    low, high = row.low, row.high
    step = max(1, int(row.step or 0)) if kind is int else float(row.step or 0.01)
    digits = 0 if kind is int else max(4 if row.unit == "distance" else 0, _digits(step), _digits(value or 0.0))
    box: dict[str, Any] = {"step": step, "format": "%d" if kind is int else f"%.{digits}f", "help": row.help}
    settled = value is not None and not row.optional  # a slider cannot be emptied
    is_slider = settled and low is not None and high is not None and 0 < (high - low) / step <= MOST_POSITIONS
    if is_slider:
        box |= {"min_value": kind(min(low, value)), "max_value": kind(max(high, value))}
    else:
        box |= {"min_value": None if row.low is None else kind(row.low)}
        box |= {"max_value": None if row.high is None else kind(row.high)}
        box |= {"value": None, "placeholder": "not set"} if row.optional else {}
    own = (
        f"{key}.{'slider' if is_slider else 'number'}"  # two keys: a box of another kind does not take this one's value
    )
    _fill(own, value, fresh)
    typed = (st.slider if is_slider else st.number_input)(label, key=own, **box)
    # A slider's steps add up to 0.30000000000000004.
    return value if typed == value else None if typed is None else kind(round(typed, 9))


def _digits(number: float) -> int:
    """How many decimals a number needs, at most nine."""
    return len(f"{number:.9f}".rstrip("0").partition(".")[2])


def _shown(stage: Stage, row: Setting) -> str:
    """A setting that is no single value, as text that can be typed back."""
    (plain,) = (settings[row.name] for settings in dump_stages(stage)[0].values())
    if plain is None:
        return ""
    return ", ".join(f"{one:g}" for one in plain) if isinstance(plain, list) else json.dumps(plain, ensure_ascii=False)


def _numbers(name: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(piece) for piece in re.split(r"[\s,:/]+", text.strip()))
    except ValueError:
        raise InputError(f"{name} is {text[:80]!r}, expected numbers with commas between them") from None


def _mapping(name: str, text: str) -> Mapping[str, Any] | None:
    value = parse_yaml(text, name) if text.strip() else None
    if value is not None and not isinstance(value, Mapping):
        raise InputError(f"{name} is {text[:80]!r}, expected fields with their values, such as type: rule")
    return value
