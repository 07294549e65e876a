"""Bench: what does each stage do, to this question and to all, and is B better than A?"""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic, time
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from pages import rail, state
from pages.bench import answers, component, drawers, figures, judge, judging, paying, plane, reading, sight
from pages.bench.component import BenchEvent
from pages.components import resources, say, who
from rag_core.errors import InputError, WinnowError
from rag_core.project.deeds import SAVE_PIPELINE
from rag_core.project.runs import looked
from rag_core.project.session import Session
from rag_core.settings import history_days
from rag_core.spec import dump_pipeline, dump_stages, saved_names, shipped_names
from rag_core.stage import Pipeline
from rag_core.tune.steps import with_setting
from rag_core.types import Candidates, Case

KEY = "bench"
OFF, UNDO, DRAWER, SELECTED, FILTER = "bench.off", "bench.undo", "bench.drawer", "bench.selected", "bench.filter"
WELCOMED, TOOL = "bench.welcomed", "bench.tool"
GRABBED, NOTICE, VERSION, ACKS, WHOLE = "bench.grabbed", "bench.notice", "bench.version", "bench.acks", "bench.whole"
OWN = "own settings"
HELD_OUT = "This question is held out: to see its figures is a look, and it is counted."
NONE, BEST = "none", "auto: best fixed k"
MOST_UNDO = 50
KEPT = "history.handed_over"  # the last of this session: (collection and question, settings, when)
AGAIN_SECONDS = 30.0

HELP = """
**A and B** are two pipelines over the same questions. The list on the left is A: switch a stage off, drag its number,
open it with ▸. While a number is dragged nothing is computed: the figures were, and are looked up.

**ALL** is the mean over the dev questions, **THIS ONE** the question in sight; ▲▼ is A against B. Neither is a verdict:
*Judge on held-out* is, and it is counted.

**Precision, Recall, F₁ of the kept list**: relevant kept ÷ kept; relevant kept ÷ all relevant; 2PR ÷ (P + R).

**Keys** while the Bench has the focus: arrows move a number, j k walk the chunks, 0–3 label the chunk, [ ] the question
before and after, x swaps A and B.
"""


def draw() -> None:
    if state.follow_older_link():
        st.rerun()
    try:
        state.session()
    except WinnowError:
        return  # the rail has said why
    try:
        session = judge.session()
        _ = session.split  # questions and labels are read here, so that what is wrong with them is said once
    except WinnowError as error:
        say.problem("The questions and labels of this project cannot be read.", str(error))
        return
    try:
        pipelines = pipelines_of(session)
    except InputError as error:
        say.problem("A pipeline of this view cannot be read; the project's own is shown.", str(error))
        state.change(a="", b="", c="")
        pipelines = pipelines_of(session)
    except WinnowError as error:
        say.problem("This project has nothing to search yet.", str(error))
        st.page_link("pages/data/page.py", label="Bring in documents", icon=":material/database:")
        return
    welcome(session, pipelines)
    head(session, pipelines)
    bench(st.empty())
    below(session)
    state.write_address()
    resources.settle()


def pipelines_of(session: Session) -> dict[str, Pipeline]:
    """A, B, and C where it was added, by side."""
    sides = {side: state.pipeline_of(side, session) for side in ("A", "B", "C")}
    return {side: pipeline for side, pipeline in sides.items() if pipeline is not None}


# First open: one line that says what is seen


def welcome(session: Session, pipelines: Mapping[str, Pipeline]) -> None:
    """On a first visit, what the example shows in one line, and the two ways on."""
    if st.session_state.get(WELCOMED) or state.current() != state.PageState():
        return
    case = sight.question_in_sight(session, state.current().question)
    if case is None or not {"A", "B"} <= set(pipelines):
        return
    try:
        a, b = (session.run(pipelines[side], case).scores for side in ("A", "B"))
    except WinnowError:
        return  # the Bench below says why
    before, after = b.values.get("SetP"), a.values.get("SetP")
    if before is None or after is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="bench.welcome"):
        st.markdown(
            f"Of this question’s chunks B keeps {b.kept} and A **{a.kept}**: precision "
            f"**{before:.3f} → {after:.3f}**. Every dropped chunk says why."
        )
        st.button(
            "Play with it", key="bench.play", type="primary", on_click=st.session_state.update, args=({WELCOMED: True},)
        )
        st.button("Use my data", key="bench.own_data", icon=":material/database:", on_click=state.begin)


