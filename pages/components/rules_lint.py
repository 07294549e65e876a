"""Lint: what is doubtful about the stored rules, gravest first; those that drop a relevant chunk stand apart.

Findings name chunks, terms and queries: foreign text, shown in cells and as inert text.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.components import inert_text, rules_beside, rules_editor, rules_state
from pages.components.inert_text import Block, Run
from pages.components.rules_state import Bench
from rag_core.rules.lint import SEVERITIES, Finding

TABLE = "rules.findings"
SIGNS = {"error": "✕ error", "warning": "! warning", "note": "· note"}
DROPS_RELEVANT = "drops-relevant"
MOST_CHUNKS = 40


def show(bench: Bench) -> None:
    """The findings, counted and as a table; a click shows one whole."""
    found = rules_state.findings(bench)
    counts = ", ".join(f"{sum(one.severity == name for one in found)} {name}s" for name in SEVERITIES)
    st.markdown(f"**{counts}.** {_about_relevant(bench, found)}")
    if not found:
        return
    chosen = st.dataframe(
        {
            "severity": [SIGNS[one.severity] for one in found],
            "kind": [one.kind.replace("-", " ") for one in found],
            "what": [one.text for one in found],
            "chunks": [len(one.chunks) for one in found],
            "first chunk": [next(iter(one.chunks), "") for one in found],
            "query": [one.query for one in found],
        },
        hide_index=True,
        key=TABLE,
        on_select="rerun",
        selection_mode="single-row",
        height=min(38 + 35 * len(found), 430),
        column_config={
            "severity": st.column_config.TextColumn("severity", width=90),
            "kind": st.column_config.TextColumn("kind", width=130),
            "what": st.column_config.TextColumn("what", width="large"),
            "chunks": st.column_config.NumberColumn("chunks", width=70),
        },
        alt=f"{len(found)} findings on the rules with severity, kind, sentence, chunks and query",
    )
    rows = chosen["selection"]["rows"]
    if rows and rows[0] < len(found):
        _one(bench, found[rows[0]])
    else:
        st.markdown(":gray[Select a finding to see it whole and to edit its rule beside the query.]")


def _about_relevant(bench: Bench, found: Sequence[Finding]) -> str:
    """How many rules lose an answer, or that nothing can be said."""
    if not bench.cases:
        return "No labelled queries are chosen: whether a rule drops a relevant chunk is not checked."
    lost = [one for one in found if one.kind == DROPS_RELEVANT]
    chunks = {identity for one in lost for identity in one.chunks}
    if not lost:
        return f"No rule drops a chunk labelled relevant on any of the {len(bench.cases)} labelled queries."
    return (
        f"{len(chunks)} rules drop a chunk labelled relevant, {len(lost)} times in {len(bench.cases)} labelled queries."
    )


def _one(bench: Bench, finding: Finding) -> None:
    """A finding with all its chunks and the query that shows it, and the way to the editor."""
    shown = [_named(bench, identity) for identity in finding.chunks[:MOST_CHUNKS]]
    more = len(finding.chunks) - len(shown)
    blocks = [Block("text", (Run(finding.text),))]
    if finding.query in bench.queries:
        blocks.append(Block("text", (Run(f"Query {finding.query}: {bench.queries[finding.query]}"),)))
    blocks.append(Block("box", (Run("\n".join(shown) + (f"\nand {more} more" if more else "")),)))
    inert_text.show(blocks, key="rules.finding")
    if finding.chunks:
        st.button(
            "Edit its rule beside a query",
            icon=":material/edit:",
            key="rules.edit",
            on_click=_edit,
            args=(finding,),
        )


def _named(bench: Bench, identity: str) -> str:
    chunk = bench.by_id.get(identity)
    return f"{identity}: {chunk.title}" if chunk is not None and chunk.title else identity


def _edit(finding: Finding) -> None:
    st.session_state["rules.view"] = "Beside a query"
    st.session_state[rules_editor.CHUNK] = finding.chunks[0]
    if finding.query:
        st.session_state[rules_beside.QUERY] = finding.query
