"""The drawer of the stage that filters by entities, and its section under the Bench: a structure looked at closely.

The drawer speaks of the structure that pipelines use. In the section another file, and more aliases, are tried in this
browser session alone until *Use it in pipelines* stores them. Names and words of a structure are foreign text: they
stand in cells, in the JSON tree and as inert text only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from pages import state
from pages.bench import sight
from pages.bench.sight import SeenList
from pages.components import inert_text, say, who
from pages.components.inert_text import Block, TextRun, marked
from pages.widgets.take_along import BLUE, GREY, ORANGE, take_along
from rag_core.entities import Explanation, Structure, TeamFilter, load_structure
from rag_core.entities.agreement import (
    Agreement,
    Change,
    LabelledQuery,
    agreement,
    changes,
    labelled_from_text,
    read_labelled,
    threshold_curve,
)
from rag_core.entities.filter import CHARACTERS_PER_TOKEN
from rag_core.entities.lint import lint_structure
from rag_core.entities.match import TEAM_MATCH_THRESHOLD
from rag_core.entities.reading import read
from rag_core.entities.structure import structure_from_text, structure_text
from rag_core.errors import InputError
from rag_core.eval_sets.reading import SHIPPED
from rag_core.files import decode, write_whole
from rag_core.filters.entity import entities_named
from rag_core.project.deeds import CHANGE_STRUCTURE
from rag_core.project.session import Session
from rag_core.resources import STRUCTURE_BUDGET, STRUCTURE_FILES, structure_path
from rag_core.text import tokenize

DEMO, OWN = "demo", "workspace"
LABELLED = SHIPPED / "skirmish-entities" / "queries.jsonl"
SOURCE, QUERY, QUERY_OF = "entities.source", "entities.query", "entities.query_of"
DROPPED, DROPPED_LABELS = "entities.dropped", "entities.dropped_labels"
ALIASES, PROBLEM = "entities.added", "entities.problem"
LONGEST_QUERY = 10_000
OPEN_UP_TO = 3  # entities: more are shown folded
STRATEGIES = {
    "operative": "a member’s name",
    "ability": "an ability’s name",
    "alias": "another name, a synonym or initials",
    "team_name": "the entity’s own name, also misspelt",
}
CURVE = tuple(range(60, 101, 2))
THREE = st.column_config.NumberColumn(format="%.3f")
RIGHT, WRONG, PARTLY = "✓ right now", "✕ wrong now", "partly"

HELP = """
**Score.** 100 where the words are the same, singular or plural; else how alike two spellings are, up to 100.

**Confidence.** Score ÷ 100 × the share of the name’s words that stood in the query; × 0.9 through initials.

**Precision** is the share of the found entities that are meant, **recall** the share of the meant ones that are found.
Macro: per query, then the mean. Micro: over all pairs of query and entity.

**Threshold.** The stage’s own: the least likeness of a misspelt name of six letters and more. Shorter names may differ
in one letter.
"""

Added = tuple[tuple[str, tuple[str, ...]], ...]
"""Aliases added in this session, in order: (alias, entities)."""


def drawer(entry: SeenList, session: Session) -> None:
    """What the pipelines' structure does here: chunks that name its entities, the question in sight, its labels."""
    own = structure_path(session.workspace)
    st.markdown("**The workspace’s structure**" if own else "**The demo structure**: 48 invented teams")
    try:
        key, structure = _loaded(OWN if own else DEMO, session)
    except InputError as error:
        say.problem("The structure cannot be read, so this stage cannot run.", str(error))
        return
    finder = _finder(key, (), structure).at(_threshold(entry))
    _named_by_chunks(entry, session, finder)
    case = sight.question_in_sight(session, state.current().question)
    if case is not None:
        _show_query(finder.explain(case.query.text), "drawer.entities.query")
    labelled, _ = _labelled(frozenset(finder.teams))
    if labelled:
        agreed = agreement(finder, labelled)
        st.markdown(
            f"{agreed.queries} labelled queries: precision **{agreed.precision:.3f}**, recall **{agreed.recall:.3f}**, "
            f"{len(agreed.misses)} not exact."
        )


