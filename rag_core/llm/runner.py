"""Answer many prompts: several at once, within a rate and a budget, with progress, to be cancelled and resumed.

Meant for a judge that stores its answers (recorded.py): what is stored is not asked again, so a run that was stopped,
cancelled or killed goes on where it was. What the answers mean is read later, from the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Condition, Event, Thread
from time import monotonic

from rag_core.errors import InputError
from rag_core.llm.judging import Answer, Judge, Pace, PromptLike

FAILURES_IN_A_ROW = 10
"""So many failed calls without a good one between them end a run: the endpoint is gone or wrongly set."""


@dataclass(frozen=True)
class RunLimits:
    """What a run may use. A budget is in the currency of the judge's price."""

    concurrency: int = 4
    per_second: float | None = None
    budget: float | None = None
    max_calls: int | None = None
    seconds_per_call: float = 20.0

    def __post_init__(self) -> None:
        if not 1 <= self.concurrency <= 64 or self.seconds_per_call <= 0:
            raise InputError("a run needs a concurrency of 1 to 64 and a positive time per call")
        if any(value is not None and value <= 0 for value in (self.per_second, self.budget, self.max_calls)):
            raise InputError("a run's rate, budget and number of calls are above 0 where they are given")


@dataclass(frozen=True)
class Progress:
    """How far a run is: n of total, what came from the store, what failed, what it cost so far."""

    total: int
    cached: int = 0
    asked: int = 0  # calls made, answered or failed
    failed: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    spent: float | None = 0.0  # None once a call's cost is unknown
    seconds: float = 0.0
    stopped: str = ""  # why the run ended before its end
    failures: tuple[str, ...] = field(default=())  # distinct reasons

    @property
    def done(self) -> int:
        """Prompts that were looked at: from the store, answered or failed."""
        return self.cached + self.asked

    @property
    def rate(self) -> float:
        """Calls a second so far."""
        return self.asked / self.seconds if self.seconds else 0.0

    @property
    def remaining_seconds(self) -> float | None:
        """Seconds the rest would take at this rate, None where no rate is known."""
        return (self.total - self.done) / self.rate if self.rate else None


@dataclass(frozen=True)
class CostPreview:
    """What a run would do: its calls, those already answered, and the estimated tokens and cost of the others."""

    prompts: int
    stored: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None

    @property
    def calls(self) -> int:
        """Calls that would be made."""
        return self.prompts - self.stored


def preview(prompts: Sequence[PromptLike], judge: Judge, model: str = "") -> CostPreview:
    """Calls, tokens and cost of a run before it is made."""
    fresh = [prompt for prompt in prompts if not judge.stored(prompt, model)]
    tokens = sum(prompt.tokens for prompt in fresh), sum(prompt.answer_tokens for prompt in fresh)
    return CostPreview(
        len(prompts), len(prompts) - len(fresh), *tokens, judge.price.of(*tokens) if judge.price else None
    )


def answer_all(
    prompts: Sequence[PromptLike],
    judge: Judge,
    limits: RunLimits | None = None,
    *,
    model: str = "",
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Event | None = None,
) -> Progress:
    """Ask every prompt whose answer is not stored, until done, cancelled, over a limit or clearly in vain.

    No call is started that would pass the budget by its estimate; an InputError where a budget is set and the judge's
    price is not known. An interrupt ends the run after the calls under way.
    """
    limits = limits or RunLimits()
    if limits.budget is not None and judge.price is None:
        raise InputError("a budget was set but the model's price is not known, expected prices or a number of calls")
    run = _Run(prompts, judge, limits, model, on_progress, cancel or Event())
    workers = [Thread(target=run.work, name=f"run-{at}", daemon=True) for at in range(limits.concurrency)]
    for worker in workers:
        worker.start()
    try:
        for worker in workers:
            while worker.is_alive():
                worker.join(0.2)
    except KeyboardInterrupt:
        run.cancel.set()
        raise
    if run.error is not None:
        raise run.error
    return run.progress


