"""Run pipelines over cases and keep, per query, the trace and the scores: what replay, evaluate and every page call.

Per query first, then macro means. How measures are defined is in measures.py and scores.py, whether a difference means
anything in significance.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from tempfile import SpooledTemporaryFile
from typing import Any

from rag_core.errors import InputError
from rag_core.files import JsonText, json_text
from rag_core.filters.cutoff import is_weak
from rag_core.measure.measures import DEFAULT_MEASURES, Measure
from rag_core.measure.scores import POOL_DEPTH, QueryScores, ScoredReport, score
from rag_core.spec import dump_stages, maker
from rag_core.stage import Pipeline, Stage, counterfactuals_in, flatten
from rag_core.types import RANKS, Candidates, Case, Counterfactual, Drop, Hit


@dataclass
class _Node:
    """A stage after a path of stages; `ends` are the pipelines that stop here."""

    stage: Stage | None
    ends: list[int] = field(default_factory=list)
    next: list[_Node] = field(default_factory=list)

    def after(self, stage: Stage) -> _Node:
        """The node of a stage behind this one; made where there is none."""
        for node in self.next:
            if node.stage is not None and same_step(node.stage, stage):
                return node
        self.next.append(_Node(stage))
        return self.next[-1]


@dataclass(frozen=True)
class Tree:
    """Several pipelines with their shared beginnings; `lists` runs them all on one list."""

    root: _Node
    count: int

    def lists(self, start: Candidates) -> list[tuple[Candidates, ...]]:
        """The list as it came and after each stage, pipeline by pipeline; every shared step runs once."""
        made: list[tuple[Candidates, ...]] = [(start,)] * self.count
        waiting: list[tuple[_Node, tuple[Candidates, ...]]] = [(self.root, (start,))]
        while waiting:
            node, before = waiting.pop()
            after = before if node.stage is None else (*before, node.stage(before[-1]))
            for pipeline in node.ends:
                made[pipeline] = after
            waiting += [(child, after) for child in reversed(node.next)]
        return made


def tree_of(pipelines: Sequence[Stage]) -> Tree:
    """The tree of these pipelines."""
    root = _Node(None)
    for number, pipeline in enumerate(pipelines):
        node = root
        for stage in flatten(pipeline):
            node = node.after(stage)
        node.ends.append(number)
    return Tree(root, len(pipelines))


def same_step(one: Stage, other: Stage) -> bool:
    """Whether two stages do the same to every list: equal settings, and identical handles (index, judge, look-up)."""
    if type(one) is not type(other) or one != other:
        return False
    handles = [f.name for f in fields(one) if not f.compare]
    return all(getattr(one, name) is getattr(other, name) for name in handles)


@dataclass(frozen=True)
class Outcome:
    """One query through one pipeline: the list as it came and after every stage, and the scores."""

    case: Case
    pipeline: Pipeline
    lists: tuple[Candidates, ...]
    scores: QueryScores

    @property
    def start(self) -> Candidates:
        """What went in."""
        return self.lists[0]

    @property
    def result(self) -> Candidates:
        """What came out, with its trace."""
        return self.lists[-1]

    @cached_property
    def counterfactuals(self) -> Mapping[tuple[str, str], tuple[Counterfactual, ...]]:
        """What would have kept each dropped hit, keyed by Hit.key; computed when first asked for."""
        return counterfactuals_in(flatten(self.pipeline), self.lists)

    def to_json(self) -> dict[str, Any]:
        """Its figures, every candidate once (kept or dropped), and what the stages said; None is an unscored value."""
        result, scores, grades = self.result, self.scores, self.case.grades
        kept = {hit.chunk.id for hit in result.hits}  # a chunk that was dropped and came in again counts as kept
        return {
            "id": self.case.query.id,
            "query": self.case.query.text,
            "metric": str(result.metric),
            **scores.values,
            **{f"{name}_low": value for name, value in scores.low.items()},
            **{f"{name}_high": value for name, value in scores.high.items()},
            "scored": scores.scored,
            "judged": scores.judged,
            "relevant_total": scores.relevant_total,
            "relevant_total_given": self.case.relevant_total is not None,
            "kept": [
                {**hit_json(hit, grades.get(hit.chunk.id)), **({"weak": True} if is_weak(hit, result.metric) else {})}
                for hit in result.hits
            ],
            "dropped": [drop_json(drop, self) for drop in result.drops if drop.hit.chunk.id not in kept],
            "warnings": [
                {"id": notice.chunk_id or None, "stage": notice.stage, "text": notice.text} for notice in result.notices
            ],
            "fallbacks": [{"stage": fallback.stage, "reason": fallback.reason} for fallback in result.fallbacks],
            "stages": [step_json(step) for step in result.steps],
        }

    def json_text(self) -> str:
        """`to_json` as text."""
        return json_text(self.to_json())

    def to_text(self) -> str:
        """One line with the figures, and every warning."""
        result = self.result
        seen = len({hit.chunk.id for hit in (*result.hits, *(drop.hit for drop in result.drops))})
        figures = "  ".join(f"{name} {shown(self.scores.values[name])}" for name in ("SetP", "SetR", "SetF"))
        line = f"  {self.case.query.id:<20.40} kept {self.scores.kept:>3} of {seen:>3}  {figures}"
        return "\n".join([line, *(f"    warning: {notice.text}" for notice in result.notices)])

    def trace(self) -> str:
        """The trace for people: stages, the cut with its distances and gaps, what stays and why not."""
        result = self.result
        text = [f"query {result.query.id}: {result.query.text}"]
        for step in result.steps:
            cls = maker(step)
            text.append(f"  {step.stage}: {step.entered} in, {step.left} out")
            if (line := cls.said(step)) != Stage.said(step):
                text.append(f"    {line}")
            text.extend(f"    {line}" for line in cls.details(step))
        text.extend(f"  kept     {_placed(hit)}" for hit in result.hits)
        text.extend(f"  dropped  {_placed(drop.hit)}  {drop.stage}: {drop.reason.text}" for drop in result.drops)
        text.extend(f"  warning  {notice.stage} {notice.chunk_id}: {notice.text}" for notice in result.notices)
        return "\n".join(text)


@dataclass(frozen=True)
class PipelineReport(ScoredReport):
    """One pipeline over all cases, in their order, with every trace. For very many queries: ReportFile."""

    name: str
    pipeline: Pipeline
    outcomes: tuple[Outcome, ...]
    min_grade: int

    @property
    def query_scores(self) -> list[QueryScores]:
        """The figures of every query."""
        return [outcome.scores for outcome in self.outcomes]

    @property
    def families(self) -> list[str]:
        """The family of every query."""
        return [outcome.case.query.family for outcome in self.outcomes]


class ReportFile(ScoredReport):
    """One pipeline over all cases as it is printed: question by question, so that no trace is held.

    What is said of a question goes to a file without a name as soon as it is there; in memory stay the figures.
    """

    def __init__(self, name: str, pipeline: Pipeline, min_grade: int, say: Callable[[Outcome], str]) -> None:
        """`say` is what is written of a question: `Outcome.json_text`, `Outcome.to_text` or `Outcome.trace`."""
        self.name, self.pipeline, self.min_grade, self.say = name, pipeline, min_grade, say
        self._scores: list[QueryScores] = []
        self._families: list[str] = []
        self._total_is_labelled = False  # of some question: the labelled relevant chunks are taken as all there are
        self._lengths: list[int] = []  # in bytes, of what was said of each question
        self._said = SpooledTemporaryFile(_SPOOLED)  # noqa: SIM115  its end is that of the report

    def add(self, outcome: Outcome) -> None:
        """The next question."""
        case = outcome.case
        self.add_said(self.say(outcome), outcome.scores, case.relevant_total is not None, case.query.family)

    def add_said(self, text: str, scores: QueryScores, total_known: bool, family: str) -> None:
        """The next question as a worker said it."""
        self._scores.append(scores)
        self._families.append(family)
        self._total_is_labelled |= scores.scored and not total_known
        self._lengths.append(self._said.write(text.encode("utf-8", "replace")))

    @property
    def query_scores(self) -> list[QueryScores]:
        """The figures of every question so far."""
        return self._scores

    @property
    def families(self) -> list[str]:
        """The family of every question so far."""
        return self._families

    def lines(self) -> Iterator[str]:
        """What was said, question by question."""
        self._said.seek(0)
        for length in self._lengths:
            yield self._said.read(length).decode()

    def to_json(self) -> dict[str, Any]:
        """Spec with all settings, means, and what `Outcome.to_json` says of every question, read as it is written."""
        said = (JsonText(line) for line in self.lines())
        spec, means = dump_stages(self.pipeline), self.summary.to_json()
        return {"name": self.name, "spec": spec, "means": means, "queries": said}

    def to_text(self) -> str:
        """A line a query, then the macro means with their counts."""
        means = self.summary
        figures = "  ".join(f"{name} {shown(value)}" for name, value in means.means.items())
        judged = "-" if means.judged is None else f"{means.judged:.0%}"
        lines = [
            f"{self.name} · relevant means grade ≥ {self.min_grade}",
            *self.lines(),
            f"  macro mean over {means.queries_scored} of {means.queries_total} queries: {figures}",
            f"  judged {judged} of kept chunks · empty {means.queries_empty} · fallback {means.queries_fallback}",
        ]
        if not means.queries_scored:
            lines.append(f"  no question has a chunk of grade ≥ {self.min_grade} yet: label some, or `labels import`")
        if self._total_is_labelled:
            lines.append("  recall: the labelled relevant chunks are taken as all there are")
        return "\n".join(lines)


_SPOOLED = 4_000_000  # bytes of a report that stay in memory: a usual one never touches the disk


def start_of(case: Case) -> Candidates:
    """What a pipeline gets for a case: its recorded list, or its bare query."""
    return case.candidates or Candidates(case.query)


def kept_ids(result: Candidates) -> list[str]:
    """The ids of the kept chunks in final order, each once: a chunk that came twice counts where it came first."""
    return list(dict.fromkeys(hit.chunk.id for hit in result.hits))


def run_case(
    case: Case, pipeline: Pipeline, min_grade: int = 1, measures: Sequence[Measure] = DEFAULT_MEASURES
) -> Outcome:
    """One case through one pipeline, scored against the case's labels."""
    (lists,) = tree_of([pipeline]).lists(start_of(case))
    return _outcome(case, pipeline, lists, min_grade, measures)


