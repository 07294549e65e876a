"""Entities: which entities of a structure does this query mean, and what does that save?"""

from collections.abc import Sequence

import streamlit as st

from pages.components import entity_labels, entity_matches, entity_state, header, say
from rag_core.entities import Structure, TeamFilter
from rag_core.entities.agreement import changes
from rag_core.entities.document import structure_text
from rag_core.entities.lint import lint_structure
from rag_core.entities.match import TEAM_MATCH_THRESHOLD
from rag_core.entities.reading import read
from rag_core.errors import InputError

EXAMPLE = "Can kommando orks use ere we go?"
LONGEST_QUERY = 10_000
BELOW = ("Matches", "Aliases", "Labelled queries", "Lint")

HELP = """
**Score.** 100 where the words are the same, singular or plural; else how alike two spellings are, up to 100.

**Confidence.** Score ÷ 100 × the share of the name’s words that stood in the query; × 0.9 through initials.

**Precision** is the share of the found entities that are meant, **recall** the share of the meant ones that are found.
Macro: per query, then the mean. Micro: over all pairs of query and entity.

**Threshold.** The least likeness of a misspelt name of six letters and more. Shorter names may differ in one letter.
"""


def choose_structure() -> tuple[str, Structure] | None:
    """The structure that is looked at, or None with the reason shown."""
    with st.sidebar:
        titles = entity_state.sources()
        if st.session_state.get(entity_state.SOURCE) not in titles:
            st.session_state[entity_state.SOURCE] = entity_state.DEMO
        source = st.selectbox(
            "Structure",
            list(titles),
            format_func=lambda key: titles[key],
            key=entity_state.SOURCE,
            persist_state="session",
        )
        st.file_uploader(
            "Open my structure (YAML or JSON)",
            type=["yaml", "yml", "json"],
            key="entities.file",
            on_change=entity_state.take_structure,
            args=("entities.file",),
            help="Entities with their members, abilities and aliases; docs/entities.md describes the form.",
        )
    if st.session_state.get(entity_state.PROBLEM):
        say.problem("This file cannot be opened; nothing was changed.", st.session_state[entity_state.PROBLEM])
    try:
        return entity_state.loaded(source or entity_state.DEMO)
    except InputError as error:
        say.problem("This structure cannot be read.", str(error))
        return None


def choose_threshold() -> float:
    with st.sidebar:
        return float(
            st.slider(
                "Threshold for misspelt names",
                50,
                100,
                int(TEAM_MATCH_THRESHOLD),
                key="entities.threshold",
                persist_state="session",
                help="Likeness from 0 to 100; a name of six letters and more counts from here on.",
            )
        )


def ask() -> str:
    """The query a person types."""
    return (
        st.text_input(
            "Query",
            EXAMPLE,
            max_chars=LONGEST_QUERY,
            key="entities.query",
            persist_state="session",
            placeholder="A question",
        )
        or ""
    )


def draw_matches(team_filter: TeamFilter, query: str) -> None:
    """By which strategy each entity was found, and the part of the structure that is sent."""
    found = team_filter.explain(query)
    entity_matches.show_matches(found)
    entity_matches.show_tree(team_filter, found)


def draw_aliases(key: str, structure: Structure, threshold: float) -> None:
    """Type an alias, choose its entities, and see which labelled queries change."""
    names = [entity.name for entity in structure.entities]
    left, right = st.columns([2, 3], gap="medium")
    with left:
        alias = st.text_input("New alias", key="entities.alias", max_chars=200, placeholder="a word or a few")
        teams = tuple(st.multiselect("stands for", names, key="entities.alias_teams", placeholder="Choose entities"))
        trial = ((alias.strip(), teams),) if alias and alias.strip() and teams else ()
        with st.container(horizontal=True):
            st.button("Keep this alias", disabled=not trial, type="primary", on_click=keep_alias, args=(key, names))
            st.button(
                "Take back the last one",
                disabled=not entity_state.added(key),
                icon=":material/undo:",
                on_click=entity_state.take_back,
                args=(key,),
            )
        show_added(key)
    with right:
        draw_changes(key, structure, trial, threshold)


def keep_alias(key: str, names: Sequence[str]) -> None:
    """Add what stands in the two boxes now, which may be more than the page had seen when it drew the button."""
    alias, teams = st.session_state["entities.alias"].strip(), tuple(st.session_state["entities.alias_teams"])
    if not alias or not teams or not set(teams) <= set(names) or not read(alias).words:
        return
    entity_state.add(key, alias, teams)
    st.session_state["entities.alias"], st.session_state["entities.alias_teams"] = "", []


