"""The child that reads documents apart; started by apart.py, by nobody else."""

from typing import Any

from rag_core.child import Say, answer
from rag_core.corpus.apart import limit
from rag_core.corpus.load import answers


def work(request: dict[str, Any], say: Say) -> None:
    """Read what the request names, under its limits."""
    limit(request["memory"], request["seconds"])
    for value in answers(request):
        say(value)


answer(work)