def _named_by_chunks(entry: SeenList, session: Session, finder: TeamFilter) -> None:
    """How many chunks the stage can judge at all."""
    field = str(entry.stage.settings().get("field", ""))
    known = {team.casefold() for team in finder.teams}
    chunks = session.source.chunks
    named = [names for chunk in chunks if (names := entities_named(chunk.metadata, field))]
    judged = sum(not known.isdisjoint(names) for names in named)
    foreign = f" {len(named) - judged:,} more name something that is not in it." if len(named) > judged else ""
    if judged:
        st.text(f"{judged:,} of {len(chunks):,} chunks name one of its entities under {field}.{foreign}")
    else:
        st.text(f"No chunk names one of its entities under {field}, so this stage drops nothing.{foreign}")


def _threshold(entry: SeenList) -> float:
    return float(entry.stage.settings().get("threshold", TEAM_MATCH_THRESHOLD))


# The section under the Bench


def section(entry: SeenList, session: Session) -> None:
    """A structure at full width: what a question means and why, aliases on trial, agreement with labels, lint."""
    with st.container(border=True, key="entities.section"):
        chosen = _choose(session)
        if chosen is None:
            return
        key, structure = chosen
        threshold = _threshold(entry)
        finder = _finder(key, _added(key), structure).at(threshold)
        explained = finder.explain(_query(session))
        _show_query(explained, "entities.query.read")
        _show_figures(finder, explained)
        view = st.segmented_control(
            "View",
            ("Matches", "Aliases", "Labelled queries", "Lint"),
            default="Matches",
            required=True,
            key="entities.view",
            label_visibility="collapsed",
        )
        if view == "Aliases":
            _aliases(key, structure, threshold)
        elif view == "Labelled queries":
            _agreement_view(finder)
        elif view == "Lint":
            _lint(finder)
        else:
            _show_matches(explained)
            _show_tree(finder, explained)
        _keeping(finder.structure, session)


def _choose(session: Session) -> tuple[str, Structure] | None:
    """The structure that is looked at, or None with the reason shown."""
    titles = {DEMO: "Demo: 48 invented teams"}
    if structure_path(session.workspace):
        titles = {OWN: "The workspace’s structure", **titles}
    if DROPPED in st.session_state:
        titles[st.session_state[DROPPED][0]] = "Your file, in this session"
    if st.session_state.get(SOURCE) not in titles:
        st.session_state[SOURCE] = next(iter(titles))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        source = st.selectbox("Structure", list(titles), format_func=titles.__getitem__, key=SOURCE, width=260)
        with st.popover("Open a file", icon=":material/upload:"):
            st.file_uploader(
                "Structure (YAML or JSON)",
                type=["yaml", "yml", "json"],
                key="entities.file",
                on_change=_take_structure,
                help="Entities with their members, abilities and aliases; docs/entities.md describes the form.",
            )
        with st.popover("?", help="What the numbers mean"):
            st.markdown(HELP)
    if st.session_state.get(PROBLEM):
        say.problem("This file cannot be opened; nothing was changed.", st.session_state[PROBLEM])
    try:
        return _loaded(source or DEMO, session)
    except InputError as error:
        say.problem("This structure cannot be read.", str(error))
        return None


def _query(session: Session) -> str:
    """The question in sight, until another one is typed here."""
    case = sight.question_in_sight(session, state.current().question)
    if case is not None and st.session_state.get(QUERY_OF) != (session.project.name, case.query.id):
        st.session_state[QUERY_OF] = (session.project.name, case.query.id)
        st.session_state[QUERY] = case.query.text[:LONGEST_QUERY]
    return st.text_input("Query", max_chars=LONGEST_QUERY, key=QUERY, placeholder="A question") or ""


# What a question means