def _outcome(
    case: Case, pipeline: Pipeline, lists: tuple[Candidates, ...], min_grade: int, measures: Sequence[Measure]
) -> Outcome:
    kept, fallback = kept_ids(lists[-1]), bool(lists[-1].fallbacks)
    listed = next((one.hits for one in lists if one.hits), ())
    pool = [hit.chunk.id for hit in listed[:POOL_DEPTH]]
    scores = score(kept, case.grades, case.relevant_total, min_grade, measures, pool=pool, fallback=fallback)
    return Outcome(case, pipeline, lists, scores)


def stream(
    cases: Iterable[Case],
    pipelines: Sequence[Pipeline],
    min_grade: int = 1,
    measures: Sequence[Measure] = DEFAULT_MEASURES,
) -> Iterator[tuple[Outcome, ...]]:
    """Case by case the outcome of every pipeline; stages that pipelines share in front run once per query.

    Nothing of a case is held once the next is asked for. Errors of a stage name the query they met.
    """
    tree = tree_of(pipelines)
    for case in cases:
        try:
            made = tree.lists(start_of(case))
            yield tuple(
                _outcome(case, pipeline, lists, min_grade, measures)
                for pipeline, lists in zip(pipelines, made, strict=True)
            )
        except InputError as error:
            raise type(error)(f"query {case.query.id}: {error}") from None