# The line above: which pipelines, undo, save


def head(session: Session, pipelines: Mapping[str, Pipeline]) -> None:
    """Pick lists of A, B, C; undo, save, share."""
    names = [*session.pipeline_names(), *shipped_names(), *saved_names(session.workspace)]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="bench.head"):
        for side in ("A", "B", "C"):
            if side == "C" and side not in pipelines:
                st.button(
                    "C", key="bench.add_c", type="tertiary", icon=":material/add:", on_click=state.change,
                    kwargs={"c": "fixed-15", "zoom": state.ALL}, help="A third pipeline, at zoom All",
                )  # fmt: skip
                continue
            _pick(side, session, pipelines, list(dict.fromkeys(names)))
        st.space("stretch")
        st.button(
            "Undo", icon=":material/undo:", type="tertiary", disabled=not st.session_state.get(UNDO), on_click=_undo
        )
        with st.popover("Save", icon=":material/save:", help="Keep A with the project under a name"):
            name = st.text_input("Name", value="", placeholder="tuned-1", key="bench.save.name")
            st.button("Save A", key="bench.save", type="primary", disabled=not name, on_click=_save, args=(session,))
        rail.link("ship", "Ship")
        with st.popover("?", help="Keys, and what the numbers mean"):
            st.markdown(HELP)


def _pick(side: str, session: Session, pipelines: Mapping[str, Pipeline], names: list[str]) -> None:
    entry = (
        getattr(state.current(), side.lower()) or session.project.pipelines.get(side) or (NONE if side == "C" else "")
    )
    options = list(names)
    if side == "B":
        options = [BEST, *options]
    if side == "C":
        options = [NONE, *options]
    shown = BEST if entry == state.AUTO else entry
    if entry.startswith("~"):
        shown = pipelines[side].label or OWN
        options = [shown, *[name for name in options if name != shown]]
    key = f"bench.pick.{side}"
    st.session_state[key] = shown if shown in options else None
    st.selectbox(side, options, key=key, on_change=_take, args=(side, key), width=230)


def _take(side: str, key: str) -> None:
    chosen = st.session_state[key]
    _remember()
    if chosen in (None, NONE):
        state.change(c="")
    elif chosen != OWN:
        state.change(**{side.lower(): state.AUTO if chosen == BEST else chosen})
    if side == "A":
        st.session_state.pop(OFF, None)
        st.session_state.pop(DRAWER, None)


def _remember() -> None:
    """What *Undo* goes back to."""
    now = state.current()
    stack = st.session_state.setdefault(UNDO, [])
    stack.append((now.a, now.b, now.c, st.session_state.get(OFF, ())))
    del stack[:-MOST_UNDO]


def _undo() -> None:
    a, b, c, off = st.session_state[UNDO].pop()
    state.change(a=a, b=b, c=c)
    st.session_state[OFF] = off


def _save(session: Session) -> None:
    name = str(st.session_state["bench.save.name"]).strip()
    try:
        pipeline = state.pipeline_of("A", session)
        if pipeline is not None:
            with who.doing(SAVE_PIPELINE, f"{session.project.name} {name}"):
                session.save_pipeline(name, pipeline)
            state.change(a=name)
    except InputError as error:
        st.session_state[NOTICE] = str(error)


# The Bench itself: one component in one fragment


