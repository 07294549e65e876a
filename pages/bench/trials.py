"""Judges on trial, under the Bench at full width: decisions against labels, prompts and judges beside cheap filters,
repeats, how good a judge must be, and what references bring.

Every figure is over the dev questions, on the list as A's earlier stages leave it, and describes: no verdict is here.
The work is in rag_core.judged, as for the command `llm-filter`; nothing is asked unless a button is pressed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import streamlit as st

from pages import state
from pages.bench import judge, sight
from pages.bench.judge import CURRENCY, SIMULATED
from pages.bench.sight import SeenList
from pages.components import say
from pages.widgets.take_along import BLUE, GREY, ORANGE, label, take_along
from rag_core.errors import WinnowError
from rag_core.filters.llm import LLMFilter, variant_names
from rag_core.filters.llm.deciding import CAUSES
from rag_core.judged import trials
from rag_core.judged.bench import Bench
from rag_core.judged.entrants import Entrant, answer_simulated, endpoint_judge, entrants_of, simulated_judge
from rag_core.judged.figures import is_silent
from rag_core.judged.trials import SCORES, Depth, Simulation, Steadiness, Trial, depths
from rag_core.project.asking import bench_of
from rag_core.project.session import Session
from rag_core.spec import fingerprint, shipped_names
from rag_core.stage import Pipeline
from rag_core.text import counted

DECISIONS, PROMPTS, REPEAT, GOOD, REFERENCES = "Decisions", "Prompts and judges", "Repeat", "How good?", "References"
NOT_CHEAP = ("query-must-refill", "unfiltered")  # refill reads a store; unfiltered is the baseline
RATES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
COST = f"cost, {CURRENCY}"
THREE = "%.3f"
REPEATABILITY = "The share of decisions on which all runs agree."
FLIPS = "Decisions that change where the same candidates stand in reverse order."
BIAS = "Every candidate stands once in either half: a difference is the order’s doing, not the candidates’."
LOST = {
    "floor": "lost to the floor",
    "oversample": "lost beyond the oversample",
    "model": "lost to the model",
    "cap": "lost over max_chunks",
    "failure": "lost to failed calls",
}
FALLBACK = "The share of questions on which a call failed: their nearest chunks stay."

HELP = f"""
**Agreement, kappa.** How often the decisions match the labels; kappa takes chance out. A chunk without a label counts
as irrelevant. **False drops** are relevant chunks thrown away, **false keeps** irrelevant ones left in.

**Lost** are relevant chunks that search had put into the list, by what took them: too unlike the question to be judged
(floor), too far down (oversample), the model's word, over `max_chunks`, or a failed call.

**Fallback.** {FALLBACK}

