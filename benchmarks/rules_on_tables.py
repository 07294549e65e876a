"""What rules do to result lists: the demo rulebook, and parametric tables built from a freely licensed game's data.

    python -m benchmarks.rules_on_tables [--split test] [--shared FOLDER] [--lists]

Mean SetP and SetR over the queries with anything relevant, for the first 15 without rules, the same 15 with rules, and
rules with refill to 15; by tag of the query. `--lists` names the chunks wrongly dropped and wrongly kept. The second
part needs the game's files under WINNOW_SHARED (or ../shared) and is skipped without them.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.parts.game_tables import FAMILIES, chunks_of, questions_on
from rag_core.errors import InputError
from rag_core.eval_sets.reading import load_set
from rag_core.filters.query_must import QueryMust
from rag_core.index.collection import open_collection
from rag_core.index.embed import BundledEmbedder
from rag_core.index.ingest import ingest_chunks
from rag_core.index.search import CollectionIndex
from rag_core.index.shipped import FILE, ShippedVectors
from rag_core.measure.scores import QueryScores, score
from rag_core.retrieve.dense import Dense
from rag_core.retrieve.requery import Requery
from rag_core.rules import Rule, decide, read_rule
from rag_core.rules.proposals import check_proposals, template_proposals
from rag_core.rules.templates import parse_families, shipped_families
from rag_core.stage import Pipeline
from rag_core.types import Candidates, Case

K = 15


@dataclass(frozen=True)
class Row:
    """One way to fill the list."""

    name: str
    pipeline: Callable[[CollectionIndex], Pipeline]


ROWS = (
    Row("first 15, no rules", lambda index: Pipeline((Dense(depth=K, index=index),))),
    Row("first 15, rules", lambda index: Pipeline((Dense(depth=K, index=index), QueryMust()))),
    Row("rules, refill (deepen)", lambda index: Pipeline((Dense(depth=K, index=index), Requery(k=K)))),
    Row("rules, prefilter", lambda index: Pipeline((Dense(depth=K, index=index), Requery(k=K, strategy="prefilter")))),
)


def measured(index: CollectionIndex, cases: Sequence[Case], min_grade: int) -> dict[str, list[tuple[Case, Candidates]]]:
    """Every way's answer to every query."""
    found: dict[str, list[tuple[Case, Candidates]]] = {}
    for row in ROWS:
        pipeline = row.pipeline(index)
        found[row.name] = [(case, pipeline(Candidates(case.query))) for case in cases]
    return found


def scored(case: Case, after: Candidates, min_grade: int) -> QueryScores:
    return score([hit.chunk.id for hit in after.hits], case.grades, min_grade=min_grade)


def groups_of(cases: Sequence[Case]) -> Iterator[tuple[str, set[str]]]:
    """(name, query ids): all, then by tag."""
    yield "all", {case.query.id for case in cases}
    tags = defaultdict(set)
    for case in cases:
        for tag in case.query.tags:
            tags[tag].add(case.query.id)
    yield from sorted(tags.items())


def show(found: Mapping[str, list[tuple[Case, Candidates]]], cases: Sequence[Case], min_grade: int) -> None:
    width = max(len(name) for name, _ in groups_of(cases)) + 2
    print(f"{'queries':<{width}}{'n':>4}" + "".join(f"{row.name:>26}" for row in ROWS) + "   (SetP SetR kept)")
    for name, ids in groups_of(cases):
        cells, count = [], 0
        for row in ROWS:
            values = [scored(case, after, min_grade) for case, after in found[row.name] if case.query.id in ids]
            some = [one for one in values if one.scored]
            count = len(some)
            if some:
                means = [fmean(one.values[measure] or 0.0 for one in some) for measure in ("SetP", "SetR")]
                cells.append(f"{means[0]:.3f} {means[1]:.3f} {fmean(one.kept for one in some):5.1f}")
        print(f"{name:<{width}}{count:>4}" + "".join(f"{cell:>26}" for cell in cells))
    rounds = Counter(after.steps[-1].facts["rounds"] for _, after in found["rules, refill (deepen)"])
    print("rounds of deepen: " + ", ".join(f"{count} x {rounds[count]}" for count in sorted(rounds)))
    added = sorted(after.steps[-1].facts["milliseconds"] for _, after in found["rules, refill (deepen)"])
    print(f"milliseconds deepen added: median {added[len(added) // 2]:.2f}, most {added[-1]:.2f}")