class _Run:
    """The state of one run, shared by its threads under one lock."""

    def __init__(
        self,
        prompts: Sequence[PromptLike],
        judge: Judge,
        limits: RunLimits,
        model: str,
        on_progress: Callable[[Progress], None] | None,
        cancel: Event,
    ) -> None:
        self.judge, self.limits, self.model = judge, limits, model
        self.cancel = cancel
        self.progress = Progress(len(prompts))
        self.error: Exception | None = None
        self._tell = on_progress
        self._started = monotonic()
        self._pace = Pace(limits.per_second)
        self._open: Iterator[PromptLike] = iter(prompts)
        self._reserved = 0.0
        self._calls = 0
        self._calls_open = 0
        self._in_a_row = 0
        self._lock = Condition()

    def work(self) -> None:
        """One thread: take the next prompt, ask it, note the answer, until there is none or the run stops."""
        try:
            while (prompt := self._next()) is not None:
                self._answer(prompt)
        except Exception as error:  # told to the caller of the run, not to the thread's stderr
            self.error = error
            self.cancel.set()
            with self._lock:
                self._calls_open = 0
                self._lock.notify_all()

    def _next(self) -> PromptLike | None:
        """The next prompt that must be asked and may be; those stored are only counted."""
        with self._lock:
            while not self._stopping():
                prompt = next(self._open, None)
                if prompt is None:
                    return None
                if not self.judge.stored(prompt, self.model):
                    return prompt if self._reserve(prompt) else None
                self._note(cached=1)
        return None

    def _stopping(self) -> bool:
        if self.cancel.is_set() and not self.progress.stopped:
            self.progress = replace(self.progress, stopped="cancelled")
        return bool(self.progress.stopped)

    def _reserve(self, prompt: PromptLike) -> bool:
        """Set the call's estimated cost aside; False where a limit would be passed or the run stopped meanwhile."""
        cost, limits = self._estimate(prompt), self.limits
        while self._over_budget(cost) and self._calls_open:  # calls under way may turn out cheaper than estimated
            self._lock.wait()
        if self._stopping():
            return False
        if limits.max_calls is not None and self._calls >= limits.max_calls:
            return self._stop(f"the limit of {limits.max_calls} calls is reached")
        if self._over_budget(cost):
            return self._stop(f"the budget of {limits.budget:g} is reached: the next call would pass it")
        self._calls += 1
        self._calls_open += 1
        self._reserved += cost
        return True

    def _over_budget(self, cost: float) -> bool:
        budget = self.limits.budget
        return budget is not None and (self.progress.spent or 0.0) + self._reserved + cost > budget + 1e-9

    def _estimate(self, prompt: PromptLike) -> float:
        price = self.judge.price
        return price.of(prompt.tokens, prompt.answer_tokens) if price else 0.0

    def _stop(self, reason: str) -> bool:
        self.progress = replace(self.progress, stopped=self.progress.stopped or reason)
        return False

    def _answer(self, prompt: PromptLike) -> None:
        self._pace.wait(float("inf"))
        (answer,) = self.judge.ask(
            [prompt], seconds=self.limits.seconds_per_call, concurrency=1, model=self.model, cache=True
        )
        with self._lock:
            self._reserved = max(0.0, self._reserved - self._estimate(prompt))
            self._calls_open -= 1
            self._book(prompt, answer)
            self._lock.notify_all()

    def _book(self, prompt: PromptLike, answer: Answer) -> None:
        """Count an answer; after too many failures in a row, stop."""
        if answer.text is None:
            known = self.progress.failures
            failures = known if answer.error in known else (*known, answer.error)[:20]
            self._in_a_row += 1
            self._note(asked=1, failed=1, retries=answer.retries, failures=failures)
            if self._in_a_row >= FAILURES_IN_A_ROW:
                self._stop(f"{FAILURES_IN_A_ROW} calls in a row failed: {answer.error}")
            return
        self._in_a_row = 0
        spent = self.progress.spent
        self._note(
            asked=1,
            retries=answer.retries,
            prompt_tokens=prompt.tokens if answer.prompt_tokens is None else answer.prompt_tokens,
            completion_tokens=answer.completion_tokens or 0,
            spent=None if spent is None or answer.cost is None else spent + answer.cost,
        )

    def _note(self, **changes: object) -> None:
        """Add counts, replace the rest, and tell."""
        added = ("cached", "asked", "failed", "retries", "prompt_tokens", "completion_tokens")
        summed = {name: getattr(self.progress, name) + changes[name] for name in added if name in changes}
        values: dict[str, object] = {**changes, **summed, "seconds": monotonic() - self._started}
        self.progress = replace(self.progress, **values)  # type: ignore[arg-type]
        if self._tell is not None:
            self._tell(self.progress)
