"""Settings: does everything work, what was asked, who may do what, and what does the environment set?"""

from __future__ import annotations

import streamlit as st

from pages import rail
from pages.components import resources
from pages.settings import history, people, status

VIEWS = {"Status": status.draw, "History": history.draw, "People": people.draw, "Environment": people.draw_environment}
VIEW, PARAMETER = "settings.view", "view"

HELP = """
**Status** is what `winnow doctor --json` prints. It reads everything once: the model answers, collections and the
database are whole. Nothing is changed and no endpoint is asked anything. `winnow backup FILE` copies workspace and
database into one file.

**History** is every question of one's own that was asked of a collection, on the Bench and by `winnow query`: the
question, all settings, ids, titles and distances of what stayed, how many were dropped where, hops, and times; never
the text of a chunk. An opened link is no question and is not kept. `WINNOW_HISTORY_DAYS` says for how many days (90
unless set; 0 keeps none). *Delete* is real: nothing of a deleted question stays in the store, back-ups keep theirs.

**People** are told apart by a log-in alone; `roles.yaml` says who may do what.
"""


def draw() -> None:
    rail.head("settings", HELP)
    wanted = st.query_params.get(PARAMETER, "")
    if wanted and wanted != st.session_state.get("settings.linked"):
        st.session_state["settings.linked"] = wanted
        named = {name.casefold(): name for name in VIEWS}
        st.session_state[VIEW] = named.get(wanted.casefold(), next(iter(VIEWS)))
    st.session_state.setdefault(VIEW, next(iter(VIEWS)))
    shown = st.segmented_control(
        "View", list(VIEWS), required=True, key=VIEW, label_visibility="collapsed", persist_state="session"
    )
    VIEWS[shown or next(iter(VIEWS))]()
    resources.settle()


draw()
