"""A study of one judge on a project's own questions: what it removes and loses, what it costs, and whether it says the
same again; with intervals, from stored answers, so that it can be replayed by whoever has them.

Shares are sums over all questions (a long list weighs more than a short one); their intervals are those of a ratio of
means, linearised (Cochran 1977, 6.4), over families of questions. It describes dev questions and is no verdict.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from rag_core.files import write_whole
from rag_core.filters.cutoff import TopK
from rag_core.filters.llm.deciding import CAUSES
from rag_core.judged.entrants import Bench, Entrant
from rag_core.judged.trials import Steadiness, figures, floor_warning, irrelevant_kept, losses, steadiness
from rag_core.measure.experiment import run
from rag_core.measure.significance import compare_reports, difference_interval
from rag_core.stage import Pipeline

FOLDER = "studies"


@dataclass(frozen=True, slots=True)
class PooledShare:
    """A share of what all questions together have, with its 95 % interval; None where there is nothing to share."""

    value: float | None
    low: float | None
    high: float | None

    def to_text(self) -> str:
        """In per cent, with the interval where the questions give one."""
        if self.value is None:
            return "–"
        interval = "" if self.low is None or self.high is None else f" [{self.low:.1%}, {self.high:.1%}]"
        return f"{self.value:.1%}{interval}"


def share_of(part: Sequence[float], whole: Sequence[float], families: Sequence[str]) -> PooledShare:
    """Σ part / Σ whole over questions."""
    parts, wholes = np.asarray(part, dtype=float), np.asarray(whole, dtype=float)
    if not wholes.sum():
        return PooledShare(None, None, None)
    value = float(parts.sum() / wholes.sum())
    low, high, _ = difference_interval((parts - value * wholes) / wholes.mean(), families)
    if low is None or high is None:
        return PooledShare(value, None, None)
    least = 0.0 if parts.min() >= 0 else -np.inf  # expansion may bring more that is irrelevant than was removed
    return PooledShare(value, max(least, value + low), min(1.0, value + high))


@dataclass(frozen=True)
class JudgeStudy:
    """What a judge does to a project's questions; `produced_by` says what it is: a model, a replay, simulated."""

    at: str
    project: str
    produced_by: str
    asked_at: str  # address and parameters; '' of a simulated judge
    settings: Mapping[str, Any]
    questions: int
    irrelevant_removed: PooledShare  # of what the nearest max_chunks hold
    relevant_kept: PooledShare  # of what search found
    relevant_lost: Mapping[str, PooledShare]  # by step of the filter
    gain: Mapping[str, Any]  # SetF against the nearest max_chunks, paired
    figures: Mapping[str, Any]
    cost_per_question: float | None
    removed_by_run: tuple[float | None, ...]
    steadiness: Steadiness
    warning: str

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "steadiness": self.steadiness.to_json()}

    def to_text(self) -> str:
        """A line a fact, the relevant chunks lost by step among them."""
        row, gain = self.figures, self.gain
        lost = ", ".join(f"{cause} {share.to_text()}" for cause, share in self.relevant_lost.items() if share.value)
        interval = "" if gain["ci"] is None else f" [{gain['ci'][0]:+.3f}, {gain['ci'][1]:+.3f}]"
        cost = "unknown" if self.cost_per_question is None else f"{self.cost_per_question:.6f} a question"
        runs = ", ".join("–" if value is None else f"{value:.1%}" for value in self.removed_by_run)
        latency = "–" if row["added_ms_p50"] is None else f"{row['added_ms_p50']:,.0f} / {row['added_ms_p95']:,.0f} ms"
        lines = [
            f"{self.produced_by} on {self.questions} questions of {self.project}, {self.at}",
            f"  irrelevant removed   {self.irrelevant_removed.to_text()}; in each run {runs}",
            f"  relevant kept        {self.relevant_kept.to_text()} of {row['relevant']['listed']} that search found",
            f"  relevant lost to     {lost or 'nothing'}",
            f"  F1 against no model  {gain['delta']:+.3f}{interval}" if gain["delta"] is not None else "",
            f"  cost                 {cost}; {row['prompts']:,} calls, {row['prompt_tokens']:,} + "
            f"{row['completion_tokens']:,} tokens",
            f"  time added           {latency} (median / 95 %)",
            f"  failed calls         {row['prompts_failed']:,} of {row['prompts']:,}",
            f"  again                {self.steadiness.to_text().split(': ', 1)[1]}",
            self.warning,
        ]
        return "\n".join(line for line in lines if line)


def study(bench: Bench, entrant: Entrant, times: int) -> JudgeStudy:
    """The study on stored answers of so many runs (Entrant.runs); asks nobody."""
    stage = entrant.stage
    baseline = run(bench.cases, Pipeline((TopK(k=stage.max_chunks),)), bench.min_grade, name="rerank off")
    reports = []
    for one in entrant.runs(times):
        usual = Entrant(replace(one.stage, check_order=stage.check_order), one.judge, one.label)
        reports.append(run(bench.cases, Pipeline((usual.replay(bench),)), bench.min_grade, name=one.label))
    first, families = reports[0], reports[0].families
    before = irrelevant_kept(baseline)
    removed = []
    for report in reports:  # net of what expansion brings
        fewer = [was - now for was, now in zip(before, irrelevant_kept(report), strict=True)]
        removed.append(share_of(fewer, before, families))
    each = [losses(replace(first, outcomes=(outcome,))) for outcome in first.outcomes]
    listed = [row["listed"] for row in each]
    row = figures(first, baseline, stage.concurrency)
    (gain,) = compare_reports([baseline, first])
    return JudgeStudy(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        project=bench.name,
        produced_by=entrant.judge.name,
        asked_at=entrant.judge.place,
        settings=stage.settings(),
        questions=len(bench.cases),
        irrelevant_removed=removed[0],
        relevant_kept=share_of([row["kept"] for row in each], listed, families),
        relevant_lost={cause: share_of([row["lost"][cause] for row in each], listed, families) for cause in CAUSES},
        gain=gain.to_json(),
        figures=row,
        cost_per_question=None if row["cost"] is None else row["cost"] / max(1, len(bench.cases)),
        removed_by_run=tuple(share.value for share in removed),
        steadiness=steadiness(bench, entrant, times),
        warning=floor_warning({**row, "name": entrant.judge.name}, stage.min_relevance_threshold),
    )


def keep(workspace: Path, study: JudgeStudy) -> Path:
    """Write a study into the workspace's folder studies, in a file named by its time and content."""
    text = json.dumps(study.to_json(), ensure_ascii=False, indent=1).encode("utf-8", "replace")
    path = workspace / FOLDER / f"{study.at.replace(':', '')[:17]}-{hashlib.sha256(text).hexdigest()[:8]}.json"
    write_whole(path, text)
    return path
