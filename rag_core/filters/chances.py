"""How likely each chunk of a list is relevant, from signals that are there anyway, and which of them to keep.

Only the standard library and plain values, since an exported filter holds this very text: what a chunk's place, score,
words and neighbours say of it (`signals`), a logistic model of them (`logits`), and the set that is best on average
(`keep_by`). All scores enter in units of their spread over the list, so distances, similarities and BM25 read alike.
The stage is in learned_filter.py, training in tune/learned.py.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from rag_core.text import STOP_WORDS

SIGNALS = (
    "score behind the first", "score", "gap before", "rank", "lead over the second", "lead over the fifth",
    "lead over the fifteenth", "BM25", "BM25 rank", "BM25 above the list", "BM25 lead", "both ranks",
    "words of the question", "rare words of the question", "words in the title", "has a title", "title in the question",
    "title in the nearest", "nearest titles here", "numbers of the question", "like the nearest", "like the list",
    "like a better one", "length", "question length", "words of the best", "letters of the question", "letters rank",
)  # fmt: skip
"""What the model sees of each chunk, in this order."""

_WORD = re.compile(r"(?<!\w)-\d+(?:\.\d+)*|\d+(?:\.\d+)*|[^\W\d_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_STEM = 6
"""Words are compared by so many of their first letters: a stem in most languages, without a dictionary."""
_COMMON = frozenset(word[:_STEM] for word in STOP_WORDS)


@functools.lru_cache(maxsize=20_000)
def _terms(text: str) -> tuple[str, ...]:
    """Words and numbers of a text by their first letters; `camelCase` and `snake_case` are words of their own."""
    return tuple(word[:_STEM] for word in _WORD.findall(_HUMP.sub(" ", text.replace("\u2212", "-")).casefold()))


@functools.lru_cache(maxsize=20_000)
def _letters(text: str) -> str:
    """The text as folded words between single spaces."""
    return " " + " ".join(_WORD.findall(_HUMP.sub(" ", text).casefold())) + " "


def _weights(counts: Mapping[str, int], size: int) -> dict[str, float]:
    """What a word is worth that stands in so many of the list's chunks (Robertson's idf, never negative)."""
    return {word: math.log(1 + (size - count + 0.5) / (count + 0.5)) for word, count in counts.items()}


def _places(values: Sequence[float]) -> list[float]:
    """The logarithm of each value's place, the greatest first; of equals the first."""
    order = sorted(range(len(values)), key=lambda at: (-values[at], at))
    places = [0.0] * len(values)
    for place, at in enumerate(order):
        places[at] = math.log1p(place)
    return places


