"""Headroom: what is there to gain, and is filtering or retrieval the problem?"""

from collections.abc import Sequence

import streamlit as st

from pages.components import glossary, header, headroom_data, resources, say, tuning, tuning_set
from pages.components.reading import score_kind, score_name
from pages.components.trace import counted
from rag_core.errors import InputError
from rag_core.eval_sets.reading import EvalSet, labels_fingerprint
from rag_core.spec import read_pipeline
from rag_core.types import Case

BELOW = ("Per query", "Distances", "Curves", "Confidence bands")
DEV, ALL = "dev queries", "all queries"

HELP = """
**Best cut.** SetF when each list is cut at the place that is best for it: what a perfect cutoff rule could give.

**Perfect filter.** SetF when exactly the relevant chunks of the list stay. What is missing to 1 never came back.

**Lost in retrieval.** The share of a query’s relevant chunks that its list does not hold.

**AUC.** The chance that a right one scores above a wrong one; 0.5 is chance. The interval is 95 %, over queries.

**dev queries** are the default, so that a threshold picked here was not picked on the held-out ones.
"""


@st.cache_resource(max_entries=12, show_spinner="Computing the oracles")
def room_of(key: str, front: str, min_grade: int, _cases: Sequence[Case]) -> headroom_data.Room:
    """The page's figures, once for the same lists, labels and stages."""
    return headroom_data.room(_cases, read_pipeline(tuning.FRONTS[front][1]).stages, min_grade)


def ask() -> tuple[str, str]:
    """The stage in front and which queries."""
    st.session_state.setdefault("tune.front", "none")
    st.session_state.setdefault("headroom.queries", DEV)
    with st.sidebar:
        front = st.segmented_control(
            "In front", list(tuning.FRONTS), format_func=lambda key: tuning.FRONTS[key][0], required=True,
            key="tune.front", persist_state="session",
        )  # fmt: skip
        queries = st.segmented_control(
            "Queries", (DEV, ALL), required=True, key="headroom.queries", persist_state="session",
            help="A threshold picked on all queries was picked on the held-out ones too.",
        )  # fmt: skip
    return front or "none", queries or DEV


def chosen_cases(cases: Sequence[Case], queries: str, min_grade: int) -> tuple[list[Case], str]:
    """The labelled cases that are looked at, and their kind; a single labelled query is no split."""
    from rag_core.tune.tune import dev_and_test

    if queries == ALL:
        return list(cases), "labelled queries, dev and held out"
    try:
        return dev_and_test(cases, None, 0, min_grade)[0], "labelled dev queries"
    except InputError:
        return list(cases), "labelled queries (too few for a split)"


def draw_means(room: headroom_data.Room, kind: str) -> None:
    """Verdict, the four means, and what gap and top distance know."""
    mean = room.means
    st.markdown(f"**{room.verdict}**")
    rows = (
        (room.baseline, mean["now"], "SetF", "The best fixed k of these queries, without any cut of ours."),
        ("best cut", mean["best_cut"], "SetF", "Each list cut at its own best place: a perfect cutoff rule."),
        ("perfect filter", mean["perfect_filter"], "SetF", "Exactly the relevant chunks of each list."),
        ("lost in retrieval", mean["lost_in_retrieval"], "share", "Relevant chunks that the list does not hold."),
    )
    with st.container(horizontal=True):
        for label, value, unit, text in rows:
            shown = f"{value:.0%}" if unit == "share" else f"{value:.3f}"
            note = "of relevant chunks" if unit == "share" else "mean SetF"
            st.metric(label, shown, note, delta_color="off", delta_arrow="off", help=text, border=True)
    tuning_set.quiet(f"Macro over {len(room.found)} {kind}; relevant means grade ≥ {room.min_grade}.")
    st.markdown("**Do the distances know anything?** " + " · ".join(f"{one.sentence()}" for one in room.signals) + ".")


def draw_queries(room: headroom_data.Room, kind: str) -> None:
    """The oracles of every query as a chart and a table."""
    from pages.components import headroom_charts

    st.plotly_chart(
        headroom_charts.oracles(room.found, room.now, room.baseline, kind),
        key="headroom.oracles",
        config={"displaylogo": False},
        alt="SetF per query of the best fixed k, the best cut and a perfect filter; the table below holds the numbers",
    )
    texts = {case.query.id: case.query.text for case in room.cases}
    rows = [
        {
            "query": one.query_id,
            "limited by": room.limited_by(at),
            room.baseline: room.now[at],
            "best cut": one.best_cut,
            "at length": one.best_length,
            "perfect filter": one.perfect_filter,
            "lost in retrieval": one.lost_in_retrieval,
            "text": texts[one.query_id],
        }
        for at, one in enumerate(room.found)
    ]
    numbers = {
        name: st.column_config.NumberColumn(name, format="%.3f") for name in list(rows[0])[2:6] if name != "at length"
    }
    st.dataframe(
        {name: [row[name] for row in rows] for name in rows[0]},
        hide_index=True,
        key="headroom.table",
        column_config=glossary.explained(
            rows[0], {**numbers, "lost in retrieval": st.column_config.NumberColumn(format="percent")}
        ),
        height=min(38 + 35 * len(rows), 420),
        alt="Per query: what limits it, SetF of the best fixed k, of the best cut, of a perfect filter",
    )


