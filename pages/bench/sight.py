"""What is in sight on the Bench, as the payload that its component draws: stages, both lines, rows, curve, matrix.

Pure reading of a session: nothing here draws, stores or decides. The state says what is looked at (pages/state.py), the
session runs it (rag_core/project/session.py), step functions say what dragging a knob would change (rag_core/tune).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np

from pages.bench import payload as wire
from rag_core.compare.attribution import waterfall
from rag_core.errors import InputError
from rag_core.eval_sets.facts import made_said
from rag_core.filters.cut import Cut
from rag_core.llm.judge import RecordedJudge
from rag_core.llm.simulated import SimulatedJudge
from rag_core.measure.experiment import Outcome
from rag_core.measure.tally import labels_of
from rag_core.project.session import Figures, Session, must_search
from rag_core.project.split import Sides
from rag_core.spec import parse_pipeline, stage_class
from rag_core.stage import Pipeline, Stage
from rag_core.text import counted
from rag_core.tune.steps import Knob, StepFunction, cheap_knobs, step_function
from rag_core.types import Candidates, Case, Drop, Hit, Metric, Order, falling

LOSSES, ONE = "losses", "one"
JUDGED = "judge"  # the drawer of a stage that asks a model about chunks
SHOWN = 40
"""Rows of a list that are drawn at least; of a deeper one what is kept, relevant or cut is drawn too."""
MOST_ROWS = 120
DISTANCES = {Metric.COSINE: "cosine distance", Metric.L2: "squared L2 distance", Metric.IP: "inner-product distance"}
SCORES = {
    "similarity": "similarity",
    "bm25": "BM25 score",
    "rrf": "fused score (RRF)",
    "score": "score",
    "rerank": "reranker's score",
}


@dataclass(frozen=True)
class SeenList:
    """A stage as the list on the left holds it: one that is off keeps its settings and its place."""

    stage: Stage
    on: bool = True


@dataclass(frozen=True)
class Sight:
    """Everything that a Bench shows, computed: what the payload is made of, and what the page draws below it."""

    session: Session
    pipelines: Mapping[str, Pipeline]  # A, B, and C where there is one
    case: Case | None
    outcomes: Mapping[str, Outcome]  # of the question in sight, by side
    figures: Mapping[str, Figures]  # over the dev questions, by side
    dev: tuple[Case, ...]
    split: Sides
    problem: str = ""  # why a pipeline cannot run


def look(session: Session, pipelines: Mapping[str, Pipeline], question: str) -> Sight:
    """Run what is in sight: one question through A and B, the dev questions through all."""
    split, dev = session.split, tuple(session.dev)
    case = question_in_sight(session, question)
    outcomes: dict[str, Outcome] = {}
    figures: dict[str, Figures] = {}
    problem = ""
    for side, pipeline in pipelines.items():
        try:
            if case is not None and side != "C":
                outcomes[side] = session.run(pipeline, case)
            if dev:
                figures[side] = session.figures(pipeline, dev)
        except InputError as error:  # a stage that is not ready, or does not fit these lists: the others are shown
            outcomes.pop(side, None)
            problem = problem or f"{side} cannot run: {error}"
    return Sight(session, pipelines, case, outcomes, figures, dev, split, problem)


def question_in_sight(session: Session, question: str) -> Case | None:
    """The question of an id, one of a person's own (`?` and its text), else the first with labels, else the first.

    None where there is none.
    """
    if question.startswith("?"):
        return session.question(question[1:])
    cases = session.cases
    if not cases:
        return None
    shown = walked(session)
    usual = next((case for case in shown if case.grades), shown[0])
    return next((case for case in cases if case.query.id == question), usual)


def walked(session: Session) -> list[Case]:
    """The questions that can be looked at one by one: examples and dev; held-out ones only by name."""
    split = session.split
    shown = {*split.examples, *split.dev}
    return [case for case in session.cases if case.query.id in shown] or list(session.cases)


Steps = Mapping[tuple[int, str], tuple[Knob, StepFunction | None]]
"""By (place in A, setting): the knob with its step function, None where it is dear and not in the hand."""


def steps_of(sight: Sight, grabbed: tuple[int, str] | None = None) -> Steps:
    """Every cheap knob of A with its step function; of a dear one only while it is grabbed."""
    if "A" not in sight.outcomes:
        return {}
    session, pipeline = sight.session, sight.pipelines["A"]
    ready = session.ready(pipeline)
    every = session.captures(pipeline, sight.dev) if sight.dev else None
    query = None if sight.case is None else sight.case.query.id
    among = query if any(case.query.id == query for case in sight.dev) else None
    # an example, a held-out question or one of a person's own: no figure over dev holds it
    alone = session.captures(pipeline, [sight.case]) if sight.case is not None and among is None else None
    whole = every or alone
    assert whole is not None
    # a refill behind a filter, or a hop, asks the source anew: no captured list says what it would bring
    known = not (session.live and must_search(pipeline))
    steps: dict[tuple[int, str], tuple[Knob, StepFunction | None]] = {}
    for knob in cheap_knobs(whole, ready, searched=session.live):
        function = None
        if known and (not knob.dear or grabbed == (knob.stage, knob.setting)):
            try:
                function = step_function(whole, ready, knob.stage, knob.setting, knob.positions, question=among)
                if alone is not None:
                    one = step_function(alone, ready, knob.stage, knob.setting, knob.positions, question=query)
                    function = replace(function, rows=one.rows, kept=one.kept, one=one.one)
            except InputError:
                continue
        steps[knob.stage, knob.setting] = (knob, function)
    return _over_the_same_rows(steps)


def _over_the_same_rows(steps: Steps) -> Steps:
    """The functions with one list of rows: a stage that brings chunks brings others at other values of its knobs."""
    rows = tuple(dict.fromkeys(id_ for _, function in steps.values() if function is not None for id_ in function.rows))
    place = {id_: at for at, id_ in enumerate(rows)}

    def over_rows(function: StepFunction) -> StepFunction:
        if function.rows == rows:
            return function
        kept = np.zeros((len(rows), len(function.positions)), dtype=bool)
        np.logical_or.at(kept, [place[id_] for id_ in function.rows], function.kept)
        return replace(function, rows=rows, kept=kept)

    return {key: (knob, function and over_rows(function)) for key, (knob, function) in steps.items()}


def payload_of(
    sight: Sight,
    stages: Sequence[SeenList],
    steps: Steps,
    *,
    version: int,
    zoom: str,
    lens: str,
    filter: str = "",
    selected: str = "",
    notice: str = "",
    acks: Mapping[str, int] | None = None,
    grabbed: tuple[int, str] | None = None,
) -> wire.Payload:
    """The payload; `steps` holds per (place in A, setting) the knob and its step function, None where it is dear.

    `grabbed` is such a key too. The component counts the stages that are off, A's pipeline does not know them.
    """
    rows, curve = _rows_and_curve(sight, steps) if "A" in sight.outcomes else ((), None)
    index = [at for at, entry in enumerate(stages) if entry.on]
    if curve is not None and curve.cut_stage is not None:
        lines = tuple(replace(line, stage=index[line.stage]) for line in curve.lines)
        curve = replace(curve, lines=lines, cut_stage=index[curve.cut_stage])
    return wire.Payload(
        version=version,
        pipelines=tuple(_pipe(side, sight) for side in sight.pipelines),
        stages=tuple(_stages(sight, stages, steps)),
        all=_line_of_all(sight),
        one=_line_of_one(sight),
        question=_in_sight(sight),
        zoom=zoom,
        lens=lens,
        rows=rows,
        curve=curve,
        questions=tuple(wire.BenchQuestion(case.query.id, case.query.text, case.query.tags) for case in sight.dev),
        losses=_losses(sight, index, zoom) if lens == LOSSES else (),
        filter=filter,
        selected=selected,
        notice=notice or sight.problem,
        acks=dict(acks or {}),
        grabbed=None if grabbed is None or grabbed[0] >= len(index) else (index[grabbed[0]], grabbed[1]),
    )


# Stages and their knobs


def _stages(
    sight: Sight,
    listed: Sequence[SeenList],
    steps: Steps,
) -> list[wire.BenchStage]:
    """The list on the left. `place` counts the stages that are on: that is a knob's place in the pipeline."""
    outcome = sight.outcomes.get("A")
    trace = (
        list(outcome.result.steps[-len(sight.pipelines["A"].stages) :])
        if outcome and sight.pipelines["A"].stages
        else []
    )
    rows, place = [], 0
    last = len(listed) - 1
    for index, entry in enumerate(listed):
        stage, knobs, did = entry.stage, [], ""
        if entry.on:
            knobs = [_knob(sight, knob, function) for (at, _), (knob, function) in steps.items() if at == place]
            step = next((one for one in trace if one.stage == stage.name), None)
            if step is not None:
                trace.remove(step)
                did = stage.change(step) if stage.kind not in ("source", "rewrite") else f"{step.left or step.entered}"
            place += 1
        front = stage.kind in ("source", "rewrite")
        given = stage.kind == "source" and not sight.session.live  # nothing is searched, whatever the spec names
        rows.append(
            wire.BenchStage(
                name=stage.name,
                title="recorded list" if given else stage.title,
                meaning="What your retriever returned, as it was recorded." if given else stage.meaning,
                did=did,
                note=_note(stage, sight.session),
                simulated=stage.drawer == JUDGED and isinstance(sight.session.judge, SimulatedJudge),
                on=entry.on,
                switchable=stage.kind != "source",
                up=not front and index > 0 and listed[index - 1].stage.kind not in ("source", "rewrite"),
                down=not front and index < last,
                removable=stage.kind != "source",
                drawer=True,
                knobs=tuple(knobs),
            )
        )
    return rows


