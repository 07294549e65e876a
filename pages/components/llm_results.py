"""What a comparison on the page *LLM filter* shows: figures, differences, the front, and what was thrown away.

Names of endpoints and models, titles, texts and reasons are foreign words: they stand in table cells or plain text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from pages.components import glossary, llm_charts
from pages.components.llm_cost import COST
from rag_core.judged.figures import is_silent
from rag_core.text import counted

NAME = "prompt and judge"
NOTHING = "–"  # stands where a figure does not apply
MEASURES = {"SetP": "SetP", "SetR": "SetR", "SetF": "SetF", "cost": COST, "cost_per_point": "cost per point of SetF"}
FIGURES = {
    "irrelevant_removed": "irrelevant removed",
    "agreement": "agreement",
    "kappa": "kappa",
    "false_drops": "false drops",
    "false_keeps": "false keeps",
    "fallback_rate": "fallback",
    "kept_mean": "kept",
    "added_ms_p50": "ms p50",
    "added_ms_p95": "ms p95",
    "prompts": "calls",
    "tokens": "tokens",
}
COLUMNS = {**MEASURES, **FIGURES}
SHARES = ("irrelevant_removed", "agreement", "fallback_rate")
THREE = ("SetP", "SetR", "SetF", "kappa")


def figures(document: Mapping[str, Any]) -> None:
    """Measures and cost of all, the differences, the front, and what is known of the filters with a judge.

    A model that was not asked yet has no figures: its lists would be those of no model.
    """
    silent = [row["name"] for row in document["variants"] if is_silent(row)]
    if silent:
        st.text("\n".join(f"{name}: no question is answered yet, so it is not compared." for name in silent))
    free = [{**row, "cost": 0.0} for row in (document["baseline"], *document["free"])]
    judged = [
        {**row, "tokens": row["prompt_tokens"] + row["completion_tokens"]}
        for row in document["variants"]
        if not is_silent(row)
    ]
    _table([*free, *judged], MEASURES, "llm.table", "Precision, recall, F1 and cost of every filter")
    differences(document)
    st.plotly_chart(
        llm_charts.front(document["front"]),
        key="llm.front",
        config={"displaylogo": False},
        alt="Precision over recall of every filter with its cost; the table above holds the numbers",
    )
    if judged:
        _table(judged, FIGURES, "llm.figures", "Per prompt and judge: agreement, harm, fallbacks, time and tokens")


def _table(rows: Sequence[Mapping[str, Any]], names: Mapping[str, str], key: str, alt: str) -> None:
    columns = {NAME: [row["name"] for row in rows]}
    shown = {name: [row.get(name) for row in rows] for name in names}
    st.dataframe(
        columns | {title: whole(shown[name]) if name in SHARES else shown[name] for name, title in names.items()},
        hide_index=True, key=key, column_config=_formats(), placeholder=NOTHING, alt=alt,
    )  # fmt: skip


def whole(shares: Sequence[float | None]) -> list[float | None]:
    """Shares of 1 that a column shows as whole percent."""
    return [None if share is None else round(share, 2) for share in shares]


def _formats() -> dict[str, Any]:
    number = st.column_config.NumberColumn
    shown: dict[str, Any] = {COLUMNS[name]: number(format="%.3f") for name in THREE}
    shown |= {COLUMNS[name]: number(format="percent") for name in SHARES}
    shown |= {COLUMNS[name]: number(format="%.0f") for name in ("added_ms_p50", "added_ms_p95")}
    shown |= {COLUMNS[name]: number(format="%.5f") for name in ("cost", "cost_per_point")}
    shown |= {COLUMNS["kept_mean"]: number(format="%.1f"), COLUMNS["tokens"]: number(format="localized")}
    return glossary.explained(COLUMNS.values(), shown)


def differences(document: Mapping[str, Any]) -> None:
    """Each prompt and judge against no model: the paired difference with interval and corrected p."""
    base = document["baseline"]["name"]
    against = [one for one in document["comparison"] if one["a"] == base and one["delta"] is not None]
    if against:
        st.text("\n".join(map(sentence, against)))


def sentence(one: Mapping[str, Any]) -> str:
    """A difference in words: "terse against rerank off: SetF +0.210 [0.150, 0.270], p 0.001 (holm) …"."""
    interval = "" if one["ci"] is None else f" [{one['ci'][0]:+.3f}, {one['ci'][1]:+.3f}]"
    value = one["p_corrected"] if one["p_corrected"] is not None else one["p"]
    p = "" if value is None else f", p {value:.4f}" + (f" ({one['correction']})" if one["correction"] else "")
    counts = f"{counted(one['wins'], 'query', 'queries')} better, {one['ties']} equal, {one['losses']} worse"
    return f"{one['b']} against {one['a']}: SetF {one['delta']:+.3f}{interval}{p}; {counts}"


def decisions(row: Mapping[str, Any]) -> None:
    """The filter as a classifier: per action how often, how right, and which share of the relevant it holds."""
    if not row["actions"]:
        st.markdown("Nothing was decided: ask the model first.")
        return
    st.dataframe(
        {
            "action": list(row["actions"]),
            "given": [one["count"] for one in row["actions"].values()],
            "share relevant": whole([one["relevant"] for one in row["actions"].values()]),
            "share of the relevant": whole([one["of_relevant"] for one in row["actions"].values()]),
        },
        hide_index=True,
        key="llm.actions",
        placeholder=NOTHING,
        column_config={
            name: st.column_config.NumberColumn(format="percent")
            for name in ("share relevant", "share of the relevant")
        },
        alt="Per action: how often it was given, which share of it is relevant, which share of the relevant it holds",
    )
    st.caption(
        f"{row['decided']:,} decisions, {row['decided_labelled']:,} of them on labelled chunks; a chunk without a "
        "label counts as irrelevant."
    )


def false_drops(rows: Sequence[Mapping[str, Any]]) -> None:
    """The relevant chunks that were thrown away, with their text."""
    st.markdown(f"**{counted(len(rows), 'relevant chunk', 'relevant chunks')} thrown away** (harm)")
    if not rows:
        return
    names = ("query", "grade", "title", "reason", "text")
    event = st.dataframe(
        {name: [row[name] for row in rows] for name in names},
        hide_index=True,
        key="llm.false_drops",
        on_select="rerun",
        selection_mode="single-row",
        height=min(38 + 35 * len(rows), 320),
        column_config={"text": st.column_config.TextColumn(width="large")},
        alt="Relevant chunks the filter dropped: query, grade, title, reason, text",
    )
    picked = event["selection"]["rows"]
    if picked and picked[0] < len(rows):
        row = rows[picked[0]]
        with st.container(border=True):
            st.text(f"{row['query']} · {row['id']} · {row['title']}\n{row['reason']}")
            st.code(row["text"] or "(recorded without its text)", language=None, wrap_lines=True)


def steady(row: Mapping[str, Any]) -> None:
    """Repeatability and position bias as figures."""

    def share(value: float | None) -> str:
        return "–" if value is None else f"{value:.0%}"

    with st.container(horizontal=True):
        for label, value, note, text in (
            ("repeatability", share(row["repeatability"]), f"over {row['runs']} runs", REPEATABILITY),
            ("order flips", share(row["flip_rate"]), f"{row['flips']} of {row['checked']}", FLIPS),
            ("kept early", share(row["kept_early"]), "in a prompt’s first half", BIAS),
            ("kept late", share(row["kept_late"]), "in its second half", BIAS),
            ("fallback", share(row["fallback_rate"]), "of all lists", "Lists on which a call failed."),
        ):
            st.metric(label, value, note, delta_color="off", delta_arrow="off", help=text, border=True)


REPEATABILITY = "Share of decisions on which all runs agree."
FLIPS = "Decisions that change where the same candidates stand in reverse order."
BIAS = "Every candidate stands once in either half: a difference is the order’s doing, not the candidates’."
