"""`collections words`: a collection's keyword and synonym lists, what they do to a question, and over an eval set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from rag_core.cli.options import Json, Workspace
from rag_core.cli.output import emit
from rag_core.cli.replay import shown
from rag_core.workspace import resolve_workspace

Collection = typer.Option(..., "--collection", help="The collection's name.")

words_app = typer.Typer(
    help="The keyword and synonym lists a collection's questions are rewritten with.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@words_app.command("show")
def show(collection: str = Collection, workspace: Path | None = Workspace, json: bool = Json) -> None:
    """Both lists, where each comes from, and the keywords the last ingest took from the headers."""
    from rag_core import wording

    place = resolve_workspace(workspace)
    taken = wording.header_words(place, collection)
    lists = [wording.listed(place, collection, kind) for kind in wording.KINDS]
    keywords, synonyms = (None, None) if any(one.problem for one in lists) else wording.words_of(place, collection)
    if json:
        emit(
            {
                "collection": collection,
                "lists": [_facts(one) for one in lists],
                "from_headers": list(taken),
                "keywords": list(keywords.names) if keywords else None,
                "synonyms": synonyms.terms if synonyms else None,
            }
        )
        return
    typer.echo(f"from the headers: {len(taken)} keywords")
    for one in lists:
        origin = f"{one.entries} entries of the {one.origin}'s list, {one.file}" if one.origin else "no list"
        typer.echo(f"{one.kind}: {one.problem or origin}")
    for term, said in synonyms.terms.items() if synonyms else ():
        typer.echo(f"  {term} ← {', '.join(said)}")


def _facts(one: Any) -> dict[str, Any]:
    file = str(one.file) if one.file else None
    return {"kind": one.kind, "origin": one.origin, "file": file, "entries": one.entries, "problem": one.problem}


@words_app.command("set")
def set_list(
    kind: str = typer.Argument(..., help="keywords or synonyms."),
    file: Path = typer.Argument(..., help="YAML or JSON: keywords: [...], or `official term: [user words]`."),
    collection: str = Collection,
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Make a file's list the collection's own; what stood there before is kept beside it."""
    from rag_core import wording
    from rag_core.files import read_text
    from rag_core.project import deeds
    from rag_core.retrieve.word_lists import LARGEST

    place = resolve_workspace(workspace)
    wording.own_file(place, collection, kind)  # an unknown kind of list is said before the file is read
    wording.header_words(place, collection)
    with deeds.command(deeds.CHANGE_WORDS, collection, place):
        wording.save_list(place, collection, kind, read_text(file, limit=LARGEST))
    now = wording.listed(place, collection, kind)
    if json:
        emit({"collection": collection, **_facts(now)})
    else:
        typer.echo(f"{collection}: {now.entries} {kind}, kept in {now.file}")


@words_app.command("try")
def try_words(
    question: str = typer.Argument(..., help="A question as people ask it."),
    collection: str = Collection,
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """A question as each side of the search gets it, and which words made the difference."""
    from rag_core import wording
    from rag_core.retrieve.rewrite import rewritten

    found = rewritten(question, *wording.words_of(resolve_workspace(workspace), collection))
    if json:
        added = [{"term": term, "word": word} for term, word in found.added]
        texts = {"asked": found.asked, "dense_text": found.dense_text, "lexical_text": found.lexical_text}
        emit({"collection": collection, **texts, "found": list(found.found), "added": added})
        return
    typer.echo(f"asked:   {found.asked}")
    typer.echo(f"dense:   {found.dense_text}  ({', '.join(found.found) or 'no keyword'})")
    said = ", ".join(f"{word} → {term}" for term, word in found.added)
    typer.echo(f"lexical: {found.lexical_text}  ({said or 'no synonym'})")


@words_app.command("measure")
def measure(
    collection: str = Collection,
    eval_set: str = typer.Option("", "--eval-set", help="Default: the eval set of the collection's name."),
    search: str = typer.Option("hybrid", "--search", help="hybrid or lexical."),
    seed: int = typer.Option(0, help="Seed of intervals and permutation tests."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """The search with and without both rewrites on an eval set: means, and the paired difference with its interval."""
    from rag_core.compare.compare import row_json, table, verdict_words
    from rag_core.compare.rewrites import MEASURES
    from rag_core.workbench import measure_words

    name = eval_set or collection
    rows = table(measure_words(resolve_workspace(workspace), collection, name, search), MEASURES, seed=seed)
    if json:
        emit({"collection": collection, "eval_set": name, "search": search, "table": [row_json(row) for row in rows]})
        return
    typer.echo(f"{search} on {name}: {rows[0].queries_scored} of {rows[0].queries_total} queries scored")
    for one in MEASURES:
        before, after = (row.cells[one] for row in rows)
        typer.echo(f"{one}: {shown(before.estimate.mean)} → {shown(after.estimate.mean)}")
        typer.echo(f"  {verdict_words(after.against)}" if after.against else "")
