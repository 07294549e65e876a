"""The rules of a project's source: stored and taken back as batches, checked by the linter, one edited as JSON.

What may be stored is decided by rag_core.rules before anything comes here. Chunk text, titles and ids are foreign text:
they stand in cells, lists of choices and inert text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import streamlit as st

from pages.components import inert_text, say, who
from pages.components.act import refusing
from pages.components.inert_text import Block, TextRun
from pages.widgets.take_along import table
from rag_core.errors import InputError, WinnowError
from rag_core.files import parse_json
from rag_core.index import push
from rag_core.index.push import RulePush, push_rules
from rag_core.project import rules as stored_rules
from rag_core.project.deeds import CHANGE_RULES, UNDO_RULES, Kind
from rag_core.project.project import COLLECTION, Project
from rag_core.project.session import Session
from rag_core.rules.check import SEVERITIES, RuleFinding, check_proposals, lint_rules
from rag_core.rules.match import RulePart, RuleVerdict, chip_text, decide, would_stay_text
from rag_core.rules.rule import Rule, parse_rule, read_rule
from rag_core.types import Chunk

PUSHED = "data.rules_pushed"  # (project, what a push would change or did)
DONE, FAILED = "data.rules_done", "data.rules_failed"  # (project, sentence, batch that can be undone or 0); why not
CHUNK, VIEW = "data.rule_chunk", "data.rules_view"
SECTION, RULES = "data.section", "Rules"  # which section of the place stands open, and this one
BATCHES, LINT, EDIT = "Batches", "Lint", "Edit one"
KEYS = {
    "contain_one_of": "one of",
    "contain_all_of": "all of",
    "contain": "contains",
    "number_in": "number",
    "when_named": "one of",
}
SIGNS = {"error": "✕ error", "warning": "! warning", "note": "· note"}
DROPS_RELEVANT = "drops-relevant"
MOST_CHUNKS, MOST_CHOICES = 40, 500
EMPTY = '{"contain_one_of": [["one term", "another"], ["a term of a second group"]]}'


def show(session: Session) -> None:
    """What was stored, what is doubtful about it, and one rule to edit."""
    show_outcome(session.project)
    views = (BATCHES, LINT, EDIT)
    if st.session_state.get(VIEW) not in views:
        st.session_state[VIEW] = BATCHES
    view = st.segmented_control("Rules", views, required=True, key=VIEW, label_visibility="collapsed")
    if view == LINT:
        _lint(session)
    elif view == EDIT:
        _edit(session)
    else:
        _batches(session.project)


# Storing


def store(project: Project, rules: Mapping[str, Rule | None], about: str) -> None:
    """Store rules as one batch and keep the sentence about it for the page."""
    st.session_state.pop(DONE, None)
    with refusing(FAILED), who.doing(CHANGE_RULES, project.name):
        batch = stored_rules.apply(project, rules, about)
        said = f"Batch {batch.number} is stored: {batch.chunks:,} chunks, nothing was embedded."
        st.session_state[DONE] = (project.name, said, batch.number)


def undo(project: Project, number: int) -> None:
    """Take one batch back."""
    st.session_state.pop(DONE, None)
    with refusing(FAILED), who.doing(UNDO_RULES, project.name):
        undone = stored_rules.undo(project, number)
        kept = f"; {len(undone.changed_since):,} were changed since and stay" if undone.changed_since else ""
        said = f"Batch {undone.number} is undone: {len(undone.restored):,} chunks are as before{kept}."
        st.session_state[DONE] = (project.name, said, 0)


def show_outcome(project: Project) -> None:
    """What the last press stored in this project, with its undo; or why it did not."""
    if st.session_state.get(FAILED):
        say.problem("Nothing was stored.", st.session_state[FAILED])
    name, sentence, number = st.session_state.get(DONE, ("", "", 0))
    if name != project.name:
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="data.rules_outcome"):
        st.markdown(f":material/check: {sentence}")
        if number:
            st.button(
                f"Undo batch {number}",
                icon=":material/undo:",
                key="data.undo_last",
                on_click=undo,
                args=(project, number),
            )


def _batches(project: Project) -> None:
    """Every batch, newest first, and the undo of one."""
    batches = stored_rules.batches(project)[::-1]
    if not batches:
        st.markdown("No batch yet: rules that are applied from a family or edited here are listed with an undo.")
        return
    table(
        {
            "batch": [one.number for one in batches],
            "state": ["undone" if one.undone else "stands" for one in batches],
            "chunks": [one.chunks for one in batches],
            "for": [one.about for one in batches],
            "stored at (UTC)": [one.at[:19].replace("T", " ") for one in batches],
        },
        "data.batches",
        f"{len(batches)} batches of rules with state, number of chunks, purpose and time",
        tall=400,
    )
    standing = {one.number: f"{one.number}: {one.chunks:,} chunks, {one.about}" for one in batches if not one.undone}
    if not standing:
        return
    if st.session_state.get("data.batch") not in standing:
        st.session_state["data.batch"] = next(iter(standing))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        number = st.selectbox(
            "Batch", list(standing), format_func=lambda one: standing[one], key="data.batch", width=420
        )
        st.button("Undo this batch", icon=":material/undo:", key="data.undo", on_click=undo, args=(project, number))
    st.caption("Chunks whose rules were changed by a later batch keep what they have.")
    _back_to_the_store(project)


# Back to the store that they are for


def _back_to_the_store(project: Project) -> None:
    """What of the rules set here the person's own Chroma store lacks, written there on request and taken back."""
    collection = project.source.name
    try:
        if project.source.kind != COLLECTION:
            return
        place = stored_rules.store_of(project.workspace, collection)
    except (WinnowError, OSError):  # its chunks were ingested here: there is no other store
        return
    st.markdown(f"**Back to the store** {say.plain(place.said)}")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "What would change", icon=":material/difference:", key="data.push_look", on_click=_push,
            args=(project, None, lambda: push_rules(project.workspace, collection, place, dry_run=True)),
        )  # fmt: skip
        of_project, told = st.session_state.get(PUSHED, ("", None))
        told = told if of_project == project.name else None
        if told is not None and told.changes and not told.state:
            st.button(
                f"Write {len(told.changes):,} rules there", icon=":material/upload:", key="data.push", type="primary",
                on_click=_push,
                args=(project, CHANGE_RULES, lambda: push_rules(project.workspace, collection, place)),
            )  # fmt: skip
        if any(one.state in (push.DONE, push.WRITING) for one in push.pushes(project.workspace, collection)):
            st.button(
                "Take the last writing back", icon=":material/undo:", key="data.push_undo", on_click=_push,
                args=(project, UNDO_RULES, lambda: push.undo_push(project.workspace, collection, place)),
            )  # fmt: skip
    if told is None:
        st.caption(
            "Rules set here are written into the store's metadata only on request, a chunk at a time to be seen."
        )
        return
    *_, summary = told.to_text().splitlines()
    st.text(told.ended or summary)
    if told.changes:
        table(
            {
                "chunk": [one.chunk for one in told.changes],
                "there now" if not told.state else "before": [_value(one.before) for one in told.changes],
                "then" if not told.state else "after": [_value(one.after) for one in told.changes],
                "": ["left: changed by somebody else" if one.chunk in told.left else "" for one in told.changes],
            },
            "data.pushed",
            f"{len(told.changes)} chunks whose rule in the store changes, with its value before and after",
            tall=300,
        )


