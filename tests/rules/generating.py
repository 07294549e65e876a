"""A run of the generator as a process of its own, for the test that kills it: server address and journal as arguments."""

import sys
from pathlib import Path

from rag_core.llm.client import Client
from rag_core.llm.endpoint import Endpoint
from rag_core.rules.generate import generate_rules
from rag_core.types import Chunk


def corpus():
    return [
        Chunk(f"ac{n}", f"Attack matrix for clerics, druids and monks - Opponent Armor Class {n}") for n in range(6)
    ]


if __name__ == "__main__":
    client = Client(Endpoint("local", sys.argv[1], "small-model"))
    generate_rules(corpus(), client, "small-model", Path(sys.argv[2]), batch=1)
