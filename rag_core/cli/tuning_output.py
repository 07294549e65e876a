"""What `sweep` and `tune` write: rows as CSV and Parquet, a spec file, documents and lines of text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rag_core.files import write_whole


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    """The rows as CSV with a header, numbers in full precision."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, text.getvalue())


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    """The rows as a Parquet file; a column of mixed kinds is written as text."""
    import pyarrow
    import pyarrow.parquet

    columns = {name: [row[name] for row in rows] for name in rows[0]}
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(columns), sink)
    write_whole(path, sink.getvalue().to_pybytes())


def sweep_text(document: dict[str, Any]) -> list[str]:
    """A sweep in a few lines: how much, the best row, the optimum."""
    left = f", {document['left_out']} impossible left out" if document["left_out"] else ""
    lines = [
        f"{len(document['rows']):,} settings of {document['stage']} on {document['queries_total']} queries{left} · "
        f"relevant means grade ≥ {document['min_grade']}",
        f"best of the grid   {_shown(document['best'] or {})}",
    ]
    if document["optimum"] is not None:
        lines.append(f"optimum            {_shown(document['optimum'])}")
    return lines


def _shown(row: dict[str, Any]) -> str:
    return "  ".join(f"{name} {_value(value)}" for name, value in row.items() if value is not None)


def _value(value: Any) -> str:
    """One value as a person reads it; a model's parameters by how many features they weigh."""
    if isinstance(value, Mapping):
        return f"of {len(value.get('features', value))} features"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def tune_json(choice: Any, found: Any, crossed: Any, dev: list[Any], test: list[Any], seed: int) -> dict[str, Any]:
    """A choice and its judgement as one document."""
    from rag_core.spec import dump_pipeline
    from rag_core.tune.judgement import judgement_json

    return {
        "objective": found.objective,
        "chosen": choice.settings,
        "pipeline": dump_pipeline(choice.pipeline),
        "baseline": {"name": choice.baseline.label, "k": choice.baseline_k, "pipeline": dump_pipeline(choice.baseline)},
        "dev": {"queries": len(dev), found.objective: choice.value, "baseline": choice.baseline_value},
        "folds": None if crossed is None else {**asdict(crossed), "gain": crossed.gain},
        "test": judgement_json(found),
        "queries": {"dev": [case.query.id for case in dev], "test": [case.query.id for case in test]},
        "seed": seed,
        "sentence": judgement_json(found)["sentence"],
    }


def tune_text(document: dict[str, Any]) -> Iterator[str]:
    """The choice in a few lines."""
    dev, name = document["dev"], document["objective"]
    yield f"chosen on {dev['queries']} dev queries: {_shown(document['chosen'])}"
    yield f"  dev {name} {dev[name]:.3f}, {document['baseline']['name']} {dev['baseline']:.3f}"
    if document["folds"] is not None:
        crossed = document["folds"]
        yield (
            f"  {crossed['folds']} folds over dev: {crossed['value']:.3f}, "
            f"best fixed k {crossed['baseline_value']:.3f} ({crossed['gain']:+.3f})"
        )
    yield document["sentence"]


def write_pipeline(path: Path, pipeline: Any) -> None:
    """The pipeline as a spec file, JSON or block YAML by the file's ending."""
    from rag_core.export import export_spec

    write_whole(path, export_spec(pipeline, "json" if path.suffix == ".json" else "yaml"))


def promise_document(
    made: Any, held_out: Any, looks: int, dev: list[Any], test: list[Any], asked: Any
) -> dict[str, Any]:
    """A promised recall with what became of it on the held-out queries; `test` is null where nothing was promised."""
    from rag_core.spec import dump_pipeline
    from rag_core.tune.promise import promise_json, sentence

    return {
        **promise_json(made),
        "pipeline": None if made.pipeline is None else dump_pipeline(made.pipeline),
        "test": None if held_out is None else {**asdict(held_out), "looks": looks},
        "queries": {"dev": [case.query.id for case in dev], "test": [case.query.id for case in test]},
        "min_grade": asked.min_grade,
        "seed": asked.seed,
        "sentence": sentence(made, held_out, looks),
    }


def search_json(found: Any, sampler: str, study: str | None) -> dict[str, Any]:
    """What a search found: the baseline first, then the rows that no other beats."""
    return {
        "objectives": list(found.objectives),
        "sampler": sampler,
        "study": study,
        "trials": len(found.rows),
        "feasible": sum(row.feasible for row in found.rows),
        "table": [{"name": row.name, **row.settings, **row.values, "feasible": row.feasible} for row in found.table],
    }


def search_text(found: Any) -> Iterator[str]:
    """The table of a search, a line a row."""
    yield f"{len(found.rows)} trials, {len(found.front)} that no other beats"
    for row in found.table:
        settings = "" if row is found.baseline else f"   {_shown(row.settings)}"
        yield f"  {row.name:<24} {_shown(row.values)}{settings}"
