"""What the commands of `llm-filter` share: which queries, which judges, how much they may cost, and how it is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rag_core.cli.options import Collection, EvalSetName, Lists, MinGrade, Split
from rag_core.cli.output import emit
from rag_core.errors import Cancelled

if TYPE_CHECKING:
    from rag_core.judged.asking import Ran
    from rag_core.judged.bench import Bench
    from rag_core.judged.entrants import Entrant
    from rag_core.llm import RecordedJudge

Setting = typer.Option(None, "--set", help="A setting of LLMFilter, name=value; may be repeated.")
Endpoint = typer.Option("", "--endpoint", help="An endpoint by name; default the environment's.")
Model = typer.Option(None, "--model", help="A model of the endpoint; may be repeated.")
Simulated = typer.Option(None, "--simulated", help="A simulated judge of this error rate instead.")
Depth = typer.Option(0, "--depth", help="EXPAND depth of the simulated judge: 0, 1, 3 or 5.")
Free = typer.Option(None, "--pipeline", "-p", help="A free filter to compare with; may be repeated.")


@dataclass(frozen=True)
class Queries:
    """Which labelled queries."""

    eval_set: str | None = EvalSetName
    lists: Path | None = Lists
    collection: str | None = Collection
    split: str | None = Split
    first: int | None = typer.Option(None, "-n", min=1, help="Only the first N queries.")
    min_grade: int | None = MinGrade

    def bench(self, workspace: Path, depth: int) -> Bench:
        """The queries with their candidates; `depth` chunks each where they have none of their own."""
        from rag_core.judged.bench import open_bench

        given = (self.split, self.first, self.min_grade)
        return with_given_labels(
            open_bench(self.eval_set, self.lists, self.collection, workspace, *given, depth), self.eval_set, workspace
        )


def with_given_labels(bench: Bench, eval_set: str | None, workspace: Path) -> Bench:
    """The queries of an eval set with the labels given in this workspace; those of a file of lists as they are."""
    from rag_core.given import given_labels, laid_over
    from rag_core.store.matching import AtHand

    if eval_set is None:
        return bench
    chunks = AtHand.of(bench.chunks.values())
    return replace(bench, cases=tuple(laid_over(given_labels(workspace, bench.name), bench.cases, chunks)))


@dataclass(frozen=True)
class Judges:
    """Who is asked: the models of an endpoint, or a simulated judge."""

    endpoint: str = Endpoint
    model: list[str] | None = Model
    simulated: float | None = Simulated
    depth: int = Depth

    def opened(self, workspace: Path, bench: Bench, seed: int, rate: float | None) -> list[RecordedJudge]:
        """The simulated judge, or one judge per model of the endpoint."""
        from rag_core.judged import entrants
        from rag_core.llm import named_endpoint, price_of

        if self.simulated is not None:
            named = named_endpoint(workspace, self.endpoint)
            cost = price_of(named) if named else None
            return [entrants.simulated_judge(bench, self.simulated, self.depth, seed, cost)]
        return [entrants.endpoint_judge(workspace, self.endpoint, model, rate) for model in self.model or [""]]


@dataclass(frozen=True)
class Spending:
    """What the calls may cost, and whether that is only foretold."""

    budget: float | None = typer.Option(None, "--budget", help="Stop before the spend passes this; needs prices.")
    max_calls: int | None = typer.Option(None, "--max-calls", min=1, help="Stop after so many calls.")
    rate: float | None = typer.Option(None, "--rate", help="At most so many calls a second.")
    preview: bool = typer.Option(False, "--preview", help="Only say how many calls, tokens and what cost.")

    def ask(self, bench: Bench, rivals: Sequence[Entrant], workspace: Path) -> Ran:
        """Every call that is not stored yet, within the limits, with a bar on stderr."""
        from rag_core.cli.output import AskingBar
        from rag_core.judged import asking
        from rag_core.project import deeds

        limits = asking.limits_of(rivals, self.budget, self.max_calls, self.rate)
        with deeds.command(deeds.ASK_MODEL, ", ".join(one.label for one in rivals), workspace):
            return asking.ask_all(bench, rivals, limits, AskingBar())


def say(document: dict[str, Any], json: bool, lines: Callable[[dict[str, Any]], list[str]]) -> None:
    """The document, as JSON or as lines."""
    if json:
        emit(document)
    else:
        typer.echo("\n".join(lines(document)))


def stop_if(cancelled: bool) -> None:
    """A run that a person stopped ends as one."""
    if cancelled:
        raise Cancelled("stopped: what was answered is stored, the same command goes on from there")