def _has_idle_rules(sight: Sight) -> bool:
    """Whether A has a stage of rules and no chunk carries one."""
    ruled = any(stage.drawer == "rules" for stage in sight.pipelines["A"].stages)
    return ruled and not sight.session.source.rules


def _note(stage: Stage, session: Session) -> str:
    """The settings that matter first and are no numbers to be dragged; of rules, that there are none."""
    if stage.drawer == "rules" and not session.source.rules:
        return "no chunk carries a rule"
    judge = session.judge
    if stage.drawer == JUDGED and isinstance(judge, SimulatedJudge | RecordedJudge):
        return judge.origin if isinstance(judge, SimulatedJudge) else judge.name
    settings = stage.settings()
    words = [
        f"{settings[one.name]}"
        for one in stage.declared()
        if one.priority and not one.numeric and one.nested is None and settings[one.name] not in (None, "", False)
    ]
    return ", ".join(words[:2])


def _knob(sight: Sight, knob: Knob, function: StepFunction | None) -> wire.BenchKnob:
    """A knob with what moves when it is dragged, and on how many questions anything does."""
    steps, told = None, ""
    if function is not None:
        told = knob_text(function.moved, len(function.per_question))
        baseline = sight.figures.get("B")
        counts = None
        if baseline is not None and len(function.per_question) == len(baseline.f):
            counts = wire.count_changes(function.per_question, baseline.f)
        one = function.one if function.one.shape[1] else np.full((4, len(function.positions)), np.nan)
        steps = wire.Steps(function.means, one, function.kept, counts, function.per_question)
    return wire.BenchKnob(
        setting=knob.setting,
        title=knob.label.partition(": ")[2] or knob.label,
        value=float(knob.value),
        positions=np.asarray(knob.positions, dtype=np.float64),
        help=told,
        digits=knob.digits,
        steps=steps,
    )


