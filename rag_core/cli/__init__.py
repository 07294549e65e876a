"""The command line: every action of a page, scriptable. This module is the frame: options of all commands, and errors.

stdout carries the answer alone (with --json one JSON document), stderr everything else. Every error is one sentence on
stderr with the exit code of rag_core.errors.EXIT_CODES; a command never prints a traceback or a usage box. What the
commands do is in the library; each module here only reads options, calls it and prints.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import typer
from typer.exceptions import TyperException

from rag_core.errors import InputError, WinnowError, exit_code

app = typer.Typer(
    name="winnow",
    no_args_is_help=False,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Show, measure and tune what retrieval filters keep, what they drop, and why.",
)


def _version(wanted: bool) -> None:
    if wanted:
        try:
            number = version("winnow")
        except PackageNotFoundError:
            from rag_core import __version__ as number
        typer.echo(f"winnow {number}")
        raise typer.Exit


@app.callback()
def common(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Options before the command. What the environment sets is checked here, before any command runs."""
    from rag_core.settings import read

    read()


@cache
def _register() -> None:
    """Hang the commands under the app, once; their modules import the library only when a command runs."""
    from rag_core.cli import (
        backups,
        caching,
        collections,
        comparing,
        entities,
        eval_sets,
        evaluating,
        exporting,
        gating,
        history,
        ingesting,
        labels,
        live,
        llm_filter_more,
        projects,
        replay,
        reporting,
        rules,
        runs,
        status,
        tune,
        tuning,
    )
    from rag_core.cli.journalled import journalled

    app.command("replay")(replay.replay)
    app.command()(live.query)
    app.command("init")(projects.init)
    app.command("projects")(projects.projects)
    app.command("why")(projects.why)
    app.command("advise")(projects.advise)
    app.command("headroom")(projects.headroom)
    app.command("judge")(projects.judge)
    for command in (ingesting.ingest, live.capture, evaluating.evaluate, tuning.sweep, tune.tune):
        app.command()(journalled(command))
    app.command("entities")(entities.entities)
    app.command("backup")(backups.backup)
    app.command("restore")(backups.restore)
    app.command("doctor")(status.doctor)
    app.command("deeds")(status.deeds)
    app.command("stages")(status.stages)
    app.command()(exporting.export)
    app.command()(comparing.compare)
    app.command()(comparing.attribute)
    app.command()(gating.gate)
    app.command()(reporting.report)
    app.add_typer(caching.cache_app, name="cache")
    app.add_typer(collections.collections_app, name="collections")
    app.add_typer(eval_sets.eval_sets_app, name="eval-sets")
    app.add_typer(history.history_app, name="history")
    app.add_typer(projects.project_app, name="project")
    app.add_typer(projects.held_out_app, name="held-out")
    app.add_typer(labels.labels_app, name="labels")
    app.add_typer(llm_filter_more.llm_filter_app, name="llm-filter")
    app.add_typer(rules.rules_app, name="rules")
    app.add_typer(runs.runs_app, name="runs")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    _register()
    try:
        result = app(args=list(arguments) if arguments is not None else None, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except (WinnowError, TyperException, KeyboardInterrupt, OSError) as error:
        return _report(error)
    except Exception as error:  # a fault of ours: still one sentence, with the traceback on request
        if os.environ.get("WINNOW_DEBUG"):
            raise
        return _report(error, f"internal error, {type(error).__name__}: set WINNOW_DEBUG=1 to see where")


def _report(error: BaseException, sentence: str | None = None) -> int:
    """Print the one sentence of an error and give its exit code."""
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left; nothing more to say
        return 0
    if isinstance(error, typer.Exit):
        return int(error.exit_code)
    if isinstance(error, TyperException | typer.Abort):
        sentence = getattr(error, "format_message", lambda: "stopped")()
        error = KeyboardInterrupt() if isinstance(error, typer.Abort) else InputError(sentence)
    text = sentence or str(error) or type(error).__name__
    sys.stderr.write(" ".join(f"winnow: {text}".split()) + "\n")
    return exit_code(error)
