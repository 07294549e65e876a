"""`doctor`: is everything reachable and whole; `deeds`: who did what; `stages`: every stage with its settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.options import Json, Workspace
from rag_core.cli.output import emit
from rag_core.errors import SurroundingsError
from rag_core.workspace import resolve_workspace


def doctor(
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Look whether everything is reachable and whole; exit code 3 if something is not."""
    from rag_core.health import checks_of

    checks = list(checks_of(resolve_workspace(workspace)))
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


def deeds(
    last: int = typer.Option(20, "--last", min=1, help="How many, the newest last; --json gives all."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Who changed, imported, deleted, spent or cancelled what in this workspace, and what was refused."""
    from rag_core.project.deeds import log

    rows = log(resolve_workspace(workspace))
    if json:
        emit({"deeds": rows})
        return
    for row in rows[-last:]:
        about = ", ".join(str(row[name]) for name in ("about", "whose", "result") if row.get(name))
        line = f"{row['at'][:19]}  {row['who']}  {row['deed']}: {row['outcome']}"
        typer.echo(f"{line} ({about})" if about else line)


def stages(
    markdown: bool = typer.Option(False, "--markdown", help="As the table of docs/stages.md."),
    json: bool = Json,
) -> None:
    """Every stage with its settings, defaults and ranges."""
    table = list(stage_table())
    if json:
        emit({"stages": table})
        return
    for stage in table:
        name, title, meaning = stage["name"], stage["title"], stage["help"]
        typer.echo(f"### {name}\n*{title}*: {meaning}\n" if markdown else f"{name} ({title}): {meaning}")
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
    """Every stage as plain values: name, kind, title, meaning, settings."""
    from rag_core.spec import STAGES, dump_stages, setting_fields, stage_class

    for name in sorted(STAGES):
        cls = stage_class(name)
        defaults = dump_stages(cls())[0][name]
        settings = {
            key: {"default": defaults[key], "range": _range(field.metadata), "help": field.metadata.get("help", "")}
            for key, field in setting_fields(cls).items()
        }
        yield {"name": name, "kind": cls.kind, "title": cls.title, "help": cls.meaning, "settings": settings}


def _range(meta: Any) -> str:
    if meta.get("choices"):
        return ", ".join(meta["choices"])
    low, high = meta.get("low"), meta.get("high")
    if low is None and high is None:
        return "any"
    return f"at least {low}" if high is None else f"{low} to {high}"
