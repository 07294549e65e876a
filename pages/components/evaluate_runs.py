"""Evaluate's runs: what was kept, opened again, held against another, noted, taken along, deleted."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.components import halves, resources, say, who
from pages.components.tuning_set import quiet
from rag_core.errors import InputError, StoreError
from rag_core.evaluate.compare_words import verdict_words
from rag_core.evaluate.run_file import Run, changed_besides, compare_pipelines, dump_run, not_comparable, read_run
from rag_core.project.deeds import DELETE_RUN, NOTE_RUN
from rag_core.store.runs import RunStore, StoredRun

RUN, AGAINST, TABLE = "evaluate.run", "evaluate.against", "evaluate.runs"
PARAMETER = "run"


def show() -> None:
    """The list of runs, and the one that is open."""
    try:
        store = RunStore(resources.label_store())
        listed = store.listed()
    except StoreError as error:
        say.problem("The runs cannot be read.", str(error))
        return
    if not listed:
        st.markdown(
            "**No run was kept yet.** Choose *Measures*, then *Keep as a run*: figures, settings and labels stay."
        )
        return
    ids = [one.id for one in listed]
    _take_parameter(ids)
    _table(listed, ids)
    chosen = st.session_state.get(RUN, "")
    if chosen in ids:
        _open(store, chosen, listed)
    else:
        quiet("Select a run to open it; its address can be copied.")


def _take_parameter(ids: list[str]) -> None:
    """The run a link names."""
    wanted = st.query_params.get(PARAMETER, "")
    if wanted and wanted != st.session_state.get(RUN):
        if wanted in ids:
            st.session_state[RUN] = wanted
        else:
            say.problem("The link names a run that is not kept here.", wanted[:80])


def _table(listed: list[StoredRun], ids: list[str]) -> None:
    chosen = st.session_state.get(RUN, "")
    st.session_state[TABLE] = {"selection": {"rows": [ids.index(chosen)] if chosen in ids else [], "columns": []}}
    st.dataframe(
        {
            "kept at (UTC)": [one.at[:16].replace("T", " ") for one in listed],
            "name": [one.name for one in listed],
            "eval set": [one.eval_set for one in listed],
            "mean SetF": [", ".join(map(_figure, one.summary.get("pipelines", ()))) for one in listed],
            "queries": [one.summary.get("queries") for one in listed],
            "notes": [one.notes for one in listed],
            "id": ids,
        },
        hide_index=True,
        key=TABLE,
        on_select=lambda: _selected(ids),
        selection_mode="single-row",
        height=min(38 + 35 * len(ids), 320),
        alt="Runs, newest first: time, name, eval set, mean SetF of each pipeline, queries, notes, id",
    )


def _figure(entry: Any) -> str:
    value = entry.get("SetF")
    return f"{entry.get('name')} {'–' if value is None else format(value, '.3f')}"


def _selected(ids: list[str]) -> None:
    rows = st.session_state[TABLE]["selection"]["rows"]
    st.session_state[RUN] = ids[rows[0]] if rows and rows[0] < len(ids) else ""
    if st.session_state[RUN]:
        st.query_params[PARAMETER] = st.session_state[RUN]
    else:
        st.query_params.pop(PARAMETER, None)


def _open(store: RunStore, chosen: str, listed: list[StoredRun]) -> None:
    try:
        run = read_run(store.document(chosen), f"run {chosen}")
    except (InputError, StoreError) as error:
        say.problem("This run cannot be read.", str(error))
        return
    if not run.intact:
        say.problem("This run is not as it was kept.", "its contents do not give its id")
    st.dataframe(
        {
            "pipeline": [one.name for one in run.pipelines],
            **{name: [one.means.get(name) for one in run.pipelines] for name in ("SetP", "SetR", "SetF")},
            "scored queries": [one.means.get("queries_scored") for one in run.pipelines],
            "queries": [one.means.get("queries_total") for one in run.pipelines],
        },
        hide_index=True,
        key="evaluate.run.means",
        column_config={name: st.column_config.NumberColumn(format="%.3f") for name in ("SetP", "SetR", "SetF")},
        alt="Per pipeline of the run: macro means and counts",
    )
    with st.expander("What it depended on"):
        facts = {**run.fingerprints, **run.document["models"], **run.document["platform"]}
        st.text("\n".join(f"{name}: {value}" for name, value in facts.items()))
    _against(store, run, listed)
    _notes(store, run)
    _take_along(store, run)


def _against(store: RunStore, run: Run, listed: list[StoredRun]) -> None:
    """Another run of the same set: the difference, or why there is none to tell."""
    others = {one.id: f"{one.at[:16].replace('T', ' ')} {one.name}" for one in listed if one.id != run.id}
    if not others:
        return
    earlier = st.selectbox(
        "Hold against an earlier run", list(others), index=None, format_func=lambda key: others[key][:120],
        placeholder="choose a run", key=AGAINST,
    )  # fmt: skip
    if not earlier:
        return
    try:
        first = read_run(store.document(earlier), f"run {earlier}")
        why_not = not_comparable(first, run)
        if why_not:
            st.warning("These two runs cannot be set against each other.")
            st.text(why_not)
            return
        st.text(verdict_words(compare_pipelines(first, run)))
        for remark in changed_besides(first, run):
            st.text(f"Besides, {remark}.")
    except (InputError, StoreError) as error:
        say.problem("These two runs cannot be compared.", str(error))


def _notes(store: RunStore, run: Run) -> None:
    for note in store.notes(run.id):
        st.text(f"{note.at[:16].replace('T', ' ')} {note.author}: {note.note}")

    def add() -> None:
        text = st.session_state.get("evaluate.note", "")
        if not text.strip():
            return
        try:
            with who.doing(NOTE_RUN, run.id):
                store.add_note(run.id, who.person().name, text)
            st.session_state["evaluate.note"] = ""
        except (InputError, StoreError) as error:
            st.session_state["evaluate.note.problem"] = str(error)

    st.text_input("Add a note", key="evaluate.note", max_chars=2000, on_change=add)
    problem = st.session_state.pop("evaluate.note.problem", "")
    if problem:
        say.problem("The note was not kept.", problem)


def _take_along(store: RunStore, run: Run) -> None:
    """The run file, the command that guards it, and deleting."""
    with st.container(horizontal=True):
        st.download_button(
            "Download the run file", dump_run(run), f"{run.id}.json", "application/json",
            icon=":material/download:", on_click="ignore",
        )  # fmt: skip
        with st.popover("Delete", icon=":material/delete:"):
            st.markdown("The run and its notes are taken out of the store for good.")
            st.button("Delete this run", type="primary", on_click=_delete, args=(store, run.id))
    st.markdown("A build that fails when a pipeline gets worse than this run:")
    measured = f"--eval-set {run.document['eval_set']}{_split_of(run)}"
    st.code(f"python -m rag_core gate --baseline {run.id}.json {measured} --pipeline SPEC", language=None)
    problem = st.session_state.pop("evaluate.delete.problem", "")
    if problem:
        say.problem("The run was not deleted.", problem)


def _split_of(run: Run) -> str:
    """The option that measures the queries of the run again, where they are one split of its eval set."""
    try:
        return halves.split_option(
            resources.eval_set(run.document["eval_set"]), [query["id"] for query in run.document["queries"]]
        )
    except InputError:
        return ""  # the set is gone; the gate will say so


def _delete(store: RunStore, run_id: str) -> None:
    try:
        with who.doing(DELETE_RUN, run_id):
            store.delete(run_id)
    except (InputError, StoreError) as error:
        st.session_state["evaluate.delete.problem"] = str(error)
        return
    st.session_state[RUN] = ""
    st.query_params.pop(PARAMETER, None)
