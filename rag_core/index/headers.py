"""The header index: chunks by the name of their header, misspelt ones too, and what a list of titles asks for.

A model that says what it lacks writes titles in a row. They are looked up here; what is no header is left for the
search of rag_core.retrieve.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rag_core.text import fold
from rag_core.types import Chunk, Hit

THRESHOLD = 85.0  # rapidfuzz ratio, 0 to 100
BELOW_EXACT = 0.01  # a header hit scores its match less this: 0.99 for an exact one
LONGEST_TITLE = 200
MOST_TITLES = 30  # pieces of one text that are looked at
WIDEST = 6  # pieces between commas that one title may span

_QUOTES = (("'", "'"), ('"', '"'), ("`", "`"), ("\u2018", "\u2019"), ("\u201c", "\u201d"), ("\u00ab", "\u00bb"))


@dataclass(frozen=True, slots=True)
class HeaderMatch:
    """A title and the header it was found as; `ratio` is 100 where they are equal but for case."""

    title: str
    header: str
    ratio: float

    @property
    def score(self) -> float:
        """Match − 0.01, 0 to 0.99."""
        return self.ratio / 100 - BELOW_EXACT


class HeaderIndex:
    """The headers of chunks, each with the chunks that carry it, in their order."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self._chunks: dict[str, list[Chunk]] = {}
        self._written: dict[str, str] = {}
        for chunk in chunks:
            header = str(chunk.metadata.get("header") or chunk.title).strip()
            folded = _key(header)
            if folded:
                self._chunks.setdefault(folded, []).append(chunk)
                self._written.setdefault(folded, header)
        self._folded = list(self._chunks)

    def __len__(self) -> int:
        return len(self._folded)

    def find(self, titles: Sequence[str], threshold: float = THRESHOLD) -> list[HeaderMatch | None]:
        """For each title the header with the highest ratio of at least `threshold`, the first of equals, or None.

        Compared case folded: `rapidfuzz.fuzz.ratio`, the normalised insertions and deletions between two strings.
        """
        from rapidfuzz import fuzz, process

        if not titles or not self._folded:
            return [None] * len(titles)
        written = [self._written.get(_key(title)) for title in titles]
        found: list[HeaderMatch | None] = [
            None if header is None else HeaderMatch(title, header, 100.0)
            for title, header in zip(titles, written, strict=True)
        ]
        open_ = [at for at, match in enumerate(found) if match is None]
        if not open_:
            return found
        wanted = [_key(titles[at]) for at in open_]
        ratios = process.cdist(wanted, self._folded, scorer=fuzz.ratio, score_cutoff=threshold, dtype=np.float64)
        for at, row in zip(open_, ratios, strict=True):
            best = int(row.argmax())
            if row[best] >= threshold and row[best] > 0:
                found[at] = HeaderMatch(titles[at], self._written[self._folded[best]], float(row[best]))
        return found

    def chunks_of(self, header: str) -> tuple[Chunk, ...]:
        """The chunks that carry a header, case aside."""
        return tuple(self._chunks.get(_key(header), ()))

    def hits_of(self, match: HeaderMatch) -> tuple[Hit, ...]:
        """The chunks of a match as hits, scored by it."""
        return tuple(
            Hit(chunk, rank, {"score": match.score}) for rank, chunk in enumerate(self.chunks_of(match.header), 1)
        )

    def titles_in(self, text: str, threshold: float = THRESHOLD) -> list[tuple[str, HeaderMatch | None]]:
        """(title, the header it is) of what a text lists, in its order; None where a title is no header.

        Titles stand between commas or on lines. Where several pieces together are a header at least as well as any
        part of them is, they are one title: the longest such run counts, so that commas in a title survive. Quotes
        around a title go, those inside it stay.
        """
        pieces = _pieces(text)
        runs = [(start, stop) for start in range(len(pieces)) for stop in _stops(start, len(pieces))]
        written = {run: unquoted(",".join(pieces[slice(*run)])) for run in runs}
        found = dict(zip(runs, self.find([written[run] for run in runs], threshold), strict=True))
        titles: dict[str, tuple[str, HeaderMatch | None]] = {}
        at = 0
        while at < len(pieces):
            stop = at + 1  # a single piece is a title always, several where no part of them matches better
            for longer in _stops(at, len(pieces)):
                whole, parts = found[at, longer], [found[part] for part in combinations(range(at, longer + 1), 2)]
                if whole is not None and all(part is None or part.ratio <= whole.ratio for part in parts):
                    stop = longer
            title, match = written[at, stop], found[at, stop]
            titles.setdefault(_key(match.header if match else title), (title, match))
            at = stop
        return [one for key, one in titles.items() if key]


def _stops(start: int, count: int) -> range:
    return range(start + 1, min(count, start + WIDEST) + 1)


def _pieces(text: str) -> list[str]:
    """What stands between commas and line ends, without bullets; a piece in double quotes keeps its commas."""
    pieces = []
    for line in text.splitlines():
        bare = re.sub(r"^\s*(?:[-*\u2022]|\d{1,2}[.)])\s+", "", line)
        pieces += [piece for piece in re.findall(r'\s*"[^"]*"\s*(?=,|$)|[^,]+', bare) if piece.strip()]
    return [piece[: 2 * LONGEST_TITLE] for piece in pieces[:MOST_TITLES]]


def unquoted(text: str) -> str:
    """The text without space and without matching quotes around it; inner ones and a single one stay."""
    stripped = text.strip()[:LONGEST_TITLE]
    for opening, closing in _QUOTES:
        if len(stripped) > 2 and stripped[0] == opening and stripped[-1] == closing:
            return stripped[1:-1].strip()
    return stripped


def _key(text: str) -> str:
    return " ".join(fold(text).split())
