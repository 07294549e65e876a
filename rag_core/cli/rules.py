"""`rules`: lint, suggest, export, import, batches, undo; generating and applying are in rule_writing.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.options import Collection, EvalSetName, Json, Lists, MinGrade, Workspace
from rag_core.cli.output import emit
from rag_core.cli.rule_sources import NamedCollection, Templates, captured, read_sources, read_templates
from rag_core.cli.rule_writing import apply, generate, propose, write_file
from rag_core.cli.sessions import for_project
from rag_core.errors import GateFailed
from rag_core.workspace import resolve_workspace

REASONS = 3  # said one by one; --json has every chunk with its own

rules_app = typer.Typer(
    help="Chunk-side rules: lint, suggest, propose, generate, apply, import, export, batches, undo.",
    no_args_is_help=False,
)
rules_app.command("generate")(for_project(generate))
rules_app.command("propose")(for_project(propose))
rules_app.command("apply")(for_project(apply))


@rules_app.command("lint")
@for_project
def lint(
    collection: str | None = Collection,
    eval_set: str | None = EvalSetName,
    lists: Path | None = Lists,
    min_grade: int | None = MinGrade,
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Check stored rules against queries, labels and one another. Exit code 1 where there are errors.

    Example: python -m rag_core rules lint --eval-set rulebook
    """
    from rag_core.rules.lint import SEVERITIES, lint_rules

    sources = read_sources(resolve_workspace(workspace), collection, eval_set, lists, min_grade)
    findings = lint_rules(sources.chunks, sources.cases, sources.min_grade)
    counts = {severity: sum(one.severity == severity for one in findings) for severity in SEVERITIES}
    if json:
        emit({"chunks": len(sources.chunks), "counts": counts, "findings": [asdict(one) for one in findings]})
    else:
        lines = [f"{one.severity} {one.kind}: {_shown(one.chunks)} {one.text}{_at(one.query)}" for one in findings]
        typer.echo("\n".join([*lines, ", ".join(f"{count} {severity}s" for severity, count in counts.items())]))
    if counts["error"]:
        raise GateFailed(f"the rules have {counts['error']} errors")


def _shown(chunks: Sequence[str]) -> str:
    more = f" and {len(chunks) - 3} more" if len(chunks) > 3 else ""
    return ", ".join(chunks[:3]) + more


def _at(query: str) -> str:
    return f" (query {query})" if query else ""


