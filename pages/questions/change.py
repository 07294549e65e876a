"""What can be changed about a project's questions: tags, taking away, what is held out, guidelines, copies, the end.

Shipped projects are copied first, or go back to their beginning; questions, tags and guidelines of theirs stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import streamlit as st

from pages import state
from pages.components import resources, say, who
from pages.components.act import act, meant
from pages.widgets.take_along import table
from rag_core.errors import InputError
from rag_core.eval_sets import writing as set_writing
from rag_core.project.deeds import CHANGE_PROJECT, CHANGE_SET, RESET_LABELS, Kind
from rag_core.project.ledger import looks
from rag_core.project.project import copy_project, reset_overlay
from rag_core.project.session import Session
from rag_core.project.split import reset_held_out
from rag_core.store.exchange.planning import copy_labels
from rag_core.store.labels import LabelStore
from rag_core.text import counted
from rag_core.types import Case

DONE = "questions.done"
TAG, NAME, WITH_LABELS, TEXT = "questions.tag", "questions.copy.name", "questions.copy.labels", "questions.guidelines"


def do(what: Callable[[], Any], done: Callable[[Any], str], kind: Kind = CHANGE_SET) -> bool:
    """Do what a button asks for, a deed of that kind on this project; whether it was done."""
    return act(DONE, kind, state.current().project, lambda _: what(), done)


def tags(session: Session, cases: Sequence[Case]) -> None:
    """Tags of the questions in sight or picked, and taking these questions away."""
    project = session.project
    if project.shipped:
        st.markdown("**A shipped project stays as it is.** Make a copy to tag or change its questions.")
        copy_form(session)
        return
    ids = [case.query.id for case in cases]
    which = "all" if len(ids) == len(session.cases) else f"these {len(ids):,}"
    st.markdown(f"**Tags of {which}**: figures can be asked for one tag alone. Pick rows or type in *Find* to choose.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("Tag", key=TAG, max_chars=60, placeholder="movement", width=200)
        for word, how in (("Add to", "add"), ("Remove from", "remove")):
            st.button(
                f"{word} {which}", key=f"questions.tag.{how}", disabled=not ids, on_click=_tag, args=(session, ids, how)
            )
    st.markdown("**Take away**: labels in the label store stay, and count again when a question of that id comes back.")

    def remove() -> bool:
        return do(
            lambda: set_writing.remove_queries(project.workspace, project.folder.name, ids),
            lambda count: f"{counted(count, 'question', 'questions')} taken away.",
        )

    of_all = f"Yes, {which} of the {len(session.cases):,}"
    meant(of_all, "Take away", ":material/delete:", "questions.remove", remove, can=bool(ids))


def _tag(session: Session, ids: list[str], how: str) -> None:
    def change() -> int:
        tag = str(st.session_state.get(TAG) or "").strip()  # what stands there by now: typed, then clicked
        if not tag:
            raise InputError("the tag is empty, expected a name")
        project = session.project
        return set_writing.change_tags(project.workspace, project.folder.name, ids, **{how: [tag]})

    do(change, lambda count: f"Tags of {counted(count, 'question', 'questions')} changed.")


def held_out(session: Session) -> None:
    """How the sides came about, who looked, and drawing them anew."""
    split, rows = session.split, looks(session.project.state)
    if split.declared:
        st.markdown("**The sides come with the questions** (`split` of each), so they stay as they are.")
    else:
        st.markdown(
            f"**{len(split.dev):,} dev and {len(split.held_out):,} held-out**, by chance over families of questions, "
            "decided when a question was first seen. Labels, tags and settings never move one."
        )
    now = [one for one in rows if one.split == split.name]
    st.markdown(
        "**Looks at the held-out questions so far: "
        f"{len({one.key for one in now}):,}**"
        + (f", and {len(rows) - len(now):,} at earlier ones" if len(rows) > len(now) else "")
    )
    if rows:
        table(
            [
                {
                    "when": one.at[:16].replace("T", " "),
                    "who": one.by,
                    "pipeline": one.name or one.pipeline[:8],
                    "where": one.place,
                    "questions": one.questions,
                    "held out then": "now" if one in now else "earlier",
                }
                for one in reversed(rows)
            ],
            "questions.change.table",
            "Looks at held-out questions, newest first",
            tall=180,
        )
    if split.declared:
        return
    st.markdown(
        "**Draw the sides anew** when the held-out questions were looked at so often that they judge nothing any more. "
        "The old sides and looks are kept. Pipelines chosen until now were chosen on some of the new ones."
    )

    def draw_anew() -> bool:
        said = "The sides are drawn anew; the old ones are kept."
        return do(lambda: reset_held_out(session.project), lambda _: said, CHANGE_PROJECT)

    meant("Yes, draw them anew", "Draw anew", ":material/shuffle:", "questions.reset", draw_anew)


def guidelines(session: Session) -> None:
    """What people who label read beside the queue."""
    project = session.project
    text = set_writing.guidelines(project.folder)
    if project.shipped:
        st.markdown("**No guidelines of its own.**" if not text else "**Guidelines**, read beside the label queue")
        if text:
            st.code(text, language=None, wrap_lines=True)
        return
    st.markdown("**Guidelines** for those who label, read beside the queue. Markdown is stored as it is written.")
    written = st.text_area(
        "Guidelines",
        text,
        height=300,
        key=f"{TEXT}.{project.name}",
        label_visibility="collapsed",
        placeholder="- 0: says nothing about what is asked\n- 3: the answer is in it",
    )
    if st.button("Store the guidelines", type="primary", key="questions.guide"):
        do(
            lambda: set_writing.write_guidelines(project.workspace, project.folder.name, written or ""),
            lambda _: "The guidelines are stored.",
        )
        st.rerun()


def copies(session: Session) -> None:
    """A copy of one's own; the way back to the beginning of a shipped project; the end of one's own."""
    project = session.project
    copy_form(session)
    st.divider()
    if project.shipped:
        st.markdown(
            "**Back to the beginning**: takes away pipelines, looks and labels that were added to this project here."
        )
        question = f"Yes, reset {say.plain(project.title)}"
        meant(question, "Reset", ":material/restart_alt:", "questions.shipped", lambda: _reset(session))
    elif (project.folder / set_writing.META).is_file():
        st.markdown(
            "**Delete this project** with its questions, pipelines and looks, for good. Its labels stay in the label "
            "store, its collection on Data."
        )
        _offer_end(project.name, "Delete")


def copy_form(session: Session) -> None:
    """Name and button of a copy."""
    st.markdown("**A copy of your own**: questions keep their sides, so that nothing held out is opened.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("Name of the copy", key=NAME, max_chars=64, placeholder=f"{session.project.name}-2", width=220)
        icon = ":material/content_copy:"
        st.button("Copy", type="primary", icon=icon, key="questions.copy", on_click=_copy, args=(session,))
    st.toggle("with the labels given here", value=True, key=WITH_LABELS)


def _copy(session: Session) -> None:
    name = str(st.session_state.get(NAME) or "").strip()
    wanted = bool(st.session_state.get(WITH_LABELS, True))

    def make() -> int:
        made = copy_project(session.workspace, session.project.name, name)
        if not wanted or not resources.has_store():
            return 0
        by = who.deed(CHANGE_SET, name).signature
        return copy_labels(LabelStore(resources.label_store()), session.project.labels, made.labels, by).written

    copied = f"Copied {session.project.name} to {name}"
    if do(make, lambda count: f"{copied} with {counted(count, 'label', 'labels')}." if count else f"{copied}."):
        state.change(project=name)


def _reset(session: Session) -> bool:
    def back() -> int:
        count = 0
        if resources.has_store():
            token, by = f"reset-{uuid4().hex}", who.deed(RESET_LABELS, session.project.name).signature
            count = LabelStore(resources.label_store()).undo_all(session.project.labels, token, token, by)
        reset_overlay(session.project)
        return count

    said = "Back at the beginning; {} taken back."
    done = do(back, lambda count: said.format(counted(count, "label", "labels")), RESET_LABELS)
    if done:
        state.change(a="", b="", c="")
    return done


def _offer_end(name: str, label: str) -> None:
    """The box and the button that delete a project."""

    def delete() -> bool:
        done = do(lambda: set_writing.delete_set(resources.workspace(), name), lambda _: f"{name} is deleted.")
        if done:
            state.change(project=state.DEFAULT_PROJECT)
        return done

    # a key for each project: a box that was ticked for one says nothing of another
    meant(f"Yes, delete {say.plain(name)}", label, ":material/delete:", f"questions.delete.{name}", delete)


def broken(why: str) -> None:
    """A project that cannot be read: why, and the end of it where it is one's own."""
    say.problem("The questions of this project cannot be read.", why)
    name = state.current().project
    if (resources.workspace() / "eval_sets" / name / set_writing.META).is_file():
        _offer_end(name, "Delete it")
