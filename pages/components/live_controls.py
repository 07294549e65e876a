"""The sidebar's part on where a list comes from: recorded or a collection, one's own question, how it is searched; and
the shipped pipelines as a pick list that sets every control.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path

import streamlit as st

from pages.components import choice, resources, say, search_controls, session
from pages.components.view import MOST_READ, View, stages, with_pipeline
from pages.components.where import read_where
from rag_core.errors import InputError
from rag_core.evaluate.sets import EvalSet
from rag_core.retrieve.dense import Dense
from rag_core.retrieve.question import LONGEST, check_question
from rag_core.retrieve.requery import STRATEGIES
from rag_core.spec import read_pipeline, saved_names, shipped_names
from rag_core.stage import Pipeline

OWN = "own settings"
PIPELINE = "explore.shipped"


def choose_source(chosen: EvalSet) -> None:
    """Recorded lists, or a collection of the workspace that is searched live."""
    names = resources.collections()
    if chosen.corpus is not None and chosen.name not in names:
        names = [chosen.name, *names]
    options = [*([""] if chosen.recorded else []), *names]
    bound = session.bind("collection")
    if session.current().collection not in options:
        st.session_state[bound["key"]] = None
    choice.select(
        "Collection",
        options,
        format_func=lambda name: name or "none: recorded lists",
        placeholder="choose a collection",
        help="Recorded lists come with the eval set. A collection is searched now, for every query you look at.",
        **bound,
    )


def ask() -> None:
    """A question of one's own, in place of the eval set's queries."""
    st.text_input(
        "Ask your own question",
        placeholder="any question, Enter asks it",
        help=f"Up to {LONGEST:,} characters. It is run, and scored once you label chunks for it.",
        **session.typed("question", check_question),
    )
    _say_refused("question")


def search() -> None:
    """How the collection is searched."""
    with st.expander("Search", icon=":material/search:"):
        search_controls.choose()
        if session.current().max_hops:
            from pages.components import hop_judging  # late: brings the client of model endpoints

            hop_judging.choose()
        st.number_input(
            "Depth",
            min_value=1,
            max_value=MOST_READ,
            step=5,
            help="How many nearest chunks are read before any filter. Refill reads on from there.",
            **session.bind("depth"),
        )
        st.text_input(
            "Only chunks with", placeholder="type=spell", help=WHERE_HELP, **session.typed("where", read_where)
        )
        _say_refused("where")
        st.text_input(
            "Only files named",
            placeholder="combat, *.md or re:^rules",
            help="Part of the source file’s name, a glob with * and ?, or re: and an RE2 expression.",
            **session.typed("file_filter", _check_files),
        )
        _say_refused("file_filter")
        st.toggle(
            "approximate (Chroma)",
            help="Search Chroma’s graph in a process of its own instead of every vector. Exact is the default.",
            **session.bind("approximate"),
        )


WHERE_HELP = (
    'Metadata a chunk must have, as field=value pairs: type=spell, or "title=Magic Missile". '
    "The same field twice admits both values."
)


def _check_files(pattern: str) -> object:
    from rag_core.index.where import file_pattern  # late: brings the expression engine

    return file_pattern(pattern)


def _say_refused(field: str) -> None:
    if session.refused(field):
        st.text(f"Not taken over: {session.refused(field)}")


def refill() -> None:
    """Requery in place of query_must: reading on for what was dropped."""
    st.toggle(
        "refill",
        help="Reads further down the list for what query_must dropped, round by round. "
        "On a recorded list it reads that list and no further.",
        **session.bind("refill_on"),
    )
    if not session.current().refill_on:
        return
    wanted, rounds = st.columns(2)
    wanted.number_input("Wanted (k)", min_value=1, max_value=1000, step=1, **session.bind("refill_k"))
    rounds.number_input("Most rounds", min_value=1, max_value=100, step=1, **session.bind("max_iterations"))
    st.segmented_control("Strategy", STRATEGIES, required=True, help=STRATEGY_HELP, **session.bind("strategy"))


STRATEGY_HELP = (
    "deepen: walk down the same ranking. exclude: search again without what was seen. "
    "prefilter: search only chunks whose rules admit the query; rounds do not count."
)


@cache
def shipped() -> dict[str, Pipeline]:
    """The shipped pipelines whose stages this page has, by name."""
    return _fitting(shipped_names())


def known() -> dict[str, Pipeline]:
    """The shipped pipelines and those saved in the workspace, by name."""
    workspace = resources.workspace()
    names = tuple(saved_names(workspace))
    changed = tuple((workspace / "pipelines" / f"{name}.yaml").stat().st_mtime_ns for name in names)
    return {**shipped(), **_saved(str(workspace), names, changed)}


@st.cache_resource(max_entries=8, show_spinner=False)
def _saved(workspace: str, names: tuple[str, ...], changed: tuple[int, ...]) -> dict[str, Pipeline]:
    return _fitting([str(Path(workspace) / "pipelines" / f"{name}.yaml") for name in names])


def _fitting(sources: list[str]) -> dict[str, Pipeline]:
    """The pipelines that this page can show, by name; one that cannot be read is none."""
    found = {}
    for source in sources:
        with suppress(InputError):
            pipeline = read_pipeline(source)
            if _fits(pipeline):
                found[Path(source).stem] = pipeline
    return found


def _fits(pipeline: Pipeline) -> bool:
    try:
        with_pipeline(View(), pipeline)
    except InputError:
        return False
    return True


def laid_over(view: View, pipeline: Pipeline) -> View:
    """The view with a shipped pipeline; one without a source reads as deep as Dense does by itself."""
    return with_pipeline(view.changed(depth=Dense().depth, where="", file_filter=""), pipeline)


def choose_pipeline() -> None:
    """The pipelines by name, in the header: the one that the controls stand at, else that they are one's own."""
    view, pipelines = session.current(), known()
    now = [name for name, pipeline in pipelines.items() if stages(laid_over(view, pipeline)) == stages(view)]
    st.session_state[PIPELINE] = now[0] if now else OWN
    choice.select(
        "Pipeline",
        [OWN, *pipelines],
        key=PIPELINE,
        on_change=_take,
        help="A pipeline by name sets the filters in the sidebar; change any of them and they are your own settings.",
    )
    session.note_pipeline(now[0] if now else "")


def _take() -> None:
    name = st.session_state[PIPELINE]
    if name in known():
        st.session_state[session.VIEW] = laid_over(session.current(), known()[name])


def follow_pipeline() -> None:
    """Lay the pipeline over the controls that another page chose since; what this page cannot show is said."""
    entry = choice.met(session.VIEW)
    if not entry:
        return
    try:
        st.session_state[session.VIEW] = laid_over(session.current(), read_pipeline(entry))
    except InputError as error:
        say.problem("The chosen pipeline cannot be shown here; this page’s own settings stand.", str(error))