@st.fragment
def bench(place: Any) -> None:
    """Compute what is in sight and draw it; a change of the page around it asks for a whole run.

    `place` is where a search says how far it is: outside the fragment, so that a change sends no message about it.
    """
    if st.session_state.pop(WHOLE, False):
        st.rerun()
    session, now = judge.session(), state.current()
    with session.steady():
        try:
            pipelines = pipelines_of(session)
            seen = _looked(session, pipelines, now.question, place)
        except WinnowError as error:
            say.problem(
                "This cannot be run as it is.", str(error), "Take the last change back, or choose another pipeline."
            )
            return
        if seen.case is not None and seen.case.query.id != now.question and not now.question.startswith("?"):
            state.change(question=seen.case.query.id)
        if seen.case is not None and looked(
            session, list(pipelines.values()), [seen.case], who.person().name, "Bench, one question"
        ):
            st.session_state.setdefault(NOTICE, HELD_OUT)
        listed = sight.listed_stages(pipelines["A"], st.session_state.get(OFF, ()))
        grabbed = st.session_state.get(GRABBED)
        steps = sight.steps_of(seen, grabbed)
        version = st.session_state[VERSION] = st.session_state.get(VERSION, 0) + 1
        payload = sight.payload_of(
            seen,
            listed,
            steps,
            version=version,
            zoom=now.zoom,
            lens=now.lens,
            filter=st.session_state.get(FILTER, ""),
            selected=st.session_state.get(SELECTED, ""),
            notice=st.session_state.pop(NOTICE, ""),
            acks=st.session_state.get(ACKS, {}),
            grabbed=grabbed,
        )
        component.show(payload, KEY, _happened)
        state.write_address()


def _looked(session: Session, pipelines: Mapping[str, Pipeline], question: str, place: Any) -> sight.Sight:
    """What is in sight; searching the questions anew says how far it is."""
    started, said = time(), False

    def progress(done: int, total: int) -> None:
        nonlocal said
        if time() - started > 1:
            said = True
            place.progress(done / total, f"searched {done:,} of {total:,} questions; the source changed or is new")

    who.check_models(pipelines.values())
    session.refresh()
    for pipeline in pipelines.values():
        session.capture(pipeline, session.dev, progress)
    if said:
        place.empty()
    return sight.look(session, pipelines, question)


# What a person did


def _happened() -> None:
    """Take in what the browser sent, in order; the fragment runs after."""
    acks = st.session_state.get(ACKS, {})
    events = component.read_events(KEY, acks)
    session = judge.session()
    for event in events:
        try:
            ACTIONS[event.kind](session, event)
        except WinnowError as error:
            st.session_state[NOTICE] = str(error)
    st.session_state[ACKS] = component.acknowledged(acks, events)
    below = (TOOL, DRAWER, SELECTED, judging.SHOWN)
    if any(st.session_state.get(key) not in (None, "", False) for key in below) and any(
        event.kind not in ("grab", "filter") for event in events
    ):
        st.session_state[WHOLE] = True  # what is opened below, and a verdict, are of what was in sight


def _listed(session: Session) -> list[sight.SeenList]:
    pipeline = state.pipeline_of("A", session) or Pipeline()
    return sight.listed_stages(pipeline, st.session_state.get(OFF, ()))


def put(session: Session, stages: list[sight.SeenList]) -> None:
    """Make these the stages of A; a SpecError says why they cannot be, and nothing is changed."""
    before = state.pipeline_of("A", session) or Pipeline()
    pipeline = sight.pipeline_from(stages)
    _remember()
    off = tuple((place, entry.stage) for place, entry in enumerate(stages) if not entry.on)
    saved = state.current().a or session.project.pipelines.get("A") or ""
    state.change(a=state.encode(pipeline, session))
    st.session_state[OFF] = off
    st.session_state[GRABBED] = None
    if before.label or not saved.startswith("~") or off:
        st.session_state[WHOLE] = True  # the pick list above says whose settings these are


def _set(session: Session, event: BenchEvent) -> None:
    stages = _listed(session)
    index, setting, value = event.fields["stage"], event.fields["setting"], event.fields["value"]
    if not 0 <= index < len(stages):
        raise InputError("the stage that was changed is not there any more, expected the one in sight")
    alone = with_setting(Pipeline((stages[index].stage,)), 0, setting, value)
    stages[index] = replace(stages[index], stage=alone.stages[0])
    put(session, stages)


def _toggle(session: Session, event: BenchEvent) -> None:
    stages = _listed(session)
    index = event.fields["stage"]
    stages[index] = replace(stages[index], on=not stages[index].on)
    put(session, stages)


def _move(session: Session, event: BenchEvent) -> None:
    stages = _listed(session)
    index, to = event.fields["stage"], event.fields["stage"] + event.fields["by"]
    if not (0 <= index < len(stages) and 0 <= to < len(stages)):
        return
    stages.insert(to, stages.pop(index))
    put(session, stages)


