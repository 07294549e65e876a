"""The data of a dragged threshold: 500 queries × 200 candidates, as an eval set and as a Plotly figure."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

QUERIES, LENGTH, MOST = 500, 200, 200
OFFSET = 0.3
_DICE = np.random.default_rng(0)
DISTANCES = np.sort(_DICE.gamma(8, 0.08, (QUERIES, LENGTH)), axis=1).round(4)
FLAGS = _DICE.random((QUERIES, LENGTH)) < 0.8 * np.exp(-np.arange(LENGTH) / 8)
FLAGS[:, 0] = True
FOUND = np.concatenate([np.zeros((QUERIES, 1), dtype=int), FLAGS.cumsum(axis=1)], axis=1)
TOTALS = FLAGS.sum(axis=1)
GAPS = np.diff(DISTANCES, axis=1)[:, 1:]
LARGEST, AT = GAPS.max(axis=1), GAPS.argmax(axis=1) + 2


def write_set(workspace: Path) -> None:
    """The eval set `many`; every query is a dev query but one, so that all lists follow the marker."""
    folder = workspace / "eval_sets" / "many"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: many\ntitle: Many lists\nmin_grade: 1\n")
    with (folder / "lists.jsonl").open("w") as file:
        for at, (row, flags) in enumerate(zip(DISTANCES.tolist(), FLAGS.tolist(), strict=True)):
            candidates = [
                {"id": f"{at}-{place}", "text": "", "distance": distance, "relevant": int(flag)}
                for place, (distance, flag) in enumerate(zip(row, flags, strict=True))
            ]
            split = "test" if at == QUERIES - 1 else "dev"
            query = {"id": f"q{at}", "query": f"question {at}", "split": split, "candidates": candidates}
            file.write(json.dumps(query) + "\n")


def scores(gap_threshold: float) -> np.ndarray:
    """F of every query at a gap threshold, in arrays: a peer's callback is given the fast way."""
    by_offset = (DISTANCES[:, :1] + OFFSET >= DISTANCES).sum(axis=1)
    keep = np.where(gap_threshold <= LARGEST, AT, by_offset).clip(2, MOST)
    found = FOUND[np.arange(QUERIES), keep]
    return 2 * found / (keep + TOTALS)


CURVE = [(at, float(scores(at).mean())) for at in np.linspace(0, 0.3, 61)]
REFERENCE = scores(0.1)


def figure(gap_threshold: float) -> go.Figure:
    """The curve over thresholds with its marker, and the change of every query, sorted: as the Bench has them."""
    change = np.sort(scores(gap_threshold) - REFERENCE)
    drawn = make_subplots(1, 2)
    drawn.add_scatter(x=[x for x, _ in CURVE], y=[y for _, y in CURVE], mode="lines", row=1, col=1)
    drawn.add_vline(x=gap_threshold, line_dash="dash", annotation_text=f"{gap_threshold:.4f}", row=1, col=1)
    colours = np.where(change > 0, "#0072B2", np.where(change < 0, "#D55E00", "#999999"))
    drawn.add_bar(x=list(range(QUERIES)), y=change, marker_color=colours, row=1, col=2)
    drawn.update_yaxes(range=[0, 1], row=1, col=1)
    drawn.update_yaxes(range=[-1, 1], row=1, col=2)
    drawn.update_layout(height=340, showlegend=False, margin={"l": 40, "r": 10, "t": 30, "b": 30})
    return drawn


def words(gap_threshold: float) -> str:
    """The line under the charts."""
    now = scores(gap_threshold)
    return f"SetF {now.mean():.3f}, {(now > REFERENCE).sum()} win, {(now < REFERENCE).sum()} lose"
