"""What speaks for and against a label: where its chunk lies, its words, and how its like is labelled.

Text is compared by tf-idf of words, so it needs no model and no vectors. The label itself is never among the features
of its own row, only the labels of other chunks and other queries. audit.py turns the features into suspicion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_core.text import words

Floats = NDArray[np.float64]
SHARPNESS = 8.0  # of the vote of similar chunks: e⁸ between those that say the same and those that share nothing
NEIGHBOURS = 5
MOST_TOGETHER = 3000  # chunks of a query, or queries of a chunk, that are compared with each other
SMALL = 1e-9


@dataclass(frozen=True)
class Evidence:
    """The labels of several queries in parallel: texts, distances (NaN: unknown), and whether each says relevant."""

    queries: Sequence[str]  # the query's id, per label
    chunks: Sequence[str]
    asked: Sequence[str]  # the query's text, '' if not known
    texts: Sequence[str]
    distances: Floats
    relevant: Floats


def features(given: Evidence) -> Floats:
    """(labels, features), each column in units of its spread; what is not known is 0."""
    of_texts, of_queries = _weights(given)
    by_query = _places(given.queries)
    found: Floats = np.zeros((len(given.queries), 13))
    for places in by_query:
        alike = _similarities(of_texts[places])
        found[places, :2] = _position(given.distances[places])
        found[places, 2:5] = _shared(of_texts[places], of_queries[places[0]])
        found[places, 5:10] = _of_neighbours(alike, given.relevant[places])
    for places in _places(given.chunks):
        found[places, 10:] = _of_other_queries(_similarities(of_queries[places]), given.relevant[places])
    spread = found.std(axis=0)
    return np.asarray((found - found.mean(axis=0)) / np.where(spread > SMALL, spread, 1.0))


def _weights(given: Evidence) -> tuple[Any, Any]:
    """tf-idf rows of the chunks' texts and of their queries' texts, one per label."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    made = TfidfVectorizer(sublinear_tf=True, analyzer=words)
    distinct = sorted({*given.texts, *given.asked})
    if not any(words(text) for text in distinct):
        distinct = [*distinct, "nothing"]
    place = {text: at for at, text in enumerate(distinct)}
    rows = made.fit_transform(distinct).tocsr()
    return rows[[place[text] for text in given.texts]], rows[[place[text] for text in given.asked]]


def _places(names: Sequence[str]) -> list[list[int]]:
    found: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        found.setdefault(name, []).append(at)
    return list(found.values())


def _similarities(rows: Any) -> Floats:
    """Cosines of every two rows; nothing is like anything where there are too many."""
    count = rows.shape[0]
    return np.asarray((rows @ rows.T).toarray()) if count <= MOST_TOGETHER else np.zeros((count, count), dtype=float)


def _position(distances: Floats) -> Floats:
    """Distance in units of the query's own spread, and the share of its labelled chunks that are nearer."""
    known = ~np.isnan(distances)
    found: Floats = np.zeros((len(distances), 2))
    if known.any():
        here = distances[known]
        spread = here.std()
        found[known, 0] = (here - here.mean()) / spread if spread > 0 else 0.0
        found[known, 1] = np.argsort(np.argsort(here)) / len(here)
    return found


def _shared(texts: Any, query: Any) -> Floats:
    """How much the chunk's words are the query's: in the query's units, of the best, and as it is."""
    cosine = np.asarray((texts @ query.T).todense()).ravel()
    units = (cosine - cosine.mean()) / (cosine.std() + SMALL)
    return np.column_stack([units, cosine / (cosine.max() + SMALL), cosine])


def _of_neighbours(alike: Floats, relevant: Floats) -> Floats:
    """How the query's other chunks that are like this one are labelled, this one's own label left out."""
    count = len(relevant)
    if count < 2:
        return np.zeros((count, 5))
    off = ~np.eye(count, dtype=bool)
    votes = np.exp(SHARPNESS * alike) * off
    nearest = np.argsort(np.where(off, -alike, 9.0), axis=1, kind="stable")[:, : min(NEIGHBOURS, count - 1)]
    weight = np.take_along_axis(alike, nearest, axis=1)
    best_for = (alike * off * relevant).max(axis=1)
    best_against = (alike * off * (1 - relevant)).max(axis=1)
    # The share of the others alone would give a label away where queries have equally many relevant chunks.
    others = (relevant.sum() - relevant) / (count - 1)
    return np.column_stack(
        [
            (votes @ relevant) / votes.sum(axis=1) - others,
            (weight * relevant[nearest]).sum(axis=1) / (weight.sum(axis=1) + SMALL),
            best_for,
            best_against,
            best_for - best_against,
        ]
    )


def _of_other_queries(alike: Floats, relevant: Floats) -> Floats:
    """How the same chunk is labelled for other queries, the more alike the query the heavier."""
    weight = alike**2 * ~np.eye(len(relevant), dtype=bool)
    said, total = weight @ relevant, weight.sum(axis=1)
    return np.column_stack([said / (total + 0.02), said, np.full(len(relevant), np.log(len(relevant)))])
