"""Questions: the project's questions in one table, their sides, and what can be done with them.

The parts beside the table are add.py (paste, drop, preview) and change.py (tags, guidelines, what is held out, copies).
Everything shown comes from the session; nothing here reads a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from pages import rail, state
from pages.components import resources, say
from pages.components.act import tell
from pages.questions import add, change
from pages.widgets.take_along import table
from rag_core.errors import WinnowError
from rag_core.eval_sets.facts import made_counts
from rag_core.eval_sets.queries import expected_answer
from rag_core.project.ledger import looks_at
from rag_core.project.session import Session
from rag_core.project.split import Sides, families_of
from rag_core.store.events import GRADES
from rag_core.text import counted
from rag_core.types import Case

HELP = """
**dev** questions are for choosing settings; **held-out** ones judge what was chosen, as rarely as you can. The side is
decided once, by chance over *families* (questions that ask the same in other words), and no label or tag moves it.
**examples** are there to be looked at and count in no figure.

**labels** are grades of chunks for this question, those that came with the project and those given here.

A table of CSV or JSONL may bring `id`, `tags`, `split` (dev or test) and `expected_answer` beside the question.

On the command line: `winnow eval-sets --help`.
"""
SIDE_WORDS = {"dev": "dev", "held_out": "held-out", "examples": "example", "straddling": "neither"}
FEW = 30  # held-out questions under which the page says that they decide little
FIND, SIDE, PART = "questions.find", "questions.side", "questions.part"
ADD, TAGS, HELD_OUT, GUIDELINES, COPY = "Add", "Change", "Held out", "Guidelines", "Copy"
ROWS = 12  # of the table in sight beside the parts


def sides_of(split: Sides) -> dict[str, str]:
    """Question id → its side in the words of the page."""
    return {query: word for side, word in SIDE_WORDS.items() for query in getattr(split, side)}


def draw_figures(session: Session, split: Sides, cases: Sequence[Case]) -> None:
    """How many there are on which side, how often the held-out ones were looked at, and what relevant means."""
    seen = looks_at(session.project.state, split.name)
    families = _families(tuple((case.query.id, case.query.text) for case in cases), session)
    grade = session.project.min_grade
    grades = ", ".join(f"{number} {word}" for number, word in GRADES.items())
    made = made_counts(cases)
    figures = {
        "questions": (f"{len(cases):,}", ""),
        "families": (f"{families:,}", "Questions that ask the same in other words: they stay on one side."),
        "dev": (f"{len(split.dev):,}", "Settings are chosen on these."),
        "held-out": (f"{len(split.held_out):,}", "What was chosen is judged on these; nothing is chosen on them."),
        "examples": (f"{len(split.examples):,}", "To be looked at; in no figure."),
        "generated": (f"{made['generated']:,}", "From slots or by a model: they never judge rules, nor models theirs."),
        "from a log": (f"{made['from_log']:,}", "Asked by people of another system; they brought no label."),
        "on both sides": (f"{len(split.straddling):,}", "Their family is on the dev side too: they judge nothing."),
        "looks at held-out": (
            f"{seen:,}",
            "Pipelines judged on the held-out questions. Each makes the next worth less.",
        ),
        "relevant from grade": (f"{grade}", f"A chunk with this grade or a higher one counts as relevant: {grades}."),
    }
    with st.container(horizontal=True, gap="medium", key="questions.figures"):
        for name, (value, meaning) in figures.items():
            if value != "0" or name not in ("examples", "generated", "from a log", "on both sides"):
                said = f":gray[{name}] **{value}**" if name.startswith("relevant") else f"**{value}** :gray[{name}]"
                st.markdown(said, width="content", help=meaning or None)


@st.cache_data(max_entries=8, show_spinner=False)
def _families(asked: tuple[tuple[str, str], ...], _session: Session) -> int:
    return families_of([case.query for case in _session.cases])


def draw_table(session: Session, split: Sides) -> list[Case]:
    """All questions that match what was typed and chosen above; returns those, or the rows that were picked."""
    cases, sides = session.cases, sides_of(split)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        words = st.text_input("Find", key=FIND, max_chars=200, placeholder="a word, an id or a tag", width=320)
        there = [word for word in SIDE_WORDS.values() if word in set(sides.values())]
        side = st.segmented_control("Side", there, key=SIDE)
    needle = (words or "").strip().casefold()
    shown = [case for case in cases if _matches(case, needle) and side in (None, sides.get(case.query.id))]
    columns: dict[str, list[Any]] = {
        "question": [case.query.text for case in shown],
        "side": [sides.get(case.query.id, "") for case in shown],
        "labels": [len(case.grades) for case in shown],
        "tags": [", ".join(case.query.tags) for case in shown],
        "expected answer": [expected_answer(case.query) for case in shown],
        "id": [case.query.id for case in shown],
    }
    always = ("question", "side", "labels")
    columns = {name: values for name, values in columns.items() if name in always or any(values)}
    picked: Any = table(
        columns,
        "questions.table",
        f"{len(shown)} questions with side and number of labels",
        tall=1000,
        config={
            "question": st.column_config.TextColumn(width="large"),
            "labels": st.column_config.NumberColumn(width="small", help="Chunks graded for this question."),
            "side": st.column_config.TextColumn(width="small"),
            "tags": st.column_config.TextColumn(width="small"),
        },
        on_select="rerun",
        selection_mode="multi-row",
    )
    rows = [row for row in picked.selection.rows if row < len(shown)]
    if len(shown) < len(cases) or rows:
        picked_too = f", {len(rows):,} picked" if rows else ""
        st.markdown(f":small[:gray[{len(shown):,} of {len(cases):,} shown{picked_too}]]")
    return [shown[row] for row in rows] if rows else shown


def _matches(case: Case, needle: str) -> bool:
    query = case.query
    return not needle or any(needle in text.casefold() for text in (query.text, query.id, *query.tags))


def draw_advice(session: Session, split: Sides) -> None:
    """What these questions are good for, said early, and the next place."""
    unlabelled = sum(not case.grades for case in session.cases)
    with st.container(horizontal=True, vertical_alignment="center", key="questions.next"):
        if len(split.held_out) < FEW:
            decide = counted(len(split.held_out), "held-out question decides", "held-out questions decide")
            st.markdown(
                f":material/info: **{decide} little**: under {FEW}, only large differences can be told from chance. "
                "More questions help most, yours or your users’; in the meantime every figure says how sure it is.",
                width="stretch",
            )
        if unlabelled:
            rail.link("labels", f"Label: {unlabelled:,} without any label yet")
        else:
            rail.link("bench", "See what the pipelines do with them")


def draw_parts(session: Session, cases: Sequence[Case]) -> None:
    """What can be done, one part at a time."""
    parts: Mapping[str, Any] = {
        ADD: lambda: add.show(session),
        TAGS: lambda: change.tags(session, cases),
        HELD_OUT: lambda: change.held_out(session),
        GUIDELINES: lambda: change.guidelines(session),
        COPY: lambda: change.copies(session),
    }
    part = st.segmented_control("Do", list(parts), default=ADD, required=True, key=PART, label_visibility="collapsed")
    parts[str(part)]()


def draw() -> None:
    """The page."""
    rail.head("questions", HELP)
    try:
        session = state.session()
        cases = session.cases
    except WinnowError as error:
        change.broken(str(error))
        return
    tell(change.DONE)
    if not cases:
        add.show(session)
        return
    split = session.split
    draw_figures(session, split, cases)
    draw_advice(session, split)
    table, parts = st.container(key="questions-body").columns([3, 2], gap="large")
    with table:
        chosen = draw_table(session, split)
    with parts:
        draw_parts(session, chosen)


try:
    draw()
except WinnowError as error:
    say.problem("This cannot be shown.", str(error))
state.write_address()
resources.settle()
