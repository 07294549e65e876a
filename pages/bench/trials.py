"""What a judge decided, under the Bench at full width: chunk by chunk, against labels, and how good one must be.

Every figure is over the dev questions, on the list as A's earlier stages leave it, and describes: no verdict is here.
Nothing is asked: stored answers are read. What takes a study of its own is the command `llm-filter`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import streamlit as st

from pages import state
from pages.bench import judge, sight
from pages.bench.judge import SIMULATED
from pages.bench.sight import SeenList
from pages.components import say
from pages.widgets.take_along import take_along
from rag_core.errors import WinnowError
from rag_core.filters.llm.deciding import CAUSES
from rag_core.filters.llm.stage import LLMFilter
from rag_core.judged import trials
from rag_core.judged.entrants import Bench, answer_simulated, endpoint_judge, entrants_of, simulated_judge
from rag_core.judged.trials import Simulation, Trial
from rag_core.labelling.agreement import shown
from rag_core.project.asking import bench_of
from rag_core.project.session import Session
from rag_core.stage import Pipeline
from rag_core.text import counted

RATES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
LOST = {
    "floor": "lost to the floor",
    "oversample": "lost beyond the oversample",
    "model": "lost to the model",
    "cap": "lost over max_chunks",
    "failure": "lost to failed calls",
}
PERCENT = st.column_config.NumberColumn(format="percent")
HELP = """
**Agreement, kappa.** How often the decisions match the labels, on labelled chunks; kappa takes chance out, its interval
is over questions. For what follows a chunk without a label counts as irrelevant: **false drops** are relevant chunks
thrown away, **false keeps** irrelevant ones left in. **Fallback** is the share of questions on which a call failed:
their nearest chunks stay.

**Lost** are relevant chunks that search had put into the list, by what took them: too unlike the question to be judged
(floor), too far down (oversample), the model's word, over `max_chunks`, or a failed call.

