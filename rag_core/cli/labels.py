"""`labels`: take labels out, bring them in, take an import back, count them, compare annotators."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rag_core.cli.agreement import label_agreement
from rag_core.cli.label_audit import audit_labels
from rag_core.cli.label_judge import judge_agreement, judge_labels
from rag_core.cli.label_store import EvalSet, existing, opened, say
from rag_core.cli.label_texts import remap_labels, write_run_file
from rag_core.cli.options import Json, Workspace
from rag_core.cli.sessions import labels_of_project
from rag_core.errors import InputError
from rag_core.workspace import resolve_workspace

if TYPE_CHECKING:
    from rag_core.store.exchange.line import LabelLine
    from rag_core.store.exchange.planning import Imported, ImportPlan

labels_app = typer.Typer(help="Labels: export, import, undo an import, stats, agreement.", no_args_is_help=False)

Raw = typer.Option(False, "--raw", help="CSV without the apostrophe that keeps a cell from running as a formula.")
Format = typer.Option(
    None, "--format", help="jsonl, trec, beir, csv, quepid, srw or ragas; else told by the file's ending."
)
ByText = typer.Option(False, "--query-texts", help="quepid, srw: queries by their text instead of their id.")
Collection = typer.Option(None, "--collection", help="ragas: where the chunks' texts are; else the eval set's own.")


@labels_app.command("export")
@labels_of_project
def export_labels(
    eval_set: str = EvalSet,
    format_name: str | None = Format,
    out: Path | None = typer.Option(None, "--out", help="File to write whole; stdout without it."),
    annotator: str | None = typer.Option(None, "--annotator", help="Only this person's labels."),
    query_texts: bool = ByText,
    collection: str | None = Collection,
    raw: bool = Raw,
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Write the labels that count now. JSONL keeps everything; trec and beir hold one grade per query and chunk.

    Example: python -m rag_core labels export --eval-set demo --format trec --out demo.qrels
    """
    from rag_core.cli import label_texts
    from rag_core.files import write_whole
    from rag_core.store.exchange.formats import format_of, known_format, lines_to_export, write_labels

    if json and out is None:
        raise InputError("--json and the labels both want stdout, expected --out FILE with --json")
    by_text = format_name == label_texts.RAGAS
    chosen = format_name if by_text else known_format(format_name or (format_of(out.name) if out else "jsonl"))
    with opened(workspace) as labels:
        plain = "trec" if by_text else str(chosen)
        lines, left_out = lines_to_export(labels, existing(labels, eval_set), annotator, plain)
    if by_text or query_texts:
        texts = label_texts.texts_of(eval_set, workspace, collection)
        text = texts.write_ragas(lines) if by_text else write_labels(texts.by_query_text(lines), plain, raw)
    else:
        text = write_labels(lines, plain, raw)
    if out is None:
        sys.stdout.buffer.write(text.encode("utf-8"))
        sys.stdout.flush()
    else:
        write_whole(out, text)
    facts = {"eval_set": eval_set, "format": chosen, "out": str(out or ""), "labels": len(lines), "left_out": left_out}
    note = f", {left_out} unsure left out" if left_out else ""
    say(facts, json, f"{len(lines)} labels{note}" + (f" → {out}" if out else ""), to_stderr=out is None)