@rules_app.command("suggest")
@for_project
def suggest(
    collection: str | None = Collection,
    eval_set: str | None = EvalSetName,
    lists: Path | None = Lists,
    k: int = typer.Option(15, "-k", min=1, max=1000, help="How many places of each list count."),
    min_grade: int | None = MinGrade,
    templates: Path | None = Templates,
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Families of near-duplicate titles, those that crowd result lists most first, and how many carry rules.

    Example: python -m rag_core rules suggest --eval-set rulebook
    """
    from rag_core.rules import suggest as crowding

    folder = resolve_workspace(workspace)
    sources = read_sources(folder, collection, eval_set, lists, min_grade)
    families = read_templates(templates)
    found = crowding.suggest(sources.chunks, captured(sources, folder, k), k, sources.min_grade, families)
    covered = crowding.coverage(sources.chunks, families)
    if json:
        emit({"coverage": asdict(covered), "families": [asdict(one) for one in found]})
        return
    for one in found:
        typer.echo(
            f"{one.crowding:6.1%} crowding, {one.share:6.1%} of places: {one.name} ({len(one.chunks)} chunks, "
            f"{one.with_rule} with rules, template {one.template or 'none'})"
        )
    typer.echo(f"{covered.with_rule} of {covered.chunks} chunks carry rules, {covered.unreadable} cannot be read")


@rules_app.command("export")
@for_project
def export(
    collection: str = NamedCollection,
    out: Path = typer.Option(..., "--out", help="YAML, or JSON by its ending."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Write the collection's rules to a file that apply reads, from wherever its chunks keep them."""
    from rag_core.index.collection import open_collection
    from rag_core.rules.rule_files import stored_rules

    rules, wrong = stored_rules(open_collection(resolve_workspace(workspace), collection).chunks)
    write_file(out, rules)
    _say(
        json,
        {"out": str(out), "rules": len(rules), "unreadable": wrong},
        _unreadable(wrong),
        f"{len(rules)} rules → {out}",
    )


@rules_app.command("import")
@for_project
def import_metadata(collection: str = NamedCollection, workspace: Path | None = Workspace, json: bool = Json) -> None:
    """Bring rules that stand in the chunks' metadata (a JSON string, flat lists) into the rules' own place."""
    from rag_core.index.collection import open_collection
    from rag_core.rules.rule_files import stored_rules

    folder = resolve_workspace(workspace)
    chunks = open_collection(folder, collection).chunks
    rules, wrong = stored_rules(chunks)
    own = {chunk.id: chunk.query_must for chunk in chunks}
    fresh = {identity: rule for identity, rule in rules.items() if own[identity] != rule.as_mapping()}
    number = _imported(folder, collection, fresh)
    facts = {"batch": number, "imported": len(fresh), "unreadable": wrong}
    _say(json, facts, _unreadable(wrong), f"{len(fresh)} rules imported" + (f" as batch {number}" if number else ""))


def _imported(folder: Path, collection: str, rules: Mapping[str, Any]) -> int | None:
    from rag_core.index.rules import apply_rules
    from rag_core.project import deeds

    if not rules:
        return None
    with deeds.command(deeds.CHANGE_RULES, collection, folder) as performed:
        number = apply_rules(folder, collection, rules, "import of metadata").number
        performed.result = f"batch {number}"
    return number


def _unreadable(wrong: Mapping[str, str]) -> list[str]:
    """A line a reason, the most frequent first and at most three: a store's rules mostly fail alike."""
    chunks: dict[str, list[str]] = {}
    for identity, text in wrong.items():
        chunks.setdefault(text, []).append(identity)
    alike = sorted(chunks.items(), key=lambda pair: -len(pair[1]))
    lines = [f"cannot be read, {_shown(ids)}: {text}" for text, ids in alike[:REASONS]]
    others = sum(len(ids) for _, ids in alike[REASONS:])
    return [*lines, f"cannot be read, for {len(alike) - REASONS} other reasons: {others} chunks"] if others else lines


@rules_app.command("batches")
@for_project
def batches(collection: str = NamedCollection, workspace: Path | None = Workspace, json: bool = Json) -> None:
    """The batches of rules stored in a collection, oldest first."""
    from rag_core.index.rules import rule_batches

    found = rule_batches(resolve_workspace(workspace), collection)
    lines = [
        f"{one.number}: {one.chunks} chunks, {one.at}, {one.about}{' (undone)' if one.undone else ''}" for one in found
    ]
    _say(json, {"batches": [asdict(one) for one in found]}, lines, f"{len(found)} batches")


@rules_app.command("undo")
@for_project
def undo(
    collection: str = NamedCollection,
    batch: int | None = typer.Option(None, "--batch", help="The batch's number; default: the last one standing."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Take a batch of rules back; chunks whose rules were changed since keep them."""
    from rag_core.index.rules import undo_rules
    from rag_core.project import deeds

    place = resolve_workspace(workspace)
    with deeds.command(deeds.UNDO_RULES, collection, place) as performed:
        found = undo_rules(place, collection, batch)
        performed.result = f"batch {found.number}"
    lines = [f"changed since and kept: {identity}" for identity in found.changed_since]
    _say(json, asdict(found), lines, f"batch {found.number} undone: {len(found.restored)} chunks as before")


def _say(json: bool, facts: Mapping[str, Any], lines: Iterable[str], last: str) -> None:
    """The facts as JSON, or the lines for a person."""
    if json:
        emit(facts)
    else:
        typer.echo("\n".join([*lines, last]))