def _spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation, 1 for the latter where all are equal."""
    mean = math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    return mean, spread if spread > 1e-12 else 1.0


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def signals(question: str, chunks: Sequence[tuple[str, str]], falls: Sequence[float]) -> list[list[float]]:
    """One row of SIGNALS a chunk of the list, in its order.

    `chunks` are (title, text); `falls` is what orders them, smaller is better: a distance, or a score times −1.
    """
    size = len(chunks)
    if not size:
        return []
    asked = [word for word in _terms(question) if word not in _COMMON]
    wanted = list(dict.fromkeys(asked))
    in_question = set(_terms(question))
    bodies = [_terms(text if text.startswith(title[:40]) else f"{title}\n{text}") for title, text in chunks]
    sets = [frozenset(body) for body in bodies]
    heads = [
        [word for word in dict.fromkeys(_terms((title or text.strip().partition("\n")[0])[:80])) if word not in _COMMON]
        for title, text in chunks
    ]
    worth = _weights(Counter(word for words in sets for word in words if word not in _COMMON), size)
    idf = {word: worth.get(word, math.log(2 * size + 2)) for word in wanted}
    total = math.fsum(idf.values())

    # BM25 over the list itself: the service that runs this has no other texts
    average = sum(map(len, bodies)) / size or 1.0
    bm25 = [
        math.fsum(
            idf[word] * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(body) / average))
            for word in wanted
            if word in words and (count := body.count(word))
        )
        for words, body in ((frozenset(body), body) for body in bodies)
    ]
    by_words = _places(bm25)
    ranked = sorted(bm25, reverse=True)
    best_words = sorted(range(size), key=lambda at: (-bm25[at], at))
    both = _places([1 / (61 + at) + 1 / (60 + math.exp(by_words[at])) for at in range(size)])

    # pieces of four letters find "minimizer" in "CorpusMinimizer" and a word in its other forms
    plain = " " + " ".join(word for word in _WORD.findall(_HUMP.sub(" ", question).casefold())
                           if word[:_STEM] not in _COMMON) + " "  # fmt: skip
    pieces = {plain[at : at + 4] for at in range(len(plain) - 3)}
    written = [_letters(f"{title} {text}") for title, text in chunks]
    holding = [{piece for piece in pieces if piece in text} for text in written]
    piece_worth = _weights(Counter(piece for found in holding for piece in found), size)
    piece_total = math.fsum(piece_worth.values())
    letters = [_share(math.fsum(piece_worth[piece] for piece in found), piece_total) for found in holding]

    # words that the best of both rankings share, weighed (pseudo relevance feedback)
    fed: Counter[str] = Counter()
    for at in [*best_words[:3], *range(min(3, size))]:
        for word in sets[at]:
            if word in worth:
                fed[word] += bodies[at].count(word) / len(bodies[at]) * worth[word]
    feedback = dict(sorted(fed.items(), key=lambda pair: (-pair[1], pair[0]))[:25])
    fed_total = math.fsum(feedback.values())

    lengths = [
        math.sqrt(math.fsum(worth[word] ** 2 for word in sorted(words) if word in worth)) or 1.0 for words in sets
    ]

    def likeness(one: int, other: int) -> float:
        shared = sets[one] & sets[other]
        return math.fsum(worth[word] ** 2 for word in shared if word in worth) / lengths[one] / lengths[other]

    nearest = [[other for other in range(min(4, size)) if other != at][:3] for at in range(size)]
    like = [_share(math.fsum(likeness(at, other) for other in nearest[at]), len(nearest[at])) for at in range(size)]
    like_mean, like_spread = _spread(like)
    mean, spread = _spread(falls)
    bm25_mean, bm25_spread = _spread(bm25)
    lead = [(falls[min(place, size - 1)] - falls[0]) / spread for place in (1, 4, 14)]
    numbers = [word for word in wanted if word[-1].isdigit()]
    rows = []
    for at, words in enumerate(sets):
        title, head = chunks[at][0], heads[at]
        in_title = set(_terms(title))
        covered = [_share(sum(word in sets[other] for word in head), len(head)) for other in nearest[at]]
        covering = [_share(sum(word in words for word in heads[other]), len(heads[other])) for other in nearest[at]]
        better = [_share(len(words & sets[other]), len(words | sets[other])) for other in range(min(at, 10))]
        rows.append([
            (falls[at] - falls[0]) / spread,
            (falls[at] - mean) / spread,
            (falls[at] - falls[at - 1]) / spread if at else 0.0,
            math.log1p(at),
            *lead,
            _share(bm25[at], ranked[0]),
            by_words[at],
            (bm25[at] - bm25_mean) / bm25_spread,
            _share(ranked[0] - ranked[min(4, size - 1)], ranked[0]),
            both[at],
            _share(sum(word in words for word in wanted), len(wanted)),
            _share(math.fsum(idf[word] for word in wanted if word in words), total),
            _share(math.fsum(idf[word] for word in wanted if word in in_title), total),
            1.0 if title else 0.0,
            _share(sum(word in in_question for word in head), len(head)),
            max(covered, default=0.0),
            max(covering, default=0.0),
            _share(sum(word in words for word in numbers), len(numbers)),
            like[at],
            (like[at] - like_mean) / like_spread,
            max(better, default=0.0),
            math.log1p(len(bodies[at])),
            math.log1p(len(wanted)),
            _share(math.fsum(value for word, value in feedback.items() if word in words), fed_total),
            letters[at],
            0.0,
        ])  # fmt: skip
    for at, place in enumerate(_places(letters)):
        rows[at][-1] = place
    return rows


def shares(row: Sequence[float], best: Sequence[float], model: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """What each signal adds to a chunk's logit beside that of another; `model`: signal → mean, scale, weight."""
    return {name: (row[at] - best[at]) / scale * weight for at, (name, (_, scale, weight)) in enumerate(model.items())}


def chances_of(rows: Sequence[Sequence[float]], model: Mapping[str, Sequence[float]], intercept: float) -> list[float]:
    """The chance of each chunk to be relevant."""
    slopes = [weight / scale for _, scale, weight in model.values()]
    level = intercept - math.fsum(mean * weight / scale for mean, scale, weight in model.values())
    logits = [level + math.fsum(map(operator.mul, row, slopes)) for row in rows]
    return [1 / (1 + math.exp(-max(-700.0, min(700.0, logit)))) for logit in logits]


def keep_by(
    chances: Sequence[float],
    least: int,
    recall: float | None = None,
    named: Sequence[int] = (),
    beside: float | None = None,
) -> tuple[list[int], float]:
    """The places to keep, the likeliest first, and from which chance on a chunk stays (above 1: from none).

    As many as make the expected F₁ greatest, 2 · Σ(kept) / (kept + Σ all), the fewest of equals; or, with `recall`, the
    fewest whose chances are that share of all. At least `least`. Where chunks were asked for by name (`named`, their
    places) and `beside` is given, those stay, and of the others whose chance is at least `beside`.
    """
    order = sorted(range(len(chances)), key=lambda at: (-chances[at], at))
    if named and beside is not None:
        kept = [at for at in order if at in named or chances[at] >= beside]
        kept += [at for at in order if at not in kept][: max(0, least - len(kept))]
        return kept, beside
    total, reached, best, keep = math.fsum(chances), 0.0, -1.0, 0
    for count, at in enumerate(order, 1):
        reached += chances[at]
        if recall is None:
            worth = 2 * reached / (count + total)
            if worth > best + 1e-12:
                best, keep = worth, count
        elif keep == 0 and reached >= recall * total - 1e-12:
            keep = count
    keep = min(len(order), max(keep, least))
    return order[:keep], chances[order[keep - 1]] if keep else 2.0