def _value(stored: Any) -> str:
    return "no rule" if stored is None else str(stored)


def _push(project: Project, kind: Kind | None, work: Callable[[], RulePush]) -> None:
    """Ask the store, or write there as a deed of that kind, and keep what is told of it for the page."""
    st.session_state.pop(PUSHED, None)
    with refusing(FAILED), nullcontext() if kind is None else who.doing(kind, project.name):
        st.session_state[PUSHED] = (project.name, work())


# Lint


@st.cache_resource(max_entries=4, show_spinner="Checking the rules …")
def _findings(workspace: str, key: str, _session: Session) -> tuple[RuleFinding, ...]:
    cases = _session.dev or list(_session.cases)
    return tuple(lint_rules(_session.source.chunks, cases, _session.min_grade))


def _lint(session: Session) -> None:
    """What is doubtful about the stored rules, gravest first; a row shows one whole and leads to its rule."""
    prints = session.fingerprints()
    key = f"{session.project.name} {prints['source']} {prints['rules']} {prints['labels']}"
    findings = _findings(str(session.workspace), key, session)
    counts = ", ".join(f"{sum(one.severity == name for one in findings)} {name}s" for name in SEVERITIES)
    labelled = sum(bool(case.grades) for case in session.dev or session.cases)
    lost = [one for one in findings if one.kind == DROPS_RELEVANT]
    if not labelled:
        about = "No dev question has a label: whether a rule drops a relevant chunk is not checked."
    elif lost:
        chunks = {identity for one in lost for identity in one.chunks}
        about = f"{len(chunks)} rules drop a chunk labelled relevant, {len(lost)} times in {labelled} dev questions."
    else:
        about = f"No rule drops a chunk labelled relevant on any of the {labelled} labelled dev questions."
    st.markdown(f"**{counts}.** {about}")
    if not findings:
        return
    by_id = session.source.by_id

    def titled(identity: str) -> str:
        return by_id[identity].title or identity if identity in by_id else identity

    chosen = table(
        {
            "severity": [SIGNS[one.severity] for one in findings],
            "kind": [one.kind.replace("-", " ") for one in findings],
            "what": [one.text for one in findings],
            "chunks": [len(one.chunks) for one in findings],
            "first chunk": [titled(next(iter(one.chunks), "")) for one in findings],
            "question": [one.query for one in findings],
        },
        "data.findings",
        f"{len(findings)} findings on the rules with severity, kind, sentence, chunks and question",
        tall=430,
        on_select="rerun",
        selection_mode="single-row",
    )
    rows = chosen["selection"]["rows"]
    if not rows or rows[0] >= len(findings):
        st.markdown(":gray[Select a finding to edit its rule.]")
        return
    finding = findings[rows[0]]
    st.text("\n".join([finding.text, *map(titled, finding.chunks[:MOST_CHUNKS])]))
    if finding.chunks:
        st.button(
            "Edit its rule", icon=":material/edit:", key="data.edit_rule", on_click=edit, args=(finding.chunks[0],)
        )