@labels_app.command("import")
@labels_of_project
def import_labels(
    file: Path = typer.Argument(..., help="The label file."),
    eval_set: str = EvalSet,
    format_name: str | None = Format,
    annotator: str = typer.Option("import", "--annotator", help="Whose labels these are where the file does not say."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only say what is new, equal and conflicting."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Let conflicting labels take the file's grade."),
    query_texts: bool = ByText,
    collection: str | None = Collection,
    raw: bool = Raw,
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Bring labels in as one batch; conflicting ones stay as they are unless --overwrite is given.

    Example: python -m rag_core labels import demo.qrels --eval-set demo --annotator expert --dry-run
    """
    from rag_core.cli import label_texts
    from rag_core.files import read_text
    from rag_core.project import deeds
    from rag_core.project.project import open_project
    from rag_core.store.exchange.formats import format_of, known_format, read_labels
    from rag_core.store.exchange.planning import Imported, apply_import, plan_import

    place = resolve_workspace(workspace)
    eval_set, strangers = open_project(eval_set, place).labels, 0
    if format_name == label_texts.RAGAS:
        lines, strangers = label_texts.texts_of(eval_set, workspace, collection).read_ragas(read_text(file), file.name)
    else:
        chosen = known_format(format_name or format_of(file.name))
        lines = read_labels(read_text(file), chosen, file.name, raw)
    if query_texts:
        lines = label_texts.texts_of(eval_set, workspace, collection).by_query_id(lines)
    with opened(workspace, create=not dry_run, stand_in=dry_run) as labels:
        plan, done = plan_import(labels, eval_set, lines, annotator), Imported("", 0, "")
        if not dry_run:
            kind = deeds.import_kind(deeds.person_of_this_machine(), plan.annotators)
            with deeds.command(kind, eval_set, place, ", ".join(plan.annotators)) as performed:
                done = apply_import(labels, plan, overwrite, performed.signature)
                performed.result = f"{done.written} labels, {done.batch}"
    stray, note = _unmet(lines, eval_set, workspace)
    unknown = f"; {strangers} lines ask what the eval set does not" if strangers else ""
    facts = _import_facts(plan, done, dry_run) | {"left_out": strangers} | stray
    say(facts, json, _import_words(plan, done) + unknown + note)


@labels_app.command("undo")
def undo_import(
    batch: str = typer.Argument(..., help="The batch that an import named."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Take an import back; labels it had overwritten count again.

    Example: python -m rag_core labels undo import-2026-01-31T12:00:00.000000Z-1a2b3c4d
    """
    from rag_core.project import deeds

    person = deeds.person_of_this_machine()
    with opened(workspace) as labels:
        kind = deeds.undo_kind(person, labels.authors(batch))
        with deeds.command(kind, batch, resolve_workspace(workspace)) as performed:
            count = labels.undo_batch(batch, performed.signature)
            performed.result = f"{count} labels"
    if not count:
        raise InputError(f"no label of batch {batch[:80]!r} still stands, expected the name an import gave")
    say({"batch": batch, "undone": count}, json, f"{count} labels taken back")


@labels_app.command("stats")
def label_stats(
    eval_set: str | None = typer.Option(None, "--eval-set", help="Only this one; all without it."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Count labels by grade and annotator.

    Example: python -m rag_core labels stats --json
    """
    from dataclasses import asdict

    with opened(workspace) as labels:
        names = [existing(labels, eval_set)] if eval_set is not None else labels.eval_sets()
        found = [labels.stats(name) for name in names]
    words = [
        f"{stats.eval_set}: {stats.labels} labels on {stats.queries} queries "
        f"(grades 0-3: {', '.join(str(stats.grades[grade]) for grade in range(4))}; unsure: {stats.unsure}); "
        + ", ".join(f"{name} {count}" for name, count in stats.annotators.items())
        for stats in found
    ]
    say({"eval_sets": [asdict(stats) for stats in found]}, json, "\n".join(words) or "no labels yet")


def _import_facts(plan: ImportPlan, done: Imported, dry_run: bool) -> dict[str, Any]:
    conflicts = [
        {"line": line.number, "query_id": line.query_id, "chunk_id": line.chunk_id, "annotator": line.annotator}
        | {"grade": line.grade, "stored_grade": there.grade}
        for line, there in plan.conflicting
    ]
    return {
        "eval_set": plan.eval_set,
        "dry_run": dry_run,
        "new": len(plan.new),
        "equal": len(plan.equal),
        "conflicting": len(plan.conflicting),
        "conflicts": conflicts,
        "written": done.written,
        "batch": done.batch,
        "back_up": done.back_up,
    }


def _unmet(lines: Sequence[LabelLine], eval_set: str, workspace: Path | None) -> tuple[dict[str, Any], str]:
    """Labels that would count for nothing, as facts and in words."""
    from rag_core.eval_sets.reading import folders, load_set
    from rag_core.given import unmet

    folder = resolve_workspace(workspace)
    if eval_set not in folders(folder):
        return {"unknown_queries": None, "unknown_chunks": None}, f"; there is no eval set {eval_set[:80]!r} here yet"
    found = unmet(lines, load_set(eval_set, folder))
    return {"unknown_queries": found.queries, "unknown_chunks": found.chunks}, f"; {found.words}" if found.words else ""


def _import_words(plan: ImportPlan, done: Imported) -> str:
    counts = (
        f"{len(plan.new)} new, {len(plan.equal)} equal, {len(plan.conflicting)} conflicting; {done.written} written"
    )
    return f"{counts} as batch {done.batch}" if done.batch else counts


labels_app.command("agreement")(labels_of_project(label_agreement))
labels_app.command("judge")(labels_of_project(judge_labels))
labels_app.command("judge-agreement")(labels_of_project(judge_agreement))
labels_app.command("remap")(labels_of_project(remap_labels))
labels_app.command("run-file")(labels_of_project(write_run_file))
labels_app.command("audit")(labels_of_project(audit_labels))
