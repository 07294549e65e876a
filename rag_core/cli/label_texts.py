"""What of `labels` needs texts: Ragas files, queries by their text, `remap` after a new ingest, and TREC runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rag_core.cli.label_store import EvalSet, existing, opened, say
from rag_core.cli.options import Json, Split, Workspace
from rag_core.workspace import resolve_workspace

if TYPE_CHECKING:
    from rag_core.store.exchange.line import LabelLine
    from rag_core.store.remap import Remapped

RAGAS = "ragas"
LISTED = 20  # labels that a remap prints


@dataclass(frozen=True)
class Texts:
    """Texts of an eval set's queries and of the chunks it is labelled on, by id."""

    queries: Mapping[str, str]
    chunks: Mapping[str, str]
    min_grade: int

    def write_ragas(self, lines: Sequence[LabelLine]) -> str:
        """The relevant chunks of each query, as Ragas has them."""
        from rag_core.store.exchange.ragas import write_ragas

        return write_ragas(lines, self.queries, self.chunks, self.min_grade)

    def read_ragas(self, text: str, source: str) -> tuple[list[LabelLine], int]:
        """The labels of a Ragas file, and how many lines ask what the eval set does not."""
        from rag_core.store.exchange.ragas import read_ragas

        return read_ragas(text, source, self.queries, self.chunks)

    def by_query_text(self, lines: Sequence[LabelLine]) -> list[LabelLine]:
        """The labels with queries named by their text."""
        from rag_core.store.exchange.quepid import renamed

        return renamed(lines, self.queries)

    def by_query_id(self, lines: Sequence[LabelLine]) -> list[LabelLine]:
        """The labels with queries named by their id, where the text is one of the set's."""
        from rag_core.store.exchange.quepid import renamed

        return renamed(lines, {text: query_id for query_id, text in self.queries.items()})


def texts_of(eval_set: str, workspace: Path | None, collection: str | None) -> Texts:
    """The texts of an eval set and of its own chunks, or of a collection's."""
    from rag_core.eval_sets.facts import chunk_texts
    from rag_core.eval_sets.reading import load_set

    folder = resolve_workspace(workspace)
    found = load_set(eval_set, folder)
    chunks = _collection_texts(folder, collection) if collection else chunk_texts(found)
    return Texts({case.query.id: case.query.text for case in found.cases}, chunks, found.min_grade)


def _collection_texts(folder: Path, collection: str) -> dict[str, str]:
    from rag_core.index.collection import open_collection

    return {chunk.id: chunk.text for chunk in open_collection(folder, collection).chunks}


def remap_labels(
    eval_set: str = EvalSet,
    collection: str = typer.Option(..., "--collection", help="The collection as it is after the ingest."),
    before: Path | None = typer.Option(None, "--before", help="The corpus as it was (JSONL with id and text)."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """After a new ingest: which labels meet the same chunk, which moved, were split, or are lost (kept as orphans).

    Texts that the labels were given on come from --before and from the eval set's own corpus or lists.
    Example: python -m rag_core labels remap --eval-set demo --collection demo --json
    """
    from rag_core.store.keys import text_hash
    from rag_core.store.remap import SAME, counts, remap

    folder = resolve_workspace(workspace)
    chunks = _collection_texts(folder, collection)
    old = {text_hash(text): text for text in _old_texts(eval_set, folder, before) if text}
    with opened(workspace) as labels:
        found = remap(labels.labels(existing(labels, eval_set)), chunks, old)
    rows = [_row(one) for one in found]
    facts = {"eval_set": eval_set, "collection": collection, "counts": counts(found), "labels": rows}
    changed = [row for row in rows if row["outcome"] != SAME]
    words = [", ".join(f"{count} {outcome}" for outcome, count in counts(found).items())]
    words += [f"  {row['outcome']}: {row['query_id']} {row['chunk_id']}{_now(row)}" for row in changed[:LISTED]]
    words += [f"  … and {len(changed) - LISTED} more"] if len(changed) > LISTED else []
    say(facts, json, "\n".join(words))


def _old_texts(eval_set: str, folder: Path, before: Path | None) -> list[str]:
    from rag_core.corpus.jsonl import read_jsonl
    from rag_core.eval_sets.facts import chunk_texts
    from rag_core.eval_sets.reading import folders, load_set
    from rag_core.files import read_text

    texts = list(chunk_texts(load_set(eval_set, folder)).values()) if eval_set in folders(folder) else []
    return texts if before is None else [*texts, *(chunk.text for chunk in read_jsonl(read_text(before), before.name))]


def _row(one: Remapped) -> dict[str, Any]:
    return {
        "query_id": one.label.query_id,
        "chunk_id": one.label.chunk_id,
        "annotator": one.label.annotator,
        "grade": one.label.grade,
        "outcome": one.outcome,
        "chunk_ids": list(one.chunk_ids),
    }


def _now(row: Mapping[str, Any]) -> str:
    return f" → {', '.join(row['chunk_ids'][:5])}" if row["chunk_ids"] else ""


def write_run_file(
    eval_set: str = EvalSet,
    pipeline: str = typer.Option("fixed-15", "--pipeline", "-p", help="Spec file, inline JSON or a shipped name."),
    out: Path = typer.Option(..., "--out", help="The TREC run to write whole."),
    collection: str | None = typer.Option(None, "--collection", help="Search this collection."),
    split: str | None = Split,
    depth: int = typer.Option(200, "--depth", min=1, max=10000, help="Candidates per query of a live set."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Write what a pipeline keeps as a TREC run; with `labels export --format trec` other tools give our figures.

    Example: python -m rag_core labels run-file --eval-set recorded-combat -p query-must --out query-must.run
    """
    from rag_core.cli.replay import laid_over
    from rag_core.files import write_whole
    from rag_core.judged.bench import open_bench
    from rag_core.measure.experiment import run
    from rag_core.measure.trec_run import write_run
    from rag_core.store.exchange.trec import escape_id

    bench = open_bench(eval_set, None, collection, resolve_workspace(workspace), split, None, None, depth)
    report = run(bench.cases, laid_over(pipeline), bench.min_grade)
    text = write_run(report, escape_id)
    write_whole(out, text)
    lines = text.count("\n")
    facts = {
        "eval_set": eval_set,
        "pipeline": report.name,
        "queries": len(bench.cases),
        "lines": lines,
        "out": str(out),
    }
    say(facts, json, f"{report.name}: {lines} chunks kept for {len(bench.cases)} queries → {out}")
