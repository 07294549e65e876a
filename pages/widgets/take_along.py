"""A chart that can be taken along: a Plotly figure, the very table it was drawn from, sorted alike, and its CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, TypeVar

import streamlit as st

from pages.components import glossary

BLUE, GREY, GREEN, ORANGE = "#0072B2", "#8A9199", "#009E73", "#D55E00"
TALL = 420  # pixels of a table or a chart
Row = TypeVar("Row")


def table(
    rows: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]],
    key: str,
    alt: str,
    tall: int = TALL,
    config: Mapping[str, Any] | None = None,
    **more: Any,
) -> Any:
    """A table as high as its rows, up to `tall` pixels; `alt` is what a screen reader says of it.

    `rows` are columns by name, or one mapping a row. `more` goes to st.dataframe: selection, width, placeholder.
    """
    count = len(rows) if not isinstance(rows, Mapping) else len(next(iter(rows.values()), ()))
    height = min(38 + 35 * max(count, 1), tall)
    return st.dataframe(rows, hide_index=True, key=key, height=height, column_config=config, alt=alt, **more)


def take_along(
    name: str,
    columns: Mapping[str, Sequence[Any]],
    figure: Callable[[], Any] | None = None,
    alt: str = "",
    config: Mapping[str, Any] | None = None,
) -> None:
    """Draw the columns as a table, beside the figure where there is one, with a button for the CSV.

    `name` names the file and the widgets. Plotly is loaded when a figure is first drawn.
    """
    key = re.sub(r"\W+", "-", name.lower()).strip("-")
    left, right = st.columns(2) if figure is not None else (st.container(), None)
    rows = len(next(iter(columns.values()), ()))
    with left:
        alt_table = alt or f"{name}: {rows} rows with {', '.join(columns)}"
        table(dict(columns), f"take.{key}", alt_table, config=glossary.explained(columns, config), placeholder="–")
        st.download_button("CSV", lambda: to_csv(columns), f"{key}.csv", "text/csv", icon=":material/download:",
                           key=f"take.{key}.csv", type="tertiary")  # fmt: skip
    if right is not None and figure is not None:
        with right:
            st.plotly_chart(figure(), key=f"take.{key}.figure", config={"displaylogo": False}, alt=alt or name)


def to_csv(columns: Mapping[str, Sequence[Any]]) -> bytes:
    """The columns as CSV. A cell that a spreadsheet would take for a formula begins with an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in row] for row in zip(*columns.values(), strict=True))
    return text.getvalue().encode("utf-8", "surrogatepass")


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def laid_out(figure: Any, across: str, up: str = "", left: int = 60) -> Any:
    """A figure as figures stand beside their tables: titles of both axes, the legend below."""
    figure.update_layout(
        height=400,
        margin={"l": left, "r": 16, "t": 20, "b": 50},
        legend={"orientation": "h", "y": -0.22},
        xaxis_title=across,
        yaxis_title=up,
    )
    return figure


def choose(
    columns: Mapping[str, Sequence[Any]], ids: Sequence[Any], key: str, alt: str, chosen: str, keep: bool, **more: Any
) -> None:
    """A table of which one row is taken: its id stands in the session under `chosen` before and after.

    A press on the row that is taken lets it go, or keeps it with `keep`.
    """
    now = st.session_state.get(chosen)
    st.session_state[key] = {"selection": {"rows": [ids.index(now)] if now in ids else [], "columns": []}}

    def take() -> None:
        rows = [at for at in st.session_state[key]["selection"]["rows"] if at < len(ids)]
        if rows or not keep:
            st.session_state[chosen] = ids[rows[0]] if rows else ""

    table(columns, key, alt, on_select=take, selection_mode="single-row", **more)


def picked(event: Any, rows: Sequence[Row]) -> list[Row]:
    """What is selected in a table of these rows that was drawn with `on_select`."""
    return [rows[at] for at in event["selection"]["rows"] if at < len(rows)]


def label(text: str, most: int = 60) -> str:
    """Foreign text as it may stand in a Plotly figure, which reads tags in what it shows."""
    return escape(text if len(text) <= most else f"{text[: most - 1]}…")
