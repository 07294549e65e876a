"""The chart of Tune: every gap threshold × offset as a heat map, a marker to move, and what it does to each query.

One component of our own (SVG, no library). Means of the plane and the lists of the queries are sent once; curves and
the strip of queries follow the pointer in the browser with the same twin of the adaptive rule that Explore's chart
uses. The server hears of the marker on release and computes its own figures with rag_core.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from math import isfinite
from pathlib import Path
from typing import Any

import streamlit as st

from pages.components import cut_chart
from pages.components.tuning import MEASURES, UNIT, Marker, Study
from pages.components.tuning_choice import Seen
from pages.components.tuning_points import Point, fixed_ks, front_of, point

FOLDER = Path(__file__).parent
SCRIPTS = ("draw.js", "live.js", "panels.js", "front.js", "chart.js")
HTML = '<div class="plane-chart" data-testid="plane-chart"></div>'


@cache
def scripts() -> str:
    """The component's JavaScript as one module, the rule's twin first."""
    files = (cut_chart.FOLDER / "cut.js", *(FOLDER / name for name in SCRIPTS))
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


@cache
def _component() -> Any:
    css = (FOLDER / "plane.css").read_text(encoding="utf-8")
    return st.components.v2.component("winnow_plane_chart", html=HTML, css=css, js=scripts())


def show(
    study: Study,
    marker: Marker,
    reference: tuple[str, Sequence[float]],
    seen: Seen | None,
    key: str,
    on_move: Callable[[Marker], None],
) -> None:
    """Draw the plane with its marker; `reference` is a name and the measure of every dev query there.

    `seen` is what a look at the held-out queries brought; None before one.
    """

    def moved() -> None:
        place = _place(st.session_state.get(key))
        if place is not None:
            on_move(place)

    _component()(key=key, data=chart_data(study, marker, reference, seen), on_marker_change=moved)


def _place(state: Any) -> Marker | None:
    """Where the marker was put; anything of the wrong shape is as if nothing had happened."""
    told = state.get("marker") if isinstance(state, Mapping) else None
    values = [told.get(name) for name in ("gap", "offset")] if isinstance(told, Mapping) else []
    good = [float(one) for one in values if isinstance(one, int | float) and not isinstance(one, bool)]
    return (good[0], good[1]) if len(good) == 2 and all(isfinite(one) and one >= 0 for one in good) else None


def chart_data(
    study: Study, marker: Marker, reference: tuple[str, Sequence[float]], seen: Seen | None = None
) -> dict[str, Any]:
    """All the chart draws."""
    ask = study.ask
    front = front_data(study, seen)
    means = {name: study.table[name].round(6).tolist() for name in MEASURES}
    relative = ask.policy == "relative"
    return {
        "key": f"{ask} {study.grid} {study.table.means.sum()!r} {[case.query.id for case in study.dev]} {front}",
        "title": f"Mean {ask.objective} of every setting, macro over {len(study.dev)} dev queries",
        "measure": ask.objective,
        "gaps": list(study.gaps),
        "offsets": list(study.offsets),
        "gapTitle": "gap threshold (share of the span)" if relative else "gap threshold (distance)",
        "offsetTitle": "offset (distance from the nearest)",
        "table": means[ask.objective],
        "means": means,
        "chosen": None if study.choice is None else list(study.best),
        "marker": list(marker),
        "settings": {
            "min_results": ask.min_results,
            "max_results": ask.max_results,
            "gap_policy": ask.policy,
            "relative_offset": None,
        },
        "lists": lists_data(study),
        "front": front,
        "referenceName": reference[0],
        "reference": list(reference[1]),
    }


def front_data(study: Study, seen: Seen | None) -> dict[str, Any]:
    """Precision against recall: [recall, precision, words] of every fixed k and of the plane's front, and the signs."""
    fixed, (k, pipeline) = fixed_ks(study), study.baseline
    signs = [_sign(point(f"best fixed k ({k}), dev", study.dev, pipeline, study.min_grade), "baseline")]
    if study.choice is not None:
        signs.append(_sign(point("chosen setting, dev", study.dev, study.choice.pipeline, study.min_grade), "chosen"))
    for (one, precision, recall), kind in zip(
        () if seen is None else seen.points, ("chosen", "baseline"), strict=False
    ):
        signs.append(_sign(one, kind) | {"heldOut": True, "precision": precision, "recall": recall})
    return {
        "title": f"Precision and recall, macro over {len(study.dev)} dev queries",
        "baselineName": f"best fixed k ({k})",
        "fixed": [[one.SetR, one.SetP, one.name] for one in fixed],
        "plane": [
            [row["SetR"], row["SetP"], f"gap {row['gap_threshold']:.4f}, offset {row['distance_offset']:.4f}"]
            for row in front_of(study)
        ],
        "signs": signs,
    }


def _sign(one: Point, kind: str) -> dict[str, Any]:
    return {"name": one.name, "kind": kind, "heldOut": False, "SetP": one.SetP, "SetR": one.SetR, "SetF": one.SetF}


@lru_cache(maxsize=12)
def lists_data(study: Study) -> list[dict[str, Any]]:
    """Of every dev query what a cut needs: the distances it may look at, and how many relevant the first n hold."""
    lists, most = study.lists, study.ask.max_results
    rows = []
    for at, case in enumerate(study.dev):
        looked = min(int(lists.lengths[at]), most)
        rows.append(
            {
                "id": case.query.id,
                "distances": [whole * UNIT for whole in lists.distances[at, :looked].tolist()],
                "found": lists.found[at, : looked + 1].tolist(),
                "total": int(lists.totals[at]),
                "keptAlways": int(lists.kept_always[at]),
                "foundAlways": int(lists.found_always[at]),
            }
        )
    return rows