def knob_text(moved: int, questions: int) -> str:
    """What turning a knob through its range does to the questions, in a sentence."""
    if not moved:
        return f"changes nothing on any of {counted(questions, 'question', 'questions')}: it cannot be tuned here"
    return f"changes what is kept on {moved} of {counted(questions, 'question', 'questions')}"


# Lines and matrix


def _means(figures: Figures) -> wire.BenchFigures:
    means = figures.means
    return wire.BenchFigures(means["SetP"], means["SetR"], means["SetF"], means["kept"])


def _line_of_all(sight: Sight) -> wire.BenchLine:
    a, b = sight.figures.get("A"), sight.figures.get("B")
    nothing = wire.BenchFigures(None, None, None, None)
    if a is None:
        return wire.BenchLine(
            "ALL questions", 0, 0, nothing, note="no dev question yet" if sight.session.cases else "no question yet"
        )
    counts = None
    if b is not None:
        better, worse, same = wire.count_changes(a.f[:, None], b.f)[:, 0].tolist()
        counts = (better, worse, same)
    kind = "dev question" if len(sight.dev) == 1 else "dev questions"
    note = _left_alone(sight) if a.scored else "no label yet: nothing is scored"
    if not note and _has_idle_rules(sight):
        note = "no chunk carries a rule: rules drop nothing"
    made = made_said(sight.dev)
    of = f"{a.scored:,} of " if 0 < a.scored < len(sight.dev) else ""  # the others have no relevant label yet
    return wire.BenchLine(
        f"ALL {of}{len(sight.dev):,} {kind}" + (f", {made}" if made else ""),
        len(sight.dev),
        a.scored,
        _means(a),
        None if b is None else _means(b),
        counts,
        note,
    )


