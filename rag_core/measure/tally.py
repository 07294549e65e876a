"""One query through one pipeline without its trace: the figures, the kept ids and what each stage took out.

What comparing, attributing and saving need of very many queries, so that a run over thousands of long lists stays
small; the trace of one query is had again by running that query. Comparing is in compare.py, the sums over queries of
what stages dropped in attribution.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from rag_core.measure.economy import Economy, economy_of
from rag_core.measure.experiment import Outcome, kept_ids, numbered, start_of, stream, unique_names
from rag_core.measure.measures import DEFAULT_MEASURES, Measure
from rag_core.measure.scores import POOL_DEPTH, QueryScores, ScoredReport, score
from rag_core.stage import Pipeline, flatten
from rag_core.types import EMPTY, Candidates, Case, Drop, Grades, Hit

Progress = Callable[[int], None]
"""Called with how many queries are done; one that raises ends the run."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """How many chunks one stage took out for good, by label."""

    relevant: int = 0
    irrelevant: int = 0
    unjudged: int = 0


@dataclass(frozen=True, slots=True)
class QueryTally:
    """One query of a pipeline's run. A chunk that was dropped and came in again counts as kept."""

    query_id: str
    query: str
    tags: tuple[str, ...]
    grades: Grades
    relevant_total: int | None  # as the case gives it
    scores: QueryScores
    kept: tuple[str, ...]  # ids in final order
    candidates: int  # different chunks that any stage saw
    retrieved: int  # relevant ones among them
    dropped: Mapping[str, Dropped]  # stage → what it took out, where it was traced; a second of a name is name#2
    economy: Economy
    family: str = ""  # what the query names as its family, else its id


@dataclass(frozen=True)
class PipelineTally(ScoredReport):
    """One pipeline over all cases, in their order, without traces."""

    name: str
    pipeline: Pipeline
    queries: tuple[QueryTally, ...]
    min_grade: int

    @property
    def query_scores(self) -> list[QueryScores]:
        """The figures of every query."""
        return [query.scores for query in self.queries]

    @property
    def families(self) -> list[str]:
        """The family of every query."""
        return [query.family or query.query_id for query in self.queries]

    def to_frame(self) -> Any:
        """A pandas frame, a row a query: its text, how many it keeps, every measure (NaN where unscored)."""
        import pandas as pd  # only who is in a notebook has it, and half a second for it

        rows = [
            {"query_id": one.query_id, "query": one.query, "pipeline": self.name, "kept": len(one.kept)}
            | dict(one.scores.values)
            for one in self.queries
        ]
        return pd.DataFrame(rows).set_index("query_id") if rows else pd.DataFrame()

    def _repr_html_(self) -> str:
        """What a notebook shows: the frame, texts escaped by pandas."""
        return str(self.to_frame().to_html(max_rows=20, notebook=True, float_format="{:.3f}".format))

    def plot(self, measure: str = "SetF") -> Any:
        """A Plotly figure: the measure of every query, best first, and its mean over the scored ones."""
        import plotly.graph_objects as go  # as above

        frame = self.to_frame().dropna(subset=[measure]).sort_values(measure, ascending=False, kind="stable")
        figure = go.Figure(go.Bar(x=frame.index, y=frame[measure], hovertext=frame["query"], name=self.name))
        mean = self.summary.means.get(measure)
        if mean is not None:
            figure.add_hline(y=mean, annotation_text=f"mean {mean:.3f} of {len(frame)}")
        return figure.update_layout(
            title=f"{self.name}: {measure} by question", yaxis_title=measure, yaxis_range=[0, 1]
        )

    @property
    def unjudged(self) -> float | None:
        """Share of all kept chunks without a label; None where nothing was kept."""
        judged = self.summary.judged
        return None if judged is None else 1 - judged


def measure_all(
    cases: Iterable[Case],
    pipelines: Sequence[Pipeline],
    min_grade: int = 1,
    measures: Sequence[Measure] = DEFAULT_MEASURES,
    progress: Progress | None = None,
) -> list[PipelineTally]:
    """Every pipeline over the same cases, shared beginnings once, one query at a time; no trace is held."""
    rows: list[list[QueryTally]] = [[] for _ in pipelines]
    for done, outcomes in enumerate(stream(cases, pipelines, min_grade, measures), 1):
        for row, outcome in zip(rows, outcomes, strict=True):
            row.append(tally(outcome, min_grade))
        if progress is not None:
            progress(done)
    return [
        PipelineTally(name, pipeline, tuple(row), min_grade)
        for name, pipeline, row in zip(unique_names(pipelines), pipelines, rows, strict=True)
    ]


