"""Have a model grade (query, chunk) pairs, once or several times: within a budget, stopped and resumed.

What it says is a proposal; storing it as labels of a model and its agreement with people are the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

from rag_core.filters.llm.prompts import Prompt
from rag_core.filters.llm.wording import Variant
from rag_core.judged.asking import Ran
from rag_core.judged.bench import Bench
from rag_core.labelling.grading import Graded, grading_prompt, read_grade
from rag_core.llm import AnswerStore, Progress, RecordedJudge, RunLimits, answer_all
from rag_core.llm import preview as look_ahead
from rag_core.llm.simulated import SimulatedGrader
from rag_core.types import Chunk, Query

Pair = tuple[Query, Chunk]
NO_ANSWER = "was not asked"


@dataclass(frozen=True)
class GradeProposal:
    """What a model says of a pair in each run; None where it gave no grade, and then why in the first run."""

    query: Query
    chunk: Chunk
    runs: tuple[Graded | None, ...]
    failure: str = ""

    @property
    def first(self) -> Graded | None:
        """What counts: the first run."""
        return self.runs[0] if self.runs else None


def pairs_of(
    bench: Bench, depth: int, wanted: Callable[[Query, Chunk], bool] = lambda query, chunk: True
) -> list[Pair]:
    """The first `depth` candidates of every query, those that are wanted."""
    return [
        (case.query, hit.chunk)
        for case in bench.cases
        for hit in (case.candidates.hits[:depth] if case.candidates else ())
        if wanted(case.query, hit.chunk)
    ]


def simulated_grader(bench: Bench, error_rate: float, flip_rate: float, seed: int) -> RecordedJudge:
    """The simulated grader with the bench's labels and a memory of its own."""
    grader = SimulatedGrader(bench.labels, error_rate, flip_rate, seed)
    return RecordedJudge(AnswerStore(Path(":memory:")), grader, grader.name)


def prompts_of(pairs: Sequence[Pair], words: Variant, guidelines: str = "") -> list[Prompt]:
    """One prompt per pair."""
    return [grading_prompt(query, chunk, words, guidelines) for query, chunk in pairs]


def preview(prompts: Sequence[Prompt], judge: RecordedJudge, times: int = 1) -> dict[str, Any]:
    """Calls, tokens and cost of what is not stored yet, over all runs; an unknown price is None."""
    looks = [look_ahead(prompts, one) for one in _runs(judge, times)]
    names = ("prompts", "stored", "calls", "prompt_tokens", "completion_tokens")
    found: dict[str, Any] = {name: sum(getattr(look, name) for look in looks) for name in names}
    costs = [look.cost for look in looks]
    return {**found, "cost": None if None in costs else sum(cost or 0.0 for cost in costs), "estimated": True}


def grade_all(
    prompts: Sequence[Prompt],
    judge: RecordedJudge,
    limits: RunLimits,
    times: int = 1,
    tell: Callable[[Progress], None] | None = None,
    cancel: Event | None = None,
) -> Ran:
    """Have every prompt answered `times` times; stored answers are not asked again, so a stopped run goes on."""
    done: list[dict[str, Any]] = []
    left = limits
    for number, one in enumerate(_runs(judge, times), 1):
        ran = answer_all(prompts, one, left, on_progress=tell, cancel=cancel or Event())
        done.append({"run": number, **asdict(ran), "done": ran.done})
        if ran.stopped:
            return Ran(tuple(done), ran.stopped)
        budget = None if left.budget is None else left.budget - (ran.spent or 0.0)
        calls = None if left.max_calls is None else left.max_calls - ran.asked
        if number < times and ((budget is not None and budget <= 0) or (calls is not None and calls <= 0)):
            return Ran(tuple(done), "the limits of the run are reached")
        left = replace(left, budget=budget or left.budget, max_calls=calls or left.max_calls)
    return Ran(tuple(done), "")


def proposals(
    pairs: Sequence[Pair], prompts: Sequence[Prompt], judge: RecordedJudge, times: int = 1
) -> list[GradeProposal]:
    """What is stored of the answers, read; nothing is asked."""
    rows = []
    for one in _runs(judge, times):
        replay = RecordedJudge(one.store, None, one.model)
        rows.append(replay.ask(prompts, seconds=1, concurrency=1, model="", cache=True))
    found = []
    for at, (query, chunk) in enumerate(pairs):
        graded = tuple(read_grade(row[at].text) for row in rows)
        failure = "" if graded[0] else NO_ANSWER if rows[0][at].text is None else "the answer holds no grade of 0 to 3"
        found.append(GradeProposal(query, chunk, graded, failure))
    return found


def _runs(judge: RecordedJudge, times: int) -> list[RecordedJudge]:
    """The judge as often as it is to answer: the first with the usual store, the others under names of their own."""
    found = [judge]
    for number in range(2, times + 1):
        behind = judge.behind
        if isinstance(behind, SimulatedGrader):
            behind = replace(behind, run=number)
        found.append(RecordedJudge(judge.store, behind, f"{judge.model}, run {number}"))
    return found