On the command line: `winnow llm-filter variants` sets prompts and models beside cheap filters, `study` asks a model
the same again and in reverse order as well.
"""


def section(entry: SeenList, session: Session) -> None:
    """The decisions; a sentence where there are none to look at."""
    with st.container(border=True, key="judge.section"):
        placed = judge.place_of(entry, session)
        if placed is None or not session.dev:
            st.markdown(
                "Decisions are looked at on the dev questions, with the stage switched on: one of both is missing."
            )
            return
        pipeline, place = placed
        stage = pipeline.stages[place]
        assert isinstance(stage, LLMFilter)
        with st.popover("?", help="What the numbers mean"):
            st.markdown(HELP)
        try:
            key = f"judge's list {place}"
            bench: Bench = session.remembered(key, pipeline, lambda: bench_of(session, pipeline, place, session.dev))
            case = sight.question_in_sight(session, state.current().question)
            if case is not None:
                _of_question(bench_of(session, pipeline, place, [case]), stage, session)
            _on_dev(bench, stage, pipeline, session)
            if st.toggle("How good must a judge be?", key="judge.how_good"):
                _how_good(bench, stage, pipeline, session)
        except (WinnowError, OSError) as error:
            say.problem("This cannot be looked at as it is set.", str(error))


def _of_question(bench: Bench, stage: LLMFilter, session: Session) -> None:
    """The list that came to the judge, chunk by chunk: what became of it, why, and its label."""
    (case,) = bench.cases
    assert case.candidates is not None
    result = replace(stage, judge=session.judge, chunks=bench.chunks)(case.candidates)
    kept = {hit.key: str(hit.notes.get(stage.name, "")) for hit in result.hits}
    reasons = {drop.hit.key: drop.reason.text for drop in result.drops}
    listed = {hit.key for hit in case.candidates.hits}
    rows = [*case.candidates.hits[: stage.oversample], *(hit for hit in result.hits if hit.key not in listed)]
    take_along(
        "decisions on this question",
        {
            "chunk": [hit.chunk.title or hit.chunk.id for hit in rows],
            "stays": ["✓ kept" if hit.key in kept else "✕ dropped" for hit in rows],
            "why": [kept.get(hit.key, reasons.get(hit.key, "")) for hit in rows],
            "label": [case.grades.get(hit.chunk.id) for hit in rows],
        },
    )


def _on_dev(bench: Bench, stage: LLMFilter, pipeline: Pipeline, session: Session) -> None:
    """How the decisions agree with the labels, what each step lost, and the relevant chunks thrown away."""
    row, warnings = _measured(bench, stage, pipeline, session)
    actions = row["actions"]
    if not actions:
        st.markdown("The model decided nothing on dev yet: the drawer asks it.")
        return
    agreed = "–" if row["agreement_labelled"] is None else f"{row['agreement_labelled']:.0%}"
    st.text(
        f"{row['name']} on {counted(len(bench.cases), 'dev question', 'dev questions')}: {row['decided']:,} decisions, "
        f"{row['decided_labelled']:,} of them on labelled chunks; agreement {agreed}, "
        f"kappa {shown(row['kappa'], row['kappa_low'], row['kappa_high'], 2)}, "
        f"{counted(row['false_drops'], 'false drop', 'false drops')}, "
        f"{counted(row['false_keeps'], 'false keep', 'false keeps')}, fallback {row['fallback_rate']:.0%}"
    )
    if warnings:
        say.problem("The floor costs more than the model.", " ".join(warnings))
    kept, lost = row["relevant"]["kept"], row["relevant"]["lost"]
    left, right = st.columns(2)
    with left:
        take_along(
            "relevant chunks by step",
            {"step": ["kept", *LOST.values()], "relevant chunks": [kept, *(lost[cause] for cause in CAUSES)]},
        )
    with right:
        take_along(
            "decisions on dev",
            {
                "action": list(actions),
                "given": [one["count"] for one in actions.values()],
                "share relevant": [one["relevant"] for one in actions.values()],
            },
            config={"share relevant": PERCENT},
        )
    rows = row["false_drops_listed"]
    st.markdown(f"**{counted(len(rows), 'relevant chunk', 'relevant chunks')} thrown away** on dev")
    if rows:
        names = ("query", "grade", "title", "reason", "text")
        take_along("relevant chunks thrown away", {name: [one[name] for one in rows] for name in names})


def _measured(
    bench: Bench, stage: LLMFilter, pipeline: Pipeline, session: Session
) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The stage with the chosen judge on what is stored by now, remembered until that changes; and its warnings."""
    chosen, settings = judge.choice(session.workspace)
    if chosen.name == SIMULATED:
        answering = simulated_judge(bench, chosen.error_rate)
    else:
        answering = endpoint_judge(session.workspace, chosen.name, stage.model, store=judge.answers(session.workspace))
    entrants = entrants_of([stage], [answering])
    answer_simulated(bench, entrants)
    known = "" if settings is None else judge.answers(session.workspace).state()
    key = f"decisions {bench.name} {entrants[0].label} {known}"
    trial: Trial = session.remembered(key, pipeline, lambda: trials.compare(bench, entrants))
    return trial.variants[0], tuple(trial.warnings)


def _how_good(bench: Bench, stage: LLMFilter, pipeline: Pipeline, session: Session) -> None:
    """Simulated judges of every accuracy beside the best cheap filter: from where on does a judge pay?"""

    def made() -> Simulation:
        return trials.simulate(bench, stage, RATES, free=["adaptive-default"])

    simulation: Simulation = session.remembered(f"how good {bench.name}", pipeline, made)
    even = simulation.break_even_error_rate
    st.markdown(
        "**No tried judge crosses the best cheap filter.**"
        if even is None
        else f"**A judge must decide {1 - even:.1%} of the chunks rightly to beat the best cheap filter.**"
    )
    if even is not None:  # right throughout it is better; what no rate crosses, all of the chunks do not
        may = {way: "all" if at is None else f"{at:.0%}" for way, at in simulation.break_even_by.items()}
        st.text(
            f"It may keep {may['keeping']} of the irrelevant chunks if it drops nothing relevant, "
            f"or drop {may['dropping']} of the relevant ones if it keeps nothing else."
        )
    st.text(f"The best cheap filter on these lists: {simulation.best_free}. Judges are simulated, from the labels.")
