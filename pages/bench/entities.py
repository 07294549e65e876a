"""The drawer of the stage that filters by entities, and its section under the Bench: a structure looked at closely.

The drawer speaks of the structure that pipelines use. In the section another file, or one more alias, is tried in this
browser session alone until *Use it in pipelines* stores it. Names and words of a structure are foreign text: they stand
in cells and as inert text only.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages import state
from pages.bench import sight
from pages.bench.sight import SeenList
from pages.components import inert_text, say
from pages.components.act import act, refuse, tell
from pages.components.inert_text import Block, TextRun, marked
from pages.widgets.take_along import take_along
from rag_core.entities import Explanation, Structure, TeamFilter
from rag_core.entities.agreement import LabelledQuery, changes
from rag_core.entities.filter import CHARACTERS_PER_TOKEN
from rag_core.entities.lint import lint_structure
from rag_core.entities.strategies import TEAM_MATCH_THRESHOLD
from rag_core.entities.structure import structure_from_text, structure_text
from rag_core.errors import InputError
from rag_core.files import decode, write_whole
from rag_core.filters.entity import entities_named
from rag_core.project.deeds import CHANGE_STRUCTURE, Performed
from rag_core.project.session import Session
from rag_core.resources import STRUCTURE_FILES, finder_of, structure_path
from rag_core.text import counted, tokenize

TRIED, PROBLEM = "entities.tried", "entities.problem"
QUERY, QUERY_OF, ALIAS, TEAMS = "entities.query", "entities.query_of", "entities.alias", "entities.alias_teams"
LONGEST_QUERY = 10_000
HELP = """
**Score.** 100 where the words are the same, singular or plural; else how alike two spellings are, up to 100.

**Confidence.** Score ÷ 100 × the share of the name’s words that stood in the query; × 0.9 through initials.

**Threshold.** The stage’s own: the least likeness of a misspelt name of six letters and more. Shorter names may differ
in one letter.

On the command line: `winnow entities --labelled FILE` measures a structure on labelled queries, `--budget` prints what
a model is told before a hop.
"""


def drawer(entry: SeenList, session: Session) -> None:
    """What the pipelines' structure does here: chunks that name its entities, and the question in sight."""
    own = structure_path(session.workspace)
    st.markdown("**The workspace’s structure**" if own else "**The demo structure**: 48 invented teams")
    try:
        finder = finder_of(session.workspace).at(_threshold(entry))
    except InputError as error:
        say.problem("The structure cannot be read, so this stage cannot run.", str(error))
        return
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
    case = sight.question_in_sight(session, state.current().question)
    if case is not None:
        _show_query(finder.explain(case.query.text), "drawer.entities.query")


def _threshold(entry: SeenList) -> float:
    return float(entry.stage.settings().get("threshold", TEAM_MATCH_THRESHOLD))


# The section under the Bench


def section(entry: SeenList, session: Session) -> None:
    """A structure at full width: what a question means and why, doubtful names, an alias on trial."""
    with st.container(border=True, key="entities.section"):
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            query = _query(session)
            with st.popover("Open a file", icon=":material/upload:"):
                st.file_uploader(
                    "Structure (YAML or JSON)",
                    type=["yaml", "yml", "json"],
                    key="entities.file",
                    on_change=_take_file,
                    help="Entities with their members, abilities and aliases; docs/entities.md describes the form.",
                )
            with st.popover("?", help="What the numbers mean"):
                st.markdown(HELP)
        tell(PROBLEM, "This cannot be taken; nothing was changed.")
        tried: TeamFilter | None = st.session_state.get(TRIED)
        try:
            finder = (tried or finder_of(session.workspace)).at(_threshold(entry))
        except InputError as error:
            say.problem("This structure cannot be read.", str(error))
            return
        explained = finder.explain(query)
        _show_query(explained, "entities.query.read")
        part = finder.part(explained.teams)
        st.markdown(
            f"**{len(explained.teams)} of {part.of}** entities meant · **{part.tokens:,} of {part.full:,}** tokens "
            f"sent · **{part.share:.1%}** saved",
            help=f"Tokens are estimated: {CHARACTERS_PER_TOKEN} characters of JSON are one.",
        )
        _show_matches(explained)
        _lint(finder)
        _alias(finder, session)
        _keeping(finder.structure, tried is not None, session)


def _query(session: Session) -> str:
    """The question in sight, until another one is typed here."""
    case = sight.question_in_sight(session, state.current().question)
    if case is not None and st.session_state.get(QUERY_OF) != (session.project.name, case.query.id):
        st.session_state[QUERY_OF] = (session.project.name, case.query.id)
        st.session_state[QUERY] = case.query.text[:LONGEST_QUERY]
    return st.text_input("Query", max_chars=LONGEST_QUERY, key=QUERY, placeholder="A question") or ""