def show_added(key: str) -> None:
    """The aliases added in this session."""
    added = entity_state.added(key)
    if added:
        st.markdown("Added in this session")
        st.dataframe(
            {"alias": [alias for alias, _ in added], "stands for": [", ".join(teams) for _, teams in added]},
            hide_index=True,
            key="entities.added_table",
            alt="Aliases added in this session with their entities",
        )


def draw_changes(key: str, structure: Structure, trial: entity_state.Added, threshold: float) -> None:
    """What the added aliases, and the one being typed, change against the structure as it was loaded."""
    labelled, _ = entity_state.labelled(frozenset(entity.name for entity in structure.entities))
    now = entity_state.added(key) + trial
    if not labelled:
        say_no_labels()
    elif not now:
        st.markdown(":gray[Type an alias and choose its entities to see which labelled queries change.]")
    else:
        try:
            after = entity_state.team_filter(key, now, structure).at(threshold)
        except InputError as error:
            say.problem("This alias cannot be used.", str(error))
            return
        before = entity_state.team_filter(key, (), structure).at(threshold)
        entity_labels.show_changes(changes(before, after, labelled), len(labelled))
        st.caption("Against the structure as it was loaded.")


def say_no_labels() -> None:
    st.markdown("There are no labelled queries for this structure: drop some under *Labelled queries*.")


def draw_labelled(team_filter: TeamFilter) -> None:
    """Precision and recall over the labelled queries, and a place for one's own."""
    labelled, left_out = entity_state.labelled(frozenset(team_filter.teams))
    if left_out:
        st.markdown(f"{left_out} labelled queries mean entities that this structure does not have; they are left out.")
    if labelled:
        entity_labels.show_agreement(team_filter, labelled)
    else:
        say_no_labels()
    st.file_uploader(
        "Open my labelled queries (JSONL: query, teams)",
        type=["jsonl"],
        key="entities.labels",
        on_change=entity_state.take_labels,
        args=("entities.labels",),
    )


def draw_lint(structure: Structure, team_filter: TeamFilter) -> None:
    """Doubtful names, each with what a query does because of it."""
    findings = lint_structure(structure, team_filter.settings)
    if not findings:
        st.markdown("No doubtful name: every name can be found, tells something and leads to one place.")
        return
    st.markdown(
        f"**{len(findings)} doubtful names.** The structure works; a query may find less or more because of them."
    )
    st.dataframe(
        {
            "kind": [one.kind.replace("_", " ") for one in findings],
            "name": [one.name for one in findings],
            "what a query does": [one.text for one in findings],
            "entities": [", ".join(one.teams) for one in findings],
        },
        hide_index=True,
        key="entities.lint",
        height=min(38 + 35 * len(findings), 500),
        alt=f"{len(findings)} doubtful names with kind and consequence",
    )


def draw_keeping(structure: Structure) -> None:
    """Take the structure along, or let pipelines use it."""
    with st.sidebar, st.popover("Keep this structure", icon=":material/save:"):
        st.markdown("With the aliases that were added. Pipelines with `EntityFilter` use the workspace’s structure.")
        st.download_button(
            "Download as JSON",
            lambda: structure_text(structure),
            "structure.json",
            "application/json",
            on_click="ignore",
        )
        if st.button("Use it in pipelines", key="entities.keep"):
            try:
                st.text(f"stored as {entity_state.keep(structure).name} in the workspace")
            except (InputError, OSError) as error:
                say.problem("The structure cannot be stored.", str(error))


def draw() -> None:
    header.show("Entities", "Which entities of a structure does this query mean, and what does that save?", HELP)
    chosen = choose_structure()
    if chosen is None:
        return
    key, structure = chosen
    threshold = choose_threshold()
    team_filter = entity_state.team_filter(key, entity_state.added(key), structure).at(threshold)
    draw_keeping(team_filter.structure)
    found = team_filter.explain(ask())
    entity_matches.show_query(found)
    entity_matches.show_figures(team_filter, found)
    below = st.segmented_control(
        "Below", BELOW, default=BELOW[0], required=True, key="entities.below", label_visibility="collapsed"
    )
    if below == "Aliases":
        draw_aliases(key, structure, threshold)
    elif below == "Labelled queries":
        draw_labelled(team_filter)
    elif below == "Lint":
        draw_lint(team_filter.structure, team_filter)
    else:
        draw_matches(team_filter, found.query)


draw()
