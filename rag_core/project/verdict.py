"""The verdict: A against B on the held-out questions, in figures and in one word. Judging is a deed: it is a look.

Describing on dev questions is free and says neither interval nor word; this says both, and writes into the ledger that
these two pipelines were seen there. Every p is multiplied by how many different looks there were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_core.errors import InputError
from rag_core.measure.significance import Comparison, compare
from rag_core.measure.tally import PipelineTally, labels_of
from rag_core.project.asking import check_verdict
from rag_core.project.ledger import Look, look, looks
from rag_core.project.session import Progress, Session
from rag_core.spec import fingerprint
from rag_core.stage import Pipeline

FEWEST = 6
"""Fewer held-out questions than this carry no verdict, unless both keep the very same lists."""
SURE = 0.05
SAME, BETTER, WORSE, OPEN, TOO_FEW = "the same", "better", "worse", "not yet known", "too few questions"
NAMES = {"SetP": "Precision", "SetR": "Recall", "SetF": "F₁"}


@dataclass(frozen=True)
class Verdict:
    """A against B on held-out questions. Deltas are A − B; `p` is corrected for the looks."""

    a: str
    b: str
    word: str
    questions: int  # scored on both sides
    means: Mapping[str, tuple[float | None, float | None]]  # measure → (A, B)
    f: Comparison
    p: float | None
    looks: int
    worse: tuple[str, ...]  # ids of the questions on which A's F₁ is lower
    fingerprints: Mapping[str, str]
    split: str
    idle: tuple[str, ...] = ()  # titles of A's filters that dropped nothing on any of these questions

    def to_text(self) -> str:
        """The verdict as one sentence, and another where a stage took no part in it."""
        if not self.idle:
            return self._said()
        takes = "takes" if len(self.idle) == 1 else "take"
        names = " and ".join(self.idle).capitalize()
        return f"{self._said()} {names} dropped nothing on these questions and {takes} no part in this."

    def _said(self) -> str:
        a, b = self.means["SetF"]
        if self.word == SAME:
            return f"{self.a} and {self.b} keep the same chunks on all {self.questions} held-out questions."
        figures = f"F₁ {_shown(a)} against {_shown(b)} on {self.questions} held-out questions"
        if self.word == TOO_FEW:
            return f"{figures}: too few for a verdict, which needs {FEWEST}."
        delta = self.f.delta or 0.0
        interval = "" if self.f.low is None else f" [{self.f.low:+.3f}, {self.f.high:+.3f}]"
        chance = "" if self.p is None else f", p {'below 0.001' if self.p < 0.001 else f'{self.p:.3f}'}"
        times = "1 look" if self.looks == 1 else f"{self.looks} looks"
        said = f"{figures}: {delta:+.3f}{interval}{chance}, after {times}."
        if self.word == OPEN:
            seen = self.f.detectable
            least = f" Only differences of {seen:.3f} or more would show with so many." if seen else ""
            return f"Not yet known whether {self.a} is better than {self.b}: {said}{least}"
        return f"{self.a} is {self.word} than {self.b}: {said}"

    def to_json(self) -> dict[str, Any]:
        """The verdict as plain values."""
        return {
            "a": self.a,
            "b": self.b,
            "verdict": self.word,
            "questions": self.questions,
            "means": {name: list(pair) for name, pair in self.means.items()},
            "comparison": self.f.to_json(),
            "p": self.p,
            "looks": self.looks,
            "worse": list(self.worse),
            "fingerprints": dict(self.fingerprints),
            "split": self.split,
            "idle": list(self.idle),
            "sentence": self.to_text(),
        }


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def judge(
    session: Session, a: Pipeline, b: Pipeline, *, by: str = "", place: str = "", progress: Progress | None = None
) -> Verdict:
    """A against B on the project's held-out questions, written into the ledger. InputError without a labelled one."""
    cases = session.held_out
    if not cases:
        raise InputError(f"project {session.project.name} holds no question out, expected some to judge on")
    check_verdict(session, (a, b), cases)
    first, second = session.measure([a, b], cases, progress)
    pairs = [
        (one.query_id, one.scores.values["SetF"], two.scores.values["SetF"])
        for one, two in zip(first.queries, second.queries, strict=True)
    ]
    scored = [(query, x, y) for query, x, y in pairs if x is not None and y is not None]
    if not scored:
        raise InputError(f"none of the {len(cases)} held-out questions has a relevant label, expected at least one")
    prints = session.fingerprints(a)
    for pipeline in (a, b):
        seen = Look(
            fingerprint(pipeline), prints["labels"], session.split.fingerprint, len(cases), pipeline.label, by, place
        )
        look(session.project, seen)
    rival = fingerprint(b)
    times = len(
        {one.key for one in looks(session.project) if one.split == session.split.fingerprint and one.pipeline != rival}
    )
    found = compare(
        [y for _, _, y in pairs], [x for _, x, _ in pairs], names=(b.label or "B", a.label or "A"), measure="SetF"
    )
    p = None if found.p is None else min(1.0, found.p * max(1, times))
    return Verdict(
        a.label or "A",
        b.label or "B",
        _word(found, p, len(scored), [one.kept for one in first.queries] == [one.kept for one in second.queries]),
        len(scored),
        {name: (first.summary.means.get(name), second.summary.means.get(name)) for name in NAMES},
        found,
        p,
        max(1, times),
        tuple(query for query, x, y in scored if x < y - 1e-9),
        prints,
        session.split.fingerprint,
        idle_stages(first),
    )


def idle_stages(tally: PipelineTally) -> tuple[str, ...]:
    """The titles of a pipeline's filters that dropped nothing on any question it was measured on."""
    busy = {name for row in tally.queries for name in row.dropped}
    stages = zip(labels_of(tally.pipeline), tally.pipeline.stages, strict=True)
    return tuple(stage.title for name, stage in stages if stage.kind == "filter" and name not in busy)


def _word(found: Comparison, p: float | None, questions: int, same: bool) -> str:
    """One word by the joint rule: the interval and the corrected test must both say it."""
    if same:
        return SAME
    if questions < FEWEST:
        return TOO_FEW
    if p is None or p > SURE or found.low is None or found.high is None:
        return OPEN
    return BETTER if found.low > 0 else WORSE if found.high < 0 else OPEN
