"""The options that several commands share: one name, one meaning, one help text.

What only one command takes stands beside that command.
"""

from __future__ import annotations

import typer

Workspace = typer.Option(
    None, "--workspace", help="Folder of labels, indexes and runs; else WINNOW_WORKSPACE, else .winnow"
)
Json = typer.Option(False, "--json", help="One JSON document on stdout.")
Collection = typer.Option(None, "--collection", help="The collection's name; default: that of the eval set.")
EvalSetName = typer.Option(None, "--eval-set", help="An eval set by name, or a folder with meta.yaml.")
Lists = typer.Option(None, "--lists", help="Recorded lists (JSONL) with their labels, instead of an eval set.")
Split = typer.Option(None, "--split", help="Only the queries of this split (dev, test).")
MinGrade = typer.Option(None, "--min-grade", min=1, help="Relevant means this grade or more; default: the eval set's.")
