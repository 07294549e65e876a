"""Look ahead at what entrants would ask, and have it all answered: within a budget, with progress, to be resumed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from threading import Event
from typing import Any

from rag_core.judged.bench import Bench
from rag_core.judged.entrants import Entrant
from rag_core.llm import Progress, RunLimits, answer_all
from rag_core.llm import preview as look_ahead


@dataclass(frozen=True)
class Ran:
    """How a run of several entrants ended: one mapping each, why it stopped before its end, whether a person did."""

    runs: tuple[dict[str, Any], ...]
    stopped: str

    @property
    def cancelled(self) -> bool:
        """Whether it was stopped by hand."""
        return self.stopped == "cancelled"

    def to_json(self) -> dict[str, Any]:
        """Runs and why it stopped."""
        return {"runs": list(self.runs), "stopped": self.stopped}


def ahead(bench: Bench, entrants: Sequence[Entrant]) -> dict[str, Any]:
    """Calls, tokens and cost of all that is not stored, before any of it is paid; an unknown price is None."""
    looks = [look_ahead(one.prompts(bench), one.judge) for one in entrants]
    costs = [look.cost for look in looks if look.calls or look.cost is not None]
    return {
        "prompts": sum(look.prompts for look in looks),
        "stored": sum(look.stored for look in looks),
        "calls": sum(look.calls for look in looks),
        "prompt_tokens": sum(look.prompt_tokens for look in looks),
        "completion_tokens": sum(look.completion_tokens for look in looks),
        "cost": None if None in costs else sum(cost or 0.0 for cost in costs),
        "estimated": True,
    }


def limits_of(
    entrants: Sequence[Entrant], budget: float | None, max_calls: int | None, rate: float | None = None
) -> RunLimits:
    """The limits of a run; calls at once and the time of one as the filters have them."""
    stages = [one.stage for one in entrants]
    seconds = max(stage.timeout_ms for stage in stages) / 1000
    return RunLimits(max(stage.concurrency for stage in stages), rate, budget, max_calls, seconds)


def ask_all(
    bench: Bench,
    entrants: Sequence[Entrant],
    limits: RunLimits,
    tell: Callable[[Progress], None] | None = None,
    cancel: Event | None = None,
) -> Ran:
    """Have every prompt of every entrant answered, one entrant after the other; limits and progress are over all."""
    asked = [one.prompts(bench) for one in entrants]
    done: list[dict[str, Any]] = []
    so_far = Progress(sum(map(len, asked)))
    left: RunLimits | None = limits
    for entrant, prompts in zip(entrants, asked, strict=True):
        assert left is not None
        free = entrant.simulated and entrant.judge.price is None
        usable = replace(left, budget=None) if free else left  # nothing is paid, so there is nothing to stop at
        told = None if tell is None else partial(_tell_all, tell, so_far)
        one = answer_all(prompts, entrant.judge, usable, on_progress=told, cancel=cancel or Event())
        so_far = _together(so_far, one)
        done.append({"name": entrant.label, "model": entrant.judge.model, **asdict(one), "done": one.done})
        left = _left_of(left, one)
        if left is None:
            break
    return Ran(tuple(done), "; ".join(one["stopped"] for one in done if one["stopped"]))


def _tell_all(tell: Callable[[Progress], None], before: Progress, now: Progress) -> None:
    tell(_together(before, now))


def _together(before: Progress, now: Progress) -> Progress:
    """The progress over all entrants: what was done before, and now."""
    added = {name: getattr(before, name) + getattr(now, name) for name in _ADDED}
    spent = None if before.spent is None or now.spent is None else before.spent + now.spent
    return replace(now, **added, total=before.total, spent=spent)


_ADDED = ("cached", "asked", "failed", "retries", "prompt_tokens", "completion_tokens", "seconds")


def _left_of(limits: RunLimits, done: Progress) -> RunLimits | None:
    """What a run leaves of its limits for the next one, None where nothing is left or it was stopped."""
    if done.stopped:
        return None
    budget = None if limits.budget is None else limits.budget - (done.spent or 0.0)
    calls = None if limits.max_calls is None else limits.max_calls - done.asked
    if (budget is not None and budget <= 0) or (calls is not None and calls <= 0):
        return None
    return replace(limits, budget=budget, max_calls=calls)