def _show_query(explained: Explanation, key: str) -> None:
    """The question with the words marked that named something, and its entities as chips."""
    words = {word for match in explained.matches for word in match.words}
    places = [(token.start, token.end) for token in tokenize(explained.query) if token.text in words]
    named = Block("chips", tuple(TextRun(team, "held") for team in explained.teams))
    none = Block("note", (TextRun("Names no entity: the whole structure is kept."),))
    inert_text.show([Block("lead", marked(explained.query, places)), named if explained.teams else none], key=key)


def _show_figures(finder: TeamFilter, explained: Explanation) -> None:
    """What is meant and what it saves, in one line."""
    part = finder.part(explained.teams)
    st.markdown(
        f"**{len(explained.teams)} of {part.of}** entities meant by {len(explained.by_strategy())} of "
        f"{len(finder.strategies)} ways of matching · **{part.tokens:,} of {part.full:,}** tokens sent · "
        f"**{part.share:.1%}** saved",
        help=f"Tokens are estimated: {CHARACTERS_PER_TOKEN} characters of JSON are one.",
    )


def _show_matches(explained: Explanation) -> None:
    """A row per match: by which strategy, which name and words, how sure, and why; and the words that do not count."""
    rows = explained.matches
    if rows:
        columns: dict[str, Sequence[Any]] = {
            "entity": [row.team for row in rows],
            "strategy": [row.strategy for row in rows],
            "found name": [row.item for row in rows],
            "words": [" ".join(row.words) for row in rows],
            "score": [round(row.score) for row in rows],
            "confidence": [row.confidence for row in rows],
            "reason": [row.reason for row in rows],
        }
        take_along("entities matches", columns)
    for match in explained.inside:
        st.text(f"Not {match.team}: {' '.join(match.words)} stands inside a longer name.")
    silent = [f"{name} ({words})" for name, words in STRATEGIES.items() if name not in explained.by_strategy()]
    if silent:
        st.markdown(f":gray[Found nothing by: {', '.join(silent)}.]")


def _show_tree(finder: TeamFilter, explained: Explanation) -> None:
    """The part of the structure that a model is told before a hop, as a tree: whole entities within the budget."""
    part = finder.part(explained.teams, STRUCTURE_BUDGET)
    st.markdown(f"**What a model is told before a hop**, at most {STRUCTURE_BUDGET:,} tokens: {part.to_text()}")
    st.json(part.entities, expanded=2 if len(part.entities) <= OPEN_UP_TO else 1)


# Aliases on trial


def _aliases(key: str, structure: Structure, threshold: float) -> None:
    """Type an alias, choose its entities, and see which labelled queries change."""
    names = [entity.name for entity in structure.entities]
    left, right = st.columns([2, 3], gap="medium")
    with left:
        alias = st.text_input("New alias", key="entities.alias", max_chars=200, placeholder="a word or a few")
        teams = tuple(st.multiselect("stands for", names, key="entities.alias_teams", placeholder="Choose entities"))
        trial = ((alias.strip(), teams),) if alias and alias.strip() and teams else ()
        with st.container(horizontal=True):
            st.button("Keep this alias", disabled=not trial, type="primary", on_click=_keep_alias, args=(key, names))
            st.button(
                "Take back the last one",
                disabled=not _added(key),
                icon=":material/undo:",
                on_click=_take_back,
                args=(key,),
            )
        if _added(key):
            st.markdown("Added in this session")
            st.dataframe(
                {"alias": [one for one, _ in _added(key)], "stands for": [", ".join(of) for _, of in _added(key)]},
                hide_index=True,
                key="entities.added_table",
                alt="Aliases added in this session with their entities",
            )
    with right:
        _alias_changes(key, structure, trial, threshold)


