"""The table of contents: every page with its title and icon, under the headings of the menu on top of every page."""

from __future__ import annotations

import streamlit as st


def pages() -> dict[str, list[st.Page]]:
    """The pages under the headings of the menu; Explore opens at the root address."""
    return {
        "See": [
            st.Page("pages/explore.py", title="Explore", icon=":material/filter_alt:", default=True),
            st.Page("pages/history.py", title="History", icon=":material/history:"),
            st.Page("pages/start.py", title="Start", icon=":material/flag:"),
        ],
        "Label": [
            st.Page("pages/label.py", title="Label", icon=":material/new_label:"),
            st.Page("pages/eval_sets.py", title="Eval sets", icon=":material/checklist:"),
        ],
        "Filter": [
            st.Page("pages/rules.py", title="Rules", icon=":material/rule:"),
            st.Page("pages/entities.py", title="Entities", icon=":material/group_work:"),
            st.Page("pages/llm_filter.py", title="LLM filter", icon=":material/forum:"),
        ],
        "Decide": [
            st.Page("pages/tune.py", title="Tune", icon=":material/tune:"),
            st.Page("pages/evaluate.py", title="Evaluate", icon=":material/analytics:"),
            st.Page("pages/compare.py", title="Compare", icon=":material/compare:"),
            st.Page("pages/headroom.py", title="Headroom", icon=":material/vertical_align_top:"),
        ],
        "Keep": [
            st.Page("pages/corpus.py", title="Corpus", icon=":material/folder_open:"),
            st.Page("pages/status.py", title="Status", icon=":material/monitor_heart:"),
        ],
    }