**rerank off.** The nearest `max_chunks` of the same list, without a judge. **Cost** is of all questions, in {CURRENCY}.
"""


def section(entry: SeenList, session: Session) -> None:
    """The views; a sentence where there is nothing to try on."""
    with st.container(border=True, key="judge.section"):
        placed = judge.place_of(entry, session)
        if placed is None or not session.dev:
            st.markdown("Judges are tried on the dev questions, with the stage switched on: one of both is missing.")
            return
        with st.container(horizontal=True, vertical_alignment="center"):
            view = st.segmented_control(
                "View", (DECISIONS, PROMPTS, REPEAT, GOOD, REFERENCES), default=DECISIONS, required=True,
                key="judge.view", label_visibility="collapsed",
            )  # fmt: skip
            with st.popover("?", help="What the numbers mean"):
                st.markdown(HELP)
        pipeline, place = placed
        try:
            key = f"judge's list {place}"
            bench: Bench = session.remembered(key, pipeline, lambda: bench_of(session, pipeline, place, session.dev))
            VIEWS[view or DECISIONS](bench, pipeline, place, session)
        except (WinnowError, OSError) as error:
            say.problem("This cannot be tried as it is set.", str(error))


def stage_at(pipeline: Pipeline, place: int) -> LLMFilter:
    """The stage whose drawer is open."""
    stage = pipeline.stages[place]
    assert isinstance(stage, LLMFilter)
    return stage


def rivals_of(names: Sequence[str], stages: Sequence[LLMFilter], bench: Bench, session: Session) -> list[Entrant]:
    """Every stage with every judge by name; the simulated one has answered, which costs nothing."""
    chosen, _ = judge.choice(session.workspace)
    judges = [
        simulated_judge(bench, chosen.error_rate, chosen.depth)
        if name == SIMULATED
        else endpoint_judge(session.workspace, name, stages[0].model, store=judge.answers(session.workspace))
        for name in names
    ]
    rivals = entrants_of(stages, judges)
    answer_simulated(bench, rivals)
    return rivals


def compared(bench: Bench, rivals: list[Entrant], free: Sequence[str], pipeline: Pipeline, session: Session) -> Trial:
    """The comparison on what is stored by now, remembered until that changes."""
    stages = [fingerprint(Pipeline((one.stage,))) for one in rivals]
    what = repr((bench.name, [one.label for one in rivals], stages, free, stored(rivals)))
    trial: Trial = session.remembered(what, pipeline, lambda: trials.compare(bench, rivals, free=free))
    return trial


def stored(rivals: Sequence[Entrant]) -> str:
    """What changes when a model among them has answered."""
    return "".join(one.judge.store.state() for one in rivals if not one.simulated)


# Decisions


def decisions(bench: Bench, pipeline: Pipeline, place: int, session: Session) -> None:
    """What was decided on every chunk of the question in sight, and how the decisions on dev agree with the labels."""
    chosen, _ = judge.choice(session.workspace)
    case = sight.question_in_sight(session, state.current().question)
    if case is not None:
        _of_question(bench_of(session, pipeline, place, [case]), stage_at(pipeline, place), session)
    rivals = rivals_of([chosen.name], [stage_at(pipeline, place)], bench, session)
    trial = compared(bench, rivals, (), pipeline, session)
    (row,) = trial.variants
    if not row["actions"]:
        st.markdown("The model decided nothing on dev yet: the drawer asks it.")
        return
    st.text(
        f"{row['name']} on {counted(len(bench.cases), 'dev question', 'dev questions')}: {row['decided']:,} decisions, "
        f"{row['decided_labelled']:,} of them on labelled chunks; agreement {row['agreement']:.0%}, kappa "
        f"{shown(row['kappa'])}, {counted(row['false_drops'], 'false drop', 'false drops')}, "
        f"{counted(row['false_keeps'], 'false keep', 'false keeps')}, fallback {row['fallback_rate']:.0%}"
    )
    if trial.warnings:
        say.problem("The floor costs more than the model.", " ".join(trial.warnings))
    relevant, lost = row["relevant"], row["relevant"]["lost"]
    st.markdown("**Relevant chunks of the lists** on dev: kept, and lost by each step of the filter")
    take_along(
        "relevant chunks by step",
        {"step": ["kept", *LOST.values()], "relevant chunks": [relevant["kept"], *(lost[cause] for cause in CAUSES)]},
    )
    actions = row["actions"]
    take_along(
        "decisions on dev",
        {
            "action": list(actions),
            "given": [one["count"] for one in actions.values()],
            "share relevant": [one["relevant"] for one in actions.values()],
            "share of the relevant": [one["of_relevant"] for one in actions.values()],
        },
        config=formats("share relevant", "share of the relevant", form="percent"),
    )
    rows = row["false_drops_listed"]
    st.markdown(f"**{counted(len(rows), 'relevant chunk', 'relevant chunks')} thrown away** on dev")
    if rows:
        names = ("query", "grade", "title", "reason", "text")
        take_along("relevant chunks thrown away", {name: [one[name] for one in rows] for name in names})


def _of_question(bench: Bench, stage: LLMFilter, session: Session) -> None:
    """The list that came to the judge, chunk by chunk: what became of it, why, and its label."""
    (case,) = bench.cases
    assert case.candidates is not None
    result = replace(stage, judge=session.judge, chunks=bench.chunks)(case.candidates)
    kept = {hit.key: str(hit.notes.get(stage.name, "")) for hit in result.hits}
    reasons = {drop.hit.key: drop.reason.text for drop in result.drops}
    hits = case.candidates.hits[: stage.oversample]
    brought = [hit for hit in result.hits if hit.key not in {one.key for one in case.candidates.hits}]
    rows = [*hits, *brought]
    take_along(
        "decisions on this question",
        {
            "chunk": [hit.chunk.title or hit.chunk.id for hit in rows],
            "stays": ["✓ kept" if hit.key in kept else "✕ dropped" for hit in rows],
            "why": [kept.get(hit.key, reasons.get(hit.key, "")) for hit in rows],
            "label": [case.grades.get(hit.chunk.id) for hit in rows],
        },
    )


# Prompts and judges


def prompts(bench: Bench, pipeline: Pipeline, place: int, session: Session) -> None:
    """Every prompt with every judge beside no judge and cheap filters: figures, differences, and the front."""
    stage = stage_at(pipeline, place)
    chosen, _ = judge.choice(session.workspace)
    known, _ = judge.known_endpoints(session.workspace)
    left, middle, right = st.columns(3)
    variants = left.multiselect(
        "Prompts", variant_names(), default=[stage.variant], key="judge.variants",
        help="Files of the prompts folder. To the simulated judge they differ in length only.",
    )  # fmt: skip
    names = middle.multiselect(
        "Judges", [*known, SIMULATED], default=[chosen.name], key="judge.judges",
        format_func=lambda name: f"simulated, {chosen.error_rate:.0%} wrong" if name == SIMULATED
        else f"{name}: {known[name].model}",
    )  # fmt: skip
    free = right.multiselect(
        "Cheap filters beside them", [name for name in shipped_names() if name not in NOT_CHEAP],
        default=["adaptive-default"], key="judge.free",
    )  # fmt: skip
    if not variants or not names:
        st.markdown("Choose at least one prompt and one judge.")
        return
    rivals = rivals_of(names, [replace(stage, variant=name) for name in variants], bench, session)
    paid = [one for one in rivals if not one.simulated]
    if paid:
        judge.offer(bench, paid, "judge.prompts")
    trial = compared(bench, rivals, free, pipeline, session)
    silent = [row["name"] for row in trial.variants if is_silent(row)]
    if silent:
        st.text("\n".join(f"{name}: no question is answered yet, so it is not compared." for name in silent))
    rows = [trial.baseline, *trial.free]
    rows += [row for row in trial.variants if row["name"] not in silent]
    # a simulated judge costs nothing, and no price stands beside it
    simulated = {one.label for one in rivals if one.simulated}
    columns = {
        "filter": [row["name"] for row in rows],
        **{name: [row[name] for row in rows] for name in SCORES},
        COST: [None if row["name"] in simulated else row.get("cost", 0.0) for row in rows],
        "calls": [row.get("prompts") for row in rows],
        **{
            title: [row.get(name) for row in rows]
            for title, name in (
                ("agreement", "agreement"), ("kappa", "kappa"), ("false drops", "false_drops"),
                ("false keeps", "false_keeps"), ("fallback", "fallback_rate"),
                ("irrelevant removed", "irrelevant_removed"),
                ("kept", "kept_mean"), ("ms p50", "added_ms_p50"), ("ms p95", "added_ms_p95"),
            )
        },
        **{
            title: [row["relevant"]["lost"][cause] if "relevant" in row else None for row in rows]
            for cause, title in LOST.items()
        },
    }  # fmt: skip
    config = {
        **formats(*SCORES, "kappa"),
        **formats("agreement", "fallback", "irrelevant removed", form="percent"),
        **formats(COST, form="%.5f"),
        **formats("ms p50", "ms p95", form="%.0f"),
        **formats("kept", form="%.1f"),
    }
    take_along("prompts and judges", columns, lambda: front(trial.front), config=config)
    against = [one for one in trial.comparison if one["a"] == trial.baseline["name"] and one["delta"] is not None]
    st.text("\n".join([*map(sentence, against), *trial.warnings]))


def sentence(one: Mapping[str, Any]) -> str:
    """A difference on dev in words, without a verdict: "terse against rerank off: F₁ +0.210; 6 better, 0 equal …"."""
    counts = f"{counted(one['wins'], 'question', 'questions')} better, {one['ties']} equal, {one['losses']} worse"
    return f"{one['b']} against {one['a']}: F₁ {one['delta']:+.3f}; {counts}"


def front(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Precision over recall of every filter; filled where no other is as good in both and as cheap."""
    import plotly.graph_objects as go  # 0.3 s; most never open this view

    figure = go.Figure()
    for judged, name, shade, shape in (
        (False, "cheap filters", GREY, "square"),
        (True, "with a judge", BLUE, "circle"),
    ):
        some = [row for row in rows if row["model"] is judged and row["SetP"] is not None and row["SetR"] is not None]
        figure.add_scatter(
            x=[row["SetR"] for row in some], y=[row["SetP"] for row in some], name=name, mode="markers+text",
            text=[label(row["name"], 56) for row in some], textposition="top center",
            hovertemplate="%{text}<br>recall %{x:.3f}, precision %{y:.3f}<extra></extra>",
            marker={
                "size": 12, "color": shade, "line": {"width": 2, "color": shade},
                "symbol": [shape if row["on_front"] else f"{shape}-open" for row in some],
            },
        )  # fmt: skip
    axes = {"range": [-0.05, 1.12]}
    return laid_out(figure, "filled: no other is as good in both and as cheap", "recall", "precision", axes, axes)


