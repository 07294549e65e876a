"""`ingest` and `collections`: what exists; `found`, `connect`: Chroma's; `words`, `delete`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from rag_core import wording
from rag_core.cli.options import Commands, Common, Engine, named_pairs
from rag_core.cli.output import ProgressBar
from rag_core.engine import cluster, jobs
from rag_core.errors import InputError
from rag_core.files import read_text
from rag_core.index.collection import delete_collection, list_collections
from rag_core.index.embed import BundledEmbedder, Embedder
from rag_core.index.foreign import FIELDS as RECORD_FIELDS
from rag_core.index.foreign import connect as mirror
from rag_core.index.foreign import list_foreign
from rag_core.index.foreign_place import IN_PLACE_WARNING, ForeignPlace, named_place
from rag_core.index.handles import ingest_embedder
from rag_core.index.ingest import ingest as bring_in
from rag_core.index.ingest import look
from rag_core.project import deeds
from rag_core.project.intake import Documents
from rag_core.retrieve.rewrite import rewritten
from rag_core.retrieve.word_lists import LARGEST
from rag_core.settings import chroma_settings

app = Commands()
collections = Commands("What collections exist; connect one that Chroma holds.", invoke_without_command=True)
words = Commands("The keyword and synonym lists a collection's questions are rewritten with.", no_args_is_help=True)
app.add_typer(collections, name="collections")
collections.add_typer(words, name="words")

Collection = typer.Option(..., "--collection", help="The collection's name.")


@dataclass(frozen=True)
class ReadingOptions:
    """How documents become chunks."""

    column: list[str] = typer.Option(
        None, "--column", help="FIELD=COLUMN for tables and JSONL, such as text=body; may be repeated."
    )
    header_level: int = typer.Option(3, "--header-level", min=2, max=4, help="Markdown: deepest header that splits.")
    split_long: bool = typer.Option(
        None,
        "--split-long/--keep-long",
        help="Take apart what is longer than the model reads, whatever it is, or nothing; default: Markdown alone.",
    )
    skip_bad: bool = typer.Option(
        False, "--skip-bad", help="Leave out records without a text, or with too long a one, and say which."
    )

    def order(self, paths: Sequence[Path], model: str = "", dimension: int | None = None) -> Documents:
        """The documents of these paths, to be read so."""
        columns = tuple(named_pairs(self.column or (), "--column", "COLUMN").items())
        listed = tuple(map(str, paths))
        return Documents(listed, self.header_level, self.split_long, columns, model, dimension, self.skip_bad)


FieldOption = typer.Option(
    None,
    "--map",
    help="FIELD=KEY, also several after commas: which metadata is title, type, file, ref_ids or rule; replaces what is "
    "proposed and is kept.",
)


@app.command("ingest", journal=True)
def ingest(
    common: Common,
    options: ReadingOptions,
    paths: list[Path] = typer.Argument(
        ..., help="Files or folders: Markdown, text, JSONL, JSON, CSV, Parquet, BEIR, OpenAPI."
    ),
    collection: str = Collection,
    format: str = typer.Option("auto", "--format", help="auto, markdown, jsonl, json, csv, parquet, beir or openapi."),
    model: str = typer.Option(
        "",
        "--model",
        help="What embeds: the bundled model, one that a configured endpoint serves, or none (words alone).",
    ),
    dimension: int | None = typer.Option(
        None, "--dimension", min=1, max=65536, help="The width of that model's vectors."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only say what the documents hold; embed and write nothing."),
    force: bool = typer.Option(False, "--force", help="Embed everything anew and keep nothing else."),
    engine: str | None = Engine,
) -> None:
    """Build or update a collection. Unchanged chunks are not embedded again; an interrupted ingest resumes."""
    place, order = common.folder, options.order(paths, model, dimension)
    reading = {"format": format, **order.reading}
    if dry_run:
        common.say(look(paths, collection, place, ingest_embedder(place, collection, model, dimension), **reading))
        return
    with (
        deeds.command(deeds.INGEST, collection, place),
        _embedder(engine, place, collection, model, dimension) as embedder,
    ):
        report = bring_in(paths, collection, place, embedder, force=force, progress=ProgressBar("embedded"), **reading)
    common.say(report)


@contextmanager
def _embedder(
    engine: str | None, workspace: Path, collection: str, model: str, dimension: int | None
) -> Iterator[Embedder]:
    """The model named, else that of the collection, here; or the bundled one on a cluster."""
    embedder = ingest_embedder(workspace, collection, model, dimension)
    if engine is None:
        yield embedder
        return
    if embedder.name != BundledEmbedder.name:
        raise InputError(f"--engine is set for {embedder.name}, expected it with the bundled {BundledEmbedder.name}")
    with cluster.opened(engine) as workers:
        yield jobs.SpreadEmbedder(workers)


def record_fields(pairs: Sequence[str] | None) -> dict[str, str] | None:
    """What --map says of a store's metadata; None where it says nothing, so that what is proposed holds."""
    known = {("rule" if one == "query_must" else one): one for one in RECORD_FIELDS}
    said = named_pairs([one for pair in pairs or () for one in pair.split(",")], "--map", "KEY")
    unknown = next((one for one in said if one not in known and one not in RECORD_FIELDS), None)
    if unknown is not None:
        raise InputError(f"--map names {unknown[:40]!r}, expected one of {', '.join(known)}")
    return {known.get(one, one): key for one, key in said.items()} or None


