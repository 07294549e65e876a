"""Proposed rules of a family before anything is stored: each with its verdicts on the labelled queries, the effect of
all together, and one click that stores those that pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from pages.components import inert_text, rules_state, rules_store, say
from pages.components.inert_text import Block, Run
from pages.components.reading import figure, label_of
from pages.components.rules_chips import chips, rule_text
from pages.components.rules_state import Bench
from pages.components.rules_written import Written
from rag_core.rules.explain import reason_text
from rag_core.rules.match import decide
from rag_core.rules.model import Rule
from rag_core.rules.parsing import read_rule
from rag_core.rules.proposals import Preview, preview
from rag_core.rules.suggest import Crowd
from rag_core.types import Chunk

TABLE = "rules.proposals"
CHUNK = "rules.proposal"
REFUSED = "refused"


@dataclass(frozen=True)
class Line:
    """One proposal: its chunk, the rule (None where it cannot be used), what becomes of it and what it does."""

    chunk: Chunk
    rule: Rule | None
    state: str  # new | stored already | replaces a rule | refused
    reason: str
    previews: tuple[Preview, ...]

    def count(self, min_grade: int, relevant: bool, admitted: bool) -> int:
        """How many queries the chunk is labelled relevant (or irrelevant) for and the rule admits (or drops)."""
        return sum(
            one.grade is not None and (one.grade >= min_grade) == relevant and one.verdict.satisfied == admitted
            for one in self.previews
        )


def show(bench: Bench, family: Crowd, written: Written) -> None:
    """The proposals of a family, their verdicts, their effect and the click that stores them."""
    lines = lines_of(bench, family, written)
    if not lines:
        st.markdown("No rule was proposed for any chunk of this family.")
        return
    fresh = {line.chunk.id: line.rule for line in lines if line.rule is not None and line.state in FRESH}
    _actions(bench, family, written, lines, fresh)
    if written.facts:
        st.caption(written.facts)
    if written.checked.warnings:
        say.remarks(f"{len(written.checked.warnings)} warnings", written.checked.warnings)
    side_by_side = st.container(horizontal=True, gap="medium")
    with side_by_side.container(width=540):
        _table(bench, lines)
    with side_by_side.container(width="stretch"):
        _verdicts(bench, next(line for line in lines if line.chunk.id == st.session_state[CHUNK]))


FRESH = ("new", "replaces a rule")


def lines_of(bench: Bench, family: Crowd, written: Written) -> list[Line]:
    """A line per chunk of the family that a rule was proposed for, refused ones first."""
    refused = {one.chunk_id: one.reason for one in written.checked.refused}
    found = []
    for identity in family.chunks:
        chunk, rule = bench.by_id[identity], written.checked.accepted.get(identity)
        if rule is not None:
            found.append(Line(chunk, rule, _state(chunk, rule), "", preview(identity, rule, bench.cases)))
        elif identity in refused:
            found.append(Line(chunk, None, REFUSED, refused[identity], ()))
    return sorted(found, key=lambda line: line.state != REFUSED)


def _state(chunk: Chunk, rule: Rule) -> str:
    stored = read_rule(chunk.query_must)
    if stored is None:
        return "new"
    return "stored already" if stored == rule else "replaces a rule"


def _actions(
    bench: Bench, family: Crowd, written: Written, lines: Sequence[Line], fresh: Mapping[str, Rule | None]
) -> None:
    """What storing does to the labelled queries, and the clicks that store or take away."""
    refused = sum(line.state == REFUSED for line in lines)
    passing = len(lines) - refused
    st.markdown(
        f"**{len(lines)} rules proposed by {written.by}: {passing} pass, {refused} refused, "
        f"{passing - len(fresh)} stored already.** Nothing is stored before you apply."
    )
    standing = {identity: None for identity in family.chunks if bench.by_id[identity].query_must is not None}
    _effect(bench, fresh or standing, bool(fresh))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            f"Apply {len(fresh)} rules" if fresh else "Nothing to apply",
            type="primary",
            icon=":material/check:",
            disabled=not fresh,
            key="rules.apply",
            on_click=rules_store.store,
            args=(bench.collection, fresh, f"written by {written.by}: {family.name}"[:200]),
        )
        st.button(
            f"Take away {len(standing)} rules",
            icon=":material/remove:",
            disabled=not standing,
            key="rules.take_away",
            help="As one batch, which can be undone: to see what the family does without its rules.",
            on_click=rules_store.store,
            args=(bench.collection, standing, f"taken away: {family.name}"[:200]),
        )


def _effect(bench: Bench, changes: rules_state.Rules, applies: bool) -> None:
    """SetP, SetR and SetF at k with the stored rules, and with the change."""
    if not changes or not any(case.candidates is not None for case in bench.cases):
        return
    now, then = (rules_state.report(bench, rules).summary for rules in ({}, changes))
    words = "with these applied" if applies else "with these taken away"
    with st.container(horizontal=True, key="rules.effect"):
        for name in ("SetP", "SetR", "SetF"):
            st.metric(
                f"{name} at {bench.k}",
                figure(now.means, name),
                f"{figure(then.means, name)} {words}",
                delta_color="off",
                delta_arrow="off",
                width=210,
                help=f"Stored rules with refill; macro over {now.queries_scored} of {now.queries_total} queries.",
            )


def _table(bench: Bench, lines: Sequence[Line]) -> None:
    ids = [line.chunk.id for line in lines]
    if st.session_state.get(CHUNK) not in ids:
        st.session_state[CHUNK] = ids[0]
    st.session_state[TABLE] = {"selection": {"rows": [ids.index(st.session_state[CHUNK])], "columns": []}}
    total = len(bench.cases)
    st.dataframe(
        {
            "state": [line.state for line in lines],
            "title": _tails([line.chunk.title or line.chunk.id for line in lines]),
            "admits": [sum(one.verdict.satisfied for one in line.previews) for line in lines],
            "relevant kept": [_share(line, bench.min_grade, True) for line in lines],
            "irrelevant dropped": [_share(line, bench.min_grade, False) for line in lines],
            "rule": ["" if line.rule is None else line.rule.as_json() for line in lines],
            "reason": [line.reason for line in lines],
        },
        hide_index=True,
        key=TABLE,
        on_select=lambda: _chosen(ids),
        selection_mode="single-row",
        height=min(38 + 35 * len(lines), 430),
        column_config={
            "state": st.column_config.TextColumn("state", width=104),
            "title": st.column_config.TextColumn("title", width=170),
            "admits": st.column_config.NumberColumn("admits", help=f"Queries of {total} it admits", width=66),
            "relevant kept": st.column_config.TextColumn(
                "relevant kept", help="Of the queries the chunk is labelled relevant for", width=104
            ),
            "irrelevant dropped": st.column_config.TextColumn(
                "irrelevant dropped", help="Of the queries the chunk is labelled irrelevant for", width=130
            ),
        },
        alt=f"{len(lines)} proposed rules with state, title, what they admit and the reason of a refusal",
    )


def _tails(titles: Sequence[str]) -> list[str]:
    """The titles from just before the word in which they differ: that is what tells the family's chunks apart."""
    words = [title.split() for title in titles]
    shortest = min(len(one) for one in words) - 1 if len(words) > 1 else 0
    shared = next((at for at in range(shortest) if len({one[at] for one in words}) > 1), shortest) - 2
    return [f"… {' '.join(one[shared:])}" if shared > 0 else title for one, title in zip(words, titles, strict=True)]