# Editing one


def edit(chunk_id: str) -> None:
    """Show the rule of a chunk to edit: for the on_click of whatever shows the chunk."""
    st.session_state[CHUNK] = chunk_id
    st.session_state[VIEW] = EDIT
    st.session_state[SECTION] = RULES


def _edit(session: Session) -> None:
    """One chunk's rule as JSON, tried on a question as it is typed, and saved after the check."""
    chunks = session.source.by_id
    left, right = st.columns(2, gap="large")
    with left:
        found = sorted(chunks.values(), key=lambda one: (one.query_must is None, one.title))
        options = {one.id: _option(one) for one in found[:MOST_CHOICES]}
        wanted = chunks.get(st.session_state.get(CHUNK, ""))
        if wanted is not None:
            options[wanted.id] = _option(wanted)
        if not options:
            st.markdown("No chunk fits.")
            return
        if st.session_state.get(CHUNK) not in options:
            st.session_state[CHUNK] = next(iter(options))
        chosen = st.selectbox("Chunk", list(options), format_func=lambda one: options[one], key=CHUNK)
        chunk = chunks[str(chosen)]
        stored = stored_text(chunk)
        key = f"data.rule_text.{session.source.rules_fingerprint}.{chunk.id}"
        text = st.text_area("Its rule as JSON; empty: no rule", stored, height=200, key=key, placeholder=EMPTY)
        problem, rule = "", None
        try:
            rule = read_draft(text or "", chunk.id)
        except InputError as error:
            problem = str(error)
        if problem:
            say.problem("This rule cannot be read.", problem)
        with st.container(horizontal=True):
            st.button(
                "Save this rule", type="primary", icon=":material/save:", key="data.rule_save",
                on_click=_save, args=(session, chunk, key),
            )  # fmt: skip
            st.button(
                "Reset", icon=":material/undo:", key="data.rule_reset",
                on_click=st.session_state.update, args=({key: stored},),
            )  # fmt: skip
    with right:
        question = st.text_input("Try a question", key="data.rule_question", placeholder="What does a cleric need?")
        blocks = [Block("text", (TextRun(chunk.title or chunk.id),))]
        if problem:
            blocks.append(
                Block("note", (TextRun("The rule cannot be read: a stored one like it would drop nothing."),))
            )
        elif rule is None:
            blocks.append(Block("note", (TextRun("No rule: the chunk is never dropped."),)))
        else:
            verdict = decide(rule, question or "")
            if question:
                said = "On this question: kept" if verdict.satisfied else "On this question: dropped"
                blocks.append(Block("note", (TextRun(said),)))
            blocks.append(Block("chips", chips(verdict, plain=not question)))
            if question and not verdict.satisfied:
                blocks.append(Block("note", (TextRun(would_stay_text(verdict)),)))
        blocks.append(Block("box", (TextRun(chunk.text or "This chunk has no text."),)))
        inert_text.show(blocks, key="data.rule_read")