def _left_alone(sight: Sight) -> str:
    """On how many dev questions A's model decided nothing, so that their nearest chunks stay; '' where it asks none."""
    pipeline = sight.pipelines["A"]
    if not any(stage.drawer == JUDGED for stage in pipeline.stages):
        return ""
    (tally,) = sight.session.measure([pipeline], list(sight.dev))
    alone = tally.summary.queries_fallback
    return f"no decision on {alone:,} of {len(sight.dev):,}" if alone else ""


def _line_of_one(sight: Sight) -> wire.BenchLine | None:
    a, b = sight.outcomes.get("A"), sight.outcomes.get("B")
    if a is None or sight.case is None:
        return None
    query = sight.case.query.id
    note = ""
    if query in sight.split.examples:
        note = "an example: outside dev and held-out figures"
    elif query in sight.split.held_out:
        note = "held out"
    elif a.scores.unjudged:
        note = "no label yet"
    elif a.scores.without_relevant and (b is None or b.scores.without_relevant):
        note = "nothing relevant exists"
    elif not a.scores.scored:
        note = "no relevant label so far"
    return wire.BenchLine(
        "THIS ONE", 1, int(a.scores.scored), _one_figures(a), None if b is None else _one_figures(b), note=note
    )


def _one_figures(outcome: Outcome) -> wire.BenchFigures:
    values = outcome.scores.values
    return wire.BenchFigures(values.get("SetP"), values.get("SetR"), values.get("SetF"), float(outcome.scores.kept))


def _pipe(side: str, sight: Sight) -> wire.Pipe:
    pipeline, figures = sight.pipelines[side], sight.figures.get(side)
    outcome = sight.outcomes.get(side)
    kept = ""
    if outcome is not None:
        total = len({hit.chunk.id for hit in (*outcome.start.hits, *outcome.result.hits)})
        kept = f"{outcome.scores.kept} of {total}"
    if figures is None:
        return wire.Pipe(side, pipeline.label or "unnamed", kept)
    precision, recall, f, count = figures.values
    return wire.Pipe(side, pipeline.label or "unnamed", kept, f, precision, recall, count.astype(np.int32))


def _in_sight(sight: Sight) -> wire.InSight | None:
    if sight.case is None:
        return None
    ids = [case.query.id for case in walked(sight.session)]
    query = sight.case.query
    at = ids.index(query.id) if query.id in ids else -1
    previous = ids[at - 1] if at > 0 else ""
    following = ids[at + 1] if 0 <= at < len(ids) - 1 else (ids[0] if at < 0 and ids else "")
    return wire.InSight(query.id, query.text, at + 1, len(ids), previous, following)