def score_title(room: headroom_data.Room) -> str:
    """What the distances are, for an axis."""
    start = next((one for one in room.starts if one.hits), None)
    return "distance" if start is None else score_name(score_kind(start.hits), start.metric)


def draw_distances(room: headroom_data.Room) -> None:
    """The histogram."""
    from pages.components import headroom_charts

    st.plotly_chart(
        headroom_charts.histogram(headroom_data.chunks_of(room), score_title(room)),
        key="headroom.histogram",
        config={"displaylogo": False},
        alt="Histogram of distances of relevant, irrelevant and unjudged chunks",
    )
    tuning_set.quiet("The more the humps overlap, the less any threshold of distance can tell them apart.")


def draw_curves(room: headroom_data.Room) -> None:
    """Precision-recall and ROC; a click picks a threshold."""
    from pages.components import headroom_charts

    chunks = headroom_data.chunks_of(room)
    all_judged = not (chunks.labels == headroom_data.UNJUDGED).any()
    unjudged_too = all_judged or st.toggle(
        "Count unjudged chunks as irrelevant", value=True, key="headroom.unjudged", persist_state="session"
    )
    found = headroom_data.curve_of(chunks, unjudged_too)
    if found is None:
        st.markdown("All chunks that take part are of one kind: label irrelevant ones too, or count the unjudged.")
        return
    event = st.plotly_chart(
        headroom_charts.curve(found),
        key="headroom.curve",
        on_select="rerun",
        selection_mode="points",
        config={"displaylogo": False},
        alt="Precision-recall and ROC curve over thresholds of distance, all chunks pooled",
    )
    points = event["selection"]["points"]
    picked = points[0].get("customdata") if points else None
    if isinstance(picked, list):
        picked = picked[0] if picked else None
    pooled = f"{counted(found.chunks, 'chunk', 'chunks')} of {counted(chunks.queries, 'query', 'queries')}"
    tuning_set.quiet(f"All {pooled} pooled (micro), one threshold for all.")
    if picked is None:
        st.markdown(":gray[Click a point of a curve to pick its threshold.]")
        return
    precision, recall, kept = headroom_data.at_threshold(chunks, float(picked), unjudged_too)
    st.markdown(
        f"**Keep distance ≤ {float(picked):.4f}**: precision {precision:.3f}, recall {recall:.3f}, "
        f"{kept:,} of {found.chunks:,} chunks kept. As a stage, for cosine distances: "
        f"`MinSimilarity: {{min_relevance: {1 - float(picked):.4f}}}`"
    )


def draw_bands(room: headroom_data.Room) -> None:
    """Do the confidence bands hold what they say?"""
    from pages.components import headroom_charts
    from rag_core.measure.confidence import DEFAULT_LIMITS, calibration

    shares = calibration(room.starts, room.cases, DEFAULT_LIMITS, room.min_grade)
    if not any(one.judged for one in shares):
        st.markdown("No chunk of these lists is judged: label some on Label.")
        return
    st.plotly_chart(
        headroom_charts.calibration(shares),
        key="headroom.bands",
        config={"displaylogo": False},
        alt="Share relevant per confidence band with 95 % interval",
    )
    known = [one.share for one in shares if one.share is not None]
    if known != sorted(known, reverse=True):
        st.markdown("**The bands do not hold here:** a higher band is not more often relevant on these labels.")
    told = [
        f"{one.band}: {one.relevant} of {one.judged} judged chunks relevant"
        + ("" if one.share is None else f" ({one.share:.0%} [{one.low:.0%}, {one.high:.0%}])")
        for one in shares
    ]
    tuning_set.quiet(
        f"{'; '.join(told)}. Chunks of {counted(len(room.cases), 'query', 'queries')}. "
        f"Low: distance over {DEFAULT_LIMITS.low_distance} or a gap before it of {DEFAULT_LIMITS.low_gap} or more; "
        f"high: distance under {DEFAULT_LIMITS.high_distance} and gap under {DEFAULT_LIMITS.high_gap}; "
        "cosine distances. Unjudged chunks take no part."
    )


def draw_room(chosen: EvalSet, cases: Sequence[Case]) -> None:
    front, queries = ask()
    some, kind = chosen_cases(cases, queries, chosen.min_grade)
    sizes = [len(case.candidates.hits) if case.candidates else 0 for case in some]
    try:
        room = room_of(f"{chosen.name} {labels_fingerprint(some)} {sizes}", front, chosen.min_grade, some)
    except InputError as error:
        say.problem("There is nothing to compare with yet: label chunks on Label, or choose another set.", str(error))
        return
    draw_means(room, kind)
    picked = st.segmented_control(
        "Below", BELOW, default=BELOW[0], required=True, key="headroom.below", label_visibility="collapsed"
    )
    if picked == "Distances":
        draw_distances(room)
    elif picked == "Curves":
        draw_curves(room)
    elif picked == "Confidence bands":
        draw_bands(room)
    else:
        draw_queries(room, kind)


def draw() -> None:
    header.show("Headroom", "What is there to gain, and where?", HELP)
    chosen = tuning_set.choose()
    cases = None if chosen is None else tuning_set.cases_of(chosen)
    if chosen is not None and cases is not None:
        draw_room(chosen, cases)
        resources.settle()


draw()
