"""Labels as an OpenSearch Search Relevance Workbench judgement list: one JSON object of type IMPORT_JUDGMENT.

Ratings are text with three decimals there. It has no place for annotator, note or unsure, and no lines: a refusal names
the number of the rating.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from rag_core.errors import InputError
from rag_core.files import parse_json
from rag_core.store.exchange.line import LabelLine, at_line, check_line, judged, parse_grade

TYPE = "IMPORT_JUDGMENT"


def write_srw(labels: Iterable[LabelLine]) -> str:
    """The judgement list in the order of the labels; one entry per query where its labels stand together."""
    rated = groupby(judged(labels, "OpenSearch SRW"), key=lambda pair: pair[0].query_id)
    ratings = [
        {"query": query, "ratings": [{"docId": label.chunk_id, "rating": f"{grade}.000"} for label, grade in pairs]}
        for query, pairs in rated
    ]
    document = {"name": "winnow", "description": "", "type": TYPE, "judgmentRatings": ratings}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def read_srw(text: str, source: str) -> list[LabelLine]:
    """The labels; another shape or a rating that is not 0-3 is a RecordError with the rating's number."""
    with at_line(source, 1):
        document = parse_json(text, "the file")
        if not isinstance(document, Mapping) or not isinstance(document.get("judgmentRatings"), list):
            raise InputError("no judgmentRatings, expected an OpenSearch judgement list")
    return list(_read(document["judgmentRatings"], source))


def _read(queries: list[Any], source: str) -> Iterator[LabelLine]:
    number = 0
    for entry in queries:
        ratings = entry.get("ratings") if isinstance(entry, Mapping) else None
        with at_line(source, number + 1):
            if not isinstance(ratings, list) or not isinstance(entry.get("query"), str):
                raise InputError("an entry without query and ratings, expected both")
        for rating in ratings or ():
            number += 1
            with at_line(source, number):
                yield _line(entry["query"], rating, number)


def _line(query: str, rating: Any, number: int) -> LabelLine:
    if not isinstance(rating, Mapping) or not isinstance(rating.get("docId"), str):
        raise InputError("a rating without docId, expected one")
    said = str(rating.get("rating"))
    whole, _, rest = said.partition(".")
    if rest.strip("0"):
        raise InputError(f"rating is {said[:40]!r}, expected a whole number from 0 to 3")
    return check_line(LabelLine(query, rating["docId"], parse_grade(whole), number=number))
