"""A run of the generator as a process of its own, for the test that kills it: server address and journal as arguments."""

import sys
from pathlib import Path

from rag_core.llm.endpoint import Endpoint
from rag_core.llm.judge import EndpointJudge, RecordedJudge
from rag_core.llm.run import RunLimits
from rag_core.llm.store import AnswerStore
from rag_core.rules.generate import generate_rules, rule_prompts
from rag_core.types import Chunk


def corpus():
    return [
        Chunk(f"ac{n}", f"Attack matrix for clerics, druids and monks - Opponent Armor Class {n}") for n in range(6)
    ]


if __name__ == "__main__":
    endpoint = Endpoint("local", sys.argv[1], "small-model")
    judge = RecordedJudge(AnswerStore(Path(sys.argv[2])), EndpointJudge(endpoint), "small-model")
    generate_rules(rule_prompts(corpus(), batch=1), judge, RunLimits(concurrency=1))
