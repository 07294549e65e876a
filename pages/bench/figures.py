"""What can be opened below the Bench at zoom All: every measure, differences as a forest, tags, and the questions.

All of it describes the dev questions: differences without interval or verdict. Judging is a deed (judging.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, quantiles
from typing import Any

import streamlit as st

from pages.widgets.take_along import BLUE, GREY, ORANGE, label, laid_out, take_along
from rag_core.compare.attribution import waterfall
from rag_core.errors import InputError
from rag_core.filters.rerank import Rerank
from rag_core.measure.economy import total
from rag_core.measure.measures import DEFAULT_MEASURES, SET_MEASURES, Measure, parse_measure
from rag_core.measure.tally import PipelineTally
from rag_core.project.ceilings import Ceilings, ceilings
from rag_core.project.reranking import gains_of, stored_gains
from rag_core.project.session import Session
from rag_core.retrieve.dense import Dense
from rag_core.spec import stage_class
from rag_core.stage import Pipeline
from rag_core.text import counted

THREE, SIGNED = "%.3f", "%+.3f"
SKY = "#56B4E9"
DIGITS = st.column_config.NumberColumn(format=THREE)


def tallies_of(session: Session, pipelines: Mapping[str, Pipeline], measures: Sequence[Measure]) -> list[PipelineTally]:
    """Every pipeline over the dev questions, named by its side."""
    measured = session.measure(list(pipelines.values()), session.dev, measures=measures)
    names = [f"{side} {pipeline.label}".strip() for side, pipeline in pipelines.items()]
    return [replace(tally, name=name) for name, tally in zip(names, measured, strict=True)]


def depth_of(pipeline: Pipeline) -> int:
    """How many candidates its search brings."""
    source = next((stage for stage in pipeline.stages if stage.kind == "source"), Dense())
    return int(source.settings().get("depth", 0))


def measures(session: Session, pipelines: Mapping[str, Pipeline]) -> None:
    """Every measure of every pipeline with its meaning, over how many questions; differences to B as a forest."""
    tallies = tallies_of(session, pipelines, DEFAULT_MEASURES)
    first = tallies[0].summary
    st.markdown(
        f"**Means over {first.queries_scored} of {counted(first.queries_total, 'dev question', 'dev questions')}**, "
        "macro; :gray[a question without a relevant label is run and not scored]"
    )
    names = [measure.name for measure in DEFAULT_MEASURES]
    columns: dict[str, list[Any]] = {"measure": names}
    for tally in tallies:
        columns[tally.name] = [tally.summary.means.get(name) for name in names]
    config: dict[str, Any] = {tally.name: st.column_config.NumberColumn(format=THREE) for tally in tallies}
    places = dict(zip(pipelines, tallies, strict=True))
    changes = {
        side: {name: paired(places[side], places["B"], name) for name in names}
        for side in ("A", "C")
        if {side, "B"} <= places.keys()
    }
    for side, differences in changes.items():  # before the words: at 1440 pixels three pipelines leave room for no more
        columns[f"{side} − B"] = [fmean(rows) if rows else None for rows in differences.values()]
        config[f"{side} − B"] = st.column_config.NumberColumn(format=SIGNED, help="Mean over what both score.")
    figure = (lambda: forest(changes["A"])) if "A" in changes else None  # drawn when the table is
    columns["what it counts"] = [parse_measure(name).meaning for name in names]
    bounds = [_bounds(tallies[0], name) for name in names]
    if any(bounds):
        columns[f"bounds of {tallies[0].name}"] = bounds
        st.caption(
            "Bounds over every chunk without a label in what is kept and in the first 15 of the list, dropped ones too."
        )
    take_along("measures", columns, figure, "Per measure the mean of every pipeline and A − B", config)
    _stands_on(tallies, pipelines)


def _bounds(tally: PipelineTally, name: str) -> str:
    """The least and greatest value of a set measure over the unjudged chunks, '' where they are one."""
    low, high = tally.summary.low.get(name), tally.summary.high.get(name)
    if low is None or high is None or name not in {measure.name for measure in SET_MEASURES} or high - low < 5e-4:
        return ""
    return f"{low:.3f} … {high:.3f}"


def paired(a: PipelineTally, b: PipelineTally, measure: str) -> list[float]:
    """A − B of every question that both score."""
    pairs = zip(a.values(measure), b.values(measure), strict=True)
    return [x - y for x, y in pairs if x is not None and y is not None]


def forest(differences: Mapping[str, Sequence[float]]) -> Any:
    """A − B per measure: the mean as a mark, the middle half of the questions as a line."""
    import plotly.graph_objects as go  # 0.4 s, and most visits draw no figure

    names = [name for name, rows in differences.items() if rows][::-1]
    means = [fmean(differences[name]) for name in names]
    quarters = [quantiles(differences[name], n=4) if len(differences[name]) > 1 else [0, 0, 0] for name in names]
    figure = go.Figure()
    for name, (low, _, high) in zip(names, quarters, strict=True):
        figure.add_scatter(x=[low, high], y=[name, name], mode="lines", line={"color": "#8A9199", "width": 2},
                           showlegend=False, hovertemplate="middle half: %{x:.3f}<extra></extra>")  # fmt: skip
    figure.add_scatter(
        x=means, y=names, mode="markers", name="mean A − B", showlegend=False,
        marker={"size": 11, "color": [BLUE if mean >= 0 else ORANGE for mean in means],
                "symbol": ["circle" if mean >= 0 else "diamond" for mean in means]},
        hovertemplate="%{y}: %{x:+.3f}<extra></extra>",
    )  # fmt: skip
    figure.add_vline(x=0, line={"dash": "dash", "color": "#8A9199"})
    return laid_out(figure, "A − B, mean over dev questions (line: the middle half of them)", left=80)


def _stands_on(tallies: Sequence[PipelineTally], pipelines: Mapping[str, Pipeline]) -> None:
    """What the means stand on, what the kept chunks cost a reader, and lists of unequal depth."""
    depths = {tally.name: depth_of(pipeline) for tally, pipeline in zip(tallies, pipelines.values(), strict=True)}
    if len(set(depths.values())) > 1:
        said = ", ".join(f"{name} {depth}" for name, depth in depths.items())
        st.text(f"The searches bring lists of unequal depth: {said}. Part of a difference may be theirs.")
    summaries = [tally.summary for tally in tallies]
    economies = [total(row.economy for row in tally.queries) for tally in tallies]
    take_along(
        "what the means stand on",
        {
            "pipeline": [tally.name for tally in tallies],
            "search depth": list(depths.values()),
            "scored": [summary.queries_scored for summary in summaries],
            "empty": [summary.queries_empty for summary in summaries],
            "nothing relevant exists": [summary.queries_without_relevant for summary in summaries],
            "none relevant so far": [summary.queries_undecided for summary in summaries],
            "without labels": [summary.queries_unjudged for summary in summaries],
            "fallback": [summary.queries_fallback for summary in summaries],
            "judged of kept": [summary.judged for summary in summaries],
            "tokens kept a question": [
                economy.tokens / max(1, summary.queries_total)
                for economy, summary in zip(economies, summaries, strict=True)
            ],
            "noise share": [economy.noise for economy in economies],
        },
        config={
            "judged of kept": st.column_config.NumberColumn(format="percent"),
            "noise share": st.column_config.NumberColumn(format="percent"),
            "tokens kept a question": st.column_config.NumberColumn(
                format="%.0f", help="Estimated: characters ÷ 4. Lower costs less."
            ),
        },
    )


def tags(session: Session, pipelines: Mapping[str, Pipeline]) -> None:
    """Per tag the mean F₁ of every pipeline and A − B, the tag with the most questions first."""
    tallies = tallies_of(session, pipelines, SET_MEASURES)
    rows = tag_rows(tallies, tuple(pipelines))
    if set(rows["tag"]) <= {NO_TAG}:
        st.markdown("No dev question has a tag. Tags are given to questions in *Questions*.")
        return
    config: dict[str, Any] = {tally.name: st.column_config.NumberColumn(format=THREE) for tally in tallies}
    config |= {"A − B": st.column_config.NumberColumn(format=SIGNED)}
    st.markdown("**F₁ by tag**, macro over the scored dev questions of the tag")
    take_along("F1 by tag", rows, alt="Per tag: scored questions, mean F₁, A − B", config=config)


NO_TAG = "(no tag)"


def tag_rows(tallies: Sequence[PipelineTally], sides: Sequence[str]) -> dict[str, list[Any]]:
    """Columns: tag, scored questions, a mean for every pipeline, A − B; a tag nobody scored has no figure."""
    places: dict[str, list[int]] = {}
    for at, row in enumerate(tallies[0].queries):
        for tag in dict.fromkeys(row.tags) or (NO_TAG,):
            places.setdefault(tag, []).append(at)
    order = sorted(places, key=lambda tag: (-len(places[tag]), tag))
    values = [tally.values("SetF") for tally in tallies]
    scored = {tag: [at for at in places[tag] if values[0][at] is not None] for tag in order}
    columns: dict[str, list[Any]] = {"tag": order, "scored": [len(scored[tag]) for tag in order]}
    for tally, column in zip(tallies, values, strict=True):
        columns[tally.name] = [_mean(column, scored[tag]) for tag in order]
    if {"A", "B"} <= set(sides):
        a, b = (columns[tallies[sides.index(side)].name] for side in ("A", "B"))
        columns["A − B"] = [None if x is None or y is None else x - y for x, y in zip(a, b, strict=True)]
    return columns


def _mean(values: Sequence[float | None], places: Sequence[int]) -> float | None:
    scored = [value for at in places if (value := values[at]) is not None]
    return fmean(scored) if scored else None


def questions(session: Session, pipelines: Mapping[str, Pipeline]) -> None:
    """Every dev question with its F₁ per pipeline, the worst change first; the regressions of C beside those of A."""
    tallies = tallies_of(session, pipelines, SET_MEASURES)
    values = {side: tally.values("SetF") for side, tally in zip(pipelines, tallies, strict=True)}
    columns: dict[str, list[Any]] = {"question": [row.query_id for row in tallies[0].queries]}
    columns["text"] = [row.query for row in tallies[0].queries]
    for (_, column), tally in zip(values.items(), tallies, strict=True):
        columns[tally.name] = list(column)
        columns[f"{tally.name} keeps"] = [len(row.kept) for row in tally.queries]
    changes = {
        side: [None if x is None or y is None else x - y for x, y in zip(values[side], values["B"], strict=True)]
        for side in ("A", "C")
        if side in values and "B" in values
    }
    columns |= {f"{side} − B": list(column) for side, column in changes.items()}
    worst = [min((c for column in changes.values() if (c := column[at]) is not None), default=9.0)
             for at in range(len(columns["question"]))]  # fmt: skip
    order = sorted(range(len(worst)), key=lambda at: worst[at])
    columns = {name: [column[at] for at in order] for name, column in columns.items()}
    config: dict[str, Any] = {tally.name: st.column_config.NumberColumn(format=THREE) for tally in tallies}
    config |= {name: st.column_config.NumberColumn(format=SIGNED) for name in columns if name.endswith("− B")}
    figure = (lambda: _changes(columns)) if changes else None
    take_along("questions", columns, figure, "Per question: F₁ and chunks kept of every pipeline, changes", config)


def _changes(columns: Mapping[str, Sequence[Any]]) -> Any:
    import plotly.graph_objects as go  # 0.4 s, and most visits draw no figure

    figure = go.Figure()
    ranks = list(range(1, len(columns["question"]) + 1))
    for name, shade, symbol in (("A − B", BLUE, "circle"), ("C − B", ORANGE, "diamond")):
        if name in columns:
            figure.add_scatter(
                x=ranks, y=list(columns[name]), mode="markers", name=name,
                marker={"color": shade, "symbol": symbol, "size": 8},
                text=[label(text) for text in columns["text"]],
                hovertemplate="%{text}<br>" + name + " %{y:+.3f}<extra></extra>",
            )  # fmt: skip
    figure.update_layout(showlegend=True)
    return laid_out(figure, "dev questions, the worst change first", "difference in F₁ to B")


def losses(session: Session, pipelines: Mapping[str, Pipeline]) -> None:
    """Where relevant chunks of the dev questions are lost, stage by stage, and what is there to gain."""
    rows: dict[str, list[Any]] = {"pipeline": [], "where": [], "relevant lost": [], "relevant left": []}
    for tally in tallies_of(session, pipelines, SET_MEASURES):
        fall = waterfall(tally)
        left = fall.retrieved
        steps = [("search", fall.lost_in_retrieval, left)]
        for name, lost in fall.lost.items():
            left -= lost
            steps.append((stage_class(name.partition("#")[0]).title, lost, left))
        for where, lost, after in steps:
            for column, value in zip(rows.values(), (tally.name, where, lost, after), strict=True):
                column.append(value)

    take_along("where relevant chunks are lost", rows)
    _to_gain(session, pipelines["A"])


# What is there to gain, as `headroom` prints it: a perfect cut or filter, what search lost, what the scores know


def _to_gain(session: Session, pipeline: Pipeline) -> None:
    """Verdict, ceilings, signals, and every question with its own ceilings."""
    try:
        reached = ceilings(session, pipeline)
    except InputError as error:
        st.caption(f"No ceilings: {error}.")
        return
    st.markdown(
        f"**What is there to gain** :gray[before A’s last cut, over {len(reached.rows)} labelled dev questions]"
    )
    st.markdown(reached.verdict)
    means = reached.means
    rows = {
        f"best fixed k = {reached.fixed_k}": ("what anybody has without a filter of ours", means["fixed"]),
        "best cut": ("each list ended at its own best place", means["best_cut"]),
        "perfect filter": ("exactly the relevant chunks of each list", means["perfect_filter"]),
        "nothing lost": ("the relevant chunks that search never brought were in the lists too", 1.0),
    }
    take_along(
        "ceilings",
        {"if": list(rows), "what that is": [why for why, _ in rows.values()], "F₁": [f for _, f in rows.values()]},
        config={"F₁": DIGITS},
    )
    if reached.signals:
        take_along(
            "what the scores know",
            {
                "score": [one.name for one in reached.signals],
                "AUC": [one.auc for one in reached.signals],
                "95 % from": [one.low for one in reached.signals],
                "to": [one.high for one in reached.signals],
                "questions": [one.queries for one in reached.signals],
                "in words": ["better than chance" if one.better_than_chance else "not told from chance"
                             for one in reached.signals],
            },
            config={"AUC": DIGITS, "95 % from": DIGITS, "to": DIGITS},
        )  # fmt: skip
    _gain_by_question(reached)


def _gain_by_question(reached: Ceilings) -> None:
    """Each question with its ceilings, the most to gain first."""
    order = sorted(range(len(reached.rows)), key=lambda at: reached.now[at] - reached.rows[at].perfect_filter)
    rows = [reached.rows[at] for at in order]
    fixed = f"fixed k = {reached.fixed_k}"
    columns: dict[str, list[Any]] = {
        "question": [row.query_id for row in rows],
        "limited by": [reached.limited_by(at) for at in order],
        fixed: [reached.now[at] for at in order],
        "best cut": [row.best_cut for row in rows],
        "at length": [row.best_length for row in rows],
        "perfect filter": [row.perfect_filter for row in rows],
        "lost in search": [row.lost_in_retrieval for row in rows],
        "text": [reached.texts[row.query_id] for row in rows],
    }

    def figure() -> Any:
        import plotly.graph_objects as go  # 0.4 s, and most visits draw no figure

        drawn = go.Figure()
        for name, shade, symbol in ((fixed, GREY, "circle"), ("best cut", SKY, "diamond"),
                                    ("perfect filter", BLUE, "star")):  # fmt: skip
            drawn.add_scatter(
                x=list(range(1, len(rows) + 1)), y=columns[name], mode="markers", name=name,
                marker={"color": shade, "symbol": symbol, "size": 8}, text=[label(text) for text in columns["text"]],
                hovertemplate="%{text}<br>" + name + " F₁ %{y:.3f}<extra></extra>",
            )  # fmt: skip
        return laid_out(drawn, "dev questions, most to gain first", "F₁")

    config = {name: DIGITS for name in (fixed, "best cut", "perfect filter")}
    config["lost in search"] = st.column_config.NumberColumn(format="percent")
    take_along("ceilings by question", columns, figure, "Per question F₁ of fixed k, best cut, perfect filter", config)


def reranking(session: Session, pipelines: Mapping[str, Pipeline]) -> None:
    """What a reranker gains at which depth, from stored scores or those of the lists; nobody is asked."""
    stages = [stage for stage in pipelines["A"].stages if isinstance(stage, Rerank)]
    if stages:
        found = [gains_of(session, pipelines["A"], stage.endpoint, stage.recorded) for stage in stages[:1]]
    else:
        found = stored_gains(session, pipelines["A"])
    if not found:
        st.markdown(
            "No reranker’s score is here yet: `winnow rerank --endpoint NAME --preview` says what having them costs; "
            "lists that carry `rerank` bring their own."
        )
    for gains in found:
        st.text(gains.to_text().splitlines()[-1])
        columns: dict[str, list[Any]] = {
            "depth": [row.depth or None for row in gains.rows],
            "best k": [row.fixed_k for row in gains.rows],
            "SetF": [row.SetF for row in gains.rows],
            "nDCG@10": [row.ndcg for row in gains.rows],
            "questions without every score": [row.lacking for row in gains.rows],
        }
        config = {name: st.column_config.NumberColumn(format=THREE) for name in ("SetF", "nDCG@10")}
        told = f"gain by depth of {gains.reranker}, over {counted(gains.questions, 'dev question', 'dev questions')}"
        st.text(f"{told}; higher is better; the first row is the list as searched")
        take_along(f"reranking {gains.reranker}", columns, config=config)
