"""`labels audit`: which labels to look at again, or a blind sample of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from rag_core.cli.label_store import EvalSet, opened, say
from rag_core.cli.options import Json, Workspace
from rag_core.workspace import resolve_workspace


def audit_labels(
    eval_set: str = EvalSet,
    top: int = typer.Option(50, "--top", min=1, help="How many of the most suspect labels."),
    sample: int = typer.Option(
        0, "--sample", min=0, help="Instead: so many labels at random, to be given again blind."
    ),
    collection: str | None = typer.Option(None, "--collection", help="Search this collection."),
    depth: int = typer.Option(200, "--depth", min=1, max=10000, help="Candidates per query of a live set."),
    seed: int = typer.Option(0, "--seed", help="Seed of the sample."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """The labels that their texts, their like or their distance speak against, the most suspect first.

    Labels are those of the set's files with people's laid over them; a suspicion is no correction.
    Example: python -m rag_core labels audit --eval-set rulebook --top 20 --json
    """
    from rag_core.judged.bench import open_bench
    from rag_core.labelling.audit import audit, blind_sample, labelled
    from rag_core.measure.experiment import with_labels

    bench = open_bench(eval_set, None, collection, resolve_workspace(workspace), None, None, None, depth)
    with opened(workspace, stand_in=True) as labels:
        found = labelled(with_labels(bench.cases, labels.current(bench.name)))
    if sample:
        rows: list[dict[str, Any]] = [
            {"query_id": one.query_id, "chunk_id": one.chunk_id} for one in blind_sample(found, sample, seed)
        ]
    else:
        rows = [
            {
                "query_id": one.label.query_id,
                "chunk_id": one.label.chunk_id,
                "grade": one.label.grade,
                "kind": one.kind,
                "suspicion": one.suspicion,
                "against": one.against,
            }
            for one in audit(found, bench.min_grade)[:top]
        ]
    words = [f"{len(found)} labels of {bench.name}"] + ["  " + "  ".join(map(_cell, row.values())) for row in rows]
    say({"eval_set": bench.name, "labels": len(found), "rows": rows}, json, "\n".join(words))


def _cell(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
