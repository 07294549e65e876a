"""A pipeline that Tune came to, taken along: as a file, into the workspace, or opened on the Bench."""

from __future__ import annotations

import re
import tempfile
from dataclasses import replace
from pathlib import Path

import streamlit as st

from pages import state
from pages.components import resources, say, tuning_set, who
from rag_core.cli.tuning_output import write_pipeline
from rag_core.errors import InputError
from rag_core.eval_sets.reading import EvalSet
from rag_core.project.deeds import SAVE_PIPELINE
from rag_core.stage import Pipeline

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")


def draw(chosen: EvalSet, pipeline: Pipeline, what: str, key: str = "tune") -> None:
    """The pipeline as a file: download, into the workspace; and opened on the Bench."""
    with st.popover("Save as pipeline file", icon=":material/save:"):
        st.markdown(what)
        st.session_state.setdefault(f"{key}.name", f"tuned-{chosen.name}"[:60])
        wanted = st.text_input("Name", key=f"{key}.name", max_chars=60, persist_state="session") or ""
        good = NAME.fullmatch(wanted) is not None
        if not good:
            tuning_set.quiet("Small letters, digits and hyphens, please.")
        named = replace(pipeline, label=wanted or "tuned")
        with st.container(horizontal=True):
            st.download_button(
                "Download", lambda: text_of(named), f"{wanted or 'tuned'}.yaml", "application/yaml",
                on_click="ignore", disabled=not good, key=f"{key}.download",
            )  # fmt: skip
            if st.button("Save to the workspace", key=f"{key}.save", disabled=not good):
                _save(wanted, named)
    _draw_open(chosen, pipeline, key)


def _draw_open(chosen: EvalSet, pipeline: Pipeline, key: str) -> None:
    """The way to the Bench with this pipeline as A."""
    text = "This pipeline on every single question of the same project."
    if st.button("Open on the Bench", icon=":material/filter_alt:", key=f"{key}.open", help=text):
        state.change(project=chosen.name)
        state.change(a=state.encode(pipeline))
        st.switch_page("pages/bench/page.py", query_params=state.link())


def _save(name: str, pipeline: Pipeline) -> None:
    path = resources.workspace() / "pipelines" / f"{name}.yaml"
    try:
        with who.doing(SAVE_PIPELINE, name):
            write_pipeline(path, pipeline)
    except (InputError, OSError) as error:
        say.problem("The pipeline cannot be stored.", str(error))
        return
    st.text(f"stored as {path.parent.name}/{path.name} in the workspace")


def text_of(pipeline: Pipeline) -> str:
    """The pipeline file's text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pipeline.yaml"
        write_pipeline(path, pipeline)
        return path.read_text(encoding="utf-8")