@collections.callback()
def list_all(common: Common, context: typer.Context) -> None:
    """What collections exist, with their chunks, rules and model."""
    if context.invoked_subcommand is not None:
        return
    known = list_collections(common.folder)
    nothing = "no collection yet; build one with: python -m rag_core ingest FOLDER --collection NAME"
    lines = [summary.to_text() for summary in known] or [nothing]
    common.say({"collections": [asdict(summary) for summary in known]}, "\n".join(lines))


@dataclass(frozen=True)
class ChromaOptions:
    """Where a Chroma store is."""

    chroma_path: Path | None = typer.Option(
        None, "--chroma-path", help="A folder that Chroma wrote; a copy of it is read."
    )
    chroma_url: str = typer.Option(
        "", "--chroma-url", help="The address of a Chroma server, such as http://127.0.0.1:8000."
    )
    chroma_cloud: bool = typer.Option(
        False, "--chroma-cloud", help="Chroma Cloud, by CHROMA_API_KEY, _TENANT and _DATABASE."
    )
    in_place: bool = typer.Option(False, "--in-place", help="Serve the folder itself; Chroma will change files in it.")

    def place(self) -> ForeignPlace:
        """The place; --in-place says on stderr what it does to the folder."""
        place = named_place(
            self.chroma_path, self.chroma_url, self.chroma_cloud, self.in_place, **asdict(chroma_settings())
        )
        if self.in_place:
            sys.stderr.write(f"warning: {IN_PLACE_WARNING}\n")
        return place


@collections.command("found")
def found(common: Common, chroma: ChromaOptions) -> None:
    """The collections that a Chroma store holds: size, space, dimensions and the model it says it was built with."""
    listed = list_foreign(chroma.place(), common.folder)
    facts = {"collections": [asdict(foreign) for foreign in listed]}
    common.say(facts, "\n".join(foreign.to_text() for foreign in listed))


@app.command("connect")
@collections.command("connect")
def connect(
    common: Common,
    chroma: ChromaOptions,
    collection: str = typer.Option(..., "--collection", help="The collection's name in the Chroma store."),
    name: str = typer.Option("", "--as", help="Its name here; default: the same."),
    model: str = typer.Option("", "--model", help="What embeds the queries; needed where the store does not say."),
    field: list[str] = FieldOption,
) -> None:
    """Use a Chroma collection as it is: every command works on its mirror. Again: bring the mirror up to date."""
    place, folder = chroma.place(), common.folder
    fields = record_fields(field)
    with deeds.command(deeds.CONNECT, name or collection, folder):
        done = mirror(place, collection, name or collection, folder, model, ProgressBar("read"), fields=fields)
    common.say(asdict(done), done.to_text())


@collections.command("delete")
def delete(
    common: Common,
    collection: str = typer.Option(..., "--collection", help="The collection's name here."),
    yes: bool = typer.Option(False, "--yes", help="Really delete it."),
) -> None:
    """Delete a collection of the workspace for good; documents and foreign stores stay as they are."""
    if not yes:
        raise InputError(f"collection {collection[:80]} would be deleted for good, expected --yes")
    place = common.folder
    with deeds.command(deeds.DELETE_COLLECTION, collection, place):
        delete_collection(place, collection)
    common.say({"deleted": collection}, f"{collection} is deleted")


@words.command("show")
def show(common: Common, collection: str = Collection) -> None:
    """Both lists, where each comes from, and the keywords the last ingest took from the headers."""
    place = common.folder
    headers = wording.header_words(place, collection)
    lists = [wording.listed(place, collection, kind) for kind in wording.KINDS]
    broken = any(listed.problem for listed in lists)
    keywords, synonyms = (None, None) if broken else wording.words_of(place, collection)
    facts = {
        "collection": collection,
        "lists": [listed.to_json() for listed in lists],
        "from_headers": list(headers),
        "keywords": list(keywords.names) if keywords else None,
        "synonyms": synonyms.terms if synonyms else None,
    }
    lines = [f"from the headers: {len(headers)} keywords", *(listed.to_text() for listed in lists)]
    lines += [f"  {term} ← {', '.join(said)}" for term, said in (synonyms.terms.items() if synonyms else ())]
    common.say(facts, "\n".join(lines))


@words.command("set")
def set_list(
    common: Common,
    kind: str = typer.Argument(..., help="keywords or synonyms."),
    file: Path = typer.Argument(..., help="YAML or JSON: keywords: [...], or `official term: [user words]`."),
    collection: str = Collection,
) -> None:
    """Make a file's list the collection's own; what stood there before is kept beside it."""
    place = common.folder
    wording.own_file(place, collection, kind)  # an unknown kind of list is said before the file is read
    wording.header_words(place, collection)
    with deeds.command(deeds.CHANGE_WORDS, collection, place):
        wording.save_list(place, collection, kind, read_text(file, limit=LARGEST))
    now = wording.listed(place, collection, kind)
    common.say(now, f"{collection}: {now.entries} {kind}, kept in {now.file}", collection=collection)


@words.command("try")
def try_words(
    common: Common,
    question: str = typer.Argument(..., help="A question as people ask it."),
    collection: str = Collection,
) -> None:
    """A question as each side of the search gets it, and which words made the difference."""
    both = wording.words_of(common.folder, collection)
    common.say(rewritten(question, *both), collection=collection)