# Repeat


def repeat(bench: Bench, pipeline: Pipeline, place: int, session: Session) -> None:
    """Does the judge say the same twice, and does the order of the candidates sway it?"""
    chosen, settings = judge.choice(session.workspace)
    times = int(st.number_input("Runs", 2, 20, 3, key="judge.times", width=120))
    (rival,) = rivals_of([chosen.name], [stage_at(pipeline, place)], bench, session)
    every = rival.runs(times)
    if settings is None:
        st.caption("A simulated judge decides by query and chunk: it repeats itself and no order sways it.")
    else:
        judge.offer(bench, every, "judge.repeat")
    answer_simulated(bench, every)
    key = f"repeat {place} {times} {rival.label} {stored(every)}"
    row: Steadiness = session.remembered(key, pipeline, lambda: trials.steadiness(bench, rival, times))
    with st.container(horizontal=True):
        for name, value, note, meaning in (
            ("repeatability", row.repeatability, f"over {row.runs} runs", REPEATABILITY),
            ("order flips", row.flip_rate, f"{row.flips} of {row.checked}", FLIPS),
            ("kept early", row.kept_early, "in a prompt’s first half", BIAS),
            ("kept late", row.kept_late, "in its second half", BIAS),
            ("fallback", row.fallback_rate, "of all lists", FALLBACK),
        ):
            said = "–" if value is None else f"{value:.0%}"
            st.metric(name, said, note, delta_color="off", delta_arrow="off", border=True, help=meaning)


