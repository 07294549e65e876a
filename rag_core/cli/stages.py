"""`stages`: what a pipeline can be made of."""

from __future__ import annotations

import typer

from rag_core.cli.options import Commands, Common
from rag_core.spec import stage_table

app = Commands()


@app.command("stages")
def stages(
    common: Common,
    markdown: bool = typer.Option(False, "--markdown", help="As the table of docs/stages.md."),
) -> None:
    """Every stage with its settings, defaults and ranges."""
    table, lines = list(stage_table()), []
    for stage in table:
        name, title, meaning = stage["name"], stage["title"], stage["help"]
        settings = [(key, row["default"], row["range"], row["help"]) for key, row in stage["settings"].items()]
        if markdown:
            lines += [f"### {name}\n*{title}*: {meaning}\n", "| setting | default | range | meaning |"]
            lines += ["| --- | --- | --- | --- |", *(f"| `{s}` | `{d}` | {r} | {h} |" for s, d, r, h in settings), ""]
        else:
            lines += [f"{name} ({title}): {meaning}", *(f"  {s} = {d}  ({r}) {h}" for s, d, r, h in settings)]
    common.say({"stages": table}, "\n".join(lines))
