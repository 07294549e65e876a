"""The bundled model with its products in integers: what it would save, and what search would lose.

    python -m benchmarks.embedding_arithmetic [--data FOLDER] [--sets NAME ...] [--most 1000] [--rounds 5] [--rates]

Needs the folder of labelled sets (`--data`, else data/ in WINNOW_SHARED, else ../shared/data; skips without it). The
bundled model has weights of one byte and computes in float32. Here its 36 products of weights are done in integers,
with one scale a text or one a token; texts are run one at a time. Per set the mean nDCG@10 of exact search, and the
difference to the bundled model with its 95 % interval by the comparison in force. Larger sets are cut to `--most`
documents: all judged ones and others at random, the same for every form. Then tokens a second, each form in turn, the
best of the rounds; and how far a vector moves when its text is run in a batch of 16, and when the runtime adds up the
same numbers in another order, as another version of it or another processor would. `--rates` leaves out the sets.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from statistics import mean
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.parts import real_lists
from benchmarks.parts.integer_model import UNITS, opened
from benchmarks.parts.real_lists import Corpus
from rag_core.index.embed import BundledEmbedder, Vectors, _tokenizer, normalise
from rag_core.measure.measures import parse_measure
from rag_core.measure.scores import score
from rag_core.measure.significance import compare

SETS: dict[str, Callable[[], Corpus]] = {
    "restbench-spotify": real_lists.spotify,
    "hotpotqa-100": real_lists.hotpotqa,
    "code-chunks": real_lists.code_chunks,
    "cranfield": real_lists.cranfield,
    "chunking-evaluation": real_lists.excerpts,
}
"""The five labelled sets with most questions."""

MEASURE = parse_measure("nDCG@10")
DEPTH = 10
BATCH = 16
BATCHED = 50  # texts that are run in batches
TIMED = 10  # texts of each set whose rate is taken
THREADS = (1, 2)
FORMS = (None, *UNITS)
"""None is the bundled model as it is."""


def shown(form: str | None) -> str:
    return "float32" if form is None else f"a scale a {form}"


@lru_cache
def session(form: str | None, fused: bool = True) -> Any:
    return opened(form, fused)


def tokens(texts: Sequence[str]) -> list[list[int]]:
    """The tokens of each text that the model reads."""
    return [encoded.ids for encoded in _tokenizer(BundledEmbedder.window).encode_batch_fast(list(texts))]


def alone(model: Any, ids: list[int]) -> np.ndarray:
    """The mean over the tokens of one text, run by itself."""
    row = np.array([ids], dtype=np.int64)
    feed = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
    return model.run(None, feed)[0][0].mean(axis=0)


def vectors(form: str | None, texts: Sequence[str], threads: int = 2) -> Vectors:
    """Unit vectors of the texts, each run by itself."""
    model = session(form)
    with ThreadPoolExecutor(threads) as pool:
        return normalise(np.array(list(pool.map(lambda ids: alone(model, ids), tokens(texts)))))


def in_batches(form: str | None, texts: Sequence[str]) -> Vectors:
    """Unit vectors of the texts, 16 run together, the shorter padded."""
    made = []
    for start in range(0, len(texts), BATCH):
        some = tokens(texts[start : start + BATCH])
        longest = max(map(len, some))
        ids = np.array([row + [0] * (longest - len(row)) for row in some], dtype=np.int64)
        mask = np.array([[1] * len(row) + [0] * (longest - len(row)) for row in some], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        found = session(form).run(None, feed)[0]
        made += [found[at, : len(row)].mean(axis=0) for at, row in enumerate(some)]
    return normalise(np.array(made))


def asked(corpus: Corpus) -> list[str]:
    """The questions that have a relevant document."""
    return [one for one in corpus.queries if any(grade > 0 for grade in corpus.grades.get(one, {}).values())]


def sampled(corpus: Corpus, most: int) -> list[str]:
    """The documents to search: all judged ones, and others at random up to `most`, in the order of the set."""
    judged = {one for grades in corpus.grades.values() for one in grades}
    others = [one for one in corpus.documents if one not in judged]
    random.Random(0).shuffle(others)
    inside = sum(one in judged for one in corpus.documents)
    wanted = judged.union(others[: max(0, most - inside)])
    return [one for one in corpus.documents if one in wanted]


def figures(corpus: Corpus, ids: Sequence[str], documents: Vectors, questions: Vectors) -> list[float]:
    """nDCG@10 of every question by exact search."""
    similar = questions.astype(np.float64) @ documents.T.astype(np.float64)
    found = []
    for question, row in zip(asked(corpus), similar, strict=True):
        nearest = [ids[at] for at in np.argsort(-row, kind="stable")[:DEPTH]]
        found.append(score(nearest, corpus.grades[question], measures=[MEASURE]).values[MEASURE.name] or 0.0)
    return found


def one_set(corpus: Corpus, most: int) -> str:
    """Every form on one set, as a row of the table."""
    ids = sampled(corpus, most)
    texts, questions = [corpus.documents[one] for one in ids], [corpus.queries[one] for one in asked(corpus)]
    values = {form: figures(corpus, ids, vectors(form, texts), vectors(form, questions)) for form in FORMS}
    count = f"{len(ids):,} of {len(corpus.documents):,}" if len(ids) < len(corpus.documents) else f"{len(ids):,}"
    cells = [corpus.name, str(len(questions)), count, f"{mean(values[None]):.3f}"]
    for unit in UNITS:
        test = compare(values[None], values[unit], measure=MEASURE.name)
        cells.append(f"{mean(values[unit]):.3f}, {test.delta:+.4f} [{test.low:+.3f}, {test.high:+.3f}]")
    return f"| {' | '.join(cells)} |"


def rate(form: str | None, encoded: list[list[int]], threads: int) -> tuple[float, float]:
    """Tokens a second, by the clock and by the processor's time."""
    model = session(form)
    with ThreadPoolExecutor(threads) as pool:
        began, used = perf_counter(), process_time()
        list(pool.map(lambda ids: alone(model, ids), encoded))
        clock, used = perf_counter() - began, process_time() - used
    count = sum(map(len, encoded))
    return count / clock, count / used