def _remove(session: Session, event: BenchEvent) -> None:
    stages = _listed(session)
    del stages[event.fields["stage"]]
    st.session_state.pop(DRAWER, None)
    put(session, stages)


def _open_drawer(session: Session, event: BenchEvent) -> None:
    index = event.fields["stage"]
    st.session_state[DRAWER] = None if st.session_state.get(DRAWER) == index else index
    st.session_state[WHOLE] = True


def _add(session: Session, event: BenchEvent) -> None:
    st.session_state[DRAWER] = drawers.ADD
    st.session_state[WHOLE] = True


def _grab(session: Session, event: BenchEvent) -> None:
    stages = _listed(session)
    st.session_state[GRABBED] = (sum(entry.on for entry in stages[: event.fields["stage"]]), event.fields["setting"])


def _question(session: Session, event: BenchEvent) -> None:
    changes = {"question": event.fields["id"]}
    if event.fields["zoom"] in state.ZOOMS:
        changes["zoom"] = event.fields["zoom"]
    st.session_state[SELECTED] = ""
    state.change(**changes)


def _zoom(session: Session, event: BenchEvent) -> None:
    state.change(zoom=event.fields["to"])
    st.session_state[WHOLE] = True  # below stand other things to open


def _select(session: Session, event: BenchEvent) -> None:
    st.session_state[SELECTED] = event.fields["id"]
    st.session_state[WHOLE] = True


def _swap(session: Session, event: BenchEvent) -> None:
    _remember()
    a, b = state.pipeline_of("A", session), state.pipeline_of("B", session)
    if a is not None and b is not None:
        state.change(a=state.encode(b, session), b=state.encode(a, session))
        st.session_state.pop(OFF, None)
        st.session_state[WHOLE] = True


def _label(session: Session, event: BenchEvent) -> None:
    """A label given in sight of distance and verdict: it counts, and says that it is no part of a blind sample."""
    from pages.bench import labelling  # the database layer takes a tenth of a second: who never labels waits not

    case = sight.question_in_sight(session, state.current().question)
    if case is None:
        return
    pipeline = state.pipeline_of("A", session) or Pipeline()
    outcomes = [session.run(pipeline, case)]
    second = state.pipeline_of("B", session)
    if second is not None:
        outcomes.append(session.run(second, case))
    for outcome in outcomes:
        entry = sight.listed(outcome).get(event.fields["id"])
        if entry is not None:
            labelling.give(session.project.labels, case, entry.hit, event.fields["grade"], event.fields["pressed_at"])
            return


ACTIONS: Mapping[str, Callable[[Session, BenchEvent], None]] = {
    "set": _set,
    "toggle": _toggle,
    "move": _move,
    "remove": _remove,
    "add": _add,
    "drawer": _open_drawer,
    "grab": _grab,
    "question": _question,
    "zoom": _zoom,
    "lens": lambda session, event: state.change(lens=event.fields["to"]),
    "label": _label,
    "select": _select,
    "swap": _swap,
    "filter": lambda session, event: st.session_state.update({FILTER: event.fields["to"]}),
}


# Below: the chunk that is selected, the verdict, a question of one's own; the drawer of a stage


def below(session: Session) -> None:
    """What a person asked for beside the Bench."""
    opened = st.session_state.get(DRAWER)
    if opened is not None:
        drawers.show(opened, _listed(session), session, lambda stages: put(session, stages))
    pipelines = pipelines_of(session)
    paying.show(session, pipelines["A"], lambda: _listed(session), lambda stages: put(session, stages))
    judging.show(session, pipelines)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.text_input(
            "Ask a question of your own",
            key="bench.own",
            placeholder="any question; Enter runs it through A and B" if session.live else "lists are not searched",
            disabled=not session.live,
            on_change=_ask,
            args=(session,),
        )
    if opened is not None:
        drawers.section(opened, _listed(session), session)
    chosen = st.session_state.get(SELECTED)
    if chosen:
        drawers.chunk(chosen, session, pipelines_of(session), state.current().question)
    tools(session)


