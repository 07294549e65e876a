"""The data all compared apps draw: the first recorded combat list, and its charts as Plotly figures."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from rag_core.eval_sets.reading import load_set
from rag_core.filters.cut import cut

CASE = load_set("recorded-combat").cases[0]
HITS = CASE.candidates.hits
DISTANCES = [hit.distance for hit in HITS]


def figure(gap_threshold: float, distance_offset: float) -> go.Figure:
    """Distance by rank and gap by position, kept and dropped, with the threshold line: as in the product."""
    made = cut(DISTANCES, gap_threshold, distance_offset)
    ranks = list(range(1, len(DISTANCES) + 1))
    kept = [rank <= made.keep for rank in ranks]
    gaps = [b - a for a, b in pairwise(DISTANCES)]
    drawn = make_subplots(1, 2)
    drawn.add_scatter(
        x=ranks,
        y=DISTANCES,
        mode="markers",
        marker={
            "color": ["#0072B2" if k else "#999999" for k in kept],
            "symbol": ["circle" if k else "circle-open" for k in kept],
            "size": 10,
        },
        text=[hit.chunk.title for hit in HITS],
        row=1,
        col=1,
    )
    drawn.add_vline(x=made.keep + 0.5, line_dash="dash", row=1, col=1)
    drawn.add_bar(x=ranks[:-1], y=gaps, marker_color="#56B4E9", row=1, col=2)
    drawn.add_hline(y=gap_threshold, line_dash="dash", annotation_text=f"{gap_threshold:.3f}", row=1, col=2)
    drawn.update_yaxes(range=[0, max(DISTANCES) * 1.05], title="distance", row=1, col=1)
    drawn.update_yaxes(range=[0, 0.2], title="gap to the next", row=1, col=2)
    drawn.update_layout(height=340, showlegend=False, margin={"l": 40, "r": 10, "t": 30, "b": 30})
    return drawn


def rows(gap_threshold: float, distance_offset: float) -> list[dict[str, object]]:
    """The table under the charts."""
    made = cut(DISTANCES, gap_threshold, distance_offset)
    return [
        {
            "rank": hit.rank,
            "distance": f"{hit.distance:.4f}",
            "title": hit.chunk.title,
            "label": CASE.grades[hit.chunk.id],
            "verdict": "kept" if hit.rank <= made.keep else "dropped",
        }
        for hit in HITS
    ]
