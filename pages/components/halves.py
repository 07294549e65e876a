"""Which queries of a split eval set are measured: all, or those of one split. One choice for Compare and Evaluate.

A pipeline that was chosen on the dev queries looks too good on them; the test queries alone judge it.
"""

from __future__ import annotations

import streamlit as st

from rag_core.evaluate.sets import EvalSet

ALL, KEY = "all", "halves.split"
HELP = "Settings are chosen on dev queries. Figures that are to judge such a choice are those over test queries alone."


def splits(eval_set: EvalSet) -> list[str]:
    """The names of its splits, in order; none where it is not split."""
    return sorted({str(case.query.metadata["split"]) for case in eval_set.cases if case.query.metadata.get("split")})


def chosen_half(eval_set: EvalSet) -> EvalSet:
    """The set with the queries that are chosen in the sidebar; as it is where it is not split."""
    names = splits(eval_set)
    if not names:
        return eval_set
    with st.sidebar:
        picked = st.segmented_control(
            "Queries", [ALL, *names], default=ALL, required=True, key=KEY, help=HELP, persist_state="session"
        )
    return eval_set.split(picked) if picked in names else eval_set
