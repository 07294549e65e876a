"""Keywords from headers: what questions are normalised to. Taken from every ingest, whether or not any pipeline asks.

What a keyword stands for ("Accurate x", "TEAM - ABILITY") is read by rag_core.retrieve.word_lists.
"""

from __future__ import annotations

from collections.abc import Iterable

from rag_core.text import words
from rag_core.types import Chunk

SHORTEST = 4  # characters; shorter headers are rarely names of anything
LONGEST = 200


def header_keywords(chunks: Iterable[Chunk]) -> tuple[str, ...]:
    """The headers of chunks (else their titles) of 4 to 200 characters that hold a word, each once, sorted."""
    found = {str(chunk.metadata.get("header") or chunk.title).strip() for chunk in chunks}
    return tuple(sorted((one for one in found if SHORTEST <= len(one) <= LONGEST and words(one)), key=_place))


def _place(keyword: str) -> tuple[str, str]:
    return keyword.casefold(), keyword
