"""What a query means: its words marked, the entities found and by which strategy, and the part of the structure sent.

Names and words of a structure are foreign text: they stand in cells, in the JSON tree and as inert text only.
"""

from __future__ import annotations

import streamlit as st

from pages.components import inert_text
from pages.components.inert_text import Block, Run, marked
from rag_core.entities import Explanation, TeamFilter
from rag_core.entities.tokens import CHARACTERS_PER_TOKEN
from rag_core.text import tokenize

STRATEGIES = {
    "operative": "a member’s name",
    "ability": "an ability’s name",
    "alias": "another name, a synonym or initials",
    "team_name": "the entity’s own name, also misspelt",
}
LONGEST_TREE = 60  # entities; a browser draws more of them too slowly
OPEN_UP_TO = 3  # entities; more of them are shown folded


def show_query(found: Explanation) -> None:
    """The query with the words marked that found something, and the entities as chips."""
    named = Block("chips", tuple(Run(team, "held") for team in found.teams))
    none = Block("note", (Run("Names no entity: the whole structure is kept."),))
    inert_text.show(
        [Block("lead", marked(found.query, word_places(found))), named if found.teams else none],
        key="entities.query.read",
    )


def word_places(found: Explanation) -> list[tuple[int, int]]:
    """Where the words stand in the query that matched something."""
    matched = {word for match in found.matches for word in match.words}
    return [(token.start, token.end) for token in tokenize(found.query) if token.text in matched]


def show_figures(team_filter: TeamFilter, found: Explanation) -> None:
    """Entities, strategies and tokens as one line of figures."""
    saving = team_filter.saving(found.teams)
    by = found.by_strategy()
    cells = st.container(horizontal=True, key="entities.figures")
    cells.metric(
        "entities found",
        f"{len(found.teams)} of {len(team_filter.teams)}",
        width=190,
        help="Entities that the query means, of those in the structure.",
    )
    cells.metric(
        "strategies that found some",
        f"{len(by)} of {len(team_filter.strategies)}",
        width=230,
        help="Ways of matching that found an entity, of all that are switched on.",
    )
    cells.metric(
        "tokens sent",
        f"{saving.filtered:,} of {saving.full:,}",
        width=250,
        help="Estimated tokens of the part that is sent, of those of the whole structure. Lower costs less.",
    )
    cells.metric(
        "tokens saved",
        f"{saving.share:.1%}",
        width=150,
        help="1 − tokens sent over tokens of the whole structure. Higher costs less.",
    )
    st.caption(
        f"Tokens are estimated: {CHARACTERS_PER_TOKEN} characters of the structure’s JSON are one token, on both sides."
    )


def show_matches(found: Explanation) -> None:
    """A row per match: by which strategy, which name and words, how sure, and why."""
    silent = [name for name in STRATEGIES if name not in found.by_strategy()]
    if found.matches:
        rows = found.matches
        st.dataframe(
            {
                "entity": [row.team for row in rows],
                "strategy": [row.strategy for row in rows],
                "found name": [row.item for row in rows],
                "words": [" ".join(row.words) for row in rows],
                "score": [row.score for row in rows],
                "confidence": [row.confidence for row in rows],
                "reason": [row.reason for row in rows],
            },
            hide_index=True,
            key="entities.matches",
            height=min(38 + 35 * len(rows), 420),
            column_config={
                "score": st.column_config.NumberColumn("score", format="%.0f", width=62),
                "confidence": st.column_config.NumberColumn("confidence", format="%.3f", width=92),
                "strategy": st.column_config.TextColumn("strategy", width=92),
                "words": st.column_config.TextColumn("words", width=120),
            },
            alt=f"{len(rows)} matches with entity, strategy, found name, words, score, confidence and reason",
        )
    if silent:
        st.markdown(":gray[Found nothing by: " + ", ".join(f"{name} ({STRATEGIES[name]})" for name in silent) + ".]")


def show_tree(team_filter: TeamFilter, found: Explanation) -> None:
    """The part of the structure that the query needs, as a tree."""
    teams = found.teams or team_filter.teams
    shown = teams[:LONGEST_TREE]
    st.markdown("**The part that is sent**" if found.teams else "**Nothing is named, so all entities are sent**")
    if len(shown) < len(teams):
        st.markdown(f"The first {len(shown)} of {len(teams):,} entities:")
    st.json(team_filter.filter_structure(shown), expanded=2 if len(shown) <= OPEN_UP_TO else 1)
