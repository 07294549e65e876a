"""The upper Bench as one component: stages and knobs of A, both lines of figures, the rows and the chart.

What it draws is a `Payload` (pages/bench/payload.py). The browser decides nothing: while a knob is dragged it looks its
figures up in the step functions that came along, and tells Python once, on release.

What comes back are events. Streamlit keeps only the newest trigger that has not been read, so the browser sends every
event again, in order, until the `acks` of a payload say that it was taken in; `read_events` gives each of them once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components.v2.get_bidi_component_manager import get_bidi_component_manager
from streamlit.components.v2.manifest_scanner import ComponentConfig, ComponentManifest

from pages.bench.payload import Payload, pack

NAME = "winnow.bench"
ASSETS = Path(__file__).parent / "assets"
# Unseen until bench.css is there, which says otherwise.
HTML = '<div class="bench" data-testid="bench" style="visibility: hidden"></div>'
# A script that is named by its address is loaded anew with every answer, in some 10 ms; this one loads it once, from
# where its style is, whatever the path is that the server stands under.
LOADER = """
let script;
export default async (component) => {
  const style = component.parentElement.querySelector("link[rel=stylesheet]");
  script ??= import(new URL("bench.js", style.href).href);
  return (await script).default(component);
};
"""

FIELDS: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    "set": {"stage": int, "setting": str, "value": (int, float)},
    "toggle": {"stage": int},
    "move": {"stage": int, "by": int},
    "remove": {"stage": int},
    "add": {},
    "drawer": {"stage": int},
    "grab": {"stage": int, "setting": str},
    "question": {"id": str, "zoom": str},
    "zoom": {"to": str},
    "lens": {"to": str},
    "label": {"id": str, "grade": int, "pressed_at": (int, float)},
    "select": {"id": str},
    "swap": {},
    "filter": {"to": str},
}
"""Every kind of event with what it says. `pressed_at` is in milliseconds since 1970 by the browser's clock; `zoom` of
a question is where it is to be seen, '' where that stays as it is."""

CHOICES = {
    "zoom": ("all", "one"),
    "lens": ("threshold", "differences", "losses"),
    "filter": ("", "better", "worse", "same"),
}


@dataclass(frozen=True, slots=True)
class BenchEvent:
    """One thing that a person did, with the fields of its kind; `version` is the payload that was on the screen."""

    kind: str
    version: int
    session: str
    sequence: int
    fields: Mapping[str, Any]


@cache
def _component() -> Any:
    return st.components.v2.component(NAME, html=HTML, css="bench.css", js=LOADER)


def show(payload: Payload, key: str, on_event: Callable[[], None]) -> None:
    """Draw the Bench; `on_event` is called before the next run with events to be read from the state under `key`."""
    manager = get_bidi_component_manager()
    if manager.get_component_asset_root(NAME) is None:
        # A manifest gives script and style an address of their own. Written inline they travel with every answer.
        package, _, component = NAME.partition(".")
        manifest = ComponentManifest(package, "1", [ComponentConfig(component, ASSETS.name)])
        manager.register_from_manifest(manifest, ASSETS.parent)
    _component()(key=key, data=pack(payload), on_did_change=on_event)


def read_events(key: str, acks: Mapping[str, int]) -> list[BenchEvent]:
    """The events that came in and are not in `acks` (browser tab → last sequence number), in their order.

    What is malformed is left out: it came from a browser and is not trusted.
    """
    state = st.session_state.get(key)
    return parse_events(state.get("did") if isinstance(state, Mapping) else None, acks)


def parse_events(value: Any, acks: Mapping[str, int]) -> list[BenchEvent]:
    """The new events of what a browser sent; see `read_events`."""
    if not isinstance(value, Mapping) or not isinstance(value.get("session"), str):
        return []
    session, entries = value["session"][:64], value.get("events")
    events = [_event(session, entry) for entry in entries[:500]] if isinstance(entries, list) else []
    last = acks.get(session, 0)
    new: list[BenchEvent] = []
    for event in events:
        if event is not None and event.sequence > last:
            new.append(event)
            last = event.sequence
    return new


def _event(session: str, entry: Any) -> BenchEvent | None:
    if not isinstance(entry, Mapping) or entry.get("kind") not in FIELDS:
        return None
    kind = entry["kind"]
    values = {name: entry.get(name) for name in FIELDS[kind]}
    numbers = [entry.get("version"), entry.get("sequence")]
    typed = all(isinstance(values[name], type_) for name, type_ in FIELDS[kind].items())
    if not typed or any(isinstance(value, bool) for value in values.values()):
        return None
    if any(not isinstance(number, int) or isinstance(number, bool) for number in numbers):
        return None
    if kind in CHOICES and values["to"] not in CHOICES[kind]:
        return None
    if kind == "label" and values["grade"] not in range(4):
        return None
    return BenchEvent(kind, entry["version"], session, entry["sequence"], values)


def acknowledged(acks: Mapping[str, int], events: list[BenchEvent]) -> dict[str, int]:
    """The acks after these events were taken in."""
    return {**acks, **{event.session: event.sequence for event in events}}
