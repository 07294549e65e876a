"""The table of contents: every page with its title and icon, in the order of the menu."""

from __future__ import annotations

import streamlit as st


def pages() -> list[st.Page]:
    """The pages; the first opens at the root address."""
    return [
        st.Page("pages/explore.py", title="Explore", icon=":material/filter_alt:", default=True),
        st.Page("pages/label.py", title="Label", icon=":material/new_label:"),
        st.Page("pages/eval_sets.py", title="Eval sets", icon=":material/checklist:"),
        st.Page("pages/rules.py", title="Rules", icon=":material/rule:"),
        st.Page("pages/tune.py", title="Tune", icon=":material/tune:"),
        st.Page("pages/evaluate.py", title="Evaluate", icon=":material/analytics:"),
        st.Page("pages/compare.py", title="Compare", icon=":material/compare:"),
        st.Page("pages/headroom.py", title="Headroom", icon=":material/vertical_align_top:"),
        st.Page("pages/entities.py", title="Entities", icon=":material/group_work:"),
        st.Page("pages/llm_filter.py", title="LLM filter", icon=":material/forum:"),
        st.Page("pages/corpus.py", title="Corpus", icon=":material/folder_open:"),
        st.Page("pages/history.py", title="History", icon=":material/history:"),
        st.Page("pages/start.py", title="Start", icon=":material/flag:"),
    ]