def _keep_alias(key: str, names: Sequence[str]) -> None:
    """Add what stands in the two boxes now, which may be more than the page had seen when it drew the button."""
    alias, teams = st.session_state["entities.alias"].strip(), tuple(st.session_state["entities.alias_teams"])
    if not alias or not teams or not set(teams) <= set(names) or not read(alias).words:
        return
    rest = tuple(pair for pair in _added(key) if pair[0] != alias)
    st.session_state[ALIASES][key] = (*rest, (alias, teams))
    st.session_state["entities.alias"], st.session_state["entities.alias_teams"] = "", []


def _take_back(key: str) -> None:
    st.session_state[ALIASES][key] = _added(key)[:-1]


def _alias_changes(key: str, structure: Structure, trial: Added, threshold: float) -> None:
    """The labelled queries that change by the added aliases and the one being typed, against the structure as read."""
    labelled, _ = _labelled(frozenset(entity.name for entity in structure.entities))
    now = _added(key) + trial
    if not labelled:
        _say_no_labels()
        return
    if not now:
        st.markdown(":gray[Type an alias and choose its entities to see which labelled queries change.]")
        return
    try:
        after = _finder(key, now, structure).at(threshold)
    except InputError as error:
        say.problem("This alias cannot be used.", str(error))
        return
    changed = changes(_finder(key, (), structure).at(threshold), after, labelled)
    words = [_word(one) for one in changed]
    counted = f"{words.count(RIGHT)} right now, {words.count(WRONG)} wrong now" if changed else "each means what it did"
    st.markdown(f"**{len(changed)} of {len(labelled)} labelled queries change**: {counted}")
    if changed:
        queries = [one.labelled.query for one in changed]
        st.dataframe(
            {
                "query": queries,
                "verdict": words,
                "came": [", ".join(one.came) for one in changed],
                "went": [", ".join(one.went) for one in changed],
                "meant": [", ".join(one.labelled.teams) or "none" for one in changed],
                "id": [one.labelled.id for one in changed],
            },
            hide_index=True,
            key="entities.changes",
            **_click_asks("entities.changes", queries),
            height=min(38 + 35 * len(changed), 320),
            alt=f"{len(changed)} labelled queries with the entities that came and went, what is meant, and the verdict",
        )


def _word(change: Change) -> str:
    """What the change did: what came and was meant is right, what came and was not is wrong."""
    meant = set(change.labelled.teams)
    wrong = (set(change.came) - meant) | (set(change.went) & meant)
    good = (set(change.came) & meant) | (set(change.went) - meant)
    return RIGHT if good and not wrong else WRONG if wrong and not good else PARTLY


def _click_asks(table: str, queries: Sequence[str]) -> dict[str, Any]:
    """Arguments that make a click on a row of a table ask that row's query."""

    def ask() -> None:
        rows = st.session_state[table]["selection"]["rows"]
        if rows and rows[0] < len(queries):
            st.session_state[QUERY] = queries[rows[0]]

    return {"on_select": ask, "selection_mode": "single-row"}


# Agreement with labelled queries


def _agreement_view(finder: TeamFilter) -> None:
    """Precision and recall over the labelled queries, and a place for one's own."""
    labelled, left_out = _labelled(frozenset(finder.teams))
    if left_out:
        st.markdown(f"{left_out} labelled queries mean entities that this structure does not have; they are left out.")
    if labelled:
        _show_agreement(finder, labelled)
    else:
        _say_no_labels()
    st.file_uploader(
        "Open my labelled queries (JSONL: query, teams)", type=["jsonl"], key="entities.labels", on_change=_take_labels
    )


def _say_no_labels() -> None:
    st.markdown("There are no labelled queries for this structure: drop some under *Labelled queries*.")