def run(
    cases: Iterable[Case],
    pipeline: Pipeline,
    min_grade: int = 1,
    measures: Sequence[Measure] = DEFAULT_MEASURES,
    name: str = "",
) -> PipelineReport:
    """One pipeline over all cases. Errors of a stage name the query they met."""
    outcomes = tuple(outcome for (outcome,) in stream(cases, [pipeline], min_grade, measures))
    return PipelineReport(name or pipeline.called, pipeline, outcomes, min_grade)


def run_all(
    cases: Sequence[Case],
    pipelines: Sequence[Pipeline],
    min_grade: int = 1,
    measures: Sequence[Measure] = DEFAULT_MEASURES,
) -> list[PipelineReport]:
    """Every pipeline over the same cases, shared beginnings once; a repeated pipeline name becomes name#2.

    Holds every trace. For very many queries `tally.measure_all` keeps the figures and lets the traces go.
    """
    rows = list(stream(cases, pipelines, min_grade, measures))
    return [
        PipelineReport(name, pipeline, tuple(row[at] for row in rows), min_grade)
        for at, (pipeline, name) in enumerate(zip(pipelines, unique_names(pipelines), strict=True))
    ]


def unique_names(pipelines: Iterable[Pipeline]) -> Iterator[str]:
    """The pipelines' names, those of their stages where they have none; the second of a kind as name#2."""
    return numbered(pipeline.called for pipeline in pipelines)


