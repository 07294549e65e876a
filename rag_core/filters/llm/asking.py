"""Ask a judge about candidates and read its answers: one verdict per candidate, and what the asking cost.

The judge is handed in (an endpoint's, a replaying or a simulated one) and is not trusted: whatever it does, every
candidate gets a verdict, decided or not. What becomes of the candidates is left to the stage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from rag_core.errors import WinnowError
from rag_core.filters.llm.decisions import AnswerReading, Decision, read_decisions, with_certainty
from rag_core.llm.answer import Answer
from rag_core.llm.judge import Judge
from rag_core.llm.prompt import Prompt


@dataclass(frozen=True, slots=True)
class CandidateVerdict:
    """What is known about one candidate: the model's decision, or why there is none."""

    decision: Decision | None = None
    failure: str = ""  # why there is no decision; empty and no decision: the answer did not mention it
    second: Decision | None = None  # the decision with the candidates in another order
    checked: bool = False  # whether the second order was asked and answered

    @property
    def flipped(self) -> bool:
        """Whether the two orders disagree."""
        return self.checked and _action(self.second) != _action(self.decision)


def _action(decision: Decision | None) -> str:
    return decision.action if decision else ""


@dataclass(frozen=True)
class Asking:
    """All verdicts, in the order of the judged candidates, and the facts of the asking."""

    verdicts: tuple[CandidateVerdict, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    failures: tuple[str, ...] = ()  # distinct reasons of failed prompts of the first order
    keys: tuple[tuple[str, str], ...] = ()  # Hit.key of the judged candidates


def ask(
    judge: Judge,
    prompts: Sequence[Prompt],
    *,
    count: int,
    seconds: float,
    concurrency: int,
    model: str,
    cache: bool,
    min_coverage: float,
) -> Asking:
    """Verdicts on `count` candidates. Never raises: a judge that fails leaves its candidates undecided."""
    answers, broken = _answers(judge, prompts, seconds, concurrency, model, cache)
    verdicts: list[CandidateVerdict] = [CandidateVerdict(failure=broken or "was not asked about")] * count
    counts: list[Mapping[str, int]] = []
    failures: list[str] = []
    unchecked = 0
    for prompt, answer in sorted(zip(prompts, answers, strict=True), key=lambda pair: pair[0].second):
        reading, failure = read_answer(answer, prompt, min_coverage, broken)
        counts.append(reading.ignored)
        if prompt.second:
            unchecked += bool(failure)
            _check(verdicts, prompt, reading, failure)
            continue
        if failure:
            failures.append(failure)
        _settle(verdicts, prompt, reading, failure)
    ignored = {name: sum(one[name] for one in counts) for name in (counts[0] if counts else ())}
    facts = {**costs(prompts, answers), **ignored, "unchecked_prompts": unchecked}
    return Asking(tuple(verdicts), facts, tuple(dict.fromkeys(failures)))


def _answers(
    judge: Judge, prompts: Sequence[Prompt], seconds: float, concurrency: int, model: str, cache: bool
) -> tuple[list[Answer | None], str]:
    """An answer or None for each prompt, and why all are None."""
    try:
        found = (
            judge.ask(prompts, seconds=seconds, concurrency=concurrency, model=model, cache=cache) if prompts else []
        )
    except WinnowError as error:
        return [None] * len(prompts), str(error)
    except Exception as error:  # whatever a judge does wrong, the caller gets a list
        return [None] * len(prompts), f"the judge failed ({type(error).__name__})"
    return [answer for _, answer in zip_longest(prompts, found[: len(prompts)])], ""


def read_answer(
    answer: Answer | None, prompt: Prompt, min_coverage: float, broken: str = ""
) -> tuple[AnswerReading, str]:
    """What an answer decides, and why it cannot be used or does not cover its prompt (empty: it can and does)."""
    if answer is None or answer.text is None:
        return AnswerReading(), (answer.error if answer is not None else broken) or "no answer came"
    reading = read_decisions(answer.text, [chunk.id for chunk in prompt.chunks])
    with_certainty(reading, answer.text, answer.odds)
    coverage = len(reading.decisions) / len(prompt.chunks)
    if not reading.decisions:
        unknown = f", {reading.unknown_ids} unknown ids" if reading.unknown_ids else ""
        return reading, f"the answer decides on no candidate ({len(answer.text):,} characters{unknown})"
    if coverage < min_coverage:
        reading.decisions.clear()
        return reading, f"the answer mentions {coverage:.0%} of its candidates, expected {min_coverage:.0%}"
    if answer.finish_reason == "length" and coverage < 1:
        return reading, "the answer was cut off at the model's length limit"
    return reading, ""


def _settle(verdicts: list[CandidateVerdict], prompt: Prompt, reading: AnswerReading, failure: str) -> None:
    for number, position in enumerate(prompt.positions, 1):
        decision = reading.decisions.get(number)
        verdicts[position] = CandidateVerdict(decision, failure="" if decision else failure)


def _check(verdicts: list[CandidateVerdict], prompt: Prompt, reading: AnswerReading, failure: str) -> None:
    """Lay the second order's decisions beside the first; where either was not answered nothing is compared."""
    for number, position in enumerate(prompt.positions, 1):
        second = reading.decisions.get(number)
        comparable = not verdicts[position].failure and not (failure and second is None)
        verdicts[position] = replace(verdicts[position], second=second, checked=comparable)


def costs(prompts: Sequence[Prompt], answers: Sequence[Answer | None]) -> dict[str, Any]:
    """Calls, tokens, cost and retries. Tokens the endpoint does not count are estimated; an unknown price is None."""
    given = [(prompt, answer) for prompt, answer in zip(prompts, answers, strict=True) if answer is not None]
    answered = [(prompt, answer) for prompt, answer in given if answer.text is not None]
    fresh = [answer for _, answer in answered if not answer.cached]
    return {
        "prompts": len(prompts),
        "prompts_failed": len(prompts) - len(answered),
        "cache_hits": len(answered) - len(fresh),
        "prompt_tokens": sum(_or(answer.prompt_tokens, prompt.tokens) for prompt, answer in answered),
        "completion_tokens": sum(_or(answer.completion_tokens, prompt.answer_tokens) for prompt, answer in answered),
        "tokens_estimated": any(answer.prompt_tokens is None for _, answer in answered),
        "cost": _sum([answer.cost for answer in fresh]),
        "cost_without_cache": _sum([answer.cost for _, answer in answered]),
        "retries": sum(answer.retries for _, answer in given),
        "call_milliseconds": tuple(answer.milliseconds for answer in answers if answer is not None),
        "shortened": sum(prompt.shortened for prompt in prompts),
    }


def _or(counted_tokens: int | None, estimate: int) -> int:
    return estimate if counted_tokens is None else counted_tokens


def _sum(values: Sequence[float | None]) -> float | None:
    """The sum, or None where one is unknown: an unknown cost is not nothing."""
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total
