"""`export`: a pipeline to take away, as a single Python file or as a spec."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from rag_core.cli.options import Commands
from rag_core.cli.sessions import InProject
from rag_core.errors import InputError
from rag_core.export import export_filter, export_spec
from rag_core.files import write_whole
from rag_core.project.session import Session
from rag_core.spec import fingerprint, read_pipeline

app = Commands()
FORMATS = ("python", "spec")


@app.command("export")
def export(
    common: InProject,
    spec: str = typer.Argument(..., help="Spec file, inline JSON, a shipped name or one of the project's."),
    out: Path | None = typer.Option(None, "--out", help="The file to write; without it the text goes to stdout."),
    format: str = typer.Option("python", "--format", help="python: one file, standard library only; spec: the spec."),
    adapter: str = typer.Option(
        "", "--adapter", help="chroma, langchain or llamaindex: a function for it in the file."
    ),
    metric: str = typer.Option("", "--metric", help="Of the lists it was tuned on; default: the project's."),
    score: str = typer.Option(
        "", "--score", help="What orders those lists: distance, score …; default: the project's."
    ),
) -> None:
    """Export a tuned pipeline: a Python file that a service copies in, or the spec with all settings."""
    if format not in FORMATS:
        raise InputError(f"--format is {format[:40]!r}, expected one of {', '.join(FORMATS)}")
    if common.json and out is None:
        raise InputError("--json came without --out, expected the file to write")
    if adapter and format != "python":
        raise InputError(f"--adapter {adapter[:40]} came with --format {format}, expected it with python")
    project, tuned_on, fields = common.opened(), (metric, score), None
    if project is None:
        pipeline = read_pipeline(spec)
    else:
        session = Session(project)
        pipeline = session.pipeline(spec)
        if format == "python":
            seen = session.scores_of(pipeline)
            tuned_on, fields = (metric or seen[0], score or seen[1]), session.record_fields()
    if format == "python":
        text, hint = export_filter(pipeline, adapter, *tuned_on, fields), f"; try it: python {out} --self-test"
    else:
        text, hint = export_spec(pipeline, "yaml" if out and out.suffix in (".yaml", ".yml") else "json"), ""
    if out is None:
        sys.stdout.write(text)
        return
    write_whole(out, text)
    facts = {"out": str(out), "format": format, "pipeline": pipeline.called, "fingerprint": fingerprint(pipeline)}
    common.say(facts, f"{pipeline.called} → {out}{hint}")
