"""What headers give besides titles: chunk ids, the same on every machine and run, and the keywords of a collection."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

from rag_core.text import words
from rag_core.types import Chunk

LONGEST = 80


def slug(heading: str) -> str:
    """A heading as part of an id: NFKC, lower case, words joined by hyphens, at most 80 characters."""
    folded = unicodedata.normalize("NFKC", heading).casefold()
    return "-".join(re.findall(r"\w+", folded))[:LONGEST].rstrip("-") or "section"


def document_name(relative: str) -> str:
    """A document's path inside its folder as part of an id: white space and % are written as %XX, so none is lost."""
    return re.sub(r"[\s%]", lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), relative)


class Names:
    """Hands out ids of one document: the second chunk of a name gets `~2`, the third `~3`."""

    def __init__(self) -> None:
        self._used: Counter[str] = Counter()

    def of(self, name: str) -> str:
        """The name, numbered where it was given before."""
        self._used[name] += 1
        return name if self._used[name] == 1 else f"{name}~{self._used[name]}"


SHORTEST_KEYWORD, LONGEST_KEYWORD = 4, 200  # characters; shorter headers are rarely names of anything


def header_keywords(chunks: Iterable[Chunk]) -> tuple[str, ...]:
    """The headers of chunks (else their titles) of 4 to 200 characters that hold a word, each once, sorted."""
    found = {str(chunk.metadata.get("header") or chunk.title).strip() for chunk in chunks}
    named = (one for one in found if SHORTEST_KEYWORD <= len(one) <= LONGEST_KEYWORD and words(one))
    return tuple(sorted(named, key=lambda keyword: (keyword.casefold(), keyword)))
