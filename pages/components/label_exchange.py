"""Import and export on Label: first what a file would do, then as one batch that can be taken back."""

from __future__ import annotations

from dataclasses import asdict

import streamlit as st

from pages.components import label_by_text, say, who
from pages.components.label_by_text import RAGAS
from pages.components.trace import counted
from rag_core.errors import InputError, StoreError
from rag_core.evaluate.sets import EvalSet
from rag_core.files import decode
from rag_core.given import unmet
from rag_core.project.deeds import import_kind, undo_kind
from rag_core.store.exchange.formats import FORMATS, SUFFIXES, format_of, lines_to_export, read_labels, write_labels
from rag_core.store.exchange.line import LabelLine
from rag_core.store.exchange.planning import ImportPlan, apply_import, plan_import
from rag_core.store.labels import LabelStore

DONE, VERSION, FAILED = "exchange.done", "label.version", "exchange.failed"
MOST_SHOWN = 200


def show(chosen: EvalSet, store: LabelStore, annotator: str) -> None:
    """Draw import, export, and where labels are after a new cut."""
    _import(chosen, store, annotator)
    st.divider()
    _export(chosen, store)
    st.divider()
    label_by_text.show_remap(chosen, store)


def _import(eval_set: EvalSet, store: LabelStore, annotator: str) -> None:
    st.markdown("**Bring labels in.** Nothing is stored before you have seen what is new, equal and conflicting.")
    file = st.file_uploader("Label file", type=[ending[1:] for ending in SUFFIXES], key="exchange.file")
    chosen = st.selectbox("Format", ["by the file’s ending", *FORMATS, RAGAS], key="exchange.format")
    _said()
    if file is None:
        return
    try:
        lines, strangers = _read(eval_set, file.name, decode(file.getvalue(), "the file"), chosen)
        plan = plan_import(store, eval_set.name, lines, annotator)
    except (InputError, StoreError) as error:
        say.problem("This file cannot be brought in; nothing was changed.", str(error))
        return
    if strangers:
        st.markdown(f":gray[{counted(strangers, 'line asks', 'lines ask')} what this eval set does not: left out.]")
    stray = unmet(lines, eval_set).words
    if stray:
        st.text(f"{stray}.")
    _offer(plan, store)


def _read(eval_set: EvalSet, file_name: str, text: str, chosen: str | None) -> tuple[list[LabelLine], int]:
    """The labels of a file, and how many of its lines ask what the eval set does not."""
    if chosen == RAGAS:
        return label_by_text.read(eval_set, text)
    name = format_of(file_name) if chosen not in FORMATS else str(chosen)
    return read_labels(text, name, "the file"), 0


def _offer(plan: ImportPlan, store: LabelStore) -> None:
    with st.container(horizontal=True):
        st.metric("new", len(plan.new), help="Labels of the file that are not here yet.")
        st.metric("equal", len(plan.equal), help="Labels that are here with the same grade.")
        st.metric("conflicting", len(plan.conflicting), help="Labels that are here with another grade.")
    if plan.conflicting:
        st.dataframe(
            [
                {"query": line.query_id, "chunk": line.chunk_id, "annotator": line.annotator,
                 "file says": str(line.grade), "stands": str(there.grade)}
                for line, there in plan.conflicting[:MOST_SHOWN]
            ],
            hide_index=True,
            width="stretch",
        )  # fmt: skip
    with st.container(horizontal=True):
        new, both = f"Bring in {len(plan.new)} new", f"Bring in new and replace {len(plan.conflicting)}"
        st.button(new, on_click=_apply, args=(plan, store, False), disabled=not plan.new)
        st.button(both, on_click=_apply, args=(plan, store, True), disabled=not plan.conflicting)


def _apply(plan: ImportPlan, store: LabelStore, overwrite: bool) -> None:
    try:
        kind = import_kind(who.person(), plan.annotators)
        with who.doing(kind, plan.eval_set, whose=", ".join(plan.annotators)) as performed:
            done = apply_import(store, plan, overwrite, performed.signature)
            performed.result = f"{done.written} labels, {done.batch}"
        st.session_state[DONE] = asdict(done)
        st.session_state[VERSION] = st.session_state.get(VERSION, 0) + 1
    except (InputError, StoreError) as error:
        st.session_state[FAILED] = str(error)


def _said() -> None:
    """What the last import did, with its undo."""
    failed = st.session_state.pop(FAILED, "")
    if failed:
        say.problem("Nothing was stored.", failed)
    done = st.session_state.get(DONE)
    if done:
        st.markdown(f"**{counted(done['written'], 'label', 'labels')} brought in** as one batch.")
        st.button("Take this import back", icon=":material/undo:", on_click=_take_back, args=(done["batch"],))


def _take_back(batch: str) -> None:
    from pages.components import resources

    try:
        store = LabelStore(resources.label_store())
        with who.doing(undo_kind(who.person(), store.authors(batch)), batch) as performed:
            performed.result = f"{store.undo_batch(batch, performed.signature)} labels"
        st.session_state[DONE] = None
        st.session_state[VERSION] = st.session_state.get(VERSION, 0) + 1
    except (InputError, StoreError) as error:
        st.session_state[FAILED] = str(error)


def _export(eval_set: EvalSet, store: LabelStore) -> None:
    st.markdown(
        "**Take labels out.** JSONL keeps everything; trec, beir, quepid and srw hold one grade per chunk, ragas the "
        "texts of relevant ones."
    )
    chosen = st.selectbox("Format to write", [*FORMATS, RAGAS], key="exchange.out")
    try:
        plain = "trec" if chosen == RAGAS else chosen  # like it, one grade per chunk
        lines, left_out = lines_to_export(store, eval_set.name, None, plain)
        text = label_by_text.write(eval_set, lines) if chosen == RAGAS else write_labels(lines, chosen)
    except (InputError, StoreError) as error:
        say.problem("These labels cannot be written in this format.", str(error))
        return
    if left_out:
        st.markdown(f":gray[{left_out} unsure labels are left out: the format has no word for them.]")
    ending = ".jsonl" if chosen == RAGAS else next((one for one, name in SUFFIXES.items() if name == chosen), ".json")
    st.download_button(f"Download {len(lines)} labels", text, f"labels{ending}", disabled=not lines)