def _losses(sight: Sight, index: Sequence[int], zoom: str) -> tuple[wire.Loss, ...]:
    """Where relevant chunks die in A, stage by stage: those of the dev questions, at zoom One of the one in sight."""
    cases = [sight.case] if zoom == ONE and sight.case is not None else list(sight.dev)
    if "A" not in sight.figures or not cases:
        return ()
    pipeline = sight.pipelines["A"]
    (tally,) = sight.session.measure([pipeline], cases)
    fall = waterfall(tally)
    losses = [wire.Loss("search", fall.relevant, fall.lost_in_retrieval, 0)]
    left = fall.retrieved
    for place, (label, stage) in enumerate(zip(labels_of(pipeline), pipeline.stages, strict=True)):
        if label not in fall.lost or stage.kind in ("source", "rewrite"):
            continue
        dropped = [row.dropped[label] for row in tally.queries if label in row.dropped]
        noise = sum(one.irrelevant + one.unjudged for one in dropped)
        losses.append(wire.Loss(stage.title, left, fall.lost[label], noise, index[place]))
        left -= fall.lost[label]
    return tuple(losses)


# Rows and the curve beside them


def _rows_and_curve(sight: Sight, steps: Steps) -> tuple[tuple[wire.BenchRow, ...], wire.Curve]:
    a, b = sight.outcomes["A"], sight.outcomes.get("B")
    kind = score_kind(sight)
    in_a, in_b = listed(a), listed(b) if b is not None else {}
    order = list(dict.fromkeys([*in_a, *in_b]))
    shown = [id_ for id_ in order if _is_shown(id_, in_a, in_b, sight)][:MOST_ROWS]
    function = next((one for _, one in steps.values() if one is not None), None)
    places = {id_: place for place, id_ in enumerate(function.rows)} if function is not None else {}
    chunks = {id_: (in_a.get(id_) or in_b[id_]).hit.chunk for id_ in shown}
    titles = wire.split_titles([chunk.title or chunk.id for chunk in chunks.values()])
    grades, least = a.case.grades, sight.session.project.min_grade
    rows = []
    for (id_, _), (head, rest) in zip(chunks.items(), titles, strict=True):
        grade = grades.get(id_)
        rows.append(
            wire.BenchRow(
                id_,
                head,
                rest,
                grade,
                None if grade is None else grade >= least,
                places.get(id_),
                in_a[id_].side(kind) if id_ in in_a else None,
                in_b[id_].side(kind) if id_ in in_b else None,
            )
        )
    return tuple(rows), _curve(sight, kind, {id_: at for at, id_ in enumerate(chunks)})


@dataclass(frozen=True)
class _Entry:
    place: int
    hit: Hit
    drop: Drop | None

    @property
    def reason(self) -> str:
        """How the chunk came where the source did not bring it ("hop 1"), and why it was dropped."""
        return ": ".join(part for part in (self.hit.origin, self.drop.reason.text if self.drop else "") if part)

    def side(self, kind: str) -> wire.BenchSide:
        drop = self.drop
        verdict = "kept" if drop is None else f"dropped by {stage_class(drop.stage).title}"
        score = self.hit.scores.get(kind)
        return wire.BenchSide(self.place, self.hit.rank, score, drop is None, verdict, self.reason)


def listed(outcome: Outcome) -> dict[str, _Entry]:
    """Every chunk that a run saw by id: the list as it came, then what stages brought, by rank."""
    kept = {hit.chunk.id: hit for hit in reversed(outcome.result.hits)}
    drops = {drop.hit.chunk.id: drop for drop in outcome.result.drops}
    had = {hit.key for hit in outcome.start.hits}
    brought = [*outcome.result.hits, *(drop.hit for drop in outcome.result.drops)]
    beyond = sorted((hit for hit in brought if hit.key not in had), key=lambda hit: hit.rank)
    entries: dict[str, _Entry] = {}
    for hit in (*outcome.start.hits, *beyond):
        id_ = hit.chunk.id
        if id_ not in entries:
            drop = None if id_ in kept else drops.get(id_)
            entries[id_] = _Entry(len(entries), kept.get(id_, hit), drop)
    return entries


def _is_shown(id_: str, in_a: Mapping[str, _Entry], in_b: Mapping[str, _Entry], sight: Sight) -> bool:
    entries = [side[id_] for side in (in_a, in_b) if id_ in side]
    if any(entry.place < SHOWN or entry.drop is None for entry in entries):
        return True
    grades = sight.outcomes["A"].case.grades
    return grades.get(id_, 0) >= sight.session.project.min_grade


