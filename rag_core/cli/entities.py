"""`entities`: which entities of a structure a query means, why, and the tokens that saves; lint; labelled queries."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.options import Commands, Common
from rag_core.entities import EntitySettings, TeamFilter, load_structure
from rag_core.entities.agreement import agreement, read_labelled, suggest_aliases
from rag_core.entities.lint import lint_structure
from rag_core.errors import InputError

app = Commands()


@app.command()
def entities(
    common: Common,
    query: str | None = typer.Argument(None, help="The query; may be left out with --lint."),
    structure: Path | None = typer.Option(None, help="Structure file, YAML or JSON; the demo structure without one."),
    budget: int | None = typer.Option(None, min=1, help="Most tokens to send, in whole entities; default: no limit."),
    threshold: float = typer.Option(80.0, help="Least likeness of a misspelt name, 0 to 100."),
    lint: bool = typer.Option(False, "--lint", help="Check the structure for names that tell nothing."),
    labelled: Path | None = typer.Option(None, "--labelled", help="JSONL with query and teams: measure on it."),
) -> None:
    """Find the entities a query names: by which strategy and words, and how many tokens their part saves."""
    if query is None and not lint and labelled is None:
        raise InputError("no query was given, expected a text, --lint to check the structure, or --labelled FILE")
    loaded = load_structure(structure)
    if lint:
        findings = [asdict(finding) for finding in lint_structure(loaded, EntitySettings(threshold=threshold))]
        document: dict[str, Any] = {"structure": loaded.name, "findings": findings}
        lines = [f"{finding['kind']}: {finding['text']}" for finding in findings] or ["nothing found"]
    elif labelled is not None:
        document = labelled_document(TeamFilter(loaded, EntitySettings(threshold=threshold)), labelled)
        lines = _measured_text(document)
    else:
        document = entities_document(TeamFilter(loaded, EntitySettings(threshold=threshold)), query or "", budget)
        lines = _as_text(document)
    common.say(document, "\n".join(lines))


def entities_document(team_filter: TeamFilter, query: str, budget: int | None = None) -> dict[str, Any]:
    """The answer as plain JSON values: teams, matches, and tokens of the full structure and of what is sent."""
    found = team_filter.explain(query)
    part = team_filter.part(found.teams, budget)
    return {
        "query": query,
        "words": list(found.words),
        "teams": list(found.teams),
        "matches": [{**asdict(match), "words": list(match.words)} for match in found.matches],
        "inside": [{**asdict(match), "words": list(match.words)} for match in found.inside],
        "sent": list(part.entities),
        "entities": part.of,
        "tokens_full": part.full,
        "tokens_filtered": part.tokens,
        "said": part.to_text(),
    }


def labelled_document(team_filter: TeamFilter, file: Path) -> dict[str, Any]:
    """How well labelled queries are understood, and the aliases that they suggest."""
    rows = read_labelled(file)
    found = agreement(team_filter, rows)
    misses = [asdict(one.labelled) | {"extra": list(one.extra), "missing": list(one.missing)} for one in found.misses]
    measured = asdict(found) | {"misses": misses}
    aliases = [asdict(one) for one in suggest_aliases(team_filter, [(row.query, row.teams) for row in rows])]
    return {"agreement": measured, "aliases": aliases}


def _measured_text(document: dict[str, Any]) -> list[str]:
    """The same for a person: two figures, what went wrong, what might be an alias."""
    found = document["agreement"]
    lines = [f"{found['queries']} queries: precision {found['precision']:.3f}, recall {found['recall']:.3f} (macro)"]
    for miss in found["misses"]:
        lines.append(f"  {miss['query'][:80]!r}: extra {miss['extra']}, missing {miss['missing']}")
    for one in document["aliases"]:
        lines.append(f"  alias? {one['alias']!r} for {', '.join(one['teams'])} ({one['count']} queries)")
    return lines


def _as_text(document: dict[str, Any]) -> list[str]:
    """The answer for a person: teams, then a line per match, then the tokens."""
    full, filtered = document["tokens_full"], document["tokens_filtered"]
    lines = [", ".join(document["teams"]) or "no entity is named"]
    for match in document["matches"]:
        words = " ".join(match["words"])
        lines.append(f"  {match['team']}: {match['strategy']} {match['item']!r} by {words!r}, {match['reason']}")
    for match in document["inside"]:
        lines.append(f"  not {match['team']}: {' '.join(match['words'])!r} stands inside a longer name")
    return [*lines, f"tokens: {filtered:,} of {full:,} ({document['said']})"]
