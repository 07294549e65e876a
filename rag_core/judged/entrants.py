"""Who competes: a filter's settings together with who answers it, prompt variants times judges.

Every judge has a memory: an endpoint's answers are kept in the workspace, a simulated judge's for the process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rag_core.errors import InputError, SurroundingsError
from rag_core.files import parse_json
from rag_core.filters.llm.prompts import variant_names
from rag_core.filters.llm.stage import LLMFilter
from rag_core.llm.answer import Price
from rag_core.llm.endpoint import NO_ENDPOINT, named_endpoint
from rag_core.llm.judge import RecordedJudge, judge_of
from rag_core.llm.prompt import Prompt
from rag_core.llm.run import Calls, Progress, RunLimits, answer_all
from rag_core.llm.simulated import Simulated, SimulatedJudge
from rag_core.llm.store import AnswerStore
from rag_core.spec import make_stage
from rag_core.types import Candidates, Case, Chunk

SIMULATED = "simulated"


@dataclass(frozen=True)
class Bench:
    """Labelled queries with their candidates, the chunks that references may bring, and what counts as relevant."""

    name: str
    cases: tuple[Case, ...]
    chunks: Mapping[str, Chunk]
    min_grade: int

    @property
    def labels(self) -> dict[str, Mapping[str, int]]:
        """The grades by query."""
        return {case.query.id: case.grades for case in self.cases}


@dataclass(frozen=True)
class Entrant:
    """One way to judge: the filter's settings and who answers."""

    stage: LLMFilter
    judge: RecordedJudge
    label: str

    @property
    def simulated(self) -> bool:
        """Whether no model is asked."""
        return isinstance(self.judge.behind, Simulated)

    def prompts(self, bench: Bench) -> list[Prompt]:
        """Every call of a run over the bench."""
        return [one for case in bench.cases for one in self.stage.prompts(case.candidates or Candidates(case.query))]

    def replay(self, bench: Bench) -> LLMFilter:
        """The filter on stored answers alone: what was not answered is a fallback, counted."""
        return replace(self.stage, judge=self.judge.replay(), chunks=bench.chunks, cache=True)

    def runs(self, times: int) -> list[Entrant]:
        """The entrant as often as it is to answer, in reverse order too where several candidates share a prompt.

        The first has the usual store, each further one answers under a name of its own: a repetition goes on.
        """
        stage = replace(self.stage, check_order=True, model="")
        return [Entrant(stage, self.judge.again(at), f"{self.label}, run {at}") for at in range(1, times + 1)]


def calls_of(bench: Bench, entrants: Sequence[Entrant]) -> Calls:
    """What the entrants would ask, one after the other."""
    return [(one.judge, one.prompts(bench)) for one in entrants]


def limits_of(
    entrants: Sequence[Entrant],
    budget: float | None = None,
    max_calls: int | None = None,
    per_second: float | None = None,
) -> RunLimits:
    """The limits of a run; calls at once and the time of one as the filters have them."""
    stages = [one.stage for one in entrants]
    seconds = max(stage.timeout_ms for stage in stages) / 1000
    return RunLimits(max(stage.concurrency for stage in stages), per_second, budget, max_calls, seconds)


def answer_simulated(bench: Bench, entrants: Sequence[Entrant]) -> Progress | None:
    """Have those answered that ask no model, which costs nothing."""
    free = [one for one in entrants if one.simulated]
    return answer_all(calls_of(bench, free), limits_of(free)) if free else None


def settings_of(texts: Sequence[str] | None) -> dict[str, Any]:
    """Settings from `name=value`, each value read as JSON where it is some, else as text."""
    settings: dict[str, Any] = {}
    for text in texts or ():
        name, mark, value = text.partition("=")
        if not mark:
            raise InputError(f"--set {text[:80]!r} has no =, expected name=value")
        try:
            settings[name.strip()] = parse_json(value, name)
        except InputError:
            settings[name.strip()] = value
    return settings


def stages_of(
    variants: Sequence[str] | None, settings: Mapping[str, Any], only_default: bool = False
) -> list[LLMFilter]:
    """One filter per prompt variant; all of them where none is named."""
    names = [str(settings.get("variant", "terse"))] if only_default else list(variants or variant_names())
    stages = [make_stage(LLMFilter.__name__, {**settings, "variant": name}) for name in names]
    return [stage for stage in stages if isinstance(stage, LLMFilter)]


def in_memory(judge: Simulated) -> RecordedJudge:
    """A simulated judge with a memory of its own, for as long as the process lives."""
    return RecordedJudge(AnswerStore(Path(":memory:")), judge, judge.name)


def simulated_judge(
    bench: Bench, error_rate: float, depth: int = 0, seed: int = 0, price: Price | None = None
) -> RecordedJudge:
    """The simulated judge with the bench's labels."""
    return in_memory(SimulatedJudge(bench.labels, error_rate, seed, bench.min_grade, depth, price))


def endpoint_judge(workspace: Path, name: str = "", model: str = "", store: AnswerStore | None = None) -> RecordedJudge:
    """The judge of a named endpoint (the environment's without a name), of another of its models where one is named."""
    settings = named_endpoint(workspace, name)
    if settings is None:
        raise SurroundingsError(NO_ENDPOINT)
    settings = replace(settings, model=model) if model else settings
    return judge_of(settings, store or workspace)


def entrants_of(stages: Sequence[LLMFilter], judges: Sequence[RecordedJudge]) -> list[Entrant]:
    """Every filter with every judge; several judges are told apart by name, and a simulated one always says so."""
    found = []
    for judge in judges:
        named = judge.name if len(judges) > 1 or isinstance(judge.behind, Simulated) else ""
        for stage in stages:
            parts = [stage.variant, named or stage.model, "" if stage.mode == "listwise" else stage.mode]
            found.append(Entrant(stage, judge, " · ".join(part for part in parts if part)))
    return found
