"""What a project of a stranger's corpus is worth before and after it was calibrated, on questions held out.

Run: python -m benchmarks.calibrated [--sets NAME ...] [--most 1000]

Each labelled set of the shared data (WINNOW_SHARED, else ../shared) becomes a project in a temporary folder; half of
its questions, by the product's own split, are dev, the others held out. Rows: vectors with the first 15 (before), with
the best fixed k, words and vectors with the best fixed k, what `calibrate --take all` makes of words, vectors and the
adaptive cut (calibrated), and rules with the learned filter, as dev proposes it, behind the calibrated search; rules
are those that slots propose and dev questions do not contradict, as `rules propose --apply` stores them. Figures are
means over the held-out questions: SetP, SetR, SetF of what is kept, nDCG@10 and R@100 of the search, and the difference
of SetF and R@100 from before with a 95 % interval. Of a larger corpus `--most` chunks are taken, the labelled ones
among them. A line a row is written as it is known.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from benchmarks import hybrid_on_real_data
from benchmarks.parts.real_lists import DATA, Corpus, excerpts, vectors
from benchmarks.parts.rulebooks import RULEBOOKS, rulebook
from rag_core.errors import InputError
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cutoff import TopK
from rag_core.filters.learned_filter import LearnedFilter
from rag_core.filters.query_must import QueryMust
from rag_core.index.embed import BundledEmbedder
from rag_core.index.store import embedded_text, text_hash
from rag_core.measure.measures import SET_MEASURES, parse_measure
from rag_core.measure.significance import compare, mean_interval
from rag_core.project.calibrate import Calibration, calibrate
from rag_core.project.choosing import best_on_dev
from rag_core.project.project import open_project
from rag_core.project.rules import apply
from rag_core.project.session import Session, front_of
from rag_core.retrieve.dense import Dense
from rag_core.retrieve.hybrid import Hybrid
from rag_core.rules import slots
from rag_core.stage import Pipeline
from rag_core.types import Chunk

SETS: dict[str, Callable[[], Corpus]] = {
    **hybrid_on_real_data.SETS,
    "chunking-evaluation": excerpts,
    **{name: partial(rulebook, name) for name in RULEBOOKS},
}
RANKED = (*SET_MEASURES, parse_measure("nDCG@10"), parse_measure("R@100"))
KEPT = [measure.name for measure in SET_MEASURES]


def smaller(corpus: Corpus, most: int) -> Corpus:
    """The corpus with so many chunks: all that have a label, and of the others every n-th."""
    known = {id_ for grades in corpus.grades.values() for id_ in grades}
    others = [id_ for id_ in corpus.documents if id_ not in known]
    room = max(1, most - len(known & corpus.documents.keys()))
    taken = known | set(others[:: max(1, -(-len(others) // room))])
    return replace(corpus, documents={id_: text for id_, text in corpus.documents.items() if id_ in taken})


def project_of(name: str, corpus: Corpus, workspace: Path) -> Session:
    """The set as a project of a workspace, embedded."""
    folder = workspace / "eval_sets" / name
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text(f"version: 1\nname: {name}\n")
    chunks = [
        {"id": id_, "title": corpus.titles.get(id_, ""), "text": text} for id_, text in corpus.documents.items() if text
    ]
    asked = [
        {"id": id_, "query": " ".join(text.split())}
        for id_, text in corpus.queries.items()
        if any(grade > 0 for grade in corpus.grades.get(id_, {}).values())
    ]
    for file, rows in (("corpus.jsonl", chunks), ("queries.jsonl", asked)):
        (folder / file).write_text("\n".join(map(json.dumps, rows)))
    known = {row["id"] for row in asked}
    labels = [(id_, chunk, grade) for id_, row in corpus.grades.items() if id_ in known for chunk, grade in row.items()]
    (folder / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"{id_}\t{chunk}\t{grade}\n" for id_, chunk, grade in labels)
    )
    texts = [embedded_text(Chunk(row["id"], row["title"], row["text"])) for row in chunks]
    made = {"model": BundledEmbedder().name, "hashes": [*map(text_hash, texts)], "vectors": vectors(texts)}
    np.savez(folder / "vectors.npz", **made)  # embedded once, whatever benchmark did it
    session = Session(open_project(name, workspace))
    session.refresh()
    return session


def best_fixed(session: Session, source: Dense | Hybrid) -> Pipeline:
    """A search with the k that is best on dev."""
    return best_on_dev(session, Pipeline((source, TopK())), 1, crossed=False).pipeline


def ruled(session: Session) -> int:
    """Store the rules that slots propose where no dev question loses an answer by them; how many."""
    chunks = session.source.chunks
    families = [slots.with_policy(one, "proposed", session.dev, session.min_grade) for one in slots.propose(chunks)]
    safe = slots.safe(families, [slots.check(one, session.dev, min_grade=session.min_grade) for one in families])
    stored = slots.rules_to_store(safe, chunks, False)
    if stored:
        apply(session.project, stored, "slots")
    return len(stored)


def rows_of(session: Session) -> tuple[dict[str, Pipeline], Calibration]:
    """Every row's pipeline as the dev questions make it."""
    made = calibrate(session, Pipeline((Hybrid(), AdaptiveGap())))
    calibrated = made.taken([one.name for one in made.proposals])
    behind = Pipeline((*front_of(calibrated).stages, QueryMust(), LearnedFilter()))
    try:
        learned = best_on_dev(session, behind, 2).pipeline
    except InputError:  # too few labels to train on: the shipped prior stands in
        learned = behind
    return {
        "before": Pipeline((Dense(), TopK())),
        "best fixed k": best_fixed(session, Dense()),
        "hybrid, best fixed k": best_fixed(session, Hybrid()),
        "calibrated": calibrated,
        "rules + learned filter": learned,
    }, made


