"""Have many prompts answered: several at once, within a rate and a budget, with progress, to be cancelled and resumed.

Meant for judges that store their answers: what is stored is not asked again, so a run that was stopped, cancelled or
killed goes on where it was. What the answers mean is read later, from the store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import asdict, dataclass, replace
from threading import Condition, Event, Lock, Thread
from time import monotonic, sleep
from typing import Any, TypeAlias

from rag_core.errors import InputError
from rag_core.llm.answer import Answer
from rag_core.llm.judge import Judge
from rag_core.llm.prompt import Prompt

Calls: TypeAlias = Sequence[tuple[Judge, Sequence[Prompt]]]
"""Who is asked what, in this order."""

FAILURES_IN_A_ROW = 10
"""So many failed calls without a good one between them end a run: the endpoint is gone or wrongly set."""
MOST_REASONS = 20


@dataclass(frozen=True)
class RunLimits:
    """What a run may use. A budget is in the currency of the judges' prices."""

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
    at_most: float = 0.0  # what is spent, and what calls that ended unclear may have cost
    seconds: float = 0.0
    stopped: str = ""  # why the run ended before its end
    failures: tuple[str, ...] = ()  # distinct reasons

    @property
    def done(self) -> int:
        """Prompts that were looked at: from the store, answered or failed."""
        return self.cached + self.asked

    @property
    def cancelled(self) -> bool:
        """Whether a person stopped it."""
        return self.stopped == CANCELLED

    @property
    def rate(self) -> float:
        """Calls a second so far."""
        return self.asked / self.seconds if self.seconds else 0.0

    @property
    def remaining_seconds(self) -> float | None:
        """Seconds the rest would take at this rate, None where no rate is known."""
        return (self.total - self.done) / self.rate if self.rate else None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "done": self.done}


CANCELLED = "cancelled"


@dataclass(frozen=True)
class CostPreview:
    """What a run would do: its calls, those already answered, and the estimated tokens and cost of the others."""

    prompts: int
    stored: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None  # None where a price is unknown
    most: float | None  # what the calls cost at most, all tries and the longest answers; None where that is open

    @property
    def calls(self) -> int:
        """Calls that would be made."""
        return self.prompts - self.stored

    def to_json(self) -> dict[str, Any]:
        """Plain values; tokens and cost are estimates."""
        return {**asdict(self), "calls": self.calls, "estimated": True}

    def to_text(self) -> str:
        """What a run would take, before it is paid."""
        tokens = f"about {self.prompt_tokens:,} + {self.completion_tokens:,} tokens"
        cost = "cost unknown" if self.cost is None else f"cost about {self.cost:.4f}"
        most = "" if not self.cost or self.most is None else f", at most {self.most:.4f}"
        calls = f"{self.calls:,} {'call' if self.calls == 1 else 'calls'}"
        return f"{calls} to make, {self.stored:,} stored, {tokens}, {cost}{most}"


def preview(calls: Calls) -> CostPreview:
    """Calls, tokens and cost of a run before it is made."""
    prompts = stored = words = answers = 0
    cost: float | None = 0.0
    most: float | None = 0.0
    for judge, asked in calls:
        fresh = [prompt for prompt in asked if not judge.stored(prompt, "")]
        tokens = sum(prompt.tokens for prompt in fresh), sum(prompt.answer_tokens for prompt in fresh)
        largest = [judge.most(prompt) for prompt in fresh]
        prompts, stored = prompts + len(asked), stored + len(asked) - len(fresh)
        words, answers = words + tokens[0], answers + tokens[1]
        if fresh:
            cost = None if cost is None or judge.price is None else cost + judge.price.of(*tokens)
            most = None if most is None or None in largest else most + sum(one or 0.0 for one in largest)
    return CostPreview(prompts, stored, words, answers, cost, most)


def answer_all(
    calls: Calls,
    limits: RunLimits | None = None,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Event | None = None,
    so_far: Progress | None = None,
) -> Progress:
    """Ask every prompt whose answer is not stored, until done, cancelled, over a limit or clearly in vain.

    `so_far` is an earlier part of the same run, which the limits and the progress go on from.

    With a budget the largest price of a call is set aside before the call is sent: what it may cost fits the budget,
    or it is not made. An InputError where that price is not known. An interrupt ends the run after the calls under way.
    """
    limits = limits or RunLimits()
    if limits.budget is not None and any(judge.most(asked[0]) is None for judge, asked in calls if asked):
        raise InputError("a budget was set but the model's price is not known, expected prices or a number of calls")
    run = _Run(calls, limits, on_progress, cancel or Event(), so_far or Progress(0))
    workers = [  # in this context: whose calls they are
        Thread(target=copy_context().run, args=(run.work,), name=f"run-{at}", daemon=True)
        for at in range(limits.concurrency)
    ]
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


