"""The view "Learned cut" of Tune: a model trained on the dev queries, cross-validated by query, saved as numbers."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from pages.components import say, tuning, tuning_method, tuning_set
from rag_core.errors import InputError
from rag_core.eval_sets.reading import EvalSet
from rag_core.stage import Pipeline
from rag_core.tune.tune import Choice, CrossValidated, cross_validate
from rag_core.types import Case

JUDGED = "tune.learned.judged"


@dataclass(frozen=True, eq=False)
class Trained:
    """The model of all dev queries, and what models of the other folds are worth on each fold."""

    choice: Choice
    crossed: CrossValidated | None


@st.cache_resource(max_entries=12, show_spinner="Training on the dev queries, and on each fold’s others")
def _trained(key: str, front: str, objective: str, min_grade: int, _dev: Sequence[Case]) -> Trained:
    from rag_core.cli.tuning import with_stage
    from rag_core.eval_sets.split import near_duplicates
    from rag_core.tune.learned import choose_trained

    pipeline = with_stage(tuning.FRONTS[front][1], "LearnedCut")
    chooser = partial(choose_trained, pipeline=pipeline, objective=objective, min_grade=min_grade)
    choice = chooser(_dev)
    folds = min(tuning.FOLDS, len(near_duplicates([case.query for case in _dev])))
    if folds < 2:
        return Trained(choice, None)
    try:
        return Trained(choice, cross_validate(_dev, chooser, objective, folds=folds, min_grade=min_grade))
    except InputError:  # a fold whose labels are all of one kind teaches nothing
        return Trained(choice, None)


def draw(key: str, chosen: EvalSet, cases: Sequence[Case], front: str, objective: str) -> None:
    """What the folds say, the judgement, the weights, the file."""
    split = tuning_method.split(chosen, cases)
    if split is None:
        return
    dev, test = split
    try:
        found = _trained(f"{key} {len(dev)}", front, objective, chosen.min_grade, dev)
    except InputError as error:
        say.problem("No cut can be learned from these labels; label irrelevant chunks too.", str(error))
        return
    with st.container(border=True, key="tune.learned"):
        _draw_words(f"{key} {front} {objective}", chosen, test, objective, found)
    _draw_weights(found.choice.pipeline)
    with st.expander("The same from the command line"):
        st.code(
            f"python -m rag_core tune {tuning_method.source_words(chosen)} --method learned "
            f"-p {shlex.quote(tuning.FRONTS[front][1])} --objective {objective} --out learned.json",
            language=None,
            wrap_lines=True,
        )


def _draw_words(key: str, chosen: EvalSet, test: Sequence[Case], objective: str, found: Trained) -> None:
    from rag_core.tune.judgement import sentence

    crossed, choice = found.crossed, found.choice
    if crossed is None:
        st.markdown("**Trained.** There are too few different queries, or too few labels, for folds.")
    else:
        verdict = "better than" if crossed.gain > 0 else "no better than"
        st.markdown(
            f"**Judged by models of the other queries: {verdict} the best fixed k.** Over {crossed.folds} folds "
            f"{objective} {crossed.value:.3f} vs {crossed.baseline_value:.3f} for the best fixed k of the same folds "
            f"({crossed.gain:+.3f}). On its own training queries it shows {choice.value:.3f} "
            f"(optimism {choice.value - crossed.value:+.3f}): that figure says nothing about others."
        )
    kept: Any = st.session_state.get(JUDGED)
    judged = kept[1] if kept is not None and kept[0] == key else None
    if judged is not None:
        st.markdown(sentence(judged))
    arguments = (key, chosen, test, objective, choice)
    look = tuning_method.Look(test, judged is not None, tuning_method.judge, (JUDGED, *arguments))
    words = "The cut trained on all dev queries."
    tuning_method.draw_actions(look, chosen, choice.pipeline, words, "tune.learned")


def _draw_weights(pipeline: Pipeline) -> None:
    """What the model weighs, the heaviest first."""
    parameters = next(stage for stage in pipeline.stages if stage.name == "LearnedCut").settings()["parameters"]
    rows = sorted(zip(parameters["features"], parameters["weights"], strict=True), key=lambda row: -abs(row[1]))
    tuning_set.quiet(
        "What the model weighs of each chunk, per standard deviation: above zero speaks for relevant. "
        f"A logistic regression with {len(rows)} features; the list ends where the expected F is greatest."
    )
    st.dataframe(
        {"feature of the chunk’s place": [name for name, _ in rows], "weight": [weight for _, weight in rows]},
        hide_index=True,
        key="tune.weights",
        column_config={"weight": st.column_config.NumberColumn(format="%+.3f")},
        alt="Features of the learned cut with their weights, the heaviest first",
    )
