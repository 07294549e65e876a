"""`entities`: which entities of a structure a query means, why, and the tokens that saves; and lint of a structure."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rag_core.cli.options import Json
from rag_core.cli.output import emit
from rag_core.errors import InputError

if TYPE_CHECKING:
    from rag_core.entities import TeamFilter


def entities(
    query: str | None = typer.Argument(None, help="The query; may be left out with --lint."),
    structure: Path | None = typer.Option(None, help="Structure file, YAML or JSON; the demo structure without one."),
    threshold: float = typer.Option(80.0, help="Least likeness of a misspelt name, 0 to 100."),
    lint: bool = typer.Option(False, "--lint", help="Check the structure for names that tell nothing."),
    json: bool = Json,
) -> None:
    """Find the entities a query names: by which strategy and words, and how many tokens their part saves."""
    from rag_core.entities import Settings, TeamFilter, load_structure
    from rag_core.entities.lint import lint_structure

    if query is None and not lint:
        raise InputError("no query was given, expected a text, or --lint to check the structure")
    loaded = load_structure(structure)
    if lint:
        findings = [asdict(finding) for finding in lint_structure(loaded, Settings(threshold=threshold))]
        document: dict[str, Any] = {"structure": loaded.name, "findings": findings}
        lines = [f"{finding['kind']}: {finding['text']}" for finding in findings] or ["nothing found"]
    else:
        document = entities_document(TeamFilter(loaded, Settings(threshold=threshold)), query or "")
        lines = _as_text(document)
    if json:
        emit(document)
    else:
        typer.echo("\n".join(lines))


def entities_document(team_filter: TeamFilter, query: str) -> dict[str, Any]:
    """The answer as plain JSON values: teams, matches, and tokens of the full and of the filtered structure."""
    found = team_filter.explain(query)
    saving = team_filter.saving(found.teams)
    return {
        "query": query,
        "words": list(found.words),
        "teams": list(found.teams),
        "matches": [{**asdict(match), "words": list(match.words)} for match in found.matches],
        "tokens_full": saving.full,
        "tokens_filtered": saving.filtered,
    }


def _as_text(document: dict[str, Any]) -> list[str]:
    """The answer for a person: teams, then a line per match, then the tokens."""
    full, filtered = document["tokens_full"], document["tokens_filtered"]
    lines = [", ".join(document["teams"]) or "no entity is named: the whole structure is kept"]
    for match in document["matches"]:
        words = " ".join(match["words"])
        lines.append(f"  {match['team']}: {match['strategy']} {match['item']!r} by {words!r}, {match['reason']}")
    return [*lines, f"tokens: {filtered:,} of {full:,} ({1 - filtered / full:.1%} saved)"]
