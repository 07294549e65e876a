"""What a reranker gains at which depth, on dev questions: read from stored scores or the lists' own, without a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rag_core.filters.rerank import Rerank
from rag_core.llm.endpoint import endpoint_of, endpoints, named_endpoint, price_of
from rag_core.llm.rerank import RerankJudge, ScoreStore, StoredReranker, prompts_of
from rag_core.llm.run import Calls
from rag_core.measure.experiment import start_of
from rag_core.measure.measures import parse_measure
from rag_core.measure.tally import measure_all
from rag_core.project.session import Session, front_of
from rag_core.resources import with_handles
from rag_core.stage import Pipeline
from rag_core.tune.plane import fixed_k
from rag_core.tune.tune import mean_of
from rag_core.types import Case

DEPTHS = (10, 25, 50, 100)
RANKED = "nDCG@10"


@dataclass(frozen=True, slots=True)
class DepthGain:
    """The lists reranked to a depth (0: as they come): the best fixed k over them, its mean SetF, and their nDCG@10."""

    depth: int
    fixed_k: int
    SetF: float  # the measure's own name
    ndcg: float
    lacking: int = 0  # questions without every score: they count in their own order


@dataclass(frozen=True, slots=True)
class RerankGains:
    """A reranker's gain by depth, over so many dev questions; `rows` begin with the lists as they come."""

    reranker: str
    questions: int
    rows: tuple[DepthGain, ...]

    @property
    def best(self) -> DepthGain | None:
        """The depth with the best SetF among those whose every score is there; None without one."""
        whole = [row for row in self.rows if row.depth and not row.lacking]
        return max(whole, key=lambda row: (row.SetF, -row.depth), default=None)

    @property
    def gain(self) -> float:
        """What the best depth adds to the best fixed k."""
        return self.best.SetF - self.rows[0].SetF if self.best else 0.0

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"reranker": self.reranker, "questions": self.questions, "rows": [asdict(row) for row in self.rows]}

    def to_text(self) -> str:
        """The table, and the depth that pays."""
        lines = [f"{self.reranker} on {self.questions} dev questions", "  depth  best k   SetF  nDCG@10"]
        for row in self.rows:
            lacks = f"  {row.lacking} questions lack scores" if row.lacking else ""
            lines.append(f"  {row.depth or 'none':>5}  {row.fixed_k:>6}  {row.SetF:.3f}  {row.ndcg:>7.3f}{lacks}")
        if self.best is None:
            return "\n".join([*lines, "no depth has every score yet"])
        return "\n".join([*lines, f"best depth {self.best.depth}: SetF {self.gain:+.3f}, seen on these very questions"])


def calls_for(session: Session, pipeline: Pipeline, endpoint: str, depth: int, cases: Sequence[Case]) -> Calls:
    """What a run asks to have every score of the first `depth` of these questions' lists."""
    settings = named_endpoint(session.workspace, endpoint)
    assert settings is not None  # a name was given
    stored = StoredReranker(endpoint_of(settings), ScoreStore(session.workspace))
    judge = RerankJudge(stored, price_of(settings))
    asked = [
        prompt
        for case in session.capture(front_of(pipeline), cases)
        for prompt in prompts_of(case.query, [hit.chunk for hit in start_of(case).hits[:depth]])
    ]
    return [(judge, asked)]


def gains_of(
    session: Session, pipeline: Pipeline, endpoint: str = "", recorded: str = "rerank", depths: Sequence[int] = DEPTHS
) -> RerankGains:
    """The gain by depth on the project's labelled dev questions, of an endpoint's stored scores or of the lists'."""
    least = session.min_grade
    cases = [case for case in session.capture(front_of(pipeline), session.dev) if case.has_relevant(least)]
    rows = [_row(cases, 0, Pipeline(), least)] if cases else []
    for depth in depths if cases else ():
        stage = Rerank(depth=depth, endpoint=endpoint, recorded=recorded)
        rows.append(_row(cases, depth, with_handles(Pipeline((stage,)), session.workspace), least))
    return RerankGains(endpoint or f"the score {recorded!r} of the lists", len(cases), tuple(rows))


def _row(cases: Sequence[Case], depth: int, pipeline: Pipeline, least: int) -> DepthGain:
    _, k, value = fixed_k(cases, pipeline.stages, "SetF", None, least)
    (ranked,) = measure_all(cases, [pipeline], least, (parse_measure(RANKED),))
    lacking = sum(bool(pipeline(start_of(case)).fallbacks) for case in cases)
    return DepthGain(depth, k, value, mean_of(ranked.values(RANKED)), lacking)


def stored_gains(session: Session, pipeline: Pipeline) -> list[RerankGains]:
    """The gains of every reranker that may have scores of these lists: the endpoints, and the lists' own."""
    store = ScoreStore(session.workspace)
    names = list(endpoints(session.workspace)) if store.path.is_file() else []
    cases = session.capture(front_of(pipeline), session.dev)
    carried = any("rerank" in hit.scores for case in cases for hit in start_of(case).hits[:1])
    return [gains_of(session, pipeline, name) for name in [*names, *([""] if carried else [])]]