ONE: Mapping[str, Callable[[Session, Mapping[str, Pipeline], Case], None]] = {
    "Context": reading.context,
    "Answers": answers.of_question,
    "Trace": reading.trace,
    "Why not this chunk?": reading.why,
    "Table": reading.rows_of,
}
ALL: Mapping[str, Callable[[Session, Mapping[str, Pipeline]], None]] = {
    "Measures": figures.measures,
    "Answers": answers.of_dev,
    "Tags": figures.tags,
    "Questions": figures.questions,
    "Losses": figures.losses,
    "Reranking": figures.reranking,
    "Plane": lambda session, pipelines: plane.show(session, pipelines["A"]),
}
SHARE = "Share"  # opened at both zooms


def tools(session: Session) -> None:
    """What can be opened below the Bench, one thing at a time."""
    now, pipelines = state.current(), pipelines_of(session)
    opened: str | None = st.segmented_control(
        "Below",
        [*(ONE if now.zoom == state.ONE else ALL), SHARE],
        key=TOOL,
        label_visibility="collapsed",
    )
    try:
        if opened == SHARE:
            share(session, pipelines)
        elif opened is not None and opened in ALL and now.zoom == state.ALL:
            if session.dev:
                ALL[opened](session, pipelines)
            else:
                st.markdown("No dev question yet: nothing to measure.")
        elif opened is not None and opened in ONE and now.zoom == state.ONE:
            case = sight.question_in_sight(session, now.question)
            if case is not None:
                ONE[opened](session, pipelines, case)
    except WinnowError as error:
        say.problem("This cannot be shown as the pipelines are.", str(error))


def share(session: Session, pipelines: Mapping[str, Pipeline]) -> None:
    """The link of what is in sight, the commands that give the same figures, and the one that seeks all knobs of A."""
    base = (st.context.url or "").partition("?")[0]
    st.markdown("**Link**")
    st.code(f"{base}?{urlencode(state.link())}", language=None, wrap_lines=True)
    project = shlex.quote(session.project.name)
    case = sight.question_in_sight(session, state.current().question)
    specs = {
        side: shlex.quote(json.dumps(dump_pipeline(pipeline), separators=(",", ":")))
        for side, pipeline in pipelines.items()
    }
    lines = []
    if case is not None and session.live:
        lines.append(f"winnow query {shlex.quote(case.query.text)} --project {project} --pipeline {specs['A']}")
    every = " ".join(f"--pipeline {spec}" for spec in specs.values())
    side = "--split dev " if session.dev and session.split.held_out else ""  # as on the screen, and no look
    lines.append(f"winnow evaluate --project {project} {side}{every}")
    lines.append(f"winnow tune --project {project} --method search --pipeline {specs['A']} --study {project}")
    st.markdown("**As a command**")
    st.code("\n\n".join(lines), language=None, wrap_lines=True)


def _ask(session: Session) -> None:
    text = str(st.session_state.get("bench.own") or "").strip()
    if not text:
        return
    try:
        case = session.question(text)
    except InputError as error:
        st.session_state[NOTICE] = str(error)
        return
    state.change(question=f"?{text}", zoom=state.ONE)
    pipeline = state.pipeline_of("A", session)
    if session.live and pipeline is not None:
        outcome = session.run(pipeline, case)
        _keep_question(outcome.result, dump_stages(pipeline), session.project.source.name)


def _keep_question(candidates: Candidates, stages: Sequence[Any], collection: str) -> None:
    """Keep a live question with its settings; one whose sliders move is kept again at most twice a minute."""
    if not history_days():
        return
    last = st.session_state.get(KEPT)
    question, settings = (collection, candidates.query.text), json.dumps(list(stages), sort_keys=True, default=str)
    if last is not None and last[0] == question and (last[1] == settings or monotonic() - last[2] < AGAIN_SECONDS):
        return
    st.session_state[KEPT] = (question, settings, monotonic())
    arguments = (resources.workspace(), candidates, list(stages), collection, who.person().name)
    threading.Thread(target=_append, args=arguments, name="history", daemon=True).start()


def _append(workspace: Path, candidates: Candidates, stages: list[Any], collection: str, name: str) -> None:
    from rag_core.store.history import asked_of, expire, remember

    remember(workspace, asked_of(candidates, stages, collection, name))
    expire(workspace)


draw()