def _show_agreement(finder: TeamFilter, labelled: Sequence[LabelledQuery]) -> None:
    """Together and per strategy, of one half of the labelled queries or of all, and over the threshold."""
    halves = ["all", *(half for half in ("dev", "test") if any(row.half == half for row in labelled))]
    half = "all"
    if len(halves) > 1:
        half = st.segmented_control("Half", halves, default="all", required=True, key="entities.half") or "all"
    rows = [row for row in labelled if half in ("all", row.half)]
    together = agreement(finder, rows)
    measured = {"all together": together, **{name: agreement(finder, rows, name) for name in STRATEGIES}}
    names = ("precision", "recall", "micro precision", "micro recall")
    figures = {name: [getattr(one, name.replace(" ", "_")) for one in measured.values()] for name in names}
    take_along("entities agreement", {"found by": list(measured), **figures}, config=dict.fromkeys(names, THREE))
    st.caption(f"macro over {together.queries} labelled queries; micro: over all (query, entity) pairs")
    _show_misses(together)
    curve = threshold_curve(finder, rows, CURVE)
    points: dict[str, list[float | None]] = {"threshold": [threshold for threshold, _ in curve]}
    points |= {name: [getattr(one, name) for _, one in curve] for name in names[:2]}
    st.markdown("**Agreement at each threshold for misspelt names**, macro")
    config = dict.fromkeys(names[:2], THREE)
    take_along("entities curve", points, lambda: _curve(points, finder.settings.threshold), config=config)


def _show_misses(agreed: Agreement) -> None:
    misses = agreed.misses
    if not misses:
        st.markdown("Every labelled query finds exactly what it means.")
        return
    queries = [miss.labelled.query for miss in misses]
    st.markdown(f"**{len(misses)} queries find something else than they mean.** Click a row to ask it.")
    st.dataframe(
        {
            "query": queries,
            "missing": [", ".join(miss.missing) for miss in misses],
            "too much": [", ".join(miss.extra) for miss in misses],
            "id": [miss.labelled.id for miss in misses],
        },
        hide_index=True,
        key="entities.misses",
        **_click_asks("entities.misses", queries),
        height=min(38 + 35 * len(misses), 250),
        alt=f"{len(misses)} queries with entities that are missing and that are too much",
    )


def _curve(points: Mapping[str, Sequence[float | None]], now: float) -> Any:
    """Precision and recall over the threshold, the stage's own marked."""
    import plotly.graph_objects as go  # 0.3 s; most never open this view

    figure = go.Figure()
    for name, colour, dash in (("precision", BLUE, "solid"), ("recall", ORANGE, "dot")):
        line = {"color": colour, "dash": dash}
        figure.add_scatter(x=points["threshold"], y=points[name], name=name, mode="lines+markers", line=line)
    figure.add_vline(x=now, line_dash="dash", line_color=GREY, annotation_text=f"threshold {now:.0f}")
    figure.update_layout(
        xaxis={"title": {"text": "threshold (likeness, 0 to 100)"}, "range": [CURVE[0] - 1, CURVE[-1] + 1]},
        yaxis={"title": {"text": "macro mean over queries"}, "rangemode": "tozero"},
        legend={"orientation": "h", "y": 1.08},
    )
    return figure


def _lint(finder: TeamFilter) -> None:
    """Doubtful names, each with what a query does because of it."""
    findings = lint_structure(finder.structure, finder.settings)
    if not findings:
        st.markdown("No doubtful name: every name can be found, tells something and leads to one place.")
        return
    number = "1 doubtful name" if len(findings) == 1 else f"{len(findings)} doubtful names"
    st.markdown(f"**{number}.** The structure works; a query may find less or more because of them.")
    columns = {
        "kind": [one.kind.replace("_", " ") for one in findings],
        "name": [one.name for one in findings],
        "what a query does": [one.text for one in findings],
        "entities": [", ".join(one.teams) for one in findings],
    }
    take_along("entities lint", columns)


# Structures, labels and what is kept


def _loaded(source: str, session: Session) -> tuple[str, Structure]:
    """(key of its content, the structure) of a source; an InputError names what is wrong with the file."""
    if DROPPED in st.session_state and source == st.session_state[DROPPED][0]:
        dropped: tuple[str, Structure] = st.session_state[DROPPED]
        return dropped
    path = structure_path(session.workspace) if source == OWN else None
    changed_at = path.stat().st_mtime_ns if path else 0
    return f"{path or DEMO} {changed_at}", _read(path, changed_at)


