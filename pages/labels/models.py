"""What models say: their agreement with people, and their grades of the chunks this person has labelled.

A model's grade of a chunk without the person's own label is not shown, so that nothing leads the label. Reasons are
foreign text and stand in cells only.
"""

from __future__ import annotations

import streamlit as st

from pages.components import glossary
from pages.labels import pool
from rag_core.labelling.judge_agreement import JudgeAgreement, judge_agreement
from rag_core.project.session import Session
from rag_core.store.events import GRADES
from rag_core.store.labels import LabelStore
from rag_core.store.model_labels import after_own_label, models, peoples_grades, runs_of

MOST_SHOWN = 500
HOW = "python -m rag_core labels judge --eval-set {name} --only labelled --repeats 2"


def show(session: Session, store: LabelStore, annotator: str) -> None:
    """Draw the view."""
    name = session.project.labels
    names = models(store, name)
    if not names:
        st.markdown(
            "**No model has graded this project.** One proposes labels that count nowhere until it has proved; it "
            "costs money, so it runs on the command line, with an estimate first:"
        )
        st.code(HOW.format(name=session.project.name), language=None, wrap_lines=True)
        return
    for model in names:
        files = {case.query.id: case.grades for case in session.project.eval_set.cases}
        people = peoples_grades(store, name, store.labels(name, model), files)
        _agreement(judge_agreement(model, people, runs_of(store, name, model), session.project.min_grade))
    _grades(session, store, annotator)


def _agreement(found: JudgeAgreement) -> None:
    with st.container(border=True):
        st.text(found.words)
        with st.container(horizontal=True):
            st.metric("Cohen’s kappa, relevant or not", _digits(found.kappa), help=glossary.told("kappa"))
            st.metric("95 % interval", f"{_digits(found.low)} to {_digits(found.high)}", help=glossary.told("interval"))
            st.metric("kappa of the grades", _digits(found.grade_kappa), help=glossary.told("kappa"))
            flips = "asked once" if found.flip_rate is None else f"{found.flip_rate:.0%}"
            st.metric("grades that flip over runs", flips, help="Given another grade by a later run. Lower is better.")
        rows = {"people say": [f"{grade} {word}" for grade, word in GRADES.items()]}
        for grade in GRADES:
            rows[f"model says {grade}"] = [str(row[grade]) for row in found.confusion]
        st.dataframe(rows, hide_index=True, width="stretch", alt="How often each grade of people met each of the model")


def _digits(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _grades(session: Session, store: LabelStore, annotator: str) -> None:
    name, chunks = session.project.labels, pool.chunks_of(session)
    asked = {case.query.id: case.query.text for case in session.cases}
    own = {(event.query_id, event.chunk_key): event.grade for event in store.labels(name, annotator)}
    rows = [
        {"question": asked.get(event.query_id, event.query_id), "chunk": chunks.title(event.chunk_id),
         "you": _said(own[item]), "model": _said(event.grade), "differ": "≠" if own[item] != event.grade else "",
         "reason": event.note, "which model": event.annotator}
        for item, events in after_own_label(store, name, annotator).items()
        for event in events
    ]  # fmt: skip
    differing = sum(bool(row["differ"]) for row in rows)
    st.markdown(f"**Chunks you and a model graded: {len(rows):,}**, otherwise: {differing:,}")
    if not rows:
        st.markdown(":gray[What a model says of a chunk is shown once you have labelled it yourself.]")
        return
    rows.sort(key=lambda row: not row["differ"])
    st.dataframe(rows[:MOST_SHOWN], hide_index=True, width="stretch", alt="Your grades beside the model’s")


def _said(grade: int | None) -> str:
    return "unsure" if grade is None else str(grade)
