"""Drawers: everything of a stage that is no number to be dragged. The form comes from its settings; a stage names what
else belongs into its drawer (`Stage.drawer`), and the Bench knows no stage by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import streamlit as st

from pages import state
from pages.bench import entities, judge, sight, trials, tuning
from pages.bench.sight import SeenList
from pages.components import inert_text, say
from pages.components.inert_text import Block, TextRun, marked
from pages.forms import stage_form
from rag_core.errors import InputError
from rag_core.project.session import Session
from rag_core.rules.match import chip_text, decide
from rag_core.rules.rule import Rule, read_rule
from rag_core.spec import STAGES, make_stage, stage_class
from rag_core.stage import Pipeline, would_keep
from rag_core.text import STOP_WORDS, tokenize

ADD = -1
"""The drawer in which a stage is added."""
SECTION = "bench.section"
Put = Callable[[list[SeenList]], None]


def show(opened: int, stages: Sequence[SeenList], session: Session, put: Put) -> None:
    """The drawer of a stage, or the one that adds a stage, in the sidebar."""
    with st.sidebar:
        st.button("Close", icon=":material/close:", type="tertiary", key="drawer.close", on_click=close)
        if opened == ADD:
            _add(stages, put)
        elif 0 <= opened < len(stages):
            _form(opened, list(stages), session, put)


def close() -> None:
    """Put the drawer away."""
    st.session_state["bench.drawer"] = None


def _form(index: int, stages: list[SeenList], session: Session, put: Put) -> None:
    stage = stages[index].stage
    st.markdown(f"### {stage.title}\n:small[:gray[{stage.meaning}]]")
    if stage.kind == "source":
        _another_source(index, stages, put)
    changed = stage_form(stage, key=f"drawer.{index}.{stage.name}")
    if changed != stage:
        stages[index] = replace(stages[index], stage=changed)
        try:
            put(stages)
        except InputError as error:
            say.problem("This setting cannot be taken over.", str(error))
            return
        st.rerun()
    tuning.show(index, stages, session)
    for draw in DRAWERS.get(stage.drawer, ()):
        draw(stages[index], session)
    if stage.drawer in SECTIONS:
        st.toggle(SECTIONS[stage.drawer][0], key=SECTION, help="Opens below the Bench, at full width.")


def section(opened: int, stages: Sequence[SeenList], session: Session) -> None:
    """Below the Bench, what of the opened drawer needs width, once its switch is on."""
    if 0 <= opened < len(stages) and st.session_state.get(SECTION):
        of_drawer = SECTIONS.get(stages[opened].stage.drawer)
        if of_drawer is not None:
            of_drawer[1](stages[opened], session)


def _another_source(index: int, stages: list[SeenList], put: Put) -> None:
    """How the questions are searched: one source in place of another, its settings kept where both have them."""
    stage = stages[index].stage
    names = [name for name in STAGES if stage_class(name).kind == "source"]
    chosen = st.selectbox(
        "Search",
        names,
        index=names.index(stage.name),
        format_func=lambda name: stage_class(name).title,
        key="drawer.source",
    )
    if chosen and chosen != stage.name:
        held = {one.name for one in stage_class(chosen).declared()}
        stages[index] = SeenList(make_stage(chosen, {k: v for k, v in stage.settings().items() if k in held}))
        put(stages)
        st.rerun()


def _add(stages: Sequence[SeenList], put: Put) -> None:
    """Every stage there is, with what it does; it goes where the spec allows it, and can be moved then."""
    st.markdown("### Add a stage")
    for name in STAGES:
        cls = stage_class(name)
        there = any(entry.stage.kind == "source" for entry in stages)
        if cls.kind == "source" and there:
            continue
        st.button(
            cls.title,
            key=f"drawer.add.{name}",
            help=cls.meaning,
            width="stretch",
            on_click=_added,
            args=(name, list(stages), put),
        )


def _added(name: str, stages: list[SeenList], put: Put) -> None:
    stage = make_stage(name)
    front = sum(entry.stage.kind == "rewrite" for entry in stages)
    if stage.kind == "rewrite" or stage.kind == "source":
        place = front
    else:
        # In front of a last cut: what is dropped before it does not count against the number it keeps.
        cuts = [at for at, entry in enumerate(stages) if entry.stage.is_cut]
        place = cuts[-1] if cuts and not stage.is_cut else len(stages)
    stages.insert(place, SeenList(stage))
    try:
        put(stages)
        st.session_state["bench.drawer"] = place
    except InputError as error:
        st.session_state["bench.notice"] = str(error)


# What belongs to a stage beside its settings


def _rules(entry: SeenList, session: Session) -> None:
    """How many chunks carry rules, and where they are made."""
    chunks = session.source.chunks
    with_rule = [chunk for chunk in chunks if chunk.query_must is not None]
    broken = [chunk for chunk in with_rule if not isinstance(read_rule(chunk.query_must), Rule)]
    if not with_rule:
        st.markdown("No chunk of this project carries a rule, so this stage drops nothing.")
    else:
        said = f"**{len(with_rule):,}** of {len(chunks):,} chunks carry a rule."
        st.markdown(said + (f" **{len(broken):,}** cannot be read and keep their chunk." if broken else ""))
    families = {**state.link(), "section": "Families"}
    st.page_link("pages/data/page.py", label="Families and their rules", icon=":material/rule:", query_params=families)


DRAWERS: Mapping[str, Sequence[Callable[[SeenList, Session], None]]] = {
    "rules": (_rules,),
    "entities": (entities.drawer,),
    "judge": (judge.drawer,),
}
"""Drawer → what it shows below the form."""
SECTIONS: Mapping[str, tuple[str, Callable[[SeenList, Session], None]]] = {
    "entities": ("Structure, aliases and labels", entities.section),
    "judge": ("Judges on trial", trials.section),
}
"""Drawer → its switch and what that opens below the Bench."""


# The chunk that is selected


def chunk(chunk_id: str, session: Session, pipelines: Mapping[str, Pipeline], question: str) -> None:
    """Text, rule, and per pipeline why the chunk stays or goes and what would have kept it."""
    case = sight.question_in_sight(session, question)
    if case is None:
        return
    outcomes = {side: session.run(pipelines[side], case) for side in ("A", "B") if side in pipelines}
    entries = {side: sight.listed(outcome).get(chunk_id) for side, outcome in outcomes.items()}
    entry = next((one for one in entries.values() if one is not None), None)
    if entry is None:
        return
    text, query = entry.hit.chunk.text, case.query.text
    rule = read_rule(entry.hit.chunk.query_must)
    blocks = [Block("lead", (TextRun(entry.hit.chunk.title or chunk_id),))]
    if isinstance(rule, Rule):
        verdict = decide(rule, query, "token")
        blocks.append(Block("note", (TextRun("Its rule: the query must hold"),)))
        parts = tuple(TextRun(chip_text(part), "held" if part.satisfied else "missing") for part in verdict.parts)
        blocks.append(Block("chips", parts))
    elif rule is not None:
        blocks.append(Block("note", (TextRun(f"Its rule cannot be read, so it passes: {rule}"),)))
    blocks.append(
        Block("box", marked(text, query_words(text, query))) if text else Block("note", (TextRun("No text."),))
    )
    with st.container(border=True, key="bench.chunk"):
        inert_text.show(blocks, key="bench.chunk.text")
        for side, outcome in outcomes.items():
            seen = entries[side]
            drop = None if seen is None else seen.drop
            if seen is None:
                st.text(f"{side}: not brought by its search")
            elif drop is None:
                st.text(f"{side}: kept")
            else:
                back = "; ".join(one.text for one in would_keep(outcome.pipeline.stages, outcome.lists, drop))
                title = stage_class(drop.stage).title
                st.text(f"{side}: dropped by {title}: {drop.reason.text}" + (f" ({back})" if back else ""))
        with st.expander("Metadata"):
            facts = {"id": chunk_id, "type": entry.hit.chunk.type, **dict(entry.hit.chunk.metadata)}
            st.text("\n".join(f"{key}: {value}" for key, value in facts.items() if value not in ("", None)))


def query_words(text: str, query: str) -> list[tuple[int, int]]:
    """Where the query's words stand in a text, common words left out."""
    wanted = {token.text for token in tokenize(query)} - STOP_WORDS
    return [(token.start, token.end) for token in tokenize(text) if token.text in wanted]
