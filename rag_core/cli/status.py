"""`doctor`: is everything reachable and whole; `stages`: every stage with its settings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.output import emit
from rag_core.errors import SurroundingsError, WinnowError
from rag_core.workspace import resolve_workspace


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str


def doctor(
    workspace: Path | None = typer.Option(None, "--workspace", help="Folder of labels, indexes and runs."),
    json: bool = typer.Option(False, "--json", help="One JSON document on stdout."),
) -> None:
    """Look whether everything is reachable and whole; exit code 3 if something is not."""
    checks = list(_checks(resolve_workspace(workspace)))
    if json:
        emit({"ok": all(check.ok for check in checks), "checks": [vars(check) for check in checks]})
    else:
        for check in checks:
            typer.echo(f"{'ok  ' if check.ok else 'FAIL'}  {check.name}: {check.detail}")
    broken = [check.name for check in checks if not check.ok]
    if broken and not json:
        raise SurroundingsError(
            f"{len(broken)} of {len(checks)} checks failed ({', '.join(broken)}), expected all to pass"
        )
    if broken:
        raise typer.Exit(3)


def _checks(workspace: Path) -> Iterator[Check]:
    """Every check in turn; one that raises is a failed check with the error's sentence."""
    looks: dict[str, Callable[[], str]] = {
        "python": lambda: sys.version.split()[0],
        "packages": _packages,
        "eval sets": lambda: _eval_sets(workspace),
        "pipelines": _pipelines,
        "model": _model,
        "labels": lambda: _labels(workspace),
        "collections": lambda: _collections(workspace),
        "result cache": lambda: _result_cache(workspace),
    }
    for name, look in looks.items():
        try:
            yield Check(name, True, look())
        except (WinnowError, OSError, ImportError) as error:
            yield Check(name, False, " ".join(str(error).split()))


def _packages() -> str:
    return ", ".join(f"{name} {installed(name)}" for name in ("streamlit", "numpy", "sqlalchemy", "chromadb"))


def _eval_sets(workspace: Path) -> str:
    from rag_core.evaluate.sets import folders, read_set

    counts = {name: len(read_set(folder).cases) for name, folder in folders(workspace).items()}
    return ", ".join(f"{name} ({count} queries)" for name, count in counts.items())


def _pipelines() -> str:
    from rag_core.spec import read_pipeline, shipped_names

    return ", ".join(read_pipeline(name).label for name in shipped_names())


def _model() -> str:
    """The bundled embedding model answers, and is the file it should be."""
    from rag_core.index.embed import BundledEmbedder

    embedder = BundledEmbedder()
    embedder.embed(["a question"])
    return f"{embedder.name}, {embedder.dimension} dimensions"


def _collections(workspace: Path) -> str:
    """Every collection read whole."""
    from rag_core.index.handles import check_collections

    found = check_collections(workspace)
    broken = next(((name, problem) for name, problem in found.items() if problem), None)
    if broken is not None:
        raise SurroundingsError(f"{broken[0]}: {broken[1]}")
    return ", ".join(found) or f"none yet in {workspace}"


def _result_cache(workspace: Path) -> str:
    """How often the app over this workspace had a result at hand."""
    from rag_core.cache import noted_counts

    counts = noted_counts(workspace)
    if counts.hit_rate is None:
        return "nothing was asked yet"
    return f"hit rate {counts.hit_rate:.3f} ({counts.hits} hits, {counts.misses} misses, {counts.entries} entries)"


def _labels(workspace: Path) -> str:
    """Opening the store runs SQLite's own check; a workspace without labels is whole too."""
    from rag_core.store.database import has_store, open_store
    from rag_core.store.labels import LabelStore

    if not has_store(workspace):
        return f"none yet in {workspace}"
    with open_store(workspace) as store:
        if store.unwritable:
            raise SurroundingsError(store.unwritable)
        labels = LabelStore(store)
        counts = {name: labels.stats(name).labels for name in labels.eval_sets()}
    return ", ".join(f"{name} ({count})" for name, count in counts.items()) or f"none yet in {workspace}"


def stages(
    markdown: bool = typer.Option(False, "--markdown", help="As the table of docs/stages.md."),
    json: bool = typer.Option(False, "--json", help="One JSON document on stdout."),
) -> None:
    """Every stage with its settings, defaults and ranges."""
    table = list(stage_table())
    if json:
        emit({"stages": table})
        return
    for stage in table:
        typer.echo(f"### {stage['name']}\n{stage['help']}\n" if markdown else f"{stage['name']}: {stage['help']}")
        if markdown:
            typer.echo("| setting | default | range | meaning |\n| --- | --- | --- | --- |")
        for name, row in stage["settings"].items():
            cells = (f"`{name}`", f"`{row['default']}`", row["range"], row["help"])
            typer.echo(
                f"| {' | '.join(cells)} |"
                if markdown
                else f"  {name} = {row['default']}  ({row['range']}) {row['help']}"
            )
        if markdown:
            typer.echo("")


def stage_table() -> Iterator[dict[str, Any]]:
    """Every stage as plain values: name, kind, first line of its docstring, settings."""
    from rag_core.spec import STAGES, dump_stages, setting_fields, stage_class

    for name in sorted(STAGES):
        cls = stage_class(name)
        defaults = dump_stages(cls())[0][name]
        settings = {
            key: {"default": defaults[key], "range": _range(field.metadata), "help": field.metadata.get("help", "")}
            for key, field in setting_fields(cls).items()
        }
        summary = (cls.__doc__ or "").strip().splitlines()[0]
        yield {"name": name, "kind": cls.kind, "help": summary, "settings": settings}


def _range(meta: Any) -> str:
    if meta.get("choices"):
        return ", ".join(meta["choices"])
    low, high = meta.get("low"), meta.get("high")
    if low is None and high is None:
        return "any"
    return f"at least {low}" if high is None else f"{low} to {high}"