def _option(chunk: Chunk) -> str:
    words = chunk.title or chunk.id
    return words if chunk.query_must is not None else f"{words} (no rule)"


def read_draft(text: str, chunk_id: str) -> Rule | None:
    """The rule of an edited text, None for an empty one; an InputError says in one sentence what is wrong."""
    if not text.strip():
        return None
    return parse_rule(parse_json(text, "the rule"), f"chunk {chunk_id[:80]}")


def stored_text(chunk: Chunk) -> str:
    """The stored rule as text to edit; one that cannot be read stands there as it is."""
    rule = read_rule(chunk.query_must)
    if rule is None:
        return ""
    if isinstance(rule, Rule):
        return rule_text(rule)
    raw = chunk.query_must
    return raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False, default=str, indent=1)


def _save(session: Session, chunk: Chunk, key: str) -> None:
    """Check the rule that stands in the text area and store it as a batch of one."""
    st.session_state.pop(DONE, None)
    with refusing(FAILED):
        rule = read_draft(st.session_state.get(key) or "", chunk.id)
        if rule == read_rule(chunk.query_must):
            raise InputError("the rule is the stored one already")
        if rule is not None:
            cases = session.dev or list(session.cases)
            checked = check_proposals({chunk.id: rule}, session.source.chunks, cases, session.min_grade)
            if checked.refused:
                raise InputError(f"the rule {checked.refused[0].reason}")
    if not st.session_state[FAILED]:
        store(session.project, {chunk.id: rule}, "edited by hand" if rule else "rule taken away")


# A rule as a person reads it


def chips(verdict: RuleVerdict, plain: bool = False) -> tuple[TextRun, ...]:
    """A chip per condition: held or missing with the words that matched, or neither where no question is asked."""

    def chip(part: RulePart) -> TextRun:
        matched = f" → {part.term}" if part.term and len(part.terms) > 1 else ""
        said = f"{KEYS.get(part.key, part.key)}: {chip_text(part)}{matched}"
        return TextRun(said, "plain" if plain else "held" if part.satisfied else "missing")

    return tuple(map(chip, verdict.parts))


def rule_text(rule: Rule) -> str:
    """The rule as indented JSON, short lists on one line: what the text area holds."""
    parts = []
    for key, value in rule.as_mapping().items():
        if isinstance(value, list):
            rows = ",\n".join(f"    {json.dumps(one, ensure_ascii=False)}" for one in value)
            parts.append(f"  {json.dumps(key)}: [\n{rows}\n  ]")
        else:
            parts.append(f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(parts) + "\n}"
