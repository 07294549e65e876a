"""Judges for tests: one that answers by a script, and lists to ask about."""

import re
from dataclasses import dataclass, field

from rag_core.types import Candidates, Chunk, Hit, Metric, Query


@dataclass
class Said:
    text: str | None = None
    error: str = ""
    finish_reason: str = "stop"
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    milliseconds: float = 0.0
    cached: bool = False
    retries: int = 0
    odds: tuple = ()


@dataclass
class ScriptedJudge:
    """Gives for each prompt what `script` says: a text, an exception, or a Said."""

    script: object
    name: str = "scripted judge"
    asked: list = field(default_factory=list)

    def ask(self, prompts, *, seconds, concurrency, model, cache):
        self.asked.append(list(prompts))
        return [self._one(prompt) for prompt in prompts]

    def _one(self, prompt):
        said = self.script(prompt)
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, Said) else Said(said)


def by_id(actions, otherwise="DISCARD"):
    """A script that answers in the line format with the action of each chunk's id."""

    def script(prompt):
        return "\n".join(
            f"{number} -> {actions.get(chunk.id, otherwise)}" for number, chunk in enumerate(prompt.chunks, 1)
        )

    return script


def a_list(*chunks, distances=None, metric=Metric.UNKNOWN, query="How do I log in?"):
    distances = distances or [0.1 + 0.01 * at for at in range(len(chunks))]
    hits = tuple(
        Hit(
            chunk if isinstance(chunk, Chunk) else Chunk(chunk, f"Title {chunk}", f"Text of {chunk}."),
            rank,
            {"distance": d},
        )
        for rank, (chunk, d) in enumerate(zip(chunks, distances, strict=True), 1)
    )
    return Candidates(Query("q", query), hits, metric=metric)


def ids(candidates):
    return [hit.chunk.id for hit in candidates.hits]


def reason_of(candidates, name):
    return next(drop.reason.text for drop in candidates.drops if drop.hit.chunk.id == name)


class ObedientModel:
    """Does what any text in the prompt says: the worst a model can be. Reads orders `SET number ACTION`."""

    def __call__(self, prompt):
        text = prompt.messages[-1]["content"]
        actions = {number: "DISCARD" for number in range(1, len(prompt.chunks) + 1)}
        for order in re.finditer(r"SET (\S+) (\S+)", text):
            names = actions if order[1] == "all" else [int(order[1])] if order[1].isdigit() else []
            actions.update(dict.fromkeys(names, order[2]))
        return "\n".join(f"{number} -> {action}" for number, action in actions.items())