def tally(outcome: Outcome, min_grade: int) -> QueryTally:
    """What is counted of one outcome."""
    case, kept, fate = outcome.case, kept_ids(outcome.result), lost_to(outcome)
    economy = economy_of(outcome.result.hits, case.grades, min_grade)
    dropped = _dropped(case.grades, fate, min_grade)
    return _counted(case, outcome.scores, kept, {*kept, *fate}, min_grade, economy, dropped)


def tally_kept(
    case: Case, start: Candidates, hits: Sequence[Hit], min_grade: int, measures: Sequence[Measure]
) -> QueryTally:
    """What is counted where it is only known which hits of a list are kept, in final order: nothing by stage."""
    kept = list(dict.fromkeys(hit.chunk.id for hit in hits))
    seen = {hit.chunk.id for hit in start.hits} | {drop.hit.chunk.id for drop in start.drops}
    pool, fallback = [hit.chunk.id for hit in start_of(case).hits[:POOL_DEPTH]], bool(start.fallbacks)
    scores = score(kept, case.grades, case.relevant_total, min_grade, measures, pool=pool, fallback=fallback)
    return _counted(case, scores, kept, seen, min_grade, economy_of(hits, case.grades, min_grade), EMPTY)


def _counted(
    case: Case,
    scores: QueryScores,
    kept: Sequence[str],
    seen: Set[str],
    min_grade: int,
    economy: Economy,
    dropped: Mapping[str, Dropped],
) -> QueryTally:
    query = case.query
    retrieved = sum(grade >= min_grade and chunk in seen for chunk, grade in case.grades.items())
    about = (query.id, query.text, query.tags, case.grades, case.relevant_total)
    return QueryTally(*about, scores, tuple(kept), len(seen), retrieved, dropped, economy, query.family)


def lost_to(outcome: Outcome) -> dict[str, str]:
    """Chunk id → the stage that took it out for good; kept chunks are not in it.

    Of a chunk that was dropped several times (it came by several ways) the last drop counts: that far it got.
    """
    fate = {drop.hit.chunk.id: label for label, drop in labelled_drops(outcome.result)}
    for hit in outcome.result.hits:
        fate.pop(hit.chunk.id, None)
    return fate


def labelled_drops(result: Candidates) -> Iterable[tuple[str, Drop]]:
    """Every drop with the label of its stage; where a stage's name stands twice the second is name#2.

    Drops stand in the order of the steps. Steps of one name are told apart by their counts: a filter drops what entered
    and did not leave.
    """
    names = [step.stage for step in result.steps]
    if len(set(names)) == len(names):
        return [(drop.stage, drop) for drop in result.drops]
    waiting, labelled = list(reversed(result.drops)), []
    for label, step in zip(numbered(names), result.steps, strict=True):
        left = len(waiting) if names.count(step.stage) == 1 else step.entered - step.left
        while waiting and left > 0 and waiting[-1].stage == step.stage:
            labelled.append((label, waiting.pop()))
            left -= 1
    return labelled + [(drop.stage, drop) for drop in reversed(waiting)]


def labels_of(pipeline: Pipeline) -> list[str]:
    """The labels of a pipeline's stages, in order."""
    return list(numbered(stage.name for stage in flatten(pipeline)))


def _dropped(grades: Grades, fate: Mapping[str, str], min_grade: int) -> dict[str, Dropped]:
    """By stage; most chunks of a long list have no label, so all are counted at once and the labelled ones moved."""
    unjudged = Counter(fate.values())
    relevant, irrelevant = Counter[str](), Counter[str]()
    for chunk, grade in grades.items():
        stage = fate.get(chunk)
        if stage is not None:
            unjudged[stage] -= 1
            (relevant if grade >= min_grade else irrelevant)[stage] += 1
    return {stage: Dropped(relevant[stage], irrelevant[stage], count) for stage, count in unjudged.items()}