@st.cache_resource(max_entries=4, show_spinner=False)
def _read(path: Path | None, changed_at: int) -> Structure:
    return load_structure(path)


@st.cache_resource(max_entries=12, show_spinner=False)
def _finder(key: str, added: Added, _structure: Structure) -> TeamFilter:
    """The finder of a structure with these aliases; built once for a content and its aliases."""
    for alias, teams in added:
        _structure = _structure.with_alias(alias, teams)
    return TeamFilter(_structure)


def _added(key: str) -> Added:
    aliases: dict[str, Added] = st.session_state.setdefault(ALIASES, {})
    return aliases.get(key, ())


def _labelled(names: frozenset[str]) -> tuple[list[LabelledQuery], int]:
    """(labelled queries for these entities, how many were left out because they mean an entity that is not there).

    Those opened in this session; else the shipped ones, where the structure has all their teams; else none.
    """
    dropped: list[LabelledQuery] | None = st.session_state.get(DROPPED_LABELS)
    rows = dropped if dropped is not None else _shipped()
    fitting = [row for row in rows if names.issuperset(row.teams)]
    if dropped is None and len(fitting) < len(rows):
        return [], 0
    return fitting, len(rows) - len(fitting)


@st.cache_resource(show_spinner=False)
def _shipped() -> list[LabelledQuery]:
    return read_labelled(LABELLED)


def _take_structure() -> None:
    """Read the structure opened as a file and choose it."""

    def read_structure(data: bytes) -> tuple[str, Structure]:
        structure = structure_from_text(decode(data, "the file"), "the file")
        return f"dropped {hashlib.sha256(data).hexdigest()[:12]}", structure

    if _taken("entities.file", DROPPED, read_structure):
        st.session_state[SOURCE] = st.session_state[DROPPED][0]


def _take_labels() -> None:
    """Read labelled queries opened as a file."""

    def read_rows(data: bytes) -> list[LabelledQuery]:
        rows = labelled_from_text(decode(data, "the file"), "the file")
        if not rows:
            raise InputError("the file holds no line, expected labelled queries")
        return rows

    _taken("entities.labels", DROPPED_LABELS, read_rows)


def _taken(upload: str, into: str, reading: Callable[[bytes], Any]) -> bool:
    """Whether an opened file could be read and kept for this session; what is wrong with it is kept as a sentence."""
    st.session_state[PROBLEM] = ""
    file = st.session_state.get(upload)
    if file is None:
        return False
    try:
        st.session_state[into] = reading(file.getvalue())
    except InputError as error:
        st.session_state[PROBLEM] = str(error)
        return False
    return True


def _keeping(structure: Structure, session: Session) -> None:
    """Let pipelines use the structure with its added aliases, or take it along."""
    with st.container(horizontal=True, gap="small"):
        used = st.button(
            "Use it in pipelines",
            icon=":material/save:",
            key="entities.keep",
            help="Stored as the workspace’s structure, with the aliases that were added.",
        )
        st.download_button(
            "Download as JSON",
            lambda: structure_text(structure),
            "structure.json",
            "application/json",
            icon=":material/download:",
            on_click="ignore",
        )
    if used:
        try:
            keep(structure, session.workspace)
        except (InputError, OSError) as error:
            say.problem("The structure cannot be stored.", str(error))
            return
        st.rerun()


def keep(structure: Structure, workspace: Path) -> Path:
    """Store the structure in the workspace, where pipelines find it.

    One that was written by hand there is set aside under a name of its own: its comments would be lost.
    """
    with who.doing(CHANGE_STRUCTURE, STRUCTURE_FILES[-1]):
        before = structure_path(workspace)
        path = workspace / STRUCTURE_FILES[-1]
        write_whole(path, structure_text(structure))
        if before is not None and before != path:
            before.rename(before.with_name(f"{before.name}.before"))
        return path
