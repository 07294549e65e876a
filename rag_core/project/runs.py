"""Runs of a project: what pipelines gave on its questions, kept as it was; and whether one got worse than a kept run.

A run and a gate's verdict show figures over held-out questions, so each is a look (ledger.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from rag_core.compare.gate import GateResult, GateRules, judge
from rag_core.compare.run_file import Run
from rag_core.compare.snapshot import About, Recorder
from rag_core.eval_sets.reading import labels_fingerprint
from rag_core.measure.measures import DEFAULT_MEASURES, Measure
from rag_core.project.ledger import Look, look
from rag_core.project.session import Progress, Session
from rag_core.spec import fingerprint
from rag_core.stage import Pipeline
from rag_core.types import Case


def about(session: Session, name: str = "") -> About:
    """What a run says of itself; of recorded lists the run makes its own fingerprints."""
    if not session.live:
        return About(name, session.project.labels)
    prints = session.fingerprints()
    models = {"embedding": prints["model"]} if prints["model"] else {}
    return About(name, session.project.labels, corpus=prints["source"], rules=prints["rules"], models=models)


def make_run(
    session: Session,
    pipelines: Sequence[Pipeline],
    name: str = "",
    cases: Sequence[Case] | None = None,
    measures: Sequence[Measure] = DEFAULT_MEASURES,
    progress: Progress | None = None,
) -> Run:
    """The run of these pipelines over the questions, on text, rules and labels of now; no trace is held."""
    ready = [session.ready(pipeline) for pipeline in pipelines]
    recorder = Recorder(ready, session.min_grade, about(session, name))
    for outcomes in session.stream(ready, cases, measures, progress):
        recorder.add(outcomes)
    return recorder.run()


def gate(
    session: Session,
    baseline: Run,
    pipelines: Sequence[Pipeline],
    rules: GateRules,
    baseline_pipeline: str | None = None,
    cases: Sequence[Case] | None = None,
    measures: Sequence[Measure] = DEFAULT_MEASURES,
    progress: Progress | None = None,
) -> tuple[list[GateResult], Run]:
    """Whether each pipeline is worse than the baseline by more than chance, and the run that says so."""
    after = make_run(session, pipelines, "gate", cases, measures, progress=progress)
    return judge(baseline, after, rules, baseline_pipeline, set(session.source.by_id)), after


def looked(session: Session, pipelines: Sequence[Pipeline], cases: Sequence[Case], by: str, place: str) -> int:
    """Write down that figures over held-out questions are shown; how many looks there were, 0 where none is held out.

    Looking again at the same pipeline on the same labels is no new look.
    """
    held_out = set(session.split.held_out) & {case.query.id for case in cases if case.grades}
    if not held_out:
        return 0
    labels, split = labels_fingerprint(session.cases), session.split.name
    count = 0
    for one in pipelines:
        seen = Look(fingerprint(one), labels, split, len(held_out), one.label, by, place)
        count = look(session.project.state, seen)
    return count