def _show_query(explained: Explanation, key: str) -> None:
    """The question with the words marked that named something, and its entities as chips."""
    words = {word for match in explained.matches for word in match.words}
    places = [(token.start, token.end) for token in tokenize(explained.query) if token.text in words]
    named = Block("chips", tuple(TextRun(team, "held") for team in explained.teams))
    none = Block("note", (TextRun("Names no entity: the whole structure is kept."),))
    inert_text.show([Block("lead", marked(explained.query, places)), named if explained.teams else none], key=key)


def _show_matches(explained: Explanation) -> None:
    """A row per match: by which strategy, which name and words, how sure, and why; and the words that do not count."""
    rows = explained.matches
    if rows:
        take_along(
            "entities matches",
            {
                "entity": [row.team for row in rows],
                "strategy": [row.strategy for row in rows],
                "found name": [row.item for row in rows],
                "words": [" ".join(row.words) for row in rows],
                "score": [round(row.score) for row in rows],
                "confidence": [row.confidence for row in rows],
                "reason": [row.reason for row in rows],
            },
        )
    for match in explained.inside:
        st.text(f"Not {match.team}: {' '.join(match.words)} stands inside a longer name.")


def _lint(finder: TeamFilter) -> None:
    """Doubtful names, each with what a query does because of it."""
    findings = lint_structure(finder.structure, finder.settings)
    if findings:
        with st.expander(counted(len(findings), "doubtful name", "doubtful names")):
            take_along(
                "entities lint",
                {
                    "kind": [one.kind.replace("_", " ") for one in findings],
                    "name": [one.name for one in findings],
                    "what a query does": [one.text for one in findings],
                    "entities": [", ".join(one.teams) for one in findings],
                },
            )


def _alias(finder: TeamFilter, session: Session) -> None:
    """Type an alias, choose its entities, and see which of the project's questions mean something else by it."""
    names = [entity.name for entity in finder.structure.entities]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        alias = st.text_input("New alias", key=ALIAS, max_chars=200, placeholder="a word or a few", width=240)
        teams = tuple(st.multiselect("stands for", names, key=TEAMS, placeholder="Choose entities", width=400))
        st.button("Add", key="entities.add", on_click=_add, args=(finder,), disabled=not alias.strip() or not teams)
    if not alias.strip() or not teams:
        return
    try:
        after = TeamFilter(finder.structure.with_alias(alias.strip(), teams)).at(finder.settings.threshold)
    except InputError as error:
        say.problem("This alias cannot be used.", str(error))
        return
    asked = [LabelledQuery(case.query.id, case.query.text, ()) for case in session.cases]
    changed = changes(finder, after, asked)
    st.markdown(f"**{len(changed)} of {len(asked)} questions of this project** mean something else by it.")
    if changed:
        take_along(
            "questions that an alias changes",
            {
                "question": [one.labelled.query for one in changed],
                "came": [", ".join(one.came) for one in changed],
                "went": [", ".join(one.went) for one in changed],
            },
        )


def _add(finder: TeamFilter) -> None:
    """Try what stands in the two boxes now, which may be more than the page had seen when it drew the button."""
    try:
        alias, teams = st.session_state[ALIAS].strip(), tuple(st.session_state[TEAMS])
        st.session_state[TRIED] = TeamFilter(finder.structure.with_alias(alias, teams))
    except InputError as error:
        refuse(PROBLEM, str(error))
        return
    st.session_state[ALIAS], st.session_state[TEAMS] = "", []


def _take_file() -> None:
    """Try the structure opened as a file; what is wrong with it is kept as a sentence."""
    file = st.session_state.get("entities.file")
    try:
        if file is not None:
            text = decode(file.getvalue(), "the file")
            st.session_state[TRIED] = TeamFilter(structure_from_text(text, "the file"))
    except InputError as error:
        refuse(PROBLEM, str(error))


def _keeping(structure: Structure, on_trial: bool, session: Session) -> None:
    """Let pipelines use the structure as it is tried, go back to the stored one, or take it along."""
    with st.container(horizontal=True, gap="small"):
        if on_trial:
            st.button(
                "Use it in pipelines",
                icon=":material/save:",
                type="primary",
                key="entities.keep",
                on_click=_keep,
                args=(structure, session.workspace),
                help="Stored as the workspace’s structure, with the aliases that were added.",
            )
            st.button(
                "Back to the stored one", icon=":material/undo:", on_click=st.session_state.pop, args=(TRIED, None)
            )
        st.download_button(
            "Download as JSON",
            lambda: structure_text(structure),
            "structure.json",
            "application/json",
            icon=":material/download:",
            on_click="ignore",
        )


def _keep(structure: Structure, workspace: Path) -> None:
    """Store the structure in the workspace, where pipelines find it.

    One that was written by hand there is set aside under a name of its own: its comments would be lost.
    """

    def work(_: Performed) -> None:
        before = structure_path(workspace)
        path = workspace / STRUCTURE_FILES[-1]
        write_whole(path, structure_text(structure))
        if before is not None and before != path:
            before.rename(before.with_name(f"{before.name}.before"))

    if act(PROBLEM, CHANGE_STRUCTURE, STRUCTURE_FILES[-1], work):
        st.session_state.pop(TRIED, None)
