"""*Answer* on the page *LLM filter*: one question, answered from the unfiltered and from the filtered context.

Nothing is graded. Answers are models' text and shown as plain text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import streamlit as st

from pages.components import llm_asking, resources, say
from pages.components.llm_cost import cost_word
from pages.components.llm_page import Plan, rivals
from rag_core.errors import WinnowError
from rag_core.judged import answering
from rag_core.judged.entrants import endpoint_judge

NEEDS = "Answering needs an endpoint: choose one in the sidebar, or set OPENAI_BASE_URL and OPENAI_MODEL first."


def show(plan: Plan) -> None:
    """Choose a query and who filters, ask, and show both answers of every model side by side."""
    cases = {case.query.id: case for case in plan.bench.cases}
    wanted = st.selectbox(
        "Question", list(cases), format_func=lambda name: f"{name}: {cases[name].query.text[:90]}", key="llm.question"
    )
    found = rivals(plan)
    if not plan.endpoints or not found or wanted is None:
        st.markdown(NEEDS)
    else:
        labels = [one.label for one in found]
        by = st.selectbox("Filtered by", labels, key="llm.answer.by") or labels[0]
        st.caption(
            f"Two answers of each model: {2 * len(plan.endpoints)} calls, and the filter’s own where not stored."
        )
        if st.button("Answer", type="primary", icon=":material/forum:", key="llm.answer"):
            rival = found[labels.index(by)]
            with st.spinner("Asking the models"):
                _ask(plan, wanted, rival)
    for document in answering.kept(resources.workspace(), 5):
        draw(document)


def _ask(plan: Plan, wanted: str, rival: Any) -> None:
    case = next(case for case in plan.bench.cases if case.query.id == wanted)
    stage = replace(rival.stage, judge=rival.judge, chunks=plan.bench.chunks)
    try:
        judges = [endpoint_judge(resources.workspace(), name, store=llm_asking.answers()) for name in plan.endpoints]
        answering.keep(resources.workspace(), answering.answer(case, stage, judges))
    except (WinnowError, OSError) as error:
        say.problem("The question could not be answered.", str(error))


def draw(document: Mapping[str, Any]) -> None:
    """A kept run: the question, both contexts, and per model the two answers."""
    with st.container(border=True):
        st.text(f"{document['query']['text']}\n{document['at']}")
        columns = st.columns(2)
        for column, context in zip(columns, document["contexts"], strict=False):
            with column:
                st.markdown(f"**{'Filtered' if context['name'] == 'filtered' else 'Unfiltered'} context**")
                note = f"\n{context['note']}" if context["note"] else ""
                st.text(f"{len(context['chunks'])} chunks, about {context['tokens']:,} tokens{note}")
                for row in document["answers"]:
                    if row["context"] == context["name"]:
                        _answer(row)


def _answer(row: Mapping[str, Any]) -> None:
    if row["text"] is None:
        st.text(f"{row['judge']} · {row['milliseconds']:,.0f} ms\nNo answer: {row['error']}")
    else:
        st.text(f"{row['judge']} · {_took(row)}")
        st.code(row["text"], language=None, wrap_lines=True)


def _took(row: Mapping[str, Any]) -> str:
    tokens = f"{row['prompt_tokens'] or 0:,} + {row['completion_tokens'] or 0:,} tokens"
    return f"{tokens} · {cost_word(row['cost'])} · {row['milliseconds']:,.0f} ms" + (
        " · stored" if row["cached"] else ""
    )