def mistakes(index: CollectionIndex, cases: Sequence[Case], min_grade: int) -> tuple[list[str], list[str]]:
    """(wrongly dropped, wrongly kept) over the whole corpus: labelled relevant and not admitted; ruled, admitted, 0."""
    dropped, kept = [], []
    rules = {chunk.id: rule for chunk in index.snapshot.chunks if isinstance(rule := read_rule(chunk.query_must), Rule)}
    for case in cases:
        for identity, grade in case.grades.items():
            if identity not in rules:
                continue
            admitted = decide(rules[identity], case.query.text).satisfied
            if grade >= min_grade and not admitted:
                dropped.append(f"{case.query.id}: {identity} (grade {grade})")
            if grade < min_grade and admitted:
                kept.append(f"{case.query.id}: {identity}")
    return dropped, kept


def show_mistakes(index: CollectionIndex, cases: Sequence[Case], min_grade: int, in_full: bool) -> None:
    for name, found in zip(("wrongly dropped", "wrongly kept"), mistakes(index, cases, min_grade), strict=True):
        print(f"{name}: {len(found)}")
        for line in found if in_full else ():
            print(f"  {line}")


def rulebook(folder: Path, split: str, in_full: bool) -> None:
    eval_set = load_set("rulebook")
    assert eval_set.corpus is not None
    from rag_core.corpus import load

    chunks = [chunk for document in load([eval_set.corpus], "jsonl").documents for chunk in document.chunks]
    embedder = ShippedVectors(BundledEmbedder(), eval_set.corpus.with_name(FILE))
    ingest_chunks(chunks, "rulebook", folder, embedder)
    index = CollectionIndex(open_collection(folder, "rulebook"))
    cases = eval_set.split(split).cases if split else eval_set.cases
    print(f"demo rulebook, {len(chunks)} chunks, {len(cases)} queries of split {split or 'all'}")
    show(measured(index, cases, eval_set.min_grade), cases, eval_set.min_grade)
    show_mistakes(index, cases, eval_set.min_grade, in_full)


def tables(data: Path, folder: Path, in_full: bool) -> None:
    chunks = chunks_of(data)
    families = (*shipped_families(), *parse_families(FAMILIES, "benchmark"))
    cases = questions_on(chunks)
    checked = check_proposals(template_proposals(chunks, families), chunks, cases, families=families)
    ruled = [replace(chunk, query_must=_mapping(checked.accepted.get(chunk.id))) for chunk in chunks]
    ingest_chunks(ruled, "tables", folder, BundledEmbedder())
    index = CollectionIndex(open_collection(folder, "tables"))
    print(f"\ntables of a game, {len(chunks)} chunks, {len(checked.accepted)} with rules, {len(cases)} queries")
    for refusal in checked.refused[:5]:
        print(f"  refused {refusal.chunk_id}: {refusal.reason}")
    show(measured(index, cases, 1), cases, 1)
    show_mistakes(index, cases, 1, in_full)


def _mapping(rule: Rule | None) -> dict[str, Any] | None:
    return None if rule is None else rule.as_mapping()


def shared_folder(chosen: str | None) -> Path:
    """Where the game's files are, or an InputError that says how to name them."""
    root = Path(chosen or os.environ.get("WINNOW_SHARED") or Path(__file__).resolve().parents[2] / "shared")
    data = root / "data" / "basic-fantasy-rpg"
    if not data.is_dir():
        raise InputError(f"{data} is not there; name the folder that holds data/ with --shared or WINNOW_SHARED")
    return data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--split", default="test", help="of the rulebook's queries; empty: all")
    parser.add_argument("--shared")
    parser.add_argument("--lists", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rulebook(Path(folder), options.split, options.lists)
        try:
            tables(shared_folder(options.shared), Path(folder), options.lists)
        except InputError as error:
            print(f"\ntables of a game: skipped, {error}")


if __name__ == "__main__":
    main()
