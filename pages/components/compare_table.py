"""Compare's table, slices and heat map: means with intervals and differences to the baseline, over how many queries."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import streamlit as st

from pages.components import compare_run
from pages.components.compare_run import Material
from pages.components.compare_view import CompareView
from pages.components.tuning_set import quiet
from rag_core.evaluate import compare
from rag_core.evaluate.compare import Cell, Slice, TableRow
from rag_core.evaluate.compare_words import detectable_words, unjudged_words, verdict_words
from rag_core.evaluate.significance import Comparison
from rag_core.evaluate.tally import PipelineTally

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8A9199"
NONE = "–"


def show(found: Material, tallies: Sequence[PipelineTally], view: CompareView) -> None:
    """The sentences, the table of measures and that of economy."""
    rows: list[TableRow] = compare_run.computed(
        "table", found.key, view.baseline, _work=lambda: compare.table(tallies, baseline=view.baseline)
    )
    base = rows[view.baseline]
    for row in rows:
        against = row.cells[view.measure].against
        if against is not None:
            st.text(verdict_words(against))
    compared = next(row.cells[view.measure].against for row in rows if row is not base)
    if compared is not None:
        quiet(detectable_words(compared))
    _measures(rows, view)
    _differences(rows, view)
    _economy(rows)


def _measures(rows: Sequence[TableRow], view: CompareView) -> None:
    """Means with intervals and what was scored."""
    st.markdown(
        f"**Means**, macro over {rows[0].queries_scored} of {rows[0].queries_total} queries, with 95 % intervals; "
        "higher is better"
    )
    columns: dict[str, list[Any]] = {"pipeline": [row.name for row in rows]}
    for measure in compare.SHOWN:
        columns[measure] = [_estimate(row.cells[measure]) for row in rows]
    columns["kept, mean"] = [round(row.kept_mean, 1) for row in rows]
    columns["unjudged of kept"] = [_whole(row.unjudged) for row in rows]
    columns["empty"] = [row.queries_empty for row in rows]
    columns["fallback"] = [row.queries_fallback for row in rows]
    st.dataframe(
        columns,
        hide_index=True,
        key="compare.table",
        column_config={"unjudged of kept": st.column_config.NumberColumn(format="percent")},
        alt="Per pipeline: mean and interval of each measure, chunks kept, share unjudged, empty and fallen back",
    )
    for row in rows:
        words = unjudged_words(row.name, row.unjudged)
        if words:
            quiet(f"? {words}")


def _differences(rows: Sequence[TableRow], view: CompareView) -> None:
    """Each measure's difference to the baseline."""
    base = rows[view.baseline]
    st.markdown(f"**Differences to {_plain(base.name)}**; wins, ties and losses are queries, p is corrected (Holm)")
    lines = [
        {
            "pipeline": row.name,
            "measure": measure,
            "difference": against.delta,
            "interval": _interval(against.low, against.high, signed=True),
            "p": against.p_corrected,
            "wins": against.wins,
            "ties": against.ties,
            "losses": against.losses,
        }
        for row in rows
        for measure in sorted(compare.SHOWN, key=lambda name: name != view.measure)
        if (against := row.cells[measure].against) is not None
    ]
    st.dataframe(
        {name: [line[name] for line in lines] for name in lines[0]},
        hide_index=True,
        key="compare.differences",
        column_config={
            "difference": st.column_config.NumberColumn(format="%+.3f"),
            "p": st.column_config.NumberColumn(format="%.4f"),
        },
        alt="Per pipeline and measure: difference to the baseline, interval, p, wins, ties, losses",
    )


def _economy(rows: Sequence[TableRow]) -> None:
    """What the kept chunks cost a reader."""
    st.markdown("**Context economy**; tokens are estimated as characters / 4, noise is the irrelevant share of them")
    st.dataframe(
        {
            "pipeline": [row.name for row in rows],
            "tokens kept a query": [row.economy.tokens / max(1, row.queries_total) for row in rows],
            "relevant chunks per 1,000 tokens": [row.economy.relevant_per_1000 for row in rows],
            "noise share": [_whole(row.economy.noise) for row in rows],
        },
        hide_index=True,
        key="compare.economy",
        column_config={
            "tokens kept a query": st.column_config.NumberColumn(format="%.0f"),
            "relevant chunks per 1,000 tokens": st.column_config.NumberColumn(format="%.2f"),
            "noise share": st.column_config.NumberColumn(format="percent"),
        },
        alt="Per pipeline: tokens kept, relevant chunks per 1,000 tokens, noise share",
    )