def score_kind(sight: Sight) -> str:
    """The score that is drawn: what a cut of A looks at, else what orders the list, else the first that is there."""
    start = sight.outcomes["A"].start
    wanted = [stage.score for stage in sight.pipelines["A"].stages if stage.is_cut and stage.score]
    wanted = ["rerank"] if start.metric is Metric.RERANK else wanted
    kinds = [*wanted, *(["rrf"] if start.order is Order.FUSED else []), "distance", *SCORES]
    return next((kind for kind in kinds if any(kind in hit.scores for hit in start.hits)), "distance")


def _curve(sight: Sight, kind: str, at: Mapping[str, int]) -> wire.Curve:
    """The chart: the rows that come to A's cut, and the lines that a person may drag."""
    outcome = sight.outcomes["A"]
    name = DISTANCES.get(outcome.start.metric, "distance") if kind == "distance" else SCORES[kind]
    if not any(isinstance(step.facts.get("cut"), Cut) for step in outcome.result.steps):
        return wire.Curve(score_name=name)
    before = outcome.start
    # a run may put a search in front that the pipeline does not name: places count from the end
    first = len(sight.pipelines["A"].stages) - len(outcome.pipeline.stages)
    for place, stage in enumerate(outcome.pipeline.stages, first):
        after = stage.again(before)
        made = after.steps[-1].facts.get("cut") if after.steps else None
        if before.metric is Metric.RERANK and kind != "rerank":
            break  # the rows show the score that the list came with: no line of the reranker's is drawn on that
        if isinstance(made, Cut):
            return _curve_of_cut(before, after, made, place, stage, name, at)
        before = after
    return wire.Curve(score_name=name)


def _curve_of_cut(
    before: Candidates, after: Candidates, made: Cut, place: int, stage: Stage, name: str, at: Mapping[str, int]
) -> wire.Curve:
    before = falling(before)
    judged = sorted(
        (hit for hit in before.hits if hit.distance is not None and not hit.origin),
        key=lambda hit: (hit.distance, hit.rank) if before.order is Order.FUSED else (0.0, hit.rank),
    )
    # a gap is one between neighbours: the chart ends where the rows do
    reaching = [at[hit.chunk.id] for hit in takewhile(lambda hit: hit.chunk.id in at, judged)]
    settings = stage.settings()
    absolute = settings["relative_offset"] is None and settings["gap_policy"] != "ratio"
    lines = []
    if settings["gap_policy"] in ("largest", "first"):
        lines.append(wire.CutLine(place, "gap_threshold", "gap", "gap threshold", decides=made.gap_index is not None))
    if absolute and judged:
        first = judged[0].scores["distance"]
        lines.append(
            wire.CutLine(place, "distance_offset", "score", "offset", base=first, decides=made.gap_index is None)
        )
    left = {one.key for one in after.hits}
    kept = [hit for hit in judged if hit.key in left]
    cut_after = at.get(kept[-1].chunk.id) if kept and len(kept) < len(judged) else None
    word = ""
    if cut_after is not None:
        word = f"gap {made.gap:.4f} ≥ {made.gap_threshold:.4f}" if made.gap is not None else f"up to {made.reach:.4f}"
    return wire.Curve(name, tuple(reaching), tuple(lines), place, cut_after, word, skips_first_gap=True)


# Changing the pipeline


def pipeline_from(stages: Sequence[SeenList]) -> Pipeline:
    """The pipeline of the stages that are on, in an order that the spec allows; a SpecError says what it refuses."""
    return parse_pipeline([entry.stage for entry in stages if entry.on])


def listed_stages(pipeline: Pipeline, off: Sequence[tuple[int, Stage]]) -> list[SeenList]:
    """The list on the left: the pipeline's stages, and those that are off at the places they had."""
    stages = [SeenList(stage) for stage in pipeline.stages]
    for place, stage in sorted(off, key=lambda one: one[0]):
        stages.insert(min(place, len(stages)), SeenList(stage, on=False))
    return stages