class Pace:
    """At most so many calls a second over all threads, evenly spaced."""

    def __init__(self, per_second: float | None = None) -> None:
        self._gap = 1 / per_second if per_second else 0.0
        self._next = 0.0
        self._lock = Lock()

    def wait(self) -> None:
        """Wait for the next place."""
        with self._lock:
            at = max(self._next, monotonic())
            self._next = at + self._gap
        sleep(max(0.0, at - monotonic()))


class _Run:
    """The state of one run, shared by its threads under one lock."""

    def __init__(
        self,
        calls: Calls,
        limits: RunLimits,
        on_progress: Callable[[Progress], None] | None,
        cancel: Event,
        so_far: Progress,
    ) -> None:
        self.limits, self.cancel = limits, cancel
        self.progress = replace(so_far, total=so_far.total + sum(len(prompts) for _, prompts in calls))
        self.error: Exception | None = None
        self._tell = on_progress
        self._started = monotonic() - so_far.seconds
        self._pace = Pace(limits.per_second)
        self._open = iter([(judge, prompt) for judge, asked in calls for prompt in asked])
        self._paid = so_far.at_most
        self._reserved = 0.0
        self._calls_open = 0
        self._in_a_row = 0
        self._lock = Condition()

    def work(self) -> None:
        """Answer prompts until none is left or the run is stopped."""
        try:
            while (call := self._next()) is not None:
                judge, prompt, reserved = call
                self._pace.wait()
                (answer,) = judge.ask(
                    [prompt], seconds=self.limits.seconds_per_call, concurrency=1, model="", cache=True
                )
                with self._lock:
                    self._reserved = max(0.0, self._reserved - reserved)
                    self._calls_open -= 1
                    self._book(prompt, answer, reserved)
                    self._lock.notify_all()
        except Exception as error:  # a judge that raises: the run ends with it
            with self._lock:
                self.error = self.error or error
                self._stop("failed")
                self._lock.notify_all()

    def _next(self) -> tuple[Judge, Prompt, float] | None:
        """The next prompt to ask with what is set aside for it; None where there is none or the run is to stop."""
        with self._lock:
            for judge, prompt in self._open:
                if self._stopping():
                    return None
                if judge.stored(prompt, ""):
                    self._note(cached=1)
                    continue
                reserved = self._reserve(judge, prompt)
                return None if reserved is None else (judge, prompt, reserved)
        return None

    def _stopping(self) -> bool:
        if self.cancel.is_set():
            self._stop(CANCELLED)
        return bool(self.progress.stopped)

    def _reserve(self, judge: Judge, prompt: Prompt) -> float | None:
        """Set the largest price of a call aside; None where a limit would be passed or the run stopped meanwhile."""
        budget, limits = self.limits.budget, self.limits
        most = judge.most(prompt) if budget is not None else 0.0
        while most is not None and budget is not None and self._calls_open and self._over(most, budget):
            self._lock.wait()  # calls under way may turn out cheaper than was set aside
            most = judge.most(prompt)
        if self._stopping():
            return None
        if limits.max_calls is not None and self.progress.asked + self._calls_open >= limits.max_calls:
            self._stop(f"the limit of {limits.max_calls} calls is reached")
            return None
        if most is None:
            self._stop("the endpoint takes no limit of an answer's length, so no budget can be kept")
            return None
        if budget is not None and self._over(most, budget):
            self._stop(f"the budget of {budget:g} is reached: the next call may cost {most:.3g} and pass it")
            return None
        self._calls_open += 1
        self._reserved += most
        return most

    def _over(self, most: float, budget: float) -> bool:
        return self._paid + self._reserved + most > budget + 1e-9

    def _stop(self, reason: str) -> None:
        """End the run; the first reason stands."""
        self.progress = replace(self.progress, stopped=self.progress.stopped or reason)

    def _book(self, prompt: Prompt, answer: Answer, reserved: float) -> None:
        """Count an answer; after too many failures in a row, stop."""
        self._paid += (answer.cost or 0.0) + (reserved if answer.unclear else 0.0)
        self.progress = replace(self.progress, at_most=self._paid)
        if answer.text is None:
            known = self.progress.failures
            failures = known if answer.error in known else (*known, answer.error)[:MOST_REASONS]
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

    def _note(self, **changes: Any) -> None:
        """Add counts, replace the rest, and tell."""
        added = ("cached", "asked", "failed", "retries", "prompt_tokens", "completion_tokens")
        summed = {name: getattr(self.progress, name) + changes[name] for name in added if name in changes}
        self.progress = replace(self.progress, **{**changes, **summed, "seconds": monotonic() - self._started})
        if self._tell is not None:
            self._tell(self.progress)