# How good must a judge be?


def how_good(bench: Bench, pipeline: Pipeline, place: int, session: Session) -> None:
    """Simulated judges of every accuracy beside the cheap filters: from where on does a judge pay?"""
    free = ["adaptive-default"]
    chosen, _ = judge.choice(session.workspace)
    made: Simulation = session.remembered(
        f"how good {place} {chosen.depth}",
        pipeline,
        lambda: trials.simulate(bench, stage_at(pipeline, place), RATES, depth=chosen.depth, free=free),
    )
    even, rows = made.break_even_error_rate, made.rows
    st.markdown(
        "**No tried judge crosses the best cheap filter.**" if even is None
        else f"**A judge must decide {1 - even:.1%} of the chunks rightly to beat the best cheap filter.**"
    )  # fmt: skip
    st.text(f"The best cheap filter on these lists: {made.best_free}. Judges are simulated, drawn from the labels.")
    take_along(
        "how good must a judge be",
        {
            "accuracy": [1 - row.error_rate for row in rows],
            "seed": [row.seed for row in rows],
            "SetP": [row.precision for row in rows],
            "SetR": [row.recall for row in rows],
            "SetF": [row.f1 for row in rows],
            "calls": [row.prompts for row in rows],
        },
        lambda: accuracy(made),
        config={**formats("accuracy", form="percent"), **formats(*SCORES)},
    )