def _share(line: Line, min_grade: int, relevant: bool) -> str:
    """How many of the labelled queries go the way they should."""
    if line.rule is None:
        return ""
    right = line.count(min_grade, relevant, admitted=relevant)
    return f"{right} of {right + line.count(min_grade, relevant, admitted=not relevant)}"


def _chosen(ids: Sequence[str]) -> None:
    rows = st.session_state[TABLE]["selection"]["rows"]
    if rows and rows[0] < len(ids):
        st.session_state[CHUNK] = ids[rows[0]]


def _verdicts(bench: Bench, line: Line) -> None:
    """One proposal: its rule as chips and JSON, and its verdict on every labelled query."""
    blocks = [Block("text", (Run(line.chunk.title or line.chunk.id),))]
    if line.rule is None:
        inert_text.show([*blocks, Block("text", (Run(f"Refused: {line.reason}"),))], key="rules.proposal.head")
        return
    inert_text.show([*blocks, Block("chips", chips(decide(line.rule, ""), plain=True))], key="rules.proposal.head")
    if not bench.cases:
        st.markdown(":gray[No labelled queries are chosen: the rule is checked against its siblings alone.]")
    else:
        _per_query(bench, line)
    with st.expander("The rule as JSON"):
        st.code(rule_text(line.rule), language="json")


def _per_query(bench: Bench, line: Line) -> None:
    """Every query with the verdict on it: labelled ones first, then those the rule admits."""
    rows = sorted(line.previews, key=lambda one: (one.grade is None, not one.verdict.satisfied))
    queries = bench.queries
    labels = [label_of(one.grade, bench.min_grade) for one in rows]
    st.dataframe(
        {
            "verdict": ["● admits" if one.verdict.satisfied else "○ drops" for one in rows],
            "label": labels,
            "query": [queries[one.query_id] for one in rows],
            "because": [
                ", ".join(part.term or "" for part in one.verdict.parts)
                if one.verdict.satisfied
                else reason_text(one.verdict)
                for one in rows
            ],
        },
        hide_index=True,
        key="rules.verdicts",
        height=min(38 + 35 * len(rows), 290),
        column_config={
            "verdict": st.column_config.TextColumn("verdict", width=84),
            "label": st.column_config.TextColumn("label", width=84),
            "query": st.column_config.TextColumn("query", width="medium"),
        },
        alt=f"The rule's verdict on {len(rows)} labelled queries, with label and reason",
    )
