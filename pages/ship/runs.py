"""Kept runs of the project: kept, listed, opened, held against pipeline A, noted, taken along, deleted."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages import rail, state
from pages.components import resources, say, who
from pages.components.act import act, refuse, tell
from pages.widgets.take_along import choose, table
from rag_core.compare.gate import FAIL, INCONCLUSIVE, PASS, GateResult, GateRules
from rag_core.compare.run_file import Run, dump_run, read_run, summary_of
from rag_core.errors import InputError, StoreError, WinnowError
from rag_core.project import runs
from rag_core.project.deeds import DELETE_RUN, KEEP_RUN, NOTE_RUN, Performed
from rag_core.project.session import Session
from rag_core.report import report_html
from rag_core.spec import fingerprint
from rag_core.stage import Pipeline
from rag_core.store.runs import RunStore

RUN, TABLE, VERDICT, DONE = "ship.run", "ship.runs", "ship.verdict", "ship.done"
NAME, NOTE, MARGIN = "ship.name", "ship.note", "ship.margin"
MARKS = {PASS: ":material/check: **pass**", FAIL: ":material/close: **fail**", INCONCLUSIVE: "**? inconclusive**"}
SHOWN = ("SetP", "SetR", "SetF")
PLACE = "Ship"


def show(session: Session, pipeline: Pipeline) -> None:
    """The kept runs of this project, and the one that is open."""
    st.markdown("**Keep it good**")
    if said := _missing(session):
        sentence, place, words = said
        st.markdown(sentence)
        rail.link(place, words)
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.text_input(
            "Name of the run", key=NAME, max_chars=200, placeholder=pipeline.label or "what was tried", width=260
        )
        st.button(
            "Keep a run of A", icon=":material/bookmark_add:", key="ship.keep", on_click=_keep,
            args=(session, pipeline), help=f"Measures A on all {len(session.cases)} questions of now. Held-out "
            "ones are among them: it counts as a look.",
        )  # fmt: skip
    tell(DONE)
    try:
        store = RunStore(resources.label_store())
        listed = store.listed(session.project.labels)
    except StoreError as error:
        say.problem("The runs cannot be read.", str(error))
        return
    if not listed:
        st.markdown(
            "No run is kept yet. *Keep a run of A*: then a change can be held against it, here and in your builds."
        )
        return
    ids = [one.id for one in listed]
    if st.session_state.get(RUN) not in ids:
        st.session_state[RUN] = ids[0]
    choose(
        {
            "kept at (UTC)": [one.at[:16].replace("T", " ") for one in listed],
            "name": [one.name for one in listed],
            "mean F₁": [", ".join(map(_figure, one.summary.get("pipelines", ()))) for one in listed],
            "questions": [one.summary.get("queries") for one in listed],
            "notes": [one.notes for one in listed],
            "id": ids,
        },
        ids,
        TABLE,
        "Kept runs, newest first: time, name, mean F₁ of each pipeline, questions, notes, id",
        RUN,
        keep=True,
        tall=213,
    )
    try:
        run = read_run(store.document(st.session_state[RUN]), f"run {st.session_state[RUN]}")
    except (InputError, StoreError) as error:
        say.problem("This run cannot be read.", str(error))
        return
    if not run.intact:
        say.problem("This run is not as it was kept.", "its contents do not give its id")
    left, right = st.columns([3, 2], gap="large")
    with left:
        _gate(session, pipeline, run)
    with right:
        _open(store, run)


def _missing(session: Session) -> tuple[str, str, str] | None:
    """What a run needs first: the sentence, the place that has it, and the words of the way there."""
    try:
        if not session.cases:
            return "A run needs questions, and this project has none.", "questions", "Add questions"
        if not any(case.grades for case in session.cases):
            return "A run needs labels to be measured on, and no chunk has one.", "labels", "Label some chunks"
        _ = session.source
    except WinnowError:
        return "A run needs something to search, and this project has nothing yet.", "data", "Bring in documents"
    return None


def _keep(session: Session, pipeline: Pipeline) -> None:
    """Keep a run of A on all questions, under the name that stands in the box."""

    def work(performed: Performed) -> str:
        run = runs.make_run(session, [pipeline], str(st.session_state.get(NAME) or "").strip())
        runs.looked(session, [pipeline], session.cases, who.person().name, PLACE)
        st.session_state[RUN] = performed.result = RunStore(resources.label_store()).save(run.document, summary_of(run))
        return run.id

    with st.spinner("Measuring …"):
        if act(DONE, KEEP_RUN, session.project.name, work, lambda id_: f"Kept as run {id_}."):
            st.session_state[NAME] = ""


def _figure(entry: Any) -> str:
    value = entry.get("SetF")
    return f"{entry.get('name')} {'–' if value is None else format(value, '.3f')}"


# The gate


def _gate(session: Session, pipeline: Pipeline, run: Run) -> None:
    """A against the open run: the verdict with its sentence, and the lines that ask the same in a build."""
    name = pipeline.label or "A"
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.number_input(
            "Accepted drop", 0.0, 0.5, GateRules.margin, 0.01, format="%.2f", key=MARGIN, width=140,
            help="How much lower mean F₁ may be and still pass.",
        )  # fmt: skip
        st.button(
            "Gate A against this run", icon=":material/verified:", type="primary", key="ship.gate",
            on_click=_judge, args=(session, pipeline, run),
        )  # fmt: skip
    about = _about(session, pipeline, run)
    stored = st.session_state.get(VERDICT)
    if stored is not None and stored[0] == about:
        _verdict(stored[1])
    elif stored is not None:
        st.caption("A, the run or what they stand on has changed since the last verdict.")
    st.markdown("The same in a build, which then fails when A gets worse:")
    margin = "" if st.session_state.get(MARGIN) is None else f" --margin {st.session_state[MARGIN]:g}"
    spec = f"{say.plain(name).replace(' ', '-') or 'pipeline'}.yaml"
    st.code(
        f"winnow gate --project {session.project.name} --baseline {run.id}.json \\\n"
        f"  --pipeline {spec}{margin} --junit gate.xml --markdown gate.md",
        language=None,
    )
    st.caption("Exit code 0 pass, 1 fail, 4 inconclusive. Both files are among the downloads on this page.")


def _about(session: Session, pipeline: Pipeline, run: Run) -> tuple[Any, ...]:
    return (fingerprint(pipeline), run.id, st.session_state.get(MARGIN), *session.fingerprints().values())


def _judge(session: Session, pipeline: Pipeline, run: Run) -> None:
    try:
        with st.spinner("Measuring …"):
            who.check(KEEP_RUN)
            margin = float(st.session_state.get(MARGIN, GateRules.margin))
            (result,), _ = runs.gate(session, run, [pipeline], GateRules(margin=margin))
            runs.looked(session, [pipeline], session.cases, who.person().name, PLACE)
        st.session_state[VERDICT] = (_about(session, pipeline, run), result)
    except WinnowError as error:
        refuse(DONE, str(error))


def _verdict(result: GateResult) -> None:
    with st.container(border=True):
        st.markdown(MARKS[result.outcome])
        st.text(result.sentence)
        for notice in result.notices:
            st.text(f"Besides, {notice}.")
        if result.regressions:
            with st.expander(f"{len(result.regressions)} worst questions"):
                table(
                    {
                        "question": [one.query_id for one in result.regressions],
                        "then": [one.baseline for one in result.regressions],
                        "now": [one.candidate for one in result.regressions],
                        "why": ["; ".join((*one.reasons[:2], *one.more)) for one in result.regressions],
                    },
                    "ship.regressions",
                    "Questions on which A is worse, the worst first: F₁ then and now, and why",
                    config={one: st.column_config.NumberColumn(format="%.3f") for one in ("then", "now")},
                )
        if result.outcome == FAIL and st.button("Show them on the Bench", key="ship.show"):
            state.change(zoom=state.ALL, lens=state.DIFFERENCES)
            st.switch_page("pages/bench/page.py", query_params=state.link())


# The open run


def _open(store: RunStore, run: Run) -> None:
    """Its means, notes, downloads, and what it depended on."""
    table(
        {
            "pipeline": [one.name for one in run.pipelines],
            **{name: [one.means.get(name) for one in run.pipelines] for name in SHOWN},
            "scored": [one.means.get("queries_scored") for one in run.pipelines],
        },
        "ship.means",
        "Per pipeline of the run: macro means and how many questions are scored",
        config={name: st.column_config.NumberColumn(format="%.3f") for name in SHOWN},
    )
    notes = [(note.at, note.author, note.note) for note in store.notes(run.id)]
    with st.container(horizontal=True, gap="small"):
        st.download_button(
            "Run file", dump_run(run), f"{run.id}.json", "application/json", key="ship.file",
            icon=":material/download:", on_click="ignore", help="What a gate in a build reads.",
        )  # fmt: skip
        st.download_button(
            "HTML report", lambda: report_html(run, notes), f"{run.id}.html", "text/html", key="ship.report",
            icon=":material/article:", on_click="ignore", help="One page to send; it opens offline.",
        )  # fmt: skip
        st.caption(f"Against an earlier one: `winnow runs compare EARLIER {run.id}`.")
        with st.popover("Delete", icon=":material/delete:"):
            st.markdown("The run and its notes are taken out of the store for good.")
            st.button("Delete this run", type="primary", key="ship.delete", on_click=_delete, args=(store, run.id))
    for at, author, note in notes:
        st.text(f"{at[:16].replace('T', ' ')} {author}: {note}")
    st.text_input("Add a note", key=NOTE, max_chars=2000, on_change=_note, args=(store, run.id))
    with st.expander("What it depended on"):
        facts = {**run.fingerprints, **run.document["models"], **run.document["platform"]}
        st.text("\n".join(f"{name}: {value}" for name, value in facts.items()))


def _note(store: RunStore, run_id: str) -> None:
    text = str(st.session_state.get(NOTE, ""))
    if text.strip() and act(DONE, NOTE_RUN, run_id, lambda _: store.add_note(run_id, who.person().name, text)):
        st.session_state[NOTE] = ""


def _delete(store: RunStore, run_id: str) -> None:
    if act(DONE, DELETE_RUN, run_id, lambda _: store.delete(run_id)):
        st.session_state.pop(RUN, None)
        st.session_state.pop(VERDICT, None)
