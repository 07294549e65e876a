"""Compare's table and slices: means with intervals and differences to the baseline, over how many queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages.components import compare_run, glossary, say
from pages.components.compare_run import Material
from pages.components.compare_view import CompareView
from pages.components.listed import columns, paged
from pages.components.trace import counted
from rag_core.evaluate import compare
from rag_core.evaluate.compare import Cell, Slice, TableRow
from rag_core.evaluate.compare_words import compared_words, unjudged_words
from rag_core.evaluate.tally import PipelineTally

NONE = "–"
DIFFERENCES = glossary.explained(
    ("difference", "interval", "p", "wins", "ties", "losses"),
    {
        "difference": st.column_config.NumberColumn(format="%+.3f"),
        "p": st.column_config.NumberColumn(format="%.4f"),
    },
)


def show(found: Material, tallies: Sequence[PipelineTally], view: CompareView) -> None:
    """The sentences, the table of measures and that of economy."""
    rows: list[TableRow] | None = compare_run.computed(
        "table", found, view.baseline, words="measures with their intervals and tests",
        work=lambda told: compare.table(tallies, baseline=view.baseline, progress=told),
    )  # fmt: skip
    if rows is None:
        return
    for row in rows:
        against = row.cells[view.measure].against
        if against is not None:
            st.text("\n".join(compared_words(against)))
    _measures(rows, view)
    _differences(rows, view)
    _economy(rows)


def _measures(rows: Sequence[TableRow], view: CompareView) -> None:
    """Means with intervals and what was scored."""
    st.markdown(
        f"**Means**, macro over {_of(rows[0].queries_scored, rows[0].queries_total)}, with 95 % intervals; "
        "higher is better"
    )
    found: dict[str, list[Any]] = {"pipeline": [row.name for row in rows]}
    for measure in compare.SHOWN:
        found[measure] = [_estimate(row.cells[measure]) for row in rows]
    found["kept, mean"] = [round(row.kept_mean, 1) for row in rows]
    found["unjudged of kept"] = [_whole(row.unjudged) for row in rows]
    found["empty"] = [row.queries_empty for row in rows]
    found["fallback"] = [row.queries_fallback for row in rows]
    st.dataframe(
        found,
        hide_index=True,
        key="compare.table",
        column_config=glossary.explained(found, {"unjudged of kept": st.column_config.NumberColumn(format="percent")}),
        alt="Per pipeline: mean and interval of each measure, chunks kept, share unjudged, empty and fallen back",
    )
    unjudged = [f"? {words}" for row in rows if (words := unjudged_words(row.name, row.unjudged))]
    if unjudged:
        st.text("\n".join(unjudged))  # names of pipelines come with links: foreign text


def _differences(rows: Sequence[TableRow], view: CompareView) -> None:
    """Each measure's difference to the baseline."""
    base = rows[view.baseline]
    st.markdown(f"**Differences to {say.plain(base.name)}**; wins, ties and losses are queries, p is corrected (Holm)")
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
        columns(lines),
        hide_index=True,
        key="compare.differences",
        column_config=DIFFERENCES,
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
        column_config=glossary.explained(
            ("relevant chunks per 1,000 tokens", "noise share"),
            {
                "tokens kept a query": st.column_config.NumberColumn(format="%.0f"),
                "relevant chunks per 1,000 tokens": st.column_config.NumberColumn(format="%.2f"),
                "noise share": st.column_config.NumberColumn(format="percent"),
            },
        ),
        alt="Per pipeline: tokens kept, relevant chunks per 1,000 tokens, noise share",
    )


def show_slices(found: Material, tallies: Sequence[PipelineTally], view: CompareView) -> None:
    """Per tag the mean of every pipeline and its difference to the baseline."""
    slices: list[Slice] | None = compare_run.computed(
        "slices", found, view.measure, view.baseline, words="tags compared",
        work=lambda told: compare.slices(tallies, view.measure, view.baseline, progress=told),
    )  # fmt: skip
    if slices is None:
        return
    st.markdown(
        f"**{view.measure} by tag**, macro over the scored queries of the tag; p corrected over the whole table"
    )
    rows = [_slice_row(one, name, cell, view) for one in slices for name, cell in one.cells.items()]
    shown = paged(len(rows), f"compare.slices.page.{view.measure}")
    st.dataframe(
        columns([rows[at] for at in shown]),
        hide_index=True,
        key="compare.slices",
        height=min(38 + 35 * len(shown), 560),
        column_config=DIFFERENCES,
        alt="Per tag and pipeline: scored queries, mean, difference to the baseline, interval, p",
    )


def _slice_row(one: Slice, name: str, cell: Cell, view: CompareView) -> dict[str, Any]:
    """One tag and pipeline; only the baseline is compared with nothing."""
    against = cell.against
    return {
        "tag": one.tag or "(no tag)",
        "scored queries": cell.estimate.queries,
        "pipeline": name + ("" if against else " (baseline)"),
        view.measure: _estimate(cell),
        "difference": against.delta if against else None,
        "interval": _interval(against.low, against.high, signed=True) if against else "",
        "p": against.p_corrected if against else None,
    }


def _whole(share: float | None) -> float | None:
    """A share to whole percent."""
    return None if share is None else round(share, 2)


def _of(scored: int, total: int) -> str:
    return f"{scored} of {counted(total, 'query', 'queries')}"


def _estimate(cell: Cell) -> str:
    one = cell.estimate
    return NONE if one.mean is None else f"{one.mean:.3f} {_interval(one.low, one.high)}".strip()


def _interval(low: float | None, high: float | None, signed: bool = False) -> str:
    if low is None or high is None:
        return ""
    return f"[{low:+.3f}, {high:+.3f}]" if signed else f"[{low:.3f}, {high:.3f}]"