def accuracy(made: Simulation) -> Any:
    """Mean F₁ over the simulated judge's accuracy with the range over seeds, the cheap filters, the break-even."""
    import plotly.graph_objects as go  # 0.3 s; most never open this view

    rates = sorted({row.error_rate for row in made.rows}, reverse=True)
    by_rate = [[row.f1 or 0.0 for row in made.rows if row.error_rate == rate] for rate in rates]
    means = [fmean(values) for values in by_rate]
    figure = go.Figure()
    figure.add_scatter(
        x=[1 - rate for rate in rates], y=means, name="simulated judge", mode="lines+markers", line={"color": BLUE},
        error_y={
            "array": [max(values) - mean for values, mean in zip(by_rate, means, strict=True)],
            "arrayminus": [mean - min(values) for values, mean in zip(by_rate, means, strict=True)],
        },
        hovertemplate="accuracy %{x:.0%}<br>F₁ %{y:.3f}<extra></extra>",
    )  # fmt: skip
    for at, row in enumerate(made.free):
        figure.add_hline(
            y=row["SetF"] or 0.0, line={"color": GREY, "dash": "dot"},
            annotation={"text": f"{label(row['name'], 56)} {row['SetF'] or 0.0:.3f}"},
            annotation_position="bottom right" if at % 2 else "top left",
        )  # fmt: skip
    even = made.break_even_error_rate
    if even is not None:
        figure.add_vline(
            x=1 - even, line={"color": ORANGE, "dash": "dash"}, annotation={"text": f"break-even {1 - even:.1%}"},
            annotation_position="top left",
        )  # fmt: skip
    x = {"range": [1 - max(rates) - 0.02, 1.02], "tickformat": ".0%"}
    title = "mean F₁, bars from the worst to the best of three draws"
    return laid_out(figure, title, "share of chunks decided rightly", "F₁", x, {"range": [0, 1.05]})


def laid_out(figure: Any, title: str, x_title: str, y_title: str, x: Mapping[str, Any], y: Mapping[str, Any]) -> Any:
    """The figure with title, axes and its legend below."""
    figure.update_layout(
        height=420,
        margin={"l": 60, "r": 24, "t": 44, "b": 50},
        title={"text": title, "font": {"size": 14}},
        xaxis={"title": {"text": x_title}, **x},
        yaxis={"title": {"text": y_title}, **y},
        legend={"orientation": "h", "y": -0.2},
    )
    return figure


# What references bring


def references(bench: Bench, pipeline: Pipeline, place: int, session: Session) -> None:
    """Chunks and tokens per depth of EXPAND, of the question in sight and in the mean of dev."""
    stage = stage_at(pipeline, place)
    if not any(chunk.ref_ids for chunk in bench.chunks.values()):
        st.markdown("No chunk of this project refers to another: there is nothing to expand.")
        return
    case = sight.question_in_sight(session, state.current().question)
    left, right = st.columns(2)
    with left:
        st.markdown("**Mean of dev**")
        _by_depth("references on dev", depths(bench, stage.max_chunks, stage.max_total_chunks))
    if case is not None:
        with right:
            st.markdown("**This question**")
            one = bench_of(session, pipeline, place, [case])
            _by_depth("references of this question", depths(one, stage.max_chunks, stage.max_total_chunks))
    st.caption(
        f"The nearest {stage.max_chunks} chunks and what they refer to, at most {stage.max_total_chunks} by one of "
        "them, each chunk once. Tokens are estimated, a quarter of the characters."
    )


def _by_depth(name: str, rows: Sequence[Depth]) -> None:
    take_along(
        name,
        {
            "depth": [row.depth for row in rows],
            "chunks": [row.chunks for row in rows],
            "tokens": [row.tokens for row in rows],
            "share relevant": [row.relevant for row in rows],
            "share of the relevant": [row.found for row in rows],
        },
        config={
            **formats("chunks", form="%.1f"),
            **formats("tokens", form="%.0f"),
            **formats("share relevant", "share of the relevant", form="percent"),
        },
    )


# Forms of numbers


def shown(value: float | None) -> str:
    """Three digits, or a dash where a figure does not apply."""
    return "–" if value is None else f"{value:.3f}"


def formats(*names: str, form: str = THREE) -> dict[str, Any]:
    """Columns with one form of number."""
    return {name: st.column_config.NumberColumn(name, format=form) for name in names}


VIEWS = {DECISIONS: decisions, PROMPTS: prompts, REPEAT: repeat, GOOD: how_good, REFERENCES: references}