def show_slices(found: Material, tallies: Sequence[PipelineTally], view: CompareView) -> None:
    """Per tag the mean of every pipeline and its difference to the baseline."""
    slices: list[Slice] = compare_run.computed(
        "slices", found.key, view.measure, view.baseline,
        _work=lambda: compare.slices(tallies, view.measure, view.baseline),
    )  # fmt: skip
    st.markdown(
        f"**{view.measure} by tag**, macro over the scored queries of the tag; p corrected over the whole table"
    )
    base = tallies[view.baseline].name
    rows: list[dict[str, Any]] = []
    for one in slices:
        for name, cell in one.cells.items():
            against = cell.against
            rows.append(
                {
                    "tag": one.tag or "(no tag)",
                    "scored queries": cell.estimate.queries,
                    "pipeline": name + (" (baseline)" if name == base else ""),
                    view.measure: _estimate(cell),
                    "difference": against.delta if against else None,
                    "interval": _interval(against.low, against.high, signed=True) if against else "",
                    "p": against.p_corrected if against else None,
                }
            )
    st.dataframe(
        {name: [row[name] for row in rows] for name in rows[0]},
        hide_index=True,
        key="compare.slices",
        height=min(38 + 35 * len(rows), 560),
        column_config={
            "difference": st.column_config.NumberColumn(format="%+.3f"),
            "p": st.column_config.NumberColumn(format="%.4f"),
        },
        alt="Per tag and pipeline: scored queries, mean, difference to the baseline, interval, p",
    )


def show_matrix(tallies: Sequence[PipelineTally], view: CompareView) -> str:
    """The heat map query × pipeline with its table; the query a person picked in the table, '' for none."""
    import plotly.graph_objects as go

    found = compare.matrix(tallies, view.measure)
    scored = [at for at, row in enumerate(found.values) if any(value is not None for value in row)]
    spread = {at: max(map(_number, found.values[at])) - min(map(_number, found.values[at])) for at in scored}
    order = sorted(scored, key=lambda at: -spread[at])
    figure = go.Figure(
        go.Heatmap(
            z=[[found.values[at][column] for at in order] for column in range(len(found.pipelines))],
            y=[escape(name[:80]) for name in found.pipelines],  # Plotly reads tags in what it shows
            customdata=[[escape(found.queries[at][:80]) for at in order]] * len(found.pipelines),
            colorscale="Cividis",
            zmin=0,
            zmax=1,
            colorbar={"title": {"text": view.measure}},
            hovertemplate="%{customdata}<br>%{y}: %{z:.3f}<extra></extra>",
        )
    )
    figure.update_layout(
        height=110 + 44 * len(found.pipelines),
        margin={"l": 160, "r": 16, "t": 36, "b": 44},
        title={"text": f"{view.measure} of {len(order)} scored queries, most different first", "font": {"size": 14}},
        xaxis={"title": {"text": "query"}, "showticklabels": False},
    )
    st.plotly_chart(
        figure, key="compare.matrix", config={"displaylogo": False},
        alt=f"{view.measure} per query and pipeline as a heat map; the table below holds the numbers",
    )  # fmt: skip
    ids = [found.queries[at] for at in order]
    event = st.dataframe(
        {"query": ids, **{name: [found.values[at][i] for at in order] for i, name in enumerate(found.pipelines)}},
        hide_index=True,
        key="compare.matrix.table",
        on_select="rerun",
        selection_mode="single-row",
        height=min(38 + 35 * len(ids), 360),
        column_config={name: st.column_config.NumberColumn(format="%.3f") for name in found.pipelines},
        alt="Per query the measure of every pipeline; a row opens the query side by side",
    )
    rows = event["selection"]["rows"]
    return ids[rows[0]] if rows and rows[0] < len(ids) else ""


def _whole(share: float | None) -> float | None:
    """A share to whole percent."""
    return None if share is None else round(share, 2)


def _number(value: float | None) -> float:
    return 0.0 if value is None else value


def _estimate(cell: Cell) -> str:
    one = cell.estimate
    return NONE if one.mean is None else f"{one.mean:.3f} {_interval(one.low, one.high)}".strip()


def _interval(low: float | None, high: float | None, signed: bool = False) -> str:
    if low is None or high is None:
        return ""
    return f"[{low:+.3f}, {high:+.3f}]" if signed else f"[{low:.3f}, {high:.3f}]"


def _plain(name: str) -> str:
    """A name that may stand in markdown: names hold letters, digits and hyphens, anything else is left out."""
    return "".join(letter for letter in name if letter.isalnum() or letter in "-#_ ")


def summary_line(against: Comparison | None) -> str:
    """Wins, ties and losses in a few words."""
    return "" if against is None else f"{against.wins} wins · {against.ties} ties · {against.losses} losses"
