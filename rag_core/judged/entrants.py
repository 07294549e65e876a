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
from rag_core.filters.llm import NO_JUDGE, LLMFilter, Prompt, variant_names
from rag_core.judged.bench import Bench
from rag_core.llm import (
    AnswerStore,
    Price,
    RecordedJudge,
    SimulatedJudge,
    environment_judge,
    named_endpoint,
)
from rag_core.spec import make_stage
from rag_core.types import Candidates

SIMULATED = "simulated"


@dataclass(frozen=True)
class Entrant:
    """One way to judge: the filter's settings and who answers."""

    stage: LLMFilter
    judge: RecordedJudge
    label: str

    @property
    def simulated(self) -> bool:
        """Whether no model is asked."""
        return _is_simulated(self.judge)

    def prompts(self, bench: Bench) -> list[Prompt]:
        """Every call of a run over the bench."""
        return [one for case in bench.cases for one in self.stage.prompts(case.candidates or Candidates(case.query))]

    def replay(self, bench: Bench) -> LLMFilter:
        """The filter on stored answers alone: what was not answered is a fallback, counted."""
        stored = RecordedJudge(self.judge.store, None, self.judge.model)
        return replace(self.stage, judge=stored, chunks=bench.chunks, cache=True)


def settings_of(given: Sequence[str] | None) -> dict[str, Any]:
    """Settings from `name=value`, each value read as JSON where it is some, else as text."""
    found: dict[str, Any] = {}
    for one in given or ():
        name, mark, value = one.partition("=")
        if not mark:
            raise InputError(f"--set {one[:80]!r} has no =, expected name=value")
        try:
            found[name.strip()] = parse_json(value, name)
        except InputError:
            found[name.strip()] = value
    return found


def stages_of(
    variants: Sequence[str] | None, settings: Mapping[str, Any], only_default: bool = False
) -> list[LLMFilter]:
    """One filter per prompt variant; all of them where none is named."""
    names = [str(settings.get("variant", "terse"))] if only_default else list(variants or variant_names())
    found = [make_stage(LLMFilter.__name__, {**settings, "variant": name}) for name in names]
    return [stage for stage in found if isinstance(stage, LLMFilter)]


def price(price_in: float | None, price_out: float | None) -> Price | None:
    """A price from its two halves; None where neither is given, an InputError where one is."""
    if price_in is None and price_out is None:
        return None
    if price_in is None or price_out is None:
        raise InputError("one price given, expected both --price-in and --price-out")
    return Price(price_in, price_out)


def simulated_judge(bench: Bench, error_rate: float, depth: int, seed: int, cost: Price | None = None) -> RecordedJudge:
    """The simulated judge with the bench's labels and a memory of its own."""
    judge = SimulatedJudge(bench.labels, error_rate, seed, bench.min_grade, depth, cost)
    return RecordedJudge(AnswerStore(Path(":memory:")), judge, judge.name)


def endpoint_judge(
    workspace: Path, name: str = "", model: str = "", per_second: float | None = None, store: AnswerStore | None = None
) -> RecordedJudge:
    """The judge of a named endpoint (the environment's without a name), of another of its models where one is named."""
    settings = named_endpoint(workspace, name)
    if settings is None:
        raise SurroundingsError(f"{NO_JUDGE} (--simulated 0.1)")
    settings = replace(settings, model=model) if model else settings
    found = environment_judge(workspace, settings, per_second=per_second, store=store)
    assert found is not None
    return found


def entrants(stages: Sequence[LLMFilter], judges: Sequence[RecordedJudge]) -> list[Entrant]:
    """Every filter with every judge; several judges are told apart by name, and a simulated one always says so."""
    several = len(judges) > 1
    return [
        Entrant(stage, judge, label_of(stage, judge.name if several or _is_simulated(judge) else ""))
        for judge in judges
        for stage in stages
    ]


def _is_simulated(judge: RecordedJudge) -> bool:
    return isinstance(judge.behind, SimulatedJudge)


def label_of(stage: LLMFilter, judge: str = "") -> str:
    """A variant's name in tables: the wording, who answers where there are several, the mode where it is not usual."""
    parts = [stage.variant, judge or stage.model, "" if stage.mode == "listwise" else stage.mode]
    return " · ".join(part for part in parts if part)