def numbered(names: Iterable[str]) -> Iterator[str]:
    """The names, the second of a kind as name#2."""
    seen = Counter[str]()
    for name in names:
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name}#{seen[name]}"


def with_labels(cases: Iterable[Case], labels: Mapping[str, Mapping[str, int | None]]) -> list[Case]:
    """The cases with labels laid over their own: a grade replaces, None (unsure) makes a chunk unjudged."""
    overlaid = []
    for case in cases:
        changes = labels.get(case.query.id)
        if changes:
            grades = {**case.grades, **changes}
            case = replace(case, grades={chunk: grade for chunk, grade in grades.items() if grade is not None})
        overlaid.append(case)
    return overlaid


def write_run(report: PipelineReport, escape: Callable[[str], str] = str, tag: str = "") -> str:
    """What a pipeline kept as a TREC run: `query Q0 chunk rank score tag`, for trec_eval, pytrec_eval and ir_measures.

    The score is minus the rank: evaluation tools sort by score and break ties in their own ways, so every score is
    unique. `escape` makes an id one column, as in our qrels; an InputError for one that still has white space. A query
    that kept nothing has no line, as TREC has it.
    """
    name = "_".join((tag or report.name).split()) or "run"
    rows = []
    for outcome in report.outcomes:
        query_id = escape(outcome.case.query.id)
        for rank, chunk_id in enumerate(kept_ids(outcome.result), 1):
            columns = (query_id, "Q0", escape(chunk_id), str(rank), str(-rank), name)
            if any(len(column.split()) != 1 for column in columns):
                raise InputError(f"query {query_id[:80]!r} has an id with white space, expected escaped ids in a run")
            rows.append(" ".join(columns) + "\n")
    return "".join(rows)


def _placed(hit: Hit) -> str:
    """Rank and chunk, and how it came where the source did not bring it."""
    return f"rank {hit.rank:>3}  {hit.chunk.id}" + (f"  ({hit.origin})" if hit.origin else "")


LISTED = ("hops", "brought")
"""Facts that are lists of plain records: what a model said between hops, and what each hop brought."""


def shown(value: float | None) -> str:
    """A measure with three digits, or a dash where it is unscored."""
    return "  -  " if value is None else f"{value:.3f}"


def hit_json(hit: Hit, grade: int | None) -> dict[str, Any]:
    """A hit: identity, rank in the list as it came, scores and label."""
    origin = {"origin": hit.origin} if hit.origin else {}
    notes = {stage: note for stage, note in hit.notes.items() if isinstance(note, str)}
    return {
        "id": hit.chunk.id,
        "title": hit.chunk.title,
        "rank": hit.rank,
        "distance": hit.distance,
        **hit.scores,
        **({RANKS: dict(hit.notes[RANKS])} if RANKS in hit.notes else {}),
        "relevant": grade,
        **origin,
        **({"notes": notes} if notes else {}),
    }


def drop_json(drop: Drop, outcome: Outcome) -> dict[str, Any]:
    """A dropped hit with the stage, the reason and what would have kept it."""
    return {
        **hit_json(drop.hit, outcome.case.grades.get(drop.hit.chunk.id)),
        "stage": drop.stage,
        "reason": drop.reason.text,
        "value": drop.reason.value,
        "threshold": drop.reason.threshold,
        "would_keep": [
            {"parameter": found.parameter, "value": found.value, "text": found.text}
            for found in outcome.counterfactuals.get(drop.hit.key, ())
        ],
    }


def step_json(step: Any) -> dict[str, Any]:
    """One stage's step: counts, time and the facts that are plain values."""
    facts: dict[str, Any] = {
        name: value for name, value in step.facts.items() if isinstance(value, str | int | float | bool | type(None))
    }
    facts |= {name: list(step.facts[name]) for name in LISTED if name in step.facts}
    return {"stage": step.stage, "in": step.entered, "out": step.left, "milliseconds": step.milliseconds, **facts}
