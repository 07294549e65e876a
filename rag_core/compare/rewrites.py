"""What the two rewrites are worth on an eval set: one search asked as people wrote, and in the documents' words.

The lists are handed in; where they come from is in rag_core/wording.py. Means, intervals and tests are compare.py's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rag_core.errors import InputError
from rag_core.measure.measures import parse_measure
from rag_core.measure.tally import PipelineTally, Progress, measure_all
from rag_core.retrieve.hybrid import Hybrid
from rag_core.retrieve.lexical import Lexical
from rag_core.retrieve.rewrite import ExpandSynonyms, NormaliseKeywords
from rag_core.retrieve.word_lists import Keywords, Synonyms
from rag_core.stage import Pipeline
from rag_core.types import Case

SEARCHES = {"hybrid": Hybrid, "lexical": Lexical}
MEASURES = ("nDCG@10", "R@10", "RR@10")
PLAIN, REWRITTEN = "as asked", "rewritten"


def measure_rewrites(
    index: Any,
    cases: Sequence[Case],
    words: tuple[Keywords, Synonyms],
    search: str = "hybrid",
    min_grade: int = 1,
    progress: Progress | None = None,
) -> list[PipelineTally]:
    """The same search without and with both rewrites over the same queries; an InputError where none has a label here.

    Recorded lists are left aside: the index is asked. Neither list is cut, so that ranks are all that differs.
    """
    if search not in SEARCHES:
        raise InputError(f"the search is {search[:40]!r}, expected {' or '.join(SEARCHES)}")
    if not any(chunk in index.rows_by_id for case in cases for chunk in case.grades):
        raise InputError("no label of the eval set is on a chunk of the collection, expected a set made for it")
    source = SEARCHES[search](index=index)
    pipelines = [
        Pipeline((source,), PLAIN),
        Pipeline((NormaliseKeywords(words[0]), ExpandSynonyms(words[1]), source), REWRITTEN),
    ]
    asked = [replace(case, candidates=None) for case in cases]
    return measure_all(asked, pipelines, min_grade, [parse_measure(name) for name in MEASURES], progress)