def lines_of(name: str, session: Session) -> list[str]:
    """The set's rows of the table, and what calibrating proposed."""
    rules = ruled(session)
    pipelines, made = rows_of(session)
    held, lines, values = session.held_out, [], {}
    for row, pipeline in pipelines.items():
        kept, search = session.measure([pipeline, front_of(pipeline)], held, measures=RANKED)
        values[row] = {one.name: (kept if one.name in KEPT else search).values(one.name) for one in RANKED}
        cells = []
        for measure in values[row].values():
            known = [one for one in measure if one is not None]
            low, high, _ = mean_interval(known)
            cells.append(f"{sum(known) / len(known):.3f} [{low:.3f}, {high:.3f}]")
        for measure in ("SetF", "R@100"):
            found = compare(values["before"][measure], values[row][measure], measure=measure)
            cells.append("" if row == "before" else f"{found.delta:+.3f} [{found.low:+.3f}, {found.high:+.3f}]")
        lines.append(f"| {name} | {row} | {' | '.join(cells)} |")
    stages = " → ".join(f"{stage.name} {stage.settings()}" for stage in pipelines["calibrated"].stages)
    lines.append(
        f"<!-- {name}: {len(session.dev)} dev, {len(held)} held out; {rules} rules; {stages}; left {made.left} -->"
    )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--most", type=int, default=1000)
    options = parser.parse_args()
    if not DATA.is_dir():
        print(f"skipped: {DATA.name} of the shared data is not there", file=sys.stderr)
        return 0
    heads = [measure.name for measure in RANKED]
    print(f"| set | pipeline | {' | '.join(heads)} | SetF − before | R@100 − before |", "| --- " * 9 + "|", sep="\n")
    for name in options.sets:
        start, corpus = perf_counter(), smaller(SETS[name](), options.most)
        with TemporaryDirectory() as folder:
            session = project_of(name, corpus, Path(folder))
            try:
                lines = lines_of(name, session)
            except InputError as error:
                lines = [f"| {name} | {error} |" + " |" * 7]
            session.close()
        print(*lines, sep="\n", flush=True)
        print(f"{name}: {len(corpus.documents)} chunks, {perf_counter() - start:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
