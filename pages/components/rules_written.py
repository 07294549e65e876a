"""Who writes a family's rules: its template, or a language model where the environment names an endpoint.

What a model wrote is kept in the session for that state of the collection; its answers are kept in a journal of the
workspace, so that a run that was stopped asks only for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.components import resources, say
from pages.components.rules_state import Bench
from rag_core.errors import InputError, WinnowError
from rag_core.rules.generate import BATCH, check_generated, generate_rules
from rag_core.rules.proposals import Checked, check_proposals, template_proposals
from rag_core.rules.suggest import Crowd
from rag_core.settings import ModelSettings, model_settings
from rag_core.types import Chunk

TEMPLATE, MODEL = "its template", "a language model"
ANSWERS = "rules.answers"
JOURNAL = "rule-answers.jsonl"


@dataclass(frozen=True)
class Written:
    """Checked rules of a family, who wrote them, and what that run was."""

    checked: Checked
    by: str
    facts: str = ""


def choose(bench: Bench, family: Crowd) -> Written | None:
    """The rules of the family by the writer that is chosen, or None with the reason shown."""
    settings = _settings()
    by = st.selectbox("Rules written by", (TEMPLATE, MODEL) if settings else (TEMPLATE,), key="rules.by", width=200)
    chunks = [bench.by_id[identity] for identity in family.chunks]
    if settings is not None and by == MODEL:
        return _by_model(bench, chunks, settings)
    if settings is None:
        st.caption(
            "Set OPENAI_BASE_URL (or OPENAI_API_KEY), and OPENAI_MODEL, to let a language model write rules here too."
        )
    state = f"{bench.collection} {bench.revision} {bench.labels} {bench.min_grade}"
    checked = _by_template(state, family.chunks, bench)
    if checked is not None:
        return Written(checked, TEMPLATE)
    st.markdown(
        "No template fits these titles. Add one (docs/rules.md describes the file) and apply it with "
        "`rules generate --templates`, or write a rule under *Beside a query*."
    )
    return None


@st.cache_resource(max_entries=16, show_spinner="Checking the proposed rules")
def _by_template(state: str, chunk_ids: tuple[str, ...], _bench: Bench) -> Checked | None:
    """What the template writes for these chunks, checked against siblings and labels; None where none fits."""
    proposals = template_proposals([_bench.by_id[identity] for identity in chunk_ids])
    return check_proposals(proposals, _bench.chunks, _bench.cases, _bench.min_grade) if proposals else None


def _settings() -> ModelSettings | None:
    """The environment's endpoint; what is wrong with it is shown."""
    try:
        return model_settings()
    except InputError as error:
        say.problem("The environment’s model endpoint cannot be used.", str(error))
        return None


def _by_model(bench: Bench, chunks: list[Chunk], settings: ModelSettings) -> Written | None:
    """What the model wrote for these chunks; it is asked on a click only."""
    key = (bench.collection, bench.revision, bench.labels, settings.model, tuple(chunk.id for chunk in chunks))
    calls = -(-len(chunks) // BATCH)
    asked = st.button(f"Ask for {len(chunks)} rules ({calls} calls)", icon=":material/play_arrow:", key="rules.ask")
    kept: dict[Any, Written] = st.session_state.setdefault(ANSWERS, {})
    if asked:
        written = _ask(bench, chunks, settings)
        if written is not None:
            kept[key] = written
    if key not in kept:
        st.caption("Answers are kept: a run that was stopped asks only for what is missing.")
    return kept.get(key)


def _ask(bench: Bench, chunks: list[Chunk], settings: ModelSettings) -> Written | None:
    from rag_core.llm import Client  # late: the network client is a slow import
    from rag_core.llm.named import endpoint_of

    bar = st.empty()

    def draw_bar(done: int, total: int) -> None:
        bar.progress(done / max(1, total), f"Rules asked for: {done} of {total}")

    try:
        client = Client(endpoint_of(settings))
        made = generate_rules(chunks, client, settings.model, resources.workspace() / JOURNAL, progress=draw_bar)
    except (WinnowError, OSError) as error:
        say.problem("The model could not be asked.", str(error))
        return None
    finally:
        bar.empty()
    if made.unanswered:
        say.remarks(
            f"{len(made.unanswered)} chunks have no answer; ask again for them",
            [f"{identity}: {text}" for identity, text in made.unanswered.items()],
        )
    checked = check_generated(made, bench.chunks, bench.cases, bench.min_grade)
    return Written(checked, MODEL, f"{made.asked} calls made, {made.kept} answers were kept from before.")