def rates(name: str, texts: Sequence[str], rounds: int) -> None:
    """Tokens a second of every form on one and two threads, in turn, the best of the rounds."""
    encoded = sorted(tokens(texts), key=len, reverse=True)
    length = mean(map(len, encoded))
    print(f"{name}: {len(texts)} texts, {length:.0f} tokens each")
    for threads in THREADS:
        best = dict.fromkeys(FORMS, (0.0, 0.0))
        for _ in range(rounds):
            for form in FORMS:
                clock, used = rate(form, encoded, threads)
                best[form] = max(best[form][0], clock), max(best[form][1], used)
        for form in FORMS:
            clock, used = (now / before for now, before in zip(best[form], best[None], strict=True))
            print(
                f"  {threads} threads  {shown(form):14} {best[form][0]:7,.0f} tokens/s {clock:.2f}×"
                f"  a processor's second {best[form][1]:7,.0f} {used:.2f}×"
            )


def moved(form: str | None, texts: Sequence[str]) -> str:
    """How far vectors are from those of the texts run alone, at most: in a number, and the least cosine."""
    here, mixed = vectors(form, texts), list(texts)
    random.Random(1).shuffle(mixed)
    other = dict(zip(mixed, in_batches(form, mixed), strict=True))
    ways = {
        "again": vectors(form, texts),
        "in batches": in_batches(form, texts),
        "in other batches": np.stack([other[text] for text in texts]),
        "summed in another order": normalise(np.array([alone(session(form, False), ids) for ids in tokens(texts)])),
    }
    said = [
        f"{way} {np.abs(made - here).max():.1e} ({(made * here).sum(axis=1).min():.4f})" for way, made in ways.items()
    ]
    return f"  {shown(form):14} {', '.join(said)}"


def batch_figures(form: str | None, corpus: Corpus) -> str:
    """nDCG@10 of a set whose documents were run alone, in batches, and in batches of another order."""
    ids = list(corpus.documents)
    texts = [corpus.documents[one] for one in ids]
    questions = vectors(form, [corpus.queries[one] for one in asked(corpus)])
    order = random.Random(1).sample(range(len(ids)), len(ids))
    mixed = np.empty((len(ids), BundledEmbedder.dimension), np.float32)
    mixed[order] = in_batches(form, [texts[at] for at in order])
    made = (vectors(form, texts), in_batches(form, texts), mixed)
    cells = [f"{mean(figures(corpus, ids, one, questions)):.4f}" for one in made]
    return f"  {shown(form):14} alone {cells[0]}, in batches {cells[1]}, in other batches {cells[2]}"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", type=Path, default=real_lists.DATA, metavar="FOLDER")
    options.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    options.add_argument("--most", type=int, default=1000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--rates", action="store_true")
    chosen = options.parse_args()
    if not chosen.data.is_dir():
        print(f"skipped: {chosen.data} is not there, expected the folder of labelled sets (--data FOLDER)")
        return 0
    real_lists.DATA = chosen.data
    corpora = [SETS[name]() for name in chosen.sets]
    texts = [text for corpus in corpora for text in list(corpus.documents.values())[:TIMED]]
    rates("documents", texts, chosen.rounds)
    rates("questions", [text for one in corpora for text in list(one.queries.values())[:TIMED]], chosen.rounds)
    smallest = min(corpora, key=lambda corpus: len(corpus.documents))
    some = list(dict.fromkeys(texts))[:BATCHED]
    print(f"{len(some)} documents, greatest difference of a number to the text run alone, and least cosine")
    for form in FORMS:
        print(moved(form, some))
    print(f"nDCG@10 of {smallest.name}")
    for form in FORMS:
        print(batch_figures(form, smallest))
    if chosen.rates:
        return 0
    print(f"| set | questions | documents | {' | '.join(map(shown, FORMS))} |\n{'| --- ' * (3 + len(FORMS))}|")
    for corpus in corpora:
        print(one_set(corpus, chosen.most), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
