"""The rail on top of every page: whose project it is, and the five places in the order of the work.

Drawn once by app.py before the page. A place says in three words where it stands, and what to do next where something
is missing; nothing on it is of another project than the chosen one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from pages import state
from pages.components import say
from pages.labels.queue import tell_waiting
from rag_core.errors import WinnowError
from rag_core.index.collection import list_collections
from rag_core.project.project import CALLABLE, COLLECTION, LISTS, NOTHING, project_names, title_of_project
from rag_core.project.session import Session
from rag_core.workspace import resolve_workspace

ENTERED = "rail.entered"  # whether Data was reached since a new project was begun
NEW_PROJECT = "New project…"  # no name of a project: it holds a blank


@dataclass(frozen=True, slots=True)
class Place:
    """A page of the rail: where its script is, and the question it answers."""

    name: str
    title: str
    icon: str
    question: str

    @property
    def script(self) -> str:
        """The file that st.Page runs, from the app's folder."""
        return f"pages/{self.name}/page.py"

    def page(self, default: bool = False) -> st.Page:
        """The page for st.navigation; the default one stands at the root address."""
        path = f"{self.name}-first" if default else self.name  # its own name leads there
        return st.Page(self.script, title=self.title, icon=self.icon, url_path=path, default=default)


PLACES = (
    Place("data", "Data", ":material/database:", "What is in it, and which families crowd out answers?"),
    Place("questions", "Questions", ":material/help:", "What is measured with, and what is held out?"),
    Place("labels", "Labels", ":material/new_label:", "Is this chunk relevant, and how much is known?"),
    Place("bench", "Bench", ":material/filter_alt:", "What does each stage do, and is B better than A?"),
    Place("ship", "Ship", ":material/rocket_launch:", "How does it get into my system, and stay good there?"),
)
SETTINGS = Place("settings", "Settings", ":material/settings:", "Does everything work, and who may do what?")
PLACE = {place.name: place for place in (*PLACES, SETTINGS)}


def standing(place: Place, session: Session) -> str:
    """Where a place stands, in three words; what is missing is said as that."""
    project = session.project
    if place.name == "data":
        if project.source.kind == COLLECTION:
            if not (session.workspace / "collections" / project.source.name).is_dir():
                session.refresh()  # a set's corpus becomes a collection at first sight
            known = {one.name: one for one in list_collections(session.workspace)}
            held = known.get(project.source.name)
            if held is None or held.problem or not held.chunks:
                return "not ingested yet"
            return f"{held.chunks:,} {'chunk' if held.chunks == 1 else 'chunks'} ✓"
        words = {LISTS: "recorded lists ✓", CALLABLE: "your function ✓", NOTHING: "nothing yet"}
        return words[project.source.kind]
    if place.name == "questions":
        count = len(session.cases)
        return f"{count:,} ✓" if count else "none yet"
    if place.name == "labels":
        count = sum(len(case.grades) for case in session.cases)
        return f"{count:,}" if count else "none yet"
    if place.name == "ship":
        saved = len(session.pipeline_names())
        return f"{saved} saved" if saved else "nothing yet"
    return ""


def show(page: str) -> None:
    """Mark, project, the five places, settings; a project that cannot be opened is said, and the demo offered.

    `page` is the path of the page that is drawn below: a new project is begun in Data, and left with it.
    """
    state.read_address()
    if state.beginning() and page != PLACES[0].name:
        if st.session_state.pop(ENTERED, False):
            st.session_state[state.BEGINNING] = False
        else:
            st.switch_page(PLACES[0].script)
    st.session_state[ENTERED] = state.beginning()
    workspace = resolve_workspace()
    names = [*project_names(workspace), NEW_PROJECT]
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="rail"):
        st.markdown(":material/filter_alt: **Winnow**", width="content")
        wanted = NEW_PROJECT if state.beginning() else state.current().project
        st.session_state["rail.project"] = wanted if wanted in names else None
        st.selectbox(
            "Project",
            names,
            key="rail.project",
            format_func=lambda name: name if name == NEW_PROJECT else title_of_project(name, workspace),
            on_change=_take,
            placeholder="choose a project",
            label_visibility="collapsed",
            width=210,
        )
        session: Session | None = None
        why = ""
        try:
            session = None if state.beginning() else state.session()
        except WinnowError as error:
            why = str(error)
        for place in PLACES:
            try:
                said = standing(place, session) if session is not None else ""
            except WinnowError:
                said = "cannot be read"  # why, the place itself says
            st.page_link(
                place.script,
                label=f"{place.title} :gray[{said}]" if said else place.title,
                icon=place.icon,
                help=place.question,
                query_params=state.link(),
            )
        st.page_link(SETTINGS.script, label="", icon=SETTINGS.icon, help=SETTINGS.question)
    if page != "labels":
        with st.container(key="waiting"):
            tell_waiting()
    if why:
        say.problem("This project cannot be opened.", why)
        st.button("Open the demo", on_click=state.change, kwargs={"project": state.DEFAULT_PROJECT})
    if state.problem():
        say.problem("The link could not be followed as it is; what it names else is shown.", state.problem())


def head(name: str, help_text: str) -> None:
    """The first line of a place: the question it answers, small, and help behind `?`."""
    place = PLACE[name]
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", key="head"):
        st.markdown(f":small[:gray[{place.question}]]")
        with st.popover("?", help="What stands on this page, and how it is meant"):
            st.markdown(help_text)


def link(name: str, words: str) -> None:
    """A way to another place with the state as it is."""
    place = PLACE[name]
    st.page_link(place.script, label=f"{words} →", icon=place.icon, query_params=state.link(), width="content")


def _take() -> None:
    """Choose a project, or begin a new one."""
    name = st.session_state["rail.project"]
    if name == NEW_PROJECT:
        state.begin()
    elif name:
        state.change(project=name)


# The table of contents: where the addresses lead that had a page once

FIRST = "bench"
"""The place at the root address."""
MOVED = {
    "bench": "bench",
    "explore": "bench",
    "start": "bench",
    "tune": "bench",
    "compare": "bench",
    "evaluate": "bench",
    "headroom": "bench",
    "llm_filter": "bench",
    "entities": "bench",
    "label": "labels",
    "eval_sets": "questions",
    "corpus": "data",
    "rules": "data",
    "history": "settings",
    "status": "settings",
}
"""Addresses without a page of their own, which links of before may name, and the place that each became."""
PART = {"rules": {"section": "Families"}, "history": {"view": "history"}, "status": {"view": "status"}}
"""Old address → the part of the place that answers it."""
SEEN = {
    "tune": {"zoom": state.ALL},
    "compare": {"zoom": state.ALL, "lens": state.DIFFERENCES},
    "evaluate": {"zoom": state.ALL, "lens": state.DIFFERENCES},
    "headroom": {"zoom": state.ALL, "lens": state.LOSSES},
}
"""Old address → how the Bench is looked at there."""


def pages() -> list[st.Page]:
    """Every page: the places, settings, and the addresses that only lead on."""

    def on(old: str) -> Callable[[], None]:
        """What runs at an old address: on to its place, with the project, question and pipelines of the link."""

        def follow() -> None:
            state.follow_older_link()
            problem = state.problem()
            state.change(**SEEN.get(old, {}))
            st.session_state[state.PROBLEM] = problem
            st.switch_page(PLACE[MOVED[old]].script, query_params={**PART.get(old, {}), **state.link()})

        return follow

    moved = [st.Page(on(old), title=PLACE[new].title, url_path=old) for old, new in MOVED.items()]
    return [*(place.page(default=place.name == FIRST) for place in PLACE.values()), *moved]
