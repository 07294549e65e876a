"""A comparison in plain sentences, for pages, reports and the command line. Numbers come from compare.py."""

from __future__ import annotations

from rag_core.measure.significance import Comparison

ALPHA = 0.05


def verdict_words(found: Comparison) -> str:
    """Which of the two is better, by how much, and whether that may be chance."""
    if found.delta is None:
        return f"No query is scored for both {found.a} and {found.b}, so nothing can be said."
    counts = f"{found.wins} wins, {found.ties} ties, {found.losses} losses"
    if not found.wins and not found.losses:
        where = "the one query" if found.queries == 1 else f"all {found.queries} queries"
        return f"{found.b} and {found.a} have the same {found.measure} on {where}."
    way = "higher" if found.delta >= 0 else "lower"
    start = f"{found.b} is {abs(found.delta):.3f} {way} in {found.measure} than {found.a} ({counts})"
    if found.low is None or found.high is None or found.p is None:
        return f"{start}; one query says nothing about others."
    p = found.p if found.p_corrected is None else found.p_corrected
    shown = "p below 0.001" if p < 0.001 else f"p {p:.3f}"
    chance = "more than chance would explain" if p <= ALPHA else "which may be chance"
    return f"{start}, {chance}: interval {found.low:+.3f} to {found.high:+.3f}, {shown}."


def detectable_words(found: Comparison) -> str:
    """How small a true difference the queries would have shown between the two: the minimum detectable effect.

    Empty where no query differs: then there is nothing to add to the verdict.
    """
    if found.detectable is None:
        few = "1 scored query is" if found.queries == 1 else f"{found.queries} scored queries are"
        return f"{few} too few to say what difference between {found.b} and {found.a} could be found."
    if not found.wins and not found.losses:
        return ""
    if not found.detectable:
        return (
            f"All {found.queries} queries show the same difference between {found.b} and {found.a}, so they do not say "
            "how small a one could be found."
        )
    if found.detectable > 1:  # every measure lies between 0 and 1
        return (
            f"With these {found.queries} queries no difference in {found.measure} between {found.b} and {found.a}, "
            "however large, would be found four times in five; it needs more queries."
        )
    return (
        f"With these {found.queries} queries a true difference of {found.detectable:.3f} in {found.measure} between "
        f"{found.b} and {found.a} would be found four times in five; smaller ones need more queries."
    )


def compared_words(found: Comparison) -> list[str]:
    """The sentences about two pipelines: the verdict, and how small a difference could be found."""
    return [words for words in (verdict_words(found), detectable_words(found)) if words]


def unjudged_words(name: str, unjudged: float | None) -> str:
    """How much of what a pipeline kept nobody has judged; empty where all of it is."""
    if not unjudged:
        return ""
    return f"{unjudged:.0%} of what {name} kept has no label and counts as irrelevant."
