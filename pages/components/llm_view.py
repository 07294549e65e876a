"""The LLM filter in a view: its settings as the page has them, and who answers, both on their way into the address.

A link names a judge and never a key or an address; opening one asks no model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rag_core.errors import InputError

if TYPE_CHECKING:
    from pages.components.view import View

SIMULATED = "simulated"
"""The judge that answers from labels; any other name is an endpoint's."""

DEPTHS = (0, 1, 3, 5)
SHOWN = ("max_chunks", "oversample_multiplier", "min_relevance_threshold", "variant", "check_order")
"""The settings of LLMFilter that the view has under their own names; its mode is `llm_mode`."""

_JUDGE = re.compile(r"simulated:(0(?:\.\d{1,6})?|1(?:\.0+)?):([0135])")


def settings_of(view: View) -> dict[str, Any]:
    """The settings of LLMFilter."""
    return {**{name: getattr(view, name) for name in SHOWN}, "mode": view.llm_mode}


def fields_of(settings: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """The view's fields for the settings of a stage; an InputError for one that the page has no control for."""
    other = [name for name in settings if name not in (*SHOWN, "mode") and settings[name] != usual[name]]
    if other:
        raise InputError(f"LLMFilter.{other[0]} is set, expected only {', '.join((*SHOWN, 'mode'))} on this page")
    return {**{name: settings[name] for name in SHOWN}, "llm_mode": settings["mode"], "llm_on": True}


def write_judge(view: View) -> str:
    """Who answers, as the address has it."""
    return f"{SIMULATED}:{view.error_rate:g}:{view.judge_depth}" if view.judge == SIMULATED else view.judge


def read_judge(text: str) -> dict[str, Any]:
    """The view's fields for what the address says of the judge, or an InputError."""
    found = _JUDGE.fullmatch(text)
    if found:
        return {"judge": SIMULATED, "error_rate": float(found[1]), "judge_depth": int(found[2])}
    if re.fullmatch(r"[\w .\-]{1,64}", text) and text != SIMULATED:
        return {"judge": text}
    raise InputError(f"the link's judge is {text[:80]!r}, expected simulated:error rate:depth or an endpoint's name")
