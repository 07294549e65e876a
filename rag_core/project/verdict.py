"""The verdict: A against B on the held-out questions, in figures and in one word. Judging is a deed: it is a look.

Describing on dev questions is free and says neither interval nor word; this says both, and writes into the ledger that
these two pipelines were seen there. The word is one that holds however often and at however many pairs somebody looks
(measure/sequential.py); the interval and p beside it are those of somebody who looks once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rag_core.errors import InputError
from rag_core.eval_sets.facts import made_counts
from rag_core.measure.sequential import Ruling, decide
from rag_core.measure.significance import (
    BETTER,
    FEWEST,
    IDENTICAL,
    MARGIN,
    OPEN,
    SAME,
    TOO_FEW,
    WORSE,
    Comparison,
    compare,
    paired_differences,
    shown_p,
)
from rag_core.measure.tally import PipelineTally, labels_of
from rag_core.project.asking import check_verdict
from rag_core.project.ledger import Look, look, standing
from rag_core.project.made import JUDGES_NOT
from rag_core.project.session import Progress, Session
from rag_core.spec import fingerprint
from rag_core.stage import Pipeline

NAMES = {"SetP": "Precision", "SetR": "Recall", "SetF": "F₁"}
__all__ = ["BETTER", "IDENTICAL", "NAMES", "OPEN", "SAME", "TOO_FEW", "WORSE", "Verdict", "idle_stages", "judge"]


@dataclass(frozen=True)
class Verdict:
    """A against B on held-out questions. Deltas are A − B; `f` is as it stands for who looks once."""

    a: str
    b: str
    word: str
    questions: int  # scored on both sides
    means: Mapping[str, tuple[float | None, float | None]]  # measure → (A, B)
    f: Comparison
    ruling: Ruling
    looks: int
    worse: tuple[str, ...]  # ids of the questions on which A's F₁ is lower
    fingerprints: Mapping[str, str]
    split: str
    margin: float = MARGIN
    idle: tuple[str, ...] = ()  # titles of A's filters that dropped nothing on any of these questions
    generated: int = 0  # of the held-out questions
    from_log: int = 0
    left_out: int = 0  # held-out questions that chose A or B, when the split was another

    def to_text(self) -> str:
        """The verdict as one sentence, and another where a stage took no part in it."""
        if not self.idle:
            return self._said() + self._made()
        takes = "takes" if len(self.idle) == 1 else "take"
        names = " and ".join(self.idle).capitalize()
        return f"{self._said()}{self._made()} {names} dropped nothing on these questions and {takes} no part in this."

    def _made(self) -> str:
        counts = {"generated": self.generated, "from a log": self.from_log}
        made = "".join(f" {count} of these questions are {what}." for what, count in counts.items() if count)
        return f"{made} Left out are {self.left_out} held-out questions that chose A or B." if self.left_out else made

    def _said(self) -> str:
        a, b = self.means["SetF"]
        if self.word == IDENTICAL:
            return f"{self.a} and {self.b} keep the same chunks on all {self.questions} held-out questions."
        figures = f"F₁ {_shown(a)} against {_shown(b)} on {self.questions} held-out questions"
        if self.word == TOO_FEW:
            return f"{figures}: too few for a verdict, which needs {FEWEST}."
        delta = self.f.delta or 0.0
        interval = "" if self.f.low is None else f" [{self.f.low:+.3f}, {self.f.high:+.3f}]"
        chance = "" if self.f.p is None else f", {shown_p(self.f.p)}"
        times = "1 look" if self.looks == 1 else f"{self.looks} looks"
        said = f"{figures}: {delta:+.3f}{interval}{chance}, after {times}."
        if self.word == OPEN:
            more = self.more
            least = "" if more is None else f" About {more:,} more questions would decide, if they are like these."
            return f"Not yet known whether {self.a} is better than {self.b}: {said}{self._bounds()}{least}"
        if self.word == SAME:
            return f"{self.a} is {SAME} as {self.b}, within {self.margin:g}: {said}"
        return f"{self.a} is {self.word} than {self.b}: {said}"

    def _bounds(self) -> str:
        """What decides, where the interval of one look says more than is known."""
        low, high = self.f.low, self.f.high
        if low is None or high is None or low <= 0 <= high:
            return ""
        held = f" are [{self.ruling.low:+.3f}, {self.ruling.high:+.3f}]"
        return f" Interval and p are those of a single look; the bounds that hold however often one looks{held}."

    @property
    def more(self) -> int | None:
        """How many more questions would decide four times in five, if they are like these; None where it is known."""
        needed = self.ruling.needed
        return None if needed is None else max(1, round((needed / self.f.families - 1) * self.questions))

    def to_json(self) -> dict[str, Any]:
        """The verdict as plain values."""
        return {
            "a": self.a,
            "b": self.b,
            "verdict": self.word,
            "questions": self.questions,
            "means": {name: list(pair) for name, pair in self.means.items()},
            "comparison": self.f.to_json(),
            "bounds": [self.ruling.low, self.ruling.high],
            "level": self.ruling.level,
            "margin": self.margin,
            "more": self.more,
            "looks": self.looks,
            "worse": list(self.worse),
            "fingerprints": dict(self.fingerprints),
            "split": self.split,
            "idle": list(self.idle),
            "generated": self.generated,
            "from_log": self.from_log,
            "left_out": self.left_out,
            "sentence": self.to_text(),
        }


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def judge(
    session: Session,
    a: Pipeline,
    b: Pipeline,
    *,
    by: str = "",
    place: str = "",
    margin: float = MARGIN,
    progress: Progress | None = None,
) -> Verdict:
    """A against B on the project's held-out questions, written into the ledger. InputError without a labelled one."""
    cases = session.held_out
    if not cases:
        raise InputError(f"project {session.project.name} holds no question out, expected some to judge on")
    drawers = {stage.drawer for pipeline in (a, b) for stage in pipeline.stages}
    for drawer, origins in JUDGES_NOT.items():
        if drawer in drawers:
            cases = [case for case in cases if case.query.made_from not in origins]
    if not cases:
        raise InputError(
            "all held-out questions were made from slots, which never judge rules, or by a model, which judge neither "
            "rules nor models: expected some that people asked"
        )
    of_all, cases = len(cases), session.unseen((a, b), cases)
    if not cases:
        raise InputError(f"A or B was chosen on all {of_all} held-out questions, expected some that chose neither")
    check_verdict(session, (a, b), cases)
    first, second = session.measure([a, b], cases, progress)
    pairs = [
        (one.query_id, one.scores.values["SetF"], two.scores.values["SetF"])
        for one, two in zip(first.queries, second.queries, strict=True)
    ]
    scored = [(query, x, y) for query, x, y in pairs if x is not None and y is not None]
    if not scored:
        raise InputError(f"none of the {len(cases)} held-out questions has a relevant label, expected at least one")
    prints, split = session.fingerprints(a), session.split
    mine, theirs = [x for _, x, _ in pairs], [y for _, _, y in pairs]
    families = [split.families.get(query, query) for query, _, _ in pairs]
    f = compare(theirs, mine, names=(b.label or "B", a.label or "A"), measure="SetF", families=families)
    differences, named = paired_differences(theirs, mine, families)
    seen = Look(
        fingerprint(a), prints["labels"], split.name, len(cases), a.label, by, place, rival=fingerprint(b)
    )  # fmt: skip
    before = standing(session.project.state, seen)
    ruling = decide(
        np.asarray(differences),
        named,
        pair=before.pair,
        before=before.bounds,
        first=before.repeats(seen),
        margin=margin,
    )
    times = look(session.project.state, replace(seen, low=ruling.low, high=ruling.high))
    identical = [one.kept for one in first.queries] == [one.kept for one in second.queries]
    return Verdict(
        a.label or "A",
        b.label or "B",
        IDENTICAL if identical else ruling.word,
        len(scored),
        {name: (first.summary.means.get(name), second.summary.means.get(name)) for name in NAMES},
        f,
        ruling,
        times,
        tuple(query for query, x, y in scored if x < y - 1e-9),
        prints,
        split.fingerprint,
        margin,
        idle_stages(first),
        left_out=of_all - len(cases),
        **made_counts(cases),
    )


def idle_stages(tally: PipelineTally) -> tuple[str, ...]:
    """The titles of a pipeline's filters that dropped nothing on any question it was measured on."""
    busy = {name for row in tally.queries for name in row.dropped}
    stages = zip(labels_of(tally.pipeline), tally.pipeline.stages, strict=True)
    return tuple(stage.title for name, stage in stages if stage.kind == "filter" and name not in busy)
